"""The codebook of an export: what each file, column and code means, and how much is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from lacuna.trial.file.context import Component
from lacuna.trial.log.decision_table import columns, component_columns
from lacuna.trial.log.decisions import History
from lacuna.trial.log.exchange import treatment_of, wcls_columns
from lacuna.validation import shown
from lacuna.version import __version__

FILES: dict[str, str] = {
    "codebook.json": "this codebook, for programs",
    "codebook.md": "this codebook, for people",
    "decisions.parquet": "a row per decision point, absent ones included",
    "decisions.csv": "the same as text; an empty field is null, times are in UTC, a text like a formula begins with '",
    "log.jsonl": "all events with their chain of hashes, from which everything can be computed again",
    "wcls.parquet": "decisions in the columns of weighted and centred least squares",
    "wcls.csv": "the same as text",
    "obp.npz": "randomised decisions with a reward, as arrays of the Open Bandit Pipeline",
}
"""Every file that an export can have."""

_MISSING = "not reported, or reported and invalid: null in coded, true in missing"


def codebook(
    history: History, table: pl.DataFrame, begin: str, files: Iterable[str], treatment: str | None = None
) -> dict[str, Any]:
    """Return the codebook as plain data.

    Parameters
    ----------
    history, table
        The decision points, and their `table_of`.
    begin
        Chain of event 0 in hexadecimal digits, which identifies the trial.
    files
        Names of the files of the export.
    treatment
        The action that counts as treatment, if named.
    """
    file, asked, names = history.file, table.filter(pl.col("policy") != "absent"), list(files)
    book: dict[str, Any] = {
        "trial": file.name,
        "begin": begin,
        "head": {"seq": history.head.seq, "chain": history.head.chain.hex()},
        "lacuna": __version__,
        "redacted": history.redacted,
        "actions": list(file.actions),
        "absent": file.trial.absent,
        "rows": {"all": table.height, "asked": asked.height, "absent": table.height - asked.height},
        "files": {name: FILES[name] for name in FILES if name in names},
        "components": [_component(one, asked) for one in file.context.components],
        "columns": [
            {"name": name, "type": _type_name(kind), "meaning": meaning}
            for name, (kind, meaning) in columns(file).items()
        ],
    }
    if "wcls.csv" in names:
        book["treatment"] = treatment_of(file, treatment)
        book["wcls"] = [{"name": name, "meaning": meaning} for name, meaning in wcls_columns(file).items()]
    return book


def _component(component: Component, asked: pl.DataFrame) -> dict[str, Any]:
    name = component.name
    return component.described() | {
        "missing": _MISSING,
        "rows": asked.height,
        "n_missing": int(asked[f"missing_{name}"].sum()),
        "n_invalid": int(asked[f"invalid_{name}"].sum()),
        "columns": list(component_columns(component)),
    }


def _type_name(kind: Any) -> str:
    names = {pl.String: "text", pl.Int64: "whole number", pl.Float64: "number", pl.Boolean: "true or false"}
    return names.get(kind, "time")


def codebook_text(book: Mapping[str, Any]) -> str:
    """Write a codebook as Markdown."""
    head, rows = book["head"], book["rows"]
    lines = [
        f"# Codebook of the trial {_cell(book['trial'])}", "",
        f"Events 0 to {head['seq']}, of which {book['redacted']} were redacted. The chain ends with `{head['chain']}`.",
        f"Exported by lacuna {book['lacuna']}.", "",
        f"There are {rows['all']} decision points; nobody asked at {rows['absent']} of them.",
        f"Actions: {', '.join(map(_cell, book['actions']))}. Where nobody asks, and where a participant is not "
        f"available, the action is {_cell(book['absent'])}.", "",
        "## Files", "",
        *_rows(("file", "content"), book["files"].items()), "",
        "## Components of the context", "",
        "Numbers missing and invalid are of the decision points at which somebody asked.", "",
    ]  # fmt: skip
    for one in book["components"]:
        codes = one.get("bins") or [shown(value) for value in one["values"]]
        lines += [
            f"### {_cell(one['name'])}", "",
            f"A component of the type *{one['type']}*. Missing: {one['missing']}.",
            f"Of {one['rows']} rows, {one['n_missing']} are missing, and {one['n_invalid']} of these invalid.", "",
            *_rows(("code", "bin" if one["type"] == "number" else "value"), enumerate(codes)), "",
        ]  # fmt: skip
    lines += ["## Columns of decisions", ""]
    lines += _rows(
        ("column", "type", "meaning"), ((one["name"], one["type"], one["meaning"]) for one in book["columns"])
    )
    if "wcls" in book:
        lines += ["", "## Columns of wcls", "", f"The treatment is {_cell(book['treatment'])}.", ""]
        lines += _rows(("column", "meaning"), ((one["name"], one["meaning"]) for one in book["wcls"]))
    return "\n".join(lines) + "\n"


def _rows(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> list[str]:
    """A table of Markdown."""
    lines = [header, tuple("---" for _ in header), *rows]
    return [f"| {' | '.join(map(_cell, line))} |" for line in lines]


def _cell(value: object) -> str:
    """Escape a text for Markdown: names of actions and components may hold anything printable."""
    text = str(value)
    for mark in "\\`*_<>[]|#":
        text = text.replace(mark, f"\\{mark}")
    return text
