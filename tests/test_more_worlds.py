"""A machine, a person and a relay: their rules worked out by hand, and their optima."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from lacuna.agent.settings import Settings
from lacuna.checks import check_mechanism, check_world
from lacuna.kernels.space import Space
from lacuna.missingness import parse
from lacuna.missingness.self_report import self_report
from lacuna.run.run import Run
from lacuna.worlds.machine import machine
from lacuna.worlds.mdp import solve as solving
from lacuna.worlds.mdp.solve import evaluate, solve
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.mobile_health import mobile_health
from lacuna.worlds.relay import relay


def distribution(mdp: TabularMDP, s: int, a: int, *columns: int) -> dict[Any, float]:
    """Probabilities of the next values of some components, and of the reward (column -1)."""
    found: dict[Any, float] = {}
    for p, s_next, pays, _ in mdp.outcomes(s, a):
        values = (*mdp.space.decode(s_next), pays)
        key = tuple(values[j] for j in columns)
        found[key] = found.get(key, 0.0) + p
    return found


def value_of(mdp: TabularMDP, action: int, gamma: float) -> float:
    """What a fixed action is worth from the start."""
    (start,) = mdp.starts[0]
    return float(evaluate(mdp, np.full(mdp.n_states, action), gamma)[start])


# --- machine -------------------------------------------------------------------------------------------------------


def test_running_a_machine_pays_by_load_and_wear_and_wears_it_by_load() -> None:
    mdp = machine()
    worn = mdp.space.encode((3, 2, 0))
    # Heavy load: pays (1 + 2) (1 − 0.6²), wears with probability 0.3 · 1.5.
    assert distribution(mdp, worn, 0, 0, -1) == pytest.approx({(3, 1.92): 0.55, (4, 1.92): 0.45})
    assert distribution(mdp, worn, 0, 1) == pytest.approx({(2,): 0.8, (0,): 0.1, (1,): 0.1})
    # Wear 3 of 0 … 5 lies in the middle third, wear 4 in the last.
    assert distribution(mdp, worn, 0, 2) == pytest.approx(
        {(1,): 0.55 * 0.9 + 0.45 * 0.05, (2,): 0.45 * 0.9 + 0.55 * 0.05, (0,): 0.05}
    )
    broken = mdp.space.encode((5, 0, 2))
    assert distribution(mdp, broken, 0, 0, -1) == {(5, 0.0): pytest.approx(1.0)}


def test_service_takes_a_level_off_unless_it_is_broken_and_replacing_makes_it_new() -> None:
    mdp = machine()
    for wear, after in enumerate((0, 0, 1, 2, 3, 5)):
        s = mdp.space.encode((wear, 1, 1))
        assert distribution(mdp, s, 1, 0, -1) == {(after, -1.0): pytest.approx(1.0)}
        assert distribution(mdp, s, 2, 0, -1) == {(0, -4.0): pytest.approx(1.0)}
    assert np.flatnonzero(mdp.bad).tolist() == [
        mdp.space.encode((5, load, seen)) for load in range(3) for seen in range(3)
    ]


@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_a_machine_that_never_wears_is_run_for_ever(gamma: float) -> None:
    solution = solve(machine(wear=0.0), gamma)
    # The load forgets by a factor of 0.7 a step: its mean after t steps is 1 + 0.7^t (load − 1).
    values = solution.values.reshape(6, 3, 3)[0]
    expected = [2 / (1 - gamma) + (load - 1) / (1 - 0.7 * gamma) for load in range(3)]
    np.testing.assert_allclose(values, np.repeat(expected, 3).reshape(3, 3), rtol=1e-12)
    assert (solution.policy.reshape(6, 3, 3)[0] == 0).all()


def test_the_optimum_services_or_replaces_a_worn_machine_when_the_load_is_light() -> None:
    mdp = machine()
    solution = solve(mdp, 0.95)
    policy = solution.policy.reshape(6, 3, 3)
    assert (policy == policy[:, :, :1]).all()
    assert policy[:, :, 0].tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 2, 2], [2, 2, 2]]
    assert solution.start_value == pytest.approx(29.204, abs=1e-3)
    assert [value_of(mdp, a, 0.95) for a in range(3)] == pytest.approx([17.826, -20.0, -80.0], abs=1e-3)


# --- mobile health -------------------------------------------------------------------------------------------------


def active(time: int, activity: int, home: int, stress: int, burden: int) -> float:
    """P(active) after a prompt, as the docstring has it."""
    del time
    place, ease, patience = (0.4, 1.0)[home], (1, 0.6, -0.2)[stress], (1, 0.9, 0.6, 0.1)[burden]
    return min(max(0.1 + 0.1 * activity + 0.5 * place * ease * patience, 0.0), 1.0)


def test_the_chance_of_activity_and_the_reward_are_those_of_the_rules() -> None:
    mdp = mobile_health()
    assert mdp.space.sizes == (3, 3, 2, 3, 4)
    for s in range(mdp.n_states):
        values = mdp.space.decode(s)
        chance = active(*values)
        paid = distribution(mdp, s, 1, -1)
        assert paid.get((1.0,), 0.0) == pytest.approx(chance)
        assert distribution(mdp, s, 0, -1).get((1.0,), 0.0) == pytest.approx(0.1 + 0.1 * values[1])


def test_burden_rises_with_prompts_and_falls_without() -> None:
    mdp = mobile_health(fatigue=0.7, recovery=0.2)
    for burden in range(4):
        s = mdp.space.encode((1, 2, 0, 1, burden))
        up = {(burden + 1,): 0.7, (burden,): 0.3} if burden < 3 else {(3,): 1.0}
        down = {(burden - 1,): 0.2, (burden,): 0.8} if burden else {(0,): 1.0}
        assert distribution(mdp, s, 1, 4) == pytest.approx(up)
        assert distribution(mdp, s, 0, 4) == pytest.approx(down)


def test_a_step_in_the_afternoon_worked_out_by_hand() -> None:
    mdp = mobile_health()
    # Afternoon, medium activity, out, low stress, burden 2; a prompt: 0.2 + 0.5 · 0.4 · 1 · 0.6 = 0.32.
    s = mdp.space.encode((1, 1, 0, 0, 2))
    assert distribution(mdp, s, 1, 1, -1) == pytest.approx(
        {(2, 1.0): 0.32 * 0.7, (1, 1.0): 0.32 * 0.3, (0, 0.0): 0.68 * 0.5, (1, 0.0): 0.68 * 0.5}
    )
    assert distribution(mdp, s, 1, 0, 2) == pytest.approx({(2, 1): 0.4, (2, 0): 0.6})
    assert distribution(mdp, s, 1, 3) == pytest.approx({(1,): 0.4, (0,): 0.6})
    # Medium stress goes down with 0.5 of what does not go up if active, 0.3 if not.
    tense = mdp.space.encode((0, 1, 0, 1, 0))
    assert distribution(mdp, tense, 0, 3, -1) == pytest.approx({
        (2, 1.0): 0.2 * 0.1, (0, 1.0): 0.2 * 0.45, (1, 1.0): 0.2 * 0.45,
        (2, 0.0): 0.8 * 0.1, (0, 0.0): 0.8 * 0.27, (1, 0.0): 0.8 * 0.63,
    })  # fmt: skip


def test_when_to_prompt_depends_on_stress_burden_and_place() -> None:
    mdp = mobile_health()
    solution = solve(mdp, 0.95)
    prompts = solution.policy.reshape(mdp.space.sizes)
    assert not prompts[..., 2, :].any()
    assert not prompts[..., 3].any()
    assert prompts[:, :, :, 0, 0].all()
    home, out = prompts[:, :, 1], prompts[:, :, 0]
    assert home[:, :, 0, 1].all()
    assert not out[..., 1:].any()
    assert solution.start_value == pytest.approx(6.588, abs=1e-3)
    assert [value_of(mdp, a, 0.95) for a in (0, 1)] == pytest.approx([2.420, 4.601], abs=1e-3)
    assert home[:, :, 0, 2].tolist() == [[0, 1, 0]] * 3


def long_run(mdp: TabularMDP, policy: Any) -> float:
    """Reward per step in the long run, from the stationary distribution."""
    n = mdp.n_states
    row = np.repeat(np.arange(n * mdp.n_actions), np.diff(mdp.ptr))
    taken = policy[row // mdp.n_actions] == row % mdp.n_actions
    here, p = row[taken] // mdp.n_actions, mdp.probability[taken]
    P = np.zeros((n, n))
    np.add.at(P, (here, mdp.next_state[taken]), p)
    r = np.bincount(here, p * mdp.reward[taken], minlength=n)
    balance = np.vstack([(np.eye(n) - P).T, np.ones(n)])
    share = np.linalg.lstsq(balance, np.append(np.zeros(n), 1.0), rcond=None)[0]
    return float(share @ r)


def test_in_the_long_run_the_best_policy_beats_what_does_not_look_at_the_burden() -> None:
    mdp = mobile_health()
    assert long_run(mdp, solve(mdp, 0.95).policy) == pytest.approx(0.294, abs=5e-4)
    assert [long_run(mdp, np.full(216, a)) for a in (0, 1)] == pytest.approx([0.125, 0.133], abs=5e-4)
    _, _, home, stress, _ = np.unravel_index(np.arange(216), mdp.space.sizes)
    rules = (np.reshape(rule, (2, 3))[home, stress] for rule in product((0, 1), repeat=6))
    assert max(long_run(mdp, rule) for rule in rules) == pytest.approx(0.263, abs=5e-4)


# --- relay ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_each_component_of_a_relay_follows_its_drivers(noise: float) -> None:
    mdp = relay(values=2, noise=noise)
    for s, a in product(range(mdp.n_states), range(2)):
        x = mdp.space.decode(s)
        told = (x[0], x[1], x[2], x[3], (x[4] + x[2]) % 2, (x[6] + a) % 2, (x[6] + x[5]) % 2)
        found = distribution(mdp, s, a, 0, 1, 2, 3, 4, 5, 6, 7, -1)
        pays = float(told[-1] == 0)
        expected = {((x[0] + 1) % 2, *told, pays): 1 - noise / 2, (x[0], *told, pays): noise / 2}
        assert found == pytest.approx({key: p for key, p in expected.items() if p > 0})


@pytest.mark.parametrize("values", [2, 3, 4])
def test_the_optimum_of_a_relay_is_the_one_in_closed_form(values: int) -> None:
    mdp, gamma = relay(values), 0.9
    solution = solve(mdp, gamma)
    *_, second, _, fourth, total, dial, _ = np.unravel_index(np.arange(mdp.n_states), mdp.space.sizes)
    np.testing.assert_allclose(solution.values, ((dial + total) % values == 0) + gamma / (1 - gamma), atol=1e-10)
    assert (solution.policy == -(dial + fourth + second) % values).all()


def test_a_large_world_has_the_same_values_iterated_as_factored(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = machine()
    factored = solve(mdp, 0.95), evaluate(mdp, np.zeros(mdp.n_states, dtype=np.int64), 0.95)
    monkeypatch.setattr(solving, "_LARGE", 10)
    iterated = solve(mdp, 0.95), evaluate(mdp, np.zeros(mdp.n_states, dtype=np.int64), 0.95)
    np.testing.assert_allclose(iterated[0].values, factored[0].values, rtol=2e-12)
    np.testing.assert_allclose(iterated[1], factored[1], rtol=2e-12)
    assert (iterated[0].policy == factored[0].policy).all()
    assert (solve(mdp, 0.0).values == solve(mdp, 0.0).q.max(axis=1)).all()


# --- what a world and a mechanism refuse, and their contracts --------------------------------------------------------


@pytest.mark.parametrize("mdp", [machine(4, 0.5, 0.0), mobile_health(1.0, 1.0, 0.0), relay(2), relay(3, 0.0)])
def test_other_parameters_keep_the_contract(mdp: TabularMDP) -> None:
    check_world(mdp)


@pytest.mark.parametrize(("build", "wrong", "sentence"), [
    (machine, {"levels": 2}, "levels is 2"), (machine, {"wear": 0.7}, "wear is 0.7"),
    (machine, {"noise": 2}, "noise is 2"),
    (mobile_health, {"effect": -0.1}, "effect is -0.1"), (mobile_health, {"fatigue": 1.5}, "fatigue is 1.5"),
    (mobile_health, {"recovery": float("nan")}, "recovery is nan"),
    (relay, {"values": 1}, "values is 1"), (relay, {"values": 6}, "values is 6"), (relay, {"noise": -1}, "noise is -1"),
])  # fmt: skip
def test_parameters_out_of_range_are_refused(build: Any, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        build(**wrong)


PERSON = mobile_health()


def test_answers_go_missing_together_and_with_the_burden() -> None:
    rates, sensors = (0.1, 0.3, 0.6, 0.9), 0.2
    made = parse("self-report:0.1/0.3/0.6/0.9,0.2", PERSON)
    assert (made.label, made.name) == ("NMAR", "self-report:0.1/0.3/0.6/0.9,0.2")
    check_mechanism(made)
    run = Run(PERSON, made, Settings("last-observed", gamma=0.95, epsilon=1.0), seed=1, first_observed=False)
    trace = run.record(20_000)
    time, activity, home, stress, burden = (trace.seen < 0).T
    assert not time.any()
    assert (stress == burden).all()
    assert binom.cdf(activity.sum(), 20_000, sensors) == pytest.approx(0.5, abs=0.499)
    assert binom.cdf(home.sum(), 20_000, sensors) == pytest.approx(0.5, abs=0.499)
    true = trace.arrival % 4
    for value, rate in enumerate(rates):
        met = true == value
        assert met.sum() > 500
        assert binom.cdf(stress[met].sum(), met.sum(), rate) == pytest.approx(0.5, abs=0.4995)


def test_one_rate_for_every_burden_is_mcar_and_wrong_texts_are_refused() -> None:
    assert parse("self-report:0.3", PERSON).label == "MCAR"
    assert parse("self-report:0.0/0.0/0.0/0.5", PERSON).name == "self-report:0.0/0.0/0.0/0.5"
    for text, sentence in (
        ("self-report:0.1/0.2", "self-report has 2 rates; burden has 4 values"),
        ("self-report:1.5", "the rates of self-report is 1.5"),
        ("self-report:0.1,2", "sensors of self-report is 2"),
    ):
        with pytest.raises(ValueError, match=sentence):
            parse(text, PERSON)
    with pytest.raises(ValueError, match="self-report needs a component called 'stress'; there are mood, burden"):
        self_report(Space((2, 2), ("mood", "burden")), 0.1)
