"""The options that commands share: a method, and every setting that is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuna.agent.methods import METHODS
from lacuna.agent.settings import DEFAULT, SETTINGS, Setting

if TYPE_CHECKING:
    from lacuna.agent.own_method import AnyMethod

Command = Callable[..., None]

WorldOption = Annotated[
    str,
    typer.Option(
        help="A world, e.g. machine,wear=0.2 (`lacuna worlds` lists them); a Gymnasium id, e.g. "
        "FrozenLake-v1; or a reference to your own, e.g. mine.worlds:maze,size=5."
    ),
]
MissingnessOption = Annotated[
    str,
    typer.Option(
        help="A mechanism, e.g. mcar:0.4 (`lacuna worlds` lists them), or a reference to your own, e.g. "
        "mine.mechanisms:by_mood,rate=0.3."
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        help="A method (`lacuna methods` lists them), or a reference to your own, e.g. mine.agents:Mine,rate=0.5.",
        show_default="the library's default",
    ),
]
HideFirstOption = Annotated[bool, typer.Option("--hide-first", help="Hide parts of the first state of an episode too.")]


def command_with_settings(command: Command) -> Command:
    """Add an option for every declared setting to a command, which receives those that were used as `given`."""
    own = [option for option in signature(command, eval_str=True).parameters.values() if option.name != "given"]
    declared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=_option(name, setting))
        for name, setting in SETTINGS.items()
    ]

    @wraps(command)
    def called(**options: Any) -> None:
        chosen = {name: options.pop(name) for name in SETTINGS}
        command(given={name: value for name, value in chosen.items() if value is not None}, **options)

    options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in own]
    split = next(i for i, option in enumerate(options) if option.name == "method") + 1
    options[split:split] = declared
    called.__dict__ |= {"__signature__": Signature(options)}
    called.__annotations__ = {option.name: option.annotation for option in options}
    return called


def _option(name: str, setting: Setting) -> Any:
    choices = f": {', '.join(setting.choices)}" if setting.choices else ""
    usual = setting.effective_default
    own = getattr(DEFAULT, name) if setting.belongs_to(METHODS[DEFAULT.method]) else usual
    shown = str(usual) if own == usual else f"{own}, or {usual} with --method"
    owners = [method.name for method in METHODS.values() if setting.belongs_to(method)]
    whose = f" Only for {', '.join(owners)}." if len(owners) < len(METHODS) else ""
    about = f"{setting.about[0].upper()}{setting.about[1:]}{choices}.{whose}"
    return Annotated[setting.kind | None, typer.Option(f"--{name.replace('_', '-')}", help=about, show_default=shown)]


def chosen_method(method: str | None, given: dict[str, Any]) -> AnyMethod:
    """Return the method that a command was asked for, with the settings that were given."""
    from lacuna.agent.own_method import OwnMethod, find_method

    # The library's default settings belong together: naming a method drops all of them.
    chosen = DEFAULT if method is None else find_method(method)
    if not isinstance(chosen, OwnMethod):
        return replace(chosen, **given)
    for name, value in given.items():
        written = f"{name.replace('_', '-')} is {value!r}, but {method} is a method of your own"
        raise ValueError(f"{written}; write its parameters after its name: {chosen.use},PARAMETER=VALUE,…")
    return chosen


def page_to_write(path: Path) -> Path:
    """Return the path of a page that a command was asked to write, or refuse it.

    Examples
    --------
    >>> page_to_write(Path("report.txt"))
    Traceback (most recent call last):
    ValueError: out is report.txt; its name must end in .html
    """
    if path.suffix not in {".html", ".htm"}:
        raise ValueError(f"out is {path}; its name must end in .html")
    if not path.parent.is_dir():
        raise ValueError(f"out is {path}, but there is no folder {path.parent}")
    return path
