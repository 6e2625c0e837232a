"""The paper's 24 claims, and what a table of runs says of each."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from lacuna.paper.claims_beyond import BEYOND_CLAIMS
from lacuna.paper.claims_mcar import MCAR_CLAIMS
from lacuna.paper.evidence import DRAWS, Draw, Evidence, Reading, Selection
from lacuna.paper.thresholds import Claim
from lacuna.paper.verdicts import Comparison, Finding, Verdict, decide

__all__ = ["CLAIMS", "Claim", "Comparison", "Finding", "Verdict", "judge"]

CLAIMS: tuple[Claim, ...] = (*MCAR_CLAIMS, *BEYOND_CLAIMS)


def judge(
    table: pl.DataFrame, *, reading: Reading = "episodic", selection: Selection = "as-published",
    draws: Sequence[Draw] = DRAWS,
) -> list[Finding]:  # fmt: skip
    """Judge every claim by a table of runs; what the table does not hold is undecided.

    Parameters
    ----------
    table
        A row per run, as in a store, in any order.
    reading, selection, draws
        Which runs, and how settings are chosen: as for `Evidence`.

    Returns
    -------
    list of Finding
        One for each of `CLAIMS`, in that order.

    Examples
    --------
    >>> from lacuna.study.store import SCHEMA
    >>> findings = judge(pl.DataFrame(schema=SCHEMA))
    >>> len(findings), {finding.verdict for finding in findings}
    (24, {'undecided'})
    """
    seen = Evidence(table, reading, selection, draws)
    return [decide(claim.id, seen.basis, claim.check(seen)) for claim in CLAIMS]
