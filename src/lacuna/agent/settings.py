"""Settings: each one is declared once, as a field of `Settings`.

The declaration holds the default, the range, a line about it and the methods that have it. Validation, the command's
options, the keys of a study file, the columns of a store and the tables of the docs follow from it. `Rules` are the
same settings as numbers for kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from math import expm1, log1p
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

from lacuna.agent.methods import METHODS, NAMED, EvidenceSource, Method, Teach, method_named
from lacuna.validation import number, one_of, whole_number

Vote = Literal["sampled", "majority", "softmax", "average"]
Update = Literal["sequential", "simultaneous", "exact-rate"]
QTable = Literal["shared", "own"]
EvidenceKind = Literal["usual", "observed", "outcomes", "patterns", "all"]
VOTES: tuple[Vote, ...] = get_args(Vote)
UPDATES: tuple[Update, ...] = get_args(Update)
Q_TABLES: tuple[QTable, ...] = get_args(QTable)
EVIDENCE: tuple[EvidenceKind, ...] = get_args(EvidenceKind)

MAX_PATHWAYS = 10_000
MAX_WEIGHT = 1e9
MAX_BUDGET = 10**9
MAX_CYCLES = 100
MAX_LAG = 1000


@dataclass(frozen=True)
class Setting:
    """The declaration of a setting."""

    about: str
    belongs_to: Callable[[Method], bool]
    default: Any
    usual: Any = None
    """The value that None stands for in a method that has the setting."""
    least: int = 1
    """The least value, if it is a whole number; other numbers begin with 0."""
    most: float = 1.0
    choices: tuple[str, ...] = ()
    tuned: bool = False
    """Whether it is chosen for a problem, like a step size, or is part of what a method is, like K."""
    later: bool = False
    """Whether files and logs may lack it, because they are older: then it has its default."""

    @property
    def kind(self) -> type[int | float | str]:
        """The type of its values."""
        return type(self.effective_default)

    @property
    def effective_default(self) -> Any:
        """The value in a method that has the setting, if none is given."""
        return self.default if self.usual is None else self.usual

    def checked(self, what: str, value: Any) -> Any:
        """Return a value in its type if it is allowed, or raise an error."""
        if value is None:
            value = self.usual
        if self.choices:
            one_of(what, value, self.choices)
            return value
        return (
            whole_number(what, value, self.least, int(self.most))
            if self.kind is int
            else number(what, value, 0, self.most)
        )

    def as_number(self, value: Any) -> Any:
        """Return a value as kernels see it: a choice by its place, 0 for none."""
        return self.choices.index(value) if self.choices else value or 0.0


_steps_in_q, _learns, _multiple, _votes, _plans, _looks, _acts, _has_factors, _counts_components = map(
    attrgetter,
    ("steps_in_q", "learns", "multiple", "votes", "plans", "looks", "acts", "has_factors", "counts_components"),
)
_chains, _assumes = map(attrgetter, ("chains", "assumes"))


_weighs = attrgetter("weighs")


def _setting(about: str, belongs_to: Callable[[Method], bool] = lambda _: True, **more: Any) -> dict[str, Any]:
    return {"about": about, "belongs_to": belongs_to, **more}


class Rules(NamedTuple):
    """Settings as kernels see them: numbers only.

    `rate` is that of one of K updates, `full_rate` that of K equal ones together.
    """

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
    budget: int
    cycles: int
    q_table: int
    assumed: float
    evidence: int
    look: float
    lag: int


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
        not learn, optimum, qmdp and qmdp-rewards, have gamma only; mi-planned has no alpha.
    vote
        How K pathways choose: one vote at random (the paper's), the majority, softmax over vote counts, or the best
        average value.
    update
        How K pathways update Q: one after the other at rate alpha/K (the paper's); all at once; or one after the other
        at the rate ``1 - (1 - alpha)**(1/K)``, so that K equal updates make exactly one at rate alpha, unless the step
        stays in the same state.
    p_shuffle
        Probability of permuting the K imputed next states after imputing.
    kappa
        For mi-available, mi-masked and mi-planned: weight of the component counts, in complete transitions; 1 if not
        given. 0 makes mi-available mi-conservative; for mi-planned it must be above 0.
    smoothing
        For mi-available and mi-masked: what is added to each of those counts, 0.01 if not given.
    parents
        For mi-available and mi-masked: above 0, a component may have another one as its parent, when the data show that
        the parent improves prediction; the number is the weight, in transitions, of the prediction without the parent.
    optimism
        A bonus for untried actions. When choosing, the value of an action not yet tried in a state is raised by this
        times the highest reward so far, or by nothing if no reward was above 0. If some of the K pathways tried it, the
        bonus shrinks in proportion. The paper has none, and mi-planned an optimism of its own.
    budget
        For mi-planned only: how many state-action pairs are backed up in each step, besides those just taken; 20 if not
        given. Where values move, it may be half as many again.
    cycles
        For mi-chained only: how often all hidden components are redrawn, each given the others; 5 if not given.
    q_table
        Whether the K pathways share one Q table, or each has its own. A pathway with its own table acts on it and
        updates it at rate alpha; `update` then makes no difference.
    assumed
        For assumed-value and carry-default: which value is assumed of a component, as a share of its range: 0 is the
        first, 1 the last, and 0.5, if not given, the middle one. Halves are rounded up.
    evidence
        For MI methods only: what weighs the pathways, besides the observed components. ``outcomes`` are the reward and
        whether the episode ended, ``patterns`` which components are hidden, ``all`` both, and ``observed`` neither.
        ``usual`` is outcomes for mi-planned, patterns for mi-masked, and neither for the others.
    look
        For mi-planned only: how far actions are chosen for what they reveal when pathways disagree, from 0, not at all,
        to 1. At 0 every action is assumed to reveal the state; at 1 an action that does not reveal it costs more.
    lag
        For how many steps late values are accepted: they correct the pathways (`Agent.correct`). 0 turns it off.

    Examples
    --------
    >>> Settings("mi-synthetic", K=5, alpha=0.1, gamma=1.0).pathways
    5
    >>> Settings("last-observed", K=5)
    Traceback (most recent call last):
    ...
    ValueError: K is 5, but last-observed has no such setting; K belongs to mi-synthetic, mi-conservative, mi-available,
    mi-planned, mi-masked, mi-chained, mi-separate
    """

    method: str = "mi-synthetic"
    K: int | None = field(default=None, metadata=_setting("pathways", _multiple, usual=10, most=MAX_PATHWAYS))
    alpha: float = field(default=0.1, metadata=_setting("step size, above 0", _steps_in_q, tuned=True))
    gamma: float = field(default=1.0, metadata=_setting("discount", tuned=True))
    epsilon: float = field(default=0.0, metadata=_setting("share of uniform actions", _learns, tuned=True))
    vote: Vote = field(default="sampled", metadata=_setting("how pathways choose", _votes, choices=VOTES))
    update: Update = field(default="sequential", metadata=_setting("how Q is updated", _votes, choices=UPDATES))
    p_shuffle: float = field(
        default=0.0, metadata=_setting("probability, per step, of permuting the K imputed next states", _votes)
    )
    kappa: float | None = field(
        default=None,
        metadata=_setting("weight of the component counts", _has_factors, usual=1.0, most=MAX_WEIGHT),
    )
    smoothing: float | None = field(
        default=None,
        metadata=_setting("added to every component count", _counts_components, usual=0.01, most=MAX_WEIGHT),
    )
    parents: float = field(
        default=0.0,
        metadata=_setting(
            "prior weight, in transitions, of the prediction without the parent; 0 turns parents off",
            _counts_components, most=MAX_WEIGHT,
        ),
    )  # fmt: skip
    optimism: float = field(
        default=0.0,
        metadata=_setting(
            "bonus for untried actions, as a multiple of the highest reward so far; 0 turns it off",
            _steps_in_q, most=MAX_WEIGHT, tuned=True,
        ),
    )  # fmt: skip
    budget: int | None = field(
        default=None,
        metadata=_setting(
            "state-action pairs backed up per step of planning", _plans, usual=20, least=0, most=MAX_BUDGET
        ),
    )
    cycles: int | None = field(
        default=None,
        metadata=_setting("rounds of chained draws per step", _chains, usual=5, most=MAX_CYCLES, later=True),
    )
    q_table: QTable = field(
        default="shared",
        metadata=_setting("whether pathways share a Q table", _votes, choices=Q_TABLES, later=True),
    )
    assumed: float | None = field(
        default=None,
        metadata=_setting("assumed value, as a share of a component's range", _assumes, usual=0.5, later=True),
    )
    evidence: EvidenceKind = field(
        default="usual",
        metadata=_setting("evidence that weighs the pathways", _weighs, choices=EVIDENCE, later=True),
    )
    look: float = field(
        default=0.0,
        metadata=_setting("how far actions are chosen for what they reveal; 0 turns it off", _looks, later=True),
    )
    lag: int = field(
        default=0,
        metadata=_setting("steps for which late values are accepted", _acts, least=0, most=MAX_LAG, later=True),
    )

    def __post_init__(self) -> None:
        method = method_named(self.method)
        for name, setting in SETTINGS.items():
            value = getattr(self, name)
            if setting.belongs_to(method):
                object.__setattr__(self, name, setting.checked(name, value))
            elif value == setting.default:
                object.__setattr__(self, name, setting.default)
            else:
                owners = [other.name for other in _like(method) if setting.belongs_to(other)]
                raise ValueError(
                    f"{name} is {value}, but {method.name} has no such setting; {name} belongs to {', '.join(owners)}"
                )
        if self.kappa == 0 and method.plans:
            raise ValueError(
                f"kappa is {self.kappa}; {method.name} could not say where an untried action leads: it must be above 0"
            )
        if self.lag > 0 and EvidenceSource.PATTERNS in self.sources:
            raise ValueError(
                f"lag is {self.lag}, but patterns are evidence here, and late values would change them: it must be 0"
            )
        if self.alpha == 0:
            raise ValueError(f"alpha is {self.alpha}; nothing would be learned: it must be above 0, at most 1")

    @property
    def pathways(self) -> int:
        """Number of pathways: K, or 1 for a method that keeps a single state."""
        return self.K or 1

    @property
    def tables(self) -> int:
        """Number of Q tables: one for each pathway, or one for all."""
        return self.pathways if self.q_table == "own" else 1

    @property
    def models(self) -> int:
        """Number of transition models: one for each pathway, or one for all."""
        return self.pathways if method_named(self.method).separate else 1

    @property
    def unit(self) -> float:
        """Weight of one unit of the transition counts; separate models count as their mean."""
        every = method_named(self.method).teach in (Teach.EVERY_PATHWAY, Teach.OWN_PATHWAY)
        return 1 / self.pathways if every else 1.0

    @property
    def sources(self) -> EvidenceSource:
        """The evidence that weighs the pathways, besides the observed components."""
        usual = method_named(self.method).evidence
        return usual if self.evidence == "usual" else EvidenceSource[self.evidence.upper()]

    @property
    def rules(self) -> Rules:
        """The settings as numbers for kernels."""
        method, K = method_named(self.method), self.pathways
        rate, full_rate = _rates(self.update, self.alpha, K // self.tables)
        numbers = {
            name: setting.as_number(getattr(self, name))
            for name, setting in SETTINGS.items()
            if name in Rules._fields
        }  # fmt: skip
        numbers |= {"K": K, "p_shuffle": self.p_shuffle if K > 1 else 0.0, "evidence": int(self.sources)}
        numbers |= {"budget": self.budget or 0, "cycles": self.cycles or 0, "lag": self.lag}
        if method.plans:
            numbers["vote"] = VOTES.index("average")
        return Rules(impute=int(method.impute), teach=int(method.teach), rate=rate, full_rate=full_rate, **numbers)

    def unusual(self) -> dict[str, Any]:
        """The settings that differ from their declared defaults, besides the method.

        K, kappa, smoothing, budget, cycles and assumed are always listed for the methods that have them.
        """
        found = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in found.items() if value != SETTINGS[name].default}

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data."""
        return asdict(self)

    def for_file(self) -> dict[str, Any]:
        """The settings as plain data; those in `LATER` only if they differ from their default."""
        return {name: value for name, value in self.as_dict().items() if name not in LATER or value != LATER[name]}


SETTINGS: dict[str, Setting] = {
    declared.name: Setting(default=declared.default, **declared.metadata)
    for declared in fields(Settings)
    if declared.name != "method"
}
"""Every setting by its name, in order."""

LATER: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items() if setting.later}
"""The settings that files and logs may lack, with their defaults."""


def settings_of(method: Method) -> tuple[str, ...]:
    """Return the names of the settings that a method has."""
    return tuple(name for name, setting in SETTINGS.items() if setting.belongs_to(method))


def _like(method: Method) -> list[Method]:
    """The methods to name beside this one: yardsticks only beside a yardstick."""
    return list((METHODS if method.name in METHODS else NAMED).values())


def _rates(update: Update, alpha: float, K: int) -> tuple[float, float]:
    """Rate of one of the updates of K pathways that share a table, and of K equal ones together."""
    # Exactly alpha where theory says so; elsewhere by functions that keep their digits when alpha is small.
    if K == 1:
        return alpha, alpha
    if update == "sequential":
        return alpha / K, -expm1(K * log1p(-alpha / K))
    if update == "exact-rate":
        return (-expm1(log1p(-alpha) / K) if alpha < 1 else alpha), alpha
    return alpha / K, alpha


DEFAULT = Settings("mi-planned")
"""The settings of an agent that is given none.

The same setting is used for every problem, because an agent in a live trial cannot be tuned first.
"""

UNPLANNED = Settings("mi-available", smoothing=0.001, parents=0.3, optimism=0.2)
"""The best settings without planning, the same for every problem: a step takes half a microsecond instead of eight."""
