"""The paper's claims on values missing completely at random (its section 4.2.1), each as a small function.

Unless a claim names a measure, it is the total reward per episode, by which the paper chooses settings. "Over" several
θ means averaged within each trial; methods are compared within trials, which share their streams. Held out, trials are
first averaged within each draw.
"""

from __future__ import annotations

import numpy as np

from lacuna.paper.evidence import (
    ALL_METHODS,
    BASELINES,
    EARLY,
    MI,
    MI_CONSERVATIVE,
    MI_SYNTHETIC,
    MISSING,
    PATH,
    RANDOM,
    REWARD,
    SI,
    V1,
    V2,
    WATER,
    Evidence,
    Shown,
    single,
    theta_of,
)
from lacuna.paper.thresholds import (
    A_BIT_WORSE,
    BETTER,
    CLEARLY_BETTER,
    HORRIBLE,
    LITTLE_LOST,
    LOW,
    MODERATE,
    PER_EPISODE,
    PER_STEP,
    PER_TENTH,
    RATIO,
    SIMILAR,
    SLIGHTLY_FASTER,
    SUBSTANTIALLY_MORE,
    WORSE,
    claim,
)
from lacuna.paper.verdicts import Ask, Asked, OneOf, Sample

SECTION = "4.2.1 MCAR results"


@claim(
    "mcar-low-theta-similar", section=SECTION, figure="mcar-theta",
    text="At low missingness rates all methods perform similarly.",
    compared="Every other method with MI K=10 synthetic, over every θ above 0 and up to 0.1 in the table.",
    threshold="Each difference within ±5 an episode: half a step in water, a twentieth of what the goal pays.",
)  # fmt: skip
def _low_theta_similar(seen: Evidence) -> list[Asked]:
    low = seen.thetas(0, LOW)
    reference = seen.mean(MI_SYNTHETIC, low)
    return [
        Ask(f"{MI_SYNTHETIC} − {other}", reference - seen.mean(other, low), SIMILAR, PER_EPISODE)
        for other in ALL_METHODS
        if other != MI_SYNTHETIC
    ]


@claim(
    "mcar-mi-best", section=SECTION, figure="mcar-theta",
    text="As missingness grows, MI with K=10 beats single imputation and every baseline on all three measures.",
    compared="MI K=10, synthetic and conservative, with the four baselines and with SI of the same model: reward, "
    "water steps and path length, over every θ in the table from above 0.1 to 0.4, and over every one "
    "above 0.4.",
    threshold="Every difference in favour of MI, its interval excluding 0: the claim says all methods, all "
    "measures.",
)  # fmt: skip
def _mi_best(seen: Evidence) -> list[Asked]:
    bands = {"θ to 0.4": seen.thetas(LOW, MODERATE), "θ above 0.4": seen.thetas(MODERATE)}
    asked: list[Asked] = []
    for mi in MI:
        for other in (*BASELINES, single(mi)):
            for band, thetas in bands.items():
                for measure, sign, unit in _MEASURES:
                    a, b = seen.mean(mi, thetas, measure), seen.mean(other, thetas, measure)
                    gain = a - b if sign > 0 else b - a
                    asked.append(Ask(f"{mi} against {other}, {band}, {unit}", gain, BETTER, f"{unit} per episode"))
    return asked


_MEASURES = ((REWARD, 1, "reward"), (WATER, -1, "fewer steps in water"), (PATH, -1, "fewer steps"))


@claim(
    "mcar-mi-robust", section=SECTION, figure="mcar-theta",
    text="MI with K=10 is quite robust: it loses little as missingness grows.",
    compared="MI K=10 at θ = 0 with its mean over every θ above 0.1 in the table.",
    threshold="The loss below 20 an episode: a fifth of what the goal pays, two steps in water.",
)  # fmt: skip
def _mi_robust(seen: Evidence) -> list[Asked]:
    full, grown = seen.thetas(up_to=0), seen.thetas(LOW)
    return [Ask(f"{mi}: loss", seen.mean(mi, full) - seen.mean(mi, grown), LITTLE_LOST, PER_EPISODE) for mi in MI]


