"""The rules that make a verdict of numbers: regions, several parts at once, one of several, and how often they err."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from lacuna_paper.verdicts import Ask, Basis, OneOf, Region, Sample, Verdict, average, decide, most_wrong_by_chance

ABOVE = Region(0.0)
FIVE = Basis("episodic", "as-published", 5)


def sample(mean: float, spread: float = 1.0, n: int = 5) -> Sample:
    """A sample with exactly this mean and standard deviation."""
    x = np.arange(n) - (n - 1) / 2
    return Sample(mean + spread * x / x.std(ddof=1))


def ask(mean: float, wanted: Region = ABOVE, spread: float = 1.0) -> Ask:
    return Ask(f"{mean}", sample(mean, spread), wanted, "unit")


def verdict(*asked: Ask | OneOf) -> Verdict:
    return decide("claim", FIVE, asked).verdict


@pytest.mark.parametrize(
    ("wanted", "low", "high", "expected"),
    [
        (Region(0.0), 0.1, 9.0, "supported"),
        (Region(0.0), 0.0, 9.0, "undecided"),
        (Region(0.0), -9.0, 0.1, "undecided"),
        (Region(0.0), -9.0, 0.0, "not supported"),
        (Region(-5.0, 5.0), -4.9, 4.9, "supported"),
        (Region(-5.0, 5.0), -5.1, 4.9, "undecided"),
        (Region(-5.0, 5.0), -99.0, 99.0, "undecided"),
        (Region(-5.0, 5.0), 5.0, 6.0, "not supported"),
        (Region(-5.0, 5.0), -7.0, -5.0, "not supported"),
        (Region(high=0.02), 0.0, 0.01, "supported"),
        (Region(high=0.02), 0.03, 0.04, "not supported"),
    ],
)
def test_an_interval_lies_inside_outside_or_across(wanted: Region, low: float, high: float, expected: str) -> None:
    assert wanted.judge(low, high) == expected


def test_all_parts_have_to_hold() -> None:
    assert verdict(ask(3.0), ask(2.0)) == "supported"
    assert verdict(ask(3.0), ask(0.1)) == "undecided"
    assert verdict(ask(3.0), ask(-9.0)) == "not supported"
    assert verdict(ask(3.0, Region(-5.0, 5.0)), ask(9.0, Region(-5.0, 5.0))) == "not supported"


def test_one_part_of_many_that_fails_by_a_little_may_be_chance() -> None:
    # The 95 % interval of -1.3 ± 1.24 excludes 0; at the level for twenty parts it does not.
    assert verdict(ask(-1.3)) == "not supported"
    assert verdict(ask(-1.3), *[ask(9.0)] * 19) == "undecided"
    assert verdict(ask(-4.0), *[ask(9.0)] * 19) == "not supported"


def test_one_of_several_is_enough_if_it_holds_after_correction() -> None:
    def some(*means: float) -> Verdict:
        return verdict(OneOf("some", [ask(mean) for mean in means]))

    assert some(3.0, -9.0) == "supported"
    assert verdict(ask(1.3)) == "supported"
    assert some(1.3, -9.0) == "undecided"
    assert some(-3.0, -9.0) == "not supported"
    assert some(-3.0, -0.1) == "undecided"


def test_the_part_shown_is_the_one_that_decides() -> None:
    finding = decide("claim", FIVE, [ask(9.0), ask(3.0, spread=0.1), ask(5.0, spread=3.0)])
    assert finding.verdict == "supported"
    assert finding.effect == pytest.approx(5.0)
    assert finding.note == "5.0, wanted above 0. All 3 comparisons hold."
    finding = decide("claim", FIVE, [ask(9.0), ask(-9.0), ask(-99.0)])
    assert finding.effect == pytest.approx(-99.0)
    assert finding.note == "-99.0, wanted above 0. 2 of 3 comparisons fail."


def test_what_is_missing_goes_along_with_the_numbers() -> None:
    gap = Sample(np.full(5, np.nan), ("V1 was not run",))
    for broken in (gap - sample(1.0), sample(1.0) - gap, sample(1.0) / gap, average([sample(1.0), gap])):
        assert broken.gaps == ("V1 was not run",)
        finding = decide("claim", FIVE, [Ask("part", broken, ABOVE, "unit"), ask(3.0)])
        assert finding.verdict == "undecided"
        assert finding.effect == pytest.approx(3.0)
        assert "V1 was not run" in finding.note
    assert (gap - gap).gaps == ("V1 was not run",)
    nothing = Ask("part", sample(1.0) / Sample(np.zeros(5)), ABOVE, "unit").answer(0.95)
    assert (nothing.verdict, nothing.effect, nothing.note) == ("undecided", None, "not defined in every trial")


def test_a_refuted_part_refutes_even_if_another_is_missing() -> None:
    gap = Ask("part", Sample(np.full(5, np.nan), ("V1 was not run",)), ABOVE, "unit")
    assert verdict(gap, ask(-9.0)) == "not supported"
    assert verdict(gap, ask(9.0)) == "undecided"


def constant(mean: float) -> Ask:
    return Ask(f"constant {mean}", Sample(np.full(5, mean)), ABOVE, "unit")


@pytest.mark.parametrize("effect", [7.0, -7.0])
def test_a_part_without_spread_never_hides_the_one_that_refutes(effect: float) -> None:
    finding = decide("claim", FIVE, [constant(effect), ask(9.0), ask(-4.0)])
    assert finding.verdict == "not supported"
    assert finding.effect == pytest.approx(-4.0)


def test_a_part_without_spread_is_shown_where_it_decides() -> None:
    only = decide("claim", FIVE, [ask(9.0), constant(7.0)])
    assert only.verdict == "undecided"
    assert only.effect == pytest.approx(7.0)
    assert "of unknown spread" in only.note
    # Inside its region it is farther from failing than a part that may fail, outside it is nearer.
    inside = decide("claim", FIVE, [constant(7.0), ask(9.0), ask(0.1)])
    assert inside.verdict == "undecided"
    assert inside.effect == pytest.approx(0.1)
    outside = decide("claim", FIVE, [constant(-7.0), ask(9.0), ask(0.1)])
    assert outside.verdict == "undecided"
    assert outside.effect == pytest.approx(-7.0)


def test_an_undecided_claim_never_shows_a_part_that_holds() -> None:
    # The part that holds lies closer to its border, in widths of its interval, than the one that is undecided.
    tight, open_ = ask(1.3), Ask("open", sample(0.0, 1.0), Region(-99.0, 0.5), "unit")
    finding = decide("claim", FIVE, [tight, open_])
    assert finding.verdict == "undecided"
    assert finding.effect == pytest.approx(0.0)


def test_verdicts_that_may_be_wrong_by_chance_are_counted() -> None:
    supported, refuted, undecided = (decide("claim", FIVE, [ask(mean)]) for mean in (9.0, -9.0, 0.0))
    assert most_wrong_by_chance([]) == 0
    assert most_wrong_by_chance([undecided] * 7) == 0
    assert most_wrong_by_chance([supported] * 4 + [refuted] * 2 + [undecided]) == pytest.approx(0.2)


def test_wrong_verdicts_are_as_rare_as_they_should_be() -> None:
    """Ten parts: true ones are refuted, and claims with one part on the border supported, in at most 5 % of studies."""
    rng = np.random.default_rng(0)
    studies, n = 500, 5
    wrong = {"refuted": 0, "supported": 0}
    for _ in range(studies):
        parts = rng.normal(size=(10, n))
        wrong["refuted"] += verdict(*(Ask("", Sample(part), ABOVE, "") for part in parts)) == "not supported"
        parts[1:] += 50.0
        wrong["supported"] += verdict(*(Ask("", Sample(part), ABOVE, "") for part in parts)) == "supported"
    # On the border every part errs on this side in 2.5 % of studies, corrected 0.25 % each: 2.5 % in all.
    for count in wrong.values():
        assert abs(count / studies - 0.025) < 4 * np.sqrt(0.025 * 0.975 / studies)


def test_a_region_says_what_it_is() -> None:
    assert str(Region(-5.0, 5.0)) == "within ±5"
    assert str(Region(-inf, 0.02)) == "below 0.02"
