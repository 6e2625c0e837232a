"""The appendix: a status follows from numbers, wrong formulas are caught, and the page works in a real browser."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, Request, expect
from scipy.stats import binom
from typer.testing import CliRunner

from lacuna.cli.main import app
from lacuna_paper.theory.appendix import STATEMENTS, as_data, examine
from lacuna_paper.theory.bandit import (
    FIXED,
    IMPUTED_MEANS,
    MISSING_AS_STATE,
    OBSERVED_MEANS,
    make_rule,
    make_world,
    run_bandit,
)
from lacuna_paper.theory.figures import all_curves
from lacuna_paper.theory.measuring import generator
from lacuna_paper.theory.notation import to_html, to_mathml
from lacuna_paper.theory.on_acting import SCENARIOS, arch, price_of_not_knowing
from lacuna_paper.theory.on_means import crossing, mse_gap
from lacuna_paper.theory.on_updates import printed_coefficients
from lacuna_paper.theory.page import page_of, write_page
from lacuna_paper.theory.statement import (
    DECLARED,
    MEANINGS,
    WORDS,
    Conclusion,
    Formula,
    Measurement,
    Statement,
    conclude,
)
from lacuna_paper.theory.transitions import (
    ESTIMATED,
    INFINITE,
    RECURSIVE,
    binomial,
    estimates,
    recursive_limits,
    recursive_moments,
    tuples,
)
from patience import PATIENCE

STATUSES = {
    "oracle-consistent": "holds",
    "oracle-without-fraction": "refuted as printed, corrected",
    "oracle-efficient": "holds, made exact",
    "estimate-based": "refuted as printed, corrected",
    "recursive-moments": "answered",
    "recursive-variance": "holds, made exact",
    "recursive-rate": "answered",
    "observed-mean": "holds",
    "observed-variance": "refuted as printed, corrected",
    "missing-mean": "holds",
    "missing-variance": "refuted as printed, corrected",
    "imputed-mean": "holds",
    "imputed-variance": "holds",
    "deterministic": "holds",
    "trade-off": "holds, made exact",
    "action-rules": "refuted as printed, corrected",
    "scenario-predictive": "holds",
    "scenario-unpredictive": "holds",
    "scenario-signal": "holds",
    "scenario-general": "holds",
    "u-shape": "holds",
    "fractional-rate": "refuted as printed, corrected",
    "fractional-add-on": "refuted as printed, corrected",
    "fractional-same-state": "refuted as printed, corrected",
    "fractional-alternatives": "answered",
}
THEORY = Path(__file__).parents[2] / "docs" / "explanation" / "theory.md"
EFFORT = 0.25
LONG = {"u-shape"}
"""What needs more than this effort to be decided; its status is tested apart, on what decides it."""


@pytest.fixture(scope="module")
def conclusions() -> dict[str, Conclusion]:
    found = examine(tuple(one for one in STATEMENTS if one.id not in LONG), effort=EFFORT, seed=1, workers=2)
    return {conclusion.statement.id: conclusion for conclusion in found}


def measurements(conclusion: Conclusion, *, broken: bool | None = None) -> list[Measurement]:
    """Those under the assumptions, those with one broken, or all."""
    found = [check.measurement for check in (*conclusion.valid, *conclusion.broken)]
    return [one for one in found if broken is None or one.broken == broken]


def measured(conclusion: Conclusion, words: str) -> Measurement:
    [found] = [one for one in measurements(conclusion, broken=False) if one.what.endswith(words)]
    return found


def test_the_appendix_is_complete() -> None:
    assert [one.id for one in STATEMENTS] == list(STATUSES)
    assert set(DECLARED) == set(STATUSES)
    assert len(WORDS["parts"]) == 4


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.id)
def test_a_statement_says_everything_about_itself(statement: Statement) -> None:
    assert statement.title
    assert statement.claim
    assert statement.assumptions
    assert statement.proof
    assert statement.broken
    assert statement.printed or statement.right
    for formula in (statement.printed, statement.right):
        if formula:
            ElementTree.fromstring(to_mathml(formula.text))  # noqa: S314  our own markup
    for text in (statement.claim, statement.broken, *statement.proof, *statement.assumptions):
        ElementTree.fromstring(f"<p>{to_html(text)}</p>")  # noqa: S314


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.id)
def test_words_in_quotation_marks_stand_in_one_field(statement: Statement) -> None:
    ours = (statement.title, statement.claim, statement.broken, *statement.proof, *statement.assumptions)
    assert not re.search(r'[“”"]', " ".join(re.sub(r"`[^`]*`", "", text) for text in ours))
    assert not re.search(r'[“”"`$\\]', statement.quoted)


def test_quotations_are_marked_on_the_page_and_in_the_data(conclusions: dict[str, Conclusion]) -> None:
    quoted = [one.statement.quoted for one in conclusions.values() if one.statement.quoted]
    page = page_of(list(conclusions.values()), {}).html()
    assert re.findall(r"<q>(.*?)</q>", page) == quoted
    data = as_data(conclusions.values(), (), effort=EFFORT, seed=1)
    assert [one["quoted"] for one in data["statements"] if one["quoted"]] == quoted


def test_the_documentation_quotes_what_the_statements_quote() -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", THEORY.read_text(), flags=re.DOTALL)
    quotations = [" ".join(words.split()) for words in re.findall(r'[“"]([^”"]*)[”"]', prose)]
    assert quotations
    for words in quotations:
        assert any(words in statement.quoted for statement in STATEMENTS), words


def test_the_figure_of_learning_rates_is_the_papers_fifth() -> None:
    [caption] = [texts["caption"] for texts in WORDS["parts"][-1]["figures"] if texts["id"] == "updates"]
    assert "the paper's figure 5" in caption
    assert DECLARED["fractional-add-on"].place.endswith("figure 5")


def test_the_documentation_knows_what_the_command_concludes() -> None:
    rows = re.findall(r"^\|[^|]*\| A\.[^|]*\| ([^|]*) \|$", THEORY.read_text(), flags=re.MULTILINE)
    assert len(rows) == 15
    names = {"hold": "holds"} | {status: status for status in MEANINGS}
    named = [names[max((name for name in names if row.replace("**", "").startswith(name)), key=len)] for row in rows]
    # The two variances of mean rewards share a row.
    assert (
        named.count("refuted as printed, corrected") == Counter(STATUSES.values())["refuted as printed, corrected"] - 1
    )


@pytest.mark.parametrize("name", [name for name in STATUSES if name not in LONG])
def test_the_status_is_the_expected_one(conclusions: dict[str, Conclusion], name: str) -> None:
    assert conclusions[name].status == STATUSES[name]


@pytest.mark.parametrize("name", [name for name in STATUSES if name not in LONG])
def test_a_broken_assumption_is_noticed(conclusions: dict[str, Conclusion], name: str) -> None:
    assert conclusions[name].noticed


def spoilt(formula: Formula) -> Formula:
    """A formula that is off by a quarter, or an inequality the other way round."""
    if formula.relation == "=":
        return replace(formula, value=lambda case: 1.25 * formula.value(case) + 0.02)
    return replace(formula, relation="<" if formula.relation == ">" else ">")


@pytest.mark.parametrize("name", [name for name in STATUSES if name not in LONG])
def test_a_wrong_formula_is_caught_by_the_same_check(conclusions: dict[str, Conclusion], name: str) -> None:
    conclusion = conclusions[name]
    statement = conclusion.statement
    wrong = spoilt(statement.valid)
    changed = replace(statement, right=wrong) if statement.right else replace(statement, printed=wrong)
    assert conclude(changed, measurements(conclusion)).status == "fails"


@pytest.mark.parametrize("name", [name for name, status in STATUSES.items() if status.startswith("refuted")])
def test_a_right_print_would_not_be_accused(conclusions: dict[str, Conclusion], name: str) -> None:
    statement = conclusions[name].statement
    mended = replace(statement, printed=statement.right, right=None)
    assert conclude(mended, measurements(conclusions[name])).status == "holds"


def test_a_coarse_simulation_decides_nothing() -> None:
    statement = replace(STATEMENTS[0], printed=Formula("p", lambda _: 0.3), right=None)
    assert conclude(statement, [Measurement("a few tuples", {}, 0.35, 0.1)]).status == "undecided"
    assert conclude(statement, []).status == "undecided"


def test_effective_rates_are_those_of_the_kernels(conclusions: dict[str, Conclusion]) -> None:
    rates = conclusions["fractional-rate"]
    for K, expected in ((2, 0.75), (10, 0.6513), (100, 1 - np.exp(-1))):
        found = measured(rates, f"one by one, α = 1.0, K = {K}").value
        assert found == pytest.approx(expected, abs=2e-3 if K == 100 else 5e-5)
    assert measured(rates, "one by one, α = 0.1, K = 10").value == pytest.approx(0.0956, abs=5e-5)
    stay = measured(conclusions["fractional-same-state"], "the action is the best, α = 1.0, K = 10, γ = 0.5")
    assert stay.value == pytest.approx(0.803, abs=5e-4)


def test_printed_coefficients_are_right_for_three_pathways_only() -> None:
    assert printed_coefficients(2) == [1]
    assert printed_coefficients(3) == [3, 1]
    assert printed_coefficients(4) == [3, 4, 1]  # binomial: 6, 4, 1
    assert printed_coefficients(1) == []


@pytest.mark.parametrize(("p_o", "ratio"), [(0.2, 1.64), (0.5, 1.25), (0.8, 1.04)])
def test_variance_ratio_of_estimates(conclusions: dict[str, Conclusion], p_o: float, ratio: float) -> None:
    found = measured(conclusions["estimate-based"], f"t = 2000, averages p̂_j, p_o = {p_o}")
    assert abs(found.value - ratio) < 4 * found.error + 0.004  # what is missing at t = 2000
    assert found.error < 0.03


@pytest.mark.parametrize(("K", "ratio"), [("∞", 1.125), ("10", 1.1625), ("1", 1.5)])
def test_recursive_efficiency_by_simulation(conclusions: dict[str, Conclusion], K: str, ratio: float) -> None:
    found = measured(conclusions["recursive-variance"], f"simulated, p_o = 0.75, K = {K}")
    assert abs(found.value - ratio) < 4 * found.error
    assert found.error < 0.04


@pytest.mark.parametrize("p_o", [0.1, 0.25])
@pytest.mark.parametrize("K", ["∞", "10", "1"])
def test_decay_exponent_below_one_half_by_simulation(conclusions: dict[str, Conclusion], p_o: float, K: str) -> None:
    found = measured(conclusions["recursive-rate"], f"simulated from 512 to 32,768 tuples, p_o = {p_o}, K = {K}")
    assert abs(found.value - 2 * p_o) < 4 * found.error
    assert found.error < 0.02


def test_decay_exponent_near_one_half_by_the_exact_recursion() -> None:
    for p_o in (0.45, 0.5, 0.55):
        assert recursive_limits(p_o, 1)[0] == pytest.approx(2 * p_o, abs=1e-4)
    # A plain slope drifts: it is still far off after a million tuples.
    early, late = recursive_moments(0.45, 1, [1 << 19, 1 << 20])
    assert abs(np.log2(early / late) - 0.9) > 0.02


def test_exact_moments_agree_with_a_plain_recursion() -> None:
    p_o, K, v = 0.6, 3, 1.0
    for n in range(1, 50):
        seen = p_o * ((n / (n + 1)) ** 2 * v + 1 / (n + 1) ** 2)
        v = seen + (1 - p_o) * (v + (1 - v) / (K * (n + 1) ** 2))
    assert recursive_moments(p_o, K, [50])[0] == pytest.approx(v, rel=1e-12)


def test_learners_bias_means_downwards(conclusions: dict[str, Conclusion]) -> None:
    """Unbiased under actions that do not learn; too small under greedy ones, and less so with exploration."""
    conclusion = conclusions["observed-mean"]
    for one in measurements(conclusion, broken=False):
        assert abs(one.value - one.case["mu"]) < 4 * one.error
        assert one.error < 0.01
    biases = {one.what: (one.value - one.case["mu"], one.error) for one in measurements(conclusion, broken=True)}
    assert len(biases) == 8
    assert all(bias < -4 * error for bias, error in biases.values())
    greedy = [bias for what, (bias, _) in biases.items() if "ε" not in what]
    exploring = [bias for what, (bias, _) in biases.items() if "ε" in what]
    assert all(without < with_ for without, with_ in zip(greedy, exploring, strict=True))


def test_the_u_shape_appears_and_needs_its_yardstick() -> None:
    gap, error = arch("predictive", 2500, 3)
    assert gap > 4 * error
    gap, error = arch("opposed", 400, 3, knowing=True)
    assert gap < -4 * error


def test_imputing_is_better_only_early() -> None:
    assert mse_gap(0.9, 100) < 0 < mse_gap(0.9, 1000)
    distances = [t * (1 - crossing(t)) for t in (1600, 6400)]
    assert distances[0] == pytest.approx(distances[1], rel=0.02)  # 1 - q* falls like 1/t


def test_price_of_not_knowing_a_state() -> None:
    assert price_of_not_knowing(SCENARIOS["signal"][1](0.5)) == pytest.approx(0)  # being hidden says it all
    assert price_of_not_knowing(SCENARIOS["predictive"][1](0.5)) == pytest.approx(0.5 * 0.05)
    assert price_of_not_knowing(SCENARIOS["opposed"][1](0.0)) == 0


# --- kernels ---------------------------------------------------------------------------------------------------------


def test_binomial_by_inversion_has_the_right_distribution() -> None:
    grid = (np.arange(20_000) + 0.5) / 20_000
    for K, p in ((10, 0.3), (1, 0.9), (10, 0.999)):
        counts = np.bincount([binomial(u, K, p) for u in grid], minlength=K + 1) / grid.size
        np.testing.assert_allclose(counts, binom.pmf(np.arange(K + 1), K, p), atol=2 / grid.size)
    assert binomial(0.5, 7, 0.0) == 0
    assert binomial(0.5, 7, 1.0) == 7


def plain_estimates(numbers: NDArray[np.float64], p: float, p_o: float, K: int) -> tuple[float, float]:
    """The recursive and the complete-case estimates from the same numbers, written anew."""
    masses, seen = [], []
    for t, (u, v) in enumerate(numbers.reshape(-1, 2)):
        hit = u < p
        complete = t == 0 or (u < p * p_o if hit else u < p + (1 - p) * p_o)
        if complete:
            masses.append(float(hit))
            seen.append(float(hit))
        else:
            masses.append(float(binom.ppf(v, K, np.mean(masses))) / K)
    return float(np.mean(masses)), float(np.mean(seen))


def test_paths_of_tuples_are_those_of_a_plain_loop() -> None:
    rule = tuples(RECURSIVE, 0.3, 0.4, 4)
    numbers = generator(5, "twin", *(float(part) for part in rule)).random((3, 120))
    found = estimates(rule, [60], 3, 5, "twin")
    for row, (imputing, complete) in zip(numbers, found[:, 0], strict=True):
        assert (imputing, complete) == pytest.approx(plain_estimates(row, 0.3, 0.4, 4))


def test_many_draws_are_like_infinitely_many() -> None:
    many = estimates(tuples(ESTIMATED, 0.3, 0.5, 400), [200], 4000, 0, "k")[:, 0, 0]
    mean = estimates(tuples(ESTIMATED, 0.3, 0.5, INFINITE), [200], 4000, 0, "k")[:, 0, 0]
    assert many.var() == pytest.approx(mean.var(), rel=4 * np.sqrt(4 / 4000))


def test_the_bandit_keeps_its_books() -> None:
    world = make_world([0.5, 0.5], [[0.6, 0.4], [0.2, 0.8]], 0.3, np.arange(12.0).reshape(2, 2, 3), 0.0)
    tables, _ = run_bandit(world, make_rule(FIXED, world, K=4), 200, 5, 2)
    assert (tables.n.sum(axis=(1, 2, 3)) == 200).all()
    np.testing.assert_allclose(tables.fill_n.sum(axis=2), tables.n[:, :, -1])
    np.testing.assert_allclose(tables.fill_sums.sum(axis=2), tables.sums[:, :, -1])
    n, sums = tables.n[:, :, :-1], tables.sums[:, :, :-1]
    means = np.broadcast_to(world.means, n.shape)
    np.testing.assert_allclose(sums[n > 0] / n[n > 0], means[n > 0])  # rewards without noise


def test_rules_differ_only_where_a_state_is_hidden() -> None:
    world = make_world([1.0], [[0.6, 0.4]], 0.0, [[[1.0, 0.0], [0.0, 1.0]]])
    losses = [
        run_bandit(world, make_rule(kind, world), 50, 20, 4, "same")[1]
        for kind in (OBSERVED_MEANS, MISSING_AS_STATE, IMPUTED_MEANS)
    ]
    assert (losses[0] == losses[1]).all()
    assert (losses[0] == losses[2]).all()


def test_threads_do_not_change_a_number() -> None:
    some = tuple(one for one in STATEMENTS if one.id in ("oracle-consistent", "missing-mean", "action-rules"))
    one, two = (examine(some, effort=0.02, seed=3, workers=workers) for workers in (1, 2))
    assert as_data(one, (), effort=0.02, seed=3) == as_data(two, (), effort=0.02, seed=3)


def test_effort_must_be_positive() -> None:
    with pytest.raises(ValueError, match=r"effort is 0; it must be between 0\.01 and 10"):
        examine(effort=0)


# --- notation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formula", [r"\frac{a}", "x^", r"\unknown{a}", "a_{b", "}"])
def test_a_broken_formula_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="the formula"):
        to_mathml(formula)


# --- the command and the page ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(conclusions: dict[str, Conclusion], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("theory")
    found = list(conclusions.values())
    curves = all_curves(found, 0.1, 1, workers=2)
    (out / "theory.json").write_text(json.dumps(as_data(found, curves, effort=EFFORT, seed=1), allow_nan=False))
    write_page(found, curves, out)
    return out


def test_the_data_hold_every_status(folder: Path) -> None:
    data = json.loads((folder / "theory.json").read_text())
    assert {one["id"]: one["status"] for one in data["statements"]} == {
        name: status for name, status in STATUSES.items() if name not in LONG
    }
    estimated = next(one for one in data["statements"] if one["id"] == "estimate-based")
    assert estimated["under_the_assumptions"][0]["printed"] == "inf"
    assert estimated["right"].startswith(r"\frac{𝕍(p̃_t)}{𝕍(p̂_t)} → 1 + (1 − p_o)^2")
    assert len(data["figures"]) == 10


def test_every_figure_is_there_as_files(folder: Path) -> None:
    names = {path.stem for path in (folder / "figures").iterdir()}
    assert len(names) == 10
    for name in names:
        assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (folder / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / "figures" / f"{name}.svg").read_text()


def test_the_command_says_what_is_wrong() -> None:
    result = CliRunner().invoke(app, ["theory", "--out", "somewhere", "--workers", "0"])
    assert isinstance(result.exception, ValueError)
    assert str(result.exception) == "workers is 0; it must be a whole number between 1 and 1024"


def test_the_command_writes_page_data_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = tuple(one for one in STATEMENTS if one.id.startswith(("fractional", "action", "oracle-consistent")))
    monkeypatch.setattr("lacuna_paper.theory.command.STATEMENTS", quick)
    monkeypatch.setattr("lacuna_paper.theory.command.all_curves", lambda *_: ())
    result = CliRunner().invoke(app, ["theory", "--out", str(tmp_path / "new" / "out"), "--effort", "0.1"])
    assert result.exit_code == 0, result.output
    assert "refuted as printed, corrected" in result.output
    assert {path.name for path in (tmp_path / "new" / "out").iterdir()} == {"index.html", "theory.json"}


def test_a_page_beside_the_papers_links_to_it(conclusions: dict[str, Conclusion], tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the paper")
    (tmp_path / "theory").mkdir()
    page = write_page([conclusions["action-rules"]], (), tmp_path / "theory")
    assert 'href="../index.html"' in page.read_text()


def opened(browser: Browser, folder: Path, width: int = 1200, scheme: str = "light") -> tuple[Page, list[str]]:
    """The page with all its charts drawn, and every complaint and request it made."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def note(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            complaints.append(request.url)

    page.on("request", note)
    page.goto((folder / "index.html").as_uri())
    page.locator("figure.chart[data-drawn]").nth(9).wait_for()
    return page, complaints


