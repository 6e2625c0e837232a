"""The page of the paper in a real browser: drawn, offline, and pleasant with mouse, keyboard, phone and printer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from markupsafe import Markup
from playwright.sync_api import Browser, Locator, Page, expect

import paper_runs
from lacuna.agent.methods import method_named
from lacuna.report.chart_files import FORMATS, write_files
from lacuna.report.html_tables import table
from lacuna.report.page import Figure, Section, as_json
from lacuna.report.page import Page as Shell
from lacuna_paper import page as paper_page
from lacuna_paper.charts import BEYOND, FIGURES
from lacuna_paper.claims import CLAIMS
from lacuna_paper.comparison import KNOWING, OURS, REACHABLE, Comparison
from lacuna_paper.diagrams import recorded
from lacuna_paper.evidence import ALL_METHODS, MI_SYNTHETIC, REWARD, SELECTIONS
from lacuna_paper.horizons import BEST, PLANNED, WITHOUT, Cell, judge_cells
from lacuna_paper.page import headline
from lacuna_paper.points import Wanted, by_rate
from lacuna_paper.verdicts import Ask, Basis, Finding, FullStudy, Region, Sample, decide
from visits import PHONE, WIDE, Visit, draw_all, overflow

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "reference"))
generate: Any = import_module("generate")
WAYS = [("episodic", "as-published"), ("episodic", "held-out"), ("continuing", "as-published")]
CHANGES = (((2000, 2.0), (10_000, 3.0)), ((2000, -2.0), (10_000, -1.0)), ((2000, -2.0), (10_000, 0.0)))
VERDICTS = ("supported", "not supported", "undecided")
NASTY = "</script><script>document.title = 'taken over'</script>"
ABOUT = {
    "command": f"lacuna paper --out {NASTY}", "lacuna": "0.1.0", "machine": "a machine", "seconds": 12.0,
    "runs_made_now": 7, "tuning_trials": [0, 1, 2],
    "studies": [{"name": "mcar", "runs": 30}, {"name": "stay", "runs": 4}],
}  # fmt: skip


def findings() -> list[Finding]:
    """Three verdicts, over and over."""
    samples = (np.array([1.0, 2.0, 3.0]) * 0.1 + 5, np.array([-1.0, 0.0, 2.0]), np.array([-5.0, -5.1, -5.2]))
    return [
        decide(
            claim.id, Basis(*way, 3), [Ask("one <b>minus</b> other", Sample(samples[i % 3]), Region(0), "reward")] * 2
        )
        for way in WAYS
        for i, claim in enumerate(CLAIMS)
    ]


def comparisons() -> dict[str, list[Comparison]]:
    """One problem where ours is ahead, one where it is level, and one where it is behind."""
    rng = np.random.default_rng(3)
    values = {shown: base + rng.normal(size=4) for shown, base in ((MI_SYNTHETIC, 60.0), (KNOWING[REACHABLE], 90.0))}
    found = [
        Comparison.of("lake", name, Basis("episodic", "held-out", 4), values | {OURS: 60 + shift + rng.normal(size=4)})
        for name, shift in (("mcar:0.8", 20.0), ("mcar:0.2", 0.0), ("bursts:0.1,0.3", -20.0))
    ]
    return {way: [one for one in found if one is not None] for way in ("as-published", "held-out", "untuned")}


def cells() -> list[Cell]:
    """Planning is ahead in one problem, behind in another; in a third it is behind at first, and later level."""
    rng = np.random.default_rng(9)
    found = []
    for i, (world, name) in enumerate((("lake", "mcar:0.2"), ("lake", "mcar:0.6"), ("taxi", "mcar:0.2"))):
        per_step = {
            method: {h: base + shift + rng.normal(0, 0.1, size=6) for h, shift in ((200, 0.0), *CHANGES[i])}
            for method, base in ((PLANNED, 3.0), (WITHOUT, 3.0), (REACHABLE, 8.0), (BEST, 9.0))
        }
        for h in (200, 2000, 10_000):
            for method in (WITHOUT, REACHABLE, BEST):
                per_step[method][h] = per_step[method][200]
        per_episode = {method: 10 * at[10_000] for method, at in per_step.items()}
        found.append(Cell(world, name, 10_000, tuple(range(6)), per_step, per_episode, dict.fromkeys(per_step, 0)))
    return found


def write_some_files(spec: dict[str, Any], folder: Path, name: str) -> dict[str, Path]:
    """Real files for two figures, which is slow; for the others the names only."""
    if name in {"worlds", "mcar-theta"}:
        return write_files(spec, folder, name)
    paths = {kind: folder / f"{name}.{kind}" for kind in FORMATS}
    folder.mkdir(exist_ok=True)
    for path in paths.values():
        path.touch()
    return paths


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    (folder / "theory").mkdir()
    (folder / "theory" / "index.html").write_text("theory")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper_page, "write_files", write_some_files)
        paper_page.write_page(folder, paper_runs.table(), findings(), comparisons(), ABOUT, paper_runs.DRAWS, cells())
    return folder


@pytest.fixture(scope="module")
def opened(browser: Browser, folder: Path) -> Iterator[Visit]:
    visit = Visit(browser, (folder / "index.html").as_uri(), viewport=WIDE)
    draw_all(visit.page)
    yield visit
    visit.context.close()


@pytest.fixture
def visit(opened: Visit) -> Iterator[Visit]:
    """The page, drawn once for all tests: each leaves it as it was, and none may cause trouble."""
    yield opened
    opened.page.emulate_media(color_scheme="light", media="screen")
    opened.page.set_viewport_size(WIDE)
    draw_all(opened.page)
    assert opened.troubles == []


def lines(page: Page, figure: str) -> int:
    """How many means are drawn; the lines of trials are thinner."""
    return page.locator(f"#figure-{figure} .mark-line path[stroke-width='2']").count()


def colours(page: Page, figure: str) -> set[str]:
    strokes = page.locator(f"#figure-{figure} .mark-line path").evaluate_all(
        "all => all.map(e => e.getAttribute('stroke'))"
    )
    return set(strokes)


def check_navigation(page: Page, width: int) -> None:
    """Every link lies on the screen, nothing has to be scrolled for it, and what it leads to stands below it."""
    for link in page.locator("nav a").all():
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert page.locator("nav ul").evaluate("list => list.scrollWidth <= list.clientWidth")
    for link in page.locator("nav a").all():
        link.click()
        title = page.locator(f"{link.get_attribute('href')} h2").first
        expect(title).to_be_in_viewport()
        top = title.evaluate("title => title.getBoundingClientRect().top")
        assert top >= page.locator("nav").evaluate("nav => nav.getBoundingClientRect().bottom")


def claims(page: Page) -> Locator:
    return page.locator("#claims .cards > .scroll > table > tbody")


def test_nothing_goes_wrong_and_no_request_leaves_the_file(visit: Visit, folder: Path) -> None:
    visit.page.mouse.move(640, 450)
    visit.page.mouse.wheel(0, 20_000)
    visit.page.wait_for_timeout(300)
    assert visit.troubles == []
    outside = [url for url in visit.requests if not url.startswith(("data:", "blob:"))]
    assert outside == [(folder / "index.html").as_uri()]


def test_a_page_may_not_fetch_anything(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "plain.html"
    path.write_text(Shell("Plain", "", []).html())
    visit = Visit(browser, path.as_uri())
    refused = visit.page.evaluate("fetch('https://example.org').then(() => false, () => true)")
    assert refused is True
    assert any("Content Security Policy" in trouble for trouble in visit.troubles)
    visit.context.close()


@pytest.mark.parametrize("figure", ["worlds", *(figure.id for figure in (*FIGURES, BEYOND)), "horizons"])
def test_every_chart_is_drawn(figure: str, visit: Visit) -> None:
    marks = "#figure-worlds .mark-rect path" if figure == "worlds" else f"#figure-{figure} .mark-line path"
    shapes = visit.page.locator(marks).evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
    least = 9 if figure == "horizons" else 12
    assert len(shapes) >= least
    assert sum(width > 10 for width in shapes) >= least
    title = visit.page.locator(f"#figure-{figure} .role-title-text text").first
    assert title.is_visible()


def test_the_legend_switches_a_method_off_in_all_charts(visit: Visit) -> None:
    page = visit.page
    before = {figure: lines(page, figure) for figure in ("mcar-theta", "mfog", "stay")}
    button = page.locator("#figure-mcar-theta .legend button", has_text="Random action")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#figure-mfog .legend button", has_text="Random action")).to_have_attribute(
        "aria-pressed", "false"
    )
    assert lines(page, "mcar-theta") == before["mcar-theta"] - 3
    assert lines(page, "mfog") < before["mfog"]
    assert lines(page, "stay") == before["stay"]
    button.press("Enter")
    assert lines(page, "mcar-theta") == before["mcar-theta"]


def test_the_close_up_and_the_intervals(visit: Visit) -> None:
    page = visit.page
    figure = page.locator("#figure-mcar-theta")
    close_up, intervals = (
        figure.get_by_role("button", name=name) for name in ("Close-up of high rewards", "Intervals")
    )
    assert "−100" in figure.inner_text()
    close_up.click()
    assert "−100" not in figure.inner_text()
    bands = figure.locator(".mark-area path").first
    # Three trials are drawn themselves, and intervals on request.
    assert bands.get_attribute("fill-opacity") == "0"
    intervals.click()
    assert bands.get_attribute("fill-opacity") == "0.12"
    close_up.click()
    intervals.click()
    assert "−100" in figure.inner_text()
    assert bands.get_attribute("fill-opacity") == "0"


def forget_choices(page: Page) -> None:
    page.evaluate("history.replaceState(null, '', location.pathname)")
    page.reload()
    draw_all(page)


def test_each_chart_has_its_own_way_until_a_reader_chooses(visit: Visit) -> None:
    page = visit.page
    forget_choices(page)
    pressed = "all => all.map(e => e.getAttribute('aria-pressed'))"
    found = page.locator(".legend button[data-name=intervals]")
    # Horizons have no lines for trials, so intervals are on there.
    usual = {False: page.locator("#figures .legend button[data-name=intervals]"),
             True: page.locator("#horizons .legend button[data-name=intervals]")}  # fmt: skip
    for on, buttons in usual.items():
        assert set(buttons.evaluate_all(pressed)) == {str(on).lower()}
    first = page.locator("#figure-mcar-theta").get_by_role("button", name="Intervals")
    first.click()
    assert set(found.evaluate_all(pressed)) == {"true"}
    assert "with=intervals" in page.url
    first.click()
    assert set(found.evaluate_all(pressed)) == {"false"}
    forget_choices(page)
    assert set(usual[True].evaluate_all(pressed)) == {"true"}


def test_the_pointer_shows_the_values_of_the_table(visit: Visit) -> None:
    page = visit.page
    figure = page.locator("#figure-mcar-theta")
    figure.locator(".drawing").evaluate("drawing => drawing.scrollIntoView({block: 'center', behavior: 'instant'})")
    plot = figure.locator(".drawing").bounding_box()
    assert plot is not None
    for shift in (0, 2):
        page.mouse.move(plot["x"] + 180 + shift, plot["y"] + 100)
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_be_visible()
    told = dict(re.findall(r"(.+)\t\s*(.+)", tooltip.inner_text()))
    means = [float(text.split()[0].replace("−", "-")) for name, text in told.items() if name != "θ"]
    assert means == sorted(means, reverse=True)
    assert next(iter(told)) == "θ"
    swatches = tooltip.locator("td.key svg")
    assert swatches.count() == len(ALL_METHODS) == len(means)
    first = page.locator("#figure-mcar-theta .legend button", has_text=list(told)[1]).first.locator("svg path")
    drawn = "all => all.map(e => e.getAttribute('d') + (e.getAttribute('stroke') ?? e.getAttribute('fill')))"
    assert swatches.first.locator("path").evaluate_all(drawn) == first.evaluate_all(drawn)
    point = by_rate(paper_runs.evidence(paper_runs.table()), Wanted.plain(MI_SYNTHETIC)).filter(
        measure=REWARD, x=float(told["θ"].replace("−", "-"))
    )
    mean = float(told["MI K=10, synthetic"].split()[0].replace("−", "-"))
    assert mean == pytest.approx(point["mean"].item(), rel=1e-3)


def tap(page: Page, figure: str) -> dict[str, float]:
    """Tap on the first panel of a chart, once the page has come to rest; say where."""
    drawing = page.locator(f"#figure-{figure} .drawing")
    drawing.evaluate("drawing => drawing.scrollIntoView({block: 'start', behavior: 'instant'})")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box = drawing.bounding_box()
    assert box is not None
    finger = {"x": box["x"] + 100, "y": box["y"] + 100}
    page.touchscreen.tap(**finger)
    return finger


@pytest.mark.parametrize(("figure", "told"), [("mcar-theta", "MI K=10, synthetic"), ("worlds", "row ")])
def test_a_tap_shows_values_until_the_next_tap_or_scroll(
    figure: str, told: str, browser: Browser, folder: Path
) -> None:
    address = f"{(folder / 'index.html').as_uri()}#figure-{figure}"
    visit = Visit(browser, address, viewport=PHONE, has_touch=True, is_mobile=True, reduced_motion="reduce")
    page = visit.page
    draw_all(page)
    tooltip = page.locator("#vg-tooltip-element")
    finger = tap(page, figure)
    expect(tooltip).to_contain_text(told)
    expect(tooltip).to_be_visible()
    shown = tooltip.bounding_box()
    assert shown is not None
    assert shown["x"] >= 0
    assert shown["x"] + shown["width"] <= PHONE["width"]
    assert not shown["y"] <= finger["y"] <= shown["y"] + shown["height"]
    page.touchscreen.tap(2, finger["y"])
    expect(tooltip).to_be_hidden()
    tap(page, figure)
    expect(tooltip).to_be_visible()
    page.evaluate("scrollBy(0, 40)")
    expect(tooltip).to_be_hidden()
    assert visit.troubles == []
    visit.context.close()


@pytest.mark.parametrize("figure", ["worlds", *(figure.id for figure in (*FIGURES, BEYOND))])
def test_a_chart_that_is_heard_has_a_name_and_says_what_is_to_be_seen(figure: str, visit: Visit) -> None:
    place = visit.page.locator(f"#figure-{figure}")
    picture = place.locator("[role=img]")
    expect(picture).to_have_accessible_name(place.locator("h3").inner_text())
    expect(picture).to_have_accessible_description(
        re.compile(re.escape(place.locator("figcaption span").first.inner_text()))
    )
    if figure != "worlds":
        expect(picture).to_have_accessible_description(re.compile(r"Total reward.*: highest \S.*, lowest \S.*\."))


def test_what_is_heard_of_a_chart_is_that_of_the_runs_shown(visit: Visit) -> None:
    """And its thousands of marks are not read out."""
    page = visit.page
    picture = page.locator("#figure-mcar-theta [role=img]")
    for selection in SELECTIONS:
        page.get_by_text(selection.replace("-", " "), exact=True).first.click()
        points = by_rate(paper_runs.evidence(paper_runs.table(), selection=selection), Wanted.plain(*ALL_METHODS))
        best = points.filter(measure=REWARD, x=0.8).sort("mean").row(-1, named=True)
        words = f"Total reward, at θ = 0.8: highest {best['series']} {best['mean']:.4g}".replace("-", "−")
        expect(picture).to_have_accessible_description(re.compile(re.escape(words)))
    page.get_by_text("as published", exact=True).first.click()
    nodes = visit.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {node["role"]["value"] for node in nodes if not node["ignored"]}
    assert "image" in roles
    assert not any(role.startswith("graphics") for role in roles)


def test_every_axis_has_a_scale(visit: Visit) -> None:
    count = "all => all.map(e => [...e.querySelectorAll('text')].filter(t => t.textContent).length).filter(n => n > 0)"
    labels = visit.page.locator(".drawing .role-axis-label").evaluate_all(count)
    assert len(labels) > 100
    assert min(labels) >= 3


def test_the_claims_sort_by_verdict_and_back(visit: Visit) -> None:
    page = visit.page
    names = claims(page).evaluate_all("all => all.map(e => e.id)")
    assert names == [f"claim-{claim.id}" for claim in CLAIMS]
    head = page.locator("#claims .cards thead").first.locator("th").nth(2)
    head.locator("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    verdicts = claims(page).locator("tr:first-child td:nth-child(3) .judged > .verdict").all_inner_texts()
    assert verdicts == sorted(verdicts, key=["✓ supported", "✗ not supported", "? undecided"].index)
    head.locator("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert claims(page).locator("tr:first-child td:nth-child(3) .judged").first.inner_text()[:11] == "? undecided"


def test_numbers_sort_as_numbers(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "numbers.html"
    body = table(["name", "number"], [["a", 9.0], ["b", 10.0], ["c", -1.5]])
    path.write_text(Shell("Numbers", "", [Section("one", "One", body)]).html())
    visit = Visit(browser, path.as_uri())
    visit.page.get_by_role("button", name="number").click()
    assert visit.page.locator("tbody td:first-child").all_inner_texts() == ["c", "a", "b"]
    assert visit.troubles == []
    visit.context.close()


def test_a_claim_opens_to_its_definition_and_leads_to_its_chart(visit: Visit) -> None:
    page, claim = visit.page, CLAIMS[0]
    row = page.locator(f"#claim-{claim.id}")
    expect(row.get_by_text(claim.compared)).to_be_hidden()
    row.locator(".opener").press("Enter")
    expect(row.get_by_text(claim.compared)).to_be_visible()
    expect(row.get_by_text(claim.threshold)).to_be_visible()
    row.locator("summary").first.click()
    expect(row.get_by_text("one <b>minus</b> other").first).to_be_visible()
    row.get_by_role("link", name="figure").click()
    expect(page.locator(f"#figure-{claim.figure} h3")).to_be_in_viewport()


def test_the_arrow_of_an_open_claim_is_whole(visit: Visit) -> None:
    page = visit.page
    opener = page.locator("#claims .cards .opener").first
    opener.scroll_into_view_if_needed()
    if opener.get_attribute("aria-expanded") == "false":
        opener.click()
    page.mouse.move(0, 0)
    box = opener.bounding_box()
    assert box is not None
    around = {"x": box["x"] - 20, "y": box["y"] - 10, "width": 60.0, "height": 40.0}
    whole = "overflow => document.querySelector('#claims .cards > .scroll').style.overflow = overflow"
    page.evaluate(whole, "visible")
    free = page.screenshot(clip=around, animations="disabled")  # type: ignore[arg-type]
    page.evaluate(whole, "")
    assert page.screenshot(clip=around, animations="disabled") == free  # type: ignore[arg-type]
    opener.click()
    assert page.screenshot(clip=around, animations="disabled") != free  # type: ignore[arg-type]


def test_every_claim_leads_to_a_chart_that_is_there(visit: Visit) -> None:
    for claim in CLAIMS:
        assert visit.page.locator(f"#claim-{claim.id} a[href='#figure-{claim.figure}']").count() == 2
        assert visit.page.locator(f"figure#figure-{claim.figure}").count() == 1


def test_a_link_to_a_claim_opens_it(browser: Browser, folder: Path) -> None:
    visit = Visit(browser, (folder / "index.html").as_uri() + "#claim-stay-no-effect")
    row = visit.page.locator("#claim-stay-no-effect")
    expect(row.locator(".opener")).to_have_attribute("aria-expanded", "true")
    expect(row).to_be_in_viewport()
    visit.context.close()


def test_the_switches_change_charts_and_numbers(visit: Visit) -> None:
    page = visit.page
    first = page.locator("#result .numbers:visible").inner_text()
    path = "() => document.querySelector('#figure-mcar-theta .mark-line path')?.getAttribute('d')"
    before = page.evaluate(path)
    page.get_by_text("held out", exact=True).first.click()
    page.wait_for_function(f"(before) => ({path})() !== before", arg=before)
    assert page.locator("#result .numbers:visible").inner_text() != first
    page.get_by_text("continuing", exact=True).first.click()
    note = page.locator("#figure-mcolor .note")
    expect(note).to_have_text(re.compile(r"Not run with this choice; shown: episodic, held out\."))
    page.get_by_text("episodic", exact=True).first.click()
    page.get_by_text("as published", exact=True).first.click()
    expect(note).to_be_hidden()
    assert page.locator("#result .numbers:visible").inner_text() == first


def test_dark_by_the_system_and_by_the_switch(visit: Visit) -> None:
    page = visit.page
    background = "getComputedStyle(document.body).backgroundColor"
    light, light_lines = page.evaluate(background), colours(page, "mcar-theta")
    page.emulate_media(color_scheme="dark")
    blue = page.locator("#figure-mcar-theta .mark-line path[stroke='#0072b2']")
    expect(blue).to_have_count(0)
    assert page.evaluate(background) != light
    assert not colours(page, "mcar-theta") & light_lines
    page.locator("#theme").click()
    expect(blue).not_to_have_count(0)
    assert page.evaluate(background) == light
    page.evaluate("delete document.documentElement.dataset.theme")


def test_the_theme_that_was_chosen_survives_a_reload(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "plain.html"
    path.write_text(Shell("Plain", "", []).html())
    visit = Visit(browser, path.as_uri(), color_scheme="light")
    theme = "[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
    for name in ("dark", "light"):
        visit.page.locator("#theme").click()
        chosen = visit.page.evaluate(theme)
        assert chosen[0] == name
        visit.page.reload()
        assert visit.page.evaluate(theme) == chosen
    assert visit.troubles == []
    visit.context.close()


def test_the_theme_can_be_chosen_where_nothing_may_be_kept(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "plain.html"
    path.write_text(Shell("Plain", "", []).html())
    visit = Visit(browser, "about:blank", color_scheme="light")
    visit.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } })"
    )
    visit.page.goto(path.as_uri())
    visit.page.locator("#theme").click()
    assert visit.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert visit.troubles == []
    visit.context.close()


@pytest.mark.parametrize("width", [320, 390])
def test_the_navigation_of_a_phone_is_whole_and_hides_no_title(width: int, visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": 844})
    draw_all(page)
    page.emulate_media(reduced_motion="reduce")
    check_navigation(page, width)
    page.emulate_media(reduced_motion="null")


@pytest.mark.parametrize("width", [390, 700, 1024])
def test_no_width_overflows(width: int, visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": 844})
    draw_all(page)
    opener = page.locator("#claims .cards .opener").first
    opener.click()
    assert overflow(page) <= 0
    opener.click()
    right = page.locator(".drawing svg").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    assert len(right) == 6 + len(FIGURES)
    assert max(right) <= width


def test_panels_stand_below_each_other_on_a_phone(visit: Visit) -> None:
    drawing = visit.page.locator("#figure-mcar-time .drawing")
    wide = drawing.evaluate("drawing => drawing.clientHeight")
    visit.page.set_viewport_size({"width": 390, "height": 844})
    draw_all(visit.page)
    assert drawing.evaluate("drawing => drawing.clientHeight") > 2 * wide


def test_the_keyboard_reaches_everything(visit: Visit) -> None:
    page = visit.page
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0); document.querySelector('.skip').focus()")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("#claims .cards .opener").first.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    unreachable = page.locator("[onclick], [role=button]:not(button)").count()
    assert unreachable == 0


def test_the_page_prints(visit: Visit, tmp_path: Path) -> None:
    pdf = visit.page.pdf(path=tmp_path / "paper.pdf", format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 100_000
    visit.page.emulate_media(media="print")
    expect(visit.page.locator("nav")).to_be_hidden()
    expect(visit.page.locator("#figure-mcar-theta svg").last).to_be_visible()


def test_text_from_elsewhere_stays_text(visit: Visit) -> None:
    assert visit.page.title() == "The paper, reproduced"
    assert visit.page.locator("#run pre").inner_text() == ABOUT["command"]


def test_the_page_cites_the_paper_with_its_year_and_where_to_read_it(folder: Path) -> None:
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert '(Chasalow, Wu and Murphy, 2025, <a href="https://arxiv.org/abs/2510.10709">arXiv:2510.10709</a>)' in html


def test_what_lies_beside_the_page_is_linked_and_there(visit: Visit, folder: Path) -> None:
    links = visit.page.locator("a[href]").evaluate_all("all => all.map(e => e.getAttribute('href'))")
    beside = {link for link in links if not link.startswith("#")}
    assert {"claims.json", "horizons.json", "results.parquet", "theory/index.html"} <= beside
    files = {link for link in beside if link.startswith("figures/") and link != "figures/"}
    assert len(files) >= 3 * (1 + len(FIGURES))
    assert all((folder / link).exists() for link in files)
    assert (folder / "figures" / "mcar-theta.svg").stat().st_size > 10_000


def test_the_page_says_where_ours_is_ahead_and_where_behind(visit: Visit) -> None:
    section = visit.page.locator("#beyond")
    short = visit.page.locator("#result p:visible", has_text="ours without planning").inner_text()
    assert "clearly ahead of the best of the paper's tuned methods in 1 of 3 problems, clearly behind in 1" in short
    assert "most ahead under mcar:0.8" in short
    told = section.locator("p:visible", has_text="Of 3 comparisons").all_inner_texts()
    assert len(told) == 2
    assert all("clearly ahead in 1 and clearly behind in 1: lake bursts:0.1,0.3." in text for text in told)
    tuned = section.locator("table:visible").first
    heads = tuned.locator("thead th").all_inner_texts()
    assert heads[4] == "Share of the gap to QMDP, true model, rewards seen"
    assert heads[5:] == [method_named(name).title for name in KNOWING]
    first = tuned.locator("tbody tr").first.locator("td").all_inner_texts()
    one = comparisons()["as-published"][0]
    assert one.share is not None
    assert first[0] == "mcar:0.8"
    assert first[1].startswith(f"{one.ahead.estimate:.2f}\n")
    assert first[3] == f"{one.theirs.estimate:.2f}\nMI K=10, synthetic"
    assert first[4].startswith(f"{100 * one.share.estimate:.0f} %\n")
    visit.page.locator("input[value=continuing]").check(force=True)
    assert section.get_by_text("Ours was run in the episodic reading only").count() == 1
    visit.page.locator("input[value=episodic]").check(force=True)


def test_short_horizons_are_told_as_they_are(visit: Visit) -> None:
    section = visit.page.locator("#horizons")
    assert section.locator("h2").inner_text() == "Short horizons"
    assert visit.page.locator("nav a[href='#horizons']").inner_text() == "Horizons"
    assert section.locator("figure h3").inner_text() == (
        "Planning after 2,000 steps is clearly ahead in 1 of 3 problems, clearly behind in 2; "
        "after 10,000 steps is clearly ahead in 1 of 3 problems, clearly behind in 1"
    )
    words = section.locator("p").first.inner_text()
    assert "6 trials of 10,000 steps in each of 3 problems" in words
    assert "Behind: lake mcar:0.6 after 2,000, lake mcar:0.6 after 10,000, taxi mcar:0.2 after 2,000." in words
    assert "--full" not in words
    rows = section.locator("tbody tr").all()
    assert len(rows) == 3
    first = rows[0].locator("td").all_inner_texts()
    ahead = judge_cells(cells())["lake", "mcar:0.2", 2000].ahead
    assert first[:2] == ["lake", "mcar:0.2"]
    assert first[2].startswith(f"{ahead.estimate:.2f}\n{ahead.low:.2f} to {ahead.high:.2f}\n")
    assert first[2].endswith("✓ clearly ahead")
    assert rows[2].locator("td").all_inner_texts()[2].endswith("✗ clearly behind")
    assert rows[2].locator("td").all_inner_texts()[3].endswith("? level")
    ticks = visit.page.locator("#figure-horizons .role-axis-label text").all_text_contents()
    assert {"200", "1k", "10k"} <= set(ticks)


def test_the_headline_is_computed(visit: Visit) -> None:
    numbers = visit.page.locator("#result .numbers:visible dd").all_inner_texts()
    best = by_rate(paper_runs.evidence(paper_runs.table()), Wanted.plain(MI_SYNTHETIC)).filter(measure=REWARD, x=0.4)
    assert numbers[0] == f"{best['mean'].item():.1f}"
    bars = visit.page.locator("#result .split:visible > div")
    assert bars.first.inner_text().split() == ["✓", "8", "✗", "8", "?", "8"]
    full = FullStudy.read()
    for i, way in ((1, WAYS[0]), (2, WAYS[1])):
        counts = Counter[str | None](full.of(claim.id, way) for claim in CLAIMS)
        words = ", ".join(f"{counts[word]} {word}" for word in VERDICTS)
        assert bars.nth(i).get_attribute("aria-label") == words
    widths = bars.first.locator("span").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
    assert max(widths) - min(widths) < 2
    words = visit.page.locator("#result .short:visible").inner_text()
    assert f"earns {numbers[0]} per episode" in words
    assert words.endswith("Of the paper's 24 claims 8 hold, 8 do not, 8 stay undecided on 3 trials.")


def test_the_verdict_of_the_full_study_stands_beside_each_with_a_flag_where_it_differs(visit: Visit) -> None:
    full, told = FullStudy.read(), {(one.claim, one.way): one.verdict for one in findings()}
    flags = 0
    for claim in CLAIMS:
        cells = visit.page.locator(f"#claim-{claim.id} > tr:first-child > td")
        for i, way in enumerate(WAYS):
            cell = cells.nth(2 + i)
            words = full.of(claim.id, way)
            assert words is not None
            assert cell.locator(".judged .quiet .verdict").inner_text()[2:] == words
            differs = words != told[claim.id, way]
            assert cell.locator(".differs").count() == differs
            flags += differs
    assert 0 < flags < len(told)
    here = sum(full.of(claim.id, WAYS[0]) != told[claim.id, WAYS[0]] for claim in CLAIMS)
    assert f"{here} of 24 verdicts of this run differ" in visit.page.locator("#result").inner_text()


def test_every_claim_has_a_picture_of_its_effect(visit: Visit) -> None:
    for claim in CLAIMS[:3]:
        pictures = visit.page.locator(f"#claim-{claim.id} > tr:first-child .forest")
        assert pictures.count() == len(WAYS)
        expect(pictures.first).to_have_accessible_name(re.compile(r"\] reward, wanted above 0: "))
        place = "e => e.getBoundingClientRect()"
        dot, region = (pictures.first.locator(part).evaluate(place) for part in ("circle", ".wanted"))
        inside = region["left"] < dot["left"] and dot["right"] <= region["right"] + 1
        (finding,) = (one for one in findings() if (one.claim, one.way) == (claim.id, WAYS[0]))
        assert finding.effect is not None
        assert inside == (finding.effect > 0)


def test_means_below_the_axis_are_arrows_with_the_lowest_value(visit: Visit) -> None:
    points = by_rate(paper_runs.evidence(paper_runs.table()), Wanted.plain(*ALL_METHODS)).filter(measure=REWARD)
    below = points.filter(pl.col("mean") < -100).group_by("series").agg(pl.col("mean").min())
    labels = visit.page.locator("#figure-mcar-theta .mark-text.role-mark text[stroke-width]").all_text_contents()
    wanted = {f"{name}  {mean:,.0f}".replace("-", "−") for name, mean in below.iter_rows()}
    assert set(labels) == wanted
    assert len(labels) == below.height > 0


@pytest.mark.parametrize("figure", ["mcar-time", "stay"])
def test_curves_have_markers_that_tell_methods_apart(figure: str, visit: Visit) -> None:
    place = visit.page.locator(f"#figure-{figure}")
    shapes = "all => all.map(e => [e.getAttribute('d').length, e.getAttribute('fill')].join(' '))"
    found = Counter(place.locator(".mark-symbol.role-mark path").evaluate_all(shapes))
    methods = place.locator(".legend button.series").count()
    assert len(found) >= methods / 2  # dashed and solid lines share colour and marker
    assert sum(found.values()) >= 3 * methods * 9 / 2


def test_the_pathways_are_drawn(visit: Visit) -> None:
    figure = visit.page.locator("#figure-pathways")
    assert figure.locator(".mark-line path").count() == 5
    assert figure.locator("h3").inner_text().startswith("5 pathways split into up to 4 guesses")
    nodes = sum(len({tuple(guess) for guess in state["guesses"]}) for state in recorded()["states"])
    assert figure.locator(".mark-symbol.role-mark path[aria-label*='pathways']").count() == nodes
    assert figure.locator(".download", has_text="CSV").count() == 1


def test_every_chart_has_its_values_as_csv(visit: Visit) -> None:
    for figure in visit.page.locator("figure.chart").all():
        assert figure.locator(".download", has_text=re.compile("^CSV$")).count() == 1


def test_what_a_longer_command_would_add_is_told(visit: Visit) -> None:
    assert visit.page.get_by_text("More can be known").count() == 0
    one = headline({}, [], {"form": "reduced", "selections": ["as-published"]}, paper_runs.table())
    assert "<code>--full</code> runs all of it" in one
    assert "<code>--honest</code> adds 160 fresh trials in 8 draws" in one
    other = headline({}, [], {"form": "full", "selections": ["as-published"]}, paper_runs.table())
    assert "--full" not in other
    assert "--honest" in other


def test_a_frame_does_the_work_of_a_worker_in_the_documentation_opened_as_files(
    browser: Browser, tmp_path: Path
) -> None:
    script = ROOT / "docs" / "scripts" / "iframe-worker.js"
    (tmp_path / "worker.js").write_text("onmessage = ({ data }) => { data.push('seen'); postMessage(data); };")
    (tmp_path / "index.html").write_text(
        f"""<body><script src="{script.as_uri()}"></script><script>
        const sent = ["one"], answers = [];
        const worker = new Worker("worker.js");
        worker.onmessage = ({{ data }}) => answers.push(data);
        worker.postMessage(sent);
        worker.postMessage(["two"]);
        </script></body>"""
    )
    visit = Visit(browser, (tmp_path / "index.html").as_uri())
    visit.page.wait_for_function("answers.length === 2")
    assert visit.page.evaluate("[answers, sent]") == [[["one", "seen"], ["two", "seen"]], ["one"]]
    visit.page.evaluate("worker.terminate()")
    assert visit.page.locator("iframe").count() == 0
    assert visit.troubles == []
    visit.context.close()


def test_the_documentation_takes_no_script_from_elsewhere() -> None:
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    assert "offline" in project["plugins"]
    assert project["extra"]["polyfills"] == ["scripts/iframe-worker.js"]
    assert project["theme"]["font"] is False


def test_search_finds_in_the_documentation_opened_as_files(browser: Browser, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    for name, text in generate.pages().items():
        (tmp_path / "docs" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=tmp_path, check=True)
    visit = Visit(browser, (tmp_path / "out" / "docs" / "index.html").as_uri())
    visit.page.locator(".md-search__button").click()
    visit.page.locator("input[placeholder=Search]").fill("fractional")
    expect(visit.page.get_by_text("The fractional Q update").first).to_be_visible()
    assert [url for url in visit.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert visit.troubles == []
    visit.context.close()


def test_the_page_is_small(folder: Path) -> None:
    assert (folder / "index.html").stat().st_size < 4_000_000


def test_json_cannot_end_its_element() -> None:
    assert "<" not in as_json({"a": NASTY, "b": "<!--"})


def test_a_figure_of_another_page_needs_no_switches(browser: Browser, tmp_path: Path) -> None:
    encoding = {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "x", "type": "quantitative"}}
    spec = {"mark": "line", "data": {"values": [{"x": 1}, {"x": 2}]}, "encoding": encoding}
    figure = Figure("dots", "Dots & more", Markup("Two <em>dots</em>."), {(): spec})
    path = tmp_path / "dots.html"
    path.write_text(Shell("Dots", "A line.", [Section("one", "One", figure.html())]).html())
    visit = Visit(browser, path.as_uri())
    draw_all(visit.page)
    assert lines(visit.page, "dots") == 1
    expect(visit.page.locator("#figure-dots .note")).to_be_hidden()
    assert visit.troubles == []
    visit.context.close()
