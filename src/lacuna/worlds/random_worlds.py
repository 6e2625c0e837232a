"""Worlds drawn at random: nobody could have tuned a method for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.validation import number, whole_number
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import world

_MAX_OUTCOMES = 20_000_000


@world("random", "lacuna/Random-v0", "a world drawn at random that never ends, with or without independent components")
def random_world(
    components: int = 3, size: int = 3, actions: int = 3, factored: bool = False, noise: float = 0.1, seed: int = 0
) -> TabularMDP:
    """A continuing task drawn at random from a seed.

    An action leads to one next state, fixed for each state and action. With probability `noise` one component of it,
    any of them, then takes a random value instead.

    - *Factored*: the next value of component j depends on the action, on its own value, and on that of one or two other
      components. Rewards depend on the values of the first two components.
    - *Not factored*: the next state is any state, so components say nothing about each other. Every state has a
      reward of its own.

    Rewards are standard normal numbers, rounded to tenths, paid on arrival.

    Parameters
    ----------
    components, size
        Number of components, and of values of each.
    actions
        Number of actions.
    factored
        Whether a component depends on one or two others only, or on all.
    noise
        Probability that one component takes a random value.
    seed
        Seed of the draw: the same seed gives the same world.

    Examples
    --------
    >>> random_world(components=2, size=2, noise=0.0, seed=1).outcomes(0, 0)
    [(1.0, 1, 0.6, False)]
    """
    whole_number("components", components, 1, 40)
    whole_number("size", size, 1, 1000)
    whole_number("actions", actions, 1, 1000)
    number("noise", noise, 0, 1)
    space = Space((size,) * components)
    n, entries = space.n_states, 1 + components * (size - 1)
    if n * actions * entries > _MAX_OUTCOMES:
        raise ValueError(f"{components} components of {size} values make more than {_MAX_OUTCOMES} outcomes")
    generator = np.random.default_rng(whole_number("seed", seed, 0))
    values = np.arange(n)[:, None] // space.layout.strides % size
    if factored:
        target = _factored_moves(values, actions, size, generator)
    else:
        target = values[generator.integers(n, size=n * actions)]
    # What noise makes of the target: itself, or one component moved on by 1, 2, … size - 1.
    shifts = np.zeros((entries, components), dtype=np.int64)
    for entry in range(1, entries):
        shifts[entry, (entry - 1) // max(size - 1, 1)] = 1 + (entry - 1) % max(size - 1, 1)
    kept = entries if noise > 0 else 1
    reached = (target[:, None, :] + shifts[:kept]) % size @ space.layout.strides
    moved = noise / (components * size)
    probability = np.full(kept, moved)
    probability[0] = 1.0 - moved * (entries - 1) if noise > 0 else 1.0
    pays = _rewards(values, factored, size, generator)
    return TabularMDP(
        space=space, n_actions=actions, ptr=np.arange(n * actions + 1) * kept, next_state=reached.ravel(),
        probability=np.tile(probability, n * actions), reward=pays[reached.ravel()],
        ends=np.zeros(n * actions * kept, dtype=np.bool_), shows=np.arange(n), starts=({0: 1.0},),
        restart=np.zeros(n, dtype=np.int64), bad=np.zeros(n, dtype=np.bool_), terminates=False, name="random",
    )  # fmt: skip


def _factored_moves(
    values: NDArray[np.int64], actions: int, size: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """For every state and action, next values that depend on a component and on one or two others."""
    n, d = values.shape
    target = np.empty((n, actions, d), dtype=np.int64)
    for j in range(d):
        others = [p for p in range(d) if p != j]
        parents = generator.permutation(others)[: 1 + j % 2] if others else np.zeros(0, dtype=np.int64)
        table = generator.integers(size, size=(actions, size, size, size))
        first, second = (values[:, parents[i]] if i < len(parents) else np.zeros(n, dtype=np.int64) for i in (0, 1))
        for a in range(actions):
            target[:, a, j] = table[a, values[:, j], first, second]
    return target.reshape(n * actions, d)


def _rewards(
    values: NDArray[np.int64], factored: bool, size: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """The reward of arriving in each state."""
    n, d = values.shape
    table = generator.standard_normal((size, size) if factored else n).round(1)
    pays: NDArray[np.float64] = table[values[:, 0], values[:, min(1, d - 1)]] if factored else table
    return pays
