"""The compiled loop: an agent in a world, step after step, by the same kernels that the `Agent` calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.compiled import kernel
from lacuna.counts import CountTable, has_room
from lacuna.learner import Memory, act, begin, learn
from lacuna.mdp import Dynamics, move, start_state
from lacuna.measures import Notes, Tally, note, score
from lacuna.methods import Rules
from lacuna.missingness.mechanism import Hiding, hide
from lacuna.space import Layout, copy_into
from lacuna.streams import Uniforms

FRESH_PLACE = (1, 0, 0, 0)
"""Where things stand before the first step: `Scene.place` of a world that has not started."""

FRESH, _STATE, _MODE, _EPISODE_STEPS = range(4)


class Scene(NamedTuple):
    """What surrounds the agent in a compiled run: the world, what hides it, and where things stand."""

    world: Dynamics
    how: Hiding
    first_observed: bool
    place: NDArray[np.int64]
    observation: NDArray[np.int64]
    mask: NDArray[np.bool_]


class Mind(NamedTuple):
    """The agent in a compiled run."""

    rules: Rules
    layout: Layout
    memory: Memory
    counts: CountTable
    parts: CountTable


class Supply(NamedTuple):
    """The four streams of a compiled run and how many numbers of each one step may use."""

    needs: NDArray[np.int64]
    world: Uniforms
    missingness: Uniforms
    imputation: Uniforms
    exploration: Uniforms


class Trace(NamedTuple):
    """A full record of steps, or arrays of length 0 for none.

    For every step: the true state left, the action, the reward, the true state entered, what was seen of it, the
    pathways after learning, and whether the episode ended or was cut off.
    """

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    arrival: NDArray[np.int64]
    seen: NDArray[np.int64]
    pathways: NDArray[np.int64]
    ended: NDArray[np.int64]
    truncated: NDArray[np.int64]


@kernel
def has_numbers(uniforms: Uniforms, n: int) -> bool:
    """Whether at least `n` numbers are waiting."""
    return bool(uniforms.block.shape[0] - uniforms.cursor[0] >= n)


@kernel
def look(action: int, scene: Scene, uniforms: Uniforms) -> None:
    """Show the true state, minus what the mechanism hides, as the new observation; -1 is "no action yet"."""
    place, world = scene.place, scene.world
    state = place[_STATE]
    if action < 0 and scene.first_observed:
        scene.mask[:] = False
    else:
        hide(world.shows[state], state, action, place[_MODE : _MODE + 1], scene.how, uniforms, scene.mask)
    for j in range(scene.mask.shape[0]):
        # The value, or -1 where hidden; as a sum, because a branch on chance is slow.
        value = world.shown[state, j]
        scene.observation[j] = value - int(scene.mask[j]) * (value + 1)


@kernel
def run_steps(n: int, scene: Scene, mind: Mind, supply: Supply, tally: Tally, notes: Notes, trace: Trace) -> int:
    """Run up to `n` steps; gives how many were done before numbers or room for counts ran low."""
    world, place = scene.world, scene.place
    rules, layout, memory, counts, parts = mind.rules, mind.layout, mind.memory, mind.counts, mind.parts
    for t in range(n):
        if not (
            has_numbers(supply.world, supply.needs[0])
            and has_numbers(supply.missingness, supply.needs[1])
            and has_numbers(supply.imputation, supply.needs[2])
            and has_numbers(supply.exploration, supply.needs[3])
            and has_room(rules.K, counts)
            and has_room(layout.sizes.shape[0], parts)
        ):
            return t
        if place[FRESH]:
            place[FRESH] = 0
            place[_STATE] = start_state(0, world, supply.world)
            look(-1, scene, supply.missingness)
            begin(scene.observation, rules, layout, memory, supply.imputation)

        state = place[_STATE]
        action = act(rules, memory, supply.exploration)
        outcome = move(state, action, world, supply.world)
        arrival = world.next_state[outcome]
        reward = world.reward[outcome]
        ended = world.ends[outcome]
        terminated = ended and world.terminates
        place[_STATE] = arrival
        place[_EPISODE_STEPS] += 1
        truncated = not terminated and place[_EPISODE_STEPS] == world.max_steps
        look(action, scene, supply.missingness)
        learn(action, reward, scene.observation, terminated, rules, layout, memory, counts, parts, supply.imputation)

        score(
            action, reward, ended, terminated or truncated, world.bad[arrival], scene.observation, world.codes[arrival],
            memory.C, rules, layout, tally,
        )  # fmt: skip
        note(tally, notes)
        if t < trace.state.shape[0]:
            trace.state[t] = state
            trace.action[t] = action
            trace.reward[t] = reward
            trace.arrival[t] = arrival
            copy_into(trace.seen[t], scene.observation)
            copy_into(trace.pathways[t], memory.S)
            trace.ended[t] = ended
            trace.truncated[t] = truncated
        if terminated or truncated:
            place[_EPISODE_STEPS] = 0
            place[_STATE] = start_state(world.restart[arrival], world, supply.world)
            look(-1, scene, supply.missingness)
            begin(scene.observation, rules, layout, memory, supply.imputation)
    return n
