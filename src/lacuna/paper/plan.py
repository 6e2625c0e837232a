"""Which studies the paper consists of, which runs confirm what was chosen, and which studies go beyond the paper.

The reduced studies are parts of the full ones: the same runs under the same names, only fewer. So nothing that was run
for one is run again for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from lacuna.paper.evidence import Draw, Evidence, Reading, settings_looked_at
from lacuna.study.spec import Study

Form = Literal["full", "reduced"]

FOLDER = Path(__file__).with_name("studies")
NAMES = ("mcar", "mcolor", "mfog", "choosing-k", "mixing", "stay")
BEYOND = ("default", "fixed")


def paper_studies(form: Form = "full", reading: Reading = "episodic", folder: Path = FOLDER) -> list[Study]:
    """Read the paper's studies.

    The files are of the episodic reading; the continuing one is the same with worlds in which nothing terminates.

    Examples
    --------
    >>> sum(len(study) for study in paper_studies())
    34560
    """
    studies = [Study.read(folder / form / f"{name}.toml") for name in NAMES]
    return studies if reading == "episodic" else [_continuing(study) for study in studies]


def _continuing(study: Study) -> Study:
    data = study.spec.model_dump(exclude_defaults=True)
    data["name"] += "-continuing"
    data["worlds"] = [world | {"continuing": True} for world in data["worlds"]]
    return Study.from_data(data, data["name"])


def tuning_studies(studies: Sequence[Study], draws: Sequence[Draw]) -> list[Study]:
    """Give the same studies on the tuning trials of other draws; nobody looks at their curves, so they have none."""
    found = []
    for draw in draws:
        for study in studies:
            data = study.spec.model_dump(exclude_defaults=True, exclude={"curve_points"})
            data |= {"name": f"{study.spec.name} from {draw.tuning[0]}"}
            found.append(Study.from_data(data | _on(draw.tuning), data["name"]))
    return found


def _on(trials: Sequence[int]) -> dict[str, int]:
    """Say in the words of a study which trials it has; they follow each other."""
    return {"first_trial": trials[0], "trials": len(trials)}


def beyond_studies(trials: Sequence[int], folder: Path = FOLDER) -> list[Study]:
    """Read the studies of what is not in the paper, to be run on the given trials, which follow each other.

    Examples
    --------
    >>> [study.spec.name for study in beyond_studies(range(5))]
    ['default', 'fixed']
    """
    found = []
    for name in BEYOND:
        data = Study.read(folder / f"{name}.toml").spec.model_dump(exclude_defaults=True)
        found.append(Study.from_data(data | _on(trials), name))
    return found


def confirming_studies(table: pl.DataFrame, reading: Reading, like: Study, draws: Sequence[Draw]) -> list[Study]:
    """Make studies that run what each draw chose on its fresh trials, with steps and curve as in `like`.

    A study crosses all its choices, so there is one for each draw and kind of missingness, with staying allowed or not.
    """
    chosen = settings_looked_at(Evidence(table, reading, "held-out", draws)).drop("among")
    groups = chosen.unique(maintain_order=True).partition_by("draw", "missingness", "stay", maintain_order=True)
    return [_confirming(group, reading, like, draws[group["draw"][0]].fresh) for group in groups]


def _confirming(chosen: pl.DataFrame, reading: Reading, like: Study, fresh: Sequence[int]) -> Study:
    missingness, stay = chosen["missingness"][0], chosen["stay"][0]
    world = {word: True for word, on in (("stay", stay), ("continuing", reading == "continuing")) if on}
    name = " ".join(["held-out", missingness.replace(":", " "), *world, "from", str(fresh[0])])
    methods = [
        {"name": row["method"]} | {key: row[key] for key in ("K", "p_shuffle", "alpha", "gamma", "epsilon")
                                   if key not in ("K", "p_shuffle") or row["K"] is not None}
        for row in chosen.iter_rows(named=True)
    ]  # fmt: skip
    data: dict[str, Any] = {
        "name": name, "steps": like.spec.steps, "curve_points": like.spec.curve_points, "missingness": [missingness],
        "worlds": [{"name": "lake"} | world], "methods": methods,
    }  # fmt: skip
    return Study.from_data(data | _on(fresh), name)
