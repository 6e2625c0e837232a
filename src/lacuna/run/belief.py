"""The exact belief over true states, by Bayes' rule, and how QMDP acts on it.

    b'(s') ∝ P(o | s', a) Σ_s b(s) Σ P(s', r, end | s, a)

The inner sum runs over the outcomes of (s, a) that lead to s' and match the termination flag. With `qmdp-rewards` they
must also pay exactly the reward received. P(o | s', a) is the probability of observing o in s'. If the mechanism has a
hidden chain, s includes its mode.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from lacuna.kernels.codes import decode
from lacuna.kernels.compiled import inner, kernel
from lacuna.kernels.space import Layout
from lacuna.missingness.mechanism import mask_probability
from lacuna.run.knowledge import Knowledge
from lacuna.run.scene import Scene, Step
from lacuna.worlds.mdp.tabular import Dynamics

_EQUAL = 1e-9
"""Values that differ by less, relative to their size, are the same."""


@kernel
def expect_start(fresh: bool, world: Dynamics, knowledge: Knowledge) -> None:
    """Where an episode may start, given where the last one stopped; a fresh world starts in mode 0 of the chain."""
    belief, ahead = knowledge.belief, knowledge.ahead
    if fresh:
        belief[:] = 0.0
        # Any true state stands for "none yet" here: its weight goes to the first way to start.
        belief[0, 0] = 1.0
    ahead[:] = 0.0
    for z in range(belief.shape[0]):
        for s in range(belief.shape[1]):
            if belief[z, s] > 0:
                way = 0 if fresh else world.restart[s]
                for entry in range(world.start_ptr[way], world.start_ptr[way + 1]):
                    ahead[z, world.start_state[entry]] += belief[z, s] * knowledge.start_probability[entry]


@kernel
def expect_move(action: int, step: Step, world: Dynamics, knowledge: Knowledge) -> None:
    """Where an action may have led, given whether the episode ended and, if used, what was paid.

    A reward is compared exactly: what is paid is a number of this very table.
    """
    belief, ahead = knowledge.belief, knowledge.ahead
    ahead[:] = 0.0
    for z in range(belief.shape[0]):
        for s in range(belief.shape[1]):
            if belief[z, s] > 0:
                row = s * world.n_actions + action
                for entry in range(world.ptr[row], world.ptr[row + 1]):
                    told = (world.ends[entry] and world.terminates) == step.terminated
                    if told and (not knowledge.uses_rewards or world.reward[entry] == step.reward):
                        ahead[z, world.next_state[entry]] += belief[z, s] * knowledge.probability[entry]


@kernel
def take_evidence(action: int, masked: bool, scene: Scene, layout: Layout, knowledge: Knowledge) -> None:
    """Bayes' rule: `belief` becomes `ahead` given what was seen and what was hidden, which is evidence too.

    Not `masked` if nothing could be hidden: then the chain of the mechanism did not move either.
    """
    world, belief, ahead = scene.world, knowledge.belief, knowledge.ahead
    modes = belief.shape[0]
    observed = decode(scene.observation, layout)
    total = 0.0
    for s in range(belief.shape[1]):
        agrees = world.codes[s] & observed.bits == observed.seen
        for z in range(modes):
            weight = 0.0
            if agrees and masked:
                for before in range(modes):
                    weight += ahead[before, s] * knowledge.chain[before, z]
            elif agrees:
                weight = ahead[z, s]
            if weight > 0 and masked:
                weight *= mask_probability(scene.observation, world.shows[s], s, action, z, scene.how)
            belief[z, s] = weight
            total += weight
    for z in range(modes):
        for s in range(belief.shape[1]):
            belief[z, s] /= total


@inner
def best_on_average(knowledge: Knowledge, values: NDArray[np.float64]) -> int:
    """The action argmax Σ b(s) Q*(s, a); of equals the one that ends soonest, the lowest-numbered; `values` is scratch.

    Without discount some of the equals may put off the end for ever.
    """
    q, steps, belief = knowledge.q, knowledge.steps, knowledge.belief
    values[:] = 0.0
    for z in range(belief.shape[0]):
        for s in range(belief.shape[1]):
            if belief[z, s] > 0:
                for a in range(q.shape[1]):
                    values[a] += belief[z, s] * q[s, a]
    best = 0
    for a in range(1, q.shape[1]):
        if values[a] > values[best]:
            best = a
    if steps.shape[0] == 0:
        return best
    enough = values[best] - _EQUAL * (1.0 + abs(values[best]))
    soonest, least = best, inf
    for a in range(q.shape[1]):
        if values[a] >= enough:
            length = 0.0
            for z in range(belief.shape[0]):
                for s in range(belief.shape[1]):
                    if belief[z, s] > 0:
                        length += belief[z, s] * steps[s, a]
            if length < least:
                soonest, least = a, length
    return soonest
