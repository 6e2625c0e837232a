"""The counts of a run, and the figures computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.memory import Learner
from lacuna.agent.methods import NO_GUESS
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.settings import Rules
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.space import Layout
from lacuna.run.scene import Step
from lacuna.worlds.mdp.tabular import Dynamics

SUMS = (
    "steps", "reward", "episodes", "episode_reward", "episode_bad", "episode_steps",
    "open_reward", "open_bad", "open_steps", "cut_episodes", "cut_reward", "cut_bad", "cut_steps",
)  # fmt: skip
"""Running sums: all steps; completed episodes; the open episode; episodes that were cut off (truncated)."""

_STEPS, _REWARD, _EPISODES, _EPISODE_REWARD, _EPISODE_BAD, _EPISODE_STEPS = range(6)
_OPEN_REWARD, _OPEN_BAD, _OPEN_STEPS = range(6, 9)
_CUT_EPISODES, _CUT_REWARD, _CUT_BAD, _CUT_STEPS = range(9, 13)
_COMPONENTS, _COMPONENTS_RIGHT, _STATES, _STATES_RIGHT = range(4)


class Tally(NamedTuple):
    """The counts of a run.

    `sums` as named in `SUMS`; how often each action was taken; how many steps hid 0, 1, …, d components; guesses of
    hidden components and of incomplete states, made and right, summed over pathways; and, by how many pathways guess
    the same state (itself included), how many pathways there were and how many of them were right.
    """

    sums: NDArray[np.float64]
    actions: NDArray[np.int64]
    hidden: NDArray[np.int64]
    guesses: NDArray[np.int64]
    agreement: NDArray[np.int64]


def blank_tally(n_actions: int, d: int, K: int) -> Tally:
    """Return an empty tally."""
    return Tally(
        np.zeros(len(SUMS)),
        np.zeros(n_actions, dtype=np.int64),
        np.zeros(d + 1, dtype=np.int64),
        np.zeros(4, dtype=np.int64),
        np.zeros((K + 1, 2), dtype=np.int64),
    )


@inner
def score_guesses(
    observation: NDArray[np.int64], truth: int, C: NDArray[np.int64], layout: Layout, tally: Tally
) -> None:
    """Compare the pathways' guesses with the true code, where something was hidden."""
    K = C.shape[0]
    for j in range(observation.shape[0]):
        if observation[j] < 0:
            right = 0
            for k in range(K):
                right += 1 if (C[k] ^ truth) & layout.masks[j] == 0 else 0
            tally.guesses[_COMPONENTS] += K
            tally.guesses[_COMPONENTS_RIGHT] += right
    right = 0
    for k in range(K):
        right += 1 if C[k] == truth else 0
    tally.guesses[_STATES] += K
    tally.guesses[_STATES_RIGHT] += right
    tally.agreement[right, 1] += right
    for k in range(K):
        agree = 0
        for i in range(K):
            agree += 1 if C[i] == C[k] else 0
        tally.agreement[agree, 0] += 1


@kernel
def count(action: int, step: Step, bad: bool, observation: NDArray[np.int64], tally: Tally) -> int:
    """Count what one step did; returns how many components it hid."""
    sums = tally.sums
    sums[_STEPS] += 1.0
    sums[_REWARD] += step.reward
    sums[_OPEN_REWARD] += step.reward
    sums[_OPEN_STEPS] += 1.0
    if bad:
        sums[_OPEN_BAD] += 1.0
    if step.ended:
        sums[_EPISODES] += 1.0
        sums[_EPISODE_REWARD] += sums[_OPEN_REWARD]
        sums[_EPISODE_BAD] += sums[_OPEN_BAD]
        sums[_EPISODE_STEPS] += sums[_OPEN_STEPS]
    elif step.stopped:
        sums[_CUT_EPISODES] += 1.0
        sums[_CUT_REWARD] += sums[_OPEN_REWARD]
        sums[_CUT_BAD] += sums[_OPEN_BAD]
        sums[_CUT_STEPS] += sums[_OPEN_STEPS]
    if step.ended or step.stopped:
        sums[_OPEN_REWARD] = 0.0
        sums[_OPEN_BAD] = 0.0
        sums[_OPEN_STEPS] = 0.0
    tally.actions[action] += 1
    hidden = 0
    for j in range(observation.shape[0]):
        if observation[j] < 0:
            hidden += 1
    tally.hidden[hidden] += 1
    return hidden


