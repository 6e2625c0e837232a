"""The result of a comparison: tables, curves, differences with intervals, and its display."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lacuna import display
from lacuna.agent.own_method import AnyMethod, OwnMethod
from lacuna.agent.settings import Settings
from lacuna.quantities import counted
from lacuna.references import plain_names
from lacuna.study.selection import MEASURES_WITH_OPEN
from lacuna.study.spec import Study
from lacuna.study.statistics import Interval, mean_interval, outliers, paired_difference
from lacuna.validation import nearest, shown, whole_number

_NUMBERS = ("mean", "low", "high", "difference", "difference_low", "difference_high")
_TEXTS = ("outliers", "difference_outliers")
_SUMMARY = ("missingness", "name", *_NUMBERS, "seeds", *_TEXTS)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Methods in one world or environment, compared seed by seed.

    Parameters
    ----------
    study
        The study that was run.
    runs
        A row per run, with the columns of a store and the measures that count open and cut episodes.
    """

    study: Study
    runs: pl.DataFrame

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the methods in this comparison, in the given order."""
        return tuple(self._plain["method"].get(name, name) for name in map(_name, self.study.settings))

    @cached_property
    def missingness(self) -> tuple[str, ...]:
        """The mechanisms, in the given order."""
        return tuple(self._plain["missingness"].get(name, name) for _, _, name in self.study.problems)

    @cached_property
    def _plain(self) -> dict[str, dict[str, str]]:
        """For each column with names, the names shown for objects that exist only in this process."""
        worlds, _, hidings = zip(*self.study.problems, strict=True)
        columns = {"world": worlds, "missingness": hidings, "method": map(_name, self.study.settings)}
        return {column: plain_names(names) for column, names in columns.items()}

    @cached_property
    def measure(self) -> str:
        """The default measure: total reward per episode if there are episodes, else reward per step.

        Open and truncated episodes count as ended, so a run that got stuck shows.
        """
        episodes = self.runs.select(pl.col("episodes") + pl.col("cut_episodes")).to_series()
        return MEASURES_WITH_OPEN[0] if episodes.sum() else "reward_per_step"

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row per run: its figures, with the name of the method in this comparison."""
        order = {name: i for i, name in enumerate(self.missingness)}
        parts = [
            self._of(method).select(pl.lit(name).alias("name"), pl.all())
            for name, method in zip(self.names, self.study.settings, strict=True)
        ]
        place = pl.col("missingness").replace_strict(order, return_dtype=pl.Int64)
        return pl.concat(parts).sort(place, maintain_order=True)

    def _of(self, method: AnyMethod) -> pl.DataFrame:
        said = {key: value for key, value in method.as_dict().items() if value is not None}
        return self._named(self.runs.filter(**said).sort("trial"))

    def _named(self, runs: pl.DataFrame) -> pl.DataFrame:
        return runs.with_columns(pl.col(column).replace(plain) for column, plain in self._plain.items())

    @cached_property
    def summary(self) -> pl.DataFrame:
        """A row per mechanism and method: mean over seeds and difference to the first method, with intervals.

        ``outliers`` and ``difference_outliers`` say which seeds lie far from the others, and give the median; they are
        empty if none does.
        """
        return self.summed_up()

    def summed_up(self, measure: str | None = None) -> pl.DataFrame:
        """Return the summary of any column of `table`."""
        rows = []
        for hiding in self.missingness:
            for name in self.names:
                values = self._values(hiding, name, measure)
                mean = mean_interval(values)
                row = {"missingness": hiding, "name": name, "mean": mean.estimate, "low": mean.low, "high": mean.high}
                row |= {"outliers": outliers(values).sentence}
                if name != self.names[0]:
                    less = self._difference(hiding, name, self.names[0], measure)
                    row |= {"difference": less.estimate, "difference_low": less.low, "difference_high": less.high}
                    apart = np.subtract(values, self._values(hiding, self.names[0], measure))
                    row |= {"difference_outliers": outliers(apart).sentence}
                rows.append(dict.fromkeys(_SUMMARY) | row | {"seeds": mean.n})
        kinds = dict.fromkeys(_NUMBERS, pl.Float64()) | dict.fromkeys(_TEXTS, pl.String())
        return pl.DataFrame(rows, schema_overrides=kinds)

    def paired(self, a: str | int, b: str | int, measure: str | None = None) -> pl.DataFrame:
        """Return how much method `a` exceeds method `b`, seed by seed: a row per mechanism, with an interval.

        Parameters
        ----------
        a, b
            Methods, by name or by position.
        measure
            A column of `table`; that of the summary if not given.
        """
        first, second = self._found(a), self._found(b)
        rows = []
        for hiding in self.missingness:
            found = self._difference(hiding, first, second, measure)
            what = {"missingness": hiding, "a": first, "b": second}
            rows.append(what | {"difference": found.estimate, "low": found.low, "high": found.high, "seeds": found.n})
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(("difference", "low", "high"), pl.Float64))

    def _difference(self, hiding: str, a: str, b: str, measure: str | None) -> Interval:
        return paired_difference(self._values(hiding, a, measure), self._values(hiding, b, measure))

    def _values(self, hiding: str, name: str, measure: str | None) -> list[float]:
        column = self.measure if measure is None else measure
        numeric = [one for one, kind in self.table.schema.items() if kind.is_numeric()]
        if column not in numeric:
            raise ValueError(f"measure is {shown(column)}{nearest(column, numeric)}; it must be a column of numbers")
        values = self.table.filter(missingness=hiding, name=name)[column]
        if values.has_nulls():
            raise ValueError(f"{column} is not known for every run of {name} with {hiding}; take another measure")
        return values.to_list()

    def _found(self, method: str | int) -> str:
        if isinstance(method, int) and not isinstance(method, bool):
            return self.names[whole_number("a method", method, 0, len(self.names) - 1)]
        if method not in self.names:
            choices = ", ".join(self.names)
            raise ValueError(f"no method is called {shown(method)}{nearest(method, self.names)}; there are {choices}")
        return method

    @cached_property
    def curves(self) -> pl.DataFrame:
        """Learning curves: reward per step since the point before, means over seeds with intervals, a row per point."""
        rows = []
        for (hiding, name), part in self.table.group_by("missingness", "name", maintain_order=True):
            step = np.array(part["curve_step"][0].to_list())
            total = np.array(part["curve_total"].to_list())
            pace = np.diff(total, axis=1, prepend=0.0) / np.diff(step, prepend=0)
            for at, values in zip(step.tolist(), pace.T, strict=True):
                found = mean_interval(values)
                point = {"missingness": hiding, "name": name, "step": at}
                rows.append(point | {"mean": found.estimate, "low": found.low, "high": found.high, "seeds": found.n})
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(("mean", "low", "high"), pl.Float64))

    def plot(self) -> Any:
        """Draw the learning curves, a panel per mechanism, as an altair chart; needs the extra ``report``."""
        from lacuna.report.axes import Panel  # noqa: PLC0415  an extra
        from lacuna.report.panels import chart_of  # noqa: PLC0415
        from lacuna.report.styles import styles_of  # noqa: PLC0415

        mean = pl.col("mean")
        points = self.curves.select(
            pl.col("missingness").alias("panel"), pl.col("name").alias("series"), pl.col("step").alias("x"), "mean",
            pl.col("low").fill_null(mean), pl.col("high").fill_null(mean),
        )  # fmt: skip
        return chart_of(
            points, [Panel(hiding, f"reward per step, {hiding}") for hiding in self.missingness], styles_of(self.names)
        )

    def report(self, path: str | Path) -> Path:
        """Write a page of one HTML file: rewards, curves, paired differences and a table; needs the extra ``report``.

        Parameters
        ----------
        path
            The file to write.
        """
        from lacuna.report.study_report import report  # noqa: PLC0415  an extra

        return report(self._named(self.runs), path, title=self._what)

    @property
    def _title(self) -> str:
        measured = "Total reward per episode" if self.measure in MEASURES_WITH_OPEN else "Reward per step"
        return f"{measured} in {self._what}"

    @property
    def _what(self) -> str:
        world, parameters, _ = self.study.problems[0]
        name = ",".join([self._plain["world"].get(world, world), *(f"{key}={value}" for key, value in parameters)])
        spec = self.study.spec
        return f"{name}: {counted(spec.trials, 'seed')} of {counted(spec.steps, 'step')}"

    @property
    def _hints(self) -> list[str]:
        return [*self._outliers, *self._on_discounting]

    @property
    def _outliers(self) -> list[str]:
        """What to know of means that a few seeds move."""
        told = []
        for row in self.summary.iter_rows(named=True):
            where = f"{row['missingness']}, {row['name']}"
            for what, text in ((where, row["outliers"]), (f"{where}, difference", row["difference_outliers"])):
                told += [f"{what}: {text}."] if text else []
        return told

    @property
    def _on_discounting(self) -> list[str]:
        undiscounted = any(isinstance(method, Settings) and method.gamma == 1.0 for method in self.study.settings)
        if self.runs["episodes"].sum() or not undiscounted:
            return []
        return ["No episode ended by itself. If none ever does, discount later rewards: give gamma below 1."]

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        rows = [("missingness", "method", "mean", "95 % interval", f"more than {self.names[0]}", "95 % interval")]
        rows += [
            (
                hiding,
                name,
                _number(mean),
                _between(low, high, n),
                _number(less),
                _between(less_low, less_high, 0 if less is None else n),
            )
            for hiding, name, mean, low, high, less, less_low, less_high, n, *_ in self.summary.iter_rows()
        ]
        return [row if len(self.names) > 1 else row[:4] for row in rows]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self._cells, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in self._cells)
        return "\n".join([self._title, *lines, *self._hints])

    def _repr_html_(self) -> str:
        head, *rows = self._cells
        return display.card(self._title, display.table(head, rows), *map(display.paragraph, self._hints))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _between(low: float | None, high: float | None, n: int) -> str:
    if low is None or high is None:
        return "unknown spread" if n > 1 else ""
    return f"{low:.4g} to {high:.4g}"


def _name(method: AnyMethod) -> str:
    """A method, and those of its settings that differ from the method's own."""
    if isinstance(method, OwnMethod):
        return method.method
    usual = Settings(method.method).as_dict()
    return ",".join(
        [method.method, *(f"{key}={value}" for key, value in method.as_dict().items() if value != usual[key])]
    )
