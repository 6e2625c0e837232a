"""A trial as a TOML file, checked completely; equal digests mean that two files declare the same trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from lacuna.agent.settings import Settings
from lacuna.files import read_text
from lacuna.toml import parse_toml
from lacuna.trial.file.context import Bins, Categories, Component, ContextSchema, wrong_bins, wrong_name, wrong_values
from lacuna.trial.file.declared import (
    Allocation,
    BurnIn,
    Reward,
    Rule,
    UpdateAt,
    read_allocation,
    read_reward,
    read_settings,
    read_update_at,
    wrong_actions,
)
from lacuna.trial.file.file_tables import (
    TABLES,
    AllocationTable,
    ComponentTable,
    RewardTable,
    ServiceTable,
    StoreTable,
    TrialTable,
    place_of,
    read_table,
)
from lacuna.validation import nearest, shown

MOST_BYTES = 1 << 20
"""The largest trial file."""


class TrialFileError(ValueError):
    """All faults of a trial file, one sentence per line."""


@dataclass(frozen=True, eq=False, repr=False)
class TrialFile:
    """A checked trial file, with defaults filled in.

    Examples
    --------
    >>> file = TrialFile.parse('''
    ... [trial]
    ... name = "walk"
    ... actions = ["nothing", "prompt"]
    ... absent = "nothing"
    ... [allocation]
    ... rule = { softmax = { temperature = 0.5 } }
    ... bounds = [0.1, 0.9]
    ... [context]
    ... steps = { edges = [500, 2000], range = [0, 100000] }
    ... "at home" = { values = [false, true] }
    ... ''')
    >>> file.context.space.sizes, file.rule, file.fallback
    ((3, 2), Rule(name='softmax', parameters=(0.5,)), (0.5, 0.5))
    """

    text: str
    where: str
    """What the file is called in messages."""
    trial: TrialTable
    update_at: UpdateAt | None
    """When the daily update is due, if there is one."""
    settings: Settings
    allocation: Allocation
    reward: Reward
    context: ContextSchema
    store: str
    """Where the log is; a file of SQLite is given from the folder of the trial file."""
    deadline: float
    """Seconds after which a request that was not begun gets the fall-back."""

    @classmethod
    def read(cls, path: str | Path) -> TrialFile:
        """Read and check a trial file; the error has a sentence for every fault."""
        try:
            text = read_text(path, MOST_BYTES)
        except ValueError as error:
            raise TrialFileError(str(error)) from error
        return cls.parse(text, str(path), Path(path).parent)

    @classmethod
    def parse(cls, text: str, where: str = "the trial file", folder: Path = Path()) -> TrialFile:
        """Check a trial file given as text, as if it lay in `folder`."""
        try:
            data = parse_toml(text)
        except ValueError as error:
            raise TrialFileError(f"{where} is not valid TOML: {error}") from error
        wrong: list[str] = []
        parts = _parts(data, folder, wrong)
        if wrong:
            raise TrialFileError("\n".join(f"{where}: {line}" for line in dict.fromkeys(wrong)))
        return cls(text, where, **parts)

    def __repr__(self) -> str:
        return f"TrialFile({self.name!r}, actions={', '.join(self.actions)}, context={', '.join(self.context.names)})"

    @property
    def name(self) -> str:
        """The name of the trial."""
        return self.trial.name

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions."""
        return tuple(self.trial.actions)

    @property
    def absent(self) -> int:
        """The action if there is no request, or the participant is not available."""
        return self.trial.actions.index(self.trial.absent)

    @property
    def pool(self) -> Literal["all", "each", "group"]:
        """Which participants learn together."""
        return self.trial.pool

    @property
    def update_every(self) -> Literal["batch", "each"]:
        """Whether pools learn at each `update`, or with every event."""
        return self.trial.update.every

    @property
    def horizon(self) -> int | None:
        """Most decisions of a participant, who is terminated after them."""
        return self.trial.horizon

    @property
    def unknown(self) -> Literal["fallback", "enrol", "refuse"]:
        """The response to a participant who is not enrolled."""
        return self.trial.unknown

    @property
    def on_invalid(self) -> Literal["missing", "fallback", "refuse"]:
        """The response to an invalid value in a context."""
        return self.trial.on_invalid

    @property
    def max_gap(self) -> int:
        """Most decision points in a row that are filled in as absent."""
        return self.trial.max_gap

    @property
    def rule(self) -> Rule:
        """The rule that turns values into probabilities, before the bounds."""
        return self.allocation.rule

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Least and largest probability of each action."""
        return self.allocation.bounds

    @property
    def fallback(self) -> tuple[float, ...]:
        """The probabilities when the learned policy cannot be used."""
        return self.allocation.fallback

    @property
    def burn_in(self) -> BurnIn | None:
        """Fixed probabilities at the beginning."""
        return self.allocation.burn_in

    @property
    def sets(self) -> dict[str, tuple[int, ...]]:
        """Subsets of the actions that a request may name."""
        return dict(self.allocation.sets)

    @cached_property
    def content(self) -> dict[str, dict[str, Any]]:
        """All that the file declares as plain data, defaults filled in, without ``[store]`` and ``[service]``.

        A key that is added to trial files later may enter only if it differs from its default: otherwise running trials
        could not be opened any more.
        """
        at = self.update_at
        update: dict[str, str] = {"every": self.update_every}
        if at is not None:
            update |= {"at": f"{at.at:%H:%M}", "zone": at.zone.key}
        reward = self.reward
        return {
            "trial": self.trial.model_dump() | {"update": update},
            "settings": self.settings.for_file(),
            "allocation": {
                "rule": {self.rule.name: self.rule.parameters},
                "bounds": self.bounds,
                "fallback": self.fallback,
                "burn_in": None if self.burn_in is None else self.burn_in._asdict(),
                "sets": {name: [self.actions[action] for action in chosen] for name, chosen in self.sets.items()},
            },
            "reward": {
                "range": reward.range,
                "wait": None if reward.wait is None else reward.wait._asdict(),
                "default": reward.default,
                "max_open": reward.max_open,
            },
            "context": {component.name: _declared(component) for component in self.context.components},
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, in hexadecimal; it depends on the order of components, not on that of other keys."""
        whole = self.content | {"order": self.context.names}
        return hashlib.sha256(_canonical(whole).encode()).hexdigest()

    def first_difference(self, other: TrialFile) -> str | None:
        """Name the first key in which two files differ, apart from ``[store]`` and ``[service]``; None if in none."""
        for table, mine in self.content.items():
            its = other.content[table]
            for key in {**mine, **its}:
                ours, theirs = (_canonical(part[key]) if key in part else "not there" for part in (mine, its))
                if ours != theirs:
                    what = f"{place_of((table, key))} is"
                    return f"{what} {_cut(theirs)} in {other.where} and {_cut(ours)} in {self.where}"
        if (order := self.context.names) != other.context.names:
            theirs, ours = (", ".join(map(shown, names)) for names in (other.context.names, order))
            return f"[context] has the order {_cut(theirs)} in {other.where} and {_cut(ours)} in {self.where}"
        return None


