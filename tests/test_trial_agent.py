"""A trial of one participant who gets every reward in time is an agent, to the bit."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lacuna.agent import learner
from lacuna.agent.agent import Agent
from lacuna.agent.learner import draws_per_step
from lacuna.agent.memory import IMPATIENCE, Memory
from lacuna.agent.methods import EvidenceSource
from lacuna.agent.settings import Settings
from lacuna.kernels.philox import IMPUTATION, fill_numbers
from lacuna.kernels.streams import Uniforms
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.keys import key_words
from problems import settings
from trial_cases import ACTIONS, SPACE, begun, contexts, trial_file

STEPS, RATES = 120, (0.0, 0.3, 0.7)
GAP_AT = 70
CASES = list(settings())
Seen = NDArray[np.int64]
ON = False
EACH = 'update = "each"\nmax_gap = 3'


class Follower:
    """An agent that is given the numbers of a trial's participant, and the actions of somebody else."""

    def __init__(self, trial: Trial, participant: str) -> None:
        person = trial.state.people[trial.secret.pseudonym(participant)]
        self._key, self._words = key_words(trial.secret.draws_key), person.words
        self.agent = Agent(SPACE, len(ACTIONS), trial.file.settings, seed=1)

    def numbers(self, t: int) -> Uniforms:
        block = np.empty(draws_per_step(self.agent.rules, SPACE.d))
        fill_numbers(self._key, self._words, t, IMPUTATION, block)
        return Uniforms(block, np.zeros(1, dtype=np.int64))

    def begin(self, t: int, seen: Seen) -> None:
        learner.begin(seen, self.agent.rules, SPACE.layout, self.agent.memory, self.numbers(t))

    def learn(self, t: int, action: int, reward: float, seen: Seen) -> None:
        self.agent.make_room()
        learner.learn(action, reward, ON, seen, self.agent.learner, self.numbers(t))


def assert_equal(trial: Trial, follower: Follower) -> None:
    """Whatever was learned, and where the participant stands, to the bit."""
    (pool,), agent = trial.state.pools.values(), follower.agent
    mine, theirs = agent.tables.to_arrays(), pool.tables.to_arrays()
    assert {name: array.tobytes() for name, array in mine.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }
    for name in ("S", "previous", "held"):
        assert np.array_equal(getattr(trial.state.places.standing, name)[0], getattr(agent.memory, name)), name
    planner = pool.tables.planner
    assert agent.parent_of == (planner.model if planner is not None else pool.tables.components).parent_of()


def story(hidden: float, n: int = STEPS, seed: int = 3) -> Iterator[tuple[int, dict[str, int | None], int, float]]:
    """Decision points with contexts, actions and rewards; once there is a gap that is too long."""
    rng = np.random.default_rng(seed)
    for i, context in enumerate(contexts(n, hidden, seed)):
        yield i + (50 if i > GAP_AT else 0), context, int(rng.integers(3)), float(rng.choice([0.0, 1.0, -0.5, 2.5]))


def followed(case: Settings, hidden: float, n: int = STEPS) -> tuple[Trial, Follower]:
    """A trial and an agent that live through the same; they are compared on the way."""
    trial = begun(trial_file(case, trial=EACH))
    trial.enrol("maria")
    follower = Follower(trial, "maria")
    last: tuple[int, int, float] | None = None
    for t, context, action, reward in story(hidden, n):
        trial.given("maria", t, context, ACTIONS[action])
        seen = trial.file.context.read(context).coded
        if last is None or t > last[0] + 4:
            follower.begin(t, seen)
        else:
            follower.learn(t, last[1], last[2], seen)
        if t % 20 == 0:
            assert_equal(trial, follower)
            p = list(trial.probabilities("maria").values())
            assert p == pytest.approx(expected(follower.agent), abs=2**-31)
        assert trial.outcome("maria", t, reward).used
        last = t, action, reward
    return trial, follower


def expected(agent: Agent) -> list[float]:
    p: NDArray[np.float64] = np.empty(agent.n_actions)
    learner.probabilities(agent.rules, agent.memory, agent.plan_table, p)
    return [float(x) for x in p]


def learned(trial: Trial) -> str:
    (pool,) = trial.state.pools.values()
    return hashlib.sha256(pool.digest.encode() + trial.state.places.standing.S[0].tobytes()).hexdigest()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_participant_is_an_agent(case: Settings) -> None:
    for hidden in RATES:
        trial, follower = followed(case, hidden)
        assert_equal(trial, follower)
        (pool,) = trial.state.pools.values()
        # All but the decision before the gap, which has no next context, and the last one.
        assert (pool.taught, pool.credited) == (STEPS - 2, STEPS - 2)
        if hidden == 0.3 and case.parents > 0:
            assert follower.agent.tables.components.search.due.any()


def test_each_setting_learns_something_else() -> None:
    digests = {learned(followed(case, 0.3)[0]) for case in CASES if case.method != "random-action"}
    # Votes do not change what is learned from given actions; methods, updates, K, optimism, own tables and evidence do.
    assert len(digests) >= 5 * 3 + 6 + 3 + 6


def some_digests() -> list[str]:
    return [learned(followed(case, hidden, 80)[0]) for case in CASES[::5] for hidden in (0.3, 0.7)]


