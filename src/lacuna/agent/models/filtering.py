"""The particle filter of a planner: each pathway draws its next state from the model, then all are resampled.

For a pathway in s after action a, with observation o: J is the joint count of (s, a) over the states that agree with o,
n the whole joint count, and f = ∏ over the observed j of P_j(o_j | s, a). Its next state is drawn from the joint counts
that agree with probability J/(J + κf); otherwise each hidden component is drawn from P_j. Pairs of a state and its next
state s' are then resampled in proportion to how well they predicted the observation and the outcome:

    w = (J + κ f) / (n + κ) · (m(s', c) + P(c)) / (m(s') + 1)

c is the outcome: the reward, and whether the episode ended. P(c) is its frequency, m(s', c) the number of arrivals in
s' with it, m(s') that of all arrivals. Only the first eight distinct outcomes count; others are ignored. The setting
``evidence`` can add the pattern of hidden components (`models.evidence`), or leave outcomes out.
"""

from __future__ import annotations

from lacuna.agent.memory import CREDITED, OUTCOMES, Experience, Learner, PlanTable
from lacuna.agent.models.evidence import outcome_of, resample, share_of, weigh_patterns
from lacuna.agent.models.factored_model import draw_hidden, likelihood
from lacuna.agent.models.imputation import agreeing_mass, pick_agreeing
from lacuna.kernels.codes import Observed, unpack
from lacuna.kernels.compiled import inner
from lacuna.kernels.streams import Uniforms, draw


@inner
def filter_pathways(experience: Experience, learner: Learner, planner: PlanTable, uniforms: Uniforms) -> None:
    """Fill ``S_next`` and ``C_next`` from the model, then resample the pathways, with what they were."""
    memory, observed = learner.memory, experience.observed
    together = True
    for k in range(1, memory.S.shape[0]):
        together = together and memory.S[k] == memory.S[0]
    if observed.complete:
        row = unpack(observed.seen, learner.layout)
        for k in range(memory.S.shape[0]):
            memory.S_next[k], memory.C_next[k] = row, observed.seen
        if together:
            return
    draw_next(experience.action, observed, learner, planner, uniforms)
    c = outcome_of(experience, planner.outcomes, planner.at[OUTCOMES])
    if c >= 0:
        base = planner.outcomes[c, 2] / planner.at[CREDITED]
        for k in range(memory.S.shape[0]):
            s = memory.S_next[k]
            memory.errors[k] *= share_of(planner.told[s, c], planner.arrived[s, 1], base, 1.0)
    by_patterns = weigh_patterns(observed, learner.layout, memory, learner.evidence)
    # Without such evidence, pathways that were in one state have equal weights.
    if c >= 0 or by_patterns or not together:
        resample(draw(uniforms), memory, planner.offspring)


@inner
def draw_next(action: int, observed: Observed, learner: Learner, planner: PlanTable, uniforms: Uniforms) -> None:
    """Draw a next state for each pathway, and fill ``errors`` with how well it predicted the observation."""
    layout, memory, counts, kappa = learner.layout, learner.memory, learner.counts, learner.rules.kappa
    S, C, A = memory.S, memory.C, memory.Q.shape[1]
    first, end, J, n, f = counts.start[0], counts.start[0], 0, 0, 1.0
    for k in range(S.shape[0]):
        # Neighbours often share a state: then they share the masses as well.
        if k == 0 or S[k] != S[k - 1]:
            i = counts.head[S[k] * A + action]
            first, end, n = counts.start[i], counts.start[i] + counts.length[i], counts.total[i]
            J = agreeing_mass(first, end, observed, counts)
            f = likelihood(C[k], action, observed, planner.model, layout)
        memory.errors[k] = (J + kappa * f) / (n + kappa)
        if not observed.complete:
            u = draw(uniforms)
            rank = u * (J + kappa * f)
            if rank < J:
                code = counts.code[pick_agreeing(first, end, observed, int(rank), counts)]
            else:
                # Not f > 0: the product of two small numbers may be 0.
                rest = (rank - J) / (kappa * f) if kappa * f > 0 else u
                code = draw_hidden(C[k], action, observed, rest, planner.model, layout)
            memory.C_next[k], memory.S_next[k] = code, unpack(code, layout)
