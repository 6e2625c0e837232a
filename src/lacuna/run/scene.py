"""A world in a compiled run: its state, the start of an episode, a step, and the observation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.streams import Uniforms
from lacuna.missingness.lateness import Lateness, begin_lateness, put_off
from lacuna.missingness.mechanism import Hiding, hide
from lacuna.worlds.mdp.dynamics import move, start_state
from lacuna.worlds.mdp.tabular import Dynamics

FRESH_PLACE = (1, 0, 0, 0)
"""`Scene.place` of a world that has not started."""

FRESH, _STATE, _MODE, _EPISODE_STEPS = range(4)


class Scene(NamedTuple):
    """The environment of the agent: the world, the mechanism, and their states."""

    world: Dynamics
    how: Hiding
    first_observed: bool
    place: NDArray[np.int64]
    observation: NDArray[np.int64]
    mask: NDArray[np.bool_]
    late: Lateness | None


class Numbers(NamedTuple):
    """The four random streams of a run, and how many numbers of each one step may use."""

    needs: NDArray[np.int64]
    world: Uniforms
    missingness: Uniforms
    imputation: Uniforms
    exploration: Uniforms


class Step(NamedTuple):
    """The result of one action: true states left and entered, reward, and whether the episode ended."""

    state: int
    arrival: int
    reward: float
    ended: bool
    terminated: bool
    stopped: bool
    """Terminated or cut off: a new episode starts."""


@inner
def has_numbers(numbers: Numbers) -> bool:
    """Whether enough numbers are waiting for one more step."""
    return bool(
        ready(numbers.world) >= numbers.needs[0]
        and ready(numbers.missingness) >= numbers.needs[1]
        and ready(numbers.imputation) >= numbers.needs[2]
        and ready(numbers.exploration) >= numbers.needs[3]
    )


@kernel
def ready(uniforms: Uniforms) -> int:
    """How many numbers are waiting in a block."""
    return int(uniforms.block.shape[0] - uniforms.cursor[0])


@inner
def look(action: int, scene: Scene, uniforms: Uniforms) -> None:
    """Show the true state, minus what the mechanism hides, as the new observation; -1 is "no action yet"."""
    place, world = scene.place, scene.world
    state = place[_STATE]
    if action < 0 and scene.first_observed:
        scene.mask[:] = False
    else:
        hide(world.shows[state], state, action, place[_MODE : _MODE + 1], scene.how, uniforms, scene.mask)
    for j in range(scene.mask.shape[0]):
        # observation[j] = -1 if mask[j] else value: as a sum, because a branch on chance is slow.
        value = world.shown[state, j]
        scene.observation[j] = value - int(scene.mask[j]) * (value + 1)
    send_late(action, scene, scene.late, uniforms)


@inner
def send_late(action: int, scene: Scene, late: Lateness | None, uniforms: Uniforms) -> None:
    """Deliver late values, and queue the hidden values of the new state."""
    if late is not None:
        if action < 0:
            begin_lateness(late, scene.first_observed)
        if action >= 0 or not scene.first_observed:
            put_off(scene.world.shown[scene.place[_STATE]], scene.mask, late, uniforms)


@inner
def enter(way: int, scene: Scene, numbers: Numbers) -> int:
    """Start an episode in one of the world's ways, and look; returns the true state."""
    scene.place[FRESH] = 0
    scene.place[_EPISODE_STEPS] = 0
    state = start_state(way, scene.world, numbers.world)
    scene.place[_STATE] = state
    look(-1, scene, numbers.missingness)
    return state


@inner
def go(action: int, scene: Scene, numbers: Numbers) -> Step:
    """Take an action in the world, and look."""
    world, place = scene.world, scene.place
    state = place[_STATE]
    outcome = move(state, action, world, numbers.world)
    arrival = world.next_state[outcome]
    ended = world.ends[outcome]
    terminated = ended and world.terminates
    place[_STATE] = arrival
    place[_EPISODE_STEPS] += 1
    stopped = terminated or place[_EPISODE_STEPS] == world.max_steps
    look(action, scene, numbers.missingness)
    return Step(state, arrival, world.reward[outcome], ended, terminated, stopped)
