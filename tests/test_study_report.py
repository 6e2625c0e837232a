"""The report of a study in a real browser, and the commands that write it and compare two stores."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import study_rows
from commands import Call, caller, is_one_sentence
from lacuna import Local, Store, Study, run_study
from lacuna.report.study_files import as_toml, report_store
from lacuna.report.study_report import About, page_of, plot, report
from lacuna.study.outcomes import PER_EPISODE, PER_STEP, Outcomes
from lacuna.study.summaries import differences, means, trial_curves
from visits import PHONE, WIDE, Visit, draw_all, overflow

NASTY = "</script><script>document.title = 'taken over'</script>"
LEVELS = {"mine.agents:Mine": 30.0, "theirs": 20.0, "level": 20.0, "optimum": 40.0}
TASKS = [
    {"world": world, "missingness": name}
    for world in ("one world", "Some-Env-v1")
    for name in (("mcar:0.2", "mcar:0.4") if world == "one world" else ("mcar:0.2", "bursts:0.1,0.3"))
]
SMALL = """
name = "small study"
steps = 400
trials = 3
missingness = ["mcar:0.2", "mcar:0.4"]
worlds = [{name = "corridor"}]
methods = [{name = "last-observed"}, {name = "mi-synthetic", K = [1, 2]}]
"""


@pytest.fixture(scope="module")
def runs() -> pl.DataFrame:
    return study_rows.study(LEVELS, TASKS, spread=0.5)


@pytest.fixture(scope="module")
def page_file(runs: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    about = About(f"lacuna study run {NASTY}", {"a.toml": NASTY}, [f"something is missing {NASTY}"])
    return report(runs, tmp_path_factory.mktemp("report") / "report.html", title="Of my own", about=about)


@pytest.fixture
def visit(browser: Browser, page_file: Path) -> Iterator[Visit]:
    made = Visit(browser, page_file.as_uri(), viewport=WIDE, accept_downloads=True)
    draw_all(made.page)
    yield made
    assert made.troubles == []
    made.context.close()


def downloaded(page: Page, figure: str, name: str) -> tuple[str, str]:
    with page.expect_download() as waiting:
        page.locator(f"#figure-{figure}").get_by_role("button", name=name, exact=True).click()
    path = waiting.value.path()
    return waiting.value.suggested_filename, path.read_text(encoding="utf-8")


def test_the_page_is_whole_offline_and_says_what_was_found(visit: Visit, page_file: Path) -> None:
    page = visit.page
    assert [url for url in visit.requests if not url.startswith(("data:", "blob:"))] == [page_file.as_uri()]
    titles = page.locator("figure h3").all_inner_texts()
    assert titles[0] == "mine.agents:Mine is clearly best in 4 of 4 tasks"
    assert titles[1] == "A tenth into the run as at its end, mine.agents:Mine is clearly best in 4 of 4 tasks"
    assert titles[2].startswith("Against mine.agents:Mine, clearly: ")
    assert titles[2].endswith("theirs behind in 4 of 4 tasks")
    assert titles[3].startswith("Over 4 tasks mine.agents:Mine scores clearly highest: 0.5")
    assert page.title() == "Of my own"
    assert page.locator("#runs pre").first.inner_text() == f"lacuna study run {NASTY}"
    assert page.locator("#short .note").inner_text() == f"something is missing {NASTY}"


def test_rates_lie_on_an_axis_and_other_mechanisms_are_categories(visit: Visit) -> None:
    rewards = visit.page.locator("#figure-rewards")
    assert rewards.locator("svg").get_by_text("rate of mcar").count() == 1
    assert rewards.locator("svg").get_by_text("bursts:0.1,0.3").count() == 1
    assert rewards.locator(".mark-line path").count() == len(LEVELS)


def test_another_method_to_compare_with_changes_chart_title_and_table(visit: Visit, runs: pl.DataFrame) -> None:
    page = visit.page
    title = page.locator("#figure-differences h3")
    page.get_by_text("level", exact=True).first.click()
    expect(title).to_have_text("Against level, clearly: mine.agents:Mine ahead in 4 of 4 tasks")
    found = differences(Outcomes.of(runs), PER_EPISODE, "level")
    _, text = downloaded(page, "differences", "CSV")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == found.height
    assert {row["series"] for row in rows} == set(found["series"])
    page.locator("#differences summary:visible").click()
    shown = page.locator("#differences details:visible tbody tr")
    assert shown.count() == found.height
    assert "no clear difference" in shown.filter(has_text="theirs").first.inner_text()


def test_the_csv_is_what_the_chart_shows(visit: Visit, runs: pl.DataFrame) -> None:
    page = visit.page
    page.locator("#figure-rewards .legend button", has_text="theirs").click()
    page.get_by_text("reward per step", exact=True).first.click()
    name, text = downloaded(page, "rewards", "CSV")
    assert name == "rewards.csv"
    rows = list(csv.DictReader(io.StringIO(text)))
    found = means(Outcomes.of(runs), PER_STEP).filter(pl.col("series") != "theirs")
    wanted = {
        (row["place"], row["missingness"], row["series"]): (row["mean"], row["low"], row["high"])
        for row in found.iter_rows(named=True)
    }
    assert len(rows) == len(wanted)
    for row in rows:
        given = tuple(float(row[name]) for name in ("mean", "low", "high"))
        assert given == pytest.approx(wanted[row["panel"], row["category"], row["series"]], rel=1e-4)


def test_the_csv_of_trials_has_the_curve_of_each(visit: Visit, runs: pl.DataFrame) -> None:
    name, text = downloaded(visit.page, "curves", "CSV of trials")
    assert name == "curves-trials.csv"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == trial_curves(Outcomes.of(runs), PER_EPISODE).height


def test_the_svg_is_a_picture_by_itself_with_a_legend(visit: Visit) -> None:
    page = visit.page
    page.locator("#figure-rewards .legend button", has_text="level").first.click()
    name, text = downloaded(page, "rewards", "SVG")
    assert name == "rewards.svg"
    assert text.startswith("<svg")
    assert "role-legend" in text
    assert "mine.agents:Mine" in text
    assert text.count('aria-roledescription="line mark"') <= len(LEVELS) - 1


def test_what_is_chosen_stands_in_the_address_and_holds_after_a_reload(browser: Browser, page_file: Path) -> None:
    visit = Visit(browser, page_file.as_uri(), viewport=WIDE)
    page = visit.page
    draw_all(page)
    assert "#" not in page.url
    page.get_by_text("reward per step", exact=True).first.click()
    page.locator("[data-switch='Compared-with']").get_by_text("theirs").click()
    page.locator("#figure-curves .legend button", has_text="optimum").click()
    page.locator("#figure-curves").get_by_role("button", name="Trials", exact=True).click()
    page.locator("nav a", has_text="Differences").click()
    page.wait_for_url(re.compile(r"#differences\?"))
    address = page.url
    other = Visit(browser, address, viewport=WIDE)
    draw_all(other.page)
    for seen in (other.page,):
        assert seen.locator("input:checked").evaluate_all("all => all.map(e => e.value)") == [
            "reward per step", "theirs",
        ]  # fmt: skip
        expect(seen.locator("#figure-differences h3")).to_have_text(re.compile("^Against theirs"))
        expect(seen.locator("#figure-curves .legend button", has_text="optimum")).to_have_attribute(
            "aria-pressed", "false"
        )
        expect(seen.locator("#figure-curves .legend button", has_text="Trials")).to_have_attribute(
            "aria-pressed", "false"
        )
        expect(seen.locator("#differences h2")).to_be_in_viewport()
        assert seen.url == address
    assert visit.troubles == other.troubles == []
    other.context.close()
    visit.context.close()


def test_with_many_methods_the_switch_is_a_list(browser: Browser, tmp_path: Path) -> None:
    runs = study_rows.study({f"m{i}": 10.0 * i for i in range(6)}, TASKS[:2])
    visit = Visit(browser, report(runs, tmp_path / "many.html").as_uri(), viewport=PHONE)
    draw_all(visit.page)
    visit.page.locator("select").select_option("m2")
    expect(visit.page.locator("#figure-differences h3")).to_have_text(re.compile("^Against m2"))
    visit.page.wait_for_url(re.compile(r"Compared-with=m2"))
    assert overflow(visit.page) <= 0
    assert visit.troubles == []
    visit.context.close()


def test_names_may_hold_any_sign(browser: Browser, tmp_path: Path) -> None:
    odd = r"""mine:Agent,kind="a|b, it's \\ {more}*" """.strip()
    tasks = [{"world": "one world", "missingness": f"{odd}{i}"} for i in range(2)]
    runs = study_rows.study({odd: 30.0, "theirs": 20.0, "others": 10.0}, tasks)
    visit = Visit(browser, report(runs, tmp_path / "odd.html").as_uri(), viewport=WIDE)
    draw_all(visit.page)
    visit.page.locator("[data-switch]").get_by_text(odd, exact=True).click()
    figure = visit.page.locator("#figure-differences")
    expect(figure.locator("h3")).to_have_text(re.compile(re.escape(f"Against {odd}")))
    expect(figure.locator(".note")).to_be_hidden()
    assert visit.page.locator("#figure-curves .drawing svg path").count() > 0
    assert visit.troubles == []
    visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_scrolling_sideways(scheme: str, browser: Browser, page_file: Path) -> None:
    visit = Visit(browser, page_file.as_uri(), viewport=PHONE, color_scheme=scheme)
    draw_all(visit.page)
    assert overflow(visit.page) <= 0
    right = visit.page.locator(".drawing svg").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    assert len(right) == 5
    assert max(right) <= PHONE["width"]
    assert visit.troubles == []
    visit.context.close()


def test_the_table_sorts_by_reward(visit: Visit) -> None:
    table = visit.page.locator("#table table")
    table.get_by_role("button", name="Reward per episode").click()
    shown = [
        float(text.split("\n")[0].replace("−", "-")) for text in table.locator("td:nth-child(5)").all_inner_texts()
    ]
    assert shown == sorted(shown)
    assert len(shown) == len(LEVELS) * len(TASKS)


def test_a_study_of_one_method_in_one_task_has_a_page_too(browser: Browser, tmp_path: Path) -> None:
    lonely = study_rows.study({"only": 3.0}, trials=1)
    bare = lonely.with_columns(pl.col("^curve_.*$").list.head(0))
    visit = Visit(browser, report(bare, tmp_path / "one.html").as_uri(), viewport=WIDE)
    draw_all(visit.page)
    assert visit.page.get_by_text("curve_points = 50").count() == 1
    assert visit.page.locator("figure").count() == 1
    assert visit.troubles == []
    visit.context.close()


def test_one_trial_of_several_rates_has_no_intervals_and_no_trouble(browser: Browser, tmp_path: Path) -> None:
    one = study_rows.study({"a": 3.0, "b": 2.0}, TASKS, trials=1)
    visit = Visit(browser, report(one, tmp_path / "one.html").as_uri(), viewport=WIDE)
    draw_all(visit.page)
    assert visit.page.locator("figure h3").first.inner_text() == "No method is clearly best in any of 4 tasks"
    assert visit.troubles == []
    visit.context.close()


def tops(figure: Locator) -> set[str]:
    """Return the last label of every vertical axis in a figure."""
    axes = figure.locator("[aria-label^='Y-axis']")
    return {axis.locator(".role-axis-label text").last.text_content() or "" for axis in axes.all()}


def test_means_far_below_the_others_are_left_out_in_a_close_up_that_the_caption_tells_of(
    runs: pl.DataFrame, browser: Browser, tmp_path: Path
) -> None:
    path = report(study_rows.study({"best": 30.0, "good": 29.0, "lost": -900.0}, TASKS[:2]), tmp_path / "far.html")
    visit = Visit(browser, path.as_uri(), viewport=WIDE)
    draw_all(visit.page)
    rewards, curves = (visit.page.locator(f"#figure-{name}") for name in ("rewards", "curves"))
    for figure in (rewards, curves):
        assert "A close-up leaves out means far below the others" in figure.inner_text()
        assert tops(figure) == {"30.0"}
    rewards.get_by_role("button", name="Close-up of high rewards").click()
    for figure in (rewards, curves):
        expect(figure.get_by_text("−800", exact=True).first).to_be_visible()
        assert tops(figure) == {"0"}
    assert visit.troubles == []
    visit.context.close()
    assert "A close-up" not in report(runs, tmp_path / "near.html").read_text(encoding="utf-8")


def test_a_mean_whose_interval_reaches_the_others_is_not_far_below(tmp_path: Path) -> None:
    far = study_rows.study({"a": 30.0, "b": 29.9, "c": 20.0}, TASKS[:1], trials=20)
    near = study_rows.study({"a": 30.0, "b": 29.9, "c": 24.0}, TASKS[:1], trials=2, spread=3.0)
    assert "A close-up" in report(far, tmp_path / "far.html").read_text(encoding="utf-8")
    assert "A close-up" not in report(near, tmp_path / "near.html").read_text(encoding="utf-8")


def test_a_close_up_of_one_measure_is_not_told_of_another(browser: Browser, tmp_path: Path) -> None:
    rows = study_rows.study({"best": 30.0, "good": 29.0, "lost": -900.0}, TASKS[:2])
    path = report(rows.with_columns(reward_per_step=pl.lit(0.5)), tmp_path / "page.html")
    visit = Visit(browser, path.as_uri(), viewport=WIDE)
    draw_all(visit.page)
    told = visit.page.locator("#figure-rewards").get_by_text("A close-up leaves out")
    expect(told).to_be_visible()
    visit.page.get_by_text("reward per step", exact=True).first.click()
    expect(told).to_be_hidden()
    visit.context.close()


def test_intervals_of_categories_are_whole(browser: Browser, tmp_path: Path) -> None:
    rows = study_rows.study({"a": 30.0, "b": 29.9, "c": 25.0}, [TASKS[3]], trials=3, spread=12.0)
    visit = Visit(browser, report(rows, tmp_path / "page.html").as_uri(), viewport=WIDE)
    draw_all(visit.page)
    _, text = downloaded(visit.page, "rewards", "CSV")
    ends = [float(row[name]) for row in csv.DictReader(io.StringIO(text)) for name in ("low", "high")]
    ticks = visit.page.locator("#figure-rewards [aria-label^='X-axis'] .role-axis-label text").all_text_contents()
    shown = [float(tick.replace("−", "-")) for tick in ticks]
    step = shown[1] - shown[0]
    assert shown[0] - step < min(ends)
    assert max(ends) < shown[-1] + step
    visit.context.close()


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_long_title_of_a_panel_keeps_to_its_panel(size: Any, browser: Browser, tmp_path: Path) -> None:
    tasks = [
        {"world": "mine.worlds:river", "parameters": parameters, "missingness": f"mine.masks:fog,extra=0.{i}"}
        for parameters in ("", "length=8, slip=0.4")
        for i in (2, 6)
    ]
    visit = Visit(browser, report(study_rows.study({"a": 1.0, "b": 2.0}, tasks), tmp_path / "page.html").as_uri(),
                  viewport=size)  # fmt: skip
    draw_all(visit.page)
    for name in ("curves", "rewards"):
        boxes = visit.page.locator(f"#figure-{name} .role-title-text text").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right, box.top, box.bottom])"
        )
        assert boxes
        texts = visit.page.locator(f"#figure-{name} .role-title-text").all_text_contents()
        assert name == "rewards" or not any("…" in text for text in texts)
        width = visit.page.locator(f"#figure-{name} .drawing").evaluate("one => one.getBoundingClientRect().right")
        assert all(right <= width for _, right, _, _ in boxes)
        apart = [
            a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
            for i, a in enumerate(boxes) for b in boxes[:i]
        ]  # fmt: skip
        assert all(apart)
    assert overflow(visit.page) <= 0
    visit.context.close()


def test_a_store_with_runs_of_edited_code_only_has_no_report(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    rows = study_rows.table(study_rows.row("mine:A", 1.0, i, source="mine:A 0123456789ab") for i in range(3))
    store.write(rows.to_dicts())
    with pytest.raises(ValueError, match="holds no finished runs; left out: 3 runs of own code as it was before an"):
        report_store(store, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_worlds_with_other_parameters_are_other_worlds(tmp_path: Path) -> None:
    tasks = [{"parameters": f'{{"length": {n}}}'} for n in (5, 8)]
    text = report(study_rows.study({"a": 1.0, "b": 2.0}, tasks), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 methods in 2 tasks (2 worlds, 1 kind of missingness)" in text


def test_a_notebook_gets_a_chart(runs: pl.DataFrame) -> None:
    assert len(plot(runs).concat) == 2
    assert plot(study_rows.study({"a": 1.0})).datasets.keys() == {"points", "trials"}


# --- the commands -------------------------------------------------------------------------------------------------


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return caller(capsys, monkeypatch)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    run_study(Study.parse(SMALL), Store(tmp_path / "results"), Local(workers=1))
    return tmp_path / "results"


def test_a_store_becomes_a_page_that_tells_how_to_repeat_it(store: Path, call: Call) -> None:
    answer = call("study", "report", store)
    assert (answer.code, answer.err) == (0, "")
    text = (store / "report.html").read_text(encoding="utf-8")
    assert "Study: small study" in text
    assert "lacuna study run small-study.toml --out" in text
    assert len(Store(store).table()) == 18


def test_a_study_written_as_toml_is_the_same_study() -> None:
    study = Study.parse(SMALL.replace("trials = 3", "trials = 3\ngrid = {alpha = [0.1, 1.0]}\nfirst_observed = false"))
    again = Study.parse(as_toml(study.spec.model_dump(exclude_defaults=True)))
    assert again.id == study.id


def test_what_is_missing_is_told(store: Path, call: Call) -> None:
    larger = Study.parse(SMALL.replace("trials = 3", "trials = 4"))
    Store(store).add_study(larger)
    answer = call("study", "report", store, "--study", "small study")
    assert answer.code == 0
    told = "small study lacks 6 of 24 runs: last-observed in corridor, mcar:0.2 (trial 3)"
    assert told in answer.err
    assert told in (store / "report.html").read_text(encoding="utf-8")


def test_only_one_study_of_several_is_reported_if_asked_for(store: Path, call: Call, tmp_path: Path) -> None:
    other = SMALL.replace("small study", "other").replace('"mcar:0.2", "mcar:0.4"', '"mcar:0.6"')
    run_study(Study.parse(other), Store(store), Local(workers=1))
    out = tmp_path / "other.html"
    assert call("study", "report", store, "--study", "other", "--out", out).code == 0
    assert "mcar:0.4" not in out.read_text(encoding="utf-8")
    assert call("study", "report", store, "--out", out).code == 0
    text = out.read_text(encoding="utf-8")
    assert "2 studies" in text
    assert "mcar:0.4" in text


def test_a_damaged_file_is_told_of_and_the_rest_reported(store: Path, call: Call) -> None:
    run_study(Study.parse(SMALL.replace("trials = 3", "trials = 4")), Store(store), Local(workers=1))
    part = max((store / "parts").glob("*.parquet"), key=lambda path: path.stat().st_size)
    part.write_bytes(part.read_bytes()[:-9])
    answer = call("study", "report", store)
    assert answer.code == 1
    assert "a damaged file was set aside as" in answer.err
    assert "small study lacks" in answer.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{store}", "--study", "smal study"], "did you mean 'small study'?"),
        (["{store}", "--out", "report.pdf"], "must end in .html"),
        (["{store}", "--out", "nowhere/report.html"], "no folder nowhere"),
        (["{empty}"], "holds no finished runs"),
        (["nowhere"], "is not a store of results"),
    ],
)
def test_wrong_input_gives_one_sentence_and_leaves_nothing(
    words: list[str], told: str, store: Path, call: Call, tmp_path: Path
) -> None:
    empty = Store(tmp_path / "empty").path
    answer = call("study", "report", *(word.format(store=store, empty=empty) for word in words))
    assert answer.code == 2
    assert is_one_sentence(answer.err)
    assert told in answer.err
    assert not list(tmp_path.rglob("*.html"))


def test_two_stores_are_compared(store: Path, call: Call, tmp_path: Path, browser: Browser) -> None:
    other = tmp_path / "other"
    run_study(Study.parse(SMALL.replace("trials = 3", "trials = 4")), Store(other), Local(workers=1))
    out = tmp_path / "compared.html"
    answer = call("study", "compare", store, other, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "in both: 18 runs, 18 of them equal to the bit"
    assert lines[1] == f"only in {store}: 0 runs"
    assert lines[2] == f"only in {other}: 6 runs (last-observed, mi-synthetic; trial 3)"
    assert answer.out.count("│ equal") == 6
    visit = Visit(browser, out.as_uri(), viewport=PHONE)
    assert visit.page.locator("#differences tbody").count() == 6
    assert overflow(visit.page) <= 0
    assert visit.troubles == []
    visit.context.close()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{store}", "nowhere"], "nowhere is not a store"),
        (["{store}", "{store}", "--out", "x.txt"], "must end in .html"),
        (["{empty}", "{empty}"], "nothing to compare"),
    ],
)
def test_stores_that_cannot_be_compared_give_one_sentence(
    words: list[str], told: str, store: Path, call: Call, tmp_path: Path
) -> None:
    empty = Store(tmp_path / "empty").path
    answer = call("study", "compare", *(word.format(store=store, empty=empty) for word in words))
    assert answer.code == 2
    assert is_one_sentence(answer.err)
    assert told in answer.err


def test_a_page_says_what_its_trials_do_not_show_and_which_of_them_got_stuck() -> None:
    rows = [
        study_rows.row(name, -5000.0 if (name, trial) == ("a", 3) else trial + bonus, trial)
        for name, bonus in (("a", 1.5), ("b", 0.0), ("c", 0.0))
        for trial in range(8)
    ]
    text = page_of(study_rows.table(rows), "A study", About()).html()
    assert "gets stuck in up to 31 % of runs may not do so in any of 8 trials" in text
    assert '<span class="quiet">1 of 8 trials lies far below the others; the median is 4.5</span>' in text
    assert "no clear difference; the same in all 8 trials, so of unknown spread" in text
    assert "no clear difference; 1 of 8 trials lies far below the others; the median is 1.5" in text
