"""Files edited by hand, with a checksum that fits: impossible content is refused with a sentence, never a crash."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edits import File
from fuzz_files import fuzz
from lacuna.agent.agent import Agent
from lacuna.agent.memory import (
    AGREEMENT,
    CREDITED,
    CURSOR,
    ENDINGS,
    ENTRY,
    IMPATIENCE,
    OPEN,
    OUTCOMES,
    QUEUED,
    STEPS,
    VISITED,
)
from lacuna.agent.methods import METHODS, Impute, Teach
from lacuna.agent.savefile import SaveFileError
from lacuna.agent.settings import LATER, Settings
from lacuna.kernels.space import Space
from lacuna.missingness import bursts, none
from lacuna.run.measures import SUMS
from lacuna.run.run import Run
from problems import lake
from saved import body_of, experienced, refused, resealed, whole_body


def edited(body: bytes, change: Callable[[Any, dict[str, Any]], None]) -> bytes:
    """The file with a changed header and changed arrays, sealed again."""
    file = File.of(body)
    change(file.header, file.arrays)
    return file.body()


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
    (put("settings", value={"method": "mi-synthetic"}), "settings lacks 'K'"),
    (put("sizes", value=[3, 2, -4]), "a size is -4; it must be a whole number, 1 or larger"),
    (put("sizes", value=[3, 2, 4.5]), "a size is 4.5"),
    (put("sizes", value=[2**20, 2**20, 4]), "too many for a table"),
    (put("sizes", value=7), "sizes is 7; it must be a list"),
    (put("n_actions", value=0), "n_actions is 0"),
    (put("n_actions", value=2**61), "do not fit into memory"),
    (put("seed", value=-1), "seed is -1"),
    (put("seed", value="one"), "seed is 'one'"),
    (
        put("positions", "imputation", value=-1),
        "the position of imputation is -1; it must be a whole number",
    ),
    (put("positions", "exploration", value=1.5), "the position of exploration is 1.5"),
    (put("positions", "exploration", value=2**90), "the position of exploration is 1237940039285380274899124224"),
    (put("positions", "world", value=0), "positions has an unknown 'world'"),
    (put("seed", value=2**130), "the seed is 1361129467683753853853498429727072845824; it must be a whole number"),
    (put("settings", "alpha", value=10**400), "alpha is 10+…; it must be a number between 0 and 1"),
    (put("settings", "optimism", value=10**400), "optimism is 10+…; it must be a number between 0 and"),
    (put("settings", "K", value=10**400), "K is 10+…; it must be a whole number"),
    (put("names", value=["a", "b", 3]), "component names must be texts"),
    (put("more", value=0), "the agent has an unknown 'more'"),
    (put("steps", value=-1), "steps is -1"),
    (put("steps", value=2**70), "steps is 1180591620717411303424; it must be a whole number between 0 and"),
    (put("phase", value="asleep"), "the phase is 'asleep'; it must be one of new, ready, acted"),
    (put("phase", value=[]), r"the phase is \[\]"),
    (put("action", value=3), "the last action is 3; it must be a whole number between -1 and 2"),
    (put("S", 0, value=24), "S holds 24; it must be between 0 and 23"),
    (put("S", 9, value=-1), "S holds -1"),
    (put("S", value=np.zeros(1, dtype=np.int64)), r"S holds int64 in shape \(1,\); it must be int64 in shape \(10,\)"),
    (put("S", value=np.zeros(10)), "S holds float64 in shape"),
    (put("previous", 1, value=2), r"previous holds 2; it must be between -1 and \[2 1 3\]"),
    (put("held", 2, value=-1), "held holds -1"),
    (put("q_entries", 0, value=72), "q_entries holds 72; it must be between 0 and 71"),
    (put("q_entries", 0, value=-1), "q_entries holds -1"),
    (put("q_values", 0, value=np.inf), "q_values holds inf; it must be between"),
    *((put("q_values", 0, value=q), "q_values holds .*; it must be between") for q in (np.nan, 1.7e308, -1.7e308)),
    (put("q_values", value=np.zeros((2, 2))), "q_values holds float64 in shape"),
    (put("q_entries", 1, value=0), "q_entries is not in order, or names a place twice"),
    (put("keys", -1, value=72), "state or action outside the space"),
    (put("keys", 0, value=-1), "state or action outside the space"),
    (put("codes", 0, value=2**40), "successor outside the space"),
    (put("codes", 0, value=3 << 3), "successor outside the space"),
    (put("units", 0, value=0), "the counts hold one below 1, or add up to more than"),
    (put("units", 0, value=2**62), "the counts hold one below 1, or add up to more than"),
    (put("lengths", 0, value=2**62), "the lengths of the rows of the counts do not add up"),
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


@cache
def planner_body() -> bytes:
    """The file of a planner with a queue, outcomes and joint counts."""
    agent = experienced("mi-planned")
    planner = agent.planner
    assert planner is not None
    assert planner.table.at[QUEUED] > 1
    assert planner.table.at[OUTCOMES] > 1
    assert len(planner.leads) > 1
    return body_of(agent)


def stand_beyond(_: Any, arrays: dict[str, Any]) -> None:
    arrays["plan_at"][[OPEN, ENTRY]] = arrays["plan_visited"][0], 10**6


def count_under_another_action(_: Any, arrays: dict[str, Any]) -> None:
    # Nine values under three actions, then the same whatever the action: of those the first row moves on.
    keys = arrays["factored_keys"]
    keys[np.searchsorted(keys, 9 * 3)] += 1


OF_OURS: list[tuple[Callable[[Any, dict[str, Any]], None], str]] = [
    *((put("parent_weight", (0, 1), value=w), re.escape(f"parent_weight holds {w}"))
      for w in (np.nan, np.inf, 0.0, -1.0, 1e300)),
    (put("parent_weight", value=np.ones((2, 2))), r"parent_weight holds float64 in shape \(2, 2\); it must be"),
    *((put("parent_due", 0, value=n), f"parent_due holds {n}") for n in (-1, 2**60)),
    # The last row is of a pair whose first component has four values, the first of a component with three.
    (put("component_codes", -1, value=4), "the component counts name a value outside its component"),
    (put("component_codes", 0, value=3), "the component counts name a value outside its component"),
    (put("component_keys", -1, value=10**6), "state or action outside the space"),
    (put("settings", "parents", value=0.0), "outside the space|in shape"),
    (put("highest_reward", 0, value=-1.0), "highest_reward holds -1.0; it must be between 0 and 1e.100"),
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


def add(name: str, place: Any, value: Any) -> Callable[[Any, dict[str, Any]], None]:
    """A change of one entry of an array by some amount."""

    def change(_: Any, arrays: dict[str, Any]) -> None:
        arrays[name][place] += value

    return change


def swap(name: str, one: int, other: int) -> Callable[[Any, dict[str, Any]], None]:
    """Two entries of an array in each other's place."""

    def change(_: Any, arrays: dict[str, Any]) -> None:
        arrays[name][[one, other]] = arrays[name][[other, one]]

    return change


