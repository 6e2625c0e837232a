"""What came with arrivals as evidence: equal to its twin, silent where it says nothing, and true where it speaks."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
import pytest

from lacuna import Problem
from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS, NAMED, EvidenceSource
from lacuna.agent.models.arrivals import kept_of
from lacuna.agent.models.evidence import LEAST_WEIGHT
from lacuna.agent.settings import EVIDENCE, Settings
from lacuna.kernels.space import Space
from lacuna.missingness import Mechanism, by_true_state, parse
from lacuna.run.run import Run
from lacuna.worlds.mdp.tabular import TabularMDP
from naive_evidence import NaiveEvidence, Pattern, State
from problems import lake
from test_planning import followed
from test_twin import compare, follow, twin_of

WEIGHED = [method.name for method in METHODS.values() if method.weighs]
VOTING = [name for name in WEIGHED if not METHODS[name].plans]


def foggy(mdp: TabularMDP, column: int, rate: float) -> Mechanism:
    """Fog in all columns from this one on."""
    columns = np.array([mdp.space.decode(int(s))[1] for s in mdp.shows])
    return by_true_state(mdp, np.where(columns >= column, rate, 0.0)[:, None] * np.ones(3))


def settings(method: str, evidence: Any = "usual", **more: Any) -> Settings:
    more |= {"budget": 3} if METHODS[method].plans else {}
    return Settings(method, 4, gamma=0.9, evidence=evidence, **more)


def same_evidence(twin: NaiveEvidence, agent: Agent) -> None:
    """The tables of the twin are those of the agent."""
    table, space = agent.tables.evidence, agent.space
    assert table is not None
    masks = space.layout.masks

    def row(state: State) -> int:
        return space.encode([value for value in state if value is not None])

    def code(pattern: Pattern) -> int:
        return int(sum(mask for mask, hidden in zip(masks, pattern, strict=True) if not hidden))

    assert agent.tables.arrivals is not None
    counts = agent.tables.arrivals.patterns.to_arrays()
    cells = zip(np.repeat(counts["keys"], counts["lengths"]), counts["codes"], counts["units"], strict=True)
    found = {(int(key), int(m)): int(n) for key, m, n in cells}
    wanted = {(row(s), code(m)): there.count(m) for s, there in twin.foretold.items() for m in there}
    wanted |= {(space.n_states, code(m)): twin.seen.count(m) for m in twin.seen}
    assert found == wanted
    assert table.weight[0] == pytest.approx(twin.odds, rel=1e-9)
    if twin.uses_outcomes and not agent.method.plans:
        assert table.known.tolist() == [len(twin.outcomes), twin.steps]
        known = [[reward, ended, n] for (reward, ended), n in twin.outcomes.items()]
        assert table.outcomes[: len(known)].tolist() == known
        for (s, outcome), n in twin.told.items():
            assert table.told[row(s), list(twin.outcomes).index(outcome)] == n
        for s, weight in twin.arrived.items():
            assert table.arrived[row(s)] == weight


@pytest.mark.parametrize("evidence", ["outcomes", "patterns", "all"])
@pytest.mark.parametrize("method", VOTING)
def test_pathways_are_weighed_as_the_twin_weighs_them(method: str, evidence: str) -> None:
    mdp = lake("episodic")
    run = Run(mdp, foggy(mdp, 2, 0.8), settings(method, evidence, epsilon=1.0), seed=2)
    trace = run.record(1200)
    twin, imputation, _ = twin_of(run)
    follow(twin, run, trace)
    compare(twin, run)
    same_evidence(twin.evidence, run.agent)
    assert imputation.used == run.agent.imputation.position
    # The case shows what it is to show: patterns have become evidence.
    assert (twin.evidence.odds > exp(10)) == (evidence != "outcomes")


@pytest.mark.parametrize("evidence", ["patterns", "all", "observed"])
def test_a_planner_weighs_its_pathways_as_the_twin_does(evidence: str) -> None:
    mdp = lake("episodic")
    run = Run(mdp, foggy(mdp, 2, 0.8), settings("mi-planned", evidence, epsilon=1.0), seed=2)
    twin = followed(run, 900)
    if evidence != "observed":
        same_evidence(twin.evidence, run.agent)
        assert twin.evidence.odds > exp(10)
    assert bool(twin.outcomes) == (evidence == "all")


# --- laws ------------------------------------------------------------------------------------------------------------


def one_price(terminates: bool) -> TabularMDP:
    """A world that pays the same everywhere, and never ends."""
    space = Space((3, 3))

    def outcomes(s: int, a: int) -> list[tuple[float, int, float, bool]]:
        return [(0.7, (s + a + 1) % 9, -1.0, False), (0.3, (s * 2) % 9, -1.0, False)]

    return TabularMDP.build(
        outcomes, space=space, shows=range(9), n_actions=2, starts=[{0: 1.0}], terminates=terminates, name="one price"
    )


def left_by(mdp: TabularMDP, mask: str, case: Settings, steps: int = 2000) -> tuple[Any, ...]:
    run = Run(mdp, parse(mask, mdp), case, seed=5)
    trace = run.record(steps)
    return (*(part.tobytes() for part in trace), run.agent.Q.tobytes(), run.agent.imputation.position)


@pytest.mark.parametrize("method", VOTING)
def test_rewards_that_say_nothing_change_nothing(method: str) -> None:
    mdp = one_price(terminates=False)
    quiet, loud = (left_by(mdp, "mcar:0.5", settings(method, evidence)) for evidence in ("observed", "outcomes"))
    assert quiet == loud
    # Where the price depends on the state, it does change something.
    mdp = lake("episodic")
    quiet, loud = (left_by(mdp, "mcar:0.5", settings(method, evidence)) for evidence in ("observed", "outcomes"))
    assert quiet != loud


@pytest.mark.parametrize("method", WEIGHED)
@pytest.mark.parametrize("mask", ["none", "patterns:011=1.0"])
def test_a_single_pattern_says_nothing(method: str, mask: str) -> None:
    mdp = lake("episodic")
    silent = "outcomes" if METHODS[method].plans else "observed"
    loud = "all" if METHODS[method].plans else "patterns"
    assert left_by(mdp, mask, settings(method, silent)) == left_by(mdp, mask, settings(method, loud))


@pytest.mark.parametrize("method", WEIGHED)
@pytest.mark.parametrize("mask", ["mcar:0.2", "whole:0.3", "bursts:0.1,0.3"])
def test_patterns_that_do_not_depend_on_states_change_nothing(method: str, mask: str) -> None:
    mdp = lake("episodic")
    silent = "outcomes" if METHODS[method].plans else "observed"
    loud = "all" if METHODS[method].plans else "patterns"
    case = settings(method, loud, epsilon=0.2)
    run = Run(mdp, parse(mask, mdp), case, seed=5)
    trace = run.record(3000)
    table = run.agent.tables.evidence
    assert table is not None
    # Not by chance alone: states were found to be of no use.
    assert LEAST_WEIGHT <= table.weight[0] < 0.01
    quiet = Run(mdp, parse(mask, mdp), settings(method, silent, epsilon=0.2), seed=5)
    assert [a.tobytes() for a in quiet.record(3000)] == [a.tobytes() for a in trace]


@pytest.mark.parametrize("method", WEIGHED)
def test_the_usual_evidence_is_that_of_the_method(method: str) -> None:
    mdp = lake("episodic")
    usual = METHODS[method].evidence
    assert usual == {"mi-planned": EvidenceSource.OUTCOMES, "mi-masked": EvidenceSource.PATTERNS}.get(
        method, EvidenceSource.OBSERVED
    )
    assert usual.name is not None
    named = settings(method, usual.name.lower())
    assert left_by(mdp, "mfog:0.5,0.1", settings(method), 400) == left_by(mdp, "mfog:0.5,0.1", named, 400)


def test_only_methods_that_draw_from_a_model_of_their_own_have_evidence() -> None:
    assert {name for name in METHODS if name.startswith("mi-")} == {*WEIGHED}
    for name in NAMED:
        if name not in WEIGHED:
            assert kept_of(Settings(name)) == EvidenceSource.OBSERVED
            with pytest.raises(ValueError, match=f"evidence is all, but {name} has no such setting"):
                Settings(name, evidence="all")
    with pytest.raises(ValueError, match="evidence is 'rewards'"):
        Settings("mi-masked", evidence="rewards")  # type: ignore[arg-type]
    for name in EVIDENCE[1:]:
        assert Settings("mi-masked", evidence=name).sources == EvidenceSource[name.upper()]


def test_in_fog_the_pattern_tells_where_one_is() -> None:
    found = {}
    for case in (Settings("mi-available", epsilon=1.0), Settings("mi-masked", epsilon=1.0)):
        problem = Problem.named("lake", "mfog:0.5,0.0")
        run = Run(problem.mdp, problem.mechanism, case, seed=1)
        run.advance(20_000)
        found[case.method] = run.figures()["weight_on_truth"]
    # Same actions, hence the same states and masks; .69 and .74 on average, each within .01.
    assert found["mi-masked"] > found["mi-available"] + 0.02


def test_fog_is_learned_where_it_is() -> None:
    mdp = lake("episodic")
    run = Run(mdp, foggy(mdp, 5, 0.5), Settings("mi-masked", epsilon=1.0), seed=1)
    run.advance(20_000)
    assert run.agent.tables.arrivals is not None
    share = np.full(mdp.space.n_states, np.nan)
    counts = run.agent.tables.arrivals.patterns.to_arrays()
    rows, complete = np.repeat(counts["keys"], counts["lengths"]), counts["codes"] == mdp.space.layout.masks.sum()
    for s in range(mdp.space.n_states):
        here = rows == s
        if counts["units"][here].sum() > 50:
            share[s] = counts["units"][here & complete].sum() / counts["units"][here].sum()
    column = np.array([mdp.space.decode(s)[1] for s in range(192)])
    # Complete with probability 1/8 in fog and 1 outside; a little blurred, for states are foretold, not seen.
    assert np.nanmean(share[column >= 6]) < 0.35
    assert np.nanmean(share[column <= 3]) > 0.95
