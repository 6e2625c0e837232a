"""What is asked of the runs: by how much one method exceeds another, and questions that are not a plain difference.

What the paper's words mean in numbers was fixed beforehand, each with its reason. The scale: a step on land costs 1, a
step in water 10, the goal pays 100. The best policy that knows everything earns 90.99 an episode, in about ten steps,
hence about 9 a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from lacuna_paper.evidence import (
    ALL_METHODS,
    BASELINES,
    EARLY,
    MI,
    MI_SYNTHETIC,
    MISSING,
    MODELS,
    PATH,
    REWARD,
    SI,
    STAY_THETAS,
    STAYED,
    V1,
    V2,
    WATER,
    Evidence,
    Rates,
    Shown,
    Where,
    single,
    theta_of,
)
from lacuna_paper.verdicts import Ask, Asked, OneOf, Region, Sample, average

SIMILAR = Region(-5.0, 5.0)
"""Similar, no difference: within half a step in water per episode, a twentieth of what the goal pays."""

NO_WORSE = Region(low=-5.0)
"""On par or better: not worse by more than what still counts as similar."""

BETTER = Region(low=0.0)
"""Better, faster, more: the whole interval on one side."""

WORSE = Region(high=0.0)
"""Worse, falling: the whole interval below 0."""

A_BIT_WORSE = Region(0.0, 10.0)
"""Only a bit worse: worse, by less than one step in water per episode, a tenth of what the goal pays."""

CLEARLY_BETTER = Region(low=10.0)
"""Clearly better, by contrast with a bit: by more than one step in water per episode."""

LITTLE_LOST = Region(high=20.0)
"""Robust: what is lost against seeing everything is less than a fifth of what the goal pays."""

HORRIBLE = Region(low=50.0)
"""Horrible: more than half of what the goal pays is gone."""

SUBSTANTIALLY_MORE = Region(low=1.5)
"""Substantially more, of a quantity drawn on a logarithmic scale: at least half as much again."""

SLIGHTLY_FASTER = Region(0.0, 0.9)
"""Slightly faster: faster, by less than a tenth of what the best policy earns per step."""

NOT_USED = Region(high=0.02)
"""Not used: fewer than one step in fifty; choosing among nine actions at random would stay in one of nine."""

LOW, MODERATE = 0.1, 0.4
FEW, SOME, MANY, GROWN = Rates(0, LOW), Rates(LOW, MODERATE), Rates(MODERATE), Rates(LOW)
"""Low missingness is θ up to 0.1. Higher missingness is θ above 0.4, the line the paper draws for single imputation."""

LOW_RATES, HIGH_RATES = "0.1,0.2,0.3", "0.2,0.4,0.6"
MCOLOR = tuple(f"{kind}:{rates}" for rates in (LOW_RATES, HIGH_RATES) for kind in ("mcolor-xy", "mcolor"))
FOG_ONLY, FOG_BOTH = "mfog:0.5,0.0", "mfog:0.25,0.1"
AT_04 = ("mcar:0.4",)

MEASURED = {
    REWARD: ("reward", "reward per episode"),
    WATER: ("steps in water", "steps in water per episode"),
    PATH: ("path length", "steps per episode"),
    EARLY: ("early reward", "reward per step, first 10,000"),
    STAYED: ("staying", "share of steps"),
}
"""Each measure's name and unit."""

PER_EPISODE, PER_STEP = MEASURED[REWARD][1], MEASURED[EARLY][1]

Check = Callable[[Evidence], Iterable[Asked]]


def differences(
    pairs: Iterable[tuple[Shown, Shown]], where: Where, wanted: Region, measure: str = REWARD
) -> Callable[[Evidence], Iterator[Ask]]:
    """Ask of each pair by how much the first exceeds the second, in the mean over some kinds of missingness."""
    pairs, (name, unit) = list(pairs), MEASURED[measure]
    place = f", {where}" if isinstance(where, Rates) else f", {where[0]}" if len(where) == 1 else ""

    def check(seen: Evidence) -> Iterator[Ask]:
        for a, b in pairs:
            gain = seen.mean(a, where, measure) - seen.mean(b, where, measure)
            yield Ask(f"{a} − {b}, {name}{place}", gain, wanted, unit)

    return check


def losses(seen: Evidence) -> Iterator[Ask]:
    """What multiple imputation loses against seeing everything."""
    for mi in MI:
        loss = seen.mean(mi, Rates(up_to=0)) - seen.mean(mi, GROWN)
        yield Ask(f"{mi}: loss", loss, LITTLE_LOST, PER_EPISODE)


def ratios(seen: Evidence) -> Iterator[Ask]:
    """The bad steps and the path lengths of two baselines, divided by those of multiple imputation."""
    for other in (MISSING, V1):
        for measure in (WATER, PATH):
            ratio = seen.mean(other, GROWN, measure) / seen.mean(MI_SYNTHETIC, GROWN, measure)
            yield Ask(f"{other}, {MEASURED[measure][0]}", ratio, SUBSTANTIALLY_MORE, "ratio")


def some_baseline_faster(seen: Evidence) -> Iterator[OneOf]:
    """Whether one of two baselines learns faster than single imputation."""
    for si in SI:
        rivals = differences([(V1, si), (V2, si)], AT_04, BETTER, EARLY)
        yield OneOf(f"some baseline learns faster than {si}", list(rivals(seen)))