SUMS_OF_STEPS = "holds sums that no steps could have left"
NO_OUTCOMES = "_outcomes holds outcomes that 6[01] steps cannot give"
NOT_THE_VISITED = "the planner's list of visited states lacks one that it has left, or names one twice"

OF_PLANNING: list[tuple[Callable[[Any, dict[str, Any]], None], str]] = [
    *((put("plan_levels", i, value=x), f"plan_levels holds {x}") for i in range(7) for x in (np.nan, np.inf, -0.5)),
    *((put("plan_levels", i, value=1.5), "plan_levels holds 1.5") for i in (AGREEMENT, IMPATIENCE)),
    *((put("plan_levels", i, value=1e104), r"plan_levels holds 1e\+104") for i in range(7)),
    *(
        (add("plan_at", i, 1), "the planner counts 6[01] steps taught and 6[01] credited; there were 60 and 60")
        for i in (STEPS, CREDITED)
    ),
    (put("steps", value=61), "the planner counts 60 steps taught and 60 credited; there were 61 and 61"),
    (add("plan_at", ENDINGS, 1), "the planner counts more endings, or waits longer, than it has steps"),
    *((put("plan_at", i, value=-2), "plan_at holds -2") for i in range(10)),
    *((put("plan_at", i, value=2**62), f"plan_at holds {2**62}") for i in range(10)),
    (put("plan_at", OPEN, value=24), "plan_at holds 24"),
    (put("plan_at", OUTCOMES, value=9), "plan_at holds 9"),
    (add("plan_at", OUTCOMES, -1), NO_OUTCOMES),
    (add("plan_at", CURSOR, 72), "the planner stands beyond the states it has visited"),
    (stand_beyond, "the planner stands beyond the ways back to a state"),
    *((add("plan_at", i, 1), "in shape") for i in (QUEUED, VISITED)),
    (put("plan_taken", 0, value=1e110), f"plan_taken {SUMS_OF_STEPS}"),
    (put("plan_taken", 1, value=-0.1), f"plan_taken {SUMS_OF_STEPS}"),
    (put("plan_taken_entries", 0, value=2), f"plan_taken {SUMS_OF_STEPS}|is not in order"),
    (put("plan_taken_entries", -1, value=216), "plan_taken_entries holds 216"),
    (put("plan_arrived", 0, value=np.nan), "plan_arrived holds nan"),
    (put("plan_arrived", 1, value=0.0), f"plan_arrived {SUMS_OF_STEPS}"),
    (put("plan_tried", 0, value=61.0), "plan_tried counts more tries than there were steps"),
    (put("plan_tried", 0, value=-0.1), "plan_tried holds -0.1"),
    (put("plan_told", 0, value=61.0), "plan_told counts more outcomes than arrivals"),
    (put("plan_told", 0, value=-1.0), "plan_told holds -1.0"),
    (put("plan_outcomes", (0, 0), value=np.inf), "plan_outcomes holds inf"),
    *((put("plan_outcomes", (0, 1), value=x), NO_OUTCOMES) for x in (0.5, -1.0, 2.0)),
    *((put("plan_outcomes", (0, 2), value=x), NO_OUTCOMES) for x in (0.0, -1.0, 1.5, 61.0)),
    (lambda _, arrays: arrays["plan_outcomes"].__setitem__(0, arrays["plan_outcomes"][1]), NO_OUTCOMES),
    (lambda _, arrays: arrays["plan_visited"].__setitem__(0, arrays["plan_visited"][1]), NOT_THE_VISITED),
    (put("plan_visited", 0, value=24), "plan_visited holds 24"),
    (put("plan_queue", 0, value=-1), "plan_queue holds -1"),
    (lambda _, arrays: arrays["plan_queue"].__setitem__(0, arrays["plan_queue"][1]), "queue names a state twice"),
    (put("plan_priority", 0, value=0.0), "the planner's queue is not in order"),
    (put("plan_priority", 0, value=np.inf), "plan_priority holds inf"),
    (put("q_values", 0, value=1e104), r"q_values holds 1e\+104"),
    (put("leads_codes", 0, value=72), "successor outside the space"),
    (swap("leads_codes", 0, -1), "the planner's ways back are not those of the counts|names a successor twice"),
    (put("leads_units", 0, value=2), "the planner's ways back are not those of the counts"),
    (put("codes", 0, value=0), "the planner's ways back are not those of the counts|names a successor twice"),
    # The first row is of a component with three values, the last of a pair whose first component has four.
    (put("factored_codes", 0, value=3), "the component counts name a value outside its component"),
    (put("factored_codes", -1, value=4), "the component counts name a value outside its component"),
    (put("factored_keys", -1, value=10**6), "state or action outside the space"),
    (put("factored_units", 0, value=2**62), "the counts hold one below 1, or add up to more than"),
    (count_under_another_action, "the component counts name an action where they are about all of them"),
    *((put("parent_ratio", (0, 1), value=w), re.escape(f"parent_ratio holds {w}"))
      for w in (np.nan, np.inf, 0.0, -1.0, 1e300)),
    (put("settings", "kappa", value=0.0), "kappa is 0.0; mi-planned could not say where an untried action leads"),
    (put("settings", "budget", value=-1), "budget is -1; it must be a whole number between 0 and"),
    (put("settings", "method", value="mi-available"), "the file has an unknown|has no such setting"),
]  # fmt: skip


