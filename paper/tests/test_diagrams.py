"""Small pictures and titles: pathways as they were recorded, effects where they lie, leads that trials bear out."""

from __future__ import annotations

import re
from collections import Counter
from math import inf

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import claims_tables
import paper_runs
from lacuna.report.chart_files import spec_of
from lacuna.report.findings import Lead, count_leads
from lacuna.report.forest import Estimate, Part, bar, forest_plot, reach
from lacuna.report.styles import DARK, in_dark
from lacuna_paper.charts import FIGURES, OUR_DEFAULT, default_by_rate, mcar_time, reward_against_theta
from lacuna_paper.diagrams import pathways, record, recorded
from lacuna_paper.evidence import MI_SYNTHETIC, REWARD, Evidence
from lacuna_paper.horizons import PLANNED, Cell
from lacuna_paper.points import Wanted, by_rate, drawn_by_rate, drawn_over_time

# --- pathways --------------------------------------------------------------------------------------------------------


def test_the_record_is_what_the_agent_does() -> None:
    assert record() == recorded()


def test_pathways_are_one_where_all_is_seen_and_agree_with_what_was_seen() -> None:
    run = recorded()
    split = 0
    for state in run["states"]:
        guesses = {tuple(guess) for guess in state["guesses"]}
        assert len(state["guesses"]) == run["K"]
        for guess in guesses:
            assert all(lost or value == true for lost, value, true in zip(state["hidden"], guess, state["truth"],
                                                                          strict=True))  # fmt: skip
        if not any(state["hidden"]):
            assert guesses == {tuple(state["truth"])}
        split = max(split, len(guesses))
    assert split >= 4


def test_the_drawing_has_every_guess_and_every_gap() -> None:
    run, spec = recorded(), spec_of(pathways())
    rows = spec["datasets"]
    assert len(rows["points"]) == run["K"] * len(run["states"])
    hidden = sum(sum(state["hidden"]) for state in run["states"])
    assert Counter(row["text"] for row in rows["parts"])["?"] == hidden
    for t, state in enumerate(run["states"]):
        here = [row for row in rows["nodes"] if row["step"] == t]
        assert sum(row["pathways"] for row in here) == run["K"]
        assert sum(row["pathways"] for row in here if row["is"] == "the true state") == sum(
            guess == state["truth"] for guess in state["guesses"]
        )
        assert len({row["lane"] for row in here}) == len(here)
    ends = [[row["lane"] for row in rows["nodes"] if row["step"] == t] for t in (0, len(run["states"]) - 1)]
    assert ends[0] == ends[1]


# --- effects with their intervals ------------------------------------------------------------------------------------

NUMBERS = st.floats(-1e4, 1e4)


@given(values=st.lists(NUMBERS, min_size=3, max_size=3), borders=st.tuples(NUMBERS, NUMBERS), ends=st.integers(0, 2))
def test_a_dot_lies_in_the_shade_if_and_only_if_its_value_lies_in_the_region(
    values: list[float], borders: tuple[float, float], ends: int
) -> None:
    low, value, high = sorted(values)
    first, last = sorted(borders)
    wanted = ((first, inf), (-inf, last), (first, last))[ends]
    one = Estimate(value, low, high, wanted)
    picture = forest_plot(one, "supported", "words")
    x, width = map(float, re.search(r'class="wanted" x="([-\d.]+)" y="0" width="([-\d.]+)"', picture).groups())  # type: ignore[union-attr]
    (dot,) = map(float, re.findall(r'<circle cx="([\d.]+)"', picture))
    begin, end = map(float, re.search(r'class="reach" d="M([\d.]+),\d+H([\d.]+)', picture).groups())  # type: ignore[union-attr]
    assert begin <= dot <= end
    assert begin >= 8
    assert end <= 182
    scale = reach([one])
    pixel = (scale[1] - scale[0]) / 174
    if wanted[0] + pixel < value < wanted[1] - pixel:
        assert x < dot < x + width
    if not wanted[0] - pixel < value < wanted[1] + pixel:
        assert not x < dot < x + width


def test_a_bar_has_a_part_for_each_count_that_is_not_zero() -> None:
    made = bar([Part(7, "hold", "✓", "a"), Part(0, "fail", "✗", "b"), Part(15, "<open>", "?", "c")], "<This run>")
    assert re.findall(r"flex-grow: (\d+)", made) == ["7", "15"]
    assert 'aria-label="7 hold, 0 fail, 15 &lt;open&gt;"' in made
    assert "<This run>" not in made


# --- titles ----------------------------------------------------------------------------------------------------------


@given(shift=st.floats(-9, 9), seed=st.integers(0, 5))
def test_a_lead_needs_more_than_chance_and_changes_sides_with_the_sides(shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=5), rng.normal(size=5) + shift
    found, turned = count_leads([(one, [other])]), count_leads([(other, [one])])
    assert (found.ahead, found.behind) == (turned.behind, turned.ahead)
    assert found.cases == found.ahead + found.behind + found.open == 1
    assert count_leads([(one, [one])]) == Lead(0, 0, 1)
    # Ahead of every one is less often than ahead of one.
    assert count_leads([(one, [other, one])]).ahead <= found.ahead


