"""From nothing to the page: which studies there are; run what is missing, judge the claims, write the files.

The reduced studies are parts of the full ones: the same runs under the same names, only fewer. So nothing that was run
for one is run again for the other. The study of short horizons is the exception: reduced, its runs are shorter too.

Everything is in one folder: ``store/``, all runs ever made there; ``results.parquet``, those this command asked for;
``claims.json``, what they say of each claim; ``horizons.json``, what they say of short horizons; ``frontier.json``,
what every method earns in every world, if it was asked for; and the page.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from lacuna import Local, Store, Study, __version__
from lacuna.report import write_whole
from lacuna.study import Draw, Progress, export, run_studies
from lacuna_paper.claims import judge
from lacuna_paper.comparison import Comparisons, against_tuned, against_untuned
from lacuna_paper.evidence import DRAWS, Evidence, Reading, Selection, settings_looked_at
from lacuna_paper.frontier import studies as frontier
from lacuna_paper.frontier.section import FILE
from lacuna_paper.frontier.studies import Form
from lacuna_paper.horizons import Cell, as_data, cells_of
from lacuna_paper.page import write_page
from lacuna_paper.verdicts import Finding

FOLDER = Path(__file__).with_name("studies")
NAMES = ("mcar", "mcolor", "mfog", "choosing-k", "mixing", "stay")
BEYOND = ("default", "fixed")

Watch = Callable[[str, Progress], None]
"""Told, now and then, what is being run and how far it is."""

# --- the studies --------------------------------------------------------------------------------------------------


def paper_studies(form: Form = "full", reading: Reading = "episodic", folder: Path = FOLDER) -> list[Study]:
    """Read the paper's studies.

    The files are of the episodic reading; the continuing one is the same with worlds in which nothing terminates.

    Examples
    --------
    >>> sum(len(study) for study in paper_studies())
    34560
    """
    studies = [Study.read(folder / form / f"{name}.toml") for name in NAMES]
    return studies if reading == "episodic" else [_continuing(study) for study in studies]


def _continuing(study: Study) -> Study:
    data = study.spec.model_dump(exclude_defaults=True)
    data["name"] += "-continuing"
    data["worlds"] = [world | {"continuing": True} for world in data["worlds"]]
    return Study.from_data(data, data["name"])


def tuning_studies(studies: Sequence[Study], draws: Sequence[Draw]) -> list[Study]:
    """Return the same studies on the tuning trials of other draws; nobody looks at their curves, so they have none."""
    found = []
    for draw in draws:
        for study in studies:
            data = study.spec.model_dump(exclude_defaults=True, exclude={"curve_points"})
            data |= {"name": f"{study.spec.name} from {draw.tuning[0]}"}
            found.append(Study.from_data(data | _on(draw.tuning), data["name"]))
    return found


def _on(trials: Sequence[int]) -> dict[str, int]:
    """Return the keys of a study file for these trials, which follow each other."""
    return {"first_trial": trials[0], "trials": len(trials)}


def beyond_studies(trials: Sequence[int], folder: Path = FOLDER) -> list[Study]:
    """Read the studies of what is not in the paper, to be run on the given trials, which follow each other.

    Examples
    --------
    >>> [study.spec.name for study in beyond_studies(range(5))]
    ['default', 'fixed']
    """
    found = []
    for name in BEYOND:
        data = Study.read(folder / f"{name}.toml").spec.model_dump(exclude_defaults=True)
        found.append(Study.from_data(data | _on(trials), name))
    return found


def horizon_studies(form: Form = "full", folder: Path = FOLDER) -> list[Study]:
    """Read the studies of short horizons.

    Examples
    --------
    >>> [len(study) for study in horizon_studies()]
    [5700, 1800]
    """
    if form == "reduced":
        return [Study.read(folder / form / "horizons.toml")]
    return [Study.read(folder / "horizons" / f"{name}.toml") for name in ("lake", "worlds")]


def confirming_studies(table: pl.DataFrame, reading: Reading, like: Study, draws: Sequence[Draw]) -> list[Study]:
    """Make studies that run what each draw chose on its fresh trials, with steps and curve as in `like`.

    A study crosses all its choices, so there is one for each draw and kind of missingness, with staying allowed or not.
    """
    chosen = settings_looked_at(Evidence.of(table, reading, "held-out", draws)).drop("among")
    groups = chosen.unique(maintain_order=True).partition_by("draw", "missingness", "stay", maintain_order=True)
    return [_confirming(group, reading, like, draws[group["draw"][0]].fresh) for group in groups]


def _confirming(chosen: pl.DataFrame, reading: Reading, like: Study, fresh: Sequence[int]) -> Study:
    missingness, stay = chosen["missingness"][0], chosen["stay"][0]
    world = {word: True for word, on in (("stay", stay), ("continuing", reading == "continuing")) if on}
    name = " ".join(["held-out", missingness.replace(":", " "), *world, "from", str(fresh[0])])
    methods = [
        {"name": row["method"]} | {key: row[key] for key in ("K", "p_shuffle", "alpha", "gamma", "epsilon")
                                   if key not in ("K", "p_shuffle") or row["K"] is not None}
        for row in chosen.iter_rows(named=True)
    ]  # fmt: skip
    data: dict[str, Any] = {
        "name": name, "steps": like.spec.steps, "curve_points": like.spec.curve_points, "missingness": [missingness],
        "worlds": [{"name": "lake"} | world], "methods": methods,
    }  # fmt: skip
    return Study.from_data(data | _on(fresh), name)


# --- from the studies to the files --------------------------------------------------------------------------------


class RunsFailedError(RuntimeError):
    """Some runs are not there: what is there is kept, but nothing can be said from it yet."""


@dataclass(frozen=True)
class Request:
    """What is wanted: every run or the reduced form, one reading or both, confirmed choices, and the frontier."""

    full: bool = False
    continuing: bool = False
    honest: bool = False
    frontier: bool = False

    @property
    def form(self) -> Form:
        """Which folder of studies."""
        return "full" if self.full else "reduced"

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The readings of an episode's end."""
        return ("episodic", "continuing") if self.continuing else ("episodic",)

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The ways in which hyper-parameters are chosen."""
        return ("as-published", "held-out") if self.honest else ("as-published",)

    def command(self, out: Path) -> str:
        """The command that asks for this."""
        options = [f"--{name}" for name, wanted in vars(self).items() if wanted]
        return " ".join(["lacuna paper", *options, f"--out {out}"])


@dataclass(frozen=True)
class Gathered:
    """All runs that were asked for, and how they came about."""

    out: Path
    request: Request
    table: pl.DataFrame
    about: dict[str, Any]
    draws: Sequence[Draw]
    untuned: Sequence[tuple[str, str]]
    """The worlds and kinds of missingness in which every method has one fixed setting."""
    horizons: Sequence[Cell]
    """What was run at short horizons."""
    frontier: dict[str, Any] | None = None
    """What every method earns in every world, if that was asked for."""


def gather(
    out: Path, request: Request, *, workers: int, watch: Watch = lambda *_: None, folder: Path = FOLDER,
    draws: Sequence[Draw] = DRAWS,
) -> Gathered:  # fmt: skip
    """Run what the store lacks of the paper's studies, and of those that go beyond it (in the episodic reading).

    Parameters
    ----------
    out
        The folder; what is in its store is not run again.
    request
        What is wanted.
    workers
        Runs at a time.
    watch
        Told of progress.
    folder, draws
        Where the studies are, and the trials on which settings are chosen and confirmed.
    """
    began = time.monotonic()
    runs = _Runs(Store(out / "store"), Local(workers), watch)
    for reading in request.readings:
        studies = paper_studies(request.form, reading, folder)
        runs.make(f"{request.form} study, {reading}", studies)
        if request.honest:
            runs.make(f"settings tuned {len(draws) - 1} times more, {reading}", tuning_studies(studies, draws[1:]))
            runs.make(f"fresh trials, {reading}", confirming_studies(runs.table(), reading, studies[0], draws))
    published, fresh = draws[0].tuning, [trial for draw in draws for trial in draw.fresh]
    for trials in (published, fresh) if request.honest else (published,):
        beyond = beyond_studies(trials, folder)
        runs.make(f"ours and the yardsticks, trials from {trials[0]}", beyond)
    horizons = horizon_studies(request.form, folder)
    runs.make("short horizons", horizons)
    everywhere = None
    if request.frontier:
        everywhere = frontier.gather(runs.make, runs.table, folder / "frontier", request.form)
    table = runs.table()
    if table.height < len(runs.ids):
        raise RunsFailedError("a file of results was damaged meanwhile; the same command makes its runs again")
    about = _about(out, request, runs, table, draws) | {"seconds": round(time.monotonic() - began, 1)}
    untuned = [(world, name) for world, _, name in beyond[-1].problems]
    return Gathered(out, request, table, about, draws, untuned, cells_of(_of(horizons, table)), everywhere)


def write_up(gathered: Gathered) -> tuple[list[Finding], tuple[Path, ...]]:
    """Judge the claims and write all files; returns the findings and the files, the page last."""
    out, table, request = gathered.out, gathered.table, gathered.request
    findings = [
        finding
        for reading in request.readings
        for selection in request.selections
        for finding in judge(table, reading=reading, selection=selection, draws=gathered.draws)
    ]
    compared = comparisons(gathered)
    results, claims, horizons = out / "results.parquet", out / "claims.json", out / "horizons.json"
    export(table, results)
    content = {
        "about": gathered.about,
        "findings": [finding.as_dict() for finding in findings],
        "comparisons": {way: [one.as_dict() for one in rows] for way, rows in compared.items()},
    }
    text = json.dumps(content, indent=1, ensure_ascii=False).removesuffix("\n}")
    write_whole(claims, f"{text},\n{_choices(gathered)}\n}}\n".encode())
    short = {"form": request.form} | as_data(gathered.horizons)
    write_whole(horizons, f"{json.dumps(short, indent=1, ensure_ascii=False)}\n".encode())
    more: list[Path] = []
    if gathered.frontier is not None:
        more = [out / FILE]
        frontier.write(gathered.frontier, out / FILE)
    page = write_page(out, table, findings, compared, gathered.about, gathered.draws, gathered.horizons)
    return findings, (results, claims, horizons, *more, page)


def _choices(gathered: Gathered) -> str:
    """Return the settings that were chosen as a table in JSON, a line for each row: there are thousands."""
    request = gathered.request
    tables = [
        settings_looked_at(Evidence.of(gathered.table, reading, selection, gathered.draws)).select(
            pl.lit(reading).alias("reading"), pl.lit(selection).alias("selection"), pl.all()
        )
        for reading in request.readings
        for selection in request.selections
    ]
    table = pl.concat(tables)
    rows = ",\n".join(f"  {json.dumps(row)}" for row in table.iter_rows())
    return f' "choices": {{\n "columns": {json.dumps(table.columns)},\n "rows": [\n{rows}\n ]}}'


def comparisons(gathered: Gathered) -> Comparisons:
    """Compare ours with the paper's methods: on the paper's problems, by the way of choosing, and untuned."""
    table = gathered.table
    seen = {name: Evidence.of(table, "episodic", name, gathered.draws) for name in gathered.request.selections}
    tuned = {name: against_tuned(evidence) for name, evidence in seen.items()}
    *_, shown = seen.values()
    return tuned | {"untuned": against_untuned(table, shown.trials, gathered.untuned)}


def _of(studies: Sequence[Study], table: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of some studies."""
    ids = pl.DataFrame({"id": [run.id for study in studies for run in study.runs()]})
    return table.join(ids, on="id", how="semi", maintain_order="left")


