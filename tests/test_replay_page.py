"""The page of a replay in a real browser shows what was recorded, and is pleasant with mouse, keyboard and phone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from lacuna import Replay, replay
from lacuna.report.recording import Stage
from visits import PHONE, WIDE, Visit, overflow

WORLD = "lake,max_steps=60"


@pytest.fixture(scope="module")
def found() -> Replay:
    return replay(WORLD, "mfog:0.6,0.4", ["mi-synthetic", "last-observed"], at=[0, 2000], steps=120, seed=4)


@pytest.fixture(scope="module")
def folder(found: Replay, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replays")
    found.save(folder / "two.html")
    replay("lake", "mcar:0.4", "mi-synthetic", at=[0, 1000, 5000], steps=150).save(folder / "lake.html")
    replay("taxi", "mcar:0.3", "mi-planned", at=[500], steps=40).save(folder / "taxi.html")
    replay("random", "mcar:0.3", "mi-synthetic,K=5", at=[100], steps=40).save(folder / "random.html")
    replay("frozen-lake", "mcar:0.3", "missing-as-state", at=[0], steps=40).save(folder / "frozen-lake.html")
    return folder


def opened(browser: Browser, path: Path, **options: Any) -> Visit:
    """A replay, once its first picture is drawn: the browser says that a page is loaded before it draws."""
    visit = Visit(browser, path.as_uri(), **options)
    expect(visit.page.locator(".replay")).to_have_attribute("data-drawn", re.compile(r"\d"))
    return visit


@pytest.fixture
def visit(browser: Browser, folder: Path) -> Iterator[Visit]:
    visit = opened(browser, folder / "two.html", viewport=WIDE)
    yield visit
    assert visit.troubles == []
    visit.context.close()


def at(page: Page, i: int) -> None:
    """Wait until a time is drawn."""
    expect(page.locator(".replay")).to_have_attribute("data-drawn", str(i))


def go(page: Page, i: int) -> None:
    page.locator(".scrub").evaluate("(slider, i) => { slider.value = i; slider.dispatchEvent(new Event('input')); }", i)
    at(page, i)


def shown(page: Page, m: int) -> dict[str, Any]:
    """What the page says of one agent: true state, guesses, probabilities and cards."""
    panel = page.locator(".panel").nth(m)
    ghosts = panel.get_attribute("data-ghosts") or ""
    texts = panel.locator(".bar").evaluate_all("bars => bars.map(bar => bar.dataset.p)")
    cards = panel.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.value)")
    return {
        "state": int(panel.get_attribute("data-state") or -1),
        "ghosts": {int(state): int(n) for state, n in (ghost.split(":") for ghost in ghosts.split())},
        "p": [float(p) for p in texts if p],
        "cards": cards,
    }


def expected(stage: Stage, t: int, stopped: bool) -> dict[str, Any]:
    i = stage.stopped.tolist().index(t) if stopped else t
    moments = stage.stops if stopped else stage.before
    return {
        "state": int(moments.state[i]),
        "ghosts": dict(Counter(moments.pathways[i].tolist())),
        "p": [] if stopped or t >= stage.steps else stage.probability[t].tolist(),
        "cards": ["?" if value < 0 else str(value) for value in moments.seen[i].tolist()],
    }


def times(found: Replay, stage: int) -> list[tuple[int, bool]]:
    """All times of a stage: before every step, and after those that stop an episode of any agent."""
    tracks = [track[stage] for track in found.recording.stages]
    stops = {t for kept in tracks for t in kept.stopped.tolist()}
    return [(t, late) for t in range(tracks[0].steps + 1) for late in (False, True) if not late or t in stops]


def test_every_time_shows_what_was_recorded_of_both_agents_in_step(visit: Visit, found: Replay) -> None:
    """Truth, distinct pathways, exact probabilities and cards, at every time of both stages."""
    page = visit.page
    late_seen = 0
    for stage in (0, 1):
        page.keyboard.press(str(stage + 1))
        for i, (t, late) in enumerate(times(found, stage)):
            go(page, i)
            for m, track in enumerate(found.recording.stages):
                kept = track[stage]
                stopped = late and t in kept.stopped.tolist()
                late_seen += stopped
                wanted = expected(kept, t + (late and not stopped), stopped)
                assert shown(page, m) == wanted | ({"p": []} if late else {}), (stage, t, late, m)
    assert late_seen > 4
    assert visit.requests == [page.url.split("#")[0]]


def test_stepping_moves_the_truth_to_where_the_trace_says(visit: Visit, found: Replay) -> None:
    page, kept = visit.page, found.recording.stages[0][0]
    page.keyboard.press("1")
    page.keyboard.press("Home")
    at(page, 0)
    for i, (t, late) in enumerate(times(found, 0)[:40]):
        assert (
            shown(page, 0)["state"]
            == expected(kept, t + (late and t not in kept.stopped), late and t in kept.stopped)["state"]
        )
        page.keyboard.press("ArrowRight")
        at(page, i + 1)
    page.keyboard.press("ArrowLeft")
    at(page, 39)
    page.keyboard.press("Shift+ArrowLeft")
    at(page, 29)


def test_jumps_lead_to_the_next_fall_blackout_and_end(visit: Visit, found: Replay) -> None:
    page, mdp = visit.page, found.recording.problem.mdp
    page.keyboard.press("1")
    page.keyboard.press("Home")
    at(page, 0)
    tracks, moments = [track[0] for track in found.recording.stages], times(found, 0)

    def is_at(kind: str, t: int, late: bool) -> bool:
        if kind == "end":
            return late
        stops = [kept.stopped.tolist() for kept in tracks]
        if late:
            return any(
                t in stop and mdp.bad[kept.stops.state[stop.index(t)]] for kept, stop in zip(tracks, stops, strict=True)
            )
        # A fall that stopped an episode is at its late time alone.
        arrived = [kept.before.state[t] for kept, stop in zip(tracks, stops, strict=True) if t - 1 not in stop]
        return t > 0 and any(mdp.bad[state] for state in arrived)

    for kind, key in (("fall", "f"), ("end", "e")):
        page.keyboard.press("Home")
        at(page, 0)
        for i in [i for i, moment in enumerate(moments) if i and is_at(kind, *moment)][:3]:
            page.keyboard.press(key)
            at(page, i)
    page.keyboard.press("Home")
    at(page, 0)
    page.keyboard.press("b")
    expect(page.locator(".replay")).not_to_have_attribute("data-drawn", "0")
    i = int(page.locator(".replay").get_attribute("data-drawn") or 0)
    lost = [[(kept.before.seen[t] < 0).any() for t, late in moments[i : i + 3] if not late] for kept in tracks]
    assert any(all(row) for row in lost)


def test_a_fall_that_ends_an_episode_is_one_fall(browser: Browser, tmp_path: Path) -> None:
    kept = replay("frozen-lake", "mcar:0.3", "mi-synthetic", at=[0], steps=200)
    kept.save(tmp_path / "ice.html")
    stage, bad = kept.recording.stages[0][0], kept.recording.problem.mdp.bad
    falls = int(bad[stage.stops.state].sum())
    assert falls > 5
    visit = opened(browser, tmp_path / "ice.html", viewport=WIDE)
    columns = "[...players.values()][0].lines[0].columns"
    assert visit.page.evaluate(f"{columns}.filter((column) => column.fell).length") == falls
    assert visit.page.evaluate(f"{columns}.every((column) => !column.fell || column.end)")
    visit.context.close()


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_bars_of_several_agents_have_room(browser: Browser, tmp_path: Path, size: Any) -> None:
    replay(WORLD, "mcar:0.4", ["mi-synthetic", "last-observed", "missing-as-state"], at=[0], steps=20).save(
        tmp_path / "three.html"
    )
    visit = opened(browser, tmp_path / "three.html", viewport=size)
    widths = visit.page.locator(".track").evaluate_all("all => all.map((track) => track.clientWidth)")
    assert min(widths) > 40
    visit.context.close()


def test_shared_votes_are_not_counted_as_whole_ones(visit: Visit, found: Replay) -> None:
    """At the very first step every action is as good as any other: ten guesses share ten votes among eight."""
    page = visit.page
    page.keyboard.press("1")
    go(page, 0)
    assert found.recording.stages[0][0].votes[0].all()
    texts = page.locator(".panel").first.locator(".votes").all_text_contents()
    assert texts == ["●○"] * 8


def test_a_wall_is_not_called_chance(browser: Browser, tmp_path: Path) -> None:
    replay("taxi", "mcar:0.3", "mi-planned", at=[0], steps=150).save(tmp_path / "taxi.html")
    visit = opened(browser, tmp_path / "taxi.html", viewport=WIDE)
    told = []
    for i in range(150):
        go(visit.page, i)
        told.append(visit.page.locator(".told").text_content() or "")
    assert any("but stays where it is" in words for words in told)
    assert not any("elsewhere" in words for words in told)
    visit.context.close()


def test_a_page_begins_where_much_follows(browser: Browser, folder: Path) -> None:
    visit = opened(browser, folder / "lake.html", viewport=WIDE)
    slider = visit.page.locator(".scrub")
    assert int(slider.input_value()) <= int(slider.get_attribute("max") or 0) / 2
    visit.context.close()


def test_the_page_says_where_the_paths_part(visit: Visit, found: Replay) -> None:
    one, other = (track[0].before.state for track in found.recording.stages)
    parting = int((one != other).argmax())
    visit.page.keyboard.press("1")
    expect(visit.page.locator(".parted")).to_contain_text(f"the paths part at step {parting}.")


def test_what_is_shown_stands_in_the_address_and_is_read_from_it(visit: Visit, browser: Browser) -> None:
    page = visit.page
    page.keyboard.press("2")
    go(page, 17)
    page.keyboard.press("t")
    page.wait_for_function("() => location.hash.includes('truth=0') && location.hash.includes('step=')")
    other = Visit(browser, page.url, viewport=WIDE)
    at(other.page, 17)
    assert [shown(other.page, m) for m in (0, 1)] == [shown(page, m) for m in (0, 1)]
    expect(other.page.get_by_label("truth")).not_to_be_checked()
    expect(other.page.locator(".told").first).not_to_contain_text("right")
    assert other.troubles == []
    other.context.close()
    far = Visit(browser, page.url.split("#")[0] + "#stage=7&step=100000", viewport=WIDE)
    at(far.page, 0)
    far.context.close()


def test_playing_moves_on_and_pausing_stops(visit: Visit) -> None:
    page = visit.page
    page.get_by_label("Speed").select_option("16")
    page.keyboard.press("Home")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("() => Number(document.querySelector('.replay').dataset.drawn) > 5")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(300)  # a picture that was asked for before the pause is still drawn
    stopped = page.locator(".replay").get_attribute("data-drawn")
    page.wait_for_timeout(300)
    assert page.locator(".replay").get_attribute("data-drawn") == stopped


def ink(page: Page) -> int:
    """How many different colours the first canvas has: nothing drawn has one."""
    return int(
        page.locator(".panel canvas").first.evaluate(
            """canvas => new Set(new Uint32Array(
                 canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
        )
    )


