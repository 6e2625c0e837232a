"""Any `TabularMDP` as a Gymnasium environment, with an exact random path: one number per start, one per step."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from lacuna.kernels.space import Space
from lacuna.kernels.streams import Stream
from lacuna.worlds.mdp.dynamics import move, start_state
from lacuna.worlds.mdp.painter import NOTHING_HIDDEN, Hidden, Painter, PicturePainter
from lacuna.worlds.mdp.tabular import TabularMDP

Shown = NDArray[np.int64] | int
"""What the agent is shown: an array of components, or a plain number if there is only one."""


class PlainPainter:
    """Says the component names and values: for worlds that nobody has drawn."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp

    def text(self, state: int, hidden: Hidden = NOTHING_HIDDEN) -> str:
        """One line, e.g. ``row 3, column ?``."""
        return self.mdp.describe(state, hidden.components)


class TabularEnv(gymnasium.Env[Shown, np.int64]):
    """A `TabularMDP` as a Gymnasium environment.

    ``reset(seed=…)`` gives a fresh world; a plain ``reset()`` starts the next episode of the same world (the flood of
    Lake World carries on). `info` says whether the step completed an episode (``episode_ended``) and nothing else; in
    a continuing world that is the only sign of it. A world with ``max_steps`` truncates itself.

    Parameters
    ----------
    mdp
        The world.
    render_mode
        ``"ansi"``, ``"rgb_array"`` (if the painter makes pictures) or None.
    painter
        What draws a true state; by default the world's own painter, else the names and values of the components.

    Attributes
    ----------
    true_state : int
        Where the world really is: for tests and measures, never for agents.
    episode_ended : bool
        Whether the last step completed an episode.
    stream : Stream or None
        The random numbers of this world; None before the first reset.
    hidden : Hidden
        What a wrapper hides, for the painter to mark; nothing by itself.

    Examples
    --------
    >>> from lacuna.worlds.toys import corridor
    >>> env = TabularEnv(corridor(length=3, slip=0.0), render_mode="ansi")
    >>> env.reset(seed=0)
    (0, {'episode_ended': False})
    >>> env.step(1)
    (1, -1.0, False, False, {'episode_ended': False})
    >>> env.step(1)
    (2, -1.0, True, False, {'episode_ended': True})
    >>> env.render()
    'position 2'
    """

    def __init__(self, mdp: TabularMDP, render_mode: str | None = None, painter: Painter | None = None) -> None:
        self.mdp = mdp
        self.painter: Painter = painter or mdp.painter or PlainPainter(mdp)
        modes = ["ansi", "rgb_array"] if isinstance(self.painter, PicturePainter) else ["ansi"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(f"render_mode is {render_mode!r}; {mdp.name} can be drawn as {', '.join(modes)} or None")
        self.metadata = {"render_modes": modes, "render_fps": 4}
        self.render_mode = render_mode
        sizes = mdp.space.sizes
        self.observation_space: spaces.Space[Any] = (
            spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(np.array(sizes))
        )
        self.action_space: spaces.Space[np.int64] = spaces.Discrete(mdp.n_actions)
        self.stream: Stream | None = None
        self.hidden = NOTHING_HIDDEN
        self.true_state = -1
        self.episode_ended = False
        self._steps = 0
        self._over = True

    @property
    def space(self) -> Space:
        """The components of what is shown."""
        return self.mdp.space

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Shown, dict[str, Any]]:
        """Start an episode: in a fresh world if `seed` is given or none was there, else in the world as it was left."""
        if options:
            raise ValueError(f"reset was given the options {sorted(options)}; {self.mdp.name} takes none")
        super().reset(seed=seed)
        if seed is not None or self.stream is None:
            self.stream = Stream(_entropy() if seed is None else seed, "world")
            way = 0
        else:
            way = int(self.mdp.restart[self.true_state])
        self.true_state = int(start_state(way, self.mdp.dynamics, self.stream.need(1)))
        self._steps = 0
        self._over = self.episode_ended = False
        return self._shown(), {"episode_ended": False}

    def step(self, action: np.int64 | int) -> tuple[Shown, float, bool, bool, dict[str, Any]]:
        """Let the world move once."""
        if self.stream is None:
            raise RuntimeError("step was called before the first reset; call reset first")
        if self._over:
            raise RuntimeError("step was called after the episode ended; call reset first")
        world = self.mdp.dynamics
        entry = move(self.true_state, self._checked(action), world, self.stream.need(1))
        self.true_state = int(world.next_state[entry])
        self._steps += 1
        ended = self.episode_ended = bool(world.ends[entry])
        terminated = ended and world.terminates
        truncated = not terminated and 0 < world.max_steps <= self._steps
        self._over = terminated or truncated
        return self._shown(), float(world.reward[entry]), terminated, truncated, {"episode_ended": ended}

    def render(self) -> Any:
        """Draw the true state in the way chosen by `render_mode`; None if none was."""
        if self.render_mode is None:
            return None
        if self.stream is None:
            raise RuntimeError("render was called before the first reset; call reset first")
        if self.render_mode == "rgb_array" and isinstance(self.painter, PicturePainter):
            return self.painter.picture(self.true_state, self.hidden)
        return self.painter.text(self.true_state, self.hidden)

    def __repr__(self) -> str:
        return f"TabularEnv({self.mdp.name!r})"

    def _checked(self, action: np.int64 | int) -> int:
        try:
            a = index(action)
        except TypeError:
            a = -1
        if not 0 <= a < self.mdp.n_actions:
            raise ValueError(f"action is {action!r}; it must be a whole number from 0 to {self.mdp.n_actions - 1}")
        return a

    def _shown(self) -> Shown:
        shown = self.mdp.dynamics.shown[self.true_state]
        return int(shown[0]) if shown.shape[0] == 1 else shown.copy()


def _entropy() -> int:
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
