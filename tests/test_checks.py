"""The contracts pass on what is right, and name the cause on what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lacuna.checks import CheckFailedError, check_mechanism, check_world, worlds
from lacuna.kernels.space import Space
from lacuna.missingness import Mechanism, bursts, mcar
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.mdp.tabular_env import TabularEnv
from lacuna.worlds.registry import WORLDS, make_world
from lacuna.wrappers.cover import Cover
from test_missingness import every_mechanism


def test_all_worlds_are_there() -> None:
    assert len(WORLDS) == 13


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_keeps_the_contract(name: str) -> None:
    check_world(make_world(name))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("continuing", [False, True])
def test_lake_world_keeps_the_contract_either_way(seed: int, continuing: bool) -> None:
    check_world(make_world("lake", continuing=continuing), seed=seed)


@pytest.mark.parametrize("kind", every_mechanism())
def test_every_mechanism_keeps_the_contract(kind: str) -> None:
    check_mechanism(every_mechanism()[kind])


def coin(**options: Any) -> TabularMDP:
    """A fair coin, shown as it fell; heads may end the game."""
    settings: dict[str, Any] = {"starts": [{0: 1.0}], "space": Space((2,)), "shows": [0, 1], "n_actions": 1} | options
    tosses = [(0.5, 0, 0.0, False), (0.5, 1, 1.0, True)]
    return TabularMDP.build({0: {0: tosses}, 1: {0: tosses}}, **settings)


def tamper(mdp: Any, what: str, value: Any) -> None:
    """Change a frozen object behind its back."""
    object.__setattr__(mdp, what, value)


def test_a_coin_keeps_the_contract() -> None:
    check_world(coin())


def test_arrays_that_are_no_world_are_found() -> None:
    mdp = coin()
    tamper(mdp, "probability", mdp.probability * 0.9)
    with pytest.raises(CheckFailedError, match=r"arrays of world are not a world: .*add up to 0.9"):
        check_world(mdp)


def test_a_state_without_a_way_out_is_found() -> None:
    trap = TabularMDP.build(
        {0: {0: [(0.5, 1, 0.0, False), (0.5, 2, 0.0, True)]}, 1: {0: [(1.0, 1, 0.0, False)]},
         2: {0: [(1.0, 2, 0.0, False)]}},
        space=Space((3,)), shows=[0, 1, 2], n_actions=1, starts=[{0: 1.0}],
    )  # fmt: skip
    # State 2 is where the game ended: nobody goes on from there, so it is no trap.
    with pytest.raises(CheckFailedError, match=r"no end can be reached from state 1 of world \(1 such states\)"):
        check_world(trap)
    check_world(replace(trap, max_steps=10))
    check_world(replace(trap, terminates=False))


def test_frequencies_that_do_not_fit_the_table_are_found() -> None:
    mdp = coin()
    tamper(mdp, "dynamics", mdp.dynamics._replace(cumulative=np.array([0.52, 1.0, 0.5, 1.0])))
    with pytest.raises(CheckFailedError, match="state 0, action 0 of world went to state"):
        check_world(mdp)


def test_a_start_in_the_wrong_place_is_found() -> None:
    mdp = coin(starts=[{0: 1.0}, {1: 1.0}], restart=np.array([0, 1]))
    check_world(mdp)
    tamper(mdp, "dynamics", mdp.dynamics._replace(start_state=np.array([0, 0])))
    with pytest.raises(CheckFailedError, match=r"started in state 0, which is not among those of start 1: \[1\]"):
        check_world(mdp)


def test_a_wrong_observation_is_found() -> None:
    mdp = coin()
    tamper(mdp, "dynamics", mdp.dynamics._replace(shown=np.array([[1], [1]])))
    with pytest.raises(CheckFailedError, match=r"showed \[1\] in state 0; `shows` says 0"):
        check_world(mdp)


class Chatty(TabularEnv):
    """Tells the truth to anyone."""

    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        return *rest, info | {"state": self.true_state}


class Moody(TabularEnv):
    """Draws numbers of its own."""

    mood = np.random.default_rng(0)

    def step(self, action: Any) -> Any:
        shown, reward, *rest = super().step(action)
        return shown, reward + float(self.mood.random()), *rest


@pytest.mark.parametrize(("env", "sentence"), [
    (Chatty, r"the info of world holds \['episode_ended', 'state'\]"),
    (Moody, "Gymnasium's checker refuses world|took two paths from seed 0"),
])  # fmt: skip
def test_an_environment_that_misbehaves_is_found(env: Any, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "TabularEnv", env)
    with pytest.raises(CheckFailedError, match=sentence):
        check_world(coin())


def test_arrays_that_are_no_mechanism_are_found() -> None:
    mechanism = mcar(3, 0.4)
    tamper(mechanism, "rates", np.full((1, 1, 1, 3), 1.4))
    with pytest.raises(CheckFailedError, match=r"arrays of mcar:0.4 are not a mechanism: .* is 1.4"):
        check_mechanism(mechanism)


def test_rates_that_do_not_fit_the_table_are_found() -> None:
    mechanism = mcar(3, 0.4)
    tamper(mechanism, "hiding", mcar(3, (0.4, 0.41, 0.4)).hiding)
    with pytest.raises(CheckFailedError, match=r"mcar:0.4 hid x1 .* although its rate is 0.4"):
        check_mechanism(mechanism)


def test_a_chain_that_does_not_fit_its_matrix_is_found() -> None:
    mechanism = bursts(3, 0.2, 0.3)
    tamper(mechanism, "hiding", bursts(3, 0.22, 0.3).hiding)
    with pytest.raises(CheckFailedError, match=r"the chain of bursts:0.2,0.3 went from mode 0"):
        check_mechanism(mechanism)


class Greedy(Mechanism):
    """Says that a mask needs fewer numbers than it uses."""

    @property
    def n_draws(self) -> int:
        """Not true."""
        return 1


def test_a_wrong_count_of_numbers_is_found() -> None:
    with pytest.raises(CheckFailedError, match="n_draws says 1 each, so paired runs would drift apart"):
        check_mechanism(Greedy(Space((2, 2)), np.full((1, 1, 1, 2), 0.5)))


def test_a_leak_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(self: Cover, observation: Any, mask: Any) -> Any:
        return {"values": np.array(observation), "mask": mask}

    monkeypatch.setattr(Cover, "_encode", leaky)
    with pytest.raises(CheckFailedError, match="hides where they differ"):
        check_mechanism(mcar(Space((3, 3)), 0.5))
