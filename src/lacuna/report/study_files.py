"""From folders of results to pages: the report of a store, and two stores compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup

from lacuna.files import write_whole
from lacuna.quantities import counted
from lacuna.report.html_tables import Cell, Text, cards, interval_cell, short_number, table
from lacuna.report.page import Page, Section, numbers, paragraphs
from lacuna.report.study_report import About, report
from lacuna.report.styles import DARK
from lacuna.study.outcomes import left_out, of_latest_source, runs_of, trials_text
from lacuna.study.runs import written_parameters
from lacuna.study.spec import Study
from lacuna.study.store import Store
from lacuna.study.store_comparison import HEADS, StoreComparison
from lacuna.terminal import shell_word
from lacuna.validation import nearest, printable, shown

_MOST_TOLD = 5


def report_store(store: Store, out: Path, name: str | None = None) -> list[str]:
    """Write the report of a store, or of one study in it; give sentences on what is missing.

    Parameters
    ----------
    store
        The folder of results.
    out
        The page to write.
    name
        The name of a study; all runs in the store unless given.
    """
    studies = store.studies()
    if name is not None:
        known = list(dict.fromkeys(study.spec.name for study in studies))
        studies = [study for study in studies if study.spec.name == name]
        if not studies:
            there = f"there are {', '.join(known)}" if known else "it has none"
            raise ValueError("; ".join(
                [f"study is {shown(name)}{nearest(name, known)}; in {store.path} {there}", *store.left_alone()]
            ))  # fmt: skip
    stored = store.table()
    if name is not None:
        ids = pl.concat([runs_of(study, stored)["id"] for study in studies])
        stored = stored.filter(pl.col("id").is_in(ids.implode()))
    runs = of_latest_source(stored, studies)
    old = left_out(stored.height - runs.height)
    if runs.is_empty():
        which = "; ".join([f"{store.path} holds no finished runs{f' of {name}' if name else ''}", *old])
        raise ValueError(f"{which}; a report needs some")
    missing = missing_runs(studies, runs) + old + store.left_alone()
    commands, files = commands_of(studies, store.path, out, name)
    names = list(dict.fromkeys(study.spec.name for study in studies))
    title = f"Study: {names[0]}" if len(names) == 1 else f"{len(names)} studies" if names else "Runs"
    report(runs, out, title=title, about=About(commands, files, missing))
    return missing


def missing_runs(studies: Sequence[Study], runs: pl.DataFrame) -> list[str]:
    """Say for each study that is not complete how many runs a table lacks, and which.

    Examples
    --------
    >>> from lacuna.study.parts import no_runs
    >>> study = Study.parse('''
    ... name = "first"
    ... steps = 1000
    ... trials = 3
    ... missingness = ["mcar:0.2"]
    ... worlds = [{name = "corridor"}]
    ... methods = [{name = "last-observed"}]
    ... ''')
    >>> missing_runs([study], no_runs())
    ['first lacks 3 of 3 runs: last-observed in corridor, mcar:0.2 (trials 0 to 2)']
    """
    told = []
    for study in studies:
        found = runs_of(study, runs)
        if (n := len(study) - found.height) > 0:
            told.append(f"{study.spec.name} lacks {n:,} of {counted(len(study), 'run')}: {_which(study, found)}")
    return told


def _which(study: Study, found: pl.DataFrame) -> str:
    """Name the first methods and problems that lack trials of a study."""
    spec, settings = study.spec, Counter(method.method for method in study.settings)
    where = ("world", "parameters", "missingness", "method")
    whole = pl.col("len") == pl.col("method").replace_strict(settings, return_dtype=pl.Int64)
    finished = found.group_by(*where, "trial").len().filter(whole).group_by(where).agg("trial")
    done = {tuple(place): trials for *place, trials in finished.iter_rows()}
    lacking = (
        (f"{method} in {','.join([world, *(f'{name}={value}' for name, value in given)])}, {missingness}", trials)
        for (world, given, missingness), method in product(study.problems, settings)
        if len(trials := done.get((world, written_parameters(given), missingness, method), ())) < spec.trials
    )
    every = np.arange(spec.first_trial, spec.first_trial + spec.trials)
    which = [f"{name} ({trials_text(np.setdiff1d(every, trials).tolist())})"
             for name, trials in islice(lacking, _MOST_TOLD)]  # fmt: skip
    n = len(study.problems) * len(settings) - sum(len(trials) == spec.trials for trials in done.values())
    return "; ".join(which) + (f"; and {n - _MOST_TOLD} more" if n > _MOST_TOLD else "")


def commands_of(studies: Sequence[Study], folder: Path, out: Path, name: str | None) -> tuple[str, dict[str, str]]:
    """Return the commands that repeat studies and their report, and the files that these need."""
    files: dict[str, str] = {}
    for study in studies:
        stem = study.spec.name.replace(" ", "-")
        unused = next(word for word in (stem, f"{stem}-{study.id}") if f"{word}.toml" not in files)
        files[f"{unused}.toml"] = as_toml(study.spec.model_dump(exclude_defaults=True))
    store = shell_word(folder)
    lines = [f"lacuna study run {shell_word(file)} --out {store}" for file in files]
    only = f" --study {shell_word(name)}" if name is not None else ""
    lines.append(f"lacuna study report {store}{only} --out {shell_word(out)}")
    return "\n".join(lines), files


def as_toml(data: Mapping[str, Any]) -> str:
    r"""Write plain data as TOML: a line for each key, tables in braces.

    Examples
    --------
    >>> print(as_toml({"name": "first", "worlds": [{"name": "corridor", "length": 5}], "steps": 1000}))
    name = "first"
    worlds = [{name = "corridor", length = 5}]
    steps = 1000
    <BLANKLINE>
    """
    return "".join(f"{_key(key)} = {_toml(value)}\n" for key, value in data.items())


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        items = [_toml(item) for item in value]
        line = ", ".join(items)
        return f"[{line}]" if len(line) < 100 else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    # JSON writes texts, numbers and truth as TOML does.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


# --- two stores ---------------------------------------------------------------------------------------------------


def write_comparison(found: StoreComparison, names: tuple[str, str], out: Path) -> None:
    """Write what came of comparing two stores as a page."""
    plain = (printable(names[0]), printable(names[1]))
    sentences = found.sentences(plain)
    amounts = numbers(
        [
            (f"{found.equal:,}", "runs in both, equal to the bit"),
            (f"{found.differing.height:,}", "runs in both that differ"),
            *((f"{runs.height:,}", f"runs only in {name}") for name, runs in zip(plain, found.only, strict=True)),
        ]
    )
    listed = Markup("<ul>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(text) for text in sentences))
    rows: list[list[Text | float | Cell]] = [
        [one.place, one.missingness, one.method, *(Cell(short_number(mean), mean) for mean in (one.first, one.second)),
         interval_cell(one.apart), one.apart.n, one.finding]
        for one in found.compared()
    ]  # fmt: skip
    text = (
        f"{found.measure.name.capitalize()} over whole runs, paired by trial; 95 % intervals (Student's t). A "
        "difference is clear if its p value, corrected by Holm's method for all rows, is at most 5 %. There is no "
        "interval where all differences are equal, as their spread is unknown."
    )
    made = cards(table(HEADS, rows)) if rows else paragraphs("No method has a trial of the same task in both.")
    command = " ".join(["lacuna study compare", *map(shell_word, names), "--out", shell_word(out)])
    page = Page(
        "Two stores compared",
        paragraphs(Markup("First: <code>{}</code>. Second: <code>{}</code>.").format(*plain)),
        [
            Section("runs", "Runs", amounts + listed),
            Section("differences", "Differences", paragraphs(text) + made),
            Section("repeat", "Repeat it", Markup("<pre>{}</pre>").format(command)),
        ],
        dark=DARK,
        footer="This page needs no network.",
    )
    write_whole(out, page.html().encode())