def test_titles_say_who_leads_where_the_paper_is_right_and_where_it_is_not() -> None:
    world = claims_tables.as_the_paper_says()
    titles = {figure.id: figure.told for figure in FIGURES}
    seen = Evidence.of(claims_tables.table(world))
    assert titles["mcar-theta"](seen) == (
        f"{MI_SYNTHETIC} is clearly ahead of every baseline at 11 of 11 rates above 0, and nowhere clearly behind"
    )
    assert titles["mcolor"](seen).endswith("at 4 of 4 settings, and nowhere clearly behind")
    assert titles["stay"](seen).startswith("A stay action makes a clear difference in ")
    claims_tables.MADE_FALSE["mcolor-mi-best"](world)
    beaten = Evidence.of(claims_tables.table(world))
    assert titles["mcolor"](beaten).endswith("at 3 of 4 settings, and clearly behind one at 1")


# --- charts ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return paper_runs.table()


def test_panels_of_a_column_have_one_scale(table: pl.DataFrame) -> None:
    spec = spec_of(mcar_time(paper_runs.evidence(table)))
    scales = [panel["layer"][0]["encoding"]["y"]["scale"] for panel in spec["concat"]]
    assert len(scales) == 9
    for column in range(3):
        assert scales[column] == scales[column + 3] == scales[column + 6]
    assert scales[0] != scales[1] != scales[2]
    lows = [min(row["mean"] for row in spec["datasets"]["points"] if row["panel"].endswith("bad_steps"))]
    assert scales[1]["domain"][0] < lows[0]


def test_few_trials_are_drawn_themselves_and_draws_as_intervals(table: pl.DataFrame) -> None:
    published, held_out = (
        spec_of(mcar_time(paper_runs.evidence(table, selection=way))) for way in ("as-published", "held-out")
    )
    assert {"name": "intervals", "value": False} in published["params"]
    assert {"name": "intervals", "value": True} in held_out["params"]
    assert "trials" not in held_out["datasets"]
    trials = published["datasets"]["trials"]
    assert {row["trial"] for row in trials} == set(paper_runs.TUNING)
    assert all(row["value"] > 0 for row in trials if not row["panel"].endswith(REWARD))


@pytest.mark.parametrize("by_time", [False, True])
def test_the_lines_of_trials_have_the_drawn_mean(by_time: bool, table: pl.DataFrame) -> None:
    seen, wanted = paper_runs.evidence(table), Wanted.plain(MI_SYNTHETIC)
    points, trials = drawn_over_time(seen, wanted, ["mcar:0.2"]) if by_time else drawn_by_rate(seen, wanted)
    means = trials.group_by("panel", "x").agg(
        pl.col("value").mean(), pl.len().alias("trials"), pl.col("value").abs().mean().alias("size")
    )
    both = means.filter(trials=len(paper_runs.TUNING)).join(points, on=["panel", "x"])
    assert both.height >= 10
    # Three digits of each trial, four of the mean.
    apart = (both["value"] - both["mean"]).abs()
    assert (apart <= 0.00501 * both["size"] + 0.000501 * both["mean"].abs()).all()


def test_the_default_is_in_the_headline_if_it_ran_as_long(table: pl.DataFrame) -> None:
    values = np.array([88.0, 90.0, 89.0])
    cells = [
        Cell("lake", name, steps, (0, 1, 2), {PLANNED: {}}, {PLANNED: values}, {})
        for name, steps in (("mcar:0.4", paper_runs.STEPS), ("mcar:0.6", 7), ("mfog:0.5,0.0", paper_runs.STEPS))
    ]
    seen = paper_runs.evidence(table, selection="held-out")
    spec = spec_of(reward_against_theta(seen, cells))
    ours = [row for row in spec["datasets"]["points"] if row["series"] == OUR_DEFAULT.name]
    assert [(row["x"], row["mean"]) for row in ours] == [(0.4, 89.0)]
    assert "3 fresh trials in 3 draws, ours 3;" in spec["concat"][0]["title"]["text"]
    assert default_by_rate(cells, 11) is None
    assert by_rate(seen, Wanted.plain(MI_SYNTHETIC)).height > 0


def test_a_dark_chart_has_no_colour_of_the_light_one(table: pl.DataFrame) -> None:
    spec = spec_of(reward_against_theta(paper_runs.evidence(table)))
    light, dark = (str(one | {"datasets": {}}) for one in (spec, in_dark(spec)))
    used = set(re.findall(r"#[0-9a-f]{6}", light))
    assert used - set(DARK) <= {"#ffffff"}
    assert not used & set(re.findall(r"#[0-9a-f]{6}", dark))
