"""Charts: what they show is what the table says, and they come out as files."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import paper_runs
from lacuna.agent.methods import METHODS
from lacuna.report.axes import Panel
from lacuna.report.chart_files import spec_of, write_files
from lacuna.report.panels import chart_of
from lacuna.report.styles import DARK, Style
from lacuna.study.selection import MEASURES, Draw
from lacuna.study.store import SCHEMA
from lacuna.worlds.lake import Lake
from lacuna.worlds.lake_picture import LAKE_PALETTE, LakePainter
from lacuna_paper.charts import BEYOND, FIGURES, mcar_theta, optimum, reward_against_theta
from lacuna_paper.comparison import KNOWING
from lacuna_paper.diagrams import worlds
from lacuna_paper.evidence import (
    ALL_METHODS,
    MI_SYNTHETIC,
    PATH,
    REWARD,
    STAYED,
    WATER,
    Evidence,
    Shown,
)
from lacuna_paper.frontier.deep_learners import LAKE_FLOOR
from lacuna_paper.points import Wanted, by_rate, over_time, style_of

EVERY = Wanted.plain(*ALL_METHODS)


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return paper_runs.table()


@pytest.fixture(scope="module")
def specs(table: pl.DataFrame) -> dict[str, Any]:
    seen = paper_runs.evidence(table)
    return {figure.id: spec_of(figure.draw(seen)) for figure in (*FIGURES, BEYOND)}


def series_of(spec: Any) -> set[str]:
    return {row["series"] for row in spec["datasets"]["points"]}


@pytest.mark.parametrize(
    ("figure", "panels"),
    [
        ("mcar-theta", 3),
        ("mcar-time", 9),
        ("mcolor", 12),
        ("mfog", 6),
        ("choosing-k", 12),
        ("mixing", 6),
        ("stay", 12),
        ("beyond", 6),
    ],
)
def test_every_figure_has_all_its_panels(figure: str, panels: int, specs: dict[str, Any]) -> None:
    spec = specs[figure]
    assert len(spec["concat"]) == panels
    assert len({panel["title"]["text"] for panel in spec["concat"]}) == panels
    assert all(math.isfinite(row["mean"]) for row in spec["datasets"]["points"])


def test_there_is_a_test_for_every_figure(specs: dict[str, Any]) -> None:
    assert len(specs) == len(FIGURES) + 1 == 8


def test_figures_bear_the_numbers_they_have_in_the_paper() -> None:
    """In the order of its source, where the appendix begins with the figure of learning rates, number 5."""
    numbers = [re.findall(r"figure (\d+)", figure.caption) for figure in FIGURES]
    assert numbers == [["3"], ["3", "6"], ["4", "7"], ["4", "8"], ["9"], ["10"], ["11"]]


def test_ours_is_drawn_against_the_yardsticks(specs: dict[str, Any]) -> None:
    wanted = {"MI K=10, available cases (ours)", "MI K=10, true model", "Q-learning, all observed"}
    wanted |= {"QMDP, true model, rewards seen"}
    assert wanted < series_of(specs["beyond"])
    assert not wanted & series_of(specs["mcar-theta"])


def test_a_chart_is_what_vega_lite_allows(table: pl.DataFrame) -> None:
    chart = mcar_theta(paper_runs.evidence(table))
    assert chart is not None
    chart.to_dict(validate=True)


@pytest.mark.parametrize("figure", [*FIGURES, BEYOND], ids=lambda figure: figure.id)
def test_a_table_without_runs_gives_no_chart(figure: Any) -> None:
    assert figure.draw(paper_runs.evidence(pl.DataFrame(schema=SCHEMA))) is None


def test_a_figure_not_run_in_a_reading_has_no_chart(table: pl.DataFrame) -> None:
    drawn = {
        figure.id: figure.draw(paper_runs.evidence(table, "continuing")) is not None for figure in (*FIGURES, BEYOND)
    }
    assert drawn == {
        "mcar-theta": True, "mcar-time": True, "mcolor": False, "mfog": False, "choosing-k": True, "mixing": True,
        "stay": True, "beyond": False,
    }  # fmt: skip


def test_means_against_the_rate_are_those_of_the_runs(table: pl.DataFrame) -> None:
    point = (
        by_rate(paper_runs.evidence(table), EVERY)
        .filter(series="MI K=10, synthetic", measure=WATER, x=0.4)
        .row(0, named=True)
    )
    episodic = pl.col("parameters").is_in(["", "stay=True"]) & (pl.col("trial") < 1000)
    runs = table.filter(episodic, missingness="mcar:0.4", method="mi-synthetic", K=10, p_shuffle=0.0)
    best = max(
        (group for _, group in runs.group_by("epsilon", "parameters")),
        key=lambda group: group["mean_total_reward"].to_numpy().mean(),
    )
    values = best["mean_bad_steps"].to_numpy()
    reach = stats.t.ppf(0.975, 2) * values.std(ddof=1) / math.sqrt(3)
    assert point["n"] == 3
    assert point["mean"] == pytest.approx(values.mean(), rel=1e-3)
    assert point["high"] - point["low"] == pytest.approx(2 * reach, rel=2e-3)


def test_held_out_shows_fresh_trials_and_counts_the_open_episode(table: pl.DataFrame) -> None:
    point = by_rate(paper_runs.evidence(table, selection="held-out"), EVERY)
    point = point.filter(series="Last observed (V2)", measure=PATH, x=0.2)
    runs = table.filter(parameters="", missingness="mcar:0.2", method="last-observed")
    runs = runs.filter(pl.col("trial") >= 1000)
    wanted = [
        (row["mean_path_length"] * row["episodes"] + row["open_steps"]) / (row["episodes"] + (row["open_steps"] > 0))
        for row in runs.iter_rows(named=True)
    ]
    assert len(wanted) == 3
    assert point["mean"].item() == pytest.approx(np.mean(wanted), rel=1e-3)


def test_curves_are_running_means_over_completed_episodes(table: pl.DataFrame) -> None:
    points = over_time(paper_runs.evidence(table), EVERY, ["mcar:0.2"]).filter(
        series="Missing as a state", measure=REWARD
    )
    runs = table.filter(parameters="", missingness="mcar:0.2", method="missing-as-state")
    runs = runs.filter(pl.col("trial") < 1000)
    for point in points.iter_rows(named=True):
        at = [run["curve_step"].index(point["x"]) for run in runs.iter_rows(named=True)]
        means = [
            run["curve_reward"][i] / run["curve_episodes"][i]
            for run, i in zip(runs.iter_rows(named=True), at, strict=True)
        ]
        assert point["mean"] == pytest.approx(np.mean(means), rel=1e-3)
    assert points["x"].max() == paper_runs.STEPS


def test_a_curve_begins_when_every_trial_has_completed_an_episode(table: pl.DataFrame) -> None:
    runs = table.filter(parameters="", missingness="mcar:0.2", method="last-observed")
    runs = runs.filter(pl.col("trial") < 1000)
    firsts = [
        next(step for step, n in zip(run["curve_step"], run["curve_episodes"], strict=True) if n > 0)
        for run in runs.iter_rows(named=True)
    ]
    assert len(set(firsts)) > 1
    points = over_time(paper_runs.evidence(table), EVERY, ["mcar:0.2"]).filter(
        series="Last observed (V2)", measure=PATH
    )
    assert points["x"].min() >= max(firsts)
    assert points["n"].unique().to_list() == [3]


def test_the_share_of_stay_actions_is_over_all_steps(table: pl.DataFrame, specs: dict[str, Any]) -> None:
    last = [
        row["mean"]
        for row in specs["stay"]["datasets"]["points"]
        if row["panel"] == f"mcar:0.4 {STAYED}" and row["x"] == paper_runs.STEPS and row["series"] == "ε = 0, may stay"
    ]
    runs = table.filter(parameters="stay=True", epsilon=0.0, missingness="mcar:0.4")
    wanted = runs.filter(pl.col("trial") < 1000)["idle_share"].mean()
    assert last == [pytest.approx(wanted, rel=1e-3)]


def test_mixing_is_dashed_and_a_single_pathway_cannot_mix(specs: dict[str, Any]) -> None:
    meta = specs["mixing"]["usermeta"]["series"]
    assert [one["name"] for one in meta] == ["K = 1", "K = 5", "K = 5, mixing", "K = 10", "K = 10, mixing"]
    assert meta[3]["dash"] != meta[4]["dash"]
    assert meta[3]["colour"] == meta[4]["colour"]


def test_runs_of_different_lengths_are_refused(table: pl.DataFrame) -> None:
    mixed = table.with_columns(steps=pl.when(pl.col("trial") == 0).then(10).otherwise("steps"))
    with pytest.raises(ValueError, match="runs of different lengths"):
        mcar_theta(paper_runs.evidence(mixed))


def test_as_published_only_the_tuning_trials_of_the_first_draw_count(table: pl.DataFrame) -> None:
    whole = by_rate(Evidence.of(table, draws=[Draw(paper_runs.TUNING, paper_runs.FRESH)]), EVERY)
    assert whole.equals(by_rate(paper_runs.evidence(table), EVERY))


def test_a_series_that_lacks_a_trial_is_left_out(table: pl.DataFrame) -> None:
    gone = table.filter(~((pl.col("method") == "last-observed") & (pl.col("trial") == 1)))
    assert series_of(spec_of(mcar_theta(paper_runs.evidence(gone)))) == {str(shown) for shown in ALL_METHODS} - {
        "Last observed (V2)"
    }


def test_a_method_looks_the_same_in_all_charts(specs: dict[str, Any]) -> None:
    styles: dict[str, set[str]] = {}
    for spec in specs.values():
        for one in spec["usermeta"]["series"]:
            styles.setdefault(one["name"], set()).add(str(one))
    assert len(styles) > len(ALL_METHODS)
    assert all(len(found) == 1 for found in styles.values())


def test_methods_differ_in_colour_or_dash_on_light_and_dark_pages() -> None:
    shown = [*ALL_METHODS, *(Shown(method, 5) for method in ("mi-synthetic", "mi-conservative"))]
    styles = [style_of(one) for one in shown]
    assert len({(style.colour, style.dash) for style in styles}) == len(styles)
    assert len({(DARK[style.colour], style.dash) for style in styles}) == len(styles)
    knowing = [style_of(one) for one in KNOWING.values()]
    assert len({(style.colour, style.dash) for style in knowing}) == len(KNOWING)
    assert [str(Shown(name)) for name in METHODS if not METHODS[name].multiple] == [
        method.title for method in METHODS.values() if not method.multiple
    ]


def test_rewards_far_below_do_not_squash_the_others(specs: dict[str, Any]) -> None:
    spec = specs["mcar-time"]
    assert min(row["mean"] for row in spec["datasets"]["points"] if row["panel"].endswith(REWARD)) < LAKE_FLOOR.lowest
    scale = spec["concat"][0]["layer"][0]["encoding"]["y"]["scale"]
    assert scale["domain"][0]["expr"].startswith("max(lowest")
    assert float(scale["domain"][1]["expr"]) > optimum()
    assert {"name": "lowest", "value": LAKE_FLOOR.lowest} in spec["params"]


@pytest.mark.parametrize("measure", [WATER, PATH])
def test_water_and_path_are_logarithmic_and_no_mean_lies_outside(measure: str, specs: dict[str, Any]) -> None:
    spec = specs["mcar-theta"]
    panel = spec["concat"][MEASURES.index(measure)]
    scale = panel["layer"][0]["encoding"]["y"]["scale"]
    means = [row["mean"] for row in spec["datasets"]["points"] if row["panel"] == measure]
    assert scale["type"] == "log"
    assert 0 < scale["domain"][0] < min(means) <= max(means) < scale["domain"][1]


@given(lowest=st.floats(1e-3, 1e4), ratio=st.floats(1.0, 1e5))
@settings(max_examples=40)
def test_a_logarithmic_axis_has_a_few_round_numbers(lowest: float, ratio: float) -> None:
    """One number is no scale, however close together the values are."""
    rows = [
        {"panel": PATH, "measure": PATH, "series": "one", "x": x, "mean": mean, "low": mean, "high": mean}
        for x, mean in ((0.0, lowest), (1.0, lowest * ratio))
    ]
    style = Style("one", "#000000", (), "circle")
    chart = chart_of(pl.DataFrame(rows), [Panel(PATH, "Path length", "log", "rate")], [style])
    y = spec_of(chart)["concat"][0]["layer"][0]["encoding"]["y"]
    (bottom, top), ticks = y["scale"]["domain"], y["axis"]["values"]
    assert 3 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))
    assert bottom <= ticks[0] < ticks[-1] < top
    assert all(float(f"{tick:.2g}") == pytest.approx(tick) for tick in ticks)


def test_the_world_is_drawn_as_it_is() -> None:
    spec = worlds().to_dict()
    dry, flooded = (spec["datasets"][panel["layer"][0]["data"]["name"]] for panel in spec["concat"])
    assert [sum(cell["water"] == "yes" for cell in cells) for cells in (dry, flooded)] == [8, 20]
    assert sum(cell["fog"] == "yes" for cell in dry) == 9
    assert {cell["place"] for cell in dry if cell["colour"] == "red (r)"} == {
        f"row {row}, column 3" for row in (3, 4, 5, 7)
    }
    words = [row["text"] for row in spec["datasets"][spec["concat"][1]["layer"][2]["data"]["name"]]]
    assert [words.count(word) for word in ("S", "G", "≈", "bridge", "fog")] == [1, 1, 20, 1, 1]
    assert [words.count(letter) for letter in "gor"] == [39, 10, 15]


def test_the_chart_and_the_picture_of_the_world_are_one_drawing() -> None:
    spec, lake = worlds().to_dict(), Lake()
    for flooded, panel in enumerate(spec["concat"]):
        picture = LakePainter(lake).picture(lake.state(6, 1, flooded=bool(flooded)))
        scale = panel["layer"][0]["encoding"]["color"]["scale"]
        fills = dict(zip(scale["domain"], scale["range"], strict=True))
        for cell in spec["datasets"][panel["layer"][0]["data"]["name"]]:
            pixel = picture[cell["top"] * 48 + 40, cell["left"] * 48 + 40].tolist()
            assert (cell["top"], cell["left"]) in ((7, 0), (6, 7)) or pixel == list(
                bytes.fromhex(fills[cell["colour"]][1:])
            )
        marks = (row for i in (1, 2) for row in spec["datasets"][panel["layer"][i]["data"]["name"]])
        assert {row.get("fill") or row["ink"] for row in marks} <= set(LAKE_PALETTE.values())


def test_charts_as_files(tmp_path: Path, specs: dict[str, Any]) -> None:
    paths = write_files(specs["mcar-theta"], tmp_path / "figures", "mcar-theta")
    begins = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert {kind: path.name for kind, path in paths.items()} == {kind: f"mcar-theta.{kind}" for kind in begins}
    for kind, path in paths.items():
        content = path.read_bytes()
        assert content.startswith(begins[kind])
        assert len(content) > 10_000
    svg = paths["svg"].read_text()
    assert all(str(shown) in svg for shown in ALL_METHODS)
    assert svg.count("mark-line") == 3 * len(ALL_METHODS) * (1 + len(paper_runs.TUNING))


def test_the_headline_figure_says_on_which_trials(table: pl.DataFrame) -> None:
    spec = spec_of(reward_against_theta(paper_runs.evidence(table, selection="held-out")))
    assert spec["concat"][0]["title"]["text"].startswith(
        "Total reward per episode (means over 3 fresh trials in 3 draws"
    )
    assert {row["panel"] for row in spec["datasets"]["points"]} == {REWARD}
    assert series_of(spec) == {str(shown) for shown in ALL_METHODS}
    assert reward_against_theta(paper_runs.evidence(pl.DataFrame(schema=SCHEMA))) is None


def test_rows_are_handed_over_and_the_chart_keeps_them(table: pl.DataFrame) -> None:
    chart = mcar_theta(paper_runs.evidence(table))
    assert chart is not None
    assert spec_of(chart)["datasets"]["points"] == spec_of(chart)["datasets"]["points"] == chart.datasets["points"]
    assert spec_of(chart) == chart.to_dict(validate=False)


def test_a_band_against_the_rate_is_cut_off_not_bent(specs: dict[str, Any]) -> None:
    spec = specs["mcar-theta"]
    (band,) = (layer for layer in spec["concat"][MEASURES.index(REWARD)]["layer"] if layer["mark"]["type"] == "area")
    assert band["mark"]["clip"] is True
    assert not [step for step in band["transform"] if "calculate" in step]
    assert min(row["low"] for row in spec["datasets"]["points"] if row["panel"] == REWARD) < LAKE_FLOOR.lowest


def test_without_the_extra_there_is_one_sentence() -> None:
    code = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name: None if name == 'altair' else find(name)\n"
        "import lacuna.report"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("charts and pages need an extra: pip install 'lacuna[report]'")


def test_the_headline_method_is_in_every_chart_of_methods(specs: dict[str, Any]) -> None:
    for figure in ("mcar-theta", "mcar-time", "mcolor", "mfog", "choosing-k"):
        assert str(MI_SYNTHETIC) in series_of(specs[figure])
