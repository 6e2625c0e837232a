"""What a table of runs says of each method at its chosen setting: one number per trial, so that methods are paired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from lacuna.methods import DEFAULT
from lacuna.study.selection import (
    HYPER_PARAMETERS,
    MEASURES,
    MEASURES_WITH_OPEN,
    SETTING,
    choose,
    chosen_runs,
    with_every_setting,
)
from lacuna.study.verdicts import Sample, average

Reading = Literal["episodic", "continuing"]
Selection = Literal["as-published", "held-out"]
READINGS: tuple[Reading, ...] = get_args(Reading)
SELECTIONS: tuple[Selection, ...] = get_args(Selection)

TUNING_TRIALS = range(5)
"""The trials of the paper's study: as published, settings are chosen and reported on them; held out, only chosen."""

FRESH_TRIALS = range(1000, 1050)
"""The trials that settings chosen on the tuning trials are reported on, when selection is held out."""

REWARD, WATER, PATH = MEASURES_WITH_OPEN
EARLY, STAYED = "reward_per_step_early", "stay_share"
_FIGURES = (REWARD, WATER, PATH, EARLY, STAYED)

_OPEN = ("episodes", *MEASURES, "open_reward", "open_water_steps", "open_steps")
_COLUMNS = (*SETTING, "trial", *_OPEN, EARLY, STAYED)


class Shown(NamedTuple):
    """A method as it appears in a chart: its hyper-parameters are chosen, its K and its mixing are not."""

    method: str
    K: int | None = None
    p_shuffle: float = 0.0

    def __str__(self) -> str:
        name = _NAMES.get(self.method, self.method)
        if self.K is None:
            return name
        mixing = " with mixing" if self.p_shuffle else ""
        return f"{'SI' if self.K == 1 else f'MI K={self.K}'} {name}{mixing}"


_NAMES = {
    "random-action": "random action", "last-fully-observed": "last fully observed (V1)",
    "last-observed": "last observed (V2)", "missing-as-state": "missing as a state",
    "mi-synthetic": "synthetic", "mi-conservative": "conservative", "mi-available": "available",
}  # fmt: skip

RANDOM, V1, V2, MISSING = (Shown(name) for name in list(_NAMES)[:4])
BASELINES = (RANDOM, V1, V2, MISSING)
MODELS = ("mi-synthetic", "mi-conservative")
SI_SYNTHETIC, SI_CONSERVATIVE = SI = tuple(Shown(model, 1) for model in MODELS)
MI_SYNTHETIC, MI_CONSERVATIVE = MI = tuple(Shown(model, 10) for model in MODELS)
ALL_METHODS = (*BASELINES, *SI, *MI)


def single(mi: Shown) -> Shown:
    """Single imputation with the same model as a multiple one."""
    return mi._replace(K=1)


