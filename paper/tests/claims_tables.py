"""Made-up tables of runs: a world in which all the paper says is true, and ways to make each claim false."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lacuna_paper.evidence import (
    ALL_METHODS,
    MI,
    MI_CONSERVATIVE,
    MI_SYNTHETIC,
    MISSING,
    MODELS,
    RANDOM,
    SI,
    STAY_THETAS,
    V1,
    V2,
    Shown,
    theta_of,
)
from lacuna_paper.questions import FOG_BOTH, FOG_ONLY, HIGH_RATES, MCOLOR

THETAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
MCAR = tuple(f"mcar:{theta}" for theta in THETAS)


@dataclass(frozen=True)
class Figures:
    """What a method does in the mean."""

    reward: float
    water: float = 0.5
    path: float = 12.0
    early: float = 5.0
    stayed: float = 0.0

    def plus(self, **changes: float) -> Figures:
        return replace(self, **{name: getattr(self, name) + change for name, change in changes.items()})


Key = tuple[str, Shown, bool, float]
World = dict[Key, Figures]


def as_the_paper_says() -> World:
    """Figures under which every claim holds: by missingness, method, staying allowed, epsilon."""
    world: World = {}
    for name in MCAR:
        for shown in ALL_METHODS:
            world[name, shown, False, 0.0] = _mcar(theta_of(name), shown)
    for name in MCOLOR:
        for shown in ALL_METHODS:
            world[name, shown, False, 0.0] = _mcolor(name, shown)
    for name in (FOG_ONLY, FOG_BOTH):
        for shown in ALL_METHODS:
            world[name, shown, False, 0.0] = _mfog(name, shown)
    for name in (*MCAR, *MCOLOR, FOG_ONLY, FOG_BOTH):
        for model in MODELS:
            ten = world[name, Shown(model, 10), False, 0.0]
            world[name, Shown(model, 5), False, 0.0] = ten.plus(reward=-0.5)
            world[name, Shown(model, 5, 0.1), False, 0.0] = ten.plus(reward=-0.6)
            world[name, Shown(model, 10, 0.1), False, 0.0] = ten.plus(reward=-0.1)
    for name in STAY_THETAS:
        best = world[name, MI_SYNTHETIC, False, 0.0]
        world[name, MI_SYNTHETIC, False, 0.05] = best.plus(reward=-2.0)
        world[name, MI_SYNTHETIC, True, 0.0] = best.plus(reward=-1.0, stayed=0.005)
        world[name, MI_SYNTHETIC, True, 0.05] = best.plus(reward=-3.0, stayed=0.01)
    return world


def _mcar(theta: float, shown: Shown) -> Figures:
    best = Figures(88.0 - 8.0 * theta)
    if shown in SI:
        horrible = theta > 0.4
        return best.plus(
            reward=-100.0 if horrible else -5.0 * theta, water=2.0 if horrible else 0.3, path=5.0, early=-2.0
        )
    dip = 16.0 * theta if theta <= 0.8 else 8.0
    return {
        MI_SYNTHETIC: best,
        MI_CONSERVATIVE: best.plus(reward=-1.0, early=-0.3),
        V2: best.plus(reward=-10.0 * theta, water=0.5, path=12.0, early=-1.0),
        V1: best.plus(reward=-12.0 * theta, water=0.5, path=12.0, early=-1.5),
        MISSING: best.plus(reward=-dip, water=0.5, path=12.0, early=-3.5),
        RANDOM: best.plus(reward=-40.0 * theta, water=1.5, path=30.0, early=-4.0),
    }[shown]


def _mcolor(name: str, shown: Shown) -> Figures:
    much = 2.0 if name.endswith(HIGH_RATES) else 1.0
    behind = {V1: 5.0, V2: 4.0, MISSING: 12.0, RANDOM: 16.0} | dict.fromkeys(SI, 2.0) | dict.fromkeys(MI, 0.0)
    early = 5.0 - (0.3 if name.startswith("mcolor:") else 0.0) + (0.2 if shown == MI_CONSERVATIVE else 0.0)
    return Figures(90.0 - much * (2.0 + behind[shown]), early=early)


def _mfog(name: str, shown: Shown) -> Figures:
    if name == FOG_BOTH:
        return Figures(86.0 if shown in MI else 80.0)
    return Figures({MISSING: 86.0, MI_SYNTHETIC: 83.0, MI_CONSERVATIVE: 87.0}.get(shown, 80.0))


def table(
    world: World, trials: Sequence[int] = range(5), *, noise: float = 0.2, continuing: bool = False, alpha: float = 0.1,
    seed: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """A row per trial: the mean, what the trial does to all methods alike, and noise of its own.

    The noise sums to zero over trials: it widens intervals but moves no mean, so a verdict is no matter of luck.
    """
    rng = np.random.default_rng(seed)
    shared = rng.normal(0.0, 3.0, len(trials))
    rows = []
    for key, figures in world.items():
        own = noise * rng.normal(size=(len(trials), 5))
        own -= own.mean(axis=0)
        rows += [
            row(key, figures, trial, shift, each, continuing=continuing, alpha=alpha)
            for trial, shift, each in zip(trials, shared, own, strict=True)
        ]
    return frame(rows)


def frame(rows: list[dict[str, object]]) -> pl.DataFrame:
    """Rows as a store has them: where a method lacks a setting, there is none."""
    kinds = {"K": pl.Int64, "kappa": pl.Float64, "smoothing": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)


def row(
    key: Key, figures: Figures, trial: int, shift: float, own: NDArray[np.float64], *, continuing: bool, alpha: float
) -> dict[str, object]:
    missingness, shown, stay, epsilon = key
    parameters = ["continuing=True"] * continuing + ["stay=True"] * stay
    return {
        "world": "lake", "parameters": ", ".join(parameters),
        "missingness": missingness, "first_observed": True, "steps": 50_000, **shown._asdict(), "vote": "sampled",
        "update": "sequential", "kappa": None, "smoothing": None, "parents": 0.0, "optimism": 0.0, "look": 0.0,
        "budget": None, "cycles": None, "q_table": "shared", "assumed": None, "evidence": "usual", "lag": 0,
        "alpha": alpha, "gamma": 1.0, "epsilon": epsilon, "trial": trial,
        "episodes": 1000, "open_reward": 0.0, "open_bad_steps": 0, "open_steps": 0,
        "cut_episodes": 0, "cut_reward": 0.0, "cut_bad_steps": 0, "cut_steps": 0,
        "mean_total_reward": figures.reward + shift + own[0], "mean_bad_steps": figures.water + own[1] / 100,
        "mean_path_length": figures.path + own[2], "reward_per_step_early": figures.early + shift / 10 + own[3] / 10,
        "idle_share": figures.stayed + own[4] / 1000,
    }  # fmt: skip


def _where(world: World, methods: Iterable[Shown], names: Iterable[str]) -> Iterator[Key]:
    methods, names = set(methods), set(names)
    return (key for key in list(world) if key[0] in names and key[1] in methods)


def _change(methods: Iterable[Shown], names: Iterable[str], **changes: float) -> Callable[[World], None]:
    methods, names = tuple(methods), tuple(names)

    def edit(world: World) -> None:
        for key in _where(world, methods, names):
            world[key] = world[key].plus(**changes)

    return edit


def _stays_often(world: World) -> None:
    for key in [key for key in world if key[2]]:
        world[key] = world[key].plus(stayed=0.1)


_LOW, _GROWN, _HIGHER = MCAR[1:3], MCAR[3:], MCAR[6:]
_FIVE = [Shown(model, 5) for model in MODELS]
_MIXED = [Shown(model, K, 0.1) for model in MODELS for K in (5, 10)]

MADE_FALSE: dict[str, Callable[[World], None]] = {
    "mcar-low-theta-similar": _change([V1], _LOW, reward=-20.0),
    "mcar-mi-best": _change([V2], _HIGHER, water=-0.9),
    "mcar-mi-robust": _change(MI, _GROWN, reward=-60.0),
    "mcar-conservative-slower": _change([MI_CONSERVATIVE], _HIGHER, early=1.0),
    "mcar-baselines-reward-close": _change([MISSING], _GROWN, reward=-50.0),
    "mcar-baselines-river-path-worse": _change([V1], _GROWN, path=-12.0),
    "mcar-v2-over-v1": _change([V2], _GROWN, reward=-30.0),
    "mcar-random-bad": _change([RANDOM], _GROWN, reward=15.0),
    "mcar-si-collapses": _change(SI, _HIGHER, reward=90.0),
    "mcar-si-slower": _change([MISSING], ["mcar:0.4"], early=4.0),
    "all-worsen-with-theta": _change([V2], _HIGHER, reward=40.0),
    "mcar-missing-state-u": _change([MISSING], MCAR[-1:], reward=-40.0),
    "mcolor-mi-best": _change([V2], MCOLOR[:1], reward=30.0),
    "mcolor-gap-grows": _change(MI, MCOLOR[2:], reward=-20.0),
    "mcolor-nmar-slower": _change(ALL_METHODS, MCOLOR[1::2], early=1.0),
    "mcolor-missing-state-bad": _change([MISSING], MCOLOR, reward=14.0),
    "mcolor-conservative-faster": _change([MI_CONSERVATIVE], MCOLOR, early=-1.0),
    "mfog-both-mi-best": _change([V1], [FOG_BOTH], reward=30.0),
    "mfog-only-missing-state-par": _change([MISSING], [FOG_ONLY], reward=-20.0),
    "mfog-only-conservative-ok": _change([MI_CONSERVATIVE], [FOG_ONLY], reward=-30.0),
    "mfog-only-synthetic-harmful": _change([MI_CONSERVATIVE], [FOG_ONLY], reward=-10.0),
    "k-diminishing": _change(_FIVE, MCAR, reward=-150.0),
    "mixing-no-effect": _change(_MIXED, [*MCAR, *MCOLOR, FOG_ONLY, FOG_BOTH], reward=-20.0),
    "stay-no-effect": _stays_often,
}
"""How to make each claim false, by its name; the paper's world is edited in place."""
