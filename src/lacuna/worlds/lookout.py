"""A world in which looking is an action with a price."""

from __future__ import annotations

from lacuna.kernels.space import Space
from lacuna.validation import number, whole_number
from lacuna.worlds.mdp.tabular import Outcome, TabularMDP
from lacuna.worlds.registry import world

_MAX_REACH, _MOST = 100_000, 1e9
_UNDECIDED, _LEFT, _RIGHT = range(3)
_LOOK = 2


@world("lookout", "lacuna/Lookout-v0", "a prize at one of two ends, and looking where has a price; closed form")
def lookout(reach: int = 5, price: float = 2.0, prize: float = 10.0, slip: float = 0.1) -> TabularMDP:
    """A path with a prize at one of its ends: left or right, as a fair coin decides in the first step of an episode.

    The walker starts in the middle, `reach` cells from both ends. A step left or right costs 1 and fails with
    probability `slip`. The third action, looking, stays in place and costs `price`. The prize ends the episode; at the
    other end nothing happens. The mechanism decides what looking shows: with ``after:look=0,else=0.4/1`` the side of
    the prize is seen only by looking, and the place in 60 % of the other steps.

    Values without discount:

    - An agent that sees everything never looks if the price is above 1, and earns ``prize - 1 - reach / (1 - slip)``.
    - One that sees only by looking, and looks first, earns ``prize - price - reach / (1 - slip)``.
    - One that sees nothing and never looks earns at most ``prize - 2 reach / (1 - slip)``: it walks to one end, then to
      the other.

    Parameters
    ----------
    reach
        Cells from the start to each end.
    price
        Cost of looking.
    prize
        Reward of arriving at the prize.
    slip
        Probability that a step fails.

    Examples
    --------
    >>> world = lookout(reach=1, slip=0.0)
    >>> world.outcomes(world.space.encode((1, 2)), 1)
    [(1.0, 8, 9.0, True)]
    >>> world.outcomes(world.space.encode((1, 0)), 2)
    [(0.5, 4, -2.0, False), (0.5, 5, -2.0, False)]
    """
    whole_number("reach", reach, 1, _MAX_REACH)
    number("price", price, 0, _MOST)
    number("prize", prize, 0, _MOST)
    if not 0.0 <= slip < 1.0:
        raise ValueError(f"slip is {slip}; it must be at least 0 and below 1")
    space = Space((2 * reach + 1, 3), ("place", "side"))

    def outcomes(s: int, a: int) -> list[Outcome]:
        place, side = space.decode(s)
        target = place if a == _LOOK else min(max(place + (1 if a else -1), 0), 2 * reach)
        moves = [(1.0, target)] if a == _LOOK else [(1.0 - slip, target), (slip, place)]
        sides = [(0.5, _LEFT), (0.5, _RIGHT)] if side == _UNDECIDED else [(1.0, side)]
        found = []
        for chance, now in sides:
            end = 0 if now == _LEFT else 2 * reach
            for share, there in moves:
                pays = -price if a == _LOOK else -1.0
                found.append((chance * share, space.encode((there, now)), pays + prize * (there == end), there == end))
        return found

    return TabularMDP.build(
        outcomes, space=space, shows=range(space.n_states), n_actions=3,
        starts=[{space.encode((reach, _UNDECIDED)): 1.0}], idle=_LOOK, action_names=("left", "right", "look"),
        name="lookout",
    )  # fmt: skip
