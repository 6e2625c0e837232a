"""Eight components, each driven by one or two others: a world far too large for a table of transitions."""

from __future__ import annotations

import numpy as np

from lacuna.kernels.space import Space
from lacuna.validation import number, whole_number
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import world

COMPONENTS = ("source", "first", "second", "third", "fourth", "sum", "dial", "output")


@world("relay", "lacuna/Relay-v0", "eight components, each driven by one or two others; solved in closed form")
def relay(values: int = 4, noise: float = 0.1) -> TabularMDP:
    """A signal that passes from component to component, and a dial that has to cancel it, without end.

    Each component has n = `values` values, sums are modulo n, and action a turns the dial by a notches:

        source' = source + 1 with probability 1 − noise, otherwise any value
        first'  = source        second' = first        third' = second        fourth' = third
        sum'    = fourth + second
        dial'   = dial + a
        output' = dial + sum

    An arrival pays 1 if the output is 0. The next reward is already determined. The action decides the one after it,
    which is 1 if ``dial + a + fourth + second = 0``; exactly one action achieves that. So the optimal value is
    ``[dial + sum = 0] + γ / (1 − γ)``, whatever the noise, for an agent that sees dial, fourth and second.

    There are n⁸ states, 65,536 by default, and n outcomes for each of their actions. Every component but the source is
    a function of one or two components one step before, so a hidden value can be computed if these were seen.

    Parameters
    ----------
    values
        Number of values of each component, and of actions; 2 to 5.
    noise
        Probability that the source takes any value instead of the next.

    Examples
    --------
    >>> line = relay(values=2, noise=0.5)
    >>> line.n_states, line.n_actions
    (256, 2)
    >>> start = line.space.encode((1, 0, 1, 0, 0, 1, 0, 0))
    >>> [(p, line.space.decode(s), pays) for p, s, pays, _ in line.outcomes(start, 1)]
    [(0.75, (0, 1, 0, 1, 0, 1, 1, 1), 0.0), (0.25, (1, 1, 0, 1, 0, 1, 1, 1), 0.0)]
    """
    whole_number("values", values, 2, 5)
    number("noise", noise, 0, 1)
    space = Space((values,) * len(COMPONENTS), COMPONENTS)
    n, kept = space.n_states, values if noise > 0 else 1
    source, first, second, third, fourth, total, dial, _ = np.arange(n) // space.layout.strides[:, None] % values
    turn, skip = np.arange(values)[:, None], np.arange(kept)
    # Axes: state, turn of the dial, number of values that the source skips.
    after = (
        source[:, None, None] + 1 + skip, *(x[:, None, None] for x in (source, first, second, third)),
        (fourth + second)[:, None, None], dial[:, None, None] + turn, (dial + total)[:, None, None],
    )  # fmt: skip
    digits = (np.broadcast_to(x % values, (n, values, kept)) for x in after)
    next_state = (np.stack(list(digits), axis=-1) @ space.layout.strides).ravel()
    probability = np.full(kept, noise / values)
    probability[0] = 1 - noise * (values - 1) / values
    return TabularMDP(
        space=space, n_actions=values, ptr=np.arange(n * values + 1) * kept, next_state=next_state,
        probability=np.tile(probability, n * values), reward=np.where(next_state % values == 0, 1.0, 0.0),
        ends=np.zeros(next_state.size, dtype=np.bool_), shows=np.arange(n), starts=({0: 1.0},),
        restart=np.zeros(n, dtype=np.int64), bad=np.zeros(n, dtype=np.bool_), terminates=False, idle=0,
        action_names=tuple(f"turn {a}" for a in range(values)), name="relay",
    )  # fmt: skip
