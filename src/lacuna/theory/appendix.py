"""All statements of the appendix, examined on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from lacuna.theory import on_imputed_means, on_imputing, on_means, on_recursion, on_rules, on_scenarios, on_updates
from lacuna.theory.statement import Judgement, Statement, judge

PARTS: dict[str, tuple[str, tuple[Statement, ...]]] = {
    "imputing": ("Learning the transitions", (*on_imputing.STATEMENTS, *on_recursion.STATEMENTS)),
    "means": ("Learning the rewards", (*on_means.STATEMENTS, *on_imputed_means.STATEMENTS)),
    "acting": ("Acting", (*on_rules.STATEMENTS, *on_scenarios.STATEMENTS)),
    "updates": ("The fractional Q update", on_updates.STATEMENTS),
}
"""The statements by part of the appendix, in its order."""

STATEMENTS: tuple[Statement, ...] = tuple(statement for _, statements in PARTS.values() for statement in statements)


LEAST_EFFORT, MOST_EFFORT = 0.01, 10.0
"""With less, a simulation has too few paths for a standard error; with more, it takes hours."""


def check_effort(effort: float) -> None:
    """Refuse a size of the simulations that cannot be."""
    if not LEAST_EFFORT <= effort <= MOST_EFFORT:
        raise ValueError(f"effort is {effort}; it must be between {LEAST_EFFORT:g} and {MOST_EFFORT:g}")


def examine(
    statements: tuple[Statement, ...] = STATEMENTS, *, effort: float = 1.0, seed: int = 0, workers: int = 1,
    tell: Callable[[Judgement], None] = lambda _: None,
) -> list[Judgement]:  # fmt: skip
    """Simulate and judge statements, several at a time; the result does not depend on how many.

    Parameters
    ----------
    statements
        All of them unless given.
    effort
        1 is what the page shows; less is faster and coarser, and may leave a verdict undecided.
    seed
        The same seed gives the same numbers.
    workers
        Threads.
    tell
        Called with each judgement as it is made.

    Examples
    --------
    >>> from lacuna.theory.on_updates import FRACTIONAL_RATE
    >>> [judgement] = examine((FRACTIONAL_RATE,))
    >>> judgement.verdict
    'refuted as printed, corrected'
    """
    check_effort(effort)

    def one(statement: Statement) -> Judgement:
        judgement = judge(statement, statement.simulate(effort, seed))
        tell(judgement)
        return judgement

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, statements))
