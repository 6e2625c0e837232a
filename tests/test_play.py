"""The plain loop: in chunks as in one go, and clear about what it cannot do."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from lacuna import MissingObservation
from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS
from lacuna.agent.settings import Settings
from lacuna.run.play import play
from sentences import one_sentence


def wrapped() -> MissingObservation:
    return MissingObservation(gymnasium.make("lacuna/FrozenLake-v0"), "mcar:0.3", first_observed=False)


def player(method: str = "mi-synthetic") -> Agent:
    return Agent(wrapped().space, 4, Settings(method, gamma=0.9, epsilon=0.2), seed=3)


def state_of(agent: Agent) -> tuple[Any, dict[str, bytes]]:
    header, arrays = agent.to_parts()
    return header, {name: array.tobytes() for name, array in arrays.items()}


@given(chunks=st.lists(st.integers(0, 60), min_size=1, max_size=5), method=st.sampled_from(list(METHODS)))
@effort(max_examples=40)
def test_chunks_that_resume_are_one_go(chunks: list[int], method: str) -> None:
    whole, parts = player(method), player(method)
    total = play(wrapped(), whole, sum(chunks), seed=5)
    env = wrapped()
    rewards = [play(env, parts, chunks[0], seed=5)] + [play(env, parts, n, resume=True) for n in chunks[1:]]
    assert state_of(parts) == state_of(whole)
    assert sum(rewards) == pytest.approx(total)
    assert parts.steps == parts.decisions == sum(chunks)


def test_without_resume_every_call_begins_an_episode() -> None:
    env = wrapped()
    resets: list[Any] = []
    reset = env.reset

    def counted(**words: Any) -> Any:
        resets.append(words)
        return reset(**words)

    env.reset = counted  # type: ignore[method-assign]
    agent = player()
    play(env, agent, 1, seed=1)
    play(env, agent, 1, seed=None)
    assert len(resets) >= 2
    seen = len(resets)
    play(env, agent, 0, resume=True)
    assert len(resets) == seen


def test_what_cannot_be_resumed_is_refused_and_nothing_moves() -> None:
    env, agent = wrapped(), player()
    with pytest.raises(ValueError, match="there is no episode to go on with; resume=True needs one") as caught:
        play(env, agent, 5, resume=True)
    one_sentence(caught.value)
    play(env, agent, 5, seed=1)
    before = state_of(agent)
    with pytest.raises(ValueError, match="seed is 1, but nothing is reset with resume=True; leave one of them out"):
        play(env, agent, 5, seed=1, resume=True)
    agent.act()
    with pytest.raises(ValueError, match="there is no episode to go on with"):
        play(env, agent, 5, resume=True)
    assert agent.steps == 5
    assert before[0]["steps"] == 5


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1"])
def test_a_box_has_no_space_for_an_agent_and_says_what_to_do(name: str) -> None:
    env = MissingObservation(gymnasium.make(name), "mcar:0.5")
    with pytest.raises(TypeError, match=r"a Box of real numbers, .*; wrap it in lacuna\.Binned") as caught:
        Agent(env.space, 2)
    assert "BinnedObservation" in one_sentence(caught.value)
    assert env.step is not None


def test_a_box_that_was_made_discrete_is_played() -> None:
    edges = [np.linspace(-1.5, 1.5, 4), np.linspace(-2, 2, 4), np.linspace(-0.2, 0.2, 6), np.linspace(-2, 2, 4)]
    discrete = gymnasium.wrappers.TransformObservation(
        gymnasium.make("CartPole-v1"),
        lambda x: np.array([np.digitize(value, cuts) for value, cuts in zip(x, edges, strict=True)]),
        spaces.MultiDiscrete([len(cuts) + 1 for cuts in edges]),
    )
    env = MissingObservation(discrete, "mcar:0.2")
    agent = Agent(env.space, 2, seed=1)
    assert play(env, agent, 300, seed=1) == 300.0
    assert env.space.sizes == (5, 5, 7, 5)