@pytest.mark.parametrize("name", ["two", "lake", "taxi", "random", "frozen-lake"])
@pytest.mark.parametrize("width", ["wide", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_world_is_drawn_wide_and_narrow_light_and_dark(
    browser: Browser, folder: Path, name: str, width: str, theme: Any
) -> None:
    size = PHONE if width == "phone" else WIDE
    visit = opened(browser, folder / f"{name}.html", viewport=size, color_scheme=theme)
    assert ink(visit.page) > 5
    assert overflow(visit.page) <= 0
    assert visit.troubles == []
    assert len(visit.requests) == 1
    visit.context.close()


def test_without_scripts_there_is_a_still_picture(browser: Browser, folder: Path) -> None:
    visit = Visit(browser, (folder / "lake.html").as_uri(), viewport=PHONE, java_script_enabled=False)
    picture = visit.page.locator(".replay svg")
    expect(picture).to_be_visible()
    assert picture.locator("circle").count() >= 11
    assert overflow(visit.page) <= 0
    visit.context.close()


def test_with_less_motion_nothing_glides(browser: Browser, folder: Path) -> None:
    visit = opened(browser, folder / "lake.html", viewport=WIDE, reduced_motion="reduce")
    assert (
        visit.page.locator(".turning .front").first.evaluate("card => getComputedStyle(card).transitionDuration")
        == "0s"
    )
    assert visit.page.evaluate("calm.matches")
    visit.context.close()


def test_the_theme_can_be_chosen_and_is_redrawn(browser: Browser, folder: Path) -> None:
    visit = opened(browser, folder / "lake.html", viewport=WIDE)
    look = "canvas => canvas.toDataURL()"
    before = visit.page.locator(".panel canvas").evaluate(look)
    visit.page.get_by_label("Light or dark").click()
    visit.page.wait_for_function(f"before => ({look})(document.querySelector('.panel canvas')) !== before", arg=before)
    assert visit.troubles == []
    visit.context.close()


def test_controls_have_names_and_what_is_seen_is_told(visit: Visit) -> None:
    page = visit.page
    unnamed = page.locator("button, input, select").evaluate_all(
        "all => all.filter(e => !(e.getAttribute('aria-label') || e.closest('label')?.textContent.trim())).length"
    )
    assert unnamed == 0
    label = page.locator(".panel canvas").first.get_attribute("aria-label") or ""
    assert label.startswith(("dry. ", "flooded. "))
    assert "Reward" in label


def test_in_a_notebook_the_page_works_inside_its_frame(browser: Browser, found: Replay, tmp_path: Path) -> None:
    (tmp_path / "notebook.html").write_text(f"<body>{found._repr_html_()}</body>", encoding="utf-8")
    visit = Visit(browser, (tmp_path / "notebook.html").as_uri(), viewport=WIDE)
    frame = visit.page.frame_locator("iframe")
    expect(frame.locator(".panel")).to_have_count(2)
    expect(frame.locator(".replay")).to_have_attribute("data-drawn", re.compile(r"\d"))
    before = frame.locator(".replay").get_attribute("data-drawn")
    frame.get_by_label("One step on").click()
    expect(frame.locator(".replay")).not_to_have_attribute("data-drawn", str(before))
    visit.page.wait_for_timeout(400)
    assert visit.troubles == []
    visit.context.close()
