"""Mechanisms: what they refuse, what their tables say, and that the masks follow the tables."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream
from lacuna.missingness import (
    MECHANISMS,
    Mechanism,
    RateBy,
    after_actions,
    bursts,
    by_component,
    by_seen,
    by_state,
    by_true_state,
    mcar,
    mcolor,
    mfog,
    none,
    parse,
    pattern_shares,
    whole,
)
from lacuna.missingness.label import pattern_probabilities, patterns
from lacuna.missingness.mechanism import hide
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.registry import make_world

SPACE = Space((3, 2, 3), ("row", "column", "colour"))
LAKE = make_world("lake")
DRIFT = np.array([[0.8, 0.2], [0.3, 0.7]])


def world(**options: Any) -> TabularMDP:
    """Six true states over two components; the last two are shown alike."""
    return TabularMDP.build(
        lambda s, a: [(1.0, (s + 1 + a) % 6, 0.0, False)],
        space=Space((3, 2), ("row", "colour")), shows=[0, 1, 2, 4, 5, 5], n_actions=2, starts=[{0: 1.0}],
        terminates=False, action_names=("slow", "fast"), **options,
    )  # fmt: skip


def every_mechanism() -> dict[str, Mechanism]:
    """At least one mechanism of each kind, with unequal rates so that a mix-up shows."""
    rng = np.random.default_rng(0)
    table = rng.random((SPACE.n_states, 3))
    return {
        "none": none(SPACE),
        "mcar": mcar(SPACE, 0.4),
        "mcar by component": mcar(SPACE, (0.1, 0.5, 0.9)),
        "mcolor": mcolor(SPACE, (0.2, 0.4, 0.6)),
        "mcolor-xy": mcolor(SPACE, (0.2, 0.4, 0.6), hide_colour=False),
        "by component": by_component(SPACE, "row", (0.0, 0.5, 1.0), affects=["colour"], hide_driver=0.3),
        "only when seen": by_component(
            SPACE, "colour", (0.1, 0.5, 0.9), hide_driver=0.4, when_hidden=0.7),
        "mfog": mfog((SPACE, np.arange(18) < 6), 0.5, 0.1),
        "latent": by_true_state(world(), rng.random((6, 2))),
        "by state": by_state(SPACE, table),
        "whole": whole(SPACE, 0.3),
        "whole by state": replace(by_state(SPACE, table[:, 0]), whole=True),
        "bursts": bursts(SPACE, 0.2, 0.4, 0.9, 0.1),
        "bursts by component": bursts(SPACE, 0.2, 0.4, 0.9, 0.1, per_component=True),
        "bursts at unequal rates": bursts(SPACE, 0.2, 0.4, (0.9, 0.5, 0.7), (0.1, 0.2, 0.0)),
        "unequal bursts": bursts(
            SPACE, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.9, 1, 0.8), (0, 0.1, 0.2), per_component=True),
        "by what is seen": by_seen(SPACE, "colour", 0.4, {0: 0.1, 1: (0.5, 0.6), 2: 0.9}, (0.7, 0.2)),
        "patterns": pattern_shares(SPACE, {"000": 0.3, "101": 0.4, "111": 0.2, "010": 0.1}),
        "after actions, unequal": after_actions(SPACE, 3, {0: (0.8, 0.1, 0.4), 2: 0.2}, (0.5, 0.6, 0.7)),
        "after actions": after_actions(SPACE, 3, {0: 0.8, 2: 0.2}, 0.5),
        "everything": Mechanism(
            SPACE, rng.random((2, 3, 18, 3)), RateBy.SHOWN, DRIFT, 1, rng.random((2, 3, 18, 3)), name="everything"),
    }  # fmt: skip


def masks(mechanism: Mechanism, row: int, action: int, n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Modes and masks of `n` observations in the same row after the same action."""
    stream, mode = Stream(seed, "missingness"), np.zeros(1, dtype=np.int64)
    modes, drawn = np.empty(n, dtype=np.int64), np.empty((n, mechanism.space.d), dtype=np.bool_)
    for t in range(n):
        hide(row, row, action, mode, mechanism.hiding, stream.need(mechanism.n_draws), drawn[t])
        modes[t] = mode[0]
        assert stream.position == (t + 1) * mechanism.n_draws
    return modes, drawn


