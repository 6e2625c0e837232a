"""The reader of runs: what a table says of each method at its chosen setting, in a fixed order that pairs methods.

As published there is one number per trial. Held out there is one per *draw*: five tuning trials choose the settings,
fresh trials report them, and the number is the mean of the fresh trials. Draws are independent, so an interval over
their means covers the variance of choosing as well as that of the fresh trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from lacuna import UNPLANNED
from lacuna.agent import method_named
from lacuna.study import FIGURES, HYPER_PARAMETERS, MEASURES, Columns, Draw, choose, chosen_runs
from lacuna_paper.verdicts import Basis, Sample, average

Reading = Literal["episodic", "continuing"]
Selection = Literal["as-published", "held-out"]
READINGS: tuple[Reading, ...] = get_args(Reading)
SELECTIONS: tuple[Selection, ...] = get_args(Selection)


DRAWS = tuple(Draw(tuple(range(5 * i, 5 * i + 5)), tuple(range(1000 + 20 * i, 1020 + 20 * i))) for i in range(8))
"""The draws of held-out selection. The first chooses on the trials of the paper's study, which as published also
report."""

REWARD, WATER, PATH = MEASURES
EARLY, STAYED = "reward_per_step_early", "idle_share"
_REPORTED = (REWARD, WATER, PATH, EARLY, STAYED)

COLUMNS = Columns(problem=("world", "missingness", "first_observed", "steps"), tuned=(*HYPER_PARAMETERS, "stay"))
"""Whether staying is allowed is chosen like a setting of the method, so it is no part of the problem."""

_STAY: dict[Reading, dict[str, bool]] = {
    "episodic": {"": False, "stay=True": True},
    "continuing": {"continuing=True": False, "continuing=True, stay=True": True},
}
"""Whether staying is allowed, by the parameters that the paper's world has in each reading."""


class Shown(NamedTuple):
    """A method as it appears in a chart: its hyper-parameters are chosen, its K and its mixing are not."""

    method: str
    K: int | None = None
    p_shuffle: float = 0.0

    def __str__(self) -> str:
        """Its title.

        Examples
        --------
        >>> print(Shown("mi-synthetic", 10), "|", Shown("mi-conservative", 1), "|", Shown("last-observed"))
        MI K=10, synthetic | SI, conservative | Last observed (V2)
        """
        title = method_named(self.method).title
        if self.K is not None:
            title = title.replace("MI", "SI" if self.K == 1 else f"MI K={self.K}", 1)
        return f"{title}, mixing" if self.p_shuffle else title


RANDOM, V1, V2, MISSING = BASELINES = tuple(
    Shown(name) for name in ("random-action", "last-fully-observed", "last-observed", "missing-as-state")
)
MODELS = ("mi-synthetic", "mi-conservative")
SI = tuple(Shown(model, 1) for model in MODELS)
MI_SYNTHETIC, MI_CONSERVATIVE = MI = tuple(Shown(model, 10) for model in MODELS)
ALL_METHODS = (*BASELINES, *SI, *MI)


def single(mi: Shown) -> Shown:
    """Single imputation with the same model as a multiple one."""
    return mi._replace(K=1)


@dataclass(frozen=True)
class Rates:
    """The MCAR settings with `above` < θ <= `up_to`.

    Examples
    --------
    >>> print(Rates(), "|", Rates(0.4), "|", Rates(0.1, 0.4), "|", Rates(up_to=0.0))
    every θ | θ above 0.4 | θ above 0.1, up to 0.4 | θ up to 0
    """

    above: float = -1.0
    up_to: float = 1.0

    def __str__(self) -> str:
        words = [f"above {self.above:g}"] * (self.above >= 0) + [f"up to {self.up_to:g}"] * (self.up_to < 1)
        return f"θ {', '.join(words)}" if words else "every θ"


