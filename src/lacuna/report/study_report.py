"""The report of any study: a table of runs in, a chart or one page out.

The rows are those of a store (`lacuna.study.store.SCHEMA`). Methods and worlds may have any name, and settings may be
null: nothing here knows which there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import altair as alt
import polars as pl
from markupsafe import Markup

from lacuna.agent.methods import YARDSTICKS
from lacuna.files import write_whole
from lacuna.quantities import counted, duration
from lacuna.report import charts
from lacuna.report.chart_files import spec_of
from lacuna.report.findings import on_curves, on_differences, on_profile, on_rewards, on_scores
from lacuna.report.html_tables import Cell, Text, cards, interval_cell, table
from lacuna.report.page import ANY, Figure, Page, Section, Spec, Switch, details, facts, numbers, paragraphs, when
from lacuna.report.styles import DARK
from lacuna.study.outcomes import PER_EPISODE, Measure, Outcomes, trials_text
from lacuna.study.statistics import Interval, on_unseen
from lacuna.study.summaries import Scores, differences, means, trial_curves, with_intervals
from lacuna.version import __version__
from lacuna.worlds.registry import WORLDS


@dataclass(frozen=True)
class About:
    """What is known of a study besides its runs.

    Parameters
    ----------
    commands
        The commands that repeat it, one a line.
    files
        Files that the commands need, by name.
    notes
        Sentences that readers must know, for example which runs are missing.
    """

    commands: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def plot(runs: pl.DataFrame) -> alt.ConcatChart:
    """Draw the rewards of a table of runs against missingness; with a single task, its learning curves if it has any.

    Parameters
    ----------
    runs
        A row per run, as in a store.
    """
    outcomes = Outcomes.of(runs)
    curves = charts.learning_curves(outcomes) if len(outcomes.tasks) == 1 else None
    return curves or charts.rewards(outcomes)


def report(runs: pl.DataFrame, path: str | Path, *, title: str = "A study", about: About | None = None) -> Path:
    """Write the page of a table of runs; give its path.

    Parameters
    ----------
    runs
        A row per run, as in a store.
    path
        The file to write.
    title
        What the page is called.
    about
        What is known of the study besides its runs.
    """
    page = page_of(runs, title, about or About())
    write_whole(Path(path), page.html().encode())
    return Path(path)


def page_of(runs: pl.DataFrame, title: str, about: About) -> Page:
    """Make the page of a table of runs."""
    shown = _Shown(Outcomes.of(runs))
    sections = [
        Section("short", "In short", shown.in_short(runs, about)),
        Section("rewards", "Reward and missingness", shown.rewards(), "Reward"),
        Section("learning", "Learning", shown.learning()),
        *([Section("differences", "Paired differences", shown.differences(), "Differences")] if shown.order else []),
        *([Section("tasks", "Over all tasks", shown.over_tasks(), "All tasks")] if shown.outcomes.tasks[1:] else []),
        Section("table", "Table", shown.table()),
        Section("runs", "The runs", shown.about(runs, about), "Runs"),
    ]  # fmt: skip
    footer = f"Made by lacuna {__version__}. This page needs no network."
    return Page(title, shown.lead(), sections, shown.switches(), DARK, footer)


class _Shown:
    """The parts of the page, from outcomes."""

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes
        self.measures = outcomes.measures
        values = outcomes.values(self.measures[0])
        numbers_of_trials = values.group_by("task", "series").len()["len"].to_list()
        self.trials = min(numbers_of_trials), max(numbers_of_trials)
        # Those that do best come first, yardsticks last.
        order = with_intervals(values.with_columns(value=pl.col("value").rank().over("task", "trial")), ["series"])
        ranks = dict(order.select("series", "mean").iter_rows())
        names = [one.name for one in outcomes.series]
        self.order = sorted(names, key=lambda n: (n not in outcomes.methods, -ranks.get(n, 0.0))) if names[1:] else []

    def switches(self) -> list[Switch]:
        measures = Switch("Measure", [measure.name for measure in self.measures])
        return [measures, *([Switch("Compared with", self.order)] if self.order else [])]

    def key(self, measure: Measure, against: str = ANY) -> tuple[str, ...]:
        return (measure.name, against) if self.order else (measure.name,)

    def lead(self) -> Markup:
        outcomes = self.outcomes
        worlds = outcomes.runs.select("world", "parameters").unique().height
        least, most = self.trials
        each = counted(least, "trial") if least == most else f"{least} to {most} trials"
        text = (
            f"{counted(len(outcomes.series), 'method')} in {counted(len(outcomes.tasks), 'task')} "
            f"({counted(worlds, 'world')}, {counted(outcomes.runs['missingness'].n_unique(), 'kind')} of missingness), "
            f"{each} each."
        )
        return paragraphs(text)

    def in_short(self, runs: pl.DataFrame, about: About) -> Markup:
        outcomes = self.outcomes
        notes = [Markup('<p class="note">{}</p>').format(note) for note in about.notes]
        found = []
        for measure in self.measures:
            headings = [on_rewards(outcomes.values(measure), outcomes, measure.name)]
            scores = Scores(outcomes, measure)
            if len(scores.tasks) > 1 and len(outcomes.methods) > 1:
                headings.append(on_scores(scores, outcomes))
            text = Markup(" ").join(f"{heading}." for heading in headings)
            found.append(Markup('<p class="short" {}>{}</p>').format(when(*self.key(measure)), text))
        amounts = numbers(
            [
                (f"{runs.height:,}", f"runs, {int(runs['steps'].sum()):,} steps"),
                (str(len(outcomes.tasks)), "tasks: a kind of missingness in a world"),
                (str(len(outcomes.series)), "methods and settings shown"),
            ]
        )
        hint = paragraphs(
            "“Clearly” means: the p value of the paired difference over trials (Student's t), corrected by Holm's "
            "method for all comparisons made together, is at most 5 %. A method is clearly best if it is clearly ahead "
            "of every other one; this is corrected for having looked for the best, too, so a single difference may be "
            "clear where no method is clearly best. "
            + f"{on_unseen(self.trials[0])} "
            + outcomes.how_chosen()
        )  # fmt: skip
        return Markup("\n").join([*notes, *found, amounts, hint])

    def figure(self, name: str, caption: Text, specs: Mapping[tuple[str, ...], tuple[str, Spec]]) -> Markup:
        """A figure whose title is what was found, for each variant."""
        variants = {
            options: spec | {"usermeta": spec.get("usermeta", {}) | {"heading": heading}}
            for options, (heading, spec) in specs.items()
        }
        title = next(iter(specs.values()))[0]
        told = Markup("<span {}> A close-up leaves out means far below the others; switch it off to see them.</span>")
        for options, (_, spec) in specs.items():
            if any(param.get("name") == "closer" for param in spec.get("params", ())):
                caption += told.format(when(*options))
        return Figure(name, title, caption, variants).html()

    def rewards(self) -> Markup:
        outcomes = self.outcomes
        found = {
            self.key(measure): (
                on_rewards(outcomes.values(measure), outcomes, measure.name),
                spec_of(charts.rewards(outcomes, measure)),
            )
            for measure in self.measures
        }
        caption = (
            "Means over trials of whole runs with 95 % intervals (Student's t). Reward per episode counts an episode "
            "that is open at the end, or was cut off, as ended there; reward per step counts every step. Intervals "
            "that reach the edge of a panel go on beyond it. "
        )
        if any(one.yardstick for one in outcomes.series):
            caption += "Dotted: yardsticks, which know what no agent can. "
        caption += "Click on a method to switch it off, in all charts."
        return self.figure("rewards", caption, found) + self.on_yardsticks()

    def on_yardsticks(self) -> Markup:
        outcomes = self.outcomes
        if any(one.yardstick for one in outcomes.series) or not set(outcomes.runs["world"]) <= WORLDS.keys():
            return Markup("")
        names = ", ".join(f'{{name = "{name}"}}' for name in list(YARDSTICKS)[:2])
        text = Markup(
            "How far from the best possible? Add <code>{}</code> to <code>methods</code> and run the study again."
        )
        return paragraphs(text.format(names))

    def learning(self) -> Markup:
        outcomes = self.outcomes
        found = {}
        for measure in self.measures:
            chart = charts.learning_curves(outcomes, measure)
            if chart is not None:
                found[self.key(measure)] = (on_curves(trial_curves(outcomes, measure), outcomes), spec_of(chart))
        if not found:
            return paragraphs(
                Markup("No curves were noted. Add <code>curve_points = 50</code> to the study and run it again.")
            )
        drawn, noted = charts.tasks_with_curves(outcomes), len(outcomes.tasks)
        caption = (
            "Each measure over all steps so far; per episode, over the episodes completed so far. Thick lines are "
            "means where all trials have a value, bands 95 % intervals, thin lines single trials (the first ten)."
        )
        caption += f" Of {noted} tasks, {len(drawn)} are drawn." if len(drawn) < noted else ""
        return self.figure("curves", caption, found)

    def differences(self) -> Markup:
        outcomes = self.outcomes
        found, tables = {}, []
        for measure in self.measures:
            for against in self.order:
                rows = differences(outcomes, measure, against)
                chart = charts.paired_differences(outcomes, measure, against)
                if chart is None:
                    continue
                heading = on_differences(rows, against, outcomes.methods)
                found[self.key(measure, against)] = (heading, spec_of(chart))
                shown = details(f"The differences to {against} as a table", _difference_table(rows))
                tables.append(Markup("<div {}>{}</div>").format(when(*self.key(measure, against)), shown))
        if not found:
            return paragraphs("No two methods have a trial in common.")
        caption = (
            "Each method minus the one chosen above, trial by trial; means with 95 % intervals (Student's t). A method "
            "right of, or above, the dotted line earns more."
        )
        return self.figure("differences", caption, found) + Markup("\n").join(tables)

    def over_tasks(self) -> Markup:
        outcomes = self.outcomes
        means_found, profiles, words = {}, {}, Markup("")
        for measure in self.measures:
            scores = Scores(outcomes, measure)
            if len(scores.tasks) > 1 and len(outcomes.series) > 1:
                key = self.key(measure)
                means_found[key] = on_scores(scores, outcomes), spec_of(charts.interquartile_means(scores, outcomes))
                profiles[key] = on_profile(scores, outcomes), spec_of(charts.profile(scores, outcomes))
                words = words or paragraphs(_on_scale(scores))
        if not means_found:
            return paragraphs("No two tasks have trials of all methods, so there is nothing to put together.")
        first = (
            "The mean of the middle half of all scores, over tasks and trials; 95 % intervals by the jackknife over "
            "trials (Student's t), the tasks and the scale taken as given."
        )
        second = "The share of tasks and trials with at least this score; 95 % intervals over trials (Student's t)."
        return words + self.figure("scores", first, means_found) + self.figure("profile", second, profiles)

    def table(self) -> Markup:
        outcomes = self.outcomes
        first, *others = (means(outcomes, measure) for measure in self.measures)
        keys = ["task", "series"]
        joined = first.join(
            others[0].select(*keys, pl.struct("mean", "low", "high", "n", "note").alias("_other")), on=keys
        )
        more = outcomes.runs.group_by(keys, maintain_order=True).agg(
            pl.col("label").first(), pl.col("mean_bad_steps_with_open").mean().alias("bad"),
            pl.col("mean_path_length_with_open").mean().alias("path"), pl.col("seconds").median(),
        )  # fmt: skip
        joined = joined.join(more, on=keys, how="left", maintain_order="left")
        # The sums behind these two count what a world calls a bad step; most have none.
        bad = ["bad"] if (joined["bad"].fill_null(0.0) != 0).any() else []
        heads = ["World", "Missingness", "Label", "Method", *(one.name.capitalize() for one in self.measures)]
        heads += ["Bad steps per episode"] * len(bad) + ["Steps per episode", "Trials", "Seconds a run, median"]
        rows = []
        for row in joined.iter_rows(named=True):
            cells: list[Text | float | Cell] = [row["place"], row["missingness"], row["label"] or "–", row["series"]]
            for of in (row, row["_other"]):
                found = Interval(of["mean"], of["low"], of["high"], of["n"])
                cells.append(interval_cell(found, note=of["note"]))
            cells += [_number(row[name]) for name in (*bad, "path")] + [row["n"], _number(row["seconds"])]
            rows.append(cells)
        caption = (
            "Means over trials, 95 % intervals below; none where all trials are equal, as their spread is unknown. "
            "Click on a column to sort."
        )
        return cards(table(heads, rows, caption))

    def about(self, runs: pl.DataFrame, about: About) -> Markup:
        parts = []
        if about.commands:
            parts += [paragraphs("These commands repeat it:"), Markup("<pre>{}</pre>").format(about.commands)]
        parts += [
            details(f"The file {name}", Markup("<pre>{}</pre>").format(text)) for name, text in about.files.items()
        ]
        parts.append(facts(list(_facts(runs, self.measures[0]))))
        chosen = self.outcomes.chosen
        if chosen is not None:
            rows = [["–" if value is None else value for value in row] for row in chosen.iter_rows()]
            heads = [name.replace("_", " ").capitalize() for name in chosen.columns[:-1]] + ["Settings tried"]
            parts.append(details("The settings that were chosen", cards(table(heads, rows))))
        return Markup("\n").join(parts)


def _on_scale(scores: Scores) -> str:
    top = "the mean of the yardstick that knows everything" if scores.to_best else "the highest mean of any method"
    text = (
        f"To put tasks together, rewards are scored: in each task 0 is the lowest mean of a method, 1 is {top}. "
        f"{counted(len(scores.tasks), 'task')}, {trials_text(scores.trials)}."
    )
    if scores.left_out:
        text += f" Left out, as not all methods were run in them or all are equal: {counted(scores.left_out, 'task')}."
    return text


def _difference_table(rows: pl.DataFrame) -> Markup:
    heads = ["World", "Missingness", "Method", "Difference", "p, corrected", "Trials", "Finding"]
    made: list[list[Text | float | Cell]] = []
    for row in rows.iter_rows(named=True):
        found = Interval(row["mean"], row["low"], row["high"], row["n"])
        word = "no clear difference" if not row["clear"] else "clearly ahead" if row["mean"] > 0 else "clearly behind"
        word = f"{word}; {row['note']}" if row["note"] else word
        p = Cell(f"{row['p']:.2g}", row["p"])
        made.append([row["place"], row["missingness"], row["series"], interval_cell(found), p, row["n"], word])
    return cards(table(heads, made))


def _number(value: float | None) -> float | Cell:
    return Cell("–", None) if value is None else value


def _facts(runs: pl.DataFrame, first: Measure) -> Iterator[tuple[Text, Text]]:
    lengths = ", ".join(f"{n:,}" for n in runs["steps"].unique().sort())
    yield "Runs", f"{runs.height:,} of {lengths} steps"
    yield "Trials", trials_text(runs["trial"].unique().sort().to_list())
    for name, words in (("lacuna", "lacuna"), ("host", "Machines")):
        if name in runs.columns and runs[name].drop_nulls().len():
            yield words, ", ".join(sorted(set(runs[name].drop_nulls())))
    yield "Time of all runs", f"{duration(float(runs['seconds'].sum()))} of one core"
    why = "" if first == PER_EPISODE else ", as some runs completed no episode"
    yield "Measure shown first", first.name + why
