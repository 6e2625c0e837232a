"""Which studies the paper consists of, which runs confirm what was chosen, and which studies go beyond the paper.

The reduced studies are parts of the full ones: the same runs under the same names, only fewer. So nothing that was run
for one is run again for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import polars as pl

from lacuna.study.evidence import Evidence, Reading, settings_to_confirm
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
        found.append(Study.from_data(data | {"first_trial": trials[0], "trials": len(trials)}, name))
    return found


def confirming_studies(table: pl.DataFrame, reading: Reading, like: Study, fresh: Sequence[int]) -> list[Study]:
    """Make studies that run every setting chosen on the tuning trials on fresh ones, with steps and curve as in `like`.

    A study crosses all its choices, so there is one for each kind of missingness, with staying allowed or not.
    """
    seen = Evidence(table, reading, "held-out", fresh=fresh)
    kind = itemgetter("missingness", "stay")
    groups = groupby(sorted(settings_to_confirm(seen), key=kind), key=kind)
    return [
        _confirming(missingness, list(chosen), {"stay": stay, "continuing": reading == "continuing"}, like, fresh)
        for (missingness, stay), chosen in groups
    ]


def _confirming(
    missingness: str, chosen: list[dict[str, Any]], world: dict[str, bool], like: Study, fresh: Sequence[int]
) -> Study:
    name = f"held-out {missingness.replace(':', ' ')}" + "".join(f" {word}" for word, on in world.items() if on)
    methods = [
        {"name": row["method"]} | {key: row[key] for key in ("K", "p_shuffle", "alpha", "gamma", "epsilon")
                                   if key not in ("K", "p_shuffle") or row["K"] is not None}
        for row in chosen
    ]  # fmt: skip
    return Study.from_data(
        {
            "name": name, "steps": like.spec.steps, "trials": len(fresh), "first_trial": fresh[0],
            "curve_points": like.spec.curve_points, "missingness": [missingness],
            "worlds": [{"name": "lake"} | {word: on for word, on in world.items() if on}], "methods": methods,
        },
        name,
    )  # fmt: skip