class _Runs:
    """The runs asked for so far, made into a store."""

    def __init__(self, store: Store, engine: Local, watch: Watch) -> None:
        self.store, self.engine, self.watch = store, engine, watch
        self.studies: list[Study] = []
        self.ids: set[str] = set()
        self.made = 0

    def table(self) -> pl.DataFrame:
        """All runs asked for: the same ones whatever else is in the store."""
        asked = pl.DataFrame({"id": list(self.ids)}, schema={"id": pl.String})
        return self.store.table().join(asked, on="id", how="semi", maintain_order="left")

    def make(self, what: str, studies: Sequence[Study]) -> None:
        """Run what is missing of some studies."""
        ids = {run.id for study in studies for run in study.runs()}
        before = len(ids & self.store.done())
        progress = run_studies(studies, self.store, self.engine, watch=lambda progress: self.watch(what, progress))
        self.made += progress.done - before
        self.studies += studies
        self.ids |= ids
        if progress.done < progress.total:
            raise RunsFailedError(
                f"{progress.total - progress.done:,} of {progress.total:,} runs failed; the same command tries them "
                "again" + "".join(f"\n  {failure}" for failure in progress.failures[:5])
            )


def _about(out: Path, request: Request, runs: _Runs, table: pl.DataFrame, draws: Sequence[Draw]) -> dict[str, Any]:
    """What was run, by what, where, and how to do it again."""
    used = draws if request.honest else draws[:1]
    return {
        "command": request.command(out),
        "lacuna": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "workers": runs.engine.workers,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "form": request.form,
        "readings": list(request.readings),
        "selections": list(request.selections),
        "steps": runs.studies[0].spec.steps,
        "tuning_trials": [trial for draw in used for trial in draw.tuning],
        "fresh_trials": [trial for draw in used for trial in draw.fresh] if request.honest else [],
        "draws": len(used),
        "runs": table.height,
        "total_steps": int(table["steps"].sum()),
        "runs_made_now": runs.made,
        "core_seconds": round(float(table["seconds"].sum()), 1),
        "studies": [{"name": study.spec.name, "runs": len(study)} for study in runs.studies],
    }
