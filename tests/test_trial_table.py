"""The table of decisions says what the one who ran the trial knows, and what its state has learned."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from lacuna.trial.engine.ledger import ABSENT, BY_DEFAULT, CLOSED, CREDITED, OUTSIDE
from lacuna.trial.engine.replay import replay
from lacuna.trial.engine.state import TrialState
from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import LogError, make_entry
from lacuna.trial.log.decision_table import columns, decision_table
from lacuna.trial.log.decisions import History
from trial_runs import THREE, Runner, clock, trial_file

CASES: dict[str, dict[str, Any]] = {
    "batch, planner": {},
    "each, planner": {"update": "each"},
    "batch, no planner": {"method": "mi-synthetic"},
    "each, no planner": {"update": "each", "method": "mi-available"},
    "waits for decisions, with a default": {"reward": "wait = { decisions = 4 }\ndefault = 0.25"},
    "each, waits, default": {"update": "each", "reward": "wait = { decisions = 3 }\ndefault = 0.25"},
    "waits for hours": {"reward": "wait = { hours = 1.5 }", "method": "mi-synthetic"},
    "waits for hours, default": {"reward": "wait = { hours = 1.5 }\ndefault = -1.0"},
    "few may be open": {"reward": "max_open = 2"},
    "few open, each, no planner": {"reward": "max_open = 1", "update": "each", "method": "mi-synthetic"},
    "horizon": {"horizon": 15},
    "horizon, each": {"horizon": 15, "update": "each", "method": "mi-synthetic"},
    "groups": {"pool": "group", "method": "last-observed"},
    "each alone": {"pool": "each", "method": "missing-as-state"},
    "invalid contexts get the fall-back": {"on_invalid": "fallback", "method": "mi-synthetic"},
    "three actions": {"actions": THREE},
}
Row = dict[str, Any]


def run(case: str, seed: int = 1) -> Runner:
    return Runner(trial_file(**CASES[case]), seed).run()


def rows(runner: Runner) -> dict[tuple[str, int], Row]:
    """The rows of the table by participant and decision point."""
    trial = runner.trial
    table = trial.decisions()
    assert table.equals(decision_table(trial.store.read(), trial.file))
    found = {(row["participant"], row["t"]): row for row in table.iter_rows(named=True)}
    assert list(found) == sorted(found)
    assert len(found) == table.height
    return found


def learned(state: TrialState, p: str, t: int) -> tuple[float | None, float | None]:
    """What was credited, and what is used, by the ledger."""
    row = state.people[p].rows[t]
    reward = state.ledger.reward(row)
    credited = state.ledger.has(row, CREDITED)
    dead = not credited and state.ledger.has(row, CLOSED | ABSENT | OUTSIDE)
    return reward if credited else None, None if dead else reward


@pytest.mark.parametrize("case", CASES)
def test_what_was_learned_is_what_the_ledger_of_a_replay_holds(case: str) -> None:
    runner = run(case)
    trial = runner.trial
    # Corrections that a planner has not taken in yet are a test of their own.
    trial.update()
    state, _ = replay(trial.store.read(), trial.secret.draws_key)
    assert not state.stale
    found, seen = rows(runner), 0
    for p, person in state.people.items():
        for t, row in person.rows.items():
            assert (found[p, t]["reward_learned"], found[p, t]["reward_used"]) == learned(state, p, t), (case, t)
            filled = state.ledger.has(row, BY_DEFAULT) and found[p, t]["reward_used"] is not None
            assert found[p, t]["reward_by_default"] <= filled
            seen += 1
    assert seen + sum(row["pool"] is None for row in found.values()) == len(found)
    total = sum(row["reward_learned"] is not None for row in found.values())
    assert total == state.ledger.credited().size > 10


@pytest.mark.parametrize("case", [case for case in CASES if "planned" not in CASES[case].get("method", "mi-planned")])
def test_what_was_learned_is_in_the_table_at_any_moment(case: str) -> None:
    # The last update is a while ago.
    runner = Runner(trial_file(**CASES[case]), 1).run(points=22)
    state, _ = replay(runner.trial.store.read(), runner.trial.secret.draws_key)
    for (p, t), row in rows(runner).items():
        if p in state.people:
            assert (row["reward_learned"], row["reward_used"]) == learned(state, p, t), (case, t)


@pytest.mark.parametrize("case", CASES)
def test_the_table_says_what_was_done(case: str) -> None:
    runner = run(case)
    trial, found = runner.trial, rows(runner)
    known = {(trial.secret.pseudonym(who), t): noted for (who, t), noted in runner.notes.items()}
    for (p, t), noted in known.items():
        row = found[p, t]
        assert (row["action"], row["policy"], row["seq"]) == (noted.action, noted.policy, noted.seq)
        assert (row["randomised"], row["reason"]) == (noted.randomised, noted.reason)
        assert {a: row[f"prob_{a}"] for a in trial.file.actions} == (
            noted.prob or dict.fromkeys(trial.file.actions, None)
        )
        if noted.policy != "fallback":
            assert row["available"] == noted.available
        assert row["delivered"] == noted.delivered
        assert row["reward"] == (noted.reports[-1] if noted.reports else None)
        changes = [b for a, b in zip([None, *noted.reports], noted.reports, strict=False) if a != b]
        assert row["reward_revisions"] == len(changes)
        for name, value in noted.context.items():
            component = next(one for one in trial.file.context.components if one.name == name)
            read = None if value is None else component.read(value)
            assert row[f"coded_{name}"] == (None if read is None else read[0])
            assert row[f"missing_{name}"] == (read is None)
            assert row[f"invalid_{name}"] == (value is not None and read is None)
            told = str(value) if name == "mood" and value is not None else value
            assert row[f"raw_{name}"] == (None if value == "=HYPERLINK(1)" else told)
    rest = [row for key, row in found.items() if key not in known]
    assert all(row["policy"] == "absent" for row in rest)
    assert len(rest) > 3


def test_everything_happened_in_these_trials() -> None:
    """A test that looks at all rows proves nothing about what is in none of them."""
    table = pl.concat(
        [run(case).trial.decisions().select(list(columns(trial_file()))) for case in CASES if case != "three actions"]
    )
    for name, values in {
        "policy": {"learned", "burn-in", "given", "fallback", "absent"},
        "reason": {None, "fallback", "past", "unknown", "ended", "invalid"},
        "closed": {None, "wait", "max_open", "gap", "withdrawn"},
        "ended": {None, "terminated", "withdrawn"},
        "available": {True, False}, "in_study": {True, False}, "delivered": {None, True, False},
        "reward_by_default": {True, False},
    }.items():  # fmt: skip
        assert set(table[name].unique()) == values, name
    assert table.filter(pl.col("reward") != pl.col("reward_learned")).height > 10
    assert table.filter(pl.col("reward").is_not_null() & pl.col("reward_used").is_null()).height > 10
    assert table.filter(pl.col("reward_used").is_not_null() & pl.col("reward_learned").is_null()).height > 10


def test_an_absent_point_is_one_that_nobody_asked_for() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    trial.decide("a", 0, None)
    trial.decide("a", 3, None)
    trial.decide("a", 9, None)
    table = trial.decisions()
    assert table["t"].to_list() == [0, 1, 2, 3, 9]
    row = table.row(1, named=True)
    assert (row["policy"], row["action"], row["prob_nothing"], row["prob_prompt"]) == ("absent", "nothing", 1.0, 0.0)
    assert (row["available"], row["randomised"], row["in_study"], row["at"]) == (False, False, True, None)
    assert row["seq"] == table.row(3, named=True)["seq"]
    assert all(row[f"missing_{name}"] and row[f"coded_{name}"] is None for name in trial.file.context.names)
    assert table["closed"].to_list() == [None, None, None, "gap", None]
    # Asked for later, it is one row still: the answer that the app got.
    trial.decide("a", 1, {"steps": 700})
    row = trial.decisions().row(1, named=True)
    assert (row["policy"], row["reason"], row["action"], row["raw_steps"]) == ("fallback", "past", "nothing", 700.0)
    assert (row["available"], row["randomised"]) == (False, False)
    assert trial.decisions().height == 5


def test_a_reward_is_learned_once_its_next_context_is_there_and_an_update_came() -> None:
    trial = Trial.create(trial_file(method="mi-synthetic"), store="memory:", seed=1, clock=clock())
    trial.enrol("a")

    def state() -> list[tuple[float | None, float | None, float | None]]:
        return [*trial.decisions().select("reward", "reward_used", "reward_learned").iter_rows()]

    trial.decide("a", 0, None)
    trial.outcome("a", 0, 1.0)
    trial.update()
    assert state() == [(1.0, 1.0, None)]
    trial.decide("a", 1, None)
    assert state()[0] == (1.0, 1.0, None)
    trial.outcome("a", 0, 2.0)
    trial.update()
    assert state()[0] == (2.0, 2.0, 2.0)
    trial.outcome("a", 0, 3.0)
    trial.update()
    assert state()[0] == (3.0, 2.0, 2.0)
    trial.outcome("a", 1, 4.0)
    trial.end("a", "withdrawn")
    trial.update()
    assert state()[1] == (4.0, None, None)
    table = trial.decisions()
    assert table["reward_revisions"].to_list() == [3, 1]
    assert table["ended"].to_list() == [None, "withdrawn"]


def test_a_planner_takes_a_corrected_reward_in_when_it_is_rebuilt() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    trial.decide("a", 0, None)
    trial.decide("a", 1, None, previous={"t": 0, "reward": 1.0})
    trial.update()
    trial.outcome("a", 0, 2.0)
    assert trial.decisions().row(0, named=True)["reward_learned"] == 1.0
    assert trial.decisions().row(0, named=True)["reward_used"] == 2.0
    trial.update()
    assert trial.decisions().row(0, named=True)["reward_learned"] == 2.0


def test_ghosts_are_left_out_unless_asked_for() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    trial.decide("a", 0, None)
    p = trial.secret.pseudonym("ghost")
    trial.writer.commit([{"kind": "enrol", "p": p, "group": None, "ghost": True}])
    trial.given("ghost", 0, None, "prompt")
    assert trial.decisions()["participant"].to_list() == [trial.secret.pseudonym("a")]
    assert decision_table(trial.store.read(), trial.file, ghosts=True).height == 2


def test_redacted_events_are_passed_over_and_counted() -> None:
    runner = run("batch, no planner")
    trial = runner.trial
    before = trial.decisions()
    p = trial.secret.pseudonym("person 2")
    mine = [row["seq"] for row in before.iter_rows(named=True) if row["participant"] == p]
    trial.store.redact(mine)
    history = History(trial.store.read(), trial.file)
    assert history.redacted == len(set(mine))
    after = trial.decisions()
    assert after.filter(pl.col("participant") == p).height == 0
    others = pl.col("participant") != p
    assert after.filter(others).equals(before.filter(others))
    # One that is gone leaves the others of its participant where they were.
    other = run("batch, no planner")
    seqs = other.trial.decisions().filter((pl.col("participant") == p) & (pl.col("policy") == "learned"))["seq"]
    other.trial.store.redact([int(seqs[1])])
    assert (before.height - other.trial.decisions().height) >= 1
    # All of it but the beginning.
    last = trial.store.head.seq
    trial.store.redact(range(1, last + 1))
    assert trial.decisions().height == 0


def test_a_log_without_decisions_gives_the_columns() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1)
    table = trial.decisions()
    assert table.height == 0
    assert table.columns == list(columns(trial.file))
    assert table.schema == Runner(trial.file, 1).run(2, 6).trial.decisions().schema


def test_no_component_can_take_the_name_of_another_column() -> None:
    names = ["t", "action", "raw_t", "coded_t", "missing_t", "prob_t", "participant", "seq", "reward"]
    text = "\n".join(f'"{name}" = {{ values = [0, 1] }}' for name in names)
    file = TrialFile.parse(f'[trial]\nname = "w"\nactions = ["t", "raw_t"]\nabsent = "t"\n[context]\n{text}')
    trial = Trial.create(file, store="memory:", seed=1)
    trial.enrol("a")
    trial.decide("a", 0, dict.fromkeys(names, 1))
    assert trial.decisions().width == 7 + 2 + 15 + 4 * len(names)
    assert trial.decisions()["raw_action"].to_list() == [1]


RAW = [
    ("[false, true]", [True, False, 1, "true"], [True, False, None, None]),
    ("[1, 2]", [1, 2.0, 3, 2.5, True, 10**30, "1"], [1, 2, 3, None, None, None, None]),
    ("[0.5, 1]", [0.5, 1, 2.5, "x", False], [0.5, 1.0, 2.5, None, None]),
    ('["a", "b"]', ["a", "secret", 3], ["a", None, None]),
    ('[1, "1", true]', [1, "1", True, 2], ["1", "1", "true", None]),
]  # fmt: skip


@pytest.mark.parametrize(("values", "told", "shown"), RAW)
def test_a_raw_value_is_shown_if_it_has_the_type_of_its_column(values: str, told: list[Any], shown: list[Any]) -> None:
    text = f'[trial]\nname = "w"\nactions = ["n", "p"]\nabsent = "n"\n[context]\nx = {{ values = {values} }}'
    trial = Trial.create(TrialFile.parse(text), store="memory:", seed=1)
    trial.enrol("a")
    for t, value in enumerate(told):
        trial.decide("a", t, {"x": value})
    table = trial.decisions()
    assert table["raw_x"].to_list() == shown
    assert table["missing_x"].equals(table["coded_x"].is_null().alias("missing_x"))


def test_a_number_out_of_range_is_shown_and_flagged() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1)
    trial.enrol("a")
    for t, value in enumerate([-5, 10**30, "many", True, 1e300]):
        trial.decide("a", t, {"steps": value})
    table = trial.decisions()
    assert table["raw_steps"].to_list() == [-5.0, 1e30, None, None, 1e300]
    assert table["invalid_steps"].all()
    assert table["missing_steps"].all()


def test_times_are_those_of_the_log_and_free_texts_stay_there() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    for t, text in enumerate(["2026-11-16T09:00:00+01:00", "=1+1", None]):
        trial.decide("a", t, None, extra={"app_at": text})
    table = trial.decisions()
    assert table["app_at"].to_list() == ["2026-11-16T09:00:00+01:00", None, None]
    assert [f"{at:%H:%M}" for at in table["at"]] == ["08:03", "08:04", "08:05"]


def test_an_event_that_is_none_is_named() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1)
    entries = list(trial.store.read())
    entries.append(make_entry(entries[-1].head, {"seq": 1, "kind": "decision", "at": "2026-11-16T09:00:00.000Z"}))
    with pytest.raises(LogError, match="event 1: it lacks 'p'"):
        decision_table(entries, trial.file)


def test_who_has_ended_is_no_longer_in_the_study() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    trial.decide("a", 0, None)
    trial.decide("a", 2, None)
    trial.end("a", "terminated")
    trial.decide("a", 1, None)
    trial.decide("a", 3, None)
    trial.decide("b", 0, None)
    table = trial.decisions().filter(pl.col("participant") == trial.secret.pseudonym("a"))
    assert table["reason"].to_list() == [None, "ended", None, "ended"]
    # At t 1 nobody asked in time, but it lies before the end.
    assert table["in_study"].to_list() == [True, True, True, False]
    assert table["ended"].to_list() == [None, None, "terminated", None]
    assert trial.decisions().filter(pl.col("reason") == "unknown")["in_study"].to_list() == [False]


def test_what_was_reported_of_an_absent_point_stays_when_it_is_asked_for() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    trial.decide("a", 0, None)
    trial.decide("a", 2, None)
    assert not trial.outcome("a", 1, 2.0, delivered=False).used
    trial.decide("a", 1, None)
    row = trial.decisions().row(1, named=True)
    assert (row["policy"], row["reward"], row["reward_revisions"], row["delivered"]) == ("fallback", 2.0, 1, False)
    assert (row["reward_used"], row["reward_learned"]) == (None, None)


def test_a_default_that_came_too_late_to_be_learned_is_not_shown() -> None:
    file = trial_file(reward="wait = { hours = 0.01 }\ndefault = 0.5", method="mi-synthetic")
    trial = Trial.create(file, store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    trial.decide("a", 0, None)
    trial.update()
    names = ("reward_used", "reward_learned", "reward_by_default", "closed")
    assert trial.decisions().select(names).row(0) == (0.5, None, True, "wait")
    trial.end("a", "withdrawn")
    trial.update()
    assert trial.decisions().select(names).row(0) == (None, None, False, "withdrawn")


def test_a_given_action_that_could_not_have_been_another_was_not_randomised() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    for t, prob in enumerate(([0.0, 1.0], [0.5, 0.5], None)):
        trial.given("a", t, None, "prompt", prob=prob)
    with pytest.raises(
        ValueError, match=r"^prob says that 'prompt' could not be drawn; it must be above 0 for what was"
    ):
        trial.given("a", 3, None, "prompt", prob=[1.0, 0.0])
    assert trial.decisions()["randomised"].to_list() == [False, True, False]
