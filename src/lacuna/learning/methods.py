"""The methods of the paper as a table, and the settings of one of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from enum import IntEnum
from math import expm1, log1p, nan
from numbers import Real
from operator import index
from typing import Any, Literal, NamedTuple, get_args

Vote = Literal["sampled", "majority", "softmax", "average"]
Update = Literal["sequential", "simultaneous", "exact-rate"]
VOTES: tuple[Vote, ...] = get_args(Vote)
UPDATES: tuple[Update, ...] = get_args(Update)

MAX_PATHWAYS = 10_000
MAX_WEIGHT = 1e9


class Impute(IntEnum):
    """What stands in for an incomplete state."""

    NOTHING = 0
    LAST_COMPLETE = 1
    LAST_VALUES = 2
    TOKEN = 3
    DRAWS = 4


class Teach(IntEnum):
    """What the transition model learns from."""

    NOTHING = 0
    EVERY_PATHWAY = 1
    COMPLETE_PAIRS = 2
    AVAILABLE_PAIRS = 3
    """Complete pairs, and every pair of values of one component."""


class Knows(IntEnum):
    """What a yardstick knows and no agent can; an agent knows nothing but what it saw."""

    NOTHING = 0
    EVERYTHING_SHOWN = 1
    """What the world shows, as if nothing were ever hidden."""
    TRANSITIONS = 2
    """The true transitions between true states."""
    STATE = 3
    """The true state, and the optimal values."""
    BELIEF = 4
    """The true transitions and mechanism, hence the exact belief given what it was told, and the optimal values."""


@dataclass(frozen=True)
class Method:
    """One row of the table of methods."""

    name: str
    title: str
    acts_on: str
    learns_q_from: str
    learns_t_from: str
    impute: Impute
    teach: Teach = Teach.NOTHING
    knows: Knows = Knows.NOTHING
    uses_rewards: bool = False
    """Whether its belief counts rewards as evidence of where it is."""

    @property
    def multiple(self) -> bool:
        """Whether it keeps K pathways."""
        return self.impute == Impute.DRAWS

    @property
    def takes(self) -> frozenset[str]:
        """The settings that this method has and others may lack."""
        learning = set() if self.knows in (Knows.STATE, Knows.BELIEF) else {"alpha", "epsilon", "optimism"}
        several = {"K", "vote", "update", "p_shuffle"} if self.multiple else set()
        parts = {"kappa", "smoothing", "parents"} if self.teach == Teach.AVAILABLE_PAIRS else set()
        return frozenset(learning | several | parts)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "random-action", "Random action",
            "the state if fully observed, else a uniform action", "steps whose two states are fully observed", "-",
            Impute.NOTHING,
        ),
        Method(
            "last-fully-observed", "Last fully observed (V1)",
            "the last complete state", "every step, imputed as such", "-",
            Impute.LAST_COMPLETE,
        ),
        Method(
            "last-observed", "Last observed (V2)",
            "each component's last seen value", "every step, imputed", "-",
            Impute.LAST_VALUES,
        ),
        Method(
            "missing-as-state", "Missing as a state",
            "the product space with one more value, ?, per component", "every step", "-",
            Impute.TOKEN,
        ),
        Method(
            "mi-synthetic", "MI, synthetic",
            "votes of K pathways", "every step, alpha/K per pathway", "every step, 1/K per pathway",
            Impute.DRAWS, Teach.EVERY_PATHWAY,
        ),
        Method(
            "mi-conservative", "MI, conservative",
            "votes of K pathways", "every step, alpha/K per pathway", "steps whose two states are fully observed",
            Impute.DRAWS, Teach.COMPLETE_PAIRS,
        ),
        Method(
            "mi-available", "MI, available cases (ours)",
            "votes of K pathways", "every step, alpha/K per pathway",
            "every pair of values of a component that was observed, and complete pairs",
            Impute.DRAWS, Teach.AVAILABLE_PAIRS,
        ),
    )
}  # fmt: skip
"""Every method by its name on the command line. Single imputation (SI) is MI with K = 1."""

YARDSTICKS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "optimum", "Optimum, all known",
            "the true state, by the optimal policy", "- (knows the optimum)", "- (knows it)",
            Impute.NOTHING, knows=Knows.STATE,
        ),
        Method(
            "qmdp", "QMDP, true model",
            "the exact belief over true states given what was observed, rewards ignored; by optimal values",
            "- (knows the optimum)", "- (knows it, and the mechanism)",
            Impute.NOTHING, knows=Knows.BELIEF,
        ),
        Method(
            "qmdp-rewards", "QMDP, true model, rewards seen",
            "the exact belief over true states given what was observed and paid; by optimal values",
            "- (knows the optimum)", "- (knows it, and the mechanism)",
            Impute.NOTHING, knows=Knows.BELIEF, uses_rewards=True,
        ),
        Method(
            "mi-true-model", "MI, true model",
            "votes of K pathways over true states", "every step, alpha/K per pathway", "- (knows it)",
            Impute.DRAWS, knows=Knows.TRANSITIONS,
        ),
        Method(
            "fully-observed", "Q-learning, all observed",
            "the state, whatever is hidden", "every step", "-",
            Impute.NOTHING, knows=Knows.EVERYTHING_SHOWN,
        ),
    )
}  # fmt: skip
"""What methods are measured against, by name. They know what no agent can know, so no `Agent` can be one."""

NAMED: dict[str, Method] = METHODS | YARDSTICKS
"""All that a trial can be run with."""


def find_method(name: str) -> Method:
    """Give the method or yardstick called `name`, or a sentence with the choices."""
    if not isinstance(name, str) or name not in NAMED:
        close = get_close_matches(str(name), NAMED, n=1)
        hint = f"; did you mean {close[0]!r}? There are" if close else "; there are"
        raise ValueError(
            f"no method is called {name!r}{hint} {', '.join(METHODS)}; yardsticks: {', '.join(YARDSTICKS)}"
        )
    return NAMED[name]


class Rules(NamedTuple):
    """Settings as kernels see them: numbers only."""

    impute: int
    teach: int
    vote: int
    update: int
    K: int
    rate: float
    full_rate: float
    gamma: float
    epsilon: float
    p_shuffle: float
    kappa: float
    smoothing: float
    parents: float
    optimism: float


@dataclass(frozen=True)
class Settings:
    """A method with its hyper-parameters.

    Parameters
    ----------
    method
        A name in `METHODS`, or in `YARDSTICKS` (for trials and studies, not for an `Agent`).
    K
        Number of pathways, for MI methods only; 10 if not given.
    alpha, gamma, epsilon
        Step size in (0, 1], discount in [0, 1], share of uniform actions in [0, 1]. The yardsticks that do
        not learn, optimum, qmdp and qmdp-rewards, have gamma only.
    vote
        How K pathways choose: one vote at random (the paper), the majority, softmax over vote counts, or the best
        average value.
    update
        The paper's sequential updates at rate alpha/K; simultaneous ones; or sequential at the per-pathway rate
        ``1 - (1 - alpha)**(1/K)``, whose K updates make exactly one at rate alpha.
    p_shuffle
        Probability of permuting the K imputed next states after imputing ("mixing").
    kappa, smoothing
        For mi-available only: the weight of the component counts, in complete transitions, 1 if not given (0 makes it
        mi-conservative); and what is added to each of those counts, 0.01 if not given.
    parents
        For mi-available only: above 0, a component may have another one as its parent, if what was seen tells that it
        is foretold better so; the number is the weight, in transitions, of what is known without the parent.
    optimism
        Added, when choosing, to the value of an action not yet tried in a state: this times the highest reward so far
        (nothing if none was above 0, where values start). Some of K pathways may have tried it; the others count. The
        paper has none.

    Examples
    --------
    >>> Settings("mi-synthetic", K=5, alpha=0.1, gamma=1.0).pathways
    5
    >>> Settings("last-observed", K=5)
    Traceback (most recent call last):
    ...
    ValueError: K is 5, but last-observed has no such setting; K belongs to mi-synthetic, mi-conservative, mi-available
    """

    method: str = "mi-synthetic"
    K: int | None = None
    alpha: float = 0.1
    gamma: float = 1.0
    epsilon: float = 0.0
    vote: Vote = "sampled"
    update: Update = "sequential"
    p_shuffle: float = 0.0
    kappa: float | None = None
    smoothing: float | None = None
    parents: float = 0.0
    optimism: float = 0.0

    def __post_init__(self) -> None:
        method = find_method(self.method)
        for field in fields(self):
            what, value = field.name, getattr(self, field.name)
            among = METHODS if method.name in METHODS else NAMED
            owners = [m.name for m in among.values() if what in m.takes]
            if owners and what not in method.takes and value != field.default:
                raise ValueError(
                    f"{what} is {value}, but {method.name} has no such setting; {what} belongs to {', '.join(owners)}"
                )
        if method.multiple:
            object.__setattr__(self, "K", 10 if self.K is None else _number_of_pathways(self.K))
        for what, usual in (("kappa", 1.0), ("smoothing", 0.01)):
            if what in method.takes:
                object.__setattr__(self, what, _weight(what, getattr(self, what), usual))
        if self.vote not in VOTES:
            raise ValueError(f"vote is {self.vote!r}; it must be one of {', '.join(VOTES)}")
        if self.update not in UPDATES:
            raise ValueError(f"update is {self.update!r}; it must be one of {', '.join(UPDATES)}")
        for what in ("alpha", "gamma", "epsilon", "p_shuffle"):
            object.__setattr__(self, what, _number(what, getattr(self, what), 1))
        for what in ("parents", "optimism"):
            object.__setattr__(self, what, _weight(what, getattr(self, what), 0.0))
        if self.alpha == 0:
            raise ValueError(f"alpha is {self.alpha}; nothing would be learned: it must be above 0, at most 1")

    @property
    def pathways(self) -> int:
        """Number of pathways: K, or 1 for a method that keeps a single state."""
        return self.K or 1

    @property
    def unit(self) -> float:
        """Weight of one unit of the transition counts."""
        return 1 / self.pathways if find_method(self.method).teach == Teach.EVERY_PATHWAY else 1.0

    @property
    def rules(self) -> Rules:
        """The settings as numbers for kernels."""
        method, K, alpha = find_method(self.method), self.pathways, self.alpha
        # Exactly alpha where theory says so; elsewhere by functions that keep their digits when alpha is small.
        full, rate = alpha, alpha / K
        if self.update == "sequential" and K > 1:
            full = -expm1(K * log1p(-alpha / K))
        if self.update == "exact-rate" and K > 1 and alpha < 1:
            rate = -expm1(log1p(-alpha) / K)
        elif self.update == "exact-rate":
            rate = alpha
        return Rules(
            impute=int(method.impute), teach=int(method.teach),
            vote=VOTES.index(self.vote), update=UPDATES.index(self.update),
            K=K, rate=rate, full_rate=full,
            gamma=self.gamma, epsilon=self.epsilon, p_shuffle=self.p_shuffle if K > 1 else 0.0,
            kappa=self.kappa or 0.0, smoothing=self.smoothing or 0.0, parents=self.parents, optimism=self.optimism,
        )  # fmt: skip

    def unusual(self) -> dict[str, Any]:
        """The settings that differ from their defaults, besides the method."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "method" and getattr(self, field.name) != field.default
        }

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data."""
        return asdict(self)


def _weight(what: str, value: Any, usual: float) -> float:
    return usual if value is None else _number(what, value, MAX_WEIGHT)


def _number(what: str, value: Any, most: float) -> float:
    # Compared as what it is: a whole number of Python may be too large for a float.
    number: Any = nan if isinstance(value, bool) or not isinstance(value, Real) else value
    if not 0 <= number <= most:
        raise ValueError(f"{what} is {value!r}; it must be a number between 0 and {most:g}")
    return float(number)


def _number_of_pathways(value: Any) -> int:
    try:
        K = index(value)
    except TypeError:
        K = 0
    if isinstance(value, bool) or not 1 <= K <= MAX_PATHWAYS:
        raise ValueError(f"K is {value!r}; it must be a whole number between 1 and {MAX_PATHWAYS}")
    return K


DEFAULT = Settings("mi-available", smoothing=0.001, parents=0.3, optimism=0.2)
"""What an agent uses if nothing is said: one setting for every problem, as a trial cannot tune (docs/choosing.md)."""
