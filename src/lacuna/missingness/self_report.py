"""Self-reports that go missing more often the higher the burden they would report."""

from __future__ import annotations

import numpy as np

from lacuna.missingness.mechanism import Mechanism, RateBy
from lacuna.missingness.rates import Rates, Where, checked_rates, empty_table, space_of
from lacuna.missingness.texts import mechanism
from lacuna.validation import number

ASKED = ("stress", "burden")
KNOWN = ("time",)


@mechanism(
    "self-report", "self-report:R0/R1/…[,SENSORS]",
    "stress and burden are reported or not, together, at a rate by the true burden; the time is known",
)  # fmt: skip
def self_report(where: Where, rates: Rates, sensors: float = 0.0) -> Mechanism:
    """Self-reports whose missing rate depends on the burden they would report: NMAR unless all rates are equal.

    A person answers all questions or none. Without an answer, ``stress`` and ``burden`` are hidden together.

    Parameters
    ----------
    where
        A space (or world) with components called ``stress`` and ``burden``.
    rates
        Probability of no answer, one for each value of the true burden, or one for all.
    sensors
        Rate at which every other component is hidden, except one called ``time``, which is always known.

    Examples
    --------
    >>> from lacuna.kernels.space import Space
    >>> person = Space((3, 2, 3, 4), ("time", "home", "stress", "burden"))
    >>> made = self_report(person, (0.1, 0.3, 0.6, 0.9), 0.1)
    >>> made.name, made.label
    ('self-report:0.1/0.3/0.6/0.9,0.1', 'NMAR')
    """
    space = space_of(where)
    for name in ASKED:
        if name not in space.names:
            raise ValueError(f"self-report needs a component called {name!r}; there are {', '.join(space.names)}")
    stress, burden = (space.component(name) for name in ASKED)
    unanswered = checked_rates("the rates of self-report", rates)
    if unanswered.size not in {1, space.sizes[burden]}:
        raise ValueError(
            f"self-report has {unanswered.size} rates; burden has {space.sizes[burden]} values: give 1 or one for each"
        )
    text = "/".join(repr(float(rate)) for rate in unanswered)
    share = number("sensors of self-report", sensors, 0, 1)
    by_burden = np.broadcast_to(unanswered, space.sizes[burden])
    answered = empty_table(space, space.n_states)
    sensed = [j for j, name in enumerate(space.names) if name not in ASKED + KNOWN]
    answered[:, sensed] = share
    answered[:, burden] = by_burden[np.arange(space.n_states) // space.layout.strides[burden] % space.sizes[burden]]
    # Burden is drawn first; if it is hidden, so is stress.
    refused = answered.copy()
    refused[:, stress], refused[:, burden] = 1.0, 0.0
    name = f"self-report:{text},{share!r}" if share else f"self-report:{text}"
    return Mechanism(space, answered[None, None], RateBy.SHOWN, driver=burden, fallback=refused[None, None], name=name)
