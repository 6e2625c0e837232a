"""What enters a wrapper: values and info of the environment inside, checked in one place for all wrappers."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from lacuna.validation import of_kind, one_of, shown

Outside: TypeAlias = Literal["warn", "error"]
"""What to do with a real number outside its bounds: warn once for each component and pass it on, or raise an error."""


class Bounds(NamedTuple):
    """The smallest and the largest value of each component, and their type in the space."""

    low: NDArray[Any]
    high: NDArray[Any]
    dtype: np.dtype[Any]
    discrete: bool = True


def bounds_of(space: spaces.Space[Any]) -> Bounds:
    """Return the bounds of a `Box`, `Discrete`, `MultiDiscrete` or `MultiBinary`."""
    if isinstance(space, spaces.Box):
        return Bounds(space.low, space.high, np.dtype(space.dtype), discrete=False)
    whole = np.dtype(np.int64)
    if isinstance(space, spaces.MultiBinary):
        return Bounds(np.zeros(space.shape, dtype=whole), np.ones(space.shape, dtype=whole), whole)
    if isinstance(space, spaces.MultiDiscrete):
        low = np.asarray(space.start, dtype=whole)
        return Bounds(low, low + np.asarray(space.nvec, dtype=whole) - 1, whole)
    if isinstance(space, spaces.Discrete):
        low = np.array([space.start], dtype=whole)
        return Bounds(low, low + int(space.n) - 1, whole)
    raise TypeError(f"{space} has no bounds; there are some of Box, Discrete, MultiDiscrete and MultiBinary")


class Incoming:
    """Checks the values that an environment shows to a wrapper.

    A value must be a number inside its bounds. Real numbers may leave theirs if `outside` is ``"warn"``, since many
    environments leave their `Box` by rounding. NaN is always an error, and so is a number that the type of the space
    cannot hold.

    Parameters
    ----------
    wrapper
        The name of the wrapper, for messages.
    bounds
        The bounds of the components.
    names
        A name per component; ``x0, x1, …`` if not given.
    outside
        What to do with a real number outside its bounds.

    Examples
    --------
    >>> incoming = Incoming("Wrapper", bounds_of(spaces.Box(-1, 1, (2,))), ("position", "speed"), "error")
    >>> incoming.values([0.5, 2.0])
    Traceback (most recent call last):
    ValueError: the environment showed speed = 2.0 to Wrapper, outside its space: between -1.0 and 1.0
    """

    def __init__(self, wrapper: str, bounds: Bounds, names: Sequence[str] = (), outside: Outside = "warn") -> None:
        one_of("outside", outside, get_args(Outside))
        self._wrapper, self._bounds, self._names, self._outside = wrapper, bounds, tuple(names), outside
        self._whole = bounds.discrete or bounds.dtype.kind in "iu"
        self._warned = np.zeros(bounds.low.shape, dtype=np.bool_)

    def values(self, observation: Any, mask: Any = None) -> NDArray[Any]:
        """Return an observation as an array of numbers in the shape of the bounds, or raise an error.

        Values whose entry of the mask is 1 are hidden, and not looked at.
        """
        low, high, dtype, discrete = self._bounds
        found = self._numbers(observation).reshape(low.shape)
        compared = found
        if not discrete and dtype.kind == "f" and found.dtype != dtype:
            # As the space holds them: 0.7 does not leave a bound of 0.7 because that has fewer digits.
            with np.errstate(over="ignore"):
                compared = found.astype(dtype)
        inside = (compared >= low) & (compared <= high)
        if self._whole and found.dtype.kind == "f":
            inside &= np.floor(found) == found
        if mask is not None:
            if np.size(mask) != low.size:
                raise ValueError(f"the mask shown to {self._wrapper} has {np.size(mask)} entries, not {low.size}")
            inside |= np.reshape(mask, low.shape) == 1
        if not inside.all():
            self._complain(found, compared, ~inside)
        return found

    def _numbers(self, observation: Any) -> NDArray[Any]:
        try:
            found = np.asarray(observation)
        except (TypeError, ValueError) as error:
            raise ValueError(self._refusal(observation, "it must be an array of numbers")) from error
        if found.dtype.kind not in "biuf":
            raise TypeError(self._refusal(observation, f"it must be an array of numbers, not of {found.dtype}"))
        if found.size != self._bounds.low.size:
            shapes = f"the shape of its space is {self._bounds.low.shape}, not {found.shape}"
            raise ValueError(self._refusal(observation, shapes))
        return found

    def _refusal(self, observation: Any, why: str) -> str:
        return f"the environment showed {shown(observation)} to {self._wrapper}; {why}"

    def _complain(self, found: NDArray[Any], held: NDArray[Any], wrong: NDArray[np.bool_]) -> None:
        """Refuse values, or warn of those that may be passed on; `held` are the values in the type of the space."""
        if self._outside == "error" or self._bounds.discrete:
            fatal = wrong
        elif self._whole:
            kept = np.iinfo(self._bounds.dtype)
            fatal = wrong & ~((np.floor(found) == found) & (found >= kept.min) & (found <= kept.max))
        else:
            fatal = wrong & ~(np.isfinite(held) | np.isinf(found))
        if fatal.any():
            raise ValueError(self._sentence(found, fatal))
        fresh = wrong & ~self._warned
        if fresh.any():
            self._warned |= wrong
            warnings.warn(
                f"{self._sentence(found, fresh)}; passed on as it is, and not said again (outside='error' refuses it)",
                stacklevel=5,
            )

    def _sentence(self, found: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
        low, high, _, discrete = self._bounds
        j, *more = np.flatnonzero(wrong).tolist()
        name = self._names[j] if self._names else f"x{j}"
        value = found.ravel()[j].item()
        others = f" (and {len(more)} more)" if more else ""
        whole = "whole numbers " if self._whole else ""
        hint = "; a missing value is told by a mask" if value != value and not discrete else ""  # noqa: PLR0124  NaN
        return (
            f"the environment showed {name} = {value} to {self._wrapper}{others}, outside its space: {whole}between "
            f"{low.ravel()[j].item()} and {high.ravel()[j].item()}{hint}"
        )


def kept_info(info: Any, dropped: Collection[str] = ()) -> dict[str, Any]:
    """Return the info of an environment without some of its keys, or raise an error if it is no mapping."""
    of_kind("the info of the environment", info, Mapping, "a dict, which may be empty")
    return {key: value for key, value in info.items() if key not in dropped}
