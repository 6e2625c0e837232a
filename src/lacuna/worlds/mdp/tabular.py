"""A finite decision problem as frozen, validated arrays: what moves, pays and ends, and what the agent is shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna import display
from lacuna.kernels.memory_limit import ask_for
from lacuna.kernels.space import Space
from lacuna.validation import whole_number
from lacuna.worlds.mdp.drawing import Drawing
from lacuna.worlds.mdp.painter import Painter

Outcome = tuple[float, int, float, bool]
"""One way a step can go: ``(probability, next true state, reward, ends the episode)``, as in Gymnasium's ``P``."""

_LONG_ROW = 64
MAX_ACTIONS, MAX_STEPS = 10**9, 10**18


class Dynamics(NamedTuple):
    """The arrays of a world as kernels see them.

    The outcomes of action `a` in true state `s` lie at ``ptr[s*A + a] : ptr[s*A + a + 1]``, likeliest first; the
    states an episode may start from after one that stopped in `s` lie at ``start_ptr[g] : start_ptr[g+1]`` with
    ``g = restart[s]``, and those of a fresh world at ``g = 0``.
    """

    n_actions: int
    terminates: bool
    max_steps: int
    ptr: NDArray[np.int64]
    next_state: NDArray[np.int64]
    cumulative: NDArray[np.float64]
    reward: NDArray[np.float64]
    ends: NDArray[np.bool_]
    start_ptr: NDArray[np.int64]
    start_state: NDArray[np.int64]
    start_cumulative: NDArray[np.float64]
    restart: NDArray[np.int64]
    shows: NDArray[np.int64]
    shown: NDArray[np.int64]
    codes: NDArray[np.int64]
    bad: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class TabularMDP:
    """A finite decision problem: frozen arrays over *true* states, and what each of them shows the agent.

    Use `TabularMDP.build` unless you have the arrays already.

    Parameters
    ----------
    space
        The factored space of what the agent sees.
    n_actions
        Number of actions `A`.
    ptr, next_state, probability, reward, ends
        Sparse transitions: the outcomes of ``(s, a)`` are the entries ``ptr[s*A+a] : ptr[s*A+a+1]``. `ends` marks the
        arrivals that complete an episode.
    shows
        For each true state, the index in `space` of what it shows.
    starts
        One distribution over true states per way to start, each a mapping ``state -> probability``; the first is that
        of a fresh world.
    restart
        For each true state, which of `starts` the next episode uses after one that stopped there.
    bad
        For each true state, whether arriving there counts as a bad step (water, a cliff).
    terminates
        True: an arrival marked `ends` stops the episode, nothing is bootstrapped, and a new one starts. False (a
        continuing task): it is only counted.
    max_steps
        Episodes longer than this are truncated; 0 for never.
    idle
        The number of the action that does nothing, if there is one: runs measure how often it is taken.
    action_names, regions, name, painter, drawing
        For people: names of the actions, named sets of true states (``{"fog": …}``), a name for the world, what draws
        it as text or pixels, and how replays draw it.
    """

    space: Space
    n_actions: int
    ptr: NDArray[np.int64]
    next_state: NDArray[np.int64]
    probability: NDArray[np.float64]
    reward: NDArray[np.float64]
    ends: NDArray[np.bool_]
    shows: NDArray[np.int64]
    starts: tuple[Mapping[int, float], ...]
    restart: NDArray[np.int64]
    bad: NDArray[np.bool_]
    terminates: bool = True
    max_steps: int = 0
    idle: int | None = None
    action_names: tuple[str, ...] = ()
    regions: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    name: str = "world"
    painter: Painter | None = None
    drawing: Drawing | None = None

    @classmethod
    def build(
        cls,
        outcomes: Callable[[int, int], Iterable[Outcome]] | Mapping[int, Mapping[int, Iterable[Outcome]]],
        *,
        space: Space,
        shows: Sequence[int] | NDArray[np.int64],
        n_actions: int,
        starts: Sequence[Mapping[int, float]],
        **rest: Any,
    ) -> TabularMDP:
        """Make a world from a function ``(state, action) -> outcomes``, or a table like Gymnasium's ``P``.

        Outcomes of one (state, action) that agree in next state, reward and end are added up. `rest` are the other
        fields of the class; `restart`, `bad` and what is not given get their usual values.

        Examples
        --------
        A coin that is tossed once and pays 1 for heads:

        >>> coin = TabularMDP.build(
        ...     lambda s, a: [(0.5, 0, 0.0, True), (0.5, 1, 1.0, True)],
        ...     space=Space((2,), ("side",)), shows=[0, 1], n_actions=1, starts=[{0: 1.0}])
        >>> coin.n_states, coin.probability.tolist()
        (2, [0.5, 0.5, 0.5, 0.5])
        """
        n_states = len(shows)
        rows: list[dict[tuple[int, float, bool], float]] = []
        for s in range(n_states):
            for a in range(n_actions):
                row: dict[tuple[int, float, bool], float] = {}
                for p, s_next, r, end in outcomes(s, a) if callable(outcomes) else outcomes[s][a]:
                    key = (int(s_next), float(r), bool(end))
                    row[key] = row.get(key, 0.0) + float(p)
                # Likeliest first: a draw then looks at two or three entries on average.
                rows.append(dict(sorted(row.items(), key=lambda item: (-item[1], item[0]))))
        flat = [(key, p) for row in rows for key, p in row.items() if p > 0]
        lengths = [sum(p > 0 for p in row.values()) for row in rows]
        rest.setdefault("restart", np.zeros(n_states, dtype=np.int64))
        rest.setdefault("bad", np.zeros(n_states, dtype=np.bool_))
        return cls(
            space=space,
            n_actions=n_actions,
            ptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            next_state=np.array([key[0] for key, _ in flat], dtype=np.int64),
            probability=np.array([p for _, p in flat], dtype=np.float64),
            reward=np.array([key[1] for key, _ in flat], dtype=np.float64),
            ends=np.array([key[2] for key, _ in flat], dtype=np.bool_),
            shows=np.asarray(shows, dtype=np.int64),
            starts=tuple(dict(start) for start in starts),
            **rest,
        )

    def __post_init__(self) -> None:
        whole_number("n_actions", self.n_actions, 1, MAX_ACTIONS)
        whole_number("max_steps", self.max_steps, 0, MAX_STEPS)
        self._own_arrays()
        if not self.action_names:
            object.__setattr__(self, "action_names", tuple(str(a) for a in range(self.n_actions)))
        if len(self.action_names) != self.n_actions:
            raise ValueError(f"{len(self.action_names)} action names for {self.n_actions} actions")
        if self.idle is not None:
            whole_number("idle", self.idle, 0, self.n_actions - 1)
        self._check_transitions()
        self._check_starts()
        self._check_states()
        if self.drawing is not None:
            self.drawing.check(self)

    def _own_arrays(self) -> None:
        """Keep private copies that nobody can write to, so that a world never changes after it was checked."""
        kinds: dict[str, type[np.generic]] = dict.fromkeys(("ptr", "next_state", "shows", "restart"), np.int64)
        kinds |= {"probability": np.float64, "reward": np.float64, "ends": np.bool_, "bad": np.bool_}
        for what, kind in kinds.items():
            object.__setattr__(self, what, frozen_copy(getattr(self, what), kind))
        regions = {name: frozen_copy(states, np.bool_) for name, states in self.regions.items()}
        object.__setattr__(self, "regions", MappingProxyType(regions))

    def __getstate__(self) -> dict[str, Any]:
        # The fields only: a copy (or one sent to a worker process) derives the rest again. No copy can be made of a
        # read-only view of a mapping.
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"regions": dict(self.regions)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # As when it is made, so that the arrays of a copy are checked and read-only too.
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def _check_transitions(self) -> None:
        n_rows = self.n_states * self.n_actions
        if self.ptr.shape != (n_rows + 1,) or self.ptr[0] != 0 or (np.diff(self.ptr) < 0).any():
            raise ValueError(f"ptr must rise from 0 over {n_rows + 1} entries (states x actions + 1)")
        n_outcomes = int(self.ptr[-1])
        for what in ("next_state", "probability", "reward", "ends"):
            if getattr(self, what).shape != (n_outcomes,):
                raise ValueError(f"{what} has shape {getattr(self, what).shape}; ptr says {n_outcomes} outcomes")
        if (i := first_of((self.next_state < 0) | (self.next_state >= self.n_states))) is not None:
            raise ValueError(f"{self._place(i)} leads to state {self.next_state[i]}, which does not exist")
        if (i := first_of(~np.isfinite(self.reward))) is not None:
            raise ValueError(f"{self._place(i)} pays {self.reward[i]}; rewards must be finite numbers")
        if (i := first_of(~((self.probability > 0) & (self.probability <= 1 + 1e-12)))) is not None:
            raise ValueError(f"{self._place(i)} has probability {self.probability[i]}, not between 0 and 1")
        sums = np.add.reduceat(np.append(self.probability, 0.0), self.ptr[:-1]) if n_rows else np.zeros(0)
        sums[np.diff(self.ptr) == 0] = 0.0
        if not np.allclose(sums, 1.0, rtol=0, atol=1e-9):
            row = int(np.argmax(np.abs(sums - 1.0)))
            s, a = divmod(row, self.n_actions)
            raise ValueError(f"the probabilities of state {s}, action {a} add up to {sums[row]:.12g}, not 1")

    def _place(self, entry: int) -> str:
        row = int(np.searchsorted(self.ptr, entry, side="right")) - 1
        s, a = divmod(row, self.n_actions)
        return f"an outcome of state {s}, action {a}"

    def _check_states(self) -> None:
        if (s := first_of((self.shows < 0) | (self.shows >= self.space.n_states))) is not None:
            raise ValueError(f"state {s} shows {self.shows[s]}; the space has states 0 to {self.space.n_states - 1}")
        for what, array in {"restart": self.restart, "bad": self.bad, **self.regions}.items():
            if array.shape != (self.n_states,):
                raise ValueError(
                    f"{what} has shape {array.shape}; it needs an entry for each of {self.n_states} states"
                )
        if ((self.restart < 0) | (self.restart >= len(self.starts))).any():
            raise ValueError(f"restart names a start outside 0 to {len(self.starts) - 1}")

    def _check_starts(self) -> None:
        if not self.starts:
            raise ValueError("a world needs at least one way to start")
        for g, start in enumerate(self.starts):
            if not start or not abs(sum(start.values()) - 1.0) <= 1e-9 or min(start.values()) < 0:
                raise ValueError(f"the probabilities of start {g} must be positive and add up to 1, got {dict(start)}")
            if not all(0 <= s < self.n_states for s in start):
                raise ValueError(f"start {g} names a state outside 0 to {self.n_states - 1}: {sorted(start)}")

    def __repr__(self) -> str:
        shows = " x ".join(f"{name} {n}" for name, n in zip(self.space.names, self.space.sizes, strict=True))
        return f"TabularMDP({self.name!r}, {self.n_states} states, {self.n_actions} actions, shows {shows})"

    def _repr_html_(self) -> str:
        kind = "episodes end" if self.terminates else "continuing"
        about = [("true states", self.n_states), ("outcomes", self.next_state.size), ("task", kind),
                 ("cut off after", self.max_steps or None)]  # fmt: skip
        rewards = f"{self.reward.min():g} to {self.reward.max():g}" if self.reward.size else "none"
        parts = [display.table(["component", "values"], zip(self.space.names, self.space.sizes, strict=True))]
        parts.append(display.facts([("actions", ", ".join(self.action_names[:20])), ("rewards", rewards)]))
        regions = [(name, int(states.sum())) for name, states in self.regions.items()]
        parts += [display.table(["region", "true states"], regions)] if regions else []
        return display.card(f"{self.name}: a decision problem", display.facts(about), *parts)

    @property
    def n_states(self) -> int:
        """Number of true states."""
        return int(self.shows.shape[0])

    def describe(self, state: int, hidden: Collection[str] = ()) -> str:
        """What a true state shows, in words: ``row 3, column ?``."""
        values = zip(self.space.names, self.space.decode(int(self.shows[state])), strict=True)
        return ", ".join(f"{name} {'?' if name in hidden else value}" for name, value in values)

    def outcomes(self, state: int, action: int) -> list[Outcome]:
        """All ways that `action` in `state` can go."""
        row = state * self.n_actions + action
        entries = slice(self.ptr[row], self.ptr[row + 1])
        columns = (self.probability, self.next_state, self.reward, self.ends)
        return list(zip(*(column[entries].tolist() for column in columns), strict=True))

    @cached_property
    def dynamics(self) -> Dynamics:
        """The world as arrays for kernels."""
        start_state = [s for start in self.starts for s in start]
        start_p = [p for start in self.starts for p in start.values()]
        start_ptr = np.concatenate([[0], np.cumsum([len(start) for start in self.starts])]).astype(np.int64)
        ask_for(8 * self.n_states * self.space.d, f"the {self.space.d} components of {self.n_states} true states")
        layout = self.space.layout
        shown = self.shows[:, None] // layout.strides % layout.sizes
        return Dynamics(
            n_actions=self.n_actions,
            terminates=self.terminates,
            max_steps=self.max_steps,
            ptr=self.ptr,
            next_state=self.next_state,
            cumulative=_cumulative(self.ptr, self.probability),
            reward=self.reward,
            ends=self.ends,
            start_ptr=start_ptr,
            start_state=np.array(start_state, dtype=np.int64),
            start_cumulative=_cumulative(start_ptr, np.array(start_p, dtype=np.float64)),
            restart=self.restart,
            shows=self.shows,
            shown=shown,
            codes=(shown << layout.shifts).sum(axis=1),
            bad=self.bad,
        )


def first_of(flags: NDArray[np.bool_]) -> int | None:
    """Position of the first True, if there is one."""
    return int(np.argmax(flags)) if flags.any() else None


def frozen_copy(array: Any, kind: type[np.generic]) -> NDArray[Any]:
    """Copy an array, so that nobody can write to it and it has one compiled type."""
    copy = np.array(array, dtype=kind, order="C")
    copy.setflags(write=False)
    return copy


def _cumulative(ptr: NDArray[np.int64], probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Running sums within each row; the last entry is exactly 1, so that a search always ends inside its row."""
    total = probability.copy()
    lengths = np.diff(ptr)
    for row in np.flatnonzero(lengths > _LONG_ROW):
        total[ptr[row] : ptr[row + 1]] = np.cumsum(probability[ptr[row] : ptr[row + 1]])
    # A world has millions of short rows: all of them take their next entry at once.
    first = ptr[:-1][lengths <= _LONG_ROW]
    left = lengths[lengths <= _LONG_ROW]
    for k in range(1, _LONG_ROW):
        first, left = first[left > k], left[left > k]
        total[first + k] += total[first + k - 1]
    total[ptr[1:][lengths > 0] - 1] = 1.0
    return total
