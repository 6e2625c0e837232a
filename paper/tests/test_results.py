"""The numbers in the README and the evidence are those of the full run that is kept in docs/results."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from lacuna_paper.claims import CLAIMS
from lacuna_paper.verdicts import FullStudy, in_brief

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "docs" / "results" / "claims.json").read_text())
HORIZONS = json.loads((ROOT / "docs" / "results" / "horizons.json").read_text())
MEASURED = json.loads((ROOT / "docs" / "results" / "readme.json").read_text())
FINDINGS = (ROOT / "docs" / "evidence" / "findings.md").read_text()
README = (ROOT / "README.md").read_text()
READINGS = ("episodic", "continuing")
SELECTIONS = ("as-published", "held-out")


def finding(claim: str, reading: str, selection: str) -> dict[str, Any]:
    (found,) = (
        f for f in RESULTS["findings"] if (f["claim"], f["reading"], f["selection"]) == (claim, reading, selection)
    )
    return dict(found)


def shown(found: dict[str, Any]) -> str:
    """A finding as the tables have it."""
    if found["low"] is None:
        return str(found["verdict"])
    effect, low, high = (f"{found[key]:.2f}".replace("-", "−") for key in ("effect", "low", "high"))
    return f"{found['verdict']}: {effect} [{low}, {high}]"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_the_results_are_of_every_claim_reading_and_way_of_choosing() -> None:
    assert len(RESULTS["findings"]) == len(CLAIMS) * len(READINGS) * len(SELECTIONS) == 96
    assert RESULTS["about"]["command"] == "lacuna paper --full --continuing --honest --out out/paper"
    assert RESULTS["about"]["steps"] == 50_000
    assert len(RESULTS["about"]["fresh_trials"]) == 160
    assert RESULTS["about"]["draws"] == 8


def test_the_package_keeps_the_verdicts_of_the_full_run() -> None:
    kept = json.loads((ROOT / "paper" / "src" / "lacuna_paper" / "full_study.json").read_text(encoding="utf-8"))
    assert kept == in_brief(RESULTS), "run: python reference/generate.py"
    full = FullStudy.read()
    for claim in CLAIMS:
        for reading in READINGS:
            for selection in SELECTIONS:
                assert full.of(claim.id, (reading, selection)) == finding(claim.id, reading, selection)["verdict"]


@pytest.mark.parametrize("claim", [claim.id for claim in CLAIMS])
def test_the_findings_have_the_verdicts_of_the_full_run(claim: str) -> None:
    (line,) = re.findall(rf"^\| `{claim}` \|.*$", FINDINGS, re.MULTILINE)
    expected = [shown(finding(claim, r, s)) for r in READINGS for s in SELECTIONS]
    assert cells(line)[1:] == expected


def test_the_findings_count_the_verdicts_of_the_full_run() -> None:
    for reading in READINGS:
        for selection in SELECTIONS:
            counts = Counter(finding(claim.id, reading, selection)["verdict"] for claim in CLAIMS)
            numbers = [str(counts[verdict]) for verdict in ("supported", "not supported", "undecided")]
            (line,) = re.findall(rf"^\| {reading} \| {selection} \|.*$", FINDINGS, re.MULTILINE)
            assert cells(line)[2:5] == numbers


def test_the_readme_counts_the_verdicts_on_fresh_trials() -> None:
    counts = Counter(finding(claim.id, "episodic", "held-out")["verdict"] for claim in CLAIMS)
    words = f"{counts['supported']} hold, {counts['not supported']} fail and {counts['undecided']} are undecided"
    assert words in " ".join(README.split())


def test_the_table_of_the_readme_is_that_of_its_runs() -> None:
    table = script_called("readme").table(MEASURED)
    assert table in README
    assert f"`{MEASURED['command']}`" in README
    assert len(MEASURED["long"]) == 6
    # Every figure has its standard error.
    figures = [cell for row in table.splitlines()[2:] for cell in cells(row)[1:] if cell != "–"]
    assert len(figures) > 40
    assert all(re.fullmatch(r"−?[\d.]+ \([\d.]+\)", figure) for figure in figures)


def test_the_columns_of_the_readme_have_the_trials_of_the_full_run() -> None:
    by_rate = {one["missingness"]: one for one in RESULTS["comparisons"]["held-out"]}
    for row in MEASURED["long"]:
        one = by_rate[row["missingness"]]
        full = {"theirs": one["theirs"], "without": one["ours"], "reachable": one["yardsticks"]["qmdp-rewards"]}
        for column, found in full.items():
            assert row[column]["mean"] == pytest.approx(found["estimate"], abs=1e-9)
            half = row[column]["standard_error"] * stats.t.ppf(0.975, found["n"] - 1)
            assert half == pytest.approx((found["high"] - found["low"]) / 2)
        assert {row[column]["n"] for column in ("theirs", "without", "default", "reachable")} == {
            RESULTS["about"]["draws"]
        }


def test_the_readme_names_the_commands_beside_the_verdicts() -> None:
    text = " ".join(README.split())
    command = RESULTS["about"]["command"].removesuffix(" --out out/paper")
    assert f"3 fail and 8 are undecided ([findings](docs/evidence/findings.md), `{command}`)" in text
    assert re.search(r"`make paper`, \d+ hold, \d+ fail and \d+ are undecided", text)


def test_planning_is_judged_in_the_evidence_as_the_full_run_does() -> None:
    text = (ROOT / "docs" / "evidence" / "planning.md").read_text()
    for horizon, counts in HORIZONS["counts"].items():
        words = [str(counts.get(word, 0)) for word in ("clearly ahead", "level", "clearly behind")]
        assert f"| {int(horizon):,} | {' | '.join(words)} |" in text
    for cell in HORIZONS["cells"]:
        found = cell["reward_per_episode"]["mi-planned"]
        digits = 3 if cell["world"] == "frozen-lake" else 2
        shown_as = f"`{cell['missingness']}` | {found['mean']:.{digits}f} ({found['standard_error']:.{digits}f}) |"
        assert shown_as.replace("-", "−").replace("mcolor−xy", "mcolor-xy") in text


def test_the_findings_name_what_fails_on_fresh_trials() -> None:
    table = FINDINGS[FINDINGS.index("| claim that fails") :].split("\n\n")[0]
    failing = {
        claim.id: finding(claim.id, "episodic", "held-out")
        for claim in CLAIMS
        if finding(claim.id, "episodic", "held-out")["verdict"] == "not supported"
    }
    named = re.findall(r"`([\w-]+)`", table)
    assert sorted(named) == sorted(failing)
    for claim, found in failing.items():
        (line,) = re.findall(rf"^\| .*`{claim}`.*$", table, re.MULTILINE)
        assert cells(line)[-1] == shown(found).removeprefix("not supported: ")


def script_called(name: str) -> Any:
    spec = spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_tables_of_the_frontier_are_those_of_its_run() -> None:
    page = (ROOT / "docs" / "evidence" / "frontier.md").read_text()
    data = json.loads((ROOT / "docs" / "results" / "frontier.json").read_text())
    assert script_called("frontier").filled(page, data) == page
    assert len(re.findall("^<!-- table: ", page, re.MULTILINE)) >= 4
    # A number that was changed by hand would show.
    changed = re.sub(r"(\| `mi-planned` \| )", r"\g<1>9", page, count=1)
    assert changed != page
    assert script_called("frontier").filled(changed, data) == page


@pytest.mark.parametrize("way", ["held-out", "untuned"])
def test_the_tables_of_choosing_are_those_of_the_full_run(way: str) -> None:
    script = script_called("comparisons")
    wanted = script.table(RESULTS["comparisons"][way], world=way == "untuned")
    assert wanted in (ROOT / "docs" / "evidence" / "default.md").read_text()
    assert len(RESULTS["comparisons"][way]) == (18 if way == "held-out" else 12)


def test_all_pages_give_one_figure_for_outcomes_without_planning() -> None:
    docs = ROOT / "docs"
    arrivals = (docs / "evidence" / "arrivals.md").read_text().replace("−", "-")
    row = r"^\| `mcar:([\d.]+)` \| `UNPLANNED` \|[^(]*\(([+-][\d.]+), ([+-][\d.]+)\)"
    told = {}
    for rate, *ends in re.findall(row, arrivals, re.MULTILINE):
        low, high = map(float, ends)
        # With 1,000 trials, an interval reaches 1.962 standard errors to each side.
        told[rate] = f"{abs(low + high) / 2:.1f} ({(high - low) / 2 / 1.962:.1f})"
    assert told == {"0.8": "1.2 (0.1)", "0.95": "2.5 (0.3)"}
    for page in ("evidence/findings.md", "explanation/evidence.md", "how-to/choosing.md"):
        text = (docs / page).read_text()
        assert all(figure in text for figure in told.values()), page
    assert told["0.95"] in (docs / "evidence" / "frontier.md").read_text()
