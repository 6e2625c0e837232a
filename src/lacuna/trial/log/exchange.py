"""The decisions of a trial for analysis tools: weighted least squares, and off-policy evaluation.

- Weighted and centred least squares (WCLS), e.g. ``wcls()`` of the R package MRTAnalysis: a row per decision point,
  with the probability of treatment.
- The Open Bandit Pipeline: the arrays that its ``obtain_batch_bandit_feedback`` returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lacuna.trial.file.context import Bins, Component
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.decision_table import columns
from lacuna.validation import nearest, shown

WCLS: dict[str, str] = {
    "id": "pseudonym of the participant",
    "t": "number of the decision point, counted by the app from 0",
    "at": "when the request was answered, in UTC; null if there was no request",
    "available": "whether the participant was available; false if there was no request",
    "treatment": "1 if the action was the treatment, else 0",
    "prob": "probability of treatment = 1, whichever action was drawn",
    "outcome": "the last reported reward; null if none",
    "outcome_missing": "whether no reward was reported",
    "randomised": "whether the action was drawn with known probabilities",
    "policy": "learned, burn-in, given, fallback or absent",
    "version": "number of the update that the decision is based on; null for fallback and absent",
    "in_study": "whether the participant was enrolled, and had not ended before",
}
"""The meaning of each column, before those of the components."""


def treatment_of(file: TrialFile, treatment: str | None = None) -> str:
    """Return the action that counts as treatment; an error if it must be named.

    Parameters
    ----------
    file
        The trial file.
    treatment
        The action. With two actions, the default is the one that is not for absence.
    """
    others = [action for action in file.actions if action != file.trial.absent]
    if treatment is not None:
        if treatment not in others:
            known = ", ".join(map(shown, others))
            raise ValueError(f"treatment is {shown(treatment)}{nearest(treatment, others)}; it must be one of {known}")
        return treatment
    if len(others) != 1:
        n = len(file.actions)
        raise ValueError(f"the trial has {n} actions, so treatment = 1 is not defined; name one action as treatment")
    return others[0]


def wcls_table(table: pl.DataFrame, file: TrialFile, treatment: str | None = None) -> pl.DataFrame:
    """Return decisions in the columns of weighted and centred least squares.

    Decisions made elsewhere with unknown probabilities are left out, because they cannot be weighted.

    Parameters
    ----------
    table
        The result of `decision_table`.
    file
        The trial file.
    treatment
        The action that counts as treatment; all others count as none.
    """
    treated = treatment_of(file, treatment)
    found = table.with_columns(
        pl.col("participant").alias("id"),
        (pl.col("action") == treated).cast(pl.Int64).alias("treatment"),
        pl.col(f"prob_{treated}").alias("prob"),
        pl.col("reward").alias("outcome"),
        pl.col("reward").is_null().alias("outcome_missing"),
    )
    return found.filter(pl.col("prob").is_not_null()).select(list(wcls_columns(file)))


def wcls_columns(file: TrialFile) -> dict[str, str]:
    """Return the columns of `wcls_table` in order, with the meaning of each."""
    whole = columns(file)
    kept = [f"{part}_{name}" for name in file.context.names for part in ("raw", "coded", "missing")]
    return WCLS | {name: whole[name][1] for name in kept}


def obp_arrays(table: pl.DataFrame, file: TrialFile) -> dict[str, NDArray[Any]]:
    """Return decisions as arrays in the layout of the Open Bandit Pipeline: randomised ones that have a reward.

    ``position`` is always 0, because one action is shown at a time; so ``pi_b`` has the shape (n_rounds, n_actions, 1).
    ``context`` has a column for each value or bin of each component, and one for missing; ``context_names`` names them.
    Actions have no features: ``action_context`` is the identity.

    Parameters
    ----------
    table
        What `decision_table` gives.
    file
        The trial file.
    """
    rows = table.filter(pl.col("randomised") & pl.col("reward").is_not_null())
    n, A = rows.height, len(file.actions)
    numbers = {action: number for number, action in enumerate(file.actions)}
    action = np.array([numbers[name] for name in rows["action"]], dtype=np.int64)
    pi_b = np.stack([rows[f"prob_{name}"].to_numpy().astype(np.float64) for name in file.actions], axis=1)
    blocks = [_one_hot(rows[f"coded_{one.name}"], one) for one in file.context.components]
    return {
        "n_rounds": np.array(n), "n_actions": np.array(A), "context": np.concatenate(blocks, axis=1),
        "action_context": np.eye(A), "action": action, "position": np.zeros(n, dtype=np.int64),
        "reward": rows["reward"].to_numpy().astype(np.float64), "pi_b": pi_b[:, :, np.newaxis],
        "pscore": pi_b[np.arange(n), action], "action_names": np.array(file.actions),
        "context_names": np.array([name for one in file.context.components for name in _feature_names(one)]),
    }  # fmt: skip


def _one_hot(codes: pl.Series, component: Component) -> NDArray[np.float64]:
    """A column for each code, and a last one for missing."""
    found = np.zeros((len(codes), component.size + 1))
    found[np.arange(len(codes)), codes.fill_null(component.size).to_numpy()] = 1
    return found


def _feature_names(component: Component) -> list[str]:
    described = component.described()
    codes = described["bins"] if isinstance(component, Bins) else map(shown, described["values"])
    return [*(f"{component.name}: {code}" for code in codes), f"{component.name}: missing"]
