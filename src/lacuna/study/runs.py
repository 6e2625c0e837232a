"""A run of a study: everything that fixes its figures, and the name that follows from it.

`Expansion` is what a study stands for, as the note in a store keeps it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from lacuna.agent.own_method import AnyMethod, OwnMethod
from lacuna.agent.settings import Settings
from lacuna.parameters import Frozen, frozen
from lacuna.references import Sources, is_reference
from lacuna.validation import MAX_NAME, is_plain, shown
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


Scalar = bool | int | float | str | None
Value = Scalar | tuple[Scalar | tuple[Scalar | tuple[Scalar, ...], ...], ...]
"""A parameter as a file holds it: lists nest three deep at most."""


class Expansion(BaseModel):
    """What a study stands for, as plain data: a reader of results needs no world, mechanism or method for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    problems: tuple[tuple[str, dict[str, Value], str], ...] = Field(min_length=1)
    """World, parameters, mechanism."""
    settings: tuple[dict[str, Value | dict[str, Value]], ...] = Field(min_length=1)
    """Methods: those of lacuna with the settings that differ from their declared default, as in the name of a run."""
    sources: dict[str, dict[str, str]]
    """By the name of each part that does not come with lacuna: its references, with digests."""

    def methods(self) -> tuple[AnyMethod, ...]:
        """Return the methods; nothing is imported for them."""
        return tuple(method_from_json(method) for method in self.settings)


def written_parameters(parameters: Frozen) -> str:
    """Write the parameters of a world as a store does."""
    return ", ".join(f"{key}={value!r}" for key, value in parameters)


def written_sources(sources: Sources) -> str:
    """Write the sources of a run as a store does."""
    return "; ".join(f"{reference} {digest[:12]}" for reference, digest in sources)


def no_names(
    problems: Iterable[tuple[str, Frozen, str]], settings: Iterable[AnyMethod], sources: Mapping[str, Sources]
) -> list[str]:
    """Return a sentence for every name of a study that could not stand in a store or on a page."""
    texts = [text for world, given, name in problems for text in (world, written_parameters(given), name)]
    texts += [method.method for method in settings]
    texts += map(written_sources, sources.values())
    return [
        f"{shown(text)} is no name; a name has at most {MAX_NAME} characters, all printable"
        for text in dict.fromkeys(texts) if not is_plain(text)
    ]  # fmt: skip


def method_as_json(method: AnyMethod) -> dict[str, Any]:
    """Return a method as plain data."""
    return asdict(method) | ({"parameters": dict(method.parameters)} if isinstance(method, OwnMethod) else {})


def method_as_note(method: AnyMethod) -> dict[str, Any]:
    """Return a method as plain data, a method of lacuna without settings that have their declared default."""
    if isinstance(method, OwnMethod):
        return method_as_json(method)
    return {"method": method.method, **method.unusual()}


def method_from_json(data: Mapping[str, Any]) -> AnyMethod:
    """Build the method that `method_as_json` or `method_as_note` described; nothing is imported for it."""
    if "use" not in data:
        return Settings(**data)
    if not is_reference(data["use"]):
        raise ValueError(f"use is {shown(data['use'])}; it must be a reference, e.g. mine.agents:Mine")
    return OwnMethod(data["use"], frozen(data["parameters"]))
