"""Pathways with models of their own (mi-separate), and with Q tables of their own (`q_table`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import lacuna
from lacuna.agent import savefile
from lacuna.agent.agent import Agent
from lacuna.agent.learned import table_bytes
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import LATER, SETTINGS, UPDATES, VOTES, Settings
from lacuna.kernels.space import Space
from lacuna.missingness import mcar, none
from lacuna.run.run import Run
from lacuna.trial.engine import snapshot
from lacuna.trial.engine.replay import begin_state
from lacuna.trial.file.numbers import Numbers
from lacuna.trial.log.chained_log import check
from lacuna.wrappers.imputed import ImputedObservation
from problems import READINGS, digest, lake, mechanisms
from saved import body_of, refused
from test_edited_files import edited, put
from test_laws import plain_q_learning
from trial_cases import begun, state_bytes, trial_file

VOTING = [method.name for method in METHODS.values() if method.votes]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("vote", VOTES)
def test_the_separate_model_of_one_pathway_is_that_of_mi_synthetic_to_the_bit(vote: str, reading: str) -> None:
    mdp = lake(reading)
    ours = Settings("mi-separate", 1, 0.3, 0.9, 0.1, vote, optimism=0.2)  # type: ignore[arg-type]
    for mechanism in mechanisms(mdp).values():
        runs = [Run(mdp, mechanism, case, seed=2) for case in (ours, replace(ours, method="mi-synthetic"))]
        assert len({digest(run, run.record(300)) for run in runs}) == 1


@pytest.mark.parametrize("method", VOTING)
def test_the_own_table_of_one_pathway_is_the_shared_one_to_the_bit(method: str) -> None:
    mdp = lake("episodic")
    for vote, update in zip(VOTES, (*UPDATES, "sequential"), strict=True):
        own = Settings(method, 1, 0.3, 0.9, 0.1, vote, update, 0.5, optimism=0.2, q_table="own")
        runs = [Run(mdp, mcar(mdp.space, 0.4), case, seed=2) for case in (own, replace(own, q_table="shared"))]
        assert len({digest(run, run.record(1000)) for run in runs}) == 1


def test_more_pathways_with_models_or_tables_of_their_own_are_something_else() -> None:
    mdp = lake("episodic")
    cases = [Settings(method, 3, gamma=0.9, q_table=own) for method in ("mi-synthetic", "mi-separate")
             for own in ("shared", "own")]  # fmt: skip
    runs = [Run(mdp, mcar(mdp.space, 0.4), case, seed=2) for case in cases]
    assert len({digest(run, run.record(500)) for run in runs}) == 4


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("method", VOTING)
def test_with_nothing_hidden_every_own_table_is_that_of_q_learning_at_alpha_to_the_bit(
    method: str, reading: str
) -> None:
    mdp = lake(reading)
    for update in UPDATES:
        case = Settings(method, 3, 0.6, 0.9, 0.2, update=update, p_shuffle=0.5, q_table="own")
        run = Run(mdp, none(mdp.space), case, seed=2)
        trace = run.record(1000)
        tables = run.agent.memory.Q.reshape(3, -1, mdp.n_actions)
        expected = plain_q_learning(mdp, trace, 0.6, 0.9)
        assert all(np.array_equal(table, expected) for table in tables)
        np.testing.assert_allclose(run.agent.Q, expected, rtol=1e-15)


def test_each_model_counts_every_step_once() -> None:
    mdp = lake("episodic")
    run = Run(mdp, mcar(mdp.space, 0.5), Settings("mi-separate", 4, epsilon=0.3, p_shuffle=0.3), seed=1)
    run.advance(2000)
    arrays, size = run.agent.model.to_arrays(), mdp.space.n_states * mdp.n_actions
    whose = np.repeat(arrays["keys"] // size, arrays["lengths"])
    assert np.bincount(whose, arrays["units"]).tolist() == [2000.0] * 4
    assert sum(run.agent.counts.values()) == pytest.approx(2000)
    # They were taught different guesses.
    rows = [set(arrays["keys"][arrays["keys"] // size == k] % size) for k in range(4)]
    assert len({frozenset(found) for found in rows}) == 4


def test_a_pathway_learns_nothing_from_the_guesses_of_others() -> None:
    # One pathway is put into another state. What the others have and do is the same as before.
    case = Settings("mi-separate", 3, 0.5, 0.9, epsilon=1.0, q_table="own")
    agents = [Agent(Space((4, 3)), 2, case, seed=1) for _ in range(2)]
    for agent in agents:
        agent.begin([0, 0])
    rng = np.random.default_rng(0)
    for t in range(300):
        if t == 20:
            memory = agents[1].memory
            memory.C[1] = memory.C[1] ^ 1
            memory.S[1] = memory.first[1] + (memory.S[1] - memory.first[1]) // 3 * 3 + (memory.C[1] & 1)
        reward, seen = float(rng.normal()), [None if rng.random() < 0.6 else int(rng.integers(n)) for n in (4, 3)]
        for agent in agents:
            agent.act()
            agent.learn(reward, seen, terminated=False)
        assert [agents[0].pathways[k] for k in (0, 2)] == [agents[1].pathways[k] for k in (0, 2)]
    tables = [agent.memory.Q.reshape(3, -1) for agent in agents]
    assert [np.array_equal(a, b) for a, b in zip(*tables, strict=True)] == [True, False, True]


def test_the_values_of_an_agent_are_the_mean_over_its_tables() -> None:
    agent = Agent(Space((2,)), 2, Settings("mi-synthetic", 2, q_table="own"))
    agent.memory.Q[:] = [[1, 2], [3, 4], [5, 0], [7, 8]]
    assert agent.Q.tolist() == [[3, 1], [5, 6]]
    agent.begin([0])
    # Each votes by its own table.
    assert agent.probabilities().tolist() == [0.5, 0.5]
    assert "best action" in agent._repr_html_()


def test_a_file_holds_states_and_they_are_checked(tmp_path: Path) -> None:
    agent = Agent(Space((3, 2)), 2, Settings("mi-separate", 3, q_table="own", optimism=0.2), seed=1)
    agent.begin([2, None])
    for t in range(30):
        agent.act()
        agent.learn(1.0, [t % 3, None], terminated=False)
    _, arrays = agent.to_parts()
    assert [agent.space.decode(s) for s in arrays["S"].tolist()] == list(agent.pathways)
    agent.save(tmp_path / "a")
    loaded = Agent.load(tmp_path / "a")
    assert (loaded.pathways, loaded.memory.S.tolist()) == (agent.pathways, agent.memory.S.tolist())
    assert loaded.memory.finished.tolist() == agent.memory.finished.tolist()
    assert loaded.memory.finished.any()
    (tmp_path / "x").write_bytes(edited(body_of(agent), put("S", 1, value=6)))
    assert "S holds 6; it must be between 0 and 5" in refused(tmp_path / "x")
    (tmp_path / "x").write_bytes(edited(body_of(agent), put("tried", 0, value=2)))
    assert "tried holds 2; it must be between 1 and 1" in refused(tmp_path / "x")


def test_memory_is_asked_for_by_the_table_and_by_the_model() -> None:
    space = Space((1000, 100))
    one, models, both = (
        table_bytes(space, 4, case)
        for case in (
            Settings("mi-synthetic", 7), Settings("mi-separate", 7), Settings("mi-separate", 7, q_table="own"),
        )
    )  # fmt: skip
    assert models - one == 6 * 4 * 4 * 100_000
    assert both - models == 6 * 8 * 4 * 100_000
    with pytest.raises(ValueError, match=r"mi-synthetic for 100000 states .* 2 GB"):
        Agent(space, 4, Settings("mi-synthetic", 1000, q_table="own"), max_memory="2 GB")


@pytest.mark.parametrize("method", ["mi-synthetic", "mi-separate"])
def test_other_learners_see_the_pathways_not_the_rows(method: str) -> None:
    seen = []
    for own in ("shared", "own"):
        hidden = lacuna.MissingObservation(gymnasium.make("lacuna/Lake-v0"), "mcar:0.5")
        env = ImputedObservation(hidden, Settings(method, 5, q_table=own), show="mode")
        env.reset(seed=1)
        seen.append([env.step(t % 8)[0].tolist() for t in range(60)])
    assert seen[0] == seen[1]


# --- in a trial ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["batch", "each"])
def test_a_trial_goes_on_from_its_snapshot(update: str) -> None:
    case = Settings("mi-separate", 3, 0.5, 0.9, optimism=0.2, p_shuffle=0.3, q_table="own")
    trial = begun(trial_file(case, trial=f'update = "{update}"'))
    trial.enrol("ada")
    for t in range(12):
        trial.decide("ada", t, {"time": t % 2, "home": None, "mood": None if t % 3 else 1})
        trial.outcome("ada", t, float(t))
    trial.update()
    (pool,) = trial.state.pools.values()
    n = trial.state.space.n_states
    assert (trial.state.places.standing.S[0] // n).tolist() == [0, 1, 2]
    assert (trial.state.ledger.steps.S[:12] < n).all()
    assert all((table != 0).any() for table in pool.tables.memory.Q.reshape(3, n, -1))
    again = begin_state(check(trial.store.entry(0)), trial.secret.draws_key)
    snapshot.from_bytes(state_bytes(trial.state), "the snapshot", again)
    assert state_bytes(again) == state_bytes(trial.state)
    assert np.array_equal(again.places.standing.C[:1], trial.state.places.standing.C[:1])
    header, arrays = savefile.decode("it", state_bytes(trial.state), snapshot.FORM, "refuse")
    arrays["place_S"][0, 1] = 0
    with pytest.raises(savefile.SaveFileError, match="has begun has no pathways"):
        snapshot.from_bytes(
            savefile.encode(snapshot.FORM, header, arrays), "it", begin_state(check(trial.store.entry(0)),
                                                                       trial.secret.draws_key)
        )  # fmt: skip


def test_a_log_from_before_these_settings_is_read() -> None:
    file = trial_file(Settings("mi-synthetic", 3))
    written = Numbers.of(file).written
    older = {name: value for name, value in written.items() if name not in LATER}
    assert Numbers.read(older, file) == Numbers.read(written, file) == Numbers.of(file)
    with pytest.raises(ValueError, match="the numbers of the trial are"):
        Numbers.read({name: value for name, value in written.items() if name != "rate"}, file)


def test_a_file_from_before_these_settings_is_read(tmp_path: Path) -> None:
    agent = Agent(Space((3, 2)), 2, Settings("mi-synthetic", 3), seed=1)
    header, _ = agent.to_parts()
    assert list(LATER) == ["cycles", "q_table", "assumed", "evidence", "look", "lag"]
    assert [*header["settings"], *LATER] == ["method", *SETTINGS]
    agent.save(tmp_path / "a")
    assert Agent.load(tmp_path / "a").settings == agent.settings
    for case in (Settings("mi-chained", 3, cycles=2, q_table="own"), Settings("carry-default", assumed=0.0)):
        Agent(Space((3, 2)), 2, case).save(tmp_path / case.method)
        assert Agent.load(tmp_path / case.method).settings == case
    (tmp_path / "x").write_bytes(edited(body_of(agent), put("settings", "q_table", value="none")))
    assert "q_table is 'none'; it must be one of shared, own" in refused(tmp_path / "x")