@pytest.mark.parametrize("kind", every_mechanism())
def test_patterns_come_as_often_as_the_table_says(kind: str) -> None:
    mechanism = every_mechanism()[kind]
    n_modes, n_entries, n_rows, d = mechanism.rates.shape
    n = 4000
    cells = [(row, a) for row in sorted({0, n_rows // 2, n_rows - 1}) for a in range(n_entries)]
    excess = []
    for row, a in cells:
        modes, drawn = masks(mechanism, row, a if a < n_entries - 1 else -1, n, seed=row * 10 + a)
        for z in range(n_modes):
            fallback = None if mechanism.fallback is None else mechanism.fallback[z, a, [row]]
            expected = pattern_probabilities(
                mechanism.rates[z, a, [row]], fallback, mechanism.driver, mechanism.whole
            ).ravel()
            number = drawn[modes == z] @ 2 ** np.arange(d - 1, -1, -1)
            found = np.bincount(number, minlength=2**d)
            error = np.sqrt(number.size * expected * (1 - expected))
            assert found[expected == 0].sum() == 0
            excess.extend(np.abs(found - number.size * expected)[error > 0] / np.maximum(error[error > 0], 1.0))
    # 5.5 standard errors: one in 26 million for each of at most 2,000 comparisons.
    assert max(excess, default=0.0) < 5.5


def test_the_hidden_chain_moves_as_its_matrix_says() -> None:
    modes, _ = masks(bursts(SPACE, 0.2, 0.4), 0, -1, 20_000, seed=1)
    before = np.concatenate([[0], modes[:-1]])
    for z, leave in ((0, 0.2), (1, 0.4)):
        n = int((before == z).sum())
        share = float((modes[before == z] != z).mean())
        assert abs(share - leave) < 5 * np.sqrt(leave * (1 - leave) / n)


def test_bursts_start_outside_and_without_an_end_never_stop() -> None:
    _, never = masks(bursts(SPACE, 0.0, 0.5), 0, -1, 200, seed=0)
    assert not never.any()
    modes, drawn = masks(bursts(SPACE, 0.1, 0.0), 0, -1, 200, seed=0)
    first = int(np.argmax(modes))
    assert drawn[first:].all()
    assert not drawn[:first].any()


def test_bursts_by_component_have_a_chain_each() -> None:
    mechanism = bursts(SPACE, 0.2, 0.4, per_component=True)
    assert mechanism.rates.shape == (8, 1, 1, 3)
    assert mechanism.chain is not None
    # From nothing lost to only the first lost: one enters, two stay.
    assert mechanism.chain[0, 0b100] == pytest.approx(0.2 * 0.8 * 0.8)
    assert mechanism.rates[0b100, 0, 0].tolist() == [1, 0, 0]


def test_a_driver_that_is_hidden_hands_over_to_the_fallback() -> None:
    mechanism = by_component(SPACE, "colour", (1, 1, 1), hide_driver=0.5, when_hidden=0.0)
    _, drawn = masks(mechanism, 0, -1, 200, seed=0)
    assert drawn[:, 2].any()
    assert (drawn[:, 0] == ~drawn[:, 2]).all()
    assert (drawn[:, 1] == ~drawn[:, 2]).all()


def test_whole_hides_all_or_nothing() -> None:
    _, drawn = masks(whole(SPACE, 0.5), 0, -1, 200, seed=0)
    assert set(drawn.sum(axis=1).tolist()) == {0, 3}


def test_mcolor_rates_follow_the_colour() -> None:
    rates = mcolor(SPACE, (0.2, 0.4, 0.6), hide_colour=False).rates[0, 0]
    assert rates[SPACE.encode((1, 1, 2))].tolist() == [0.6, 0.6, 0.0]
    assert mcolor(SPACE, (0.2, 0.4, 0.6)).rates[0, 0, SPACE.encode((1, 1, 0))].tolist() == [0.2, 0.2, 0.2]


def test_fog_over_lake_goes_by_position_whatever_the_colour() -> None:
    mechanism = mfog(LAKE, 0.5, 0.25)
    assert mechanism.by == RateBy.SHOWN
    rates = mechanism.rates[0, 0].reshape(8, 8, 3, 3)
    inside = np.zeros((8, 8), dtype=np.bool_)
    inside[0:3, 5:8] = True
    assert (rates[inside] == 0.5).all()
    assert (rates[~inside] == 0.25).all()


def test_fog_counts_what_is_never_shown_as_outside() -> None:
    # Inside is row 0 with colour 1; the combination (1, 1) is never shown. Two components are needed to tell.
    inside = np.array([False, True, False, False, False, False])
    rates = mfog(world(regions={"fog": inside}), 0.5, 0.1).rates[0, 0, :, 0]
    assert rates.tolist() == [0.1, 0.5, 0.1, 0.1, 0.1, 0.1]


def test_fog_that_is_not_shown_goes_by_the_true_state() -> None:
    mechanism = mfog(world(regions={"fog": np.array([False, False, False, False, False, True])}), 0.5, 0.1)
    assert mechanism.by == RateBy.TRUE
    assert mechanism.rates[0, 0, :, 0].tolist() == [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]


def test_arrays_are_copied_and_cannot_be_written_to() -> None:
    table = np.full((1, 1, 1, 3), 0.5)
    mechanism = Mechanism(SPACE, table)
    table[:] = 0.9
    assert (mechanism.rates == 0.5).all()
    for clone in (mechanism, copy.deepcopy(mechanism), bursts(SPACE, 0.1, 0.2)):
        for array in (clone.rates, clone.hiding.rates, clone.hiding.chain, clone.hiding.fallback):
            assert not array.flags.writeable


@pytest.mark.parametrize("text", [
    "none", "mcar:0.4", "mcar:0.1,0.2,0.3", "mcolor:0.2,0.4,0.6", "mcolor-xy:0.1,0.2,0.3", "mfog:0.5,0.0", "whole:0.3",
    "bursts:0.1,0.5", "bursts:0.1,0.5,0.9", "bursts:0.1,0.5,1.0,0.2", "bursts-each:0.1,0.5,0.9",
    "after:0=0.5,3=1.0,else=0.1", "after:0=0.5/0.4/0.3,else=0.1", "bursts:0.1,0.5,0.9/0.8/0.7",
    "bursts:0.1,0.5,1.0,0.2/0.1/0.0", "bursts-each:0.1/0.2/0.3,0.5", "bursts-each:0.1,0.5/0.6/0.7,1.0,0.1",
    "by:colour=0.0,0=0.2,1=0.4/0.5,2=0.6,else=0.3", "by:row=0.25,5=1.0,else=0.1/0.2",
    "patterns:000=0.5,011=0.25,111=0.25", "patterns:111=1.0",
])  # fmt: skip
def test_a_name_is_the_text_that_makes_the_mechanism(text: str) -> None:
    mechanism = parse(text, LAKE)
    assert mechanism.name == text
    again = parse(mechanism.name, LAKE)
    assert (again.rates == mechanism.rates).all()
    assert again.hiding.chain.tolist() == mechanism.hiding.chain.tolist()


def test_every_mechanism_with_a_text_says_how_it_is_written() -> None:
    assert len(MECHANISMS) == 13
    for name, kind in MECHANISMS.items():
        assert kind.written.startswith(name)
        assert kind.about


def test_a_component_of_any_name_can_drive_others() -> None:
    for name in ("a,b", "x=1", "50%", " lead", "else", "0", "größe"):
        space = Space((2, 2), ("other", name))
        made = by_seen(space, name, 0.5, {0: 0.1, 1: 0.9}, 0.3)
        assert np.array_equal(parse(made.name, space).rates, made.rates), name
    assert parse("by:1=0.5,0=0.1,else=0.3", Space((2, 2))).driver == 1


def test_actions_can_be_given_by_name() -> None:
    assert parse("after: fast=0.5", world()).name == "after:1=0.5,else=0.0"
    assert parse("after:1=0.5", 2, n_actions=3).rates.shape == (1, 4, 1, 2)


@pytest.mark.parametrize(("text", "where", "sentence"), [
    ("mcra:0.4", SPACE, r"no mechanism is called 'mcra' \(did you mean 'mcar'\?\); there are none, mcar"),
    ("xyzzy", SPACE, r"no mechanism is called 'xyzzy'; there are none, mcar, whole"),
    ("", SPACE, r"no mechanism is called ''"),
    ("none:1", SPACE, r"'none:1' is not a mechanism: it has 1 value. Write none"),
    ("mcar", SPACE, r"'mcar' is not a mechanism: it has 0 values. Write mcar:THETA"),
    ("mcar:", SPACE, r"'' is not a number"),
    ("mcar:x", SPACE, r"'x' is not a number"),
    ("mcar:1.5", SPACE, r"theta of mcar is 1.5; it must be a number between 0 and 1"),
    ("mcar:nan", SPACE, r"theta of mcar is nan; it must be a number between 0 and 1"),
    ("mcar:0.1,0.2", SPACE, r"mcar has 2 rates for 3 components \('row', 'column', 'colour'\); give 1 or 3"),
    ("mcolor:0.1,0.2", SPACE, r"mcolor:0.1,0.2 has 2 rates; colour has 3 values"),
    ("mcolor:0.1,0.2,0.3", Space((2, 2)), r"mcolor needs a component called 'colour'; there are x0, x1"),
    ("mfog:0.5,0.0", SPACE, r"mfog needs a world with a region called 'fog', not Space"),
    ("mfog:0.5", LAKE, r"it has 1 value. Write mfog:INSIDE,OUTSIDE"),
    ("mfog:0.5,-1", LAKE, r"outside of mfog is -1.0; it must be a number between 0 and 1"),
    ("mfog:0.5,0", world(), r"mfog needs a region called 'fog'; world has none"),
    ("whole:0.1,0.2", SPACE, r"it has 2 values. Write whole:THETA"),
    ("bursts:0.1", SPACE, r"it has 1 value. Write bursts:ENTER"),
    ("bursts:0.1,2", SPACE, r"leave of bursts is 2.0; it must be a number between 0 and 1"),
    ("bursts-each:0.1,0.2", 9, r"bursts-each has 9 components; a chain for each needs 2\^d modes, so at most 8"),
    ("bursts:0.1/0.2/0.3,0.5", SPACE, r"enter of bursts is \(0.1, 0.2, 0.3\); one chain needs one number"),
    ("bursts:0.1,0.5,0.9/1", SPACE, r"inside of bursts has 2 rates for 3 components"),
    ("bursts-each:0.1/0.2,0.5", SPACE, r"enter of bursts-each has 2 rates for 3 components"),
    ("by", SPACE, r"it names no component. Write by:COMPONENT=RATE"),
    ("by:colour", SPACE, r"'colour' has no =. Write by:"),
    ("by:depth=0", SPACE, r"no component is called 'depth'"),
    ("by:colour=0,0=0.1,0=0.2", SPACE, r"'0' is given twice"),
    ("by:colour=0,red=0.1", SPACE, r"'red' is not a value of colour; values are whole numbers"),
    ("by:colour=0,3=0.1", SPACE, r"by colour has a rate for the value 3; it has values 0 to 2"),
    ("by:colour=2", SPACE, r"the rate of colour itself is 2.0; it must be a number between 0 and 1"),
    ("by:colour=0,0=0.1/0.2/0.3", SPACE, r"for the value 0 has 3 rates for 2 components \('row', 'column'\)"),
    ("by:0=0.1", 1, r"by x0 needs another component to hide"),
    ("patterns", SPACE, r"it names no pattern. Write patterns:"),
    ("patterns:01=1", SPACE, r"the pattern '01' must have 3 digits, 1 for hidden and 0 for seen"),
    ("patterns:012=1", SPACE, r"the pattern '012' must have 3 digits"),
    ("patterns:011=0.5", SPACE, r"the shares of the patterns add up to 0.5, not 1"),
    ("patterns:011=0.5,011=0.5", SPACE, r"'011' is given twice"),
    ("patterns:011=2,000=-1", SPACE, r"the share of 000 is -1.0; it must be a number between 0 and 1"),
    ("after:0=0.1/0.2/0.3", world(), r"action 0 of after has 3 rates for 2 components"),
    ("after:0=0.5", SPACE, r"it needs to know how many actions there are"),
    ("after", LAKE, r"it names no action"),
    ("after:0", LAKE, r"'0' has no rate"),
    ("after:jump=0.5", world(), r"no action is called 'jump'; there are slow, fast"),
    ("after:9=0.5", world(), r"after has a rate for action 9; there are actions 0 to 1"),
    ("after:0=2", world(), r"action 0 of after is 2.0; it must be a number between 0 and 1"),
    ("mcar:0.4", 0, r"a mechanism is for a Space, a TabularMDP or a number of components from 1 to 1000000, not 0"),
])  # fmt: skip
def test_a_text_that_is_no_mechanism_is_refused_with_a_sentence(text: str, where: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse(text, where)


ONE = np.full((1, 1, 1, 3), 0.5)
TWO = np.full((2, 1, 1, 3), 0.5)


@pytest.mark.parametrize(("arguments", "sentence"), [
    ({"rates": ONE + 1}, r"rates\[0, 0, 0, 0\] of mechanism is 1.5; a rate must be between 0 and 1"),
    ({"rates": ONE * np.nan}, r"rates\[0, 0, 0, 0\] of mechanism is nan"),
    ({"rates": ONE[0]}, r"rates of mechanism has shape \(1, 1, 3\); it must be \[modes, actions, rows, components\]"),
    ({"rates": ONE[..., :2]}, r"with 1 rows \(by CONSTANT state\) and 3 components"),
    ({"rates": ONE, "by": RateBy.SHOWN}, r"with 18 rows \(by SHOWN state\)"),
    ({"rates": ONE[:0]}, r"has shape \(0, 1, 1, 3\)"),
    ({"rates": ONE, "by": RateBy.TRUE}, r"go by TRUE state and need `shows`"),
    ({"rates": ONE, "shows": [0]}, r"go by CONSTANT state and have no use for `shows`"),
    ({"rates": ONE, "by": RateBy.TRUE, "shows": [18]}, r"true state 0 of mechanism shows 18; the space has"),
    ({"rates": ONE, "by": RateBy.TRUE, "shows": [[0]]}, r"shows of mechanism has shape \(1, 1\)"),
    ({"rates": TWO}, r"has rates for 2 modes but no chain"),
    ({"rates": TWO, "chain": np.eye(3)}, r"chain of mechanism has shape \(3, 3\); it must be \(2, 2\)"),
    ({"rates": TWO, "chain": [[0.5, 0.6], [0, 1]]}, r"row 0 of the chain of mechanism is \[0.5, 0.6\]"),
    ({"rates": TWO, "chain": [[0, 1], [-1, 2]]}, r"row 1 of the chain"),
    ({"rates": ONE, "driver": 3, "fallback": ONE}, r"driver of mechanism is 3; it must be -1 \(none\) to 2"),
    ({"rates": ONE, "driver": 1}, r"needs a driver and a fallback, or neither"),
    ({"rates": ONE, "fallback": ONE}, r"needs a driver and a fallback, or neither"),
    ({"rates": ONE, "driver": 0, "fallback": TWO}, r"fallback of mechanism has shape \(2, 1, 1, 3\), its"),
    ({"rates": ONE, "driver": 0, "fallback": -ONE}, r"fallback\[0, 0, 0, 0\] of mechanism is -0.5"),
    ({"rates": ONE, "driver": 0, "fallback": ONE, "whole": True}, r"all or nothing, so it cannot have a driver"),
    ({"rates": ONE * [1, 1, 0], "whole": True}, r"all or nothing, so every component must have the same rate"),
])  # fmt: skip
def test_arrays_that_are_no_mechanism_are_refused_with_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Mechanism(SPACE, **arguments)


@pytest.mark.parametrize(("make", "sentence"), [
    (lambda: by_component(SPACE, "depth", (0.1,)), r"no component is called 'depth'; there are row, column, colour"),
    (lambda: by_component(SPACE, "row", (0.1, 0.2, 0.3), affects=[7]), r"component 7 does not exist"),
    (lambda: by_component(SPACE, "row", (0.1,)), r"by-row has 1 rates; row has 3 values"),
    (lambda: by_component(SPACE, "row", (0.1, 0.2, 0.3), hide_driver=0.5), r"hides row by its own value already"),
    (lambda: by_component(SPACE, "row", (0.1, 0.2, 0.3), affects=["row"], when_hidden=0.1),
     r"row cannot be among the affected"),
    (lambda: by_component(SPACE, "row", (0.1, 0.2, 0.3), when_hidden=2), r"when_hidden of by-row is 2; it must be"),
    (lambda: by_state(SPACE, np.zeros(7)), r"the table of by-state has shape \(7,\); it must be \(18,\) or \(18, 3\)"),
    (lambda: by_state(SPACE, np.full(18, 3.0)), r"rates\[0, 0, 0, 0\] of by-state is 3.0"),
    (lambda: by_true_state(world(), np.zeros(7)), r"must be \(6,\) or \(6, 2\): the true states of world"),
    (lambda: by_true_state(SPACE, np.zeros(7)), r"needs a TabularMDP"),  # type: ignore[arg-type]
    (lambda: mfog((SPACE, [True]), 0.1, 0.2), r"the region of mfog has shape \(1,\); it needs one entry for 18"),
    (lambda: mcar(SPACE, [[0.1]]), r"theta of mcar must be a number or a list of numbers"),  # type: ignore[list-item]
    (lambda: whole(SPACE, "much"), r"theta of whole is 'much'; it must be a number"),  # type: ignore[arg-type]
    (lambda: by_component(Space((1000,) * 4), 0, [0.1] * 1000), r"a table of 1000000000000 states by 4 comp"),
])  # fmt: skip
def test_wrong_arguments_are_refused_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_patterns_are_all_of_them_and_their_probabilities_add_to_one() -> None:
    assert patterns(2).tolist() == [[False, False], [False, True], [True, False], [True, True]]
    for mechanism in every_mechanism().values():
        fallback = None if mechanism.fallback is None else mechanism.fallback[0, 0]
        table = pattern_probabilities(mechanism.rates[0, 0], fallback, mechanism.driver, mechanism.whole)
        np.testing.assert_allclose(table.sum(axis=0), 1.0, rtol=0, atol=1e-12)
