// The yardstick of `lacuna bench`: the same run as lacuna's compiled loop, written by hand in plain, careful C++.
// MI (synthetic or conservative) or last-observed in a tabular world under MCAR, the paper's vote and update, with the
// same measures. Reads the world from a file, prints nanoseconds per step and the mean reward of an episode.
// Usage: loop WORLD METHOD K THETA STEPS SEED REPEATS   (METHOD: 0 last-observed, 1 synthetic, 2 conservative)

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

using i64 = std::int64_t;

struct Random {  // xoshiro256+
    std::uint64_t s[4];
    explicit Random(std::uint64_t seed) {
        for (auto& word : s) {
            seed += 0x9e3779b97f4a7c15ULL;
            std::uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
            word = z ^ (z >> 31);
        }
    }
    double operator()() {
        const std::uint64_t result = s[0] + s[3], t = s[1] << 17;
        s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t;
        s[3] = (s[3] << 45) | (s[3] >> 19);
        return static_cast<double>(result >> 11) * 0x1.0p-53;
    }
};

struct World {
    i64 states, actions, outcomes, d, start[2];
    std::vector<i64> ptr, next, ends, sizes, shown, bad, restart;
    std::vector<double> cumulative, reward;
};

template <class T> std::vector<T> take(std::FILE* file, i64 n) {
    std::vector<T> values(n);
    if (std::fread(values.data(), sizeof(T), n, file) != static_cast<std::size_t>(n)) std::exit(2);
    return values;
}

