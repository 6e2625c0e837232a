"""An agent or a yardstick (the *player*) in a world, measured: compiled, or step by step with the same bits."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna import display
from lacuna.agent import checkpoint, picture, savefile
from lacuna.agent.agent import Agent
from lacuna.agent.learner import draws_per_pathway, draws_per_step, may_explore
from lacuna.agent.methods import YARDSTICKS
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.settings import Settings
from lacuna.kernels.counts import MAX_COUNT
from lacuna.kernels.exclusive import Entry, exclusive
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import MISSING
from lacuna.kernels.streams import Stream
from lacuna.missingness.lateness import blank_lateness
from lacuna.missingness.mechanism import Mechanism
from lacuna.run.loop import Record, Trace, run_steps
from lacuna.run.measures import blank_notes, blank_tally, check_curve, check_tally, figures, note, score, sums_now
from lacuna.run.scene import FRESH, FRESH_PLACE, Numbers, Scene, Step
from lacuna.run.yardstick import Yardstick
from lacuna.validation import number, one_of, shown, whole_number
from lacuna.worlds.mdp.tabular import TabularMDP
from lacuna.worlds.mdp.tabular_env import TabularEnv
from lacuna.wrappers.missing import MissingObservation

DRIVERS = ("compiled", "stepwise")

FORM = savefile.Form("run", (run_steps,))
"""A saved run, and the loop that calls its kernels."""

# Numbers prepared per stream between two visits of the compiled loop: some thousand steps, yet small enough for cache.
_AHEAD_STEPS, _AHEAD_MOST = 8192, 1 << 16


class Run:
    """An agent or a yardstick in a `TabularMDP`, measured: in chunks, resumable, compiled or step by step.

    Parameters
    ----------
    mdp, mechanism
        The world, and what hides parts of it.
    settings
        A method with its settings; or a yardstick (`YARDSTICKS`), which is compiled only.
    seed
        Fixes everything: the world, the masks, the imputations and the exploration, each by its own stream.
    first_observed
        Whether the first state of an episode is always fully observed.
    driver
        ``"compiled"``, or ``"stepwise"``: the plain loop over the Gymnasium environment and the `Agent`'s verbs, which
        gives the same bits.

    Examples
    --------
    >>> from lacuna.missingness import mcar
    >>> from lacuna.worlds.toys import corridor
    >>> world = corridor(length=5, slip=0.1)
    >>> run = Run(world, mcar(world.space, 0.3), Settings("mi-conservative", K=5, gamma=0.9), seed=1)
    >>> run.advance(1000)
    >>> run.figures()["episodes"] > 50
    True
    """

    def __init__(
        self, mdp: TabularMDP, mechanism: Mechanism, settings: Settings, *, seed: int = 0,
        first_observed: bool = True, driver: str = "compiled",
    ) -> None:  # fmt: skip
        one_of("driver", driver, DRIVERS)
        if not isinstance(first_observed, bool):
            raise ValueError(f"first_observed is {first_observed!r}; it must be True or False")
        check_problem(mdp, mechanism)
        self.mdp = mdp
        self.mechanism = mechanism
        self.first_observed = first_observed
        self.player = _player(mdp, mechanism, settings, seed)
        if driver == "stepwise" and isinstance(self.player, Yardstick):
            raise ValueError(
                f"driver is {driver!r}, but {settings.method} is a yardstick: it knows what no environment shows, and "
                f"is compiled only"
            )
        self.world = Stream(seed, "world")
        self.missingness = Stream(seed, "missingness")
        self.place = np.array(FRESH_PLACE, dtype=np.int64)
        self.lateness = blank_lateness(mechanism)
        self.tally = blank_tally(mdp.n_actions, mdp.space.d, settings.pathways)
        self.curve: list[NDArray[np.float64]] = []
        self._idle = -1 if mdp.idle is None else mdp.idle
        self.seconds = 0.0
        self.driver = driver
        self._env: MissingObservation | None = None
        self._files = savefile.KnownFiles(FORM)

    @property
    def agent(self) -> Agent:
        """The agent; a run of a yardstick has none."""
        if isinstance(self.player, Yardstick):
            raise AttributeError(f"{self.player.settings.method} is a yardstick, so its run has no agent")
        return self.player

    @property
    def steps(self) -> int:
        """How many steps were run."""
        return self.player.steps

    @property
    def streams(self) -> tuple[Stream, Stream, Stream, Stream]:
        """The random numbers: of the world, the masks, the imputations and the exploration."""
        return self.world, self.missingness, self.player.imputation, self.player.exploration

    @property
    def entry(self) -> Entry:
        """The entry of the player, whose arrays the compiled loop shares."""
        return self.player.entry

    @exclusive
    def advance(self, steps: int, *, times: Iterable[int] = (), progress: Callable[[int], None] | None = None) -> None:
        """Run `steps` more; note the running sums at the given `times` (steps since the very start)."""
        end = self.steps + whole_number("steps", steps, 0, MAX_COUNT)
        wanted = sorted({t for t in times if self.steps < whole_number("a time", t, 0, MAX_COUNT) <= end})
        notes, kept = blank_notes(wanted, self._idle), 0
        while self.steps < end:
            try:
                done = self._drive(end - self.steps, Record(self.tally, notes, _blank_trace(self, 0)))
            finally:
                self.curve += list(notes.rows[kept : notes.at[0]])
                kept = int(notes.at[0])
            if progress is not None:
                progress(done)

    @exclusive
    def record(self, steps: int) -> Trace:
        """Run `steps` more and return a full record of them."""
        pieces = []
        end = self.steps + whole_number("steps", steps, 0, MAX_COUNT)
        columns = len(Trace._fields) - 2 + self.mdp.space.d + self.player.rules.K
        ask_for(8 * steps * columns, f"records of {steps} steps")
        while self.steps < end:
            trace = _blank_trace(self, end - self.steps)
            done = self._drive(end - self.steps, Record(self.tally, blank_notes((), self._idle), trace))
            pieces.append([column[:done] for column in trace])
        if not pieces:
            return _blank_trace(self, 0)
        return Trace(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))

    def _drive(self, steps: int, record: Record) -> int:
        before = time.perf_counter()
        # Chunks of a size that keeps progress moving and Ctrl-C answered.
        done = self._walk(min(steps, 1000), record) if self.driver == "stepwise" else self._fly(steps, record)
        self.seconds += time.perf_counter() - before
        return done

    def _walk(self, steps: int, record: Record) -> int:
        """Take `steps` through the public face: a Gymnasium environment and the agent's three verbs."""
        agent, world = self.agent, self.mdp.dynamics
        if self._env is None:
            self._base = TabularEnv(self.mdp)
            self._env = MissingObservation(self._base, self.mechanism, first_observed=self.first_observed)
            observation, _ = self._env.reset(seed=agent.seed)
            agent.begin(observation)
        env, base = self._env, self._base
        for t in range(steps):
            state = base.true_state
            action = agent.act()
            observation, reward, terminated, truncated, info = env.step(action)
            agent.take_late(info)
            agent.learn(reward, observation, terminated)
            arrival, seen = base.true_state, env.components(observation)
            step = Step(state, arrival, reward, base.episode_ended, terminated, terminated or truncated)
            score(action, step, seen, world, agent.learner, self.tally)
            note(self.tally, record.notes)
            pathways = agent.memory.S - agent.memory.first
            row = (state, action, reward, arrival, seen, pathways, base.episode_ended, truncated)
            if t < record.trace.state.shape[0]:
                for column, value in zip(record.trace, row, strict=True):
                    column[t] = value
            if terminated or truncated:
                observation, _ = env.reset()
                agent.begin(observation)
        self.world, self.missingness = base.stream or self.world, env.stream
        return steps

    def _fly(self, steps: int, record: Record) -> int:
        """Take up to `steps` in the compiled loop."""
        player, rules, d = self.player, self.player.rules, self.mdp.space.d
        # One step may start the world, move it and restart it.
        masks = self.mechanism.n_draws + (d if self.lateness is not None else 0)
        needs = [3, 3 * masks, 3 * draws_per_step(rules, d), 2]
        # What steps usually take; episodes that start are rare beside steps.
        drawn = rules.K * draws_per_pathway(rules, d) * (1 + min(rules.lag, self.mechanism.delay))
        usual = [1.2, 1.1 * masks, drawn if player.method.multiple else 0, 1 + may_explore(rules)]
        blocks = []
        for stream, need, each in zip(self.streams, needs, usual, strict=True):
            full = need + min(int(each * _AHEAD_STEPS), _AHEAD_MOST)
            wanted = min(need + int(each * steps), full)
            # The loop may have stopped for something else, with most numbers still waiting.
            enough = stream.ready >= max(need, min(wanted, full // 2))
            blocks.append(stream.uniforms if enough else stream.fill(wanted))
        player.make_room()
        scene = Scene(
            self.mdp.dynamics, self.mechanism.hiding, self.first_observed, self.place,
            np.zeros(d, dtype=np.int64), np.zeros(d, dtype=np.bool_), self.lateness,
        )  # fmt: skip
        knowledge = player.knowledge if isinstance(player, Yardstick) else None
        numbers = Numbers(np.array(needs, dtype=np.int64), *blocks)
        done = run_steps(steps, scene, player.learner, knowledge, numbers, record)
        player.took_steps(done)
        return done

    def snapshot(self) -> NDArray[np.float64]:
        """The running sums now, then how often the idle action was taken."""
        return sums_now(self.tally, self._idle)

    def figures(self) -> dict[str, Any]:
        """The figures of the run so far."""
        return figures(self.tally, self.player.rules, self._idle)

    def __repr__(self) -> str:
        who = f"{self.player.settings.method!r}, {self.mdp.name!r}, {self.mechanism.name!r}"
        return f"Run({who}, {self.steps} steps, seed={self.player.imputation.seed})"

    def _repr_html_(self) -> str:
        kept = ("mean_total_reward", "reward_per_step", "mean_path_length", "mean_bad_steps", "episodes")
        found = self.figures() if self.steps else {}
        about = [("steps", self.steps), ("seed", self.player.imputation.seed), ("label", self.mechanism.label)]
        measured = [(name.replace("_", " "), found.get(name)) for name in kept]
        signs = picture.signs_of(self.mdp.action_names, self.mdp.n_actions)
        policy = "" if isinstance(self.player, Yardstick) else picture.policy_html(self.mdp.space, self.agent.Q, signs)
        title = f"Run: {self.player.settings.method} in {self.mdp.name}, {self.mechanism.name}"
        return display.card(title, display.facts(about), display.facts(measured), policy)

    def close(self) -> None:
        """Do nothing: a run holds nothing open."""

    @exclusive
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the complete state of a compiled run, whole or not at all; `overwrite` is that of `Agent.save`."""
        if self.driver == "stepwise":
            raise ValueError("a stepwise run cannot be saved, since its environment cannot; save its agent instead")
        if isinstance(self.player, Yardstick):
            raise ValueError(f"{self.player.settings.method} is a yardstick, whose run cannot be saved")
        check_tally(self.tally, self.agent.rules, self.steps)
        agent_header, arrays = self.agent.to_parts()
        header = {
            "agent": agent_header,
            "problem": fingerprint(self.mdp, self.mechanism),
            "first_observed": self.first_observed,
            "positions": {"world": self.world.position, "missingness": self.missingness.position},
            "seconds": self.seconds,
        }
        mine = {f"tally_{name}": array for name, array in self.tally._asdict().items()}
        if self.lateness is not None:
            mine |= {"late_waiting": self.lateness.waiting, "late_at": self.lateness.at}
        mine |= {"place": self.place, "curve": np.array(self.curve).reshape(len(self.curve), self.snapshot().size)}
        self._files.write(path, header, arrays | mine, overwrite=overwrite)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], mdp: TabularMDP, mechanism: Mechanism, *,
        other_kernels: savefile.OtherKernels = "warn",
    ) -> Run:  # fmt: skip
        """Load a run, given the same world and mechanism; it continues exactly where it was saved.

        For `other_kernels` see `Agent.load`.
        """
        files = savefile.KnownFiles(FORM)
        header, arrays = files.read(path, other_kernels)
        with savefile.refusing(path, "cannot be resumed"):
            savefile.fields("the run", header, ("agent", "problem", "first_observed", "positions", "seconds"))
            if header["problem"] != fingerprint(mdp, mechanism):
                raise ValueError(f"it was saved with another world or mechanism than {mdp.name}, {mechanism.name}")
            space, n_actions, settings, seed = checkpoint.identity(header["agent"])
            if (space.sizes, n_actions) != (mdp.space.sizes, mdp.n_actions):
                raise ValueError(f"its agent knows {space.sizes} and {n_actions} actions")
            run = cls(mdp, mechanism, settings, seed=seed, first_observed=header["first_observed"])
            run._restore(header, arrays)
        run._files = files
        return run

    def _restore(self, header: dict[str, Any], arrays: savefile.Arrays) -> None:
        """Fill a run that has just begun from a file."""
        agent, mdp = self.agent, self.mdp
        names = [f"tally_{name}" for name in self.tally._fields]
        names += [] if self.lateness is None else ["late_waiting", "late_at"]
        savefile.fields("the file", arrays, (*checkpoint.array_names(agent.settings), *names, "place", "curve"))
        checkpoint.restore(agent, header["agent"], arrays)
        self.world, self.missingness = checkpoint.streams(agent.seed, header["positions"], "world", "missingness")
        self.seconds = number("seconds", header["seconds"], 0, MAX_COUNT)
        last = np.array([1, mdp.n_states, self.mechanism.rates.shape[0], mdp.max_steps or MAX_COUNT]) - [0, 1, 1, 1]
        self.place[:] = savefile.take(arrays, "place", "int64", self.place.shape, 0, last)
        if self.lateness is not None:
            most = np.array(mdp.space.sizes) - 1
            waiting, at = self.lateness.waiting, self.lateness.at
            waiting[:] = savefile.take(arrays, "late_waiting", "int64", waiting.shape, MISSING, most)
            at[:] = savefile.take(arrays, "late_at", "int64", (1,), 0, MAX_COUNT)
        begun = not self.place[FRESH]
        if begun != agent.ready or begun != (agent.steps > 0):
            raise ValueError("its agent and its world disagree on whether an episode has begun")
        for name, blank in self.tally._asdict().items():
            low = 0 if blank.dtype == np.int64 else -np.inf
            blank[...] = savefile.take(arrays, f"tally_{name}", str(blank.dtype), blank.shape, low)
        check_tally(self.tally, agent.rules, agent.steps)
        curve = savefile.take(arrays, "curve", "float64", (None, self.snapshot().size))
        check_curve(curve, agent.steps)
        self.curve = list(curve)


def _player(mdp: TabularMDP, mechanism: Mechanism, settings: Settings, seed: int) -> Agent | Yardstick:
    if not isinstance(settings, Settings):
        raise TypeError(f"settings is {shown(settings)}; it must be Settings, e.g. Settings('mi-synthetic', K=5)")
    if settings.method in YARDSTICKS:
        return Yardstick(mdp, mechanism, settings, seed)
    return Agent(mdp.space, mdp.n_actions, settings, seed=seed)


def check_problem(mdp: TabularMDP, mechanism: Mechanism) -> None:
    """Refuse a mechanism made for another world: kernels would read beyond its rates."""
    for what, value, kind in (("mdp", mdp, TabularMDP), ("mechanism", mechanism, Mechanism)):
        if not isinstance(value, kind):
            raise TypeError(f"{what} is {shown(value)}; it must be a {kind.__name__}")
    if mechanism.space.sizes != mdp.space.sizes:
        raise ValueError(f"{mechanism.name} hides {mechanism.space.sizes}, the world shows {mdp.space.sizes}")
    strange = mechanism.shows is not None and not np.array_equal(mechanism.shows, mdp.shows)
    if strange or mechanism.n_actions not in (None, mdp.n_actions):
        raise ValueError(f"{mechanism.name} has rates for true states or actions of another world than {mdp.name}")
    most = np.abs(mdp.reward).max(initial=0.0)
    if most > MAX_REWARD:
        raise ValueError(f"{mdp.name} pays {most:g}; a reward must lie between {-MAX_REWARD:g} and {MAX_REWARD:g}")


def fingerprint(mdp: TabularMDP, mechanism: Mechanism) -> str:
    """A digest of everything that fixes a problem's behaviour."""
    digest = hashlib.sha256(repr((mdp.space.sizes, mechanism.space.sizes)).encode())
    for item in (*mdp.dynamics, *mechanism.hiding):
        digest.update(item.tobytes() if isinstance(item, np.ndarray) else repr(item).encode())
    if mechanism.delay:
        digest.update(repr((mechanism.delay, mechanism.arrives)).encode())
    return digest.hexdigest()


def _blank_trace(run: Run, steps: int) -> Trace:
    whole = [np.zeros(steps, dtype=np.int64) for _ in range(5)]
    d, K = run.mdp.space.d, run.player.rules.K
    seen, pathways = np.zeros((steps, d), dtype=np.int64), np.zeros((steps, K), dtype=np.int64)
    return Trace(whole[0], whole[1], np.zeros(steps), whole[2], seen, pathways, whole[3], whole[4])
