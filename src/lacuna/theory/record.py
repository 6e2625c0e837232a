"""Judgements as plain data: what `theory.json` holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from math import isfinite
from typing import Any

from lacuna import __version__
from lacuna.theory.curves import Curves
from lacuna.theory.notation import to_text
from lacuna.theory.statement import STANDARD_ERRORS, Comparison, Formula, Judgement


def as_data(judgements: Iterable[Judgement], curves: Iterable[Curves], *, effort: float, seed: int) -> dict[str, Any]:
    """Everything the page says, for programs."""
    return {
        "lacuna": __version__,
        "seed": seed,
        "effort": effort,
        "standard_errors": STANDARD_ERRORS,
        "statements": [_judgement(judgement) for judgement in judgements],
        "figures": [{"id": one.id, "title": one.title, "rows": list(one.rows)} for one in curves],
    }


def _judgement(judgement: Judgement) -> dict[str, Any]:
    statement = judgement.statement
    kept = judgement.right or judgement.printed
    printed = {id(one.measurement): one for one in judgement.printed}
    return {
        "id": statement.id,
        "title": statement.title,
        "place": statement.place,
        "claim": statement.claim,
        "quoted": statement.quoted,
        "assumptions": list(statement.assumptions),
        "printed": _formula(statement.printed),
        "right": _formula(statement.right),
        "proof": list(statement.proof),
        "broken": statement.broken,
        "verdict": judgement.verdict,
        "breaks": judgement.breaks,
        "under_the_assumptions": [
            _comparison(one)
            | ({"printed": _number(printed[id(one.measurement)].predicted)} if judgement.printed else {})
            for one in kept
        ],
        "assumption_broken": [_comparison(one) for one in judgement.broken],
    }


def _formula(formula: Formula | None) -> str | None:
    return None if formula is None else to_text(formula.text)


def _comparison(comparison: Comparison) -> dict[str, Any]:
    measurement = asdict(comparison.measurement)
    return {
        "what": measurement["what"],
        "case": {name: _number(value) for name, value in measurement["case"].items()},
        "measured": _number(measurement["value"]),
        "standard_error": _number(measurement["error"]),
        "relation": comparison.relation,
        "predicted": _number(comparison.predicted),
        "tolerance": _number(comparison.tolerance),
        "outcome": comparison.outcome,
    }


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return float(value) if isfinite(value) else str(float(value))