Where = Sequence[str] | Rates
"""Kinds of missingness: their names, or rates of MCAR as far as they were run."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The runs of one reading of the paper's study, each method at its chosen setting; `Evidence.of` reads them.

    Parameters
    ----------
    table
        A row per run, as in a store.
    runs
        The runs of the paper's world and methods without curves, which are long; ``row`` is their place in the table,
        and ``stay`` whether staying was allowed.
    reading
        Which reading of an episode's end.
    selection
        How hyper-parameters are chosen: ``"as-published"``, by completed episodes on the tuning trials of the first
        draw, which are reported too; ``"held-out"``, in each draw on its tuning trials with the open episode counted,
        reported on its fresh ones. Samples always count the open episode, so that a run that got stuck cannot look
        good.
    draws
        Numbers of the trials.
    """

    table: pl.DataFrame = field(repr=False)
    runs: pl.DataFrame = field(repr=False)
    reading: Reading
    selection: Selection
    draws: tuple[Draw, ...]

    @classmethod
    def of(
        cls, table: pl.DataFrame, reading: Reading = "episodic", selection: Selection = "as-published",
        draws: Sequence[Draw] = DRAWS,
    ) -> Evidence:  # fmt: skip
        """Read a table of runs, in any order."""
        for what, value, choices in (("reading", reading, READINGS), ("selection", selection, SELECTIONS)):
            if value not in choices:
                raise ValueError(f"{what} is {value!r}; it must be one of {', '.join(choices)}")
        published = (Draw(draws[0].tuning, draws[0].tuning),)
        used = tuple(draws) if selection == "held-out" else published
        known = {trial for draw in used for trials in draw for trial in trials}
        runs = _runs_of_the_paper(table, reading).filter(pl.col("trial").is_in(known))
        if runs["steps"].n_unique() > 1:
            lengths = ", ".join(str(n) for n in runs["steps"].unique().sort())
            raise ValueError(f"the table holds runs of different lengths ({lengths} steps); they cannot be compared")
        return cls(table, runs, reading, selection, used)

    @property
    def held_out(self) -> bool:
        """Whether what was chosen is reported on fresh trials."""
        return self.selection == "held-out"

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
        return len(self.draws) if self.held_out else len(self.trials)

    def only(self, **settings: bool | float) -> Evidence:
        """The same with some hyper-parameters held fixed, e.g. ``stay=True, epsilon=0.0``: the others are chosen."""
        return replace(self, runs=self.runs.filter(**settings))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of missingness in the table under which a method of the paper was run."""
        papers = [*(shown.method for shown in BASELINES), *MODELS]
        return tuple(self.runs.filter(pl.col("method").is_in(papers))["missingness"].unique().sort())

    def names(self, where: Where) -> tuple[str, ...]:
        """The kinds of missingness, those of MCAR by θ."""
        if not isinstance(where, Rates):
            return tuple(where)
        found = [(theta_of(name), name) for name in self.kinds if name.startswith("mcar:")]
        return tuple(name for theta, name in sorted(found) if where.above < theta <= where.up_to)

    def where(self, *methods: Shown, among: Where) -> tuple[str, ...]:
        """Those of the given kinds of missingness under which all the methods were run."""
        return tuple(name for name in self.names(among) if all((name, *shown) in self._values for shown in methods))

    @cached_property
    def choice(self) -> pl.DataFrame:
        """The setting chosen in each draw for every method under every kind of missingness; ``draw`` counts from 0."""
        by = f"{REWARD}_with_open" if self.held_out else REWARD
        return pl.concat(
            choose(self._on(draw.tuning + draw.fresh), draw.tuning, by, COLUMNS).with_columns(draw=pl.lit(i, pl.Int64))
            for i, draw in enumerate(self.draws)
        )

    @cached_property
    def chosen(self) -> pl.DataFrame:
        """The choices that had every tuning trial; a method with a single setting needs none."""
        return self.choice.filter((pl.col("missing").list.len() == 0) | (pl.col("settings") == 1))

    def _on(self, trials: Sequence[int]) -> pl.DataFrame:
        return self.runs.filter(pl.col("trial").is_in(trials))

    @cached_property
    def _values(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The figures of every method under every kind of missingness; those of a draw averaged over its trials."""
        found = pl.concat(
            chosen_runs(self._on(draw.fresh), self.chosen.filter(draw=i), draw.fresh, COLUMNS).with_columns(
                draw=pl.lit(i, pl.Int64)
            )
            for i, draw in enumerate(self.draws)
        )
        method = ("missingness", *Shown._fields)
        counted = [pl.col(f"{name}_with_open").alias(name) for name in MEASURES]
        each = found.select(*method, "draw", "trial", *counted, EARLY, STAYED)
        if self.held_out:
            each = each.group_by(*method, "draw", maintain_order=True).agg("trial", pl.col(_REPORTED).mean())
        rows = each.group_by(method, maintain_order=True).agg(pl.col("trial").explode(), *_REPORTED)
        return {tuple(row[name] for name in method): row for row in rows.iter_rows(named=True)}

    def sample(self, shown: Shown, missingness: str, measure: str = REWARD) -> Sample:
        """A measure of a method at its chosen setting: trial by trial as published, draw by draw held out."""
        row = self._values.get((missingness, *shown))
        if row is None:
            return self.gap(f"{shown} was not run under {missingness}")
        if sorted(row["trial"]) != sorted(self.trials):
            return self.gap(f"{shown} lacks trials under {missingness}")
        return Sample(np.array(row[measure], dtype=np.float64))

    def mean(self, shown: Shown, where: Where, measure: str = REWARD) -> Sample:
        """The same, averaged over several kinds of missingness."""
        names = self.names(where)
        if not names:
            return self.gap(f"no setting to compare {shown} under was run")
        return average([self.sample(shown, name, measure) for name in names])

    def gap(self, *reasons: str) -> Sample:
        """A sample that is missing, and why."""
        return Sample(np.full(self.size, np.nan), reasons)


