"""What the paper's words mean in numbers: fixed beforehand, each with its reason.

The scale: a step on land costs 1, a step in water 10, the goal pays 100. The best policy that knows everything earns
90.99 an episode, in about ten steps, hence about 9 a step.
"""

from __future__ import annotations

from lacuna.paper.evidence import Rates
from lacuna.paper.verdicts import Region

SIMILAR = Region(-5.0, 5.0)
"""Similar, no difference: within half a step in water per episode, a twentieth of what the goal pays."""

NO_WORSE = Region(low=-5.0)
"""On par or better: not worse by more than what still counts as similar."""

BETTER = Region(low=0.0)
"""Better, faster, more: the whole interval on one side."""

WORSE = Region(high=0.0)
"""Worse, falling: the whole interval below 0."""

A_BIT_WORSE = Region(0.0, 10.0)
"""Only a bit worse: worse, by less than one step in water per episode, a tenth of what the goal pays."""

CLEARLY_BETTER = Region(low=10.0)
"""Clearly better, by contrast with a bit: by more than one step in water per episode."""

LITTLE_LOST = Region(high=20.0)
"""Robust: what is lost against seeing everything is less than a fifth of what the goal pays."""

HORRIBLE = Region(low=50.0)
"""Horrible: more than half of what the goal pays is gone."""

SUBSTANTIALLY_MORE = Region(low=1.5)
"""Substantially more, of a quantity drawn on a logarithmic scale: at least half as much again."""

SLIGHTLY_FASTER = Region(0.0, 0.9)
"""Slightly faster: faster, by less than a tenth of what the best policy earns per step."""

NOT_USED = Region(high=0.02)
"""Not used: fewer than one step in fifty; choosing among nine actions at random would stay in one of nine."""

LOW, MODERATE = 0.1, 0.4
FEW, SOME, MANY, GROWN = Rates(0, LOW), Rates(LOW, MODERATE), Rates(MODERATE), Rates(LOW)
"""Low missingness is θ up to 0.1. Higher missingness is θ above 0.4, the line the paper draws for single imputation."""