OF_EVIDENCE: list[tuple[Callable[[Any, dict[str, Any]], None], str]] = [
    *((put("evidence_weight", 0, value=x), "evidence_weight holds") for x in (np.nan, 0.0, -1.0, 2.0**101)),
    (add("evidence_known", 1, 1), "the evidence counts 61 steps credited; there were 60"),
    (put("steps", value=61), "the evidence counts 60 steps credited; there were 61"),
    *((put("evidence_known", 0, value=n), f"evidence_known holds {n}") for n in (-1, 9)),
    (add("evidence_known", 0, -1), NO_OUTCOMES),
    (put("evidence_outcomes", (0, 0), value=np.inf), "evidence_outcomes holds inf"),
    *((put("evidence_outcomes", (0, 1), value=x), NO_OUTCOMES) for x in (0.5, -1.0)),
    *((put("evidence_outcomes", (0, 2), value=x), NO_OUTCOMES) for x in (0.0, 1.5, 61.0)),
    (put("evidence_told", 0, value=61.0), "evidence_told counts more outcomes than arrivals"),
    (put("evidence_arrived", 0, value=-1.0), "evidence_arrived holds -1.0"),
    (put("evidence_arrived_entries", -1, value=24), "evidence_arrived_entries holds 24"),
    # The first component has three values, in two bits.
    (put("pattern_codes", 0, value=1), "the pattern counts name a pattern that hides only some bits of a component"),
    (put("pattern_codes", 0, value=-1), "successor outside the space"),
    (put("pattern_keys", -1, value=25), "state or action outside the space"),
    (put("pattern_units", 0, value=0), "one below 1|begin with its most frequent"),
    (add("pattern_units", 0, 1), "the pattern counts are not those of 60 steps"),
    (put("settings", "evidence", value="observed"), "the file has an unknown"),
    (put("settings", "evidence", value="outcomes"), "outside the space"),
    (put("settings", "evidence", value="rewards"), "evidence is 'rewards'"),
]


