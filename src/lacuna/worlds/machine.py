"""A machine that wears out in a continuing task: when to service it, and when to replace it."""

from __future__ import annotations

from itertools import product

import numpy as np

from lacuna.kernels.space import Space
from lacuna.validation import number, whole_number
from lacuna.worlds.mdp.tabular import Outcome, TabularMDP
from lacuna.worlds.registry import world

ACTIONS = ("run", "service", "replace")
_STRAIN = (0.5, 1.0, 1.5)
_STEADY = 0.8


@world("machine", "lacuna/Machine-v0", "a machine that wears out, to be run, serviced or replaced without end")
def machine(levels: int = 6, wear: float = 0.3, noise: float = 0.1) -> TabularMDP:
    """A machine to be run, serviced or replaced at every step, without end.

    The state is its `wear` (0: new, the highest: broken), the `load` (light, normal, heavy) and its `vibration` (three
    levels), a noisy sign of the wear. With w the wear as a share of its highest value:

    - *run* pays ``(1 + load) · (1 − w²)``, and adds one level of wear with probability `wear` times 0.5, 1 or 1.5 under
      a light, normal or heavy load;
    - *service* pays −1 and takes one level off, but cannot repair a broken machine;
    - *replace* pays −4 for a new machine.

    The load stays with probability 0.8 and is otherwise one of the other two. Vibration is the third of the scale that
    the new wear lies in, with probability ``1 − noise``, and otherwise one of the other two. Arriving broken is a bad
    step.

    By default and with γ = 0.95 the optimum services a machine with wear 2 if the load is light, replaces one with wear
    3 if the load is light and one with wear 4 or 5 always, and runs it otherwise. It is worth 29.20 at the start;
    always running is worth 17.83. Without wear (``wear=0``) running is best, and a new machine is worth
    ``2 / (1 − γ) + (load − 1) / (1 − 0.7 γ)``.

    Parameters
    ----------
    levels
        Number of levels of wear, at least 3.
    wear
        Probability that running adds a level of wear, under a normal load; at most 2/3.
    noise
        Probability that vibration is misleading.

    Examples
    --------
    >>> mill = machine(noise=0.0)
    >>> mill.n_states, mill.action_names
    (54, ('run', 'service', 'replace'))
    >>> worn = mill.space.encode((5, 1, 2))
    >>> [round(p, 12) for p, *_ in mill.outcomes(worn, 2)], mill.outcomes(worn, 2)[0][2]
    ([0.8, 0.1, 0.1], -4.0)
    """
    whole_number("levels", levels, 3, 1000)
    number("wear", wear, 0, 2 / 3)
    number("noise", noise, 0, 1)
    space = Space((levels, 3, 3), ("wear", "load", "vibration"))
    broken = levels - 1

    def outcomes(s: int, a: int) -> list[Outcome]:
        now, load, _ = space.decode(s)
        if ACTIONS[a] == "run":
            pays = (1 + load) * (1 - (now / broken) ** 2)
            worse = wear * _STRAIN[load] if now < broken else 0.0
            becomes = [(now, 1 - worse), (min(now + 1, broken), worse)]
        elif ACTIONS[a] == "service":
            pays, becomes = -1.0, [(now if now == broken else max(now - 1, 0), 1.0)]
        else:
            pays, becomes = -4.0, [(0, 1.0)]
        found = []
        for (after, p), next_load, vibration in product(becomes, range(3), range(3)):
            steady = _STEADY if next_load == load else (1 - _STEADY) / 2
            told = 1 - noise if vibration == 3 * after // levels else noise / 2
            found.append((p * steady * told, space.encode((after, next_load, vibration)), pays, False))
        return found

    return TabularMDP.build(
        outcomes, space=space, shows=range(space.n_states), n_actions=3, starts=[{space.encode((0, 1, 0)): 1.0}],
        terminates=False, bad=np.arange(space.n_states) // 9 == broken, action_names=ACTIONS, name="machine",
    )  # fmt: skip
