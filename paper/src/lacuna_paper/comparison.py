"""Ours without planning, untuned, against the best of the paper's methods, and against what could be reached.

The best of the paper's methods is picked on the very trials that are shown, which favours the paper. Differences are
paired by trials, held out by draws; every interval is at 95 %, of means Student's t, of shares Fieller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lacuna import UNPLANNED, YARDSTICKS, Settings
from lacuna.agent import method_named
from lacuna.study import Interval, mean_interval, paired_difference, paired_ratio, with_open_episode
from lacuna_paper.evidence import BASELINES, MODELS, REWARD, Evidence, Shown
from lacuna_paper.verdicts import Basis

OURS = Shown(UNPLANNED.method, UNPLANNED.K)
PAPERS = (*BASELINES, *(Shown(model, K, mixed) for model in MODELS for K in (1, 5, 10) for mixed in (0.0, 0.1)))
Comparisons = Mapping[str, Sequence["Comparison"]]
"""By the way in which the paper's methods had their settings chosen, as for `Evidence`, or ``"untuned"``."""

KNOWING = {name: Shown(name, Settings(name).K) for name, yardstick in YARDSTICKS.items() if not yardstick.plans}
"""What ours without planning is measured against."""

REACHABLE = "qmdp-rewards"
"""The yardstick to which the gap is counted: it knows the model, and sees what an agent sees, rewards included."""

Values = Mapping[Shown, NDArray[np.float64]]
"""The reward per episode of each method, one number per trial or per draw, all in the same order."""


@dataclass(frozen=True)
class Comparison:
    """What came of one problem: ours, the best of the paper's methods, and the yardsticks."""

    world: str
    missingness: str
    basis: Basis
    best: Shown
    theirs: Interval
    ours: Interval
    ahead: Interval
    """Ours minus theirs."""
    yardsticks: Mapping[str, Interval]
    share: Interval | None
    """The share of the gap from theirs to `REACHABLE` that ours closes; None if it cannot be told."""

    @classmethod
    def of(cls, world: str, missingness: str, basis: Basis, values: Values) -> Comparison | None:
        """Compare what was run; None without ours, or without any of the paper's methods."""
        among = [shown for shown in PAPERS if shown in values]
        if OURS not in values or not among:
            return None
        best = max(among, key=lambda shown: float(values[shown].mean()))
        ours, theirs, reachable = values[OURS], values[best], values.get(KNOWING[REACHABLE])
        share = None
        if reachable is not None and reachable.mean() > theirs.mean():
            share = paired_ratio(ours - theirs, reachable - theirs)
        return cls(
            world, missingness, basis, best,
            mean_interval(theirs), mean_interval(ours), paired_difference(ours, theirs),
            {name: mean_interval(values[shown]) for name, shown in KNOWING.items() if shown in values},
            share if share is not None and share.low is not None else None,
        )  # fmt: skip

    @property
    def clearly_ahead(self) -> bool:
        """Whether the whole interval says that ours earns more."""
        return self.ahead.low is not None and self.ahead.low > 0

    @property
    def clearly_behind(self) -> bool:
        """Whether the whole interval says that ours earns less."""
        return self.ahead.high is not None and self.ahead.high < 0

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "world": self.world, "missingness": self.missingness, **self.basis._asdict(), "best": self.best._asdict(),
            "theirs": self.theirs._asdict(), "ours": self.ours._asdict(), "ahead": self.ahead._asdict(),
            "yardsticks": {name: found._asdict() for name, found in self.yardsticks.items()},
            "share": None if self.share is None else self.share._asdict(),
        }  # fmt: skip


def against_tuned(seen: Evidence) -> list[Comparison]:
    """Compare with the paper's methods, each at the setting chosen for it, under each kind of missingness tuned for."""
    wanted = (*PAPERS, OURS, *KNOWING.values())
    tuned = seen.choice.filter(pl.col("settings") > 1)["missingness"].unique()
    found = []
    for name in sorted(tuned, key=in_order):
        samples = {shown: seen.sample(shown, name) for shown in wanted}
        values = {shown: sample.values for shown, sample in samples.items() if not sample.gaps}
        found.append(Comparison.of("lake", name, seen.basis, values))
    return [one for one in found if one is not None]


def against_untuned(
    table: pl.DataFrame, trials: Sequence[int], problems: Iterable[tuple[str, str]]
) -> list[Comparison]:
    """Compare with the paper's methods, each at the defaults of `Settings`, in each world and kind of missingness."""
    here = pl.col("trial").is_in(list(trials))
    table = with_open_episode(table.filter(here, parameters="", first_observed=True))
    if table["steps"].n_unique() > 1:
        raise ValueError("the table holds runs of different lengths; they cannot be compared")
    found = []
    for world, name in problems:
        values = dict(_untuned(table.filter(world=world, missingness=name), len(trials)))
        found.append(Comparison.of(world, name, Basis("episodic", "untuned", len(trials)), values))
    return [one for one in found if one is not None]


def _untuned(runs: pl.DataFrame, n_trials: int) -> Iterator[tuple[Shown, NDArray[np.float64]]]:
    names = [*(shown.method for shown in BASELINES), *MODELS]
    # Yardsticks that learn explore as ours does.
    explores = [UNPLANNED.optimism if method_named(name).learns else 0.0 for name in KNOWING]
    knowing = [Settings(name, optimism=optimism) for name, optimism in zip(KNOWING, explores, strict=True)]
    for settings in (*map(Settings, names), UNPLANNED, *knowing):
        same = [
            pl.col(name).is_null() | (pl.col(name) == value)
            for name, value in settings.as_dict().items()
            if value is not None
        ]
        # The same run may have been noted twice, with curves and without.
        chosen = runs.filter(*same).unique("trial", keep="any").sort("trial")
        if chosen.height == n_trials:
            yield Shown(settings.method, settings.K), chosen[f"{REWARD}_with_open"].to_numpy()


def in_order(missingness: str) -> tuple[int, str]:
    """Return a key that sorts kinds of missingness in the order of the paper: MCAR, MCOLOR, MFOG."""
    kinds = ("mcar", "mcolor", "mfog")
    place = next((i for i, kind in enumerate(kinds) if missingness.startswith(kind)), len(kinds))
    return place, missingness