def test_the_page_in_a_browser(browser: Browser, folder: Path) -> None:
    page, complaints = opened(browser, folder)
    assert page.locator("figure.chart .drawing svg").count() == 10
    assert page.locator("article.statement").count() == len(STATUSES) - len(LONG)
    assert page.locator("math").count() >= len(STATUSES)
    heights = page.evaluate("[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)")
    assert min(heights) > 8
    page.locator("a[href='#trade-off']").first.click()
    assert page.locator("#trade-off:target").count() == 1
    page.locator("#trade-off summary").last.click()
    assert page.locator("#trade-off details[open] td").count() > 0
    assert complaints == []
    page.close()


def test_the_page_on_a_phone(browser: Browser, folder: Path) -> None:
    page, complaints = opened(browser, folder, width=390)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert complaints == []
    page.close()


def test_a_finger_need_not_hit_a_mark(browser: Browser, folder: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto((folder / "index.html").as_uri())
    page.locator("figure.chart[data-drawn]").nth(9).wait_for()
    mark = page.locator("#figure-regret .mark-symbol path").first
    mark.evaluate("mark => mark.scrollIntoView({block: 'center', behavior: 'instant'})")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box = mark.bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] - 12, box["y"] - 8)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("share hidden")
    expect(page.locator("#vg-tooltip-element")).to_be_visible()
    context.close()


