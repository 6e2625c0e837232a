"""Mobile health: when to prompt a person to move. Prompts help, but add to a burden that makes them fail."""

from __future__ import annotations

from itertools import product

import numpy as np

from lacuna.kernels.space import Space
from lacuna.validation import number
from lacuna.worlds.mdp.tabular import Outcome, TabularMDP
from lacuna.worlds.registry import world

TIMES = ("morning", "afternoon", "evening")
NOTHING, PROMPT = 0, 1

_SPACE = Space((len(TIMES), 3, 2, 3, 4), ("time", "activity", "home", "stress", "burden"))
_AT_HOME = (0.9, 0.2, 0.8)
"""Probability of being at home at each time of day, if it does not depend on the place before."""
_EASE = (1.0, 0.6, -0.2)
_PATIENCE = (1.0, 0.9, 0.6, 0.1)


@world(
    "mobile-health", "lacuna/MobileHealth-v0",
    "when to prompt a person to move: a prompt helps at home and without stress, and is a burden",
)  # fmt: skip
def mobile_health(effect: float = 0.5, fatigue: float = 0.5, recovery: float = 0.4) -> TabularMDP:
    """A person who may be prompted to move three times a day, without end.

    The state is the `time` of day (morning, afternoon, evening), recent `activity` (low, medium, high), whether the
    person is at `home`, `stress` (low, medium, high) and the `burden` of prompts (0 to 3); 216 states. After each
    decision the person is active or not, which pays 1 or 0:

        P(active) = 0.1 + 0.1 activity                                       after nothing
        P(active) = 0.1 + 0.1 activity + effect · place · ease · patience    after a prompt

    with place 1 at home and 0.4 elsewhere; ease 1, 0.6 and −0.2 for low, medium and high stress; patience 1, 0.9, 0.6
    and 0.1 for the burdens 0 to 3. The result is kept between 0 and 1. Then, independently of each other:

    - burden: after a prompt one more with probability `fatigue`; after nothing one less with probability `recovery`;
    - stress: one more with probability 0.1, in the afternoon 0.2, plus 0.1 per level of burden; otherwise one less with
      probability 0.3, if the person was active 0.5;
    - activity: one more with probability 0.7 if active, one less with probability 0.5 if not;
    - home: as before with probability 0.5, otherwise by the next time of day: 0.9, 0.2 and 0.8.

    Values never leave their scales. Arriving with burden 3 is a bad step.

    The best policy looks at stress, burden and place. By default and with γ = 0.95 it never prompts under high stress
    or at burden 3. Away from home it prompts at burden 0 only; at home and without stress also at burden 1 and, with
    medium activity, 2. Its value at the start is 6.59; always prompting is worth 4.60, never prompting 2.42. In the
    long run it earns 0.294 per decision, against 0.133 (always), 0.125 (never), and 0.263 for the best rule that knows
    only stress and place.

    Parameters
    ----------
    effect
        The most by which a prompt raises the probability of being active.
    fatigue
        Probability that a prompt adds to the burden.
    recovery
        Probability that a decision without a prompt reduces it.

    Examples
    --------
    >>> person = mobile_health()
    >>> person.n_states, person.action_names
    (216, ('nothing', 'prompt'))
    >>> quiet = person.space.encode((2, 0, 1, 0, 0))
    >>> round(sum(p for p, _, pays, _ in person.outcomes(quiet, 1) if pays == 1.0), 12)
    0.6
    """
    for what, value in (("effect", effect), ("fatigue", fatigue), ("recovery", recovery)):
        number(what, value, 0, 1)

    def outcomes(s: int, a: int) -> list[Outcome]:
        time, activity, home, stress, burden = _SPACE.decode(s)
        later = (time + 1) % len(TIMES)
        chance = 0.1 + 0.1 * activity
        if a == PROMPT:
            chance += effect * (1.0 if home else 0.4) * _EASE[stress] * _PATIENCE[burden]
        chance = min(max(chance, 0.0), 1.0)
        at_home = 0.5 * home + 0.5 * _AT_HOME[later]
        burdened = _moves(burden, 3, up=fatigue) if a == PROMPT else _moves(burden, 3, down=recovery)
        found = []
        for active, p in ((True, chance), (False, 1 - chance)):
            more = 0.1 + 0.1 * (TIMES[time] == "afternoon") + 0.1 * burden
            stressed = _moves(stress, 2, up=more, down=(1 - more) * (0.5 if active else 0.3))
            moved = _moves(activity, 2, up=0.7) if active else _moves(activity, 2, down=0.5)
            for (x, px), (h, ph), (y, py), (b, pb) in product(
                moved, ((1, at_home), (0, 1 - at_home)), stressed, burdened
            ):
                found.append((p * px * ph * py * pb, _SPACE.encode((later, x, h, y, b)), float(active), False))
        return found

    rested = _SPACE.encode((0, 0, 1, 0, 0))
    return TabularMDP.build(
        outcomes, space=_SPACE, shows=range(_SPACE.n_states), n_actions=2, starts=[{rested: 1.0}], terminates=False,
        bad=np.arange(_SPACE.n_states) % 4 == 3, idle=NOTHING, action_names=("nothing", "prompt"),
        name="mobile-health",
    )  # fmt: skip


def _moves(value: int, top: int, up: float = 0.0, down: float = 0.0) -> list[tuple[int, float]]:
    """Next values on a scale from 0 to `top`, at most one step away, with their probabilities."""
    up, down = up if value < top else 0.0, down if value > 0 else 0.0
    return [(x, p) for x, p in ((value, 1 - up - down), (value + 1, up), (value - 1, down)) if p > 0]
