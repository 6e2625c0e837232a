"""All statements of the appendix: examined on several threads, and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from math import isfinite
from typing import Any

from lacuna import __version__
from lacuna_paper.theory import on_acting, on_imputing, on_means, on_updates  # noqa: F401  they declare the statements
from lacuna_paper.theory.figures import Curves
from lacuna_paper.theory.statement import DECLARED, STANDARD_ERRORS, WORDS, Check, Conclusion, Statement, conclude

LEAST_EFFORT, MOST_EFFORT = 0.01, 10.0
"""With less, a simulation has too few paths for a standard error; with more, it takes hours."""

STATEMENTS = tuple(DECLARED[texts["id"]] for part in WORDS["parts"] for texts in part["statements"])
"""In the order of the appendix."""


def check_effort(effort: float) -> None:
    """Refuse an effort outside the allowed range."""
    if not LEAST_EFFORT <= effort <= MOST_EFFORT:
        raise ValueError(f"effort is {effort}; it must be between {LEAST_EFFORT:g} and {MOST_EFFORT:g}")


def examine(
    statements: tuple[Statement, ...] = STATEMENTS, *, effort: float = 1.0, seed: int = 0, workers: int = 1,
    tell: Callable[[Conclusion], None] = lambda _: None,
) -> list[Conclusion]:  # fmt: skip
    """Simulate statements and conclude, several at a time; the result does not depend on how many.

    Parameters
    ----------
    statements
        All of them unless given.
    effort
        1 is what the page shows; less is faster and coarser, and may leave a status undecided.
    seed
        The same seed gives the same numbers.
    workers
        Threads.
    tell
        Called with each conclusion as it is reached.

    Examples
    --------
    >>> from lacuna_paper.theory.on_updates import fractional_rate
    >>> [conclusion] = examine((fractional_rate,))
    >>> conclusion.status
    'refuted as printed, corrected'
    """
    check_effort(effort)

    def one(statement: Statement) -> Conclusion:
        conclusion = conclude(statement, statement.simulate(effort, seed))
        tell(conclusion)
        return conclusion

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, statements))


def as_data(conclusions: Iterable[Conclusion], curves: Iterable[Curves], *, effort: float, seed: int) -> dict[str, Any]:
    """Return everything the page says as plain data."""
    return {
        "lacuna": __version__,
        "seed": seed,
        "effort": effort,
        "standard_errors": STANDARD_ERRORS,
        "statements": [_conclusion_as_data(conclusion) for conclusion in conclusions],
        "figures": [{"id": one.id, "rows": list(one.rows)} for one in curves],
    }


def _conclusion_as_data(conclusion: Conclusion) -> dict[str, Any]:
    statement = conclusion.statement
    kept = [_check_as_data(check) for check in conclusion.valid]
    for row, check in zip(kept, conclusion.printed, strict=bool(conclusion.printed)):
        row["printed"] = _number(check.predicted)
    texts = ("id", "title", "place", "claim", "quoted", "assumptions", "proof", "broken")
    return {
        **{name: getattr(statement, name) for name in texts},
        "printed": statement.printed.text if statement.printed else None,
        "right": statement.right.text if statement.right else None,
        "status": conclusion.status,
        "noticed": conclusion.noticed,
        "under_the_assumptions": kept,
        "assumption_broken": [_check_as_data(check) for check in conclusion.broken],
    }


def _check_as_data(check: Check) -> dict[str, Any]:
    measured = check.measurement
    return {
        "what": measured.what,
        "case": {name: _number(value) for name, value in measured.case.items()},
        "measured": _number(measured.value),
        "standard_error": _number(measured.error),
        "relation": check.relation,
        "predicted": _number(check.predicted),
        "tolerance": _number(check.tolerance),
        "agreement": check.agreement,
    }


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return float(value) if isfinite(value) else str(float(value))