def test_every_chart_has_a_name_a_description_and_a_scale(browser: Browser, folder: Path) -> None:
    page, _ = opened(browser, folder)
    for figure in page.locator("figure.chart").all():
        picture = figure.locator("[role=img]")
        expect(picture).to_have_accessible_name(figure.locator("h3").inner_text())
        expect(picture).to_have_accessible_description(figure.locator("figcaption span").first.inner_text())
    count = "all => all.map(e => [...e.querySelectorAll('text')].filter(t => t.textContent).length).filter(n => n > 0)"
    assert min(page.locator(".drawing .role-axis-label").evaluate_all(count)) >= 3
    page.close()


@pytest.mark.parametrize("width", [320, 390])
def test_the_navigation_of_a_phone_is_whole(browser: Browser, folder: Path, width: int) -> None:
    page, _ = opened(browser, folder, width=width)
    links = page.locator("nav a").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    assert len(links) == len(WORDS["parts"]) + 2
    assert max(links) <= width
    height = page.locator("nav").evaluate("nav => nav.offsetHeight")
    assert height < 844 / 6
    page.close()


def test_the_page_in_the_dark(browser: Browser, folder: Path) -> None:
    page, complaints = opened(browser, folder, scheme="dark")
    backgrounds = page.evaluate(
        "[...document.querySelectorAll('.drawing svg')].map(s => getComputedStyle(s).backgroundColor)"
    )
    assert set(backgrounds) == {page.evaluate("getComputedStyle(document.body).backgroundColor")}
    assert complaints == []
    page.close()
