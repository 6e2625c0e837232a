"""The state of a trial as bytes, and back, so that recovery need not start at the first event."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lacuna.agent import savefile
from lacuna.agent.learned import array_names
from lacuna.agent.memory import NO_STATE, Memory
from lacuna.agent.methods import NO_GUESS
from lacuna.agent.savefile import Arrays, take
from lacuna.agent.voting import sample_action
from lacuna.kernels.codes import pack
from lacuna.kernels.philox import fill_numbers
from lacuna.kernels.space import MISSING
from lacuna.trial.engine.ledger import ABSENT, MAX_T, OUTSIDE, Ledger
from lacuna.trial.engine.pool import Person, Places
from lacuna.trial.engine.state import TrialState
from lacuna.trial.engine.steps import choose, credit_rows, learn_row, move_on, plan_rows, teach_rows
from lacuna.trial.engine.units import fill_probabilities, nearest_units, share_out
from lacuna.validation import shown, whole_number

FORM = savefile.Form("trial", (
    choose, credit_rows, fill_numbers, fill_probabilities, learn_row, move_on, nearest_units, plan_rows, sample_action,
    share_out, teach_rows,
))  # fmt: skip
"""The state of a trial in a file; its kernels decide every bit of a log."""

_LEDGER = tuple(sorted(Ledger(1, 1).to_arrays()))
_PLACES = tuple(sorted(Places(1, 1).to_arrays()))
_HEADER = ("trial", "seq", "people", "pools", "updates", "update_keys")
_PERSON = ("p", "group", "ghost", "last_t", "last_row", "asked", "ended")


def to_bytes(state: TrialState, seq: int) -> bytes:
    """Return the state after event `seq` as bytes."""
    people = [[getattr(person, name) for name in _PERSON] for person in state.people.values()]
    pools = dict(sorted(state.pools.items()))
    header = {
        "trial": state.file.digest, "seq": seq, "people": people, "updates": state.updates,
        "update_keys": state.update_keys, "pools": {key: pool.describe() for key, pool in pools.items()},
    }  # fmt: skip
    arrays = state.ledger.to_arrays() | state.places.to_arrays()
    tables = [pool.tables.to_arrays() for pool in pools.values()]
    for name in array_names(state.settings) if tables else ():
        arrays[f"pools_{name}"] = np.concatenate([own[name] for own in tables])
        arrays[f"pools_{name}_lengths"] = np.array([own[name].shape[0] for own in tables], dtype=np.int64)
    return savefile.encode(FORM, header, arrays)


def from_bytes(content: bytes, where: str, state: TrialState, *, carried: bool = False) -> int:
    """Fill a blank state from untrusted bytes that `to_bytes` wrote; returns the number of its last event.

    A snapshot of other kernels is refused, because later results could differ in their bits, unless the log itself
    names it as the state from which the trial continued (`carried`).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", savefile.OtherKernelsWarning)
        header, arrays = savefile.decode(where, content, FORM, "warn" if carried else "refuse")
    with savefile.refusing(where, "does not describe the state of this trial"):
        savefile.fields("the snapshot", header, _HEADER)
        if header["trial"] != state.file.digest:
            raise ValueError("it is of another trial")
        lists = [f"pools_{name}{end}" for name in array_names(state.settings) for end in ("", "_lengths")]
        savefile.fields("the file", arrays, (*_LEDGER, *_PLACES, *(lists if header["pools"] else ())))
        seq = whole_number("seq", header["seq"], 0, MAX_T)
        state.updates = whole_number("updates", header["updates"], 0, MAX_T)
        for key, gave in header["update_keys"].items():
            savefile.fields("an update", gave, ("version", "taught", "credited"))
            state.update_keys[key] = {name: whole_number(name, value, 0, MAX_T) for name, value in gave.items()}
        _fill_people(header["people"], state)
        _fill_pools(header["pools"], arrays, state)
        rows = _memory_of(state).Q.shape[0] // state.settings.tables if state.pools else 0
        state.ledger.from_arrays(arrays, len(state.people), rows, state.n_actions, state.space.sizes)
        _fill_places(arrays, rows, state)
        _link_decisions(state)
    return seq