class Evidence:
    """The runs of one reading of the paper's study, each method at its chosen setting.

    Parameters
    ----------
    table
        A row per run, as in a store, in any order.
    reading, selection
        Which runs, and how hyper-parameters are chosen: ``"as-published"``, on the tuning trials that are reported too,
        by completed episodes; ``"held-out"``, on the tuning trials with the open episode counted, reported on the
        fresh ones. What is reported always counts the open episode, so that a run that got stuck cannot look good.
    tuning, fresh
        Numbers of the trials.
    """

    def __init__(
        self, table: pl.DataFrame, reading: Reading = "episodic", selection: Selection = "as-published",
        tuning: Sequence[int] = TUNING_TRIALS, fresh: Sequence[int] = FRESH_TRIALS,
    ) -> None:  # fmt: skip
        if reading not in READINGS:
            raise ValueError(f"reading is {reading!r}; it must be one of {', '.join(READINGS)}")
        if selection not in SELECTIONS:
            raise ValueError(f"selection is {selection!r}; it must be one of {', '.join(SELECTIONS)}")
        self.reading, self.selection = reading, selection
        self.tuning, self.fresh = tuple(tuning), tuple(fresh)
        known = {*self.tuning, *self.trials}
        self.runs = _runs_of_the_paper(table, reading).filter(pl.col("trial").is_in(known))
        if self.runs["steps"].n_unique() > 1:
            lengths = ", ".join(str(n) for n in self.runs["steps"].unique().sort())
            raise ValueError(f"the table holds runs of different lengths ({lengths} steps); they cannot be compared")

    @property
    def trials(self) -> tuple[int, ...]:
        """The trials that are reported."""
        return self.tuning if self.selection == "as-published" else self.fresh

    def only(self, **settings: bool | float) -> Evidence:
        """The same with some hyper-parameters held fixed, e.g. ``stay=True, epsilon=0.0``: the others are chosen."""
        return Evidence(self.runs.filter(**settings), self.reading, self.selection, self.tuning, self.fresh)

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """The kinds of missingness in the table under which a method of the paper was run."""
        papers = [*(shown.method for shown in BASELINES), *MODELS]
        return tuple(self.runs.filter(pl.col("method").is_in(papers))["missingness"].unique().sort())

    def thetas(self, above: float = -1.0, up_to: float = 1.0) -> tuple[str, ...]:
        """The MCAR settings in the table with `above` < θ <= `up_to`, by θ."""
        found = [(theta_of(name), name) for name in self.settings if name.startswith("mcar:")]
        return tuple(name for theta, name in sorted(found) if above < theta <= up_to)

    def where(self, *methods: Shown, among: Sequence[str]) -> tuple[str, ...]:
        """Those of the given settings under which all the methods were run."""
        return tuple(name for name in among if all((name, *shown) in self._values for shown in methods))

    @cached_property
    def choice(self) -> pl.DataFrame:
        """The chosen setting of every method under every kind of missingness."""
        by = MEASURES[0] if self.selection == "as-published" else REWARD
        return choose(self.runs, self.tuning, by)

    @cached_property
    def _values(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        lacking = set(self.choice.filter(pl.col("missing").list.len() > 0).select(_SHOWN).iter_rows())
        runs = chosen_runs(self.runs, self.choice, self.trials)
        rows = runs.group_by(_SHOWN, maintain_order=True).agg("trial", *_FIGURES).iter_rows(named=True)
        found = {tuple(row[name] for name in _SHOWN): row for row in rows}
        return {key: row | {"tuned": key not in lacking} for key, row in found.items()}

    def sample(self, shown: Shown, missingness: str, measure: str = REWARD) -> Sample:
        """A measure of a method at its chosen setting, trial by trial."""
        row = self._values.get((missingness, *shown))
        unknown = np.full(len(self.trials), np.nan)
        if row is None:
            return Sample(unknown, (f"{shown} was not run under {missingness}",))
        if not row["tuned"] or tuple(row["trial"]) != tuple(sorted(self.trials)):
            return Sample(unknown, (f"{shown} lacks trials under {missingness}",))
        return Sample(np.array(row[measure], dtype=np.float64))

    def mean(self, shown: Shown, settings: Sequence[str], measure: str = REWARD) -> Sample:
        """The same, averaged within each trial over several kinds of missingness."""
        if not settings:
            return Sample(np.full(len(self.trials), np.nan), (f"no setting to compare {shown} under was run",))
        return average([self.sample(shown, name, measure) for name in settings])


_SHOWN = ("missingness", *Shown._fields)


def theta_of(missingness: str) -> float:
    """The rate of an MCAR setting; not a number if its components differ."""
    rates = set(missingness.partition(":")[2].split(","))
    return float(rates.pop()) if len(rates) == 1 else float("nan")


def _runs_of_the_paper(table: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """The runs of one reading in the paper's world, with its vote and updates; without curves, which are long."""
    table = with_every_setting(table)
    absent = [name for name in _COLUMNS if name not in table.columns]
    if absent:
        raise ValueError(f"the table of runs has no column {', '.join(absent)}")
    continuing = reading == "continuing"
    cut = [name for name in table.columns if name.startswith("cut_")]
    # A method is shown by its K and its mixing; of ours only the model of the default is.
    ours = [pl.col(name).eq_missing(getattr(DEFAULT, name)) for name in ("kappa", "smoothing", "parents")]
    table = table.filter((pl.col("method") != DEFAULT.method) | pl.all_horizontal(ours))
    return table.select(*_COLUMNS, *cut).filter(
        world="lake", parameters="continuing=True" if continuing else "", continuing=continuing, vote="sampled",
        update="sequential", first_observed=True,
    )  # fmt: skip


STAY_THETAS = ("mcar:0.2", "mcar:0.4", "mcar:0.8")
"""Where the paper looks at staying: one method, greedy or not, allowed to stay or not, at its best alpha and gamma."""


def settings_to_confirm(seen: Evidence) -> Iterator[dict[str, Any]]:
    """Every setting whose fresh trials a held-out verdict looks at: the chosen one of each method, staying or not.

    Where the paper looks at staying, the greedy agent and the other one as well.
    """
    cuts = [seen.only(stay=stay) for stay in (False, True)]
    stayers = seen.runs.filter(
        pl.col("missingness").is_in(STAY_THETAS), method=MI_SYNTHETIC.method, K=MI_SYNTHETIC.K, p_shuffle=0.0
    )
    narrow = Evidence(stayers, seen.reading, seen.selection, seen.tuning, seen.fresh)
    cuts += [narrow.only(stay=stay, epsilon=epsilon) for stay in (False, True) for epsilon in (0.0, 0.05)]
    chosen = pl.concat([cut.choice.select("missingness", *Shown._fields, *HYPER_PARAMETERS) for cut in cuts])
    yield from chosen.unique().sort(chosen.columns, nulls_last=False).iter_rows(named=True)
