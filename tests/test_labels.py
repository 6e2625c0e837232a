"""The label of a mechanism against the definition, written out slowly below."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.missingness import (
    Mechanism,
    RateBy,
    after_actions,
    bursts,
    by_component,
    by_state,
    by_true_state,
    label,
    mcar,
    mfog,
    none,
    parse,
    whole,
)
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import make_world

LAKE = Space((8, 8, 3), ("row", "column", "colour"))


def chance(mechanism: Mechanism, z: int, a: int, row: int, hidden: tuple[int, ...]) -> float:
    """P(pattern) straight from the words: a driver first, then every other component by itself."""
    rates = mechanism.rates[z, a, row]
    if mechanism.whole:
        return float({0: 1 - rates[0], len(hidden): rates[0]}.get(sum(hidden), 0.0))
    if mechanism.driver >= 0 and hidden[mechanism.driver]:
        assert mechanism.fallback is not None
        driver, rates = rates[mechanism.driver], mechanism.fallback[z, a, row].copy()
        rates[mechanism.driver] = driver
    return float(np.prod([rate if lost else 1 - rate for rate, lost in zip(rates, hidden, strict=True)]))


def definition(mechanism: Mechanism) -> str:
    """MCAR, MAR or NMAR by comparing P(m | s) over all pairs of states that agree on what m shows."""
    n_modes, n_entries, n_rows, d = mechanism.rates.shape
    shows = range(n_rows) if mechanism.shows is None else mechanism.shows.tolist()
    constant = True
    for z, a, hidden in product(range(n_modes), range(n_entries), product((0, 1), repeat=d)):
        seen: dict[tuple[int, ...], float] = {}
        everywhere = chance(mechanism, z, a, 0, hidden)
        for row, shown in enumerate(shows):
            p = chance(mechanism, z, a, row, hidden)
            values = mechanism.space.decode(shown) if n_rows > 1 else (0,) * d
            visible = tuple(-1 if lost else value for value, lost in zip(values, hidden, strict=True))
            if abs(seen.setdefault(visible, p) - p) > 1e-12:
                return "NMAR"
            constant &= abs(p - everywhere) <= 1e-12
    one_action = np.allclose(mechanism.rates, mechanism.rates[:, :1], rtol=0, atol=1e-12)
    return "MCAR" if constant and one_action else "MAR"


def two_faced() -> TabularMDP:
    """Four true states that show two: each shown state hides a switch."""
    return TabularMDP.build(
        lambda s, a: [(1.0, (s + 1 + a) % 4, 0.0, False)],
        space=Space((2,), ("face",)), shows=[0, 0, 1, 1], n_actions=2, starts=[{0: 1.0}],
        regions={"fog": np.array([True, False, True, False])}, terminates=False,
    )  # fmt: skip


PAPER = [
    *((f"mcar:{theta}", "MCAR") for theta in (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)),
    ("mcolor:0.1,0.2,0.3", "NMAR"), ("mcolor:0.2,0.4,0.6", "NMAR"),
    ("mcolor-xy:0.1,0.2,0.3", "MAR"), ("mcolor-xy:0.2,0.4,0.6", "MAR"),
    ("mfog:0.5,0.0", "NMAR"), ("mfog:0.25,0.1", "NMAR"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PAPER)
def test_the_papers_settings_have_the_labels_the_paper_gives_them(text: str, expected: str) -> None:
    mechanism = parse(text, make_world("lake"))
    assert mechanism.label == expected == definition(mechanism)
    assert mechanism.by != RateBy.TRUE


def test_the_paper_has_eighteen_settings() -> None:
    assert len(PAPER) == 18


def beyond() -> dict[str, tuple[Mechanism, str]]:
    small = Space((2, 3, 2), ("a", "b", "c"))
    fog = np.arange(12) < 6
    tables = np.zeros((2, 1, 12, 3))
    tables[1, 0, :, 2] = np.repeat([0.1, 0.7], 6)
    drift = np.array([[0.5, 0.5], [0.5, 0.5]])
    driven = tables.copy()
    driven[0, 0, :, 0] = 0.2
    return {
        "none": (none(small), "MCAR"),
        "whole": (whole(small, 0.3), "MCAR"),
        "whole by state": (replace(by_state(small, fog * 0.5), whole=True), "NMAR"),
        "constant bursts": (bursts(small, 0.1, 0.4, 0.9, 0.1), "MCAR"),
        "bursts by component": (bursts(small, 0.1, 0.4, per_component=True), "MCAR"),
        "after actions": (after_actions(small, 2, {1: 0.5}), "MAR"),
        "after actions, all the same": (after_actions(small, 2, {1: 0.5}, 0.5), "MCAR"),
        "driver never hidden": (by_component(small, "a", (0.1, 0.4), affects=("b", "c")), "MAR"),
        "driver hidden by a constant": (by_component(small, "a", (0.1, 0.4), affects=["b"], hide_driver=0.2), "NMAR"),
        "driver hidden by itself": (by_component(small, "a", (0.1, 0.4), affects=["a"]), "NMAR"),
        "driver acts when seen": (
            by_component(small, "a", (0.1, 0.4), hide_driver=0.2, when_hidden=0.3), "MAR"),
        "driver acts when seen, no difference": (
            by_component(small, "a", (0.4, 0.4), hide_driver=0.2, when_hidden=0.3), "MCAR"),
        "fog hides what does not tell of it": (mfog((small, fog), 0.5, 0.0, affects=["c"]), "MAR"),
        "fog hides what tells of it": (mfog((small, fog), 0.5, 0.0), "NMAR"),
        "table that is constant": (by_state(small, np.full(12, 0.2)), "MCAR"),
        "two modes, one of them MAR": (Mechanism(small, tables, RateBy.SHOWN, chain=drift), "MAR"),
        "two modes, driver hidden in the other": (Mechanism(small, driven, RateBy.SHOWN, chain=drift), "MAR"),
        "latent": (by_true_state(two_faced(), (0.1, 0.2, 0.1, 0.2)), "NMAR"),
        "latent fog": (mfog(two_faced(), 0.5, 0.0), "NMAR"),
        "true states, shown value only": (by_true_state(two_faced(), (0.1, 0.1, 0.2, 0.2)), "NMAR"),
        "true states, all alike": (by_true_state(two_faced(), (0.1, 0.1, 0.1, 0.1)), "MCAR"),
    }  # fmt: skip


@pytest.mark.parametrize("case", beyond())
def test_beyond_the_paper(case: str) -> None:
    mechanism, expected = beyond()[case]
    assert mechanism.label == expected == definition(mechanism), mechanism.reason
    assert mechanism.reason


def test_fog_over_lake_that_hides_the_colour_only_is_mar() -> None:
    mechanism = mfog(make_world("lake"), 0.5, 0.0, affects=["colour"])
    assert mechanism.label == "MAR" == definition(mechanism)


def test_a_latent_driver_is_named_as_such() -> None:
    assert "latent" in mfog(two_faced(), 0.5, 0.0).reason
    assert "true states 0 and 1, which show the same" in by_true_state(two_faced(), (0.1, 0.2, 0.1, 0.1)).reason


@st.composite
def mechanisms(draw: st.DrawFn) -> Mechanism:
    """Small tables with few different rates, so that all labels occur."""
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    space = Space(sizes)
    n_true = draw(st.sampled_from([0, 0, 3, 5]))
    n_rows = n_true or space.n_states
    shape = (draw(st.integers(1, 2)), draw(st.sampled_from([1, 3])), n_rows, space.d)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)

    def table() -> NDArray[np.float64]:
        rates = rng.choice([0.0, 0.0, 0.3, 1.0], size=shape)
        # Some of the components look at some of the others only, and some of the slices are alike.
        values = np.stack(np.unravel_index(np.arange(n_rows) % space.n_states, sizes), axis=1)
        for j in range(space.d):
            looks = rng.random(space.d) < 0.4
            index = np.where(looks, values, 0) @ space.layout.strides
            rates[..., j] = rates[..., index % n_rows, j]
        if draw(st.booleans()):
            rates[:] = rates[:1, :1]
        return rates

    rates, driver, is_whole = table(), -1, draw(st.booleans()) and draw(st.booleans())
    options: dict[str, Any] = {}
    if is_whole:
        rates[:] = rates[..., :1]
    elif draw(st.booleans()):
        driver = draw(st.integers(0, space.d - 1))
        options["fallback"] = table()
    if shape[0] > 1:
        options["chain"] = np.full((2, 2), 0.5)
    if n_true:
        options["shows"] = rng.integers(space.n_states, size=n_true)
    by = RateBy.TRUE if n_true else RateBy.SHOWN
    return Mechanism(space, rates, by, driver=driver, whole=is_whole, **options)


@settings(max_examples=300)
@given(mechanisms())
def test_the_label_is_the_definition(mechanism: Mechanism) -> None:
    expected = definition(mechanism)
    found = mechanism.label
    if (found, expected) == ("MAR", "MCAR"):
        # Rates that differ between actions only where they never act: not proven to be MCAR, and not claimed.
        assert mechanism.fallback is not None
    else:
        assert found == expected, mechanism.reason


@settings(max_examples=300)
@given(mechanisms())
def test_beyond_the_limit_no_more_is_claimed_than_holds(mechanism: Mechanism) -> None:
    expected = definition(mechanism)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label, "EXACT_LIMIT", 0)
        found = mechanism.label
    strength = ["NMAR", "MAR", "MCAR"].index
    if mechanism.by == RateBy.SHOWN:
        assert found == expected or (mechanism.fallback is not None and (found, expected) == ("MAR", "MCAR"))
    else:
        assert strength(found) <= strength(expected)


def test_large_spaces_are_judged_without_patterns() -> None:
    large = Space((4,) * 8)
    assert 2**large.d * large.n_states > label.EXACT_LIMIT
    rates = (0.1, 0.2, 0.3, 0.4)
    assert by_component(large, 0, rates, affects=[1, 2]).label == "MAR"
    hidden_too = by_component(large, 0, rates, affects=[1, 2], hide_driver=0.1)
    assert hidden_too.label == "NMAR"
    assert "the loss of x1 depends on the value of x0, which can itself be hidden" in hidden_too.reason
    assert by_component(large, 0, rates, hide_driver=0.1, when_hidden=0.5).label == "MAR"
    assert by_state(large, np.full(large.n_states, 0.3)).label == "MCAR"


def test_many_true_states_are_mar_only_if_proven() -> None:
    space = Space((2,) * 10)
    shows = np.tile(np.arange(space.n_states), 2)
    rates = np.zeros((1, 1, shows.size, 10))
    rates[..., 1] = np.where(shows < 512, 0.1, 0.5)
    assert Mechanism(space, rates, RateBy.TRUE, shows=shows).label == "MAR"
    assert Mechanism(space, rates * 0 + 0.1, RateBy.TRUE, shows=shows).label == "MCAR"
    rates[..., 0] = 0.2
    doubtful = Mechanism(space, rates, RateBy.TRUE, shows=shows)
    assert doubtful.label == "NMAR"
    assert "not proven" in doubtful.reason


def test_a_claim_that_the_rates_contradict_is_refused_with_the_pattern_and_the_states() -> None:
    nmar = parse("mcolor:0.2,0.4,0.6", LAKE)
    with pytest.raises(ValueError, match=r"claims MAR, but its rates make it NMAR: the pattern that hides colour has "
                       r"probability 0.144 in state \(0, 0, 1\) but 0.096 in state \(0, 0, 2\)"):  # fmt: skip
        replace(nmar, claims="MAR")
    with pytest.raises(ValueError, match=r"claims MCAR, but its rates make it MAR: .*pattern that hides nothing"):
        replace(parse("mcolor-xy:0.2,0.4,0.6", LAKE), claims="MCAR")
    with pytest.raises(ValueError, match="claims NMAR, but its rates make it MCAR"):
        replace(mcar(LAKE, 0.4), claims="NMAR")
    with pytest.raises(ValueError, match="latent driver"):
        by_true_state(two_faced(), (0.1, 0.2, 0.1, 0.2), claims="MAR")
    with pytest.raises(ValueError, match="claims 'MNAR'; a claim is one of MCAR, MAR, NMAR"):
        replace(nmar, claims="MNAR")  # type: ignore[arg-type]
    rates = np.zeros((1, 3, 4, 2))
    rates[0, 1, 0, 0] = 0.5
    with pytest.raises(ValueError, match="after action 1: the pattern"):
        Mechanism(Space((2, 2)), rates, RateBy.SHOWN, claims="MAR")


def test_a_claim_may_be_weaker_than_what_holds() -> None:
    assert replace(mcar(LAKE, 0.4), claims="MAR").label == "MCAR"
    assert replace(parse("mcolor-xy:0.2,0.4,0.6", LAKE), claims="MAR").claims == "MAR"
