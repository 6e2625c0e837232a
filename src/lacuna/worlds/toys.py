"""Tiny worlds whose optimal values are known in closed form, given in the docstring of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lacuna.kernels.space import Space
from lacuna.validation import whole_number
from lacuna.worlds.mdp.tabular import Outcome, TabularMDP
from lacuna.worlds.registry import world

_STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
_MAX_CELLS = 1_000_000
_BANDIT = ((0.9, 0.1), (0.2, 0.6), (0.5, 0.5), (0.0, 1.0))


@world("corridor", "lacuna/Corridor-v0", "a corridor with slippery steps, solved in closed form")
def corridor(length: int = 5, slip: float = 0.1) -> TabularMDP:
    """A corridor with the goal at its right end; every step costs 1 and fails with probability `slip`.

    The optimum is to go right. Each cell takes a geometric number of tries, so k cells from the goal the value is
    ``-k / (1 - slip)`` without discount, and ``-(1 - f**k) / (1 - gamma)`` with
    ``f = gamma (1 - slip) / (1 - gamma slip)``.

    Parameters
    ----------
    length
        Number of cells.
    slip
        Probability that a step fails.

    Examples
    --------
    >>> corridor(length=3, slip=0.5).outcomes(0, 1)
    [(0.5, 0, -1.0, False), (0.5, 1, -1.0, False)]
    """
    whole_number("length", length, 2, _MAX_CELLS)
    _check_slip(slip)

    def outcomes(s: int, a: int) -> list[Outcome]:
        target = min(max(s + (1 if a else -1), 0), length - 1)
        return [(1.0 - slip, target, -1.0, target == length - 1), (slip, s, -1.0, s == length - 1)]

    return TabularMDP.build(
        outcomes, space=Space((length,), ("position",)), shows=range(length), n_actions=2, starts=[{0: 1.0}],
        action_names=("left", "right"), name="corridor",
    )  # fmt: skip


@world("field", "lacuna/Field-v0", "an open field crossed corner to corner, solved in closed form")
def field(n_rows: int = 4, n_columns: int = 6, slip: float = 0.1) -> TabularMDP:
    """An open field crossed from the top left to the bottom right corner, one step up, right, down or left.

    Every step costs 1 and fails with probability `slip`. The optimal value is that of a `corridor` of the same distance
    to the goal.

    Parameters
    ----------
    n_rows, n_columns
        Size of the field.
    slip
        Probability that a step fails.

    Examples
    --------
    >>> world = field(2, 3, slip=0.0)
    >>> world.outcomes(world.space.encode((0, 2)), 2)
    [(1.0, 5, -1.0, True)]
    """
    whole_number("n_rows", n_rows, 2, _MAX_CELLS)
    whole_number("n_columns", n_columns, 2, _MAX_CELLS)
    whole_number("the number of cells", n_rows * n_columns, 2, _MAX_CELLS)
    _check_slip(slip)
    space = Space((n_rows, n_columns), ("row", "column"))
    goal = space.n_states - 1

    def outcomes(s: int, a: int) -> list[Outcome]:
        row, column = space.decode(s)
        row = min(max(row + _STEPS[a][0], 0), n_rows - 1)
        column = min(max(column + _STEPS[a][1], 0), n_columns - 1)
        target = space.encode((row, column))
        return [(1.0 - slip, target, -1.0, target == goal), (slip, s, -1.0, s == goal)]

    return TabularMDP.build(
        outcomes, space=space, shows=range(space.n_states), n_actions=4, starts=[{0: 1.0}],
        action_names=("up", "right", "down", "left"), name="field",
    )  # fmt: skip


@world("bandit", "lacuna/Bandit-v0", "a two-armed bandit with a context of two coins, solved in closed form")
def bandit(pays: Sequence[Sequence[float]] = _BANDIT) -> TabularMDP:
    """A two-armed bandit with a context of two coins (`sky`, `mood`), tossed anew for each episode of one step.

    In context ``2*sky + mood`` arm `a` pays 1 with probability ``pays[context][a]``. The optimal value of a context
    is the larger of its two probabilities; that of the start is the mean over the four contexts.

    Parameters
    ----------
    pays
        Four rows, one per context, of two probabilities, one per arm.

    Examples
    --------
    >>> bandit().outcomes(0, 1)
    [(0.9, 0, 0.0, True), (0.1, 0, 1.0, True)]
    """
    even = len(pays) == 4 and all(len(row) == 2 for row in pays)
    table = np.asarray(pays if even else [], dtype=np.float64)
    if not even or not ((table >= 0) & (table <= 1)).all():
        raise ValueError(f"pays is {pays}; it must be 4 rows (contexts) of 2 probabilities between 0 and 1")
    return TabularMDP.build(
        lambda s, a: [(1.0 - float(table[s, a]), s, 0.0, True), (float(table[s, a]), s, 1.0, True)],
        space=Space((2, 2), ("sky", "mood")), shows=range(4), n_actions=2,
        starts=[dict.fromkeys(range(4), 0.25)], action_names=("left arm", "right arm"), name="bandit",
    )  # fmt: skip


@world("loop", "lacuna/Loop-v0", "two states for ever, solved in closed form")
def loop(near: float = 1.0, far: float = 2.0) -> TabularMDP:
    """Two states for ever: staying pays `near` in the first and `far` in the second, changing over pays nothing.

    A continuing task. The optimal value of a state is the largest of ``own / (1 - gamma)`` (stay for ever),
    ``gamma other / (1 - gamma)`` (change over first) and 0 (change all the time).

    Parameters
    ----------
    near, far
        What staying pays in the first state and in the second.

    Examples
    --------
    >>> loop().outcomes(1, 0)
    [(1.0, 1, 2.0, False)]
    """
    pays = (near, far)
    return TabularMDP.build(
        lambda s, a: [(1.0, s, pays[s], False) if a == 0 else (1.0, 1 - s, 0.0, False)],
        space=Space((2,), ("side",)), shows=range(2), n_actions=2, starts=[{0: 1.0}], terminates=False, idle=0,
        action_names=("stay", "change"), name="loop",
    )  # fmt: skip


def _check_slip(slip: float) -> None:
    if not 0.0 <= slip < 1.0:
        raise ValueError(f"slip is {slip}; it must be at least 0 and below 1")