World read_world(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (!file) std::exit(2);
    const auto head = take<i64>(file, 6);
    World w{head[0], head[1], head[2], head[3], {head[4], head[5]}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    w.ptr = take<i64>(file, w.states * w.actions + 1);
    w.next = take<i64>(file, w.outcomes);
    w.ends = take<i64>(file, w.outcomes);
    w.sizes = take<i64>(file, w.d);
    w.shown = take<i64>(file, w.states * w.d);
    w.bad = take<i64>(file, w.states);
    w.restart = take<i64>(file, w.states);
    w.cumulative = take<double>(file, w.outcomes);
    w.reward = take<double>(file, w.outcomes);
    std::fclose(file);
    return w;
}

struct Entry { i64 code, n; };

int main(int argc, char** argv) {
    if (argc != 8) return 2;
    const World w = read_world(argv[1]);
    const int method = std::atoi(argv[2]), K = method ? std::atoi(argv[3]) : 1;
    const double theta = std::atof(argv[4]), alpha = 0.1, gamma = 1.0;
    const i64 steps = std::atoll(argv[5]), d = w.d, A = w.actions;
    std::vector<i64> stride(d), shift(d), bits(d);
    i64 n_states = 1, width = 0;
    for (i64 j = d - 1; j >= 0; --j) {
        stride[j] = n_states; n_states *= w.sizes[j];
        i64 need = 0; while ((i64{1} << need) < w.sizes[j]) ++need;
        shift[j] = width; bits[j] = ((i64{1} << need) - 1) << width; width += need;
    }
    auto index_of = [&](i64 code) {
        i64 index = 0;
        for (i64 j = 0; j < d; ++j) index += ((code & bits[j]) >> shift[j]) * stride[j];
        return index;
    };
    double best_time = 1e99, mean = 0;
    for (int repeat = 0; repeat < std::atoi(argv[7]); ++repeat) {
        Random world_u(std::atoll(argv[6])), mask_u(std::atoll(argv[6]) + 1), draw_u(std::atoll(argv[6]) + 2), act_u(std::atoll(argv[6]) + 3);
        std::vector<double> Q(n_states * A, 0.0);
        std::vector<std::vector<Entry>> rows(method ? n_states * A : 0);
        std::vector<i64> S(K), C(K), Sn(K), Cn(K), obs(d), prev(d), held(d), acted(A, 0), hidden_steps(d + 1, 0), groups(2 * (K + 1), 0);
        i64 guesses[4] = {0, 0, 0, 0};
        double sums[9] = {0};
        const double rate = alpha / K, full = K > 1 ? 1 - std::pow(1 - alpha / K, K) : alpha;
        auto best_value = [&](i64 s) { double b = Q[s * A]; for (i64 a = 1; a < A; ++a) if (Q[s * A + a] > b) b = Q[s * A + a]; return b; };
        i64 state = w.start[0];
        auto begin = [&]() {
            i64 code = 0;
            for (i64 j = 0; j < d; ++j) { obs[j] = held[j] = prev[j] = w.shown[state * d + j]; code |= obs[j] << shift[j]; }
            for (int k = 0; k < K; ++k) { C[k] = code; S[k] = index_of(code); }
        };
        const auto before = std::chrono::steady_clock::now();
        begin();
        for (i64 t = 0; t < steps; ++t) {
            // act: one vote at random, ties at random; without exploration no coin is drawn
            const double u = act_u(), x = u * K;
            const int voter = static_cast<int>(x);
            const double* q = &Q[S[voter] * A];
            const double b = best_value(S[voter]);
            int ties = 0;
            for (i64 a = 0; a < A; ++a) ties += q[a] == b;
            int rank = static_cast<int>((x - voter) * ties);
            i64 action = 0;
            for (i64 a = 0; a < A; ++a) if (q[a] == b && rank-- == 0) { action = a; break; }
            // move
            i64 e = w.ptr[state * A + action];
            for (const double v = world_u(); v >= w.cumulative[e];) ++e;
            state = w.next[e];
            const double r = w.reward[e];
            const bool end = w.ends[e] != 0;
            // hide
            i64 seen = 0, seen_bits = 0, hidden = 0, truth = 0;
            bool was_complete = true;
            for (i64 j = 0; j < d; ++j) {
                const i64 value = w.shown[state * d + j];
                truth |= value << shift[j];
                was_complete &= prev[j] >= 0;
                if (mask_u() < theta) { obs[j] = -1; ++hidden; }
                else { obs[j] = value; seen |= value << shift[j]; seen_bits |= bits[j]; }
            }
            const bool both = was_complete && hidden == 0;
            // impute
            if (method == 0) {
                i64 code = 0;
                for (i64 j = 0; j < d; ++j) { if (obs[j] >= 0) held[j] = obs[j]; code |= held[j] << shift[j]; }
                Cn[0] = code; Sn[0] = index_of(code);
            } else if (hidden == 0) {
                const i64 s = index_of(seen);
                for (int k = 0; k < K; ++k) { Cn[k] = seen; Sn[k] = s; }
            } else {
                for (int k = 0; k < K; ++k) {
                    const auto& row = rows[S[k] * A + action];
                    i64 m = 0;
                    for (const auto& entry : row) m += (entry.code & seen_bits) == seen ? entry.n : 0;
                    const double v = draw_u();
                    if (m == 0) {
                        i64 n = 1, code = seen;
                        for (i64 j = 0; j < d; ++j) if (obs[j] < 0) n *= w.sizes[j];
                        i64 rest = static_cast<i64>(v * n);
                        for (i64 j = 0; j < d; ++j) if (obs[j] < 0) { code |= (rest % w.sizes[j]) << shift[j]; rest /= w.sizes[j]; }
                        Cn[k] = code;
                    } else {
                        i64 rank = static_cast<i64>(v * m), place = 0;
                        for (;; ++place) if ((row[place].code & seen_bits) == seen && (rank -= row[place].n) < 0) break;
                        Cn[k] = row[place].code;
                    }
                    Sn[k] = index_of(Cn[k]);
                }
            }
            // learn Q
            auto error = [&](i64 s, i64 s_next) { return r + (end ? 0.0 : gamma * best_value(s_next)) - Q[s * A + action]; };
            if (K == 1 || both) {
                if (K == 1 || end || S[0] != Sn[0]) Q[S[0] * A + action] += full * error(S[0], Sn[0]);
                else for (int k = 0; k < K; ++k) Q[S[0] * A + action] += rate * error(S[0], Sn[0]);
            } else for (int k = 0; k < K; ++k) Q[S[k] * A + action] += rate * error(S[k], Sn[k]);
            // teach the model
            auto add = [&](i64 key, i64 code, i64 units) {
                auto& row = rows[key];
                for (auto& entry : row) if (entry.code == code) { entry.n += units; return; }
                row.push_back({code, units});
            };
            if (method == 1) {
                if (both) add(S[0] * A + action, Cn[0], K);
                else for (int k = 0; k < K; ++k) add(S[k] * A + action, Cn[k], 1);
            } else if (method == 2 && both) add(S[0] * A + action, Cn[0], 1);
            for (int k = 0; k < K; ++k) { S[k] = Sn[k]; C[k] = Cn[k]; }
            for (i64 j = 0; j < d; ++j) prev[j] = obs[j];
            // measure
            sums[0] += 1; sums[1] += r; sums[6] += r; sums[8] += 1;
            if (w.bad[state]) sums[7] += 1;
            ++acted[action]; ++hidden_steps[hidden];
            if (hidden) for (int k = 0; k < K; ++k) {
                const i64 wrong = C[k] ^ truth;
                for (i64 j = 0; j < d; ++j) if (obs[j] < 0) { ++guesses[0]; guesses[1] += (wrong & bits[j]) == 0; }
                ++guesses[2]; guesses[3] += wrong == 0;
                bool first = true;
                for (int i = 0; i < k; ++i) if (C[i] == C[k]) { first = false; break; }
                if (first) {
                    int share = 1;
                    for (int i = k + 1; i < K; ++i) share += C[i] == C[k];
                    ++groups[2 * share]; groups[2 * share + 1] += wrong == 0;
                }
            }
            if (end) {
                sums[2] += 1; sums[3] += sums[6]; sums[4] += sums[7]; sums[5] += sums[8];
                sums[6] = sums[7] = sums[8] = 0;
                state = w.start[w.restart[state]];
                begin();
            }
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
        if (took.count() < best_time) best_time = took.count();
        mean = sums[3] / sums[2] + 1e-12 * (guesses[1] + guesses[3] + groups[2] + hidden_steps[0] + acted[0]);
    }
    std::printf("%.3f %.4f\n", best_time / steps * 1e9, mean);
}