@kernel
def score(
    action: int, step: Step, observation: NDArray[np.int64], world: Dynamics, learner: Learner, tally: Tally
) -> None:
    """Count one step, and what was guessed in it."""
    hidden = count(action, step, world.bad[step.arrival], observation, tally)
    guesses = learner.rules.impute not in NO_GUESS
    if hidden > 0 and guesses:
        score_guesses(observation, world.codes[step.arrival], learner.memory.C, learner.layout, tally)


_AT_MOST = (
    ("episodes", "episode_steps"), ("episode_bad", "episode_steps"), ("open_bad", "open_steps"),
    ("cut_episodes", "cut_steps"), ("cut_bad", "cut_steps"),
)  # fmt: skip


def check_sums(rows: NDArray[np.float64], steps: int) -> None:
    """Refuse running sums, a row for each time they were noted, that `steps` steps could not have left."""
    named = dict(zip(SUMS, rows.T, strict=True))
    counts = [sums for name, sums in named.items() if not name.endswith("reward")]
    rewards = [sums for name, sums in named.items() if name.endswith("reward")]
    possible = [(n >= 0) & (n <= steps) & (n == np.floor(n)) for n in counts]
    possible += [named[part] <= named[whole] for part, whole in _AT_MOST]
    # A sum of rewards may be off by rounding.
    possible += [np.abs(reward) <= 1.000001 * MAX_REWARD * steps for reward in rewards]
    with np.errstate(over="ignore"):
        possible += [named["episode_steps"] + named["cut_steps"] + named["open_steps"] == named["steps"]]
    if not np.all(possible):
        raise ValueError(f"the sums of the tally are none that {steps} steps could have left")


def check_tally(tally: Tally, rules: Rules, steps: int) -> None:
    """Refuse counts, none of them below 0, that `steps` steps could not have left."""
    check_sums(tally.sums[None], steps)
    # As numbers of Python, whose sums do not wrap.
    actions, hidden = tally.actions.tolist(), tally.hidden.tolist()
    if not tally.sums[_STEPS] == sum(actions) == sum(hidden) == steps:
        raise ValueError(
            f"the tally counts {tally.sums[_STEPS]:.0f} steps, {sum(actions)} actions and {sum(hidden)} masks, "
            f"but the agent took {steps} steps"
        )
    components, components_right, states, states_right = tally.guesses.tolist()
    made, right = tally.agreement.T.tolist()
    K = 0 if rules.impute in NO_GUESS else rules.K
    wanted = (K * sum(lost * n for lost, n in enumerate(hidden)), K * (steps - hidden[0]))
    pairs = [(components, components_right), (states, states_right), *zip(made, right, strict=True)]
    fits = wanted == (components, states) and (sum(made), sum(right)) == (states, states_right)
    if not fits or any(some > all_ for all_, some in pairs):
        raise ValueError(f"the guesses of the tally are none that {steps} steps could have left")


class Notes(NamedTuple):
    """A curve being recorded: the sums of a tally, and how often the idle action was chosen, at given steps.

    ``times[at[0]]`` is the next step to note, infinite when none is left; row `i` of `rows` belongs to ``times[i]``.
    """

    idle: int
    times: NDArray[np.float64]
    at: NDArray[np.int64]
    rows: NDArray[np.float64]


def blank_notes(times: Sequence[int], idle: int) -> Notes:
    """Return an empty curve; `idle` is the number of the idle action, -1 if there is none."""
    return Notes(
        idle, np.append(np.array(times, dtype=np.float64), np.inf), np.zeros(1, dtype=np.int64),
        np.zeros((len(times), len(SUMS) + 1)),
    )  # fmt: skip


def sums_now(tally: Tally, idle: int) -> NDArray[np.float64]:
    """Return the running sums, then how often the idle action was taken: what `note` would write into a row."""
    return np.append(tally.sums, float(tally.actions[idle]) if idle >= 0 else 0.0)