@claim(
    "mcar-conservative-slower", section=f"{SECTION}, 4.2.4", figure="mcar-time",
    text="The conservative model learns slightly slower than the synthetic one; in the end they do similarly.",
    compared="MI K=10 synthetic minus conservative: reward per step over the first 10,000 steps, over every θ "
    "above 0.4 in the table (the paper speaks of higher missingness); and reward per episode over all "
    "steps, over θ from above 0.1 to 0.4 and above 0.4.",
    threshold="Slightly slower: between 0 and 0.9 a step, a tenth of what the best policy earns. Similar: within ±5 "
    "an episode.",
)  # fmt: skip
def _conservative_slower(seen: Evidence) -> list[Asked]:
    def gain(thetas: tuple[str, ...], measure: str = REWARD) -> Sample:
        return seen.mean(MI_SYNTHETIC, thetas, measure) - seen.mean(MI_CONSERVATIVE, thetas, measure)

    higher = seen.thetas(MODERATE)
    return [
        Ask("early reward, θ above 0.4", gain(higher, EARLY), SLIGHTLY_FASTER, PER_STEP),
        Ask("final reward, θ to 0.4", gain(seen.thetas(LOW, MODERATE)), SIMILAR, PER_EPISODE),
        Ask("final reward, θ above 0.4", gain(higher), SIMILAR, PER_EPISODE),
    ]


@claim(
    "mcar-baselines-reward-close", section=SECTION, figure="mcar-theta",
    text="Missing-as-a-state and last-fully-observed are only a bit worse than MI on total reward.",
    compared="MI K=10 synthetic minus each of the two, over every θ above 0.1 in the table.",
    threshold="Worse than MI, by less than 10 an episode: one step in water, a tenth of what the goal pays.",
)  # fmt: skip
def _baselines_reward_close(seen: Evidence) -> list[Asked]:
    grown = seen.thetas(LOW)
    mi = seen.mean(MI_SYNTHETIC, grown)
    return [
        Ask(f"{MI_SYNTHETIC} − {other}", mi - seen.mean(other, grown), A_BIT_WORSE, PER_EPISODE)
        for other in (MISSING, V1)
    ]


@claim(
    "mcar-baselines-river-path-worse", section=SECTION, figure="mcar-theta",
    text="Missing-as-a-state and last-fully-observed are substantially worse on steps in water and path length.",
    compared="Steps in water, and path length, of each of the two divided by those of MI K=10 synthetic, both over "
    "every θ above 0.1 in the table.",
    threshold="Each ratio above 1.5: half as much again, on measures the paper draws on a logarithmic scale.",
)  # fmt: skip
def _baselines_river_path_worse(seen: Evidence) -> list[Asked]:
    grown = seen.thetas(LOW)
    return [
        Ask(
            f"{other}, {what}", seen.mean(other, grown, measure) / seen.mean(MI_SYNTHETIC, grown, measure),
            SUBSTANTIALLY_MORE, RATIO,
        )
        for other in (MISSING, V1)
        for measure, what in ((WATER, "steps in water"), (PATH, "path length"))
    ]  # fmt: skip


@claim(
    "mcar-v2-over-v1", section=SECTION, figure="mcar-theta",
    text="Keeping each component's last seen value (V2) beats keeping the last complete state (V1).",
    compared="V2 minus V1, over every θ above 0.1 in the table.",
    threshold="Above 0: V2 earns more per episode.",
)  # fmt: skip
def _v2_over_v1(seen: Evidence) -> list[Asked]:
    grown = seen.thetas(LOW)
    return [Ask("V2 − V1", seen.mean(V2, grown) - seen.mean(V1, grown), BETTER, PER_EPISODE)]


@claim(
    "mcar-random-bad", section=SECTION, figure="mcar-theta",
    text="Acting at random whenever something is missing is quite bad: clearly worst or near it.",
    compared="Every other method minus random action, over every θ above 0.1 in the table. Single imputation, "
    "which the paper calls horrible, may be worse still and is left out.",
    threshold="Each difference above 10 an episode: one step in water; less would be only a bit worse.",
)  # fmt: skip
def _random_bad(seen: Evidence) -> list[Asked]:
    grown = seen.thetas(LOW)
    worst = seen.mean(RANDOM, grown)
    return [
        Ask(f"{other} − {RANDOM}", seen.mean(other, grown) - worst, CLEARLY_BETTER, PER_EPISODE)
        for other in (V1, V2, MISSING, *MI)
    ]


@claim(
    "mcar-si-collapses", section=SECTION, figure="mcar-theta",
    text="Single imputation beats the baselines for θ ≤ 0.4 and is horrible above.",
    compared="SI, synthetic and conservative, minus each baseline, over every θ above 0 and up to 0.4 in the "
    "table; and MI K=10 minus SI of the same model, over every θ above 0.4.",
    threshold="Better than every baseline: above 0. Horrible: more than 50 an episode below MI, half of what the "
    "goal pays.",
)  # fmt: skip
def _si_collapses(seen: Evidence) -> list[Asked]:
    below, higher = seen.thetas(0, MODERATE), seen.thetas(MODERATE)
    better: list[Asked] = [
        Ask(f"{si} − {other}, θ to 0.4", seen.mean(si, below) - seen.mean(other, below), BETTER, PER_EPISODE)
        for si in SI
        for other in BASELINES
    ]
    return better + [
        Ask(f"{mi} − {single(mi)}, θ above 0.4", seen.mean(mi, higher) - seen.mean(single(mi), higher), HORRIBLE,
            PER_EPISODE)
        for mi in MI
    ]  # fmt: skip


