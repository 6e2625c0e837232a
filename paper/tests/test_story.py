"""The story is what its command makes, byte for byte, has the numbers of the results, and works in a browser."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from lacuna.cli.main import app
from lacuna.report.verifying import check_page, recordings_in
from lacuna_paper.story.results import SERIES, extract, results
from lacuna_paper.story.scenes import RATES
from visits import PHONE, WIDE, Visit, overflow

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explained.html"

sys.path.insert(0, str(ROOT / "reference"))
generate: Any = import_module("generate")


def test_the_page_is_what_the_command_makes_and_is_small() -> None:
    done = CliRunner().invoke(app, ["explain", "--out", "explained.html"])
    assert done.exit_code == 0, done.output
    assert Path("explained.html").read_bytes() == PAGE.read_bytes(), "run: lacuna explain --out docs/explained.html"
    assert PAGE.stat().st_size < 600_000


def test_every_run_of_the_story_replays_bit_for_bit() -> None:
    assert len(recordings_in(PAGE)) == 6 + len(RATES)
    assert check_page(PAGE).endswith("equal to the bit when run again")


def test_the_chart_has_the_numbers_of_the_results() -> None:
    horizons = json.loads((ROOT / "docs" / "results" / "horizons.json").read_text())
    assert results() == extract(horizons)
    assert (ROOT / "paper" / "src" / "lacuna_paper" / "story" / "results.json").read_text() == generate.story_results()
    assert set(RATES) <= set(results()["theta"])
    cell = next(cell for cell in horizons["cells"] if (cell["world"], cell["missingness"]) == ("lake", "mcar:0.6"))
    at = results()["theta"].index(0.6)
    assert results()["mean"]["mi-planned"][at] == cell["reward_per_episode"]["mi-planned"]["mean"]


@pytest.mark.parametrize(
    ("out", "sentence"), [("story.txt", "must end in .html"), ("nowhere/story.html", "there is no folder nowhere")]
)
def test_the_command_refuses_in_one_sentence(out: str, sentence: str) -> None:
    assert sentence in str(CliRunner().invoke(app, ["explain", "--out", out]).exception)


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visit(browser: Browser) -> Iterator[Visit]:
    visit = Visit(browser, PAGE.as_uri(), viewport=WIDE, reduced_motion="reduce")
    yield visit
    assert visit.troubles == []
    assert {request.split("#")[0] for request in visit.requests} == {PAGE.as_uri()}
    visit.context.close()


def test_there_are_eight_scenes_seven_with_a_player(visit: Visit) -> None:
    page = visit.page
    assert page.locator("section.scene h2").count() == 8
    assert page.locator(".replay").count() == 7
    for place in page.locator(".replay").all():
        place.scroll_into_view_if_needed()
        expect(place).to_have_attribute("data-drawn", re.compile(r"\d+"))
    assert page.locator("#scene-race .panel").count() == 4


def test_the_scenes_begin_where_their_text_says(visit: Visit) -> None:
    """One guess goes wrong, and a fall follows; ten guesses are in several places; in the fog cards are lost."""
    page = visit.page
    drift, vote, fog = (page.locator(f"#scene-{name} .told") for name in ("drift", "vote", "fog"))
    expect(drift).to_contain_text("The guess is right")
    for sentence in ("The guess is wrong", "Reward −10"):
        page.locator("#scene-drift").get_by_label("One step on").click()
        expect(drift).to_contain_text(sentence)
    places = page.locator("#scene-vote .panel").get_attribute("data-ghosts") or ""
    assert len(places.split()) >= 4
    expect(vote).to_contain_text("Hidden")
    expect(fog).to_contain_text("Hidden")


def test_the_readers_share_holds_for_player_chart_and_address(visit: Visit) -> None:
    page, found = visit.page, results()
    for theta in (0.8, 0.2):
        page.locator(f"#scene-chart .thetas input[value='{theta}']").check(force=True)
        expect(page.locator("#scene-lose .replay")).to_have_attribute("data-recording", f"lose-{round(100 * theta)}")
        expect(page.locator(f"#scene-lose .thetas input[value='{theta}']")).to_be_checked()
        expect(page.locator("#theta-told")).to_have_text(f"{round(100 * theta)} %")
        at = found["theta"].index(theta)
        for name in SERIES:
            value = page.locator(f"#theta-values li[data-method='{name}'] b")
            expect(value).to_have_text(f"{found['mean'][name][at]:.1f}")
        assert page.url.endswith(f"#theta={theta}")


def test_a_share_in_the_address_is_taken_and_a_strange_one_is_not(browser: Browser) -> None:
    for address, share in (("#theta=0.6", "60 %"), ("#theta=7", "40 %"), ("#theta=x", "40 %")):
        visit = Visit(browser, PAGE.as_uri() + address, viewport=WIDE)
        expect(visit.page.locator("#theta-told")).to_have_text(share)
        assert visit.troubles == []
        visit.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_cut_off_on_a_phone(browser: Browser, theme: Any) -> None:
    visit = Visit(browser, PAGE.as_uri(), viewport=PHONE, color_scheme=theme)
    assert overflow(visit.page) <= 0
    assert visit.troubles == []
    visit.context.close()


def test_without_scripts_the_story_has_its_pictures(browser: Browser) -> None:
    visit = Visit(browser, PAGE.as_uri(), viewport=WIDE, java_script_enabled=False)
    assert visit.page.locator(".replay svg").count() == 7
    expect(visit.page.locator("svg.study")).to_be_visible()
    visit.context.close()