def test_equal_without_the_compiler() -> None:
    program = "import json; from test_trial_agent import some_digests; print(json.dumps(some_digests()))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == some_digests()


def late(case: Settings, hidden: float, delays: list[int]) -> tuple[Trial, Follower]:
    """A trial in which the reward of decision t comes `delays[t]` contexts late, and an agent that teaches in time.

    The agent's values are those of crediting at that moment: a copy of the agent as it stood before the step, with the
    values of now, learns from the step that was kept.
    """
    trial = begun(trial_file(case, trial=EACH))
    trial.enrol("maria")
    follower = Follower(trial, "maria")
    kept: dict[int, tuple[Agent, Seen]] = {}
    due: dict[int, list[int]] = {}
    points = list(story(hidden, 60))
    values = copy.deepcopy(follower.agent.memory)
    for i, (t, context, action, _) in enumerate(points):
        trial.given("maria", t, context, ACTIONS[action])
        seen = trial.file.context.read(context).coded
        if i:
            kept[i - 1] = copy.deepcopy(follower.agent), seen
            follower.learn(t, points[i - 1][2], 0.0, seen)
        else:
            follower.begin(t, seen)
        due.setdefault(i + delays[i], []).append(i)
        for old in due.pop(i, []):
            if old < i:
                then, seen_then = kept[old]
                copy_values(values, then.memory)
                then.make_room()
                learner.learn(points[old][2], points[old][3], ON, seen_then, then.learner, follower.numbers(old + 1))
                copy_values(then.memory, values)
                trial.outcome("maria", old, points[old][3])
    copy_values(values, follower.agent.memory)
    return trial, follower


def copy_values(source: Memory, target: Memory) -> None:
    for name in ("Q", "tried", "finished", "highest_reward"):
        getattr(target, name)[:] = getattr(source, name)


# Where outcomes are evidence, one that is not known yet says nothing, so that the pathways are others.
BLIND = [case for case in CASES if not case.method.endswith("planned") and EvidenceSource.OUTCOMES not in case.sources]


@pytest.mark.parametrize("case", BLIND, ids=str)
def test_a_late_reward_is_credited_with_the_pathways_of_its_time_and_the_values_of_now(case: Settings) -> None:
    rng = np.random.default_rng(5)
    for hidden in RATES:
        trial, follower = late(case, hidden, rng.integers(1, 6, size=60).tolist())
        assert_equal(trial, follower)
        (pool,) = trial.state.pools.values()
        assert pool.taught == 59 > pool.credited > 50


@pytest.mark.parametrize("case", [case for case in CASES if case.method.endswith("planned")], ids=str)
def test_a_planner_counts_the_same_whenever_rewards_come(case: Settings) -> None:
    """Rewards that are all equal tell pathways nothing, so the pathways are the same, and so are all counts."""
    found = []
    for delay in (0, 1, 4):
        trial = begun(trial_file(case, trial=EACH))
        trial.enrol("maria")
        for t, context, action, _ in story(0.3, 60):
            trial.given("maria", t, context, ACTIONS[action])
            if t >= delay:
                trial.outcome("maria", t - delay, 1.0)
        for t in range(60 - delay, 60):
            trial.outcome("maria", t, 1.0)
        (pool,) = trial.state.pools.values()
        arrays = pool.tables.to_arrays()
        counted = ("keys", "lengths", "codes", "units", "leads_keys", "leads_codes", "leads_units")
        found.append([arrays[name].tobytes() for name in counted])
        assert (pool.taught, pool.credited) == (59, 59)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "case",
    [
        Settings("mi-planned", K=3),
        Settings("mi-planned", K=3, look=0.7),
        Settings("mi-available", K=3, optimism=0.2),
        Settings("last-observed"),
        Settings("mi-separate", K=3, optimism=0.2, q_table="own"),
        Settings("mi-masked", K=3, evidence="all"),
    ],
    ids=str,
)
def test_the_basis_of_a_decision_is_a_digest_of_all_that_it_read(case: Settings) -> None:
    trial = begun(trial_file(case, trial=EACH))
    trial.enrol("maria")
    found = set()
    for t, context, _, reward in story(0.3, 12):
        trial.decide("maria", t, context, previous={"t": t - 1, "reward": reward} if t else None)
        (pool,), S = trial.state.pools.values(), trial.state.places.standing.S[0]
        memory, plan = pool.tables.memory, pool.tables.plan_table
        tried = memory.tried[S].ravel() if memory.tried.size else np.zeros(0)
        waits = [] if plan is None else [plan.levels[IMPATIENCE]]
        if plan is not None and case.look > 0:
            before, after = plan.unsure.T
            lasts = np.minimum(after / (1 + before), 1.0)
            waits += (case.look * 0.99 * np.maximum(lasts[:-1] - lasts[-1], 0.0)).tolist()
        read = np.concatenate([S.astype(np.float64), memory.Q[S].ravel(), tried, memory.highest_reward, waits])
        body = json.loads(list(trial.store.read())[-1].body or b"")
        assert body["basis"] == hashlib.sha256(read.tobytes()).hexdigest()[:16]
        found.add(body["basis"])
    assert len(found) > 3
