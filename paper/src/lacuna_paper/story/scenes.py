"""The eight scenes: the run that each shows, its first step, and its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lacuna import DEFAULT, Problem, Settings
from lacuna.report import Recording, Stage, record

RATES = (0.0, 0.2, 0.4, 0.6, 0.8)
"""The rates of loss that a reader can choose from."""

USUAL_RATE = 0.4

_SEED, _LEARNED, _SCOUTED = 0, 20_000, 1_000
_TEN, _ONE = Settings("mi-synthetic", K=10), Settings("mi-synthetic", K=1)


@dataclass(frozen=True)
class Scene:
    """A scene: its title, its text as paragraphs of HTML, its recordings by name, and how its player is set up."""

    id: str
    title: str
    text: str
    recordings: dict[str, Recording]
    options: str = ""
    start: tuple[int, int] = (0, 0)


def scenes() -> list[Scene]:
    """Record all scenes that have a player: seven; the eighth is a chart."""
    return [_see_all(), _lose(), _drift(), vote(), _learn(), _race(), _fog()]


def _see_all() -> Scene:
    return Scene(
        "see", "It sees everything",
        "<p>An agent (the dot) walks from S to G. Water costs 10 a step, the goal pays 100. The lake floods and "
        "dries up again, and wind may push the agent aside.</p><p>Each step it sees three cards: its row, its column "
        "and the colour of the ground, which warns of water. With all three it knows where it is, and its guesses "
        "(orange) are right.</p>",
        {"see": record(Problem.named("lake", "none"), [_TEN], at=[_LEARNED], steps=40, seed=_SEED)},
        "data-playing",
    )  # fmt: skip


def _lose() -> Scene:
    kept = {
        name_of(rate): record(_lake(rate), [_TEN], at=[_LEARNED], steps=60, seed=_SEED) for rate in RATES
    }  # fmt: skip
    return Scene(
        "lose", "Now cards go missing",
        "<p>Each card is lost with probability θ, independently of the others. The agent must still act, and never "
        "learns what the lost card said. Choose how much goes missing:</p>",
        kept, start=(0, 6),
    )  # fmt: skip


def _drift() -> Scene:
    kept = _scouted(_lake(USUAL_RATE), _ONE, _falls_unaware, lead=5, steps=30)
    return Scene(
        "drift", "One guess drifts",
        "<p>The simplest answer: fill in what is lost with one guess, drawn from what followed such steps before. But "
        "the next guess starts from this one, even if it is wrong.</p><p>Press play: soon the agent believes it is "
        "somewhere else, does what seems best there, and walks into the water.</p>",
        {"drift": kept}, start=(0, 3),
    )  # fmt: skip


def vote() -> Scene:
    """The scene of the idea itself: guesses split, vote and join."""
    kept = _scouted(_lake(USUAL_RATE), _TEN, _splits_and_joins, lead=3, steps=30)
    return Scene(
        "vote", "Ten guesses vote",
        "<p>So it keeps ten. They split when cards are lost: each draws its own continuation. Each votes for the "
        "action that is best where it believes it is. Then one of them, picked at random, decides: an action that "
        "seven prefer has a probability of 70 %.</p><p>Every guess must agree with the cards that are seen. When all "
        "three are seen, the guesses join.</p>",
        {"vote": kept}, start=(0, 3),
    )  # fmt: skip


def _learn() -> Scene:
    at = [0, 200, 1_000, 5_000, 20_000]
    kept = record(_lake(USUAL_RATE), [_TEN], at=at, steps=60, seed=_SEED)
    return Scene(
        "learn", "Learning sharpens the guesses",
        "<p>At first it knows nothing of the world, and guesses anything that agrees with what it sees. From its own "
        "steps it learns which states follow which. Move the slider: the cloud of guesses shrinks, and the small "
        "arrows, the best action in each cell by what it has learned, settle.</p>",
        {"learn": kept}, start=(0, 20),
    )  # fmt: skip


def _race() -> Scene:
    methods = [Settings("last-observed"), Settings("missing-as-state"), _TEN, DEFAULT]
    kept = record(_lake(USUAL_RATE), methods, at=[2_000], steps=120, seed=_SEED)
    return Scene(
        "race", "Four methods, one world",
        "<p>All four have learned for 2,000 steps with the same seed: the same random numbers move the world and hide "
        "the cards. <em>Last observed</em> trusts the last value it saw. <em>Missing as a state</em> treats “?” as "
        "one more value. <em>MI, synthetic</em> has ten guesses. <em>MI, planned</em>, our default, also plans "
        "with what it has learned. Press play and compare the rewards.</p>",
        {"race": kept}, 'data-speed="4" data-arrows="off"',
    )  # fmt: skip


def _fog() -> Scene:
    kept = _scouted(Problem.named("lake", "mfog:0.5,0.0"), _TEN, _is_lost, lead=3, steps=40, at=0)
    return Scene(
        "fog", "Fog: a missing card is information",
        "<p>Now cards are lost only in the fog, top right, and never elsewhere. So a lost card means: you are in the "
        "fog.</p><p>Guessing what the card says does not use that. This agent has just begun to learn, and some of "
        "its guesses are where no card could have been lost. A method that treats “?” as one more value can learn "
        "what “?” means here.</p>",
        {"fog": kept}, 'data-arrows="off"', (0, 3),
    )  # fmt: skip


def name_of(rate: float) -> str:
    """Return the name of the recording at a rate of loss."""
    return f"lose-{round(100 * rate)}"


def _lake(rate: float) -> Problem:
    return Problem.named("lake", f"mcar:{rate}")


Test = Callable[[Stage, Problem, int], bool]


def _scouted(
    problem: Problem, settings: Settings, wanted: Test, *, lead: int, steps: int, at: int = _LEARNED
) -> Recording:
    """Record from `lead` steps before the first step that passes the test `wanted`."""
    stage = record(problem, [settings], at=[at], steps=_SCOUTED, seed=_SEED).stages[0][0]
    first = next(t for t in range(lead, _SCOUTED - 10) if wanted(stage, problem, t))
    return record(problem, [settings], at=[at + first - lead], steps=steps, seed=_SEED)


def _falls_unaware(stage: Stage, problem: Problem, t: int) -> bool:
    """Whether it steps from land into water after its guess was wrong for two steps."""
    mdp = problem.mdp
    state, arrival = int(stage.before.state[t]), int(stage.before.state[t + 1])
    wrong = all(stage.before.pathways[i, 0] != mdp.shows[stage.before.state[i]] for i in (t - 1, t))
    return bool(wrong and not mdp.bad[state] and mdp.bad[arrival] and t not in stage.stopped)


def _splits_and_joins(stage: Stage, problem: Problem, t: int) -> bool:
    """Whether the guesses are in four or more cells with two or more votes, and in one cell within five steps."""
    cells = [len({int(s) // problem.space.sizes[-1] for s in row}) for row in stage.before.pathways[t : t + 6]]
    votes = stage.votes[t].any(axis=0).sum()
    stays = not np.isin(np.arange(t, t + 6), stage.stopped).any()
    return bool(cells[0] >= 4 and votes >= 2 and min(cells[1:]) == 1 and stays)


def _is_lost(stage: Stage, _problem: Problem, t: int) -> bool:
    return bool((stage.before.seen[t] < 0).sum() >= 2)