def _fill_people(described: Any, state: TrialState) -> None:
    for one in described:
        p, group, ghost, last_t, last_row, asked, ended = one
        if not isinstance(ghost, bool) or not isinstance(group, str | None):
            raise TypeError(f"a participant is described as {shown(one)}")
        if ended not in (None, "terminated", "withdrawn"):
            raise ValueError(f"a participant has ended as {shown(ended)}")
        person = Person(p, state.places.add(), state.pool_key(p, group), group, ghost)
        person.last_t = whole_number("a decision point", last_t, -1, MAX_T)
        person.last_row = whole_number("a row", last_row, -1, MAX_T)
        person.asked = whole_number("decisions", asked, 0, MAX_T)
        person.ended = ended
        state.people[p] = person
        state.enrolled += not ghost
    if len(state.people) != len(described):
        raise ValueError("it names a participant twice")


def _fill_pools(described: dict[str, Any], arrays: Arrays, state: TrialState) -> None:
    by_key = {person.pool: person for person in state.people.values()}
    names = array_names(state.settings)
    ends = {}
    for name in names if described else ():
        lengths = take(arrays, f"pools_{name}_lengths", "int64", (len(described),), 0, MAX_T)
        ends[name] = np.append(0, np.cumsum(lengths))
        if ends[name][-1] != arrays[f"pools_{name}"].shape[0]:
            raise ValueError(f"the lengths of {name} do not add up")
    for i, (key, about) in enumerate(described.items()):
        savefile.fields("a pool", about, ("taught", "credited", "stale"))
        if key not in by_key:
            raise ValueError(f"it has the pool {shown(key)} of no participant")
        pool = state.pool_of(by_key[key])
        pool.taught = whole_number("taught", about["taught"], 0, MAX_T)
        pool.credited = whole_number("credited", about["credited"], 0, MAX_T)
        pool.stale = bool(about["stale"])
        own = {name: arrays[f"pools_{name}"][ends[name][i] : ends[name][i + 1]] for name in names}
        pool.tables.from_arrays(own, pool.taught, pool.credited)


def _fill_places(arrays: Arrays, rows: int, state: TrialState) -> None:
    places, n, d = state.places.standing, state.places.n, state.space.d
    last = np.array(state.space.sizes) - 1
    K = places.S.shape[1]
    first = _memory_of(state).first if state.pools else np.zeros(K, dtype=np.int64)
    places.S[:n] = take(arrays, "place_S", "int64", (n, K), NO_STATE, first + rows - 1)
    places.previous[:n] = take(arrays, "place_previous", "int64", (n, d), MISSING, last)
    places.held[:n] = take(arrays, "place_held", "int64", (n, d), MISSING, last)
    method = next(iter(state.pools.values())).tables.method if state.pools else None
    if method is not None and method.impute not in NO_GUESS:
        begun = [person.number for person in state.people.values() if person.last_t >= 0]
        if (places.S[begun] < first).any():
            raise ValueError("a participant who has begun has no pathways")
        for number in begun:
            places.C[number] = [pack(int(s), state.space.layout) for s in places.S[number] - first]


def _memory_of(state: TrialState) -> Memory:
    """The memory of any pool: all have the same size."""
    return next(iter(state.pools.values())).tables.memory


def _link_decisions(state: TrialState) -> None:
    """Find the decisions of every participant in the ledger."""
    ledger, people = state.ledger, list(state.people.values())
    found = (array[: ledger.n].tolist() for array in (ledger.person, ledger.t, ledger.waits))
    for row, (number, t, waiting) in enumerate(zip(*found, strict=True)):
        person = people[number]
        # Where nothing but a fall-back was answered, the point is filled in as absent by the next decision.
        if t in person.rows and not (ledger.has(person.rows[t], OUTSIDE) and ledger.has(row, ABSENT)):
            raise ValueError(f"it has decision {t} of a participant twice")
        person.rows[t] = row
        if waiting:
            person.waiting[t] = row
    for person in people:
        if person.last_row >= 0 and person.rows.get(person.last_t) != person.last_row:
            raise ValueError("the last decision of a participant is not where it should be")
