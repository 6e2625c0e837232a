"""The declarations of a trial file, checked beyond types: settings, allocation, reward, time of updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import time
from math import ceil, floor, fsum
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from lacuna.agent.methods import METHODS, YARDSTICKS
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.settings import DEFAULT, SETTINGS, Settings
from lacuna.trial.file.context import wrong_name, wrong_range
from lacuna.trial.file.file_tables import AllocationTable, BurnInTable, RewardTable, RuleTable, UpdateTable, place_of
from lacuna.validation import nearest, shown

RuleName = Literal["votes", "softmax", "logistic", "fixed"]

# Probabilities are whole multiples of one over this.
_UNITS = 2**32
_SLACK = 1e-9


class Rule(NamedTuple):
    """The rule that turns values into probabilities, before the bounds."""

    name: RuleName
    parameters: tuple[float, ...] = ()
    """softmax: temperature; logistic: b, c; fixed: a probability for each action; votes: none."""


class BurnIn(NamedTuple):
    """Fixed probabilities for the first decisions of each participant, or until enough are enrolled."""

    decisions: int | None
    enrolled: int | None
    prob: tuple[float, ...]


class Wait(NamedTuple):
    """How long to wait for a reward: one of the two is given."""

    hours: float | None
    decisions: int | None


class UpdateAt(NamedTuple):
    """When a daily update is due."""

    at: time
    zone: ZoneInfo


@dataclass(frozen=True)
class Allocation:
    """How actions are drawn; actions are given by number."""

    rule: Rule
    bounds: tuple[tuple[float, float], ...]
    fallback: tuple[float, ...]
    burn_in: BurnIn | None
    sets: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Reward:
    """The range of rewards, and how long to wait for one."""

    range: tuple[float, float] | None
    wait: Wait | None
    default: float | None
    max_open: int


def read_settings(data: Mapping[str, Any], wrong: list[str]) -> Settings | None:
    """Complete the settings; None if something is wrong. Adds a sentence for every fault to `wrong`."""
    before = len(wrong)
    method = data.get("method", DEFAULT.method)
    if not isinstance(method, str) or method not in METHODS:
        why = (
            ", a yardstick: it knows what no trial can know" if method in list(YARDSTICKS) else nearest(method, METHODS)
        )
        wrong.append(f"[settings] method is {shown(method)}{why}; it must be one of {', '.join(METHODS)}")
    for key, value in data.items():
        place = place_of(("settings", key))
        if key == "method":
            continue
        if key not in SETTINGS:
            known = ("method", *SETTINGS)
            wrong.append(f"{place} is not a key{nearest(key, known)}; there are {', '.join(known)}")
            continue
        if key == "lag" and value != 0:
            wrong.append(f"{place} is {shown(value)}; a trial takes in no late contexts, so it must be 0")
            continue
        try:
            SETTINGS[key].checked(place, value)
        except ValueError as error:
            wrong.append(str(error))
    if len(wrong) > before:
        return None
    try:
        # The defaults of another method are its own: those of DEFAULT were chosen for its method.
        return replace(DEFAULT if method == DEFAULT.method else Settings(method), **{**data, "method": method})
    except ValueError as error:
        wrong.append(f"[settings] {error}")
        return None


def read_update_at(table: UpdateTable, wrong: list[str]) -> UpdateAt | None:
    """Read the time of the daily update; None if there is none or something is wrong."""
    if table.at is None:
        if table.zone is not None:
            wrong.append(f"[trial] update.zone is {shown(table.zone)}, but there is no update.at; give both or neither")
        return None
    if table.every == "each":
        wrong.append(f'[trial] update.at is {shown(table.at)}, but every event updates; it needs every = "batch"')
    try:
        if len(table.at) != len("03:00"):
            raise ValueError
        at = time.fromisoformat(table.at)
    except ValueError:
        wrong.append(f'[trial] update.at is {shown(table.at)}; it must be a time of day from "00:00" to "23:59"')
        at = time()
    try:
        return UpdateAt(at, ZoneInfo(table.zone if table.zone is not None else "UTC"))
    except (KeyError, ValueError, OSError):
        wrong.append(
            f"[trial] update.zone is {shown(table.zone)}; it must be a time zone that this machine knows, "
            'e.g. "Europe/Berlin"'
        )
        return None


def wrong_actions(actions: Sequence[str], absent: str) -> list[str]:
    """List everything that is wrong with the actions."""
    wrong = [line for i, action in enumerate(actions) for line in wrong_name(f"[trial] actions[{i}]", action)]
    twice = dict.fromkeys(action for action in actions if actions.count(action) > 1)
    wrong += [f"[trial] actions has {shown(action)} twice; names must differ" for action in twice]
    if absent not in actions:
        known = ", ".join(map(shown, actions))
        wrong.append(f"[trial] absent is {shown(absent)}{nearest(absent, actions)}; it must be one of {known}")
    return wrong


def read_allocation(table: AllocationTable, actions: Sequence[str], wrong: list[str]) -> Allocation:
    """Complete the allocation for these actions; adds a sentence for every fault."""
    n = len(actions)
    if table.fallback is not None:
        wrong += _wrong_probabilities("[allocation] fallback", table.fallback, n)
    if table.burn_in is not None:
        wrong += _wrong_probabilities("[allocation] burn_in.prob", table.burn_in.prob, n)
    rule = _rule_of(table.rule)
    if rule.name == "fixed":
        wrong += _wrong_probabilities("[allocation] rule.fixed", rule.parameters, n)
    if rule.name == "logistic" and n != 2:
        wrong.append(f"[allocation] rule is logistic, which needs 2 actions; [trial] actions has {n}")
    sets = _read_sets(table.sets, actions, wrong)
    pairs = _read_bounds(table.bounds, n, wrong)
    if pairs:
        wrong += _wrong_sums("all actions", pairs)
        for name, chosen in sets.items():
            wrong += _wrong_sums(f"the set {shown(name)}", [pairs[action] for action in chosen])
    fallback = tuple(table.fallback) if table.fallback is not None else (1 / n,) * n
    return Allocation(rule, pairs, fallback, _burn_in_of(table.burn_in), sets)


def read_reward(table: RewardTable, wrong: list[str]) -> Reward:
    """Complete the declaration of rewards; adds a sentence for every fault."""
    low, high = -MAX_REWARD, MAX_REWARD
    if table.range is not None:
        faults = wrong_range("[reward] range", table.range)
        if not faults and not -MAX_REWARD <= table.range[0] < table.range[1] <= MAX_REWARD:
            limits = f"between {-MAX_REWARD:g} and {MAX_REWARD:g}"
            faults = [f"[reward] range is {shown(table.range)}; rewards must lie {limits}"]
        wrong += faults
        if not faults:
            low, high = table.range
    if table.default is not None and not low <= table.default <= high:
        wrong.append(f"[reward] default is {shown(table.default)}; it must be a number between {low:g} and {high:g}")
    wait = None if table.wait is None else Wait(table.wait.hours, table.wait.decisions)
    return Reward(None if table.range is None else (low, high), wait, table.default, table.max_open)


def _rule_of(table: RuleTable | None) -> Rule:
    if table is None:
        return Rule("votes")
    if table.softmax is not None:
        return Rule("softmax", (table.softmax.temperature,))
    if table.logistic is not None:
        return Rule("logistic", (table.logistic.b, table.logistic.c))
    return Rule("fixed", tuple(table.fixed or ()))


def _burn_in_of(table: BurnInTable | None) -> BurnIn | None:
    return None if table is None else BurnIn(table.decisions, table.enrolled, tuple(table.prob))


def _wrong_probabilities(what: str, given: Sequence[float], n: int) -> list[str]:
    if len(given) != n:
        return [f"{what} is {shown(list(given))}; it must have a probability for each of {n} actions"]
    if not all(0 <= p <= 1 for p in given):
        return [f"{what} is {shown(list(given))}; probabilities must lie between 0 and 1"]
    if abs(fsum(given) - 1) > _SLACK:
        return [f"{what} is {shown(list(given))}, which sums to {fsum(given):.12g}; it must sum to 1"]
    return []


def _read_sets(
    sets: Mapping[str, Sequence[str]], actions: Sequence[str], wrong: list[str]
) -> dict[str, tuple[int, ...]]:
    """The sets as numbers of actions, in ascending order; wrong ones are left out."""
    found = {}
    for name, chosen in sets.items():
        place = place_of(("allocation", "sets", name))
        faults = wrong_name("[allocation] sets: a name", name)
        faults += [
            f"{place} has {shown(action)}{nearest(action, actions)}; it must be one of {', '.join(map(shown, actions))}"
            for action in dict.fromkeys(chosen)
            if action not in actions
        ]
        if not chosen:
            faults.append(f"{place} is []; it must have at least one action")
        if len(set(chosen)) < len(chosen):
            faults.append(f"{place} is {shown(list(chosen))}; an action must be in it once")
        wrong += faults
        if not faults:
            found[name] = tuple(sorted(actions.index(action) for action in chosen))
    return found


def _read_bounds(given: Sequence[Any], n: int, wrong: list[str]) -> tuple[tuple[float, float], ...]:
    """A pair for each action; nothing if something is wrong."""
    pairs = list(given) if any(isinstance(part, list) for part in given) else [list(given)] * n
    if len(pairs) != n:
        wrong.append(
            f"[allocation] bounds is {shown(list(given))}; it must be a pair for all actions, or one for each of {n}"
        )
        return ()
    faults = dict.fromkeys(line for pair in pairs for line in _wrong_pair(pair))
    wrong += faults
    return () if faults else tuple((float(low), float(high)) for low, high in pairs)


def _wrong_pair(pair: Any) -> list[str]:
    numbers = isinstance(pair, list) and all(isinstance(p, int | float) and not isinstance(p, bool) for p in pair)
    if not numbers or len(pair) != 2 or not 0 <= pair[0] <= pair[1] <= 1:
        return [f"[allocation] bounds has {shown(pair)}; it must be two numbers from 0 to 1, the smaller one first"]
    if ceil(pair[0] * _UNITS) > floor(pair[1] * _UNITS):
        return [
            f"[allocation] bounds has {shown(pair)}, and no multiple of 2^-32 lies between; bounds must be further "
            "apart: for constant probabilities take rule = { fixed = [ … ] }"
        ]
    return []


def _wrong_sums(whose: str, pairs: Sequence[tuple[float, float]]) -> list[str]:
    """Whether probabilities within the bounds can sum to 1; a set of one action needs none."""
    if len(pairs) == 1:
        return []
    low, high = (sum(ceil(low * _UNITS) for low, _ in pairs), sum(floor(high * _UNITS) for _, high in pairs))
    wrong = []
    if low > _UNITS:
        wrong.append(
            f"[allocation] bounds: the lower bounds of {whose}, rounded up to multiples of 2^-32, sum to "
            f"{low / _UNITS:.12g}; they must sum to at most 1"
        )
    if high < _UNITS:
        wrong.append(
            f"[allocation] bounds: the upper bounds of {whose}, rounded down to multiples of 2^-32, sum to "
            f"{high / _UNITS:.12g}; they must sum to at least 1"
        )
    return wrong
