"""The paper's 24 claims as data, and what a table of runs says of each.

Unless a claim names a measure, it is the total reward per episode, by which the paper chooses settings. "Over" several
θ means averaged within each trial; methods are compared within trials, which share their streams. Held out, trials are
first averaged within each draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lacuna.study import Draw
from lacuna_paper import questions
from lacuna_paper.evidence import (
    ALL_METHODS,
    BASELINES,
    DRAWS,
    EARLY,
    MI,
    MI_CONSERVATIVE,
    MI_SYNTHETIC,
    MISSING,
    PATH,
    RANDOM,
    REWARD,
    SI,
    V1,
    V2,
    WATER,
    Evidence,
    Rates,
    Reading,
    Selection,
    single,
)
from lacuna_paper.questions import (
    A_BIT_WORSE,
    AT_04,
    BETTER,
    CLEARLY_BETTER,
    FEW,
    FOG_BOTH,
    FOG_ONLY,
    GROWN,
    HORRIBLE,
    MANY,
    MCOLOR,
    MODERATE,
    NO_WORSE,
    SIMILAR,
    SLIGHTLY_FASTER,
    SOME,
    Check,
    differences,
)
from lacuna_paper.verdicts import Asked, Finding, decide

MCAR, COLOR, FOG = "4.2.1 MCAR results", "4.2.2 MCOLOR results", "4.2.3 MFOG results"
VARIANTS, STAY = "4.2.4 Variants", "4.2.5 Stay in place"
MI_AND_OTHERS = tuple((mi, other) for mi in MI for other in (*BASELINES, single(mi)))


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: where it stands, what it says, what is compared, what decides and why, and what to ask."""

    id: str
    section: str
    figure: str
    text: str
    compared: str
    threshold: str
    checks: Sequence[Check]

    def questions(self, seen: Evidence) -> list[Asked]:
        """What has to hold for the claim to hold."""
        return [asked for check in self.checks for asked in check(seen)]


def judge(
    table: pl.DataFrame, *, reading: Reading = "episodic", selection: Selection = "as-published",
    draws: Sequence[Draw] = DRAWS,
) -> list[Finding]:  # fmt: skip
    """Judge every claim by a table of runs; what the table does not hold is undecided.

    Parameters
    ----------
    table
        A row per run, as in a store, in any order.
    reading, selection, draws
        Which runs, and how settings are chosen: as for `Evidence`.

    Returns
    -------
    list of Finding
        One for each of `CLAIMS`, in that order.

    Examples
    --------
    >>> from lacuna.study import SCHEMA
    >>> findings = judge(pl.DataFrame(schema=SCHEMA))
    >>> len(findings), {finding.verdict for finding in findings}
    (24, {'undecided'})
    """
    seen = Evidence.of(table, reading, selection, draws)
    return [decide(claim.id, seen.basis, claim.questions(seen)) for claim in CLAIMS]