def _parts(data: Mapping[str, Any], folder: Path, wrong: list[str]) -> dict[str, Any]:
    """The parts of a trial file; adds a sentence for everything that is wrong."""
    tables = {}
    for key, value in data.items():
        if key not in TABLES:
            known = ", ".join(f"[{table}]" for table in TABLES)
            wrong.append(f"{shown(key)} is no table of a trial file{nearest(key, TABLES)}; there are {known}")
        elif not isinstance(value, dict):
            wrong.append(f"[{key}] is {shown(value)}; it must be a table of keys and values")
        else:
            tables[key] = value
    wrong += [f"[{key}] is missing; it is needed" for key in ("trial", "context") if key not in data]
    parts: dict[str, Any] = {"settings": read_settings(tables.get("settings", {}), wrong)}
    allocation = read_table(AllocationTable, tables.get("allocation", {}), ("allocation",), wrong)
    if "trial" in tables and (trial := read_table(TrialTable, tables["trial"], ("trial",), wrong)) is not None:
        parts |= {"trial": trial, "update_at": read_update_at(trial.update, wrong)}
        wrong += wrong_actions(trial.actions, trial.absent)
        if (trial.pool, trial.unknown) == ("group", "enrol"):
            wrong.append("[trial] unknown is 'enrol', but with pool = 'group' no request can enrol: none names a group")
        if allocation is not None:
            parts["allocation"] = read_allocation(allocation, trial.actions, wrong)
    if (reward := read_table(RewardTable, tables.get("reward", {}), ("reward",), wrong)) is not None:
        parts["reward"] = read_reward(reward, wrong)
    if "context" in tables:
        parts["context"] = _read_context(tables["context"], wrong)
    if (store := read_table(StoreTable, tables.get("store", {}), ("store",), wrong)) is not None:
        wrong += _wrong_url(store.url)
        name = parts["trial"].name if "trial" in parts else ""
        parts["store"] = _beside(store.url if store.url is not None else f"sqlite:{name}.db", folder)
    if (service := read_table(ServiceTable, tables.get("service", {}), ("service",), wrong)) is not None:
        parts["deadline"] = service.deadline
    return parts


def _read_context(data: Mapping[str, Any], wrong: list[str]) -> ContextSchema | None:
    """The components in the order of the file; None if something is wrong."""
    if not data:
        wrong.append("[context] has no component; it must have at least one")
    components: list[Component] = []
    for name, given in data.items():
        place = place_of(("context", name))
        faults = wrong_name("[context] a component's name", name)
        table = read_table(ComponentTable, given, ("context", name), faults)
        if table is not None:
            if table.values is not None:
                faults += wrong_values(place, table.values)
            else:
                faults += wrong_bins(place, table.edges or (), table.range or ())
        wrong += faults
        if not faults and table is not None:
            components.append(_component(name, table))
    if len(components) < max(len(data), 1):
        return None
    try:
        return ContextSchema(components)
    except ValueError as error:
        wrong.append(f"[context] {error}")
        return None


def _component(name: str, table: ComponentTable) -> Component:
    if table.values is not None:
        return Categories(name, tuple(table.values))
    low, high = table.range or (0.0, 0.0)
    return Bins(name, tuple(table.edges or ()), (low, high))


def _declared(component: Component) -> dict[str, Any]:
    if isinstance(component, Categories):
        return {"values": component.values}
    return {"edges": component.edges, "range": component.range}


def _wrong_url(url: str | None) -> list[str]:
    """A sentence about a store that is none. It does not repeat the address: there may be a password in it."""
    if url is None:
        return []
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite":
        return ["[store] url has another form; it must be sqlite:FILE"]
    return [] if rest else ["[store] url names no file; it must be sqlite:FILE"]


def _beside(url: str, folder: Path) -> str:
    """A store with its file given from the folder of the trial file."""
    return f"sqlite:{folder / url.removeprefix('sqlite:')}"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
