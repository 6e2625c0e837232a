"""Hiding components of one environment's observations, for single and vector wrappers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from lacuna.agent.components import REVEALING, Components, as_sample, components_of
from lacuna.kernels.space import MISSING, Space
from lacuna.kernels.streams import Stream
from lacuna.missingness.lateness import begin_lateness, blank_lateness, put_off
from lacuna.missingness.mechanism import Mechanism, RateBy, hide
from lacuna.wrappers.incoming import Incoming, kept_info

Encoding = Literal["token", "dict"]


class Display(NamedTuple):
    """How observations are shown; see `MissingObservation` for the meaning."""

    encoding: Encoding
    first_observed: bool
    truth: bool
    drop_info: frozenset[str]

    @classmethod
    def of(cls, components: Components, encoding: Encoding | None, rest: tuple[bool, bool, Any]) -> Display:
        """What was asked for, with defaults; `rest` is first_observed, truth and drop_info."""
        first_observed, truth, drop_info = rest
        dropped = frozenset(drop_info) | (frozenset() if truth else REVEALING)
        return cls(encoding or ("dict" if components.sizes is None else "token"), first_observed, truth, dropped)


class Cover:
    """Hides components of the observations of one environment: a mechanism, the mode of its chain, and its stream."""

    def __init__(
        self,
        mechanism: Mechanism,
        space: spaces.Space[Any],
        display: Display,
        *,
        first_action: int,
        incoming: Incoming,
    ) -> None:
        self.mechanism, self.components, self.display = mechanism, components_of(space), display
        components = self.components
        self.outer = encoded_space(space, components, display.encoding)
        self._first_action, self._incoming = first_action, incoming
        # One past the last value, which means missing.
        tops = components.start if components.sizes is None else components.start + components.sizes
        self._top = tops.reshape(components.shape)
        self.mode = np.zeros(1, dtype=np.int64)
        self.mask = np.zeros(components.d, dtype=np.bool_)
        self.lateness = blank_lateness(mechanism)
        if self.lateness is not None and components.sizes is None:
            raise ValueError(f"the observation is a Box; {mechanism.name} is for components with finitely many values")
        # Without a seed a run is not meant to be repeated: start anywhere.
        self.stream = Stream(int(np.random.SeedSequence().generate_state(1)[0]), "missingness")

    def restart(self, seed: int) -> None:
        """Start the random numbers anew, and put the hidden chain in mode 0."""
        self.stream = Stream(seed, "missingness")
        self.mode[0] = 0

    def first(self, observation: Any, info: dict[str, Any], true: int) -> tuple[Any, dict[str, Any]]:
        """Show the first observation of an episode."""
        if self.lateness is not None:
            begin_lateness(self.lateness, self.display.first_observed)
        values = self._incoming.values(observation)
        if self.display.first_observed:
            return self._shown(observation, values, np.zeros(self.components.d, dtype=np.bool_), info)
        return self._shown(observation, values, self._draw_mask(values, -1, true), info)

    def later(self, observation: Any, info: dict[str, Any], true: int, action: Any) -> tuple[Any, dict[str, Any]]:
        """Show what an action led to."""
        taken = int(action) - self._first_action if self.mechanism.n_actions else -1
        values = self._incoming.values(observation)
        return self._shown(observation, values, self._draw_mask(values, taken, true), info)

    def vector(self, observation: Any, space: Space) -> NDArray[np.int64]:
        """An encoded observation as the vector that kernels take: values from 0 on, -1 for missing."""
        values = observation if self.display.encoding == "token" else observation["values"]
        found = self.components.vector(values)
        hidden = found == space.sizes if self.display.encoding == "token" else np.ravel(observation["mask"]) == 1
        found[hidden] = MISSING
        return found

    def _draw_mask(self, values: NDArray[Any], action: int, true: int) -> NDArray[np.bool_]:
        mechanism = self.mechanism
        shown = mechanism.by == RateBy.SHOWN
        row = int(self.components.vector(values) @ mechanism.space.layout.strides) if shown else 0
        if mechanism.by == RateBy.TRUE and not 0 <= true < mechanism.n_rows:
            raise ValueError(f"the true state is {true}; {mechanism.name} has rates for 0 to {mechanism.n_rows - 1}")
        mask = np.empty(self.components.d, dtype=np.bool_)
        hide(row, true, action, self.mode, mechanism.hiding, self.stream.need(mechanism.n_draws), mask)
        if self.lateness is not None:
            vector = self.components.vector(values)
            put_off(vector, mask, self.lateness, self.stream.need(self.components.d))
        return mask

    def _shown(
        self, observation: Any, values: NDArray[Any], mask: NDArray[np.bool_], info: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        self.mask = mask
        shaped = mask.reshape(self.components.shape)
        kept = kept_info(info, self.display.drop_info)
        refuse_taken(kept)
        kept["mask"] = shaped.astype(np.int8)
        if self.lateness is not None:
            kept["late"], kept["steps_ago"] = self.lateness.arrived.copy(), self.lateness.delay - 1
        if self.display.truth:
            kept["truth"] = np.array(observation)
        return self._encode(values, shaped), kept

    def _encode(self, values: NDArray[Any], mask: NDArray[np.bool_]) -> Any:
        if self.display.encoding == "token":
            return as_sample(np.where(mask, self._top, values), self.outer)
        inner = cast("spaces.Dict", self.outer)["values"]
        return {
            "values": as_sample(np.where(mask, self.components.fill, values), inner),
            "mask": mask.astype(np.int8),
        }


def refuse_taken(info: Iterable[str]) -> None:
    """Refuse info of an environment under names that are needed."""
    taken = {"mask", "truth", "late", "steps_ago"} & set(info)
    if taken:
        raise ValueError(
            f"the environment's own info already holds {', '.join(sorted(taken))}, which would be overwritten; "
            f"leave it out with drop_info={tuple(sorted(taken))}"
        )


def encoded_space(space: spaces.Space[Any], components: Components, encoding: Encoding) -> spaces.Space[Any]:
    """The space of observations of which parts are hidden."""
    if encoding == "dict":
        return spaces.Dict({"values": space, "mask": spaces.MultiBinary(list(components.shape))})
    if encoding != "token":
        raise ValueError(f"encoding is {encoding!r}; it must be 'token' or 'dict'")
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n) + 1, start=int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        nvec, start = space.nvec.astype(np.int64) + 1, space.start.astype(np.int64)
        # The extra value must fit the type too.
        fits = (start + nvec - 1 <= np.iinfo(space.dtype).max).all()
        kind = cast("type[np.integer[Any]]", space.dtype) if fits else np.int64
        return spaces.MultiDiscrete(nvec, dtype=kind, start=start)
    raise ValueError("a Box has no value to spare for 'missing'; use encoding='dict'")
