"""A run of a study: everything that fixes its figures, and the name that follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from lacuna.learning.own_method import AnyMethod, OwnMethod
from lacuna.methods.settings import Settings
from lacuna.parameters import Frozen, frozen
from lacuna.references import Sources
from lacuna.version import RESULTS_VERSION


@dataclass(frozen=True)
class RunSpec:
    """One run: everything that fixes its figures, and nothing else."""

    world: str
    parameters: Frozen
    missingness: str
    settings: AnyMethod
    steps: int
    trial: int
    curve: tuple[int, ...] = ()
    first_observed: bool = True
    sources: Sources = ()
    """The references to what does not come with lacuna, each with the digest of its source."""

    @cached_property
    def id(self) -> str:
        """A name derived from the content: the same run has the same name in every study.

        Only what differs from a default enters it, so a parameter that is added later renames nothing.
        """
        content: dict[str, Any] = {
            "results": RESULTS_VERSION,
            "world": self.world,
            "parameters": dict(self.parameters),
            "missingness": self.missingness,
            "settings": self._unusual_settings(),
            "method": self.settings.method,
            "steps": self.steps,
            "trial": self.trial,
        }
        if self.curve:
            content["curve"] = self.curve
        if not self.first_observed:
            content["first_observed"] = False
        if self.sources:
            content["sources"] = dict(self.sources)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    def _unusual_settings(self) -> dict[str, Any]:
        # The method stands beside the settings too. Leaving it out of one place would rename all runs.
        method = self.settings.method
        return self.settings.unusual() | ({"method": method} if method != Settings().method else {})

    def as_columns(self) -> dict[str, Any]:
        """The run as the columns of a store that define it, apart from its curve."""
        return {
            "world": self.world,
            "parameters": written_parameters(self.parameters),
            "missingness": self.missingness,
            **self.settings.as_dict(),
            "first_observed": self.first_observed,
            "source": written_sources(self.sources),
            "steps": self.steps,
            "trial": self.trial,
        }

    def to_json(self) -> dict[str, Any]:
        """The run as plain data, to send to another process."""
        return asdict(self) | {"parameters": dict(self.parameters), "settings": method_as_json(self.settings)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """Build the run that `to_json` described."""
        return cls(
            **{
                **data,
                "parameters": frozen(data["parameters"]),
                "settings": method_from_json(data["settings"]),
                "curve": tuple(data["curve"]),
                "sources": tuple((reference, digest) for reference, digest in data["sources"]),
            }
        )


def written_parameters(parameters: Frozen) -> str:
    """Write the parameters of a world as a store does."""
    return ", ".join(f"{key}={value!r}" for key, value in parameters)


def written_sources(sources: Sources) -> str:
    """Write the sources of a run as a store does."""
    return "; ".join(f"{reference} {digest[:12]}" for reference, digest in sources)


def method_as_json(method: AnyMethod) -> dict[str, Any]:
    """Return a method as plain data."""
    return asdict(method) | ({"parameters": dict(method.parameters)} if isinstance(method, OwnMethod) else {})


def method_from_json(data: Mapping[str, Any]) -> AnyMethod:
    """Build the method that `method_as_json` described; nothing is imported for it."""
    return OwnMethod(data["use"], frozen(data["parameters"])) if "use" in data else Settings(**data)