# Of each: its name, section and figure; what it says; what is compared; what decides; and the questions.
CLAIMS = (
    Claim(
        "mcar-low-theta-similar", MCAR, "mcar-theta",
        "At low missingness rates all methods perform similarly.",
        "Every other method with MI K=10 synthetic, over every θ above 0 and up to 0.1 in the table.",
        "Each difference within ±5 an episode: half a step in water, a twentieth of what the goal pays.",
        [differences([(MI_SYNTHETIC, other) for other in ALL_METHODS if other != MI_SYNTHETIC], FEW, SIMILAR)],
    ),
    Claim(
        "mcar-mi-best", MCAR, "mcar-theta",
        "As missingness grows, MI with K=10 beats single imputation and every baseline on all three measures.",
        "MI K=10, synthetic and conservative, with the four baselines and with SI of the same model: reward, water "
        "steps and path length, over every θ in the table from above 0.1 to 0.4, and over every one above 0.4.",
        "Every difference in favour of MI, its interval excluding 0: the claim says all methods, all measures.",
        [
            differences([pair if measure == REWARD else pair[::-1]], where, BETTER, measure)
            for pair in MI_AND_OTHERS
            for where in (SOME, MANY)
            for measure in (REWARD, WATER, PATH)
        ],
    ),
    Claim(
        "mcar-mi-robust", MCAR, "mcar-theta",
        "MI with K=10 is quite robust: it loses little as missingness grows.",
        "MI K=10 at θ = 0 with its mean over every θ above 0.1 in the table.",
        "The loss below 20 an episode: a fifth of what the goal pays, two steps in water.",
        [questions.losses],
    ),
    Claim(
        "mcar-conservative-slower", f"{MCAR}, 4.2.4", "mcar-time",
        "The conservative model learns slightly slower than the synthetic one; in the end they do similarly.",
        "MI K=10 synthetic minus conservative: reward per step over the first 10,000 steps, over every θ above 0.4 in "
        "the table (the paper speaks of higher missingness); and reward per episode over all steps, over θ from above "
        "0.1 to 0.4 and above 0.4.",
        "Slightly slower: between 0 and 0.9 a step, a tenth of what the best policy earns. Similar: within ±5 an "
        "episode.",
        [
            differences([(MI_SYNTHETIC, MI_CONSERVATIVE)], MANY, SLIGHTLY_FASTER, EARLY),
            differences([(MI_SYNTHETIC, MI_CONSERVATIVE)], SOME, SIMILAR),
            differences([(MI_SYNTHETIC, MI_CONSERVATIVE)], MANY, SIMILAR),
        ],
    ),
    Claim(
        "mcar-baselines-reward-close", MCAR, "mcar-theta",
        "Missing-as-a-state and last-fully-observed are only a bit worse than MI on total reward.",
        "MI K=10 synthetic minus each of the two, over every θ above 0.1 in the table.",
        "Worse than MI, by less than 10 an episode: one step in water, a tenth of what the goal pays.",
        [differences([(MI_SYNTHETIC, MISSING), (MI_SYNTHETIC, V1)], GROWN, A_BIT_WORSE)],
    ),
    Claim(
        "mcar-baselines-river-path-worse", MCAR, "mcar-theta",
        "Missing-as-a-state and last-fully-observed are substantially worse on steps in water and path length.",
        "Steps in water, and path length, of each of the two divided by those of MI K=10 synthetic, both over every θ "
        "above 0.1 in the table.",
        "Each ratio above 1.5: half as much again, on measures the paper draws on a logarithmic scale.",
        [questions.ratios],
    ),
    Claim(
        "mcar-v2-over-v1", MCAR, "mcar-theta",
        "Keeping each component's last seen value (V2) beats keeping the last complete state (V1).",
        "V2 minus V1, over every θ above 0.1 in the table.",
        "Above 0: V2 earns more per episode.",
        [differences([(V2, V1)], GROWN, BETTER)],
    ),
    Claim(
        "mcar-random-bad", MCAR, "mcar-theta",
        "Acting at random whenever something is missing is quite bad: clearly worst or near it.",
        "Every other method minus random action, over every θ above 0.1 in the table. Single imputation, which the "
        "paper calls horrible, may be worse still and is left out.",
        "Each difference above 10 an episode: one step in water; less would be only a bit worse.",
        [differences([(other, RANDOM) for other in (V1, V2, MISSING, *MI)], GROWN, CLEARLY_BETTER)],
    ),
    Claim(
        "mcar-si-collapses", MCAR, "mcar-theta",
        "Single imputation beats the baselines for θ ≤ 0.4 and is horrible above.",
        "SI, synthetic and conservative, minus each baseline, over every θ above 0 and up to 0.4 in the table; and MI "
        "K=10 minus SI of the same model, over every θ above 0.4.",
        "Better than every baseline: above 0. Horrible: more than 50 an episode below MI, half of what the goal pays.",
        [
            differences([(si, other) for si in SI for other in BASELINES], Rates(0, MODERATE), BETTER),
            differences([(mi, single(mi)) for mi in MI], MANY, HORRIBLE),
        ],
    ),
    Claim(
        "mcar-si-slower", MCAR, "mcar-time",
        "At θ = 0.4 single imputation learns slower than MI and some baselines; random action and missing-as-a-state "
        "learn slowest of all.",
        "Reward per step over the first 10,000 steps at θ = 0.4: MI K=10 minus SI of the same model; the better of V1 "
        "and V2 minus SI; and every other method minus random action and minus missing-as-a-state.",
        "Each difference above 0. Of V1 and V2 one is enough, at a level corrected for having two.",
        [
            differences([(mi, single(mi)) for mi in MI], AT_04, BETTER, EARLY),
            questions.some_baseline_faster,
            differences(
                [(other, slow) for slow in (RANDOM, MISSING) for other in (V1, V2, *SI, *MI)], AT_04, BETTER, EARLY
            ),
        ],
    ),
    Claim(
        "all-worsen-with-theta", MCAR, "mcar-theta",
        "Every method performs worse as missingness grows.",
        "For each method the slope of the straight line, fitted by least squares, through its reward per episode at "
        "every θ in the table. A falling trend leaves room for a rise in places: the paper itself finds "
        "missing-as-a-state better again at the highest θ.",
        "Each slope below 0.",
        [questions.slopes],
    ),
    Claim(
        "mcar-missing-state-u", MCAR, "mcar-theta",
        "Missing-as-a-state is U-shaped in θ: worse as it grows, then better again at the highest.",
        "Missing-as-a-state at the lowest and at the highest θ in the table, each minus its worst θ between 0.1 and "
        "the highest. For each trial (held out: for each draw) the worst θ is found on the others, so that its choice "
        "does not favour the claim.",
        "Both differences above 0.",
        [questions.both_ends],
    ),
    Claim(
        "mcolor-mi-best", COLOR, "mcolor",
        "Under MCOLOR, MI with K=10 is best in all four settings.",
        "MI K=10, synthetic and conservative, minus each baseline and minus SI of the same model, in each setting.",
        "Every difference above 0, as the claim says all four settings.",
        [differences(MI_AND_OTHERS, (setting,), BETTER) for setting in MCOLOR],
    ),
    Claim(
        "mcolor-gap-grows", COLOR, "mcolor",
        "Under MCOLOR, MI leads by more when missingness is higher.",
        "The lead of MI K=10 over the mean of the four baselines and SI of the same model, at rates (.2, .4, .6) minus "
        "at rates (.1, .2, .3), with colour seen and with colour missing too.",
        "Each difference of leads above 0.",
        [questions.leads_grow],
    ),
    Claim(
        "mcolor-nmar-slower", COLOR, "mcolor",
        "Learning is slightly slower when colour too goes missing.",
        "Reward per step over the first 10,000 steps, over all eight methods: colour seen minus colour missing too, at "
        "either set of rates.",
        "Between 0 and 0.9 a step: slower, by less than a tenth of what the best policy earns.",
        [questions.slower_without_colour],
    ),
    Claim(
        "mcolor-missing-state-bad", COLOR, "mcolor",
        "Under MCOLOR missing-as-a-state performs badly.",
        "The mean of both MI K=10 minus missing-as-a-state, over the four settings.",
        "Above 10 an episode: worse by more than one step in water.",
        [questions.missing_state_behind],
    ),
    Claim(
        "mcolor-conservative-faster", VARIANTS, "mcolor",
        "Under MCOLOR the conservative model learns slightly faster than the synthetic one.",
        "MI K=10 conservative minus synthetic: reward per step over the first 10,000 steps, over the four settings.",
        "Between 0 and 0.9 a step: faster, by less than a tenth of what the best policy earns.",
        [differences([(MI_CONSERVATIVE, MI_SYNTHETIC)], MCOLOR, SLIGHTLY_FASTER, EARLY)],
    ),
    Claim(
        "mfog-both-mi-best", FOG, "mfog",
        "With fog (rate .25 inside, .1 outside) MI with K=10 dominates.",
        "MI K=10, synthetic and conservative, minus each baseline and minus SI of the same model.",
        "Every difference above 0.",
        [differences(MI_AND_OTHERS, (FOG_BOTH,), BETTER)],
    ),
    Claim(
        "mfog-only-missing-state-par", FOG, "mfog",
        "With loss inside the fog only (.5), missing-as-a-state is on par with MI synthetic or better.",
        "Missing-as-a-state minus MI K=10 synthetic.",
        "Above −5 an episode: on par means within half a step in water.",
        [differences([(MISSING, MI_SYNTHETIC)], (FOG_ONLY,), NO_WORSE)],
    ),
    Claim(
        "mfog-only-conservative-ok", FOG, "mfog",
        "With loss inside the fog only, MI conservative still does well.",
        "MI K=10 conservative minus each of the four baselines.",
        "Each difference above −5 an episode: on par with the best of them, or better.",
        [differences([(MI_CONSERVATIVE, other) for other in BASELINES], (FOG_ONLY,), NO_WORSE)],
    ),
    Claim(
        "mfog-only-synthetic-harmful", f"{FOG}, 4.2.4", "mfog",
        "With loss inside the fog only, teaching the model imputed data is harmful.",
        "MI K=10 conservative minus synthetic.",
        "Above 0: the model that learns from its own imputations earns less.",
        [differences([(MI_CONSERVATIVE, MI_SYNTHETIC)], (FOG_ONLY,), BETTER)],
    ),
    Claim(
        "k-diminishing", VARIANTS, "choosing-k",
        "K=5 beats K=1, and K=10 adds less.",
        "For each model, over every θ above 0.1 in the table at which K = 1, 5 and 10 were run: the gain from K=1 to "
        "K=5, and that gain minus the one from K=5 to K=10.",
        "Each above 0.",
        [questions.gains_of_k],
    ),
    Claim(
        "mixing-no-effect", VARIANTS, "mixing",
        "Mixing makes little difference.",
        "With mixing (p = 0.1) minus without, for K = 5 and 10 and each model, over every setting in the table in "
        "which both were run. With K = 1 there is nothing to mix.",
        "Each difference within ±5 an episode: half a step in water.",
        [questions.gains_of_mixing],
    ),
    Claim(
        "stay-no-effect", STAY, "stay",
        "Allowing the agent to stay makes no consistent difference; the greedy agent learns not to stay.",
        "MI K=10 synthetic at its best alpha and gamma, over θ = 0.2, 0.4 and 0.8 as far as they are in the table, as "
        "in the paper's figure: staying allowed minus not, greedy (ε = 0) and not (ε = 0.05); and how often the greedy "
        "one stays.",
        "Each difference within ±5 an episode, half a step in water; the share of steps spent staying below 0.02, "
        "where choosing at random among nine actions would give 0.11.",
        [questions.gains_of_staying],
    ),
)  # fmt: skip
