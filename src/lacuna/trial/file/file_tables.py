"""The tables of a trial file as models, and their errors as sentences that name the place."""

from __future__ import annotations

from inspect import isclass
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from lacuna.agent.settings import MAX_WEIGHT
from lacuna.complaints import path_of, sentences
from lacuna.trial.file.context import MAX_TEXT

MAX_HORIZON = 2**31
"""Most decisions of a participant."""

Positive = Annotated[float, Field(ge=1 / MAX_WEIGHT, le=MAX_WEIGHT)]
Count = Annotated[int, Field(ge=1, le=MAX_HORIZON)]
Numbers = Annotated[list[float], Field(min_length=1)]

RULES = '"votes", { softmax = { temperature = … } }, { logistic = { b = …, c = … } } or { fixed = [ … ] }'
COMPONENTS = "{ values = [ … ] } or { edges = [ … ], range = [ … ] }"


class Table(BaseModel):
    """A table of a trial file: strict types, no unknown keys, frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def _wanted_instead(wanted: str) -> PydanticCustomError:
    return PydanticCustomError("wanted", "{wanted}", {"wanted": wanted})


def _one_of_the_keys(table: Table, wanted: str, keys: tuple[str, ...]) -> None:
    if sum(getattr(table, key) is not None for key in keys) != 1:
        raise _wanted_instead(wanted)


def _update(value: Any) -> Any:
    if isinstance(value, str):
        return {"every": value}
    if not isinstance(value, dict):
        raise _wanted_instead('"batch", "each" or { every = …, at = …, zone = … }')
    return value


class UpdateTable(Table):
    """When the pools learn; a text alone is `every`."""

    every: Literal["batch", "each"] = "batch"
    at: str | None = None
    zone: str | None = None


class TrialTable(Table):
    """The keys of ``[trial]``."""

    name: Annotated[str, Field(pattern=r"^[\w.+,()-]([\w.+,() -]*[\w.+,()-])?$", max_length=MAX_TEXT)]
    """A name for people, and for the file of the store."""
    actions: Annotated[list[str], Field(min_length=1)]
    """The names of the actions; their numbers are 0, 1, …"""
    absent: str
    """The action if there is no request, or the participant is not available."""
    pool: Literal["all", "each", "group"] = "all"
    """Which participants learn together: all, each alone, or the groups named at enrolment."""
    update: Annotated[UpdateTable, BeforeValidator(_update)] = UpdateTable()
    """``"batch"`` or ``"each"``, or a table ``{ every, at, zone }`` for a daily update."""
    horizon: Count | None = None
    """Most decisions of a participant, who is terminated after them."""
    unknown: Literal["fallback", "enrol", "refuse"] = "fallback"
    """The response to a participant who is not enrolled."""
    on_invalid: Literal["missing", "fallback", "refuse"] = "missing"
    """The response to an invalid value in a context."""
    max_gap: Annotated[int, Field(ge=0, le=100_000)] = 12
    """Most consecutive decision points without a request that are filled in as absent."""


class SoftmaxTable(Table):
    """The parameter of softmax."""

    temperature: Positive


class LogisticTable(Table):
    """The parameters of the logistic rule: ``expit(b·(Q₁ - Q₀) - log c)``."""

    b: Annotated[float, Field(ge=0, le=MAX_WEIGHT)]
    c: Positive


def _rule(value: Any) -> Any:
    if value == "votes":
        return None
    if not isinstance(value, dict):
        raise _wanted_instead(RULES)
    return value


class RuleTable(Table):
    """One rule with its parameters."""

    softmax: SoftmaxTable | None = None
    logistic: LogisticTable | None = None
    fixed: Numbers | None = None

    @model_validator(mode="after")
    def _one(self) -> RuleTable:
        _one_of_the_keys(self, RULES, ("softmax", "logistic", "fixed"))
        return self


class BurnInTable(Table):
    """Fixed probabilities for the first decisions of each participant, or until enough are enrolled."""

    decisions: Count | None = None
    enrolled: Count | None = None
    prob: Numbers

    @model_validator(mode="after")
    def _one(self) -> BurnInTable:
        wanted = "{ decisions = …, prob = [ … ] } or { enrolled = …, prob = [ … ] }"
        _one_of_the_keys(self, wanted, ("decisions", "enrolled"))
        return self


class AllocationTable(Table):
    """The keys of ``[allocation]``."""

    rule: Annotated[RuleTable | None, BeforeValidator(_rule)] = None
    """How values become probabilities, before the bounds; none of the tables is ``"votes"``."""
    bounds: list[Any] = Field(default=[0.0, 1.0])
    """Least and largest probability, of all actions or as a pair for each."""
    fallback: Numbers | None = None
    """The probabilities where nothing learned can be used; uniform if not given."""
    burn_in: BurnInTable | None = None
    """Fixed probabilities at the beginning."""
    sets: dict[str, list[str]] = {}
    """Subsets of the actions that a request may name."""


class WaitTable(Table):
    """How long a reward is waited for."""

    hours: Annotated[float, Field(gt=0, le=100_000)] | None = None
    decisions: Count | None = None

    @model_validator(mode="after")
    def _one(self) -> WaitTable:
        _one_of_the_keys(self, "{ hours = … } or { decisions = … }", ("hours", "decisions"))
        return self


class RewardTable(Table):
    """The keys of ``[reward]``."""

    range: list[float] | None = None
    """Least and largest reward; others are refused."""
    wait: WaitTable | None = None
    """How long a reward is waited for; for ever if not given."""
    default: float | None = None
    """The reward of a decision for which none came in time; if not given, nothing is learned from it."""
    max_open: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Most decisions of a participant that wait for a reward."""