def theta_of(missingness: str) -> float:
    """The rate of an MCAR setting; not a number if its components differ."""
    rates = set(missingness.partition(":")[2].split(","))
    return float(rates.pop()) if len(rates) == 1 else float("nan")


def _runs_of_the_paper(table: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """The runs of one reading in the paper's world, with its vote and updates."""
    stay = _STAY[reading]
    kept = (*COLUMNS.problem, *COLUMNS.method, *HYPER_PARAMETERS, "parameters", "trial", *FIGURES, EARLY, STAYED)
    absent = [name for name in kept if name not in table.columns]
    if absent:
        raise ValueError(f"the table of runs has no column {', '.join(absent)}")
    # A method is shown by its K and its mixing; of ours only the model of the default is.
    ours = [pl.col(name).eq_missing(getattr(UNPLANNED, name)) for name in ("kappa", "smoothing", "parents")]
    return (
        table.select(kept)
        .with_row_index("row")
        .filter(
            (pl.col("method") != UNPLANNED.method) | pl.all_horizontal(ours),
            pl.col("parameters").is_in(list(stay)),
            world="lake", vote="sampled", update="sequential", first_observed=True,
        )
        .with_columns(stay=pl.col("parameters").replace_strict(stay, return_dtype=pl.Boolean))
        .drop("parameters")
    )  # fmt: skip


STAY_THETAS = ("mcar:0.2", "mcar:0.4", "mcar:0.8")
"""Where the paper looks at staying: one method, greedy or not, allowed to stay or not, at its best alpha and gamma."""


def settings_looked_at(seen: Evidence) -> pl.DataFrame:
    """Return every setting whose trials a verdict looks at, with the draw that chose it, and among which it was chosen.

    These are the setting chosen for each method among all and, where the paper looks at staying, the ones chosen with
    staying and ε held fixed: then ``among`` says at which values.
    """
    narrow = replace(
        seen,
        runs=seen.runs.filter(
            pl.col("missingness").is_in(STAY_THETAS), method=MI_SYNTHETIC.method, K=MI_SYNTHETIC.K, p_shuffle=0.0
        ),
    )
    cuts = {
        f"stay={stay}, epsilon={epsilon}": narrow.only(stay=stay, epsilon=epsilon)
        for stay in (False, True)
        for epsilon in (0.0, 0.05)
    }
    columns = ["draw", "missingness", *Shown._fields, *COLUMNS.tuned]
    found = [cut.choice.select(*columns, among=pl.lit(name)) for name, cut in {"all": seen, **cuts}.items()]
    return pl.concat(found).sort(*columns, "among", nulls_last=False)