def check_curve(rows: NDArray[np.float64], steps: int) -> None:
    """Refuse notes that a run of `steps` steps could not have made."""
    times, idled = rows[:, _STEPS], rows[:, -1]
    check_sums(rows[:, :-1], steps)
    whole = (idled >= 0) & (idled <= times) & (idled == np.floor(idled))
    if not whole.all() or (times < 1).any() or (times[1:] <= times[:-1]).any():
        raise ValueError(f"the curve holds a row that could not have been noted within {steps} steps")


@kernel
def note(tally: Tally, notes: Notes) -> None:
    """Note the sums if it is time."""
    i = notes.at[0]
    if tally.sums[_STEPS] == notes.times[i]:
        for j in range(tally.sums.shape[0]):
            notes.rows[i, j] = tally.sums[j]
        if notes.idle >= 0:
            notes.rows[i, tally.sums.shape[0]] = tally.actions[notes.idle]
        notes.at[0] = i + 1


def _ratio(part: float, whole: float) -> float | None:
    return float(part) / float(whole) if whole else None


def episode_means(sums: NDArray[np.float64], *, count_open: bool = False) -> dict[str, float | None]:
    """Total reward, bad steps and path length per episode; `None` before the first one is complete.

    With `count_open` the open episode counts as one that ended now, and those cut off as ended at the cut, so that a
    run that got stuck cannot look good.
    """
    named = dict(zip(SUMS, sums.tolist(), strict=False))
    ways = ("episode", "open", "cut") if count_open else ("episode",)
    extra = named["cut_episodes"] + (named["open_steps"] > 0) if count_open else 0
    return {
        f"mean_{name}": _ratio(sum(named[f"{way}_{key}"] for way in ways), named["episodes"] + extra)
        for name, key in (("total_reward", "reward"), ("bad_steps", "bad"), ("path_length", "steps"))
    }


def figures(tally: Tally, rules: Rules | None, idle: int) -> dict[str, Any]:
    """The figures of a run that follow from its final tally; without `rules` nothing is known of guesses."""
    named = dict(zip(SUMS, tally.sums.tolist(), strict=True))
    steps = named["steps"]
    result: dict[str, Any] = {
        **episode_means(tally.sums),
        "episodes": int(named["episodes"]),
        "steps": int(steps),
        "reward_per_step": _ratio(named["reward"], steps),
        "idle_share": _ratio(float(tally.actions[idle]) if idle >= 0 else 0.0, steps),
        "hidden_shares": [_ratio(float(n), steps) for n in tally.hidden],
        "open_steps": int(named["open_steps"]),
        "open_reward": named["open_reward"],
        "open_bad_steps": int(named["open_bad"]),
        "cut_episodes": int(named["cut_episodes"]),
        "cut_reward": named["cut_reward"],
        "cut_bad_steps": int(named["cut_bad"]),
        "cut_steps": int(named["cut_steps"]),
    }
    if rules is None or rules.impute in NO_GUESS:
        return result | dict.fromkeys(("guessed_right", "weight_on_truth", "calibration_error"))
    components, right, states, states_right = (float(x) for x in tally.guesses)
    return result | {
        "guessed_right": _ratio(right, components),
        "weight_on_truth": _ratio(states_right, states),
        "calibration_error": calibration_error(tally.agreement),
    }


def calibration_error(agreement: NDArray[np.int64]) -> float | None:
    """Mean distance, over pathways, between the share of pathways in its state and how often such a state is true.

    It is 0 if, for every x, a state on which a share x of the pathways agree is true with frequency x.
    """
    made, right = agreement.T
    if made.sum() == 0:
        return None
    share = np.arange(made.shape[0]) / (made.shape[0] - 1)
    return float(np.abs(right - share * made).sum() / made.sum())


def standard_error(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    """Standard error of a mean over trials; None for a single one.

    Examples
    --------
    >>> standard_error([1.0, 3.0]), standard_error([2.0])
    (1.0, None)
    """
    array = np.asarray(values, dtype=np.float64)
    return float(array.std(ddof=1) / np.sqrt(array.size)) if array.size > 1 else None