@claim(
    "mcar-si-slower", section=SECTION, figure="mcar-time",
    text="At θ = 0.4 single imputation learns slower than MI and some baselines; random action and "
    "missing-as-a-state learn slowest of all.",
    compared="Reward per step over the first 10,000 steps at θ = 0.4: MI K=10 minus SI of the same model; the "
    "better of V1 and V2 minus SI; and every other method minus random action and minus "
    "missing-as-a-state.",
    threshold="Each difference above 0. Of V1 and V2 one is enough, at a level corrected for having two.",
)  # fmt: skip
def _si_slower(seen: Evidence) -> list[Asked]:
    early = {shown: seen.sample(shown, "mcar:0.4", EARLY) for shown in ALL_METHODS}
    asked: list[Asked] = []
    for mi in MI:
        si = single(mi)
        asked.append(Ask(f"{mi} − {si}", early[mi] - early[si], BETTER, PER_STEP))
        rivals = [Ask(f"{other} − {si}", early[other] - early[si], BETTER, PER_STEP) for other in (V1, V2)]
        asked.append(OneOf(f"some baseline learns faster than {si}", rivals))
    return asked + [
        Ask(f"{other} − {slow}", early[other] - early[slow], BETTER, PER_STEP)
        for slow in (RANDOM, MISSING)
        for other in (V1, V2, *SI, *MI)
    ]


@claim(
    "all-worsen-with-theta", section=SECTION, figure="mcar-theta",
    text="Every method performs worse as missingness grows.",
    compared="For each method the slope of the straight line, fitted by least squares, through its reward per episode "
    "at every θ in the table. A falling trend leaves room for a rise in places: the paper itself finds "
    "missing-as-a-state better again at the highest θ.",
    threshold="Each slope below 0.",
)  # fmt: skip
def _all_worsen(seen: Evidence) -> list[Asked]:
    return [Ask(f"{shown}: slope", _slope(seen, shown), WORSE, PER_TENTH) for shown in ALL_METHODS]


def _slope(seen: Evidence, shown: Shown) -> Sample:
    """Least-squares slope of the reward of a method in θ, per 0.1."""
    names = seen.thetas()
    if len(names) < 2:
        return Sample(np.full(seen.size, np.nan), ("no θ to compare was run",))
    theta = np.array([theta_of(name) for name in names])
    weights = (theta - theta.mean()) / ((theta - theta.mean()) ** 2).sum()
    samples = [seen.sample(shown, name) for name in names]
    gaps = tuple(dict.fromkeys(gap for sample in samples for gap in sample.gaps))
    return Sample(0.1 * weights @ np.array([sample.values for sample in samples]), gaps)


@claim(
    "mcar-missing-state-u", section=SECTION, figure="mcar-theta",
    text="Missing-as-a-state is U-shaped in θ: worse as it grows, then better again at the highest.",
    compared="Missing-as-a-state at the lowest and at the highest θ in the table, each minus its worst θ between "
    "0.1 and the highest. For each trial (held out: for each draw) the worst θ is found on the others, so that its "
    "choice does not favour the claim.",
    threshold="Both differences above 0.",
)  # fmt: skip
def _missing_state_u(seen: Evidence) -> list[Asked]:
    thetas = seen.thetas()
    inner = [name for name in seen.thetas(LOW) if name not in thetas[-1:]]
    trough = _worst_on_others([seen.sample(MISSING, name) for name in inner], seen.size)
    return [
        Ask(f"{end} θ − worst θ between", seen.mean(MISSING, where) - trough, BETTER, PER_EPISODE)
        for end, where in (("lowest", thetas[:1]), ("highest", thetas[-1:]))
    ]


def _worst_on_others(samples: list[Sample], size: int) -> Sample:
    """Each trial's (or draw's) value where the mean over the others is lowest."""
    gaps = tuple(dict.fromkeys(gap for sample in samples for gap in sample.gaps))
    if gaps or not samples or size < 2:
        return Sample(np.full(size, np.nan), gaps or ("no θ between the lowest and the highest was run",))
    values = np.array([sample.values for sample in samples])
    others = values.sum(axis=1, keepdims=True) - values
    return Sample(values[others.argmin(axis=0), np.arange(size)])


MCAR_CLAIMS = (
    _low_theta_similar, _mi_best, _mi_robust, _conservative_slower, _baselines_reward_close,
    _baselines_river_path_worse, _v2_over_v1, _random_bad, _si_collapses, _si_slower, _all_worsen, _missing_state_u,
)  # fmt: skip
