"""A yardstick in a world: the compiled loop, and the run that drives and measures it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import glance
from lacuna.kernels.compiled import kernel
from lacuna.kernels.exclusive import Entry, exclusive
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import Layout
from lacuna.kernels.streams import Stream, draw
from lacuna.learning.learner import Memory, act, blank_memory, draws_per_step, improve, memory_bytes, shuffle
from lacuna.learning.methods import YARDSTICKS, Knows, Rules, Settings
from lacuna.mdp.tabular import TabularMDP
from lacuna.missingness.mechanism import Mechanism
from lacuna.running.belief import best_on_average, expect_move, expect_start, take_evidence
from lacuna.running.loop import FRESH, FRESH_PLACE, Scene, Step, Supply, enter, go, has_numbers
from lacuna.running.measures import Notes, Tally, blank_notes, blank_tally, figures, note, score
from lacuna.running.pathways import draw_next, draw_start
from lacuna.running.run import check_problem
from lacuna.running.truth import Truth, truth_of

_EVERYTHING_SHOWN, _TRANSITIONS, _STATE, _BELIEF = map(
    int, (Knows.EVERYTHING_SHOWN, Knows.TRANSITIONS, Knows.STATE, Knows.BELIEF)
)
_NOBODY = -1

# Steps between two visits of the compiled loop, and numbers prepared for them.
_AHEAD_STEPS, _AHEAD_MOST = 8192, 1 << 16


class Sage(NamedTuple):
    """A yardstick in a compiled run: what it knows, what it learned, and where it takes the world to be.

    `memory` is that of a learner; `here` are the true states of its pathways (the one true state of who sees it);
    `was_complete` says whether the last state was fully observed. `here_next` and `ahead` are scratch.
    """

    knows: int
    uses_rewards: bool
    rules: Rules
    layout: Layout
    truth: Truth
    memory: Memory
    here: NDArray[np.int64]
    here_next: NDArray[np.int64]
    was_complete: NDArray[np.bool_]
    belief: NDArray[np.float64]
    ahead: NDArray[np.float64]


def blank_sage(mdp: TabularMDP, mechanism: Mechanism, settings: Settings) -> Sage:
    """Give a yardstick that has seen nothing yet."""
    method = YARDSTICKS[settings.method]
    knows = method.knows
    shape = (mechanism.rates.shape[0], mdp.n_states) if knows == Knows.BELIEF else (0, 0)
    ask_for(
        memory_bytes(mdp.space, mdp.n_actions, settings) + 16 * shape[0] * shape[1],
        f"the tables of {settings.method} for {mdp.space.n_states} states and {mdp.n_actions} actions",
    )
    here, here_next = (np.full(settings.pathways, _NOBODY, dtype=np.int64) for _ in range(2))
    return Sage(
        int(knows), method.uses_rewards, settings.rules, mdp.space.layout, truth_of(mdp, mechanism, settings),
        blank_memory(mdp.space, mdp.n_actions, settings), here, here_next, np.zeros(1, dtype=np.bool_),
        np.zeros(shape), np.zeros(shape),
    )  # fmt: skip


@kernel
def begin_knowing(fresh: bool, state: int, scene: Scene, supply: Supply, sage: Sage) -> None:
    """Start an episode in true `state`, of which the scene shows a part; `fresh` if it is the first one."""
    world = scene.world
    if sage.knows == _BELIEF:
        expect_start(fresh, world, sage.truth, sage.belief, sage.ahead)
        take_evidence(
            -1, not scene.first_observed, scene.observation, world, scene.how, sage.layout, sage.truth, sage.belief,
            sage.ahead,
        )  # fmt: skip
    elif sage.knows == _TRANSITIONS:
        sight = glance(scene.observation, sage.layout)
        sage.was_complete[0] = sight.complete
        for k in range(sage.rules.K):
            sage.here[k] = draw_start(sage.here[k], world, sage.truth, sight, draw(supply.imputation))
    else:
        sage.here[0] = state
    if sage.knows != _BELIEF:
        for k in range(sage.rules.K):
            sage.memory.S[k], sage.memory.C[k] = world.shows[sage.here[k]], world.codes[sage.here[k]]


@kernel
def act_knowing(supply: Supply, sage: Sage) -> int:
    """Choose an action."""
    if sage.knows == _STATE:
        return int(sage.truth.policy[sage.here[0]])
    if sage.knows == _BELIEF:
        return best_on_average(sage.truth, sage.belief, sage.memory.p)
    return act(sage.rules, sage.memory, supply.exploration)


@kernel
def learn_knowing(action: int, step: Step, scene: Scene, supply: Supply, sage: Sage) -> None:
    """Take in what an action led to: move belief or pathways on, and update Q as the methods do."""
    world, rules, memory = scene.world, sage.rules, sage.memory
    if sage.knows == _BELIEF:
        expect_move(action, step.terminated, step.reward, sage.uses_rewards, world, sage.truth, sage.belief, sage.ahead)
        masked = True
        take_evidence(
            action, masked, scene.observation, world, scene.how, sage.layout, sage.truth, sage.belief, sage.ahead
        )
        return
    sight = glance(scene.observation, sage.layout)
    from_complete = sage.was_complete[0]
    sage.was_complete[0] = sight.complete
    sage.here_next[0] = step.arrival
    if sage.knows == _TRANSITIONS:
        for k in range(rules.K):
            sage.here_next[k] = draw_next(sage.here[k], action, world, sage.truth, sight, draw(supply.imputation))
        if rules.p_shuffle > 0 and draw(supply.imputation) < rules.p_shuffle:
            # The rows of Q follow from the true states, below.
            shuffle(sage.here_next, memory.S_next, supply.imputation)
    for k in range(rules.K):
        memory.S_next[k] = world.shows[sage.here_next[k]]
    if sage.knows != _STATE:
        improve(action, step.reward, step.terminated, from_complete, sight.complete, rules, memory)
    for k in range(rules.K):
        sage.here[k], memory.S[k] = sage.here_next[k], memory.S_next[k]
        memory.C[k] = world.codes[sage.here[k]]


@kernel
def run_knowing(n: int, scene: Scene, sage: Sage, supply: Supply, tally: Tally, notes: Notes) -> int:
    """Run up to `n` steps; gives how many were done before numbers ran low."""
    world = scene.world
    for t in range(n):
        if not (
            has_numbers(supply.world, supply.needs[0])
            and has_numbers(supply.missingness, supply.needs[1])
            and has_numbers(supply.imputation, supply.needs[2])
            and has_numbers(supply.exploration, supply.needs[3])
        ):
            return t
        if scene.place[FRESH]:
            begin_knowing(True, enter(0, scene, supply), scene, supply, sage)  # noqa: FBT003  kernels take no names
        action = act_knowing(supply, sage)
        step = go(action, scene, supply)
        learn_knowing(action, step, scene, supply, sage)
        score(
            action, step.reward, step.ended, step.stopped, world.bad[step.arrival], scene.observation,
            world.codes[step.arrival], sage.memory.C, sage.rules, sage.layout, tally,
        )  # fmt: skip
        note(tally, notes)
        if step.stopped:
            state = enter(world.restart[step.arrival], scene, supply)
            begin_knowing(False, state, scene, supply, sage)  # noqa: FBT003
    return n


class YardstickRun:
    """A yardstick in a `TabularMDP`, measured as `Run` measures an agent, with the same world and mask streams.

    Parameters
    ----------
    mdp, mechanism, settings
        The world, what hides it, and which of `YARDSTICKS` with its settings.
    seed, first_observed
        As for `Run`: a method's run with the same seed meets the same chance in the world and in the masks.

    Examples
    --------
    >>> from lacuna.missingness import mcar
    >>> from lacuna.worlds.toys import corridor
    >>> world = corridor(length=5, slip=0.0)
    >>> run = YardstickRun(world, mcar(world.space, 0.3), Settings("optimum"))
    >>> run.advance(1000)
    >>> run.figures()["mean_path_length"]
    4.0
    """

    def __init__(
        self, mdp: TabularMDP, mechanism: Mechanism, settings: Settings, *, seed: int = 0, first_observed: bool = True
    ) -> None:
        if settings.method not in YARDSTICKS:
            raise ValueError(f"{settings.method} is a method, not a yardstick; run it with Run")
        check_problem(mdp, mechanism)
        self.mdp = mdp
        self.mechanism = mechanism
        self.first_observed = first_observed
        self.entry = Entry()
        self.sage = blank_sage(mdp, mechanism, settings)
        self.streams = [Stream(seed, name) for name in ("world", "missingness", "imputation", "exploration")]
        self.place = np.array(FRESH_PLACE, dtype=np.int64)
        self.tally = blank_tally(mdp.n_actions, mdp.space.d, settings.pathways)
        self.curve: list[NDArray[np.float64]] = []
        self.steps = 0
        self.seconds = 0.0
        self._idle = -1 if mdp.idle is None else mdp.idle

    @exclusive
    def advance(self, steps: int, *, times: Iterable[int] = (), progress: Callable[[int], None] | None = None) -> None:
        """Run `steps` more; note the running sums at the given `times` (steps since the very start)."""
        end = self.steps + steps
        notes = blank_notes(sorted({t for t in times if self.steps < t <= end}), self._idle)
        while self.steps < end:
            done = self._fly(min(end - self.steps, _AHEAD_STEPS), notes)
            self.steps += done
            if progress is not None:
                progress(done)
        self.curve += list(notes.rows)

    def _fly(self, steps: int, notes: Notes) -> int:
        before = time.perf_counter()
        # One step may start the world, move it and restart it.
        needs = np.array([3, 3 * self.mechanism.n_draws, 3 * draws_per_step(self.sage.rules), 2], dtype=np.int64)
        numbers = [
            stream.fill(max(need, min(need * steps, _AHEAD_MOST)))
            for stream, need in zip(self.streams, needs.tolist(), strict=True)
        ]
        d = self.mdp.space.d
        scene = Scene(
            self.mdp.dynamics, self.mechanism.hiding, self.first_observed, self.place, np.zeros(d, dtype=np.int64),
            np.zeros(d, dtype=np.bool_),
        )  # fmt: skip
        done = run_knowing(steps, scene, self.sage, Supply(needs, *numbers), self.tally, notes)
        self.seconds += time.perf_counter() - before
        return done

    def snapshot(self) -> NDArray[np.float64]:
        """The running sums now, then how often the idle action was taken."""
        return np.append(self.tally.sums, float(self.tally.actions[self._idle]) if self._idle >= 0 else 0.0)

    def figures(self) -> dict[str, Any]:
        """The figures of the run so far."""
        return figures(self.tally, self.sage.rules, self._idle)
