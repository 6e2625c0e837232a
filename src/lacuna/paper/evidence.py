"""What a table of runs says of each method at its chosen setting: numbers in a fixed order, so that methods are paired.

As published there is one number per trial. Held out there is one per *draw*: five tuning trials choose the settings,
fresh trials report them, and the number is the mean of the fresh trials. Draws are independent, so an interval over
their means covers the variance of choosing as well as that of the fresh trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from lacuna.learning.settings import DEFAULT
from lacuna.paper.verdicts import Basis, Sample, average
from lacuna.study.selection import (
    HYPER_PARAMETERS,
    MEASURES,
    MEASURES_WITH_OPEN,
    SETTING,
    choose,
    chosen_runs,
    with_every_setting,
)

Reading = Literal["episodic", "continuing"]
Selection = Literal["as-published", "held-out"]
READINGS: tuple[Reading, ...] = get_args(Reading)
SELECTIONS: tuple[Selection, ...] = get_args(Selection)


class Draw(NamedTuple):
    """Trials that settings are chosen on, and trials that what was chosen is reported on."""

    tuning: tuple[int, ...]
    fresh: tuple[int, ...]


DRAWS = tuple(
    Draw(tuple(range(5 * i, 5 * i + 5)), tuple(range(1000 + 20 * i, 1020 + 20 * i))) for i in range(8)
)  # fmt: skip
"""The draws of held-out selection. The first chooses on the trials of the paper's study, which as published also
report."""

REWARD, WATER, PATH = MEASURES_WITH_OPEN
EARLY, STAYED = "reward_per_step_early", "idle_share"
_FIGURES = (REWARD, WATER, PATH, EARLY, STAYED)

_OPEN = ("episodes", *MEASURES, "open_reward", "open_bad_steps", "open_steps")
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
        Which runs, and how hyper-parameters are chosen: ``"as-published"``, by completed episodes on the tuning trials
        of the first draw, which are reported too; ``"held-out"``, in each draw on its tuning trials with the open
        episode counted, reported on its fresh ones. What is reported always counts the open episode, so that a run that
        got stuck cannot look good.
    draws
        Numbers of the trials.
    """

    def __init__(
        self, table: pl.DataFrame, reading: Reading = "episodic", selection: Selection = "as-published",
        draws: Sequence[Draw] = DRAWS,
    ) -> None:  # fmt: skip
        if reading not in READINGS:
            raise ValueError(f"reading is {reading!r}; it must be one of {', '.join(READINGS)}")
        if selection not in SELECTIONS:
            raise ValueError(f"selection is {selection!r}; it must be one of {', '.join(SELECTIONS)}")
        self.reading, self.selection = reading, selection
        published = (Draw(draws[0].tuning, draws[0].tuning),)
        self.draws = tuple(draws) if selection == "held-out" else published
        known = {trial for draw in self.draws for trials in draw for trial in trials}
        self.runs = _runs_of_the_paper(table, reading).filter(pl.col("trial").is_in(known))
        if self.runs["steps"].n_unique() > 1:
            lengths = ", ".join(str(n) for n in self.runs["steps"].unique().sort())
            raise ValueError(f"the table holds runs of different lengths ({lengths} steps); they cannot be compared")

    @property
    def trials(self) -> tuple[int, ...]:
        """The trials that are reported."""
        return tuple(trial for draw in self.draws for trial in draw.fresh)

    @property
    def basis(self) -> Basis:
        """What findings from here rest on."""
        return Basis(self.reading, self.selection, len(self.trials), len(self.draws))

    @property
    def size(self) -> int:
        """How many numbers a sample has: one per trial as published, one per draw held out."""
        return len(self.draws) if self.selection == "held-out" else len(self.trials)

    def only(self, **settings: bool | float) -> Evidence:
        """The same with some hyper-parameters held fixed, e.g. ``stay=True, epsilon=0.0``: the others are chosen."""
        return Evidence(self.runs.filter(**settings), self.reading, self.selection, self.draws)

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
        """The setting chosen in each draw for every method under every kind of missingness; ``draw`` counts from 0."""
        by = MEASURES[0] if self.selection == "as-published" else REWARD
        return pl.concat(
            choose(self.runs.filter(pl.col("trial").is_in({*draw.tuning, *draw.fresh})), draw.tuning, by).with_columns(
                draw=pl.lit(i, pl.Int64)
            )
            for i, draw in enumerate(self.draws)
        )

    @cached_property
    def chosen(self) -> pl.DataFrame:
        """The choices that had every tuning trial; a method with a single setting needs none."""
        return self.choice.filter((pl.col("missing").list.len() == 0) | (pl.col("settings") == 1))

    @cached_property
    def _values(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The figures of every method under every kind of missingness; those of a draw averaged over its trials."""
        found = pl.concat(
            chosen_runs(
                self.runs.filter(pl.col("trial").is_in(draw.fresh)), self.chosen.filter(draw=i), draw.fresh
            ).with_columns(draw=pl.lit(i, pl.Int64))
            for i, draw in enumerate(self.draws)
        )
        each = found.select(*_SHOWN, "draw", "trial", *_FIGURES)
        if self.selection == "held-out":
            each = each.group_by(*_SHOWN, "draw", maintain_order=True).agg("trial", pl.col(_FIGURES).mean())
        rows = each.group_by(_SHOWN, maintain_order=True).agg(pl.col("trial").explode(), *_FIGURES)
        return {tuple(row[name] for name in _SHOWN): row for row in rows.iter_rows(named=True)}

    def sample(self, shown: Shown, missingness: str, measure: str = REWARD) -> Sample:
        """A measure of a method at its chosen setting: trial by trial as published, draw by draw held out."""
        row = self._values.get((missingness, *shown))
        unknown = np.full(self.size, np.nan)
        if row is None:
            return Sample(unknown, (f"{shown} was not run under {missingness}",))
        if sorted(row["trial"]) != sorted(self.trials):
            return Sample(unknown, (f"{shown} lacks trials under {missingness}",))
        return Sample(np.array(row[measure], dtype=np.float64))

    def mean(self, shown: Shown, settings: Sequence[str], measure: str = REWARD) -> Sample:
        """The same, averaged over several kinds of missingness."""
        if not settings:
            return Sample(np.full(self.size, np.nan), (f"no setting to compare {shown} under was run",))
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


def settings_looked_at(seen: Evidence) -> pl.DataFrame:
    """Every setting whose trials a verdict looks at, with the draw that chose it, and among what.

    The chosen one of each method; and where the paper looks at staying, also those of the greedy agent and of the other
    one, staying allowed and not: there ``among`` says what was held fixed.
    """
    stayers = seen.runs.filter(
        pl.col("missingness").is_in(STAY_THETAS), method=MI_SYNTHETIC.method, K=MI_SYNTHETIC.K, p_shuffle=0.0
    )
    narrow = Evidence(stayers, seen.reading, seen.selection, seen.draws)
    cuts = {
        f"stay={stay}, epsilon={epsilon}": narrow.only(stay=stay, epsilon=epsilon)
        for stay in (False, True)
        for epsilon in (0.0, 0.05)
    }
    columns = ["draw", "missingness", *Shown._fields, *HYPER_PARAMETERS]
    found = [cut.choice.select(*columns, among=pl.lit(name)) for name, cut in {"all": seen, **cuts}.items()]
    return pl.concat(found).sort(*columns, "among", nulls_last=False)
