// The backup of `mi-planned` over sparse rows given as flat arrays: what planning_time.py compares with.
//
// backup ROWS VALUES TURNS: reads ROWS, writes Q of every row to VALUES, prints the ns per backup of the best turn.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

template <typename T>
static std::vector<T> take(std::FILE* file, std::size_t n) {
    std::vector<T> values(n);
    if (std::fread(values.data(), sizeof(T), n, file) != n) std::exit(1);
    return values;
}

int main(int, char** words) {
    std::FILE* file = std::fopen(words[1], "rb");
    if (!file) return 1;
    const auto head = take<std::int64_t>(file, 3);
    const std::size_t rows = head[0], states = head[1], entries = head[2];
    const auto ptr = take<std::int64_t>(file, rows + 1), next = take<std::int64_t>(file, entries);
    const auto levels = take<double>(file, 2), T = take<double>(file, entries);
    const auto ahead = take<double>(file, 4 * states), taken = take<double>(file, 3 * rows);
    const auto doubt = take<double>(file, rows);
    std::fclose(file);
    const double optimistic = levels[0], gamma = levels[1];
    std::vector<double> Q(rows);
    double best = 1e300;
    for (int turn = 0; turn < std::atoi(words[3]); turn++) {
        const auto before = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < rows; i++) {
            double V = 0, on = 0, k = 0, r = taken[3 * i], t = taken[3 * i + 2];
            for (std::int64_t e = ptr[i]; e < ptr[i + 1]; e++) {
                const double* x = &ahead[4 * next[e]];
                const double goes = T[e] * (1.0 - x[3]);
                on += goes;
                V += goes * x[0];
                k += T[e] * x[1];
                r += T[e] * x[2];
                t += T[e] * x[3];
            }
            const double weight = taken[3 * i + 1] + k;
            if (doubt[i] == 1.0 || weight == 0.0) {
                Q[i] = optimistic;
                continue;
            }
            double q = r / weight;
            if (on > 0) q += gamma * (1.0 - t / weight) * (V / on);
            Q[i] = (1.0 - doubt[i]) * q + doubt[i] * std::max(optimistic, q);
        }
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
        best = std::min(best, took.count() / rows);
    }
    std::FILE* out = std::fopen(words[2], "wb");
    if (!out || std::fwrite(Q.data(), sizeof(double), rows, out) != rows) return 1;
    std::fclose(out);
    std::printf("%.3f\n", best);
}
