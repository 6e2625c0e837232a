"""The compiled loop: an agent in a world, step after step, by the same kernels that the `Agent` calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import copy_into
from lacuna.kernels.compiled import kernel
from lacuna.kernels.counts import CountTable, has_room
from lacuna.kernels.space import Layout
from lacuna.kernels.streams import Uniforms
from lacuna.learning.component_counts import Parts, most_adds
from lacuna.learning.learner import Memory, act, begin, learn
from lacuna.learning.methods import Rules
from lacuna.mdp.dynamics import move, start_state
from lacuna.mdp.tabular import Dynamics
from lacuna.missingness.mechanism import Hiding, hide
from lacuna.running.measures import Notes, Tally, note, score

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
    parts: Parts


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


class Step(NamedTuple):
    """What one action did: true states left and entered, reward, and how the episode goes on."""

    state: int
    arrival: int
    reward: float
    ended: bool
    terminated: bool
    stopped: bool
    """Terminated or cut off: a new episode starts."""


@kernel
def enter(way: int, scene: Scene, supply: Supply) -> int:
    """Start an episode in one of the world's ways, and look; gives the true state."""
    scene.place[FRESH] = 0
    scene.place[_EPISODE_STEPS] = 0
    state = start_state(way, scene.world, supply.world)
    scene.place[_STATE] = state
    look(-1, scene, supply.missingness)
    return state


@kernel
def go(action: int, scene: Scene, supply: Supply) -> Step:
    """Take an action in the world, and look."""
    world, place = scene.world, scene.place
    state = place[_STATE]
    outcome = move(state, action, world, supply.world)
    arrival = world.next_state[outcome]
    ended = world.ends[outcome]
    terminated = ended and world.terminates
    place[_STATE] = arrival
    place[_EPISODE_STEPS] += 1
    stopped = terminated or place[_EPISODE_STEPS] == world.max_steps
    look(action, scene, supply.missingness)
    return Step(state, arrival, world.reward[outcome], ended, terminated, stopped)


@kernel
def run_steps(n: int, scene: Scene, mind: Mind, supply: Supply, tally: Tally, notes: Notes, trace: Trace) -> int:
    """Run up to `n` steps; gives how many were done before numbers or room for counts ran low."""
    world = scene.world
    rules, layout, memory, counts, parts = mind.rules, mind.layout, mind.memory, mind.counts, mind.parts
    for t in range(n):
        if not (
            has_numbers(supply.world, supply.needs[0])
            and has_numbers(supply.missingness, supply.needs[1])
            and has_numbers(supply.imputation, supply.needs[2])
            and has_numbers(supply.exploration, supply.needs[3])
            and has_room(rules.K, counts)
            and has_room(most_adds(layout.sizes.shape[0], parts), parts.counts)
        ):
            return t
        if scene.place[FRESH]:
            enter(0, scene, supply)
            begin(scene.observation, rules, layout, memory, supply.imputation)

        action = act(rules, memory, supply.exploration)
        step = go(action, scene, supply)
        learn(
            action, step.reward, scene.observation, step.terminated, rules, layout, memory, counts, parts,
            supply.imputation,
        )  # fmt: skip

        score(
            action, step.reward, step.ended, step.stopped, world.bad[step.arrival], scene.observation,
            world.codes[step.arrival], memory.C, rules, layout, tally,
        )  # fmt: skip
        note(tally, notes)
        if t < trace.state.shape[0]:
            trace.state[t] = step.state
            trace.action[t] = action
            trace.reward[t] = step.reward
            trace.arrival[t] = step.arrival
            copy_into(trace.seen[t], scene.observation)
            copy_into(trace.pathways[t], memory.S)
            trace.ended[t] = step.ended
            trace.truncated[t] = step.stopped and not step.terminated
        if step.stopped:
            enter(world.restart[step.arrival], scene, supply)
            begin(scene.observation, rules, layout, memory, supply.imputation)
    return n
