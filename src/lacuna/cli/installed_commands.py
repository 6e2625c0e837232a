"""Commands that installed packages bring: entry points of the group `lacuna.commands`, imported when asked for."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib.metadata import entry_points
from typing import Any

import typer
import typer.core
import typer.main

from lacuna.references import entry_point_names, load, told

COMMAND_GROUP = "lacuna.commands"
"""The group of entry points in which a package names its commands: functions, or apps of Typer."""

PACKAGE_OF = dict.fromkeys(("explain", "paper", "theory"), "lacuna-paper")
"""Commands that the documentation shows, each with the package that brings it."""

Command = Any
"""A command as Typer made it; its class differs between versions."""


class Commands(MutableMapping[str, Command]):
    """Commands by name: lacuna's own, then those of other packages."""

    def __init__(self, own: MutableMapping[str, Command]) -> None:
        self.own = own

    def __getitem__(self, name: str) -> Command:
        if name in self.own:
            return self.own[name]
        found = sorted({f"{point.module}:{point.attr}" for point in entry_points(group=COMMAND_GROUP, name=name)})
        if len(found) == 1:
            return _command(name, found[0])
        if found:
            return _refusing(name, f"several packages bring a command {name}: {', '.join(found)}; keep one of them")
        if name in PACKAGE_OF:
            return _refusing(name, f"the command {name} comes with another package: pip install {PACKAGE_OF[name]}")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in entry_point_names(COMMAND_GROUP) if name not in self.own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __setitem__(self, name: str, command: Command) -> None:
        self.own[name] = command

    def __delitem__(self, name: str) -> None:
        del self.own[name]


class OpenGroup(typer.core.TyperGroup):
    """A group of commands that other packages may add to."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = Commands(self.commands)


def _command(name: str, reference: str) -> Command:
    """Return the command that a reference names, or one that says why there is none: help shows the others."""
    try:
        return _made(name, load(reference), reference)
    except ValueError as error:
        return _refusing(name, f"the command {name} does not work: {error}")


def _made(name: str, found: Any, reference: str) -> Command:
    group = typer.Typer()
    if isinstance(found, typer.Typer):
        group.add_typer(found, name=name)
    elif callable(found):
        group.command(name)(found)
    else:
        raise ValueError(f"{reference!r} is {type(found).__name__}; it must be a function or a typer.Typer")
    try:
        return typer.main.get_group(group).commands[name]
    except Exception as error:
        raise ValueError(f"{reference!r} is no command: {told(error)}") from error


def _refusing(name: str, sentence: str) -> Command:
    """Return a command that takes any words, and answers with a sentence."""

    def refuse() -> None:
        raise ValueError(sentence)

    group = typer.Typer()
    any_words = {"ignore_unknown_options": True, "allow_extra_args": True}
    group.command(name, help=sentence[0].upper() + sentence[1:], context_settings=any_words)(refuse)
    return typer.main.get_group(group).commands[name]