def slopes(seen: Evidence) -> Iterator[Ask]:
    """How the reward of each method changes with θ."""
    for shown in ALL_METHODS:
        yield Ask(f"{shown}: slope", _slope(seen, shown), WORSE, "reward per episode per 0.1 of θ")


def _slope(seen: Evidence, shown: Shown) -> Sample:
    """Least-squares slope of the reward of a method in θ, per 0.1."""
    names = seen.names(Rates())
    if len(names) < 2:
        return seen.gap("no θ to compare was run")
    theta = np.array([theta_of(name) for name in names])
    weights = (theta - theta.mean()) / ((theta - theta.mean()) ** 2).sum()
    samples = [seen.sample(shown, name) for name in names]
    return Sample(0.1 * weights @ np.array([sample.values for sample in samples]), average(samples).gaps)


def both_ends(seen: Evidence) -> Iterator[Ask]:
    """By how much missing-as-a-state is better at both ends of θ than where it is worst between."""
    thetas = seen.names(Rates())
    inner = [name for name in seen.names(GROWN) if name not in thetas[-1:]]
    trough = _worst_on_others(seen, inner)
    for end, where in (("lowest", thetas[:1]), ("highest", thetas[-1:])):
        yield Ask(f"{end} θ − worst θ between", seen.mean(MISSING, where) - trough, BETTER, PER_EPISODE)


def _worst_on_others(seen: Evidence, names: Sequence[str]) -> Sample:
    """Each trial's (or draw's) reward of missing-as-a-state where the mean over the others is lowest."""
    samples = [seen.sample(MISSING, name) for name in names]
    gaps = average(samples).gaps if samples else ("no θ between the lowest and the highest was run",)
    if gaps or seen.size < 2:
        return seen.gap(*gaps)
    values = np.array([sample.values for sample in samples])
    others = values.sum(axis=1, keepdims=True) - values
    return Sample(values[others.argmin(axis=0), np.arange(seen.size)])


def leads_grow(seen: Evidence) -> Iterator[Ask]:
    """By how much multiple imputation leads more at high rates than at low ones."""

    def lead(mi: Shown, setting: str) -> Sample:
        others = [seen.sample(other, setting) for other in (*BASELINES, single(mi))]
        return seen.sample(mi, setting) - average(others)

    for mi in MI:
        for kind in ("mcolor-xy", "mcolor"):
            growth = lead(mi, f"{kind}:{HIGH_RATES}") - lead(mi, f"{kind}:{LOW_RATES}")
            yield Ask(f"{mi}, {kind}", growth, BETTER, PER_EPISODE)


def slower_without_colour(seen: Evidence) -> Iterator[Ask]:
    """By how much all methods learn slower if the colour too goes missing."""

    def early(setting: str) -> Sample:
        return average([seen.sample(shown, setting, EARLY) for shown in ALL_METHODS])

    for rates in (LOW_RATES, HIGH_RATES):
        loss = early(f"mcolor-xy:{rates}") - early(f"mcolor:{rates}")
        yield Ask(f"rates {rates}", loss, SLIGHTLY_FASTER, PER_STEP)


def missing_state_behind(seen: Evidence) -> Iterator[Ask]:
    """How far missing-as-a-state is behind multiple imputation."""
    lead = average([seen.mean(mi, MCOLOR) for mi in MI]) - seen.mean(MISSING, MCOLOR)
    yield Ask(f"MI K=10 − {MISSING}", lead, CLEARLY_BETTER, PER_EPISODE)


def gains_of_k(seen: Evidence) -> Iterator[Ask]:
    """What five pathways gain over one, and ten over five."""
    for model in MODELS:
        ways = [Shown(model, K) for K in (1, 5, 10)]
        where = seen.where(*ways, among=GROWN)
        one, five, ten = (seen.mean(shown, where) for shown in ways)
        first, second = five - one, ten - five
        yield Ask(f"{ways[1]} − {ways[0]}", first, BETTER, PER_EPISODE)
        yield Ask(f"{ways[1]}: gain from K=5 minus gain from K=10", first - second, BETTER, PER_EPISODE)


def gains_of_mixing(seen: Evidence) -> Iterator[Ask]:
    """What mixing gains."""
    for model in MODELS:
        for K in (5, 10):
            plain, mixed = Shown(model, K), Shown(model, K, 0.1)
            where = seen.where(plain, mixed, among=seen.kinds)
            gain = seen.mean(mixed, where) - seen.mean(plain, where)
            yield Ask(f"{mixed} − without", gain, SIMILAR, PER_EPISODE)


def gains_of_staying(seen: Evidence) -> Iterator[Ask]:
    """What staying gains, and how often the greedy agent stays."""
    for epsilon, who in ((0.0, "greedy"), (0.05, "ε = 0.05")):
        free, bound = (seen.only(stay=stay, epsilon=epsilon) for stay in (True, False))
        where = bound.where(MI_SYNTHETIC, among=free.where(MI_SYNTHETIC, among=STAY_THETAS))
        gain = free.mean(MI_SYNTHETIC, where) - bound.mean(MI_SYNTHETIC, where)
        yield Ask(f"staying allowed − not, {who}", gain, SIMILAR, PER_EPISODE)
        if epsilon == 0:
            used = free.mean(MI_SYNTHETIC, where, STAYED)
            yield Ask("greedy: share of stay actions", used, NOT_USED, MEASURED[STAYED][1])
