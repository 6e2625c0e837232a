"""Values that arrive late: the laws, the twin, what is told when, and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from lacuna.agent.agent import Agent
from lacuna.agent.learned import Tables
from lacuna.agent.methods import METHODS, EvidenceSource
from lacuna.agent.settings import Settings
from lacuna.checks import check_mechanism
from lacuna.kernels.space import MISSING, Space
from lacuna.missingness import parse
from lacuna.run.play import play
from lacuna.run.run import DRIVERS, Run
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import make_world
from lacuna.wrappers import MissingObservation, VectorMissingObservation
from naive import NaiveLearner, State
from naive_late import Remembering
from naive_planned import NaivePlanner
from problems import Numbers, digest, lake, with_none

TEXTS = ("late:1,mcar:0.5", "late:3,mcar:0.7", "late:2/0.5,mcar:0.6", "late:4,bursts:0.2,0.3")
SEED = 8


def cases(lag: int) -> list[Settings]:
    found = []
    for method in METHODS.values():
        more: dict[str, Any] = {"K": 3, "p_shuffle": 0.2} if method.votes else {}
        more = {"K": 3, "budget": 3, "look": 0.5} if method.plans else more | {"alpha": 0.3}
        more |= {"evidence": "outcomes"} if EvidenceSource.PATTERNS in method.evidence else {}
        found.append(Settings(method.name, gamma=0.9, epsilon=0.1, lag=lag, **more))
    found.append(Settings("mi-separate", 3, 0.3, 0.9, 0.1, q_table="own", evidence="outcomes", lag=lag))
    return found


def late_values(mdp: TabularMDP, mechanism_delay: int, arrivals: list[int], seen: list[NDArray[np.int64]]) -> Any:
    """What of the state `delay` steps before the last was hidden; None if the episode is too young."""
    if len(seen) <= mechanism_delay:
        return None
    values, then = mdp.space.decode(int(mdp.shows[arrivals[-1 - mechanism_delay]])), seen[-1 - mechanism_delay]
    return tuple(value if was < 0 else None for value, was in zip(values, then, strict=True))


# --- the laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases(3), ids=str)
def test_compiled_equals_step_by_step_and_the_worlds_are_the_same(case: Settings) -> None:
    mdp = lake("episodic")
    for text in TEXTS:
        for first_observed in (True, False):
            runs = [
                Run(mdp, parse(text, mdp), case, seed=SEED, first_observed=first_observed, driver=d) for d in DRIVERS
            ]
            digests = [digest(run, run.record(130)) for run in runs]
            assert digests[0] == digests[1], (text, first_observed)


@pytest.mark.parametrize("case", cases(3), ids=str)
def test_a_memory_to_which_nothing_arrives_changes_nothing(case: Settings) -> None:
    mdp = lake("episodic")
    for text in ("mcar:0.5", "late:3/0.0,mcar:0.5", "late:1,none"):
        remembers, forgets = (Run(mdp, parse(text, mdp), replace(case, lag=lag), seed=SEED) for lag in (3, 0))
        assert digest(remembers, remembers.record(400)) == digest(forgets, forgets.record(400)), text


def test_values_too_old_for_the_memory_change_nothing() -> None:
    mdp = lake("episodic")
    case = Settings("mi-planned", 3, budget=3)
    runs = [Run(mdp, parse("late:4,mcar:0.5", mdp), replace(case, lag=lag), seed=SEED) for lag in (0, 2, 3)]
    never, too_short, enough = (digest(run, run.record(300)) for run in runs)
    assert never == too_short != enough


def test_with_nothing_late_the_masks_are_those_of_the_mechanism_itself() -> None:
    """Late values draw numbers of their own after each mask, so masks are paired as long as nothing else is."""
    mdp = lake("episodic")
    run = Run(mdp, parse("late:2,mcar:0.5", mdp), Settings("random-action"), seed=SEED)
    seen = run.record(50).seen
    stream = Numbers(SEED, "missingness")
    numbers = iter(stream)
    for row in seen:
        drawn = [next(numbers) < 0.5 for _ in range(3)]
        assert (row < 0).tolist() == drawn
        for _ in range(3):
            next(numbers)


@pytest.mark.parametrize("text", TEXTS)
def test_what_arrives_is_what_was_hidden_then_and_nothing_earlier(text: str) -> None:
    env = MissingObservation(gymnasium.make("lacuna/Lake-v0"), text, truth=True)
    delay, share = env.mechanism.delay, env.mechanism.arrives
    rng, arrived, hidden = np.random.default_rng(0), 0, 0
    for episode in range(30):
        _, info = env.reset(seed=SEED if episode == 0 else None)
        truths, masks = [info["truth"]], [info["mask"]]
        assert (info["late"] == MISSING).all()
        for _ in range(40):
            _, _, terminated, _, info = env.step(int(rng.integers(8)))
            truths.append(info["truth"])
            masks.append(info["mask"])
            assert info["steps_ago"] == delay - 1
            if len(truths) <= delay:
                assert (info["late"] == MISSING).all()
            else:
                told = info["late"] != MISSING
                assert not told[masks[-1 - delay] == 0].any()
                assert (info["late"][told] == truths[-1 - delay][told]).all()
                arrived, hidden = arrived + told.sum(), hidden + masks[-1 - delay].sum()
            if terminated:
                break
    assert abs(arrived / hidden - share) <= 5 * np.sqrt(share * (1 - share) / hidden)


def test_patterns_are_no_evidence_where_late_values_would_change_them() -> None:
    with pytest.raises(ValueError, match="lag is 1, but patterns are evidence here"):
        Settings("mi-masked", lag=1)
    with pytest.raises(ValueError, match="lag is 1, but patterns are evidence here"):
        Settings("mi-available", evidence="all", lag=1)


def test_what_a_planner_saves_is_what_it_was_before_it_could_look() -> None:
    blank = [set(Tables(Space((3, 2)), 2, Settings("mi-planned", K=3, look=look)).to_arrays()) for look in (0.0, 0.5)]
    assert blank[1] - blank[0] == {"plan_unsure"}


@pytest.mark.parametrize(
    "method", [method.name for method in METHODS.values() if method.evidence != EvidenceSource.PATTERNS]
)
def test_a_value_of_the_present_state_is_as_if_it_had_been_seen(method: str) -> None:
    agent = Agent(Space((3, 4)), 2, Settings(method, lag=1), seed=3)
    agent.begin([None, 2])
    agent.correct([1, None])
    assert set(agent.pathways) == {(1, 2)}
    agent.learn(0.5, [None, None], terminated=False, action=1)
    agent.correct([2, 3])
    assert set(agent.pathways) == {(2, 3)}
    # Nothing new: nothing happens, and no number is used.
    before = agent.imputation.position
    agent.correct([2, 3])
    agent.correct([None, None], steps_ago=1)
    agent.correct([1, 2], steps_ago=1)
    assert (set(agent.pathways), agent.imputation.position) == ({(2, 3)}, before)


def test_a_late_value_tells_where_one_is_now() -> None:
    """A walker on a line whose start was hidden: the start tells the present, if steps are known to be certain."""
    space = Space((12,))
    agent = Agent(space, 1, Settings("mi-conservative", K=20, lag=3), seed=0)
    for start in [*range(9)] * 3:
        agent.begin([start])
        for t in range(1, 4):
            agent.learn(0.0, [start + t], terminated=False, action=0)
    agent.begin([None])
    for _ in range(3):
        agent.learn(0.0, [None], terminated=False, action=0)
    assert len(set(agent.pathways)) > 3
    agent.correct([4], steps_ago=3)
    assert set(agent.pathways) == {(7,)}


def test_wrong_values_are_refused() -> None:
    agent = Agent(Space((3, 2)), 2, Settings("mi-synthetic", K=4, lag=2), seed=0)
    with pytest.raises(RuntimeError, match=r"correct\(\) was called before begin"):
        agent.correct([0, 1])
    agent.begin([0, None])
    with pytest.raises(ValueError, match="component 0 is 1 by the late values; 0 steps ago it was seen as 0"):
        agent.correct([1, None])
    with pytest.raises(ValueError, match="steps_ago is 3; it must be a whole number between 0 and 2"):
        agent.correct([0, 1], steps_ago=3)
    forgets = Agent(Space((3, 2)), 2, Settings("mi-synthetic", K=4), seed=0)
    forgets.begin([0, None])
    with pytest.raises(ValueError, match="its setting lag is 0; late values need one above 0"):
        forgets.correct([0, 1])
    agent.correct([0, 1], steps_ago=2)
    for text, sentence in (
        ("late:3", "it names no mechanism whose values are late"),
        ("late:0,mcar:0.2", "steps of late is 0"),
        ("late:1.5,mcar:0.2", "'1.5' is neither a number of steps nor one with a share"),
        ("late:2/1.5,mcar:0.2", "arrives of late:2/1.5,mcar:0.2 is 1.5"),
        ("late:2,late:3,mcar:0.2", "the values of late:3,mcar:0.2 are late already"),
    ):
        with pytest.raises(ValueError, match=sentence):
            parse(text, 3)
    with pytest.raises(ValueError, match="the observation is a Box"):
        MissingObservation(gymnasium.make("CartPole-v1"), "late:2,mcar:0.3")
    with pytest.raises(ValueError, match="are late; wrap each sub-environment in MissingObservation"):
        VectorMissingObservation(gymnasium.make_vec("lacuna/Lake-v0", 2), "late:2,mcar:0.3")


def test_play_takes_them_in() -> None:
    mdp = make_world("lake")
    case = Settings("mi-available", K=5, lag=2)
    run = Run(mdp, parse("late:3,mcar:0.6", mdp), case, seed=2)
    run.advance(300)
    agent = Agent(mdp.space, mdp.n_actions, case, seed=2)
    play(MissingObservation(gymnasium.make("lacuna/Lake-v0"), "late:3,mcar:0.6"), agent, 300, seed=2)
    assert agent.Q.tobytes() == run.agent.Q.tobytes()
    check_mechanism(parse("late:3,mcar:0.6", mdp))


# --- the twin --------------------------------------------------------------------------------------------------------


def twin_of(agent: Agent) -> Remembering:
    case = agent.settings
    numbers: dict[str, Any] = {name: Numbers(agent.seed, name) for name in ("imputation", "exploration")}
    sizes, A, K = agent.space.sizes, agent.n_actions, case.pathways
    if agent.method.plans:
        kappa, budget = case.kappa or 0.0, case.budget or 0
        planner = NaivePlanner(
            sizes, A, K=K, gamma=case.gamma, epsilon=case.epsilon, kappa=kappa, budget=budget, look=case.look, **numbers
        )
        return Remembering(planner, case.lag)
    learner = NaiveLearner(
        sizes, A, method=case.method, K=K, alpha=case.alpha, gamma=case.gamma, epsilon=case.epsilon,
        p_shuffle=case.p_shuffle, kappa=case.rules.kappa, smoothing=case.rules.smoothing, cycles=case.rules.cycles,
        q_table=case.q_table, assumed=case.rules.assumed, evidence=str(case.sources.name).lower(), **numbers,
    )  # fmt: skip
    return Remembering(learner, case.lag)


@pytest.mark.parametrize("case", cases(3), ids=str)
def test_a_run_is_what_the_twin_makes_of_its_record(case: Settings) -> None:
    mdp = lake("episodic")
    for text in ("late:1,mcar:0.5", "late:3,mcar:0.7"):
        run = Run(mdp, parse(text, mdp), case, seed=SEED)
        trace, delay = run.record(160), run.mechanism.delay
        twin = twin_of(run.agent)
        first = [int(trace.state[0])]
        arrivals, seen = first, [mdp.dynamics.shown[first[0]]]
        twin.begin(with_none(seen[0]))
        for t, action in enumerate(trace.action.tolist()):
            terminated = bool(trace.ended[t]) and mdp.terminates
            arrivals, seen = [*arrivals, int(trace.arrival[t])], [*seen, trace.seen[t]]
            late = late_values(mdp, delay, arrivals, seen)
            if late is not None:
                twin.correct(late, delay - 1)
            twin.learn(action, float(trace.reward[t]), with_none(trace.seen[t]), terminated)
            rows = [_row(path, mdp.space, case.method) for path in twin.paths]
            assert rows == trace.pathways[t].tolist(), (text, t)
            if terminated or trace.truncated[t]:
                start = int(mdp.restart[trace.arrival[t]])
                arrivals = [next(iter(mdp.starts[start]))]
                seen = [mdp.dynamics.shown[arrivals[0]]]
                twin.begin(with_none(seen[0]))


@pytest.mark.parametrize("case", cases(2), ids=str)
def test_whatever_arrives_and_whenever_pathways_are_those_of_the_twin(case: Settings) -> None:
    """Parts of any state that is kept, of the first one too, several at a time; none of an earlier episode."""
    space, rng = Space((3, 2, 2)), np.random.default_rng(SEED)
    agent = Agent(space, 2, case, seed=SEED)
    twin = twin_of(agent)

    def some_of(state: NDArray[np.int64]) -> State:
        return with_none(np.where(rng.random(space.d) < 0.5, state, MISSING))

    states: list[NDArray[np.int64]] = []
    for _ in range(300):
        now = rng.integers(space.sizes)
        seen = some_of(now)
        if not states:
            agent.begin(seen)
            twin.begin(seen)
        else:
            action, reward, ended = int(rng.integers(2)), float(rng.integers(3)), bool(rng.random() < 0.2)
            agent.learn(reward, seen, ended, action=action)
            twin.learn(action, reward, seen, ended)
            if ended:
                states = []
                continue
        states.append(now)
        for steps_ago in rng.integers(case.lag + 1, size=2).tolist():
            # Of a state before the first of the episode anything may be said: it changes nothing.
            late = some_of(states[-1 - steps_ago] if steps_ago < len(states) else now)
            agent.correct(late, steps_ago=steps_ago)
            twin.correct(late, steps_ago)
        rows = [_row(path, space, case.method) for path in twin.paths]
        assert rows == (agent.memory.S - agent.memory.first).tolist()


def _row(path: Any, space: Space, method: str) -> int:
    if path is None:
        return -1
    if method == "missing-as-state":
        wider = Space(tuple(size + 1 for size in space.sizes))
        return wider.encode([size if v is None else v for v, size in zip(path, space.sizes, strict=True)])
    return space.encode(path)


# --- files and figures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [Settings("mi-planned", 3, budget=3, lag=3), Settings("last-observed", lag=2)], ids=str
)
def test_a_run_goes_on_where_it_was_saved(case: Settings, tmp_path: Path) -> None:
    mdp = lake("episodic")
    mechanism = parse("late:3/0.7,mcar:0.6", mdp)
    whole, parts = (Run(mdp, mechanism, case, seed=4) for _ in range(2))
    whole.advance(400)
    parts.advance(170)
    parts.save(tmp_path / "run")
    again = Run.load(tmp_path / "run", mdp, mechanism)
    again.advance(230)
    assert digest(again, again.record(30)) == digest(whole, whole.record(30))
    agent = Agent(mdp.space, mdp.n_actions, case, seed=1)
    agent.begin([7, 0, None])
    agent.learn(0.0, [None, 1, None], terminated=False, action=2)
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    for one in (agent, loaded):
        one.correct([None, None, 0], steps_ago=1)
    assert agent.pathways == loaded.pathways
    assert agent.to_parts()[0] == loaded.to_parts()[0]


def test_late_values_are_worth_something_and_less_than_seen_ones() -> None:
    """Over the last three quarters: with nothing hidden, the first thousands of steps go to trying what is untried."""
    mdp = make_world("lake")
    rewards = []
    for text, lag in (("mcar:0.8", 0), ("late:1,mcar:0.8", 1), ("none", 0)):
        found = []
        for seed in range(8):
            run = Run(mdp, parse(text, mdp), Settings("mi-planned", lag=lag), seed=seed)
            run.advance(3000)
            before = run.tally.sums[1]
            run.advance(9000)
            found.append((run.tally.sums[1] - before) / 9000)
        rewards.append(np.array(found))
    hidden, late, seen = rewards
    assert (late - hidden).mean() > 3 * (late - hidden).std(ddof=1) / np.sqrt(8)
    assert late.mean() < seen.mean()
