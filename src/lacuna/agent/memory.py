"""The state of a learner, as tuples of arrays that kernels pass on as one."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.methods import Impute, method_named
from lacuna.agent.settings import Rules, Settings
from lacuna.kernels.codes import Observed
from lacuna.kernels.counts import CountTable
from lacuna.kernels.space import MISSING, Layout, Space

NO_STATE = -1
"""A pathway without a state: the action is uniform."""

MOST_SUCCESSORS = 64
"""A planner considers at most this many next states of the component model."""

ANYWHERE = np.uint64(0)
"""No hint where in a row of counts an entry may be."""


MOST_OUTCOMES = 8
"""Evidence distinguishes this many outcomes: rewards, with or without the end of an episode."""

HIGHEST, AGREEMENT, OPTIMISTIC, PEAK, RISING, LARGEST, IMPATIENCE = range(7)
"""Places in ``PlanTable.levels``: highest reward so far (0 at least), mean agreement of the pathways, value of what was
never tried, highest value of the last round and of this one so far, largest absolute reward, probability of a uniform
action."""

STEPS, CREDITED, ENDINGS, WAIT, CURSOR, QUEUED, VISITED, OPEN, ENTRY, OUTCOMES = range(10)
"""Places in ``PlanTable.at``: steps taught and credited, endings and steps since the last one, where the round over all
rows stands, states queued, states visited, the state whose predecessors are being backed up (-1 if none), how many of
them were, outcomes known."""


class Memory(NamedTuple):
    """The memory of a learner, besides the counts.

    `S` are the K pathways as rows of `Q` and `C` the same as codes; `previous` is the last observation and `held` the
    values carried forward. With optimism, `tried` counts the pathways that took each action in each state, up to those
    that share a table, `finished` the actions of each state that as many took (both are empty without), and
    `highest_reward` is the highest so far, 0 at least. `S_next` to `of_value` are scratch; of these, `of_code` (with an
    entry per code, for chained draws in a small space) is all zeros between steps.

    `first` and all after it never change. The Q table of pathway k begins in row ``first[k]`` of `Q`, 0 if all share
    one: so its state is ``S[k] - first[k]``. Its transitions are counted in row ``S[k] + to_counts[k]``.
    `assumed` are the values that stand for hidden ones, in methods that assume some.
    """

    Q: NDArray[np.float64]
    S: NDArray[np.int64]
    C: NDArray[np.int64]
    previous: NDArray[np.int64]
    held: NDArray[np.int64]
    tried: NDArray[np.float64]
    finished: NDArray[np.int64]
    highest_reward: NDArray[np.float64]
    S_next: NDArray[np.int64]
    C_next: NDArray[np.int64]
    entries: NDArray[np.uint64]
    firsts: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    errors: NDArray[np.float64]
    p: NDArray[np.float64]
    optimistic: NDArray[np.float64]
    own_row: NDArray[np.int64]
    of_code: NDArray[np.int64]
    of_value: NDArray[np.int64]
    first: NDArray[np.int64]
    to_counts: NDArray[np.int64]
    assumed: NDArray[np.int64]


class ParentSearch(NamedTuple):
    """Which component depends on which; all arrays are empty if parents are off.

    From ``first[j, p]`` on, the rows of the counts are the pairs of values of j and p, from ``first[j, j]`` on the
    values of j alone; all count only the transitions that test parents. ``weight[j, p]`` is the likelihood ratio
    of the transitions of j, with p to without p; on the diagonal is the threshold. ``parent[j]`` is the p of the
    largest weight, if it does. ``due[j]`` is the number of hidden values of j, less those already spent on tests.
    """

    first: NDArray[np.int64]
    weight: NDArray[np.float64]
    parent: NDArray[np.int64]
    due: NDArray[np.int64]


class ComponentTable(NamedTuple):
    """Component counts: a row for every value of every component (as in ``Layout.offsets``), then the search's rows.

    `backlog` is the most entries that single components can have, 0 if they are counted from the start.
    """

    counts: CountTable
    search: ParentSearch
    backlog: int


class FactoredTable(NamedTuple):
    """The component counts as kernels see them, and room for one product of components.

    Rows of `counts`, each with an action: the values of all components as in ``Layout.offsets``; from `first_plain` on
    the same without an action, from `first_seen` on a row per component (both under action 0); then from
    ``search.first[j, p]`` on the pairs of values of j and p. `unit` is the number of units of one transition.

    ``value[j]`` and ``chance[j]`` list ``length[j]`` values of component j with their probabilities; `successor` and
    `weight` the states of their product. `sums` is zero, with an entry per value of the largest component.
    """

    counts: CountTable
    search: ParentSearch
    first_plain: int
    first_seen: int
    unit: int
    n_actions: int
    value: NDArray[np.int64]
    chance: NDArray[np.float64]
    length: NDArray[np.int64]
    successor: NDArray[np.int64]
    weight: NDArray[np.float64]
    sums: NDArray[np.float64]


class PlanTable(NamedTuple):
    """The memory of a planner besides `Memory`; n states, A actions.

    - ``tried[s, a]``: how often `a` was taken in `s`, by the squared share of the pathways that were there.
    - ``taken[s, a]``: sums over the steps of the pathways from (s, a), each with weight 1/K: reward, weight, endings.
      ``arrived[s']``: the same of the steps that arrived in s'.
    - ``ahead[s']``: the value of s', 1 if pathways arrived there, and the means of `arrived`: reward, endings.
    - ``outcomes``: the first distinct outcomes, as reward, 1 at an ending, and how often. ``told[s', c]``: how often
      outcome c came with an arrival in s', with the weights of `arrived`.
    - ``left[s]``: whether a pathway has left s; `visited` lists those states in order.
    - ``queue``: a heap of states whose value moved, by ``priority``; ``place[s]`` is where s stands, from 1 on, 0 if it
      is not queued.
    - ``leads``: for each state, the rows ``s*A + a`` of the joint counts that lead to it.
    - ``levels`` and ``at`` hold single numbers, as named above; `tally`, all zeros, and `offspring` are scratch.
    - ``unsure``: for a learner that looks, D_a and D'_a of `looking` for each action, then n_0 and D'_0.
    """

    model: FactoredTable
    leads: CountTable
    tried: NDArray[np.float64]
    taken: NDArray[np.float64]
    arrived: NDArray[np.float64]
    ahead: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    told: NDArray[np.float64]
    left: NDArray[np.bool_]
    visited: NDArray[np.int64]
    queue: NDArray[np.int64]
    place: NDArray[np.int64]
    priority: NDArray[np.float64]
    levels: NDArray[np.float64]
    at: NDArray[np.int64]
    tally: NDArray[np.int64]
    offspring: NDArray[np.int64]
    unsure: NDArray[np.float64]


class History(NamedTuple):
    """The last steps of a learner that accepts late values; see `models.history`."""

    S: NDArray[np.int64]
    seen: NDArray[np.int64]
    action: NDArray[np.int64]
    reward: NDArray[np.float64]
    at: NDArray[np.int64]


class Experience(NamedTuple):
    """One step as a learner sees it; `from_complete` if all of the state left was observed.

    `pairs` says how far the pathways agreed on that state, before the next observation: `pairs_before`.
    """

    action: int
    reward: float
    terminated: bool
    from_complete: bool
    observed: Observed
    pairs: int


class Evidence(NamedTuple):
    """Tables of outcomes and patterns, which weigh pathways; those that are not used are empty.

    - ``outcomes``: the first distinct outcomes, as reward, 1 at an ending, and how often; ``told[s', c]``: how often
      outcome c came with an arrival in s', by 1/K per pathway; ``arrived[s']``: how many arrivals there were. ``known``
      counts the distinct outcomes, then the steps. All are empty for a planner, which has its own.
    - ``patterns``: for each predicted state s', how often each pattern of hidden components came; the last row counts
      all arrivals. ``weight[0]`` is the likelihood of the patterns given s', relative to that without s'.
    - ``nothing`` is an observation with everything hidden, and ``offspring`` is scratch.
    """

    outcomes: NDArray[np.float64]
    told: NDArray[np.float64]
    arrived: NDArray[np.float64]
    known: NDArray[np.int64]
    patterns: CountTable
    weight: NDArray[np.float64]
    nothing: NDArray[np.int64]
    offspring: NDArray[np.int64]


class Learner(NamedTuple):
    """A learner as kernels see it.

    `planner` is None for a method that does not plan, `evidence` without tables besides those of a planner, and
    `history` for a learner that keeps none.
    """

    rules: Rules
    layout: Layout
    memory: Memory
    counts: CountTable
    components: ComponentTable
    planner: PlanTable | None
    evidence: Evidence | None
    history: History | None


def blank_memory(space: Space, n_actions: int, settings: Settings) -> Memory:
    """Return the memory of a learner that has seen nothing yet.

    Examples
    --------
    >>> from lacuna import Settings, Space
    >>> memory = blank_memory(Space((3, 2)), 4, Settings("mi-synthetic", K=5))
    >>> memory.Q.shape, memory.S.shape
    ((6, 4), (5,))
    """
    K, n_rows = settings.pathways, count_rows(space, settings)
    S, C, S_next, C_next = (np.full(K, NO_STATE, dtype=np.int64) for _ in range(4))
    entries, firsts, ends = (np.zeros(K, dtype=np.uint64) for _ in range(3))
    previous, held = (np.full(space.d, MISSING, dtype=np.int64) for _ in range(2))
    # Zeros from the operating system take no memory until touched, so tables cost what was visited.
    n_tried = n_rows if settings.optimism > 0 else 0
    tried, finished = np.zeros((n_tried, n_actions)), np.zeros(n_tried, dtype=np.int64)
    ahead = np.arange(K, dtype=np.int64) * space.n_states
    first, first_counts = ahead * (settings.tables > 1), ahead * (settings.models > 1)
    of_code, of_value = (np.zeros(n, dtype=np.int64) for n in _chain_room(space, settings))
    return Memory(
        np.zeros((n_rows, n_actions)), S, C, previous, held, tried, finished, np.zeros(1),
        S_next, C_next, entries, firsts, ends, np.zeros(K), np.zeros(n_actions), np.zeros((K, n_actions)),
        np.arange(K, dtype=np.int64), of_code, of_value, first, first_counts - first, _assumed(space, settings),
    )  # fmt: skip


def memory_bytes(space: Space, n_actions: int, settings: Settings) -> int:
    """Memory that `blank_memory` may take, if every state is visited."""
    K, n_rows = settings.pathways, count_rows(space, settings)
    tables = n_rows * (n_actions + (n_actions + 1 if settings.optimism > 0 else 0))
    return 8 * (tables + 11 * K + 3 * space.d + 1 + n_actions + K * n_actions + sum(_chain_room(space, settings)))


def count_rows(space: Space, settings: Settings) -> int:
    """How many rows Q has: states, or states of the space in which "missing" is one more value, for each table."""
    token = method_named(settings.method).impute == Impute.TOKEN
    return settings.tables * (prod(size + 1 for size in space.sizes) if token else space.n_states)


def _chain_room(space: Space, settings: Settings) -> tuple[int, int]:
    """Lengths of `of_code` and `of_value`: 0 for methods without chained draws."""
    if not method_named(settings.method).chains:
        return 0, 0
    return space.layout.rows.shape[0], max(space.sizes)


def _assumed(space: Space, settings: Settings) -> NDArray[np.int64]:
    """The value of each component that is `assumed` of the way from its first to its last, halves rounded up."""
    share = settings.assumed or 0.0
    return np.array([int(share * (size - 1) + 0.5) for size in space.sizes], dtype=np.int64)


def count_finished(entries: NDArray[np.int64], tried: NDArray[np.int64], sharing: int, memory: Memory) -> None:
    """Fill ``finished``, all zeros, from those entries of ``tried`` that are not 0."""
    np.add.at(memory.finished, entries[tried == sharing] // memory.tried.shape[1], 1)