@pytest.mark.parametrize(("change", "words"), OF_EVIDENCE)
def test_impossible_evidence_is_refused(
    change: Callable[[Any, dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    body = body_of(experienced("mi-masked", evidence="all"))
    (tmp_path / "x").write_bytes(edited(body, change))
    refused(tmp_path / "x")
    with pytest.raises(SaveFileError, match=words):
        Agent.load(tmp_path / "x")


def test_a_file_from_before_a_setting_has_its_default(tmp_path: Path) -> None:
    agent = experienced("mi-available")
    named: set[str] = set()
    (tmp_path / "x").write_bytes(edited(body_of(agent), lambda header, _: named.update(header["settings"])))
    assert len(LATER) == 6
    assert not named & set(LATER)
    assert Agent.load(tmp_path / "x").settings == agent.settings


@pytest.mark.parametrize(("change", "words"), OF_PLANNING)
def test_an_impossible_planner_is_refused(
    change: Callable[[Any, dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(edited(planner_body(), change))
    refused(tmp_path / "x")
    with pytest.raises(SaveFileError, match=words):
        Agent.load(tmp_path / "x")


def test_a_planner_knows_only_states_that_it_has_visited(tmp_path: Path) -> None:
    agent = experienced("mi-planned", steps=8)
    new = int(np.flatnonzero(~agent.planner.table.left)[0])  # type: ignore[union-attr]

    def queue_it(_: Any, arrays: dict[str, Any]) -> None:
        arrays["plan_at"][QUEUED] = 1
        arrays["plan_queue"], arrays["plan_priority"] = np.array([new]), np.array([1.0])

    def value_it(_: Any, arrays: dict[str, Any]) -> None:
        arrays["q_entries"], arrays["q_values"] = np.array([new * 3]), np.array([1.0])

    for change, words in ((queue_it, "queue names a state twice, or one that"), (value_it, "q_entries names a state")):
        (tmp_path / "x").write_bytes(edited(body_of(agent), change))
        assert words in refused(tmp_path / "x")


def test_lengths_that_wrap_around_are_refused(tmp_path: Path) -> None:
    def wrap(_: Any, arrays: dict[str, Any]) -> None:
        arrays["keys"], arrays["lengths"] = np.arange(2048), np.full(2048, 2**53)
        assert arrays["lengths"].sum() == arrays["codes"].size == 0

    (tmp_path / "x").write_bytes(edited(body_of(Agent(Space((1000,)), 3, Settings("mi-synthetic"))), wrap))
    assert "the lengths of the rows of the counts do not add up" in refused(tmp_path / "x")


def test_a_row_that_names_a_successor_twice_or_is_out_of_order_is_refused(tmp_path: Path) -> None:
    def change(name: str, first: int, second: int) -> Callable[[Any, dict[str, Any]], None]:
        def change_longest(_: Any, arrays: dict[str, Any]) -> None:
            longest = int(arrays["lengths"].argmax())
            row = arrays[name][int(arrays["lengths"][:longest].sum()) :]
            row[0], row[1] = row[first], row[second]

        return change_longest

    (tmp_path / "x").write_bytes(edited(whole_body(), change("codes", 0, 0)))
    assert "names a successor twice" in refused(tmp_path / "x")
    (tmp_path / "x").write_bytes(edited(whole_body(), change("units", 1, 0)))
    assert "does not begin with its most frequent successor" in refused(tmp_path / "x")


def test_a_pair_counted_more_often_than_one_of_its_values_is_refused(tmp_path: Path) -> None:
    agent = experienced("mi-available", steps=600, parents=0.3)

    def count_on(_: Any, arrays: dict[str, Any]) -> None:
        row = int(np.searchsorted(arrays["component_keys"], agent.components.search.first[2, 1] * agent.n_actions))
        arrays["component_units"][arrays["component_lengths"][:row].sum()] += 600

    (tmp_path / "x").write_bytes(edited(body_of(agent), count_on))
    assert "the component counts name a pair of values more often than one of them" in refused(tmp_path / "x")


@pytest.mark.parametrize("kind", ["", "component_"])
@pytest.mark.parametrize("name", METHODS)
def test_counts_that_the_method_does_not_keep_are_refused(name: str, kind: str, tmp_path: Path) -> None:
    def count(_: Any, arrays: dict[str, Any]) -> None:
        row = {"keys": [0], "lengths": [1], "codes": [0], "units": [1]}
        arrays |= {f"{kind}{what}": np.array(number) for what, number in row.items()}

    (tmp_path / "x").write_bytes(edited(body_of(experienced(name)), count))
    keeps = METHODS[name].counts_components if kind else METHODS[name].teach > Teach.NOTHING
    if METHODS[name].plans and keeps:
        # Its own, of course, but these do not fit to the rest.
        assert "the planner's ways back are not those of the counts" in refused(tmp_path / "x")
    elif keeps:
        assert (
            len((Agent.load(tmp_path / "x").model, Agent.load(tmp_path / "x").components.counts)[kind == "component_"])
            == 1
        )
    else:
        assert f"it holds counts that {name} does not keep" in refused(tmp_path / "x")


@pytest.mark.parametrize("name", METHODS)
def test_an_agent_that_took_steps_has_states(name: str, tmp_path: Path) -> None:
    agent = experienced(name)
    agent.act()
    agent.learn(1.0, [0, 0, 0], terminated=True)
    (tmp_path / "x").write_bytes(edited(body_of(agent), put("S", 0, value=-1)))
    if METHODS[name].impute == Impute.NOTHING:
        assert Agent.load(tmp_path / "x").pathways == ((0, 0, 0),)
    else:
        assert "S holds -1; it must be between 0 and" in refused(tmp_path / "x")


def test_an_unchanged_file_is_sealed_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(edited(whole_body(), lambda _header, _arrays: None))
    assert Agent.load(tmp_path / "x").to_parts()[0] == experienced().to_parts()[0]


def test_an_agent_that_acted_needs_its_action(tmp_path: Path) -> None:
    agent = experienced()
    agent.act()
    (tmp_path / "x").write_bytes(edited(body_of(agent), put("action", value=-1)))
    assert "the last action is -1; it must be a whole number between 0 and 2" in refused(tmp_path / "x")


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


SUMS_FIT = "the sums of the tally are none that 50 steps could have left"
GUESSES_FIT = "the guesses of the tally are none that 50 steps could have left"

IMPOSSIBLE_RUNS: list[tuple[Callable[[Any, dict[str, Any]], None], str]] = [
    (put("place", 1, value=10_000), "place holds 10000"),
    (put("place", 2, value=2), "place holds 2"),
    (put("place", 3, value=60), "place holds 60"),
    (put("place", 0, value=1), "disagree on whether an episode has begun"),
    (put("place", value=np.zeros(3, dtype=np.int64)), "place holds int64 in shape"),
    (put("positions", "world", value=-5), "the position of world is -5"),
    (put("positions", "missingness", value=2**90), "the position of missingness is"),
    (put("first_observed", value="yes"), "first_observed is 'yes'"),
    *((put("tally_sums", 0, value=n), f"tally_sums holds {n}") for n in (np.inf, -np.inf, np.nan)),
    (put("tally_sums", 0, value=51.0), SUMS_FIT),
    *((put("tally_sums", i, value=n), SUMS_FIT) for i in range(len(SUMS)) for n in (1e300, -1e300)),
    *((put("tally_sums", i, value=0.5), SUMS_FIT) for i, name in enumerate(SUMS) if not name.endswith("reward")),
    (put("tally_sums", value=np.zeros(len(SUMS))), "the tally counts 0 steps, 50 actions and 50 masks, but the agent"),
    (put("tally_sums", value=np.zeros(3)), "tally_sums holds float64 in shape"),
    (put("tally_actions", 0, value=-1), "tally_actions holds -1"),
    (put("tally_actions", 0, value=2**62), "the tally counts 50 steps, [0-9]+ actions and 50 masks"),
    (put("tally_hidden", 1, value=51), "the tally counts 50 steps, 50 actions and [0-9]+ masks"),
    (put("tally_hidden", value=np.zeros((2, 2), dtype=np.int64)), "tally_hidden holds int64 in shape"),
    *((put("tally_guesses", i, value=2**62), GUESSES_FIT) for i in range(4)),
    *((put("tally_guesses", i, value=1), GUESSES_FIT) for i in (0, 2, 3)),
    *((put("tally_agreement", (1, i), value=2**62), GUESSES_FIT) for i in (0, 1)),
    (put("agent", "steps", value=51), "the tally counts 50 steps"),
    (put("agent", "steps", value=0), "disagree on whether an episode has begun"),
    (put("curve", value=np.zeros((2, 3))), "curve holds float64 in shape"),
    (put("curve", (0, 0), value=np.nan), "curve holds nan"),
    (put("curve", (0, 0), value=51.0), SUMS_FIT),
    (put("curve", (0, -1), value=51.0), "the curve holds a row that could not have been noted within 50 steps"),
    (put("curve", 1, value=np.zeros(len(SUMS) + 1)), "the curve holds a row that could not have been noted"),
    (put("agent", "n_actions", value=4), "its agent knows"),
    (put("agent", "sizes", value=[9, 8, 3]), "its agent knows"),
    (put("agent", "phase", value="acted"), "the last action|disagree"),
    *((put("seconds", value=s), "seconds is .*; it must be a number between 0 and")
      for s in ("long", None, True, -1.0, float("nan"), float("inf"), 10**400)),
    (put("problem", value="0"), "saved with another world"),
    (put("more", value=0), "the run has an unknown 'more'"),
    (put("agent", value=[]), r"the agent is \[\]; it must hold sizes, names"),
]  # fmt: skip


@cache
def run_body() -> bytes:
    """The file of a run of 50 steps, with two notes, in a world that comes and goes in bursts."""
    mdp = lake("episodic")
    run = Run(mdp, bursts(mdp.space, 0.2, 0.4), Settings(K=2), seed=1)
    run.advance(50, times=(10, 20))
    with tempfile.TemporaryDirectory() as folder:
        run.save(Path(folder) / "run")
        return (Path(folder) / "run").read_bytes()


@pytest.mark.parametrize(("change", "words"), IMPOSSIBLE_RUNS)
def test_an_impossible_run_is_refused(
    change: Callable[[Any, dict[str, Any]], None], words: str, tmp_path: Path
) -> None:
    mdp = lake("episodic")
    (tmp_path / "run").write_bytes(edited(run_body(), change))
    refused(tmp_path / "run", lambda path: Run.load(path, mdp, bursts(mdp.space, 0.2, 0.4)))
    with pytest.raises(SaveFileError, match=words):
        Run.load(tmp_path / "run", mdp, bursts(mdp.space, 0.2, 0.4))


def test_a_run_whose_agent_went_its_own_way_is_not_saved(tmp_path: Path) -> None:
    mdp = lake("episodic")
    run = Run(mdp, none(mdp.space), Settings(K=2), seed=1)
    run.advance(50)
    run.agent.act()
    run.agent.learn(0.0, [0, 0, 0], terminated=False)
    with pytest.raises(ValueError, match=r"the tally counts 50 steps, .* but the agent took 51 steps"):
        run.save(tmp_path / "run")


# --- any edit --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_any_edit_is_refused_with_a_sentence_or_leads_to_a_sound_state() -> None:
    edits = 400
    found, bad = fuzz(edits, seed=14)
    assert bad == []
    assert sum(found.values()) == edits
    assert found["refused"] > edits / 10
    assert found["loaded and ran"] > edits / 10


@pytest.mark.parametrize("seed", [2**128 + 1, 2**200, 10**5000], ids=["a bit", "much", "very much"])
def test_a_seed_too_large_to_save_is_refused_when_something_is_made_from_it(seed: int) -> None:
    mdp = lake("episodic")
    for make in (
        lambda: Agent(Space((3, 2)), 2, seed=seed),
        lambda: Run(mdp, none(mdp.space), Settings(), seed=seed),
    ):
        with pytest.raises(ValueError, match=r"seed has \d+ bits; it must be a whole number between 0 and 2\*\*128"):
            make()


def test_the_largest_seed_can_be_saved(tmp_path: Path) -> None:
    Agent(Space((3, 2)), 2, seed=2**128).save(tmp_path / "a")
    assert Agent.load(tmp_path / "a").seed == 2**128
