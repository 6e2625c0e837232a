"""What a participant gets does not depend on when others come: arrivals are shuffled, and the log says the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from numba import typeof

from lacuna.agent.settings import Settings
from lacuna.kernels.compiled import typed
from lacuna.trial.engine.recovery import recover
from lacuna.trial.engine.trial import Trial
from lacuna.trial.engine.writer import Writer
from trial_cases import ACTIONS, begun, bodies, contexts, trial_file

PEOPLE = ("ada", "ben", "eve", "kim")
Act = Callable[[Trial], object]

CASES = [
    (None, "batch", "all"),
    (Settings("mi-available", 4, parents=0.5, optimism=0.2), "batch", "group"),
    (Settings("mi-synthetic", 4, p_shuffle=0.3), "batch", "each"),
    (Settings("missing-as-state"), "batch", "all"),
    (None, "each", "each"),
    (Settings("mi-available", 4, parents=0.5, optimism=0.2), "each", "each"),
    (Settings("mi-chained", 4, cycles=2), "batch", "all"),
    (Settings("mi-separate", 4, p_shuffle=0.3, q_table="own"), "each", "each"),
    (Settings("carry-default", assumed=1.0), "batch", "group"),
    (Settings("mi-masked", 4, evidence="all"), "batch", "all"),
    (Settings("mi-planned", 4, evidence="all"), "each", "each"),
]


def acts_of(participant: str, rounds: int, seed: int) -> list[list[Act]]:
    """What happens to one participant, round by round: decisions, gaps, late, lost and corrected rewards, ends."""
    rng = np.random.default_rng(seed)
    seen = list(contexts(8 * rounds, 0.3, seed))
    t, found = -1, list[list[Act]]()
    for r in range(rounds):
        acts = list[Act]()
        for i in range(int(rng.integers(1, 7))):
            t += 1 if rng.random() < 0.8 else int(rng.choice([2, 3, 20]))
            acts.append(decision(participant, t, seen[8 * r + i], rng))
            acts += [reward(participant, int(rng.integers(max(0, t - 4), t + 1)), rng) for _ in range(rng.integers(3))]
        if r == rounds - 1 and rng.random() < 0.3:
            how = str(rng.choice(["terminated", "withdrawn"]))
            acts.append(lambda trial, how=how: trial.end(participant, how))  # type: ignore[misc]
        found.append(acts)
    return found


def decision(participant: str, t: int, context: dict[str, Any], rng: np.random.Generator) -> Act:
    kind, available, only = rng.random(), bool(rng.random() < 0.9), rng.random() < 0.2
    if kind < 0.1:
        return lambda trial: trial.given(participant, t, context, "prompt", prob=[0.2, 0.3, 0.5])
    allowed = list(ACTIONS[1:]) if only else None
    return lambda trial: trial.decide(participant, t, context, available=available, allowed=allowed)


def reward(participant: str, t: int, rng: np.random.Generator) -> Act:
    value = float(rng.choice([0.0, 1.0, 0.25]))

    def report(trial: Trial) -> None:
        person = trial.state.people[trial.secret.pseudonym(participant)]
        if t in person.rows:
            trial.outcome(participant, t, value)

    return report


def told(trial: Trial) -> dict[str, list[dict[str, Any]]]:
    """What the log says of each participant, and of updates, in order, without numbers and times of events."""
    found: dict[str, list[dict[str, Any]]] = {}
    for body in bodies(trial.store):
        if body["kind"] != "snapshot":
            rest = {key: value for key, value in body.items() if key not in ("seq", "at")}
            found.setdefault(body.get("p", body["kind"]), []).append(rest)
    return found


def lived(case: tuple[Settings | None, str, str], order: np.random.Generator, rounds: int = 3) -> Trial:
    """A trial in which each round's arrivals come in some order, those of one participant in their own."""
    settings, every, pool = case
    lines = f'update = "{every}"\npool = "{pool}"\nmax_gap = 5'
    burn_in = "bounds = [0.1, 0.8]\nburn_in = { decisions = 2, prob = [0.2, 0.5, 0.3] }"
    wait = "wait = { decisions = 4 }\ndefault = 0.5\nmax_open = 3"
    trial = begun(trial_file(settings, trial=lines, allocation=burn_in, reward=wait))
    for i in order.permutation(len(PEOPLE)):
        trial.enrol(PEOPLE[i], group=("left", "right")[i % 2])
    everything = {who: acts_of(who, rounds, seed) for seed, who in enumerate(PEOPLE)}
    for r in range(rounds):
        queues = {who: list(acts[r]) for who, acts in everything.items()}
        turns = [who for who, acts in queues.items() for _ in acts]
        for i in order.permutation(len(turns)):
            queues[turns[i]].pop(0)(trial)
        trial.update()
    return trial


@pytest.mark.parametrize("case", CASES, ids=str)
@given(seed=st.integers(0, 2**32))
@effort(max_examples=12)
def test_the_order_of_arrival_changes_nothing(case: tuple[Settings | None, str, str], seed: int) -> None:
    one, other = (lived(case, np.random.default_rng(s)) for s in (0, seed))
    assert told(one) == told(other)


def test_the_log_of_the_shuffled_trials_is_rich() -> None:
    found = [body for case in CASES for own in told(lived(case, np.random.default_rng(0), 6)).values() for body in own]
    kinds = {body["kind"] for body in found}
    assert kinds >= {"enrol", "decision", "given", "outcome", "close", "update", "end"}
    assert {body["why"] for body in found if body["kind"] == "close"} >= {"wait", "max_open", "gap"}
    assert {body["used"] for body in found if body["kind"] == "outcome"} == {True, False}
    assert any(body["gap"] for body in found if body["kind"] == "decision")


def test_with_one_pool_that_learns_at_once_the_order_does_matter() -> None:
    """Otherwise the tests above would say nothing."""
    case = (None, "each", "all")
    one, other = (lived(case, np.random.default_rng(s)) for s in (0, 1))
    assert told(one) != told(other)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_step_has_the_types_for_which_its_kernel_was_compiled(
    case: tuple[Settings | None, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`typed` does not look: a fresh pool, one that has grown and one from a snapshot must be alike."""
    seen = []

    def watched(kernel: Callable[..., int], *arguments: object) -> Callable[..., int]:
        step, wanted = typed(kernel, *arguments), [typeof(one) for one in arguments]

        def look(*own: object) -> int:
            assert [typeof(one) for one in own] == wanted
            seen.append(wanted)
            return step(*own)

        return look

    monkeypatch.setattr("lacuna.trial.engine.state.typed", watched)
    trial = lived(case, np.random.default_rng(0))
    trial.snapshot()
    state = recover(trial.store, trial.secret.draws_key)
    later = Trial(Writer(state, trial.store, trial.secret.draws_key, trial.writer.clock), trial.secret)
    later.enrol("new", group="left")
    for t, context in enumerate(contexts(30, 0.3, 5)):
        for who in (*PEOPLE, "new"):
            later.decide(who, 1000 + t, context)
    assert len(seen) > 150
    assert all(one == seen[0] for one in seen)


def test_numbers_do_not_depend_on_the_compiler() -> None:
    program = (
        "import json, numpy as np; from test_trial_order import *; "
        "print(json.dumps([told(lived(c, np.random.default_rng(0), 2)) for c in CASES], sort_keys=True))"
    )
    found = []
    for more in ({}, {"NUMBA_DISABLE_JIT": "1"}):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=Path(__file__).parent, env=os.environ | more, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        found.append(done.stdout)
    assert len(found[0]) > 10_000
    assert found[0] == found[1]
