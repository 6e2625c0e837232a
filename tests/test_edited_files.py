"""Files edited by hand, with a checksum that fits: impossible content is refused with a sentence, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lacuna import savefile
from lacuna.agent import Agent
from lacuna.methods import Settings
from lacuna.missingness import none
from lacuna.rollout import Run
from lacuna.savefile import SaveFileError
from problems import lake
from saved import TAIL, body_of, experienced, refused, resealed, whole_body


def edited(body: bytes, change: Callable[[Any, dict[str, Any]], None]) -> bytes:
    """The file with a changed header and changed arrays, sealed again."""
    first, line, raw = body[:-TAIL].split(b"\n", 2)
    described = json.loads(line)
    arrays = savefile._unpack_arrays(raw, described["arrays"])
    change(described["header"], arrays)
    described["arrays"] = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    raw = b"".join(array.tobytes() for array in arrays.values())
    return resealed(b"\n".join([first, json.dumps(described).encode(), raw]) + b"x" * TAIL)


def put(*places: Any, value: Any) -> Callable[[Any, dict[str, Any]], None]:
    """A change of one entry of the header, or of an array if its name comes first."""

    def change(header: Any, arrays: dict[str, Any]) -> None:
        target = arrays if places[0] in arrays else header
        for place in places[:-1]:
            target = target[place]
        target[places[-1]] = value

    return change


IMPOSSIBLE: list[tuple[Callable[[Any, dict[str, Any]], None], str]] = [
    (put("settings", "K", value=-3), "K is -3"),
    (put("settings", "K", value=11), r"S holds int64 in shape \(10,\); it must be int64 in shape \(11,\)"),
    (put("settings", "alpha", value=float("nan")), "alpha is nan"),
    (put("settings", "method", value="mi-magic"), "no method is called 'mi-magic'"),
    (put("settings", value={"method": "mi-synthetic"}), r"the settings are \['method'\], not"),
    (put("sizes", value=[3, 2, -4]), "a size is -4; it must be a whole number, 1 or larger"),
    (put("sizes", value=[3, 2, 4.5]), "a size is 4.5"),
    (put("sizes", value=[2**20, 2**20, 4]), "too many for a table"),
    (put("sizes", value=7), "'int' object is not iterable"),
    (put("n_actions", value=0), "n_actions is 0"),
    (put("n_actions", value=2**61), "do not fit into memory"),
    (put("seed", value=-1), "seed is -1"),
    (put("seed", value="one"), "seed is 'one'"),
    (put("positions", "imputation", value=-1), "the position of imputation is -1; it must be a whole number, 0 or"),
    (put("positions", "exploration", value=1.5), "the position of exploration is 1.5"),
    (put("steps", value=-1), "steps is -1"),
    (put("steps", value=2**70), "steps is 1180591620717411303424; it must be a whole number, between 0 and"),
    (put("phase", value="asleep"), "the phase is 'asleep'; it must be one of new, ready, acted"),
    (put("phase", value=[]), r"the phase is \[\]"),
    (put("action", value=3), "the last action is 3; it must be a whole number, between -1 and 2"),
    (put("S", 0, value=24), "S holds 24; it must be between 0 and 23"),
    (put("S", 9, value=-1), "S holds -1"),
    (put("S", value=np.zeros(1, dtype=np.int64)), r"S holds int64 in shape \(1,\); it must be int64 in shape \(10,\)"),
    (put("S", value=np.zeros(10)), "S holds float64 in shape"),
    (put("previous", 1, value=2), r"previous holds 2; it must be between -1 and \[2 1 3\]"),
    (put("held", 2, value=-1), "held holds -1"),
    (put("q_entries", 0, value=72), "q_entries holds 72; it must be between 0 and 71"),
    (put("q_entries", 0, value=-1), "q_entries holds -1"),
    (put("q_values", 0, value=np.inf), "a value of Q is not finite"),
    (put("q_values", value=np.zeros((2, 2))), "q_values holds float64 in shape"),
    (put("keys", 0, value=72), "state or action outside the space"),
    (put("keys", 0, value=-1), "state or action outside the space"),
    (put("codes", 0, value=2**40), "successor outside the space"),
    (put("codes", 0, value=3 << 3), "successor outside the space"),
    (put("units", 0, value=0), "a count below 1"),
    (put("units", 0, value=2**62), "the counts add up to more than"),
    (put("lengths", 0, value=2**62), "more than|do not fit together"),
    (put("lengths", value=np.zeros((0,), dtype=np.int64)), "do not fit together"),
    (put("codes", value=np.zeros((4, 2), dtype=np.int64)), "codes holds int64 in shape"),
]


@pytest.mark.parametrize(("change", "words"), IMPOSSIBLE, ids=[words for _, words in IMPOSSIBLE])
def test_impossible_content_is_refused(
    change: Callable[[Any, dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(edited(whole_body(), change))
    message = refused(tmp_path / "x")
    assert "does not describe an agent" in message
    with pytest.raises(SaveFileError, match=words):
        Agent.load(tmp_path / "x")


OF_OURS: list[tuple[Callable[[Any, dict[str, Any]], None], str]] = [
    *((put("part_weight", (0, 1), value=w), "a weight of a parent is none that could have come about")
      for w in (np.nan, np.inf, 0.0, -1.0, 1e300)),
    (put("part_weight", value=np.ones((2, 2))), r"part_weight holds float64 in shape \(2, 2\); it must be"),
    *((put("part_due", 0, value=n), f"part_due holds {n}") for n in (-1, 2**60)),
    # The last row is of a pair whose first component has four values, the first of a component with three.
    (put("part_codes", -1, value=4), "the component counts name a value outside its component"),
    (put("part_codes", 0, value=3), "the component counts name a value outside its component"),
    (put("part_keys", -1, value=10**6), "state or action outside the space"),
    (put("settings", "parents", value=0.0), "outside the space|in shape"),
    (put("top", 0, value=-1.0), "the highest reward is said to be -1.0"),
    *((put("tried", 0, value=n), f"tried holds {n}") for n in (0, 10**6)),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), OF_OURS)
def test_impossible_content_of_our_method_is_refused(
    change: Callable[[Any, dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    body = body_of(experienced("mi-available", parents=0.3, optimism=0.2))
    (tmp_path / "x").write_bytes(edited(body, change))
    refused(tmp_path / "x")
    with pytest.raises(SaveFileError, match=words):
        Agent.load(tmp_path / "x")


def test_an_unchanged_file_is_sealed_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(edited(whole_body(), lambda _header, _arrays: None))
    assert Agent.load(tmp_path / "x").to_parts()[0] == experienced().to_parts()[0]


def test_an_agent_that_acted_needs_its_action(tmp_path: Path) -> None:
    agent = experienced()
    agent.act()
    (tmp_path / "x").write_bytes(edited(body_of(agent), put("action", value=-1)))
    assert "the last action is -1; it must be a whole number, between 0 and 2" in refused(tmp_path / "x")


@pytest.mark.parametrize(
    "name", ["sizes", "settings", "seed", "positions", "steps", "phase", "action", "S", "q_values", "keys"]
)
def test_a_missing_part_is_named(name: str, tmp_path: Path) -> None:
    def drop(header: Any, arrays: dict[str, Any]) -> None:
        del (arrays if name in arrays else header)[name]

    (tmp_path / "x").write_bytes(edited(whole_body(), drop))
    assert repr(name) in refused(tmp_path / "x")


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"3", b"{}", b'{"header": {}}', b'{"header": 4, "arrays": {}}', b"[" * 20_000,
     b'{"header": {}, "arrays": {"S": ["int64", [-1]]}}', b'{"header": {}, "arrays": {"S": ["object", [1]]}}',
     b'{"header": {}, "arrays": {"S": ["int64", [1099511627776, 16777216]]}}', b'{"header": {}, "arrays": {"S": 4}}',
     b'{"header": {}, "arrays": {"S": ["int64", [1]]}}', b"\xff\xfe"],
)  # fmt: skip
def test_a_header_that_is_none_is_refused(line: bytes, tmp_path: Path) -> None:
    first, _, raw = whole_body().split(b"\n", 2)
    (tmp_path / "x").write_bytes(resealed(b"\n".join([first, line, raw])))
    refused(tmp_path / "x")


IMPOSSIBLE_RUNS: list[tuple[Callable[[Any, dict[str, Any]], None], str]] = [
    (put("place", 1, value=10_000), "place holds 10000"),
    (put("place", 2, value=1), "place holds 1"),
    (put("place", 3, value=60), "place holds 60"),
    (put("place", 0, value=1), "disagree on whether an episode has begun"),
    (put("place", value=np.zeros(3, dtype=np.int64)), "place holds int64 in shape"),
    (put("positions", "world", value=-5), "the position of world is -5"),
    (put("first_observed", value="yes"), "first_observed is 'yes'"),
    (put("tally_sums", value=np.zeros(3)), "tally_sums holds float64 in shape"),
    (put("tally_hidden", value=np.zeros((2, 2), dtype=np.int64)), "tally_hidden holds int64 in shape"),
    (put("curve", value=np.zeros((2, 3))), "curve holds float64 in shape"),
    (put("agent", "n_actions", value=4), "its agent knows|outside the space|between"),
    (put("agent", "sizes", value=[9, 8, 3]), "its agent knows"),
    (put("agent", "phase", value="acted"), "the last action|disagree"),
    (put("seconds", value="long"), "could not convert"),
    (put("problem", value="0"), "saved with another world"),
]


@pytest.mark.parametrize(("change", "words"), IMPOSSIBLE_RUNS, ids=[words for _, words in IMPOSSIBLE_RUNS])
def test_an_impossible_run_is_refused(
    change: Callable[[Any, dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    mdp = lake("episodic")
    run = Run(mdp, none(mdp.space), Settings(K=2), seed=1)
    run.advance(50)
    run.save(tmp_path / "run")
    (tmp_path / "run").write_bytes(edited((tmp_path / "run").read_bytes(), change))
    refused(tmp_path / "run", lambda path: Run.load(path, mdp, none(mdp.space)))
    with pytest.raises(SaveFileError, match=words):
        Run.load(tmp_path / "run", mdp, none(mdp.space))