class ComponentTable(Table):
    """One component of ``[context]``: categories, or a number cut into bins."""

    values: list[Any] | None = None
    edges: list[float] | None = None
    range: list[float] | None = None

    @model_validator(mode="after")
    def _one(self) -> ComponentTable:
        given = tuple(key for key in ("values", "edges", "range") if getattr(self, key) is not None)
        if given not in {("values",), ("edges", "range")}:
            raise _wanted_instead(COMPONENTS)
        return self


class StoreTable(Table):
    """The keys of ``[store]``."""

    url: str | None = None
    """Where the log is: ``sqlite:FILE``, from the folder of the trial file."""


class ServiceTable(Table):
    """The keys of ``[service]``."""

    deadline: Annotated[float, Field(gt=0, le=10)] = 2.0
    """Seconds after which a request that was not begun gets the fall-back."""


TABLES: dict[str, type[Table] | None] = {
    "trial": TrialTable,
    "settings": None,
    "allocation": AllocationTable,
    "reward": RewardTable,
    "context": None,
    "store": StoreTable,
    "service": ServiceTable,
}
"""The tables of a trial file; those without a model have the settings and the components as keys."""

Read = TypeVar("Read", bound=Table)


def read_table(model: type[Read], data: Any, where: tuple[str, ...], wrong: list[str]) -> Read | None:
    """Read a table by its model; None if something is wrong, with a sentence for every fault."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong += sentences(
            error, lambda parts: place_of((*where, *parts)), lambda parts: list(_table_at(model, parts).model_fields)
        )
        return None


def place_of(where: tuple[int | str, ...]) -> str:
    """Return the place of a key in a trial file.

    Examples
    --------
    >>> place_of(("trial", "update", "at")), place_of(("context", "at home", "values", 0))
    ('[trial] update.at', "[context] 'at home'.values[0]")
    """
    return f"[{where[0]}] {path_of(where[1:])}".rstrip()


def _table_at(model: type[Table], parts: tuple[int | str, ...]) -> type[Table]:
    """The model of a table within a table."""
    for part in parts:
        annotation = model.model_fields[str(part)].annotation
        kinds = [kind for kind in (annotation, *get_args(annotation)) if isclass(kind) and issubclass(kind, Table)]
        model = kinds[0]
    return model
