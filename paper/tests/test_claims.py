"""Every claim can be found true, false and undecided, and nothing but the runs decides which."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import stats

from claims_tables import MADE_FALSE, MCAR, THETAS, Figures, as_the_paper_says, frame, row, table
from lacuna.study.selection import Draw
from lacuna.study.statistics import mean_interval
from lacuna.study.store import SCHEMA
from lacuna_paper.claims import CLAIMS, judge
from lacuna_paper.evidence import V1, V2, Evidence, Reading, Selection, Shown
from lacuna_paper.verdicts import Finding, decide

NAMES = [
    "mcar-low-theta-similar", "mcar-mi-best", "mcar-mi-robust", "mcar-conservative-slower",
    "mcar-baselines-reward-close", "mcar-baselines-river-path-worse", "mcar-v2-over-v1", "mcar-random-bad",
    "mcar-si-collapses", "mcar-si-slower", "all-worsen-with-theta", "mcar-missing-state-u", "mcolor-mi-best",
    "mcolor-gap-grows", "mcolor-nmar-slower", "mcolor-missing-state-bad", "mcolor-conservative-faster",
    "mfog-both-mi-best", "mfog-only-missing-state-par", "mfog-only-conservative-ok",
    "mfog-only-synthetic-harmful", "k-diminishing", "mixing-no-effect", "stay-no-effect",
]  # fmt: skip
DRAWS = tuple(Draw(tuple(range(5 * i, 5 * i + 5)), tuple(range(1000 + 2 * i, 1002 + 2 * i))) for i in range(5))
FRESH = range(1000, 1010)


def both_kinds_of_trials(world: Any, **options: Any) -> pl.DataFrame:
    tuning = [table(world, draw.tuning, seed=10 * i, **options) for i, draw in enumerate(DRAWS)]
    return pl.concat([*tuning, table(world, FRESH, seed=1, **options)])


def found(
    runs: pl.DataFrame, reading: Reading = "episodic", selection: Selection = "as-published"
) -> dict[str, Finding]:
    return {finding.claim: finding for finding in judge(runs, reading=reading, selection=selection, draws=DRAWS)}


def found_one(name: str, runs: pl.DataFrame, selection: Selection = "as-published") -> Finding:
    claim = next(claim for claim in CLAIMS if claim.id == name)
    seen = Evidence.of(runs, "episodic", selection, DRAWS)
    return decide(name, seen.basis, claim.questions(seen))


@pytest.fixture(scope="module")
def true_runs() -> pl.DataFrame:
    return both_kinds_of_trials(as_the_paper_says())


def test_the_claims_are_those_of_the_specification_in_its_order() -> None:
    assert [claim.id for claim in CLAIMS] == NAMES
    assert set(MADE_FALSE) == set(NAMES)
    figures = {"mcar-theta", "mcar-time", "mcolor", "mfog", "choosing-k", "mixing", "stay"}
    for claim in CLAIMS:
        assert claim.figure in figures
        assert all(len(words) > 10 for words in (claim.text, claim.compared, claim.threshold, claim.section))


@pytest.mark.parametrize("selection", ["as-published", "held-out"])
def test_claims_that_are_true_are_supported(selection: Selection, true_runs: pl.DataFrame) -> None:
    findings = found(true_runs, selection=selection)
    assert list(findings) == NAMES
    for finding in findings.values():
        assert finding.verdict == "supported", finding
        assert finding.basis.trials == (5 if selection == "as-published" else 10)
        assert finding.effect is not None
        assert finding.low is not None
        assert finding.high is not None
        assert finding.low < finding.effect < finding.high
        assert {part.verdict for part in finding.parts} == {"supported"}


@pytest.mark.parametrize("name", NAMES)
def test_a_claim_that_is_false_is_not_supported(name: str) -> None:
    world = as_the_paper_says()
    MADE_FALSE[name](world)
    runs = both_kinds_of_trials(world)
    selections: tuple[Selection, ...] = ("as-published", "held-out")
    for selection in selections:
        finding = found_one(name, runs, selection)
        assert finding.verdict == "not supported", finding
        assert "not supported" in {part.verdict for part in finding.parts}


def test_claims_that_drown_in_noise_are_undecided() -> None:
    for finding in found(table(as_the_paper_says(), noise=300.0)).values():
        assert finding.verdict == "undecided", finding
        assert finding.effect is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_false_claim_that_drowns_in_noise_is_undecided(name: str) -> None:
    world = as_the_paper_says()
    MADE_FALSE[name](world)
    finding = found_one(name, table(world, noise=1000.0))
    assert finding.verdict == "undecided", finding


def test_the_order_of_runs_does_not_matter(true_runs: pl.DataFrame) -> None:
    shuffled = true_runs.sample(fraction=1.0, shuffle=True, seed=4)
    for selection in ("as-published", "held-out"):
        assert found(shuffled, selection=selection) == found(true_runs, selection=selection)


def test_both_readings_in_one_table_are_kept_apart(true_runs: pl.DataFrame) -> None:
    world = as_the_paper_says()
    MADE_FALSE["mcar-v2-over-v1"](world)
    both = pl.concat([true_runs, table(world, continuing=True)])
    assert found(both) == found(true_runs)
    other = found(both, reading="continuing")
    assert other["mcar-v2-over-v1"].verdict == "not supported"
    assert other["mcar-v2-over-v1"].basis.reading == "continuing"
    assert other["mcolor-mi-best"].verdict == "supported"


# --- what is missing -----------------------------------------------------------------------------------------------


def test_an_empty_table_leaves_everything_undecided_and_says_why() -> None:
    for finding in found(pl.DataFrame(schema=SCHEMA)).values():
        assert (finding.verdict, finding.effect, finding.low, finding.high) == ("undecided", None, None, None)
        assert "was not run" in finding.note or "no setting" in finding.note or "no θ" in finding.note


@pytest.mark.parametrize("name", NAMES)
def test_a_method_that_is_missing_leaves_its_claims_undecided(
    name: str, true_runs: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Shown] = []
    plain = Evidence.sample

    def spy(seen: Evidence, shown: Shown, *rest: str) -> Any:
        asked.append(shown)
        return plain(seen, shown, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Evidence, "sample", spy)
        claim = next(claim for claim in CLAIMS if claim.id == name)
        claim.questions(Evidence.of(true_runs))
    assert asked
    for shown in dict.fromkeys(asked):
        gone = (
            (pl.col("method") == shown.method)
            & pl.col("K").eq_missing(shown.K)
            & (pl.col("p_shuffle") == shown.p_shuffle)
        )
        finding = found_one(name, true_runs.filter(~gone))
        assert finding.verdict == "undecided", finding
        assert "Not all could be compared" in finding.note or finding.effect is None


def test_a_trial_that_is_missing_leaves_the_method_out(true_runs: pl.DataFrame) -> None:
    here = (pl.col("missingness") == "mcar:0.4") & (pl.col("method") == "last-observed")
    finding = found(true_runs.filter(~(here & (pl.col("trial") == 3))))["mcar-v2-over-v1"]
    assert finding.verdict == "undecided"
    assert "Last observed (V2) lacks trials under mcar:0.4" in finding.parts[0].note
    # Held out, every draw needs its fresh trials, and its tuning trials where there is something to choose.
    two_settings = pl.concat([true_runs, true_runs.with_columns(alpha=pl.lit(1.0))])
    for runs, trial, verdict in (
        (true_runs, 1003, "undecided"),
        (true_runs, 8, "supported"),
        (two_settings, 1003, "undecided"),
        (two_settings, 8, "undecided"),
    ):
        finding = found(runs.filter(~(here & (pl.col("trial") == trial))), selection="held-out")["mcar-v2-over-v1"]
        assert finding.verdict == verdict, (trial, finding.note)


def test_trials_without_any_spread_decide_nothing() -> None:
    """What a trial does to all methods alike cancels out of every difference, up to rounding."""
    for finding in found(table(as_the_paper_says(), noise=0.0)).values():
        assert finding.verdict == "undecided", finding
        assert {part.note for part in finding.parts} == {"the same in every trial, so of unknown spread"}


def test_a_single_trial_decides_nothing() -> None:
    findings = judge(table(as_the_paper_says(), [0]), draws=[Draw((0,), (1000,))])
    assert {finding.verdict for finding in findings} == {"undecided"}


# --- what is chosen, and what counts -------------------------------------------------------------------------------


def test_a_stuck_run_never_looks_good(true_runs: pl.DataFrame) -> None:
    """V2 completes splendid episodes, then spends most of its steps in one that never ends."""
    stuck = pl.col("method") == "last-observed"
    runs = true_runs.with_columns(
        episodes=pl.when(stuck).then(20).otherwise("episodes"),
        mean_total_reward=pl.when(stuck).then(pl.col("mean_total_reward") + 10.0).otherwise("mean_total_reward"),
        open_steps=pl.when(stuck).then(49_000).otherwise("open_steps"),
        open_reward=pl.when(stuck).then(-49_000.0).otherwise("open_reward"),
    )
    assert found(runs)["mcar-v2-over-v1"].verdict == "not supported"


def test_held_out_verdicts_look_at_fresh_trials_only(true_runs: pl.DataFrame) -> None:
    """A setting that was lucky on the tuning trials flatters V1 as published, and lets it down on fresh ones."""
    lucky = as_the_paper_says()
    for key in lucky:
        lucky[key] = lucky[key].plus(reward=25.0 if key[1] == V1 else -25.0)
    unlucky = as_the_paper_says()
    runs = pl.concat([true_runs, table(lucky, range(25), alpha=1.0), table(unlucky, FRESH, alpha=1.0, seed=1)])
    assert found(runs)["mcar-v2-over-v1"].verdict == "not supported"
    assert found(runs, selection="held-out")["mcar-v2-over-v1"].verdict == "supported"


def one_method(
    shown: Shown, means: dict[float, float], draws: Sequence[Draw], spread: float, seed: int
) -> pl.DataFrame:
    """Runs of a method under one kind of missingness at several settings, independent in every trial."""
    rng = np.random.default_rng(seed)
    trials = [trial for draw in draws for part in draw for trial in part]
    rows = [
        row(("mcar:0.4", shown, False, 0.0), Figures(mean), trial, spread * rng.normal(), np.zeros(5),
            continuing=False, alpha=alpha)
        for alpha, mean in means.items()
        for trial in trials
    ]  # fmt: skip
    return frame(rows)


def test_held_out_there_is_a_number_per_draw_the_mean_of_what_that_draw_chose() -> None:
    runs = one_method(V1, {0.1: 50.0, 1.0: 50.0}, DRAWS, 5.0, seed=3)
    seen = Evidence.of(runs, "episodic", "held-out", DRAWS)
    values = seen.sample(V1, "mcar:0.4").values
    assert values.shape == (len(DRAWS),) == (seen.size,)
    for value, draw, chosen in zip(values, DRAWS, seen.choice.sort("draw").iter_rows(named=True), strict=True):
        means = {
            alpha: runs.filter(pl.col("trial").is_in(draw.tuning), alpha=alpha)["mean_total_reward"].mean()
            for alpha in (0.1, 1.0)
        }
        assert chosen["alpha"] == max(means, key=lambda alpha: cast(float, means[alpha]))
        fresh = runs.filter(pl.col("trial").is_in(draw.fresh), alpha=chosen["alpha"])
        assert value == pytest.approx(fresh["mean_total_reward"].mean())
    # Both settings were chosen by some draw: the numbers hold the variance of choosing.
    assert seen.choice["alpha"].n_unique() == 2


def test_intervals_over_draws_cover_the_choice_and_intervals_over_fresh_trials_do_not() -> None:
    """Two settings, one 3 worse, that five noisy trials often confuse: what the procedure earns in the mean is between.

    The interval over draws holds that mean as often as it says. The interval over as many fresh trials of one draw's
    choice is about the setting that was chosen, and misses it far more often.
    """
    good, bad, spread, studies = 50.0, 47.0, 8.0, 150
    draws = [Draw(tuple(range(5 * i, 5 * i + 5)), tuple(range(1000 + 40 * i, 1040 + 40 * i))) for i in range(8)]
    confused = float(stats.norm.cdf(-(good - bad) / (spread * np.sqrt(2 / 5))))
    expected = good - (good - bad) * confused

    def holds(values: NDArray[np.float64]) -> bool:
        _, low, high, _ = mean_interval(values)
        return low is not None and high is not None and low < expected < high

    over_draws = over_fresh = 0
    for seed in range(studies):
        runs = one_method(V1, {0.1: good, 1.0: bad}, draws, spread, seed)
        seen = Evidence.of(runs, "episodic", "held-out", draws)
        over_draws += holds(seen.sample(V1, "mcar:0.4").values)
        first = seen.choice.filter(draw=0)["alpha"].item()
        over_fresh += holds(runs.filter(pl.col("trial") >= 1000, alpha=first)["mean_total_reward"].to_numpy())
    error = np.sqrt(0.95 * 0.05 / studies)
    assert over_draws / studies > 0.95 - 3 * error
    assert over_fresh / studies < 0.6


def test_the_trend_claim_looks_at_every_rate(true_runs: pl.DataFrame) -> None:
    """Ends that fall do not hide a method that rises on the way between them."""
    finding = found(true_runs)["all-worsen-with-theta"]
    theta = np.array(THETAS)
    v2 = next(part for part in finding.parts if part.label.startswith("Last observed (V2)"))
    assert v2.effect == pytest.approx(0.1 * np.polyfit(theta, 88.0 - 18.0 * theta, 1)[0], abs=0.02)
    rising = as_the_paper_says()
    for name in MCAR[6:-1]:
        rising[name, V2, False, 0.0] = rising[name, V2, False, 0.0].plus(reward=60.0)
    found_now = found_one("all-worsen-with-theta", both_kinds_of_trials(rising))
    assert found_now.verdict == "not supported"


def test_runs_of_another_world_or_vote_are_left_out(true_runs: pl.DataFrame) -> None:
    others = [
        true_runs.with_columns(mean_total_reward=pl.lit(99.0), **{name: pl.lit(value)})
        for name, value in (
            ("world", "taxi"),
            ("parameters", "wind=0.5"),
            ("parameters", "stay=True, wind=0.5"),
            ("vote", "average"),
            ("update", "exact-rate"),
        )
    ]
    assert found(pl.concat([true_runs, *others])) == found(true_runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda runs: judge(runs, reading=cast(Any, "other")), "reading is 'other'"),
        (lambda runs: judge(runs, selection=cast(Any, "other")), "selection is 'other'"),
        (lambda runs: judge(runs.drop("idle_share")), "no column idle_share"),
        (lambda runs: judge(pl.concat([runs, runs.with_columns(steps=pl.lit(7, pl.Int64))])), "different lengths"),
    ],
)
def test_a_table_that_cannot_be_judged_is_refused(
    change: Callable[[pl.DataFrame], object], message: str, true_runs: pl.DataFrame
) -> None:
    with pytest.raises(ValueError, match=message):
        change(true_runs)


def test_findings_are_plain_data(true_runs: pl.DataFrame) -> None:
    for finding in found(true_runs).values():
        data = json.loads(json.dumps(finding.as_dict(), allow_nan=False))
        assert data["claim"] == finding.claim
        assert len(data["parts"]) == len(finding.parts)
        assert set(data["parts"][0]) == {"label", "effect", "low", "high", "unit", "wanted", "verdict", "note"}
