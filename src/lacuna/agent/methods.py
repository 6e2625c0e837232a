"""The methods and the yardsticks as tables: what each acts on, what it learns from, what it knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

from lacuna.validation import nearest


class Impute(IntEnum):
    """How a method completes an incomplete state."""

    NOTHING = 0
    LAST_COMPLETE = 1
    LAST_VALUES = 2
    TOKEN = 3
    DRAWS = 4
    CHAIN = 5
    """Drawn one hidden component at a time, given the others, in cycles (chained equations)."""
    ASSUMED_STATE = 6
    """The state of assumed values, even where a component was seen."""
    ASSUMED_VALUES = 7
    """The assumed value of every hidden component."""
    LAST_OR_ASSUMED = 8
    """The last value seen in the episode, or the assumed value before there is one."""


NO_GUESS = (int(Impute.NOTHING), int(Impute.TOKEN))
"""Rules that guess no hidden value, as kernels see them."""

ASSUMED = (int(Impute.ASSUMED_STATE), int(Impute.ASSUMED_VALUES), int(Impute.LAST_OR_ASSUMED))
"""Rules that use values assumed beforehand, as kernels see them."""


class Teach(IntEnum):
    """What the transition model learns from."""

    NOTHING = 0
    EVERY_PATHWAY = 1
    COMPLETE_PAIRS = 2
    AVAILABLE_PAIRS = 3
    """Complete pairs, and every pair of values of one component."""
    AGREED_PAIRS = 4
    """Pairs on which all pathways agree, and every observed value of one component."""
    OWN_PATHWAY = 5
    """Every pathway teaches counts of its own."""


class Knows(IntEnum):
    """What a yardstick knows and no agent can; an agent knows only its observations."""

    NOTHING = 0
    EVERYTHING_SHOWN = 1
    """What the world shows, as if nothing were ever hidden."""
    TRANSITIONS = 2
    """The true transitions between true states."""
    STATE = 3
    """The true state, and the optimal values."""
    BELIEF = 4
    """The true transitions and mechanism, hence the exact belief given the observations, and the optimal values."""


class EvidenceSource(IntFlag):
    """The evidence that weighs the pathways of a method, besides the observed components."""

    OBSERVED = 0
    """Nothing."""
    OUTCOMES = 1
    """The reward, and whether the episode ended."""
    PATTERNS = 2
    """Which components are hidden."""
    ALL = 3


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
    evidence: EvidenceSource = EvidenceSource.OBSERVED
    """The evidence that weighs its pathways, unless the setting ``evidence`` says otherwise."""

    @property
    def multiple(self) -> bool:
        """Whether it keeps K pathways."""
        return self.impute in (Impute.DRAWS, Impute.CHAIN)

    @property
    def chains(self) -> bool:
        """Whether its pathways draw hidden components one by one, in cycles."""
        return self.impute == Impute.CHAIN

    @property
    def separate(self) -> bool:
        """Whether each pathway has a transition model of its own."""
        return self.teach == Teach.OWN_PATHWAY

    @property
    def assumes(self) -> bool:
        """Whether it replaces hidden components by a fixed value that the user chooses."""
        return self.impute in (Impute.ASSUMED_VALUES, Impute.LAST_OR_ASSUMED)

    @property
    def weighs(self) -> bool:
        """Whether evidence can weigh its pathways: it draws them from a model that it learned."""
        return self.multiple and self.knows == Knows.NOTHING

    @property
    def learns(self) -> bool:
        """Whether it learns Q; others know the optimum."""
        return self.knows not in (Knows.STATE, Knows.BELIEF)

    @property
    def plans(self) -> bool:
        """Whether it learns Q by planning on its model; others that learn it do so by Q-learning."""
        return self.teach == Teach.AGREED_PAIRS

    @property
    def acts(self) -> bool:
        """Whether an `Agent` can have it; yardsticks know what no agent can."""
        return self.knows == Knows.NOTHING

    @property
    def looks(self) -> bool:
        """Whether it can choose actions for what they reveal: it plans, and its pathways may disagree."""
        return self.plans and self.multiple

    @property
    def steps_in_q(self) -> bool:
        """Whether it learns Q by Q-learning, a step at a time."""
        return self.learns and not self.plans

    @property
    def votes(self) -> bool:
        """Whether its pathways vote; those of a planner always choose by the best average value."""
        return self.multiple and not self.plans

    @property
    def has_factors(self) -> bool:
        """Whether its model has a part made of single components."""
        return self.counts_components or self.plans

    @property
    def counts_components(self) -> bool:
        """Whether it counts transitions of single components."""
        return self.teach == Teach.AVAILABLE_PAIRS


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
            "the last complete state", "every step, on the held state", "-",
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
        Method(
            "mi-planned", "MI, planned (ours)",
            "the average value over K pathways, resampled", "planning on the model, by expected backups",
            "every value of a component that was observed, and pairs of states on which all pathways agree",
            Impute.DRAWS, Teach.AGREED_PAIRS, evidence=EvidenceSource.OUTCOMES,
        ),
        Method(
            "mi-masked", "MI, available cases and patterns (ours)",
            "votes of K pathways, resampled by the pattern of what is hidden", "every step, alpha/K per pathway",
            "every pair of values of a component that was observed, and complete pairs",
            Impute.DRAWS, Teach.AVAILABLE_PAIRS, evidence=EvidenceSource.PATTERNS,
        ),
        Method(
            "mi-chained", "MI, chained equations",
            "votes of K pathways", "every step, alpha/K per pathway", "every step, 1/K per pathway",
            Impute.CHAIN, Teach.EVERY_PATHWAY,
        ),
        Method(
            "mi-separate", "MI, separate models",
            "votes of K pathways", "every step, alpha/K per pathway", "every step, each pathway its own model",
            Impute.DRAWS, Teach.OWN_PATHWAY,
        ),
        Method(
            "zero-context", "Zero context",
            "the state if fully observed, else that of all first values", "every step, imputed", "-",
            Impute.ASSUMED_STATE,
        ),
        Method(
            "assumed-value", "Assumed values",
            "the values seen, and an assumed one for each that is hidden", "every step, imputed", "-",
            Impute.ASSUMED_VALUES,
        ),
        Method(
            "carry-default", "Last observed, else assumed",
            "each component's last seen value in the episode, and an assumed one before there is any",
            "every step, imputed", "-",
            Impute.LAST_OR_ASSUMED,
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
        Method(
            "planned-observed", "Planning, all observed",
            "the state, whatever is hidden", "planning on the model, by expected backups", "every step",
            Impute.NOTHING, Teach.AGREED_PAIRS, knows=Knows.EVERYTHING_SHOWN, evidence=EvidenceSource.OUTCOMES,
        ),
    )
}  # fmt: skip
"""What methods are measured against, by name. They know what no agent can know, so no `Agent` can be one."""

NAMED: dict[str, Method] = METHODS | YARDSTICKS
"""All that a trial can be run with."""


def method_named(name: str) -> Method:
    """Return the method or yardstick called `name`, or raise an error that lists the choices.

    Examples
    --------
    >>> method_named("mi-synthetic").title
    'MI, synthetic'
    """
    if not isinstance(name, str) or name not in NAMED:
        raise ValueError(
            f"no method is called {name!r}{nearest(name, NAMED)}; there are {', '.join(METHODS)}; "
            f"yardsticks: {', '.join(YARDSTICKS)}"
        )
    return NAMED[name]
