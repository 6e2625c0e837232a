"""The `lacuna trial` commands. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lacuna.cli.trial_log_commands import export, key, redact, replay, status, text_of, upgrade
from lacuna.validation import one_of, read_json, shown, whole_number

MOST_FALLBACKS = 400

app = typer.Typer(
    help="Trials with missing context: decide, learn, replay, export. Arguments stay in the history of the shell: to "
    "keep an identifier out of it, write it into a file and pass @file, or use decide --stdin.",
    no_args_is_help=True,
)

File = Annotated[str, typer.Argument(help="The trial file (TOML) or the store of the trial.", show_default=False)]
WHO = (
    "The identifier; case counts, blanks around it do not. @file reads it from a file, which keeps it out of the "
    "history of the shell. Write @@ for a leading @."
)
WHEN = "The decision point, counted from 0."
Participant = Annotated[str, typer.Argument(help=WHO, show_default=False)]
Point = Annotated[int, typer.Argument(help=WHEN, show_default=False)]

for about_the_log in (status, replay, upgrade, export, redact, key):
    app.command()(about_the_log)


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The trial file, TOML.", show_default=False)],
    source: Annotated[
        Path | None, typer.Option("--from", help="The exported log of an earlier trial, to learn from first.")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="TOML or JSON: tables components and actions, old names to new ones.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Take the secret from a seed: for tests only.")] = None,
) -> None:
    """Begin a trial.

    Example: lacuna trial init walk.toml --from pilot/log.jsonl
    """
    from lacuna.trial.engine.recovery import secret_path
    from lacuna.trial.engine.sources import read_source
    from lacuna.trial.engine.trial import Trial
    from lacuna.trial.file.trial_file import TrialFile
    from lacuna.trial.log.log_store import sqlite_path

    if mapping is not None and source is None:
        raise ValueError(f"mapping is {shown(str(mapping))}, but there is no earlier log; it belongs to --from LOG")
    found = TrialFile.read(file)
    earlier = None if source is None else read_source(source, found, mapping)
    with Trial.create(found, seed=seed, source=earlier):
        pass
    store = sqlite_path(found.store)
    typer.echo(f"the trial {found.name} has begun in {store}")
    if earlier is not None:
        typer.echo(earlier.about)
    typer.echo(f"back up {secret_path(store)}: without it, no participant can be told from another")


@app.command()
def enrol(
    file: File,
    participant: Participant,
    group: Annotated[str | None, typer.Option(help="Its group, if the trial file says pool = 'group'.")] = None,
) -> None:
    """Enrol a participant.

    Example: lacuna trial enrol walk.toml @maria.txt
    """
    from lacuna.trial.engine.trial import Trial

    with Trial.open(file) as trial:
        who, before = text_of(participant), trial.head
        trial.enrol(who, group)
        already = "" if trial.head != before else ", as before"
        typer.echo(f"enrolled under the pseudonym {trial.secret.pseudonym(who)}{already}")


@app.command()
def decide(
    file: File,
    participant: Annotated[str | None, typer.Argument(help=WHO, show_default=False)] = None,
    t: Annotated[int | None, typer.Argument(help=WHEN, show_default=False)] = None,
    context: Annotated[str | None, typer.Option(help="The context as JSON, or @file.", show_default=False)] = None,
    available: Annotated[
        bool, typer.Option("--available/--not-available", help="Whether the participant can be treated now.")
    ] = True,
    allowed: Annotated[
        list[str] | None,
        typer.Option(help="An allowed action; repeat the option for several, or give the name of a set."),
    ] = None,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read requests as lines of JSON, and answer each with a line.")
    ] = False,
) -> None:
    """Decide for a participant; a repeated request gets the first answer.

    Prints a JSON object.

    Example: lacuna trial decide walk.toml @maria.txt 17 --context '{"steps": 1203, "mood": null}'

    With --stdin, a line is {"participant": …, "t": …, "context": {…}} and may have available, allowed, previous, extra.
    """
    from lacuna.cli.pipe import answers
    from lacuna.trial.engine.trial import Trial

    given: dict[str, object] = {"PARTICIPANT": participant, "T": t, "--context": context}
    if stdin:
        given |= {"--allowed": allowed, "--not-available": not available}
        if extra := [name for name, value in given.items() if value]:
            raise ValueError(f"{extra[0]} was given, but with --stdin it comes from the lines that are read")
        with Trial.open(file) as trial:
            for answer in answers(trial, sys.stdin.buffer):
                typer.echo(answer)
        return
    if participant is None or t is None or context is None:
        lacking = next(name for name, value in given.items() if value is None)
        raise ValueError(f"{lacking} is missing; give it, or requests as lines of JSON with --stdin")
    with Trial.open(file) as trial:
        what = read_json("the context", text_of(context))
        chosen = _allowed(allowed, trial.file.sets)
        _tell(asdict(trial.decide(text_of(participant), t, what, available=available, allowed=chosen)))


def _allowed(names: list[str] | None, sets: dict[str, Any]) -> str | list[str] | None:
    """A single name may be that of a set."""
    return names[0] if names is not None and len(names) == 1 and names[0] in sets else names or None


@app.command()
def fallbacks(
    file: File,
    participant: Participant,
    t: Point,
    n: Annotated[int, typer.Argument(help=f"How many decision points, up to {MOST_FALLBACKS}.")],
) -> None:
    """Show the fall-backs for an app without a network: a line per decision point, with its action.

    Example: lacuna trial fallbacks walk.toml @maria.txt 18 30
    """
    from lacuna.trial.engine.trial import Trial

    whole_number("n", n, 1, MOST_FALLBACKS)
    with Trial.open(file) as trial:
        for point, action in enumerate(trial.fallbacks(text_of(participant), t, n), start=t):
            typer.echo(f"{point} {action}")


@app.command(context_settings={"ignore_unknown_options": True})
def outcome(
    file: File,
    participant: Participant,
    t: Point,
    reward: Annotated[str, typer.Argument(help="A number, or none if it was not observed.", show_default=False)],
    delivered: Annotated[str | None, typer.Option(help="Whether the action reached the participant: yes or no.")] = (
        None
    ),
) -> None:
    """Report the reward of a decision; a second report corrects the first.

    Prints a JSON object.

    Example: lacuna trial outcome walk.toml @maria.txt 17 0.5 --delivered yes
    """
    from lacuna.trial.engine.trial import Trial

    if delivered is not None:
        one_of("delivered", delivered, ("yes", "no"))
    arrived = None if delivered is None else delivered == "yes"
    value = None if reward == "none" else _number("the reward", reward)
    with Trial.open(file) as trial:
        _tell(asdict(trial.outcome(text_of(participant), t, value, delivered=arrived)))


@app.command()
def given(
    file: File,
    participant: Participant,
    t: Point,
    action: Annotated[str, typer.Argument(help="The action taken.", show_default=False)],
    context: Annotated[str, typer.Option(help="The context as JSON, or @file.", show_default=False)],
    prob: Annotated[
        str | None, typer.Option(help="Probability of each action: JSON, or @file. Default: unknown.")
    ] = None,
    fallback: Annotated[
        bool, typer.Option("--fallback", help="The action is the fall-back that was handed out.")
    ] = False,
) -> None:
    """Report a decision that was made elsewhere, to learn from it.

    Prints a JSON object.

    Example: lacuna trial given walk.toml @maria.txt 17 prompt --context '{"mood": 3}' --fallback
    """
    from lacuna.trial.engine.trial import Trial

    chances = None if prob is None else read_json("prob", text_of(prob))
    what = read_json("the context", text_of(context))
    with Trial.open(file) as trial:
        _tell(asdict(trial.given(text_of(participant), t, what, action, prob=chances, fallback=fallback)))


@app.command()
def end(
    file: File,
    participant: Participant,
    how: Annotated[str, typer.Argument(help="terminated or withdrawn.", show_default=False)],
) -> None:
    """End the trial of a participant.

    Example: lacuna trial end walk.toml @maria.txt withdrawn
    """
    from lacuna.trial.engine.trial import Trial

    with Trial.open(file) as trial:
        before = trial.head
        trial.end(text_of(participant), how)
        typer.echo(f"the participant is {how}" + ("" if trial.head != before else ", as before"))


@app.command()
def update(
    file: File,
    key: Annotated[str | None, typer.Option(help="A name, e.g. the date; a key updates only once.")] = None,
) -> None:
    """Learn from everything that is due, and take a snapshot.

    Prints a JSON object.

    Example: lacuna trial update walk.toml --key 2026-11-17
    """
    from lacuna.trial.engine.trial import Trial

    with Trial.open(file) as trial:
        _tell(trial.update(key))


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{what} is {shown(text)}; it must be a number, or none") from None


def _tell(answer: dict[str, Any]) -> None:
    typer.echo(json.dumps(answer))
