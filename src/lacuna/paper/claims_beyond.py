"""The paper's claims beyond MCAR: colour, fog, the choice of K, mixing and staying (its sections 4.2.2 to 4.2.5).

Unless a claim names a measure, it is the total reward per episode. Differences are taken within trials.
"""

from __future__ import annotations

from lacuna.paper.evidence import (
    ALL_METHODS,
    BASELINES,
    EARLY,
    MI,
    MI_CONSERVATIVE,
    MI_SYNTHETIC,
    MISSING,
    MODELS,
    STAY_THETAS,
    STAYED,
    Evidence,
    Shown,
    single,
)
from lacuna.paper.thresholds import (
    BETTER,
    CLEARLY_BETTER,
    LOW,
    NO_WORSE,
    NOT_USED,
    PER_EPISODE,
    PER_STEP,
    SHARE,
    SIMILAR,
    SLIGHTLY_FASTER,
    claim,
)
from lacuna.paper.verdicts import Ask, Asked, Sample, average

COLOR, FOG, VARIANTS, STAY = "4.2.2 MCOLOR results", "4.2.3 MFOG results", "4.2.4 Variants", "4.2.5 Stay in place"

LOW_RATES, HIGH_RATES = "0.1,0.2,0.3", "0.2,0.4,0.6"
MCOLOR = tuple(f"{kind}:{rates}" for rates in (LOW_RATES, HIGH_RATES) for kind in ("mcolor-xy", "mcolor"))
FOG_ONLY, FOG_BOTH = "mfog:0.5,0.0", "mfog:0.25,0.1"


@claim(
    "mcolor-mi-best", section=COLOR, figure="mcolor",
    text="Under MCOLOR, MI with K=10 is best in all four settings.",
    compared="MI K=10, synthetic and conservative, minus each baseline and minus SI of the same model, in each "
    "setting.",
    threshold="Every difference above 0, as the claim says all four settings.",
)  # fmt: skip
def _mcolor_mi_best(seen: Evidence) -> list[Asked]:
    return [ask for setting in MCOLOR for ask in _mi_against_all(seen, setting)]


def _mi_against_all(seen: Evidence, setting: str) -> list[Asked]:
    return [
        Ask(f"{mi} − {other}, {setting}", seen.sample(mi, setting) - seen.sample(other, setting), BETTER, PER_EPISODE)
        for mi in MI
        for other in (*BASELINES, single(mi))
    ]


@claim(
    "mcolor-gap-grows", section=COLOR, figure="mcolor",
    text="Under MCOLOR, MI leads by more when missingness is higher.",
    compared="The lead of MI K=10 over the mean of the four baselines and SI of the same model, at rates (.2, .4, "
    ".6) minus at rates (.1, .2, .3), with colour seen and with colour missing too.",
    threshold="Each difference of leads above 0.",
)  # fmt: skip
def _mcolor_gap_grows(seen: Evidence) -> list[Asked]:
    def lead(mi: Shown, setting: str) -> Sample:
        others = [seen.sample(other, setting) for other in (*BASELINES, single(mi))]
        return seen.sample(mi, setting) - average(others)

    return [
        Ask(f"{mi}, {kind}", lead(mi, f"{kind}:{HIGH_RATES}") - lead(mi, f"{kind}:{LOW_RATES}"), BETTER, PER_EPISODE)
        for mi in MI
        for kind in ("mcolor-xy", "mcolor")
    ]


@claim(
    "mcolor-nmar-slower", section=COLOR, figure="mcolor",
    text="Learning is slightly slower when colour too goes missing.",
    compared="Reward per step over the first 10,000 steps, over all eight methods: colour seen minus colour "
    "missing too, at either set of rates.",
    threshold="Between 0 and 0.9 a step: slower, by less than a tenth of what the best policy earns.",
)  # fmt: skip
def _mcolor_nmar_slower(seen: Evidence) -> list[Asked]:
    def early(setting: str) -> Sample:
        return average([seen.sample(shown, setting, EARLY) for shown in ALL_METHODS])

    return [
        Ask(f"rates {rates}", early(f"mcolor-xy:{rates}") - early(f"mcolor:{rates}"), SLIGHTLY_FASTER, PER_STEP)
        for rates in (LOW_RATES, HIGH_RATES)
    ]


@claim(
    "mcolor-missing-state-bad", section=COLOR, figure="mcolor",
    text="Under MCOLOR missing-as-a-state performs badly.",
    compared="The mean of both MI K=10 minus missing-as-a-state, over the four settings.",
    threshold="Above 10 an episode: worse by more than one step in water.",
)  # fmt: skip
def _mcolor_missing_state_bad(seen: Evidence) -> list[Asked]:
    lead = average([seen.mean(mi, MCOLOR) for mi in MI]) - seen.mean(MISSING, MCOLOR)
    return [Ask("MI K=10 − missing as a state", lead, CLEARLY_BETTER, PER_EPISODE)]


@claim(
    "mcolor-conservative-faster", section=VARIANTS, figure="mcolor",
    text="Under MCOLOR the conservative model learns slightly faster than the synthetic one.",
    compared="MI K=10 conservative minus synthetic: reward per step over the first 10,000 steps, over the four "
    "settings.",
    threshold="Between 0 and 0.9 a step: faster, by less than a tenth of what the best policy earns.",
)  # fmt: skip
def _mcolor_conservative_faster(seen: Evidence) -> list[Asked]:
    gain = seen.mean(MI_CONSERVATIVE, MCOLOR, EARLY) - seen.mean(MI_SYNTHETIC, MCOLOR, EARLY)
    return [Ask("conservative − synthetic", gain, SLIGHTLY_FASTER, PER_STEP)]


@claim(
    "mfog-both-mi-best", section=FOG, figure="mfog",
    text="With fog (rate .25 inside, .1 outside) MI with K=10 dominates.",
    compared="MI K=10, synthetic and conservative, minus each baseline and minus SI of the same model.",
    threshold="Every difference above 0.",
)  # fmt: skip
def _mfog_both_mi_best(seen: Evidence) -> list[Asked]:
    return _mi_against_all(seen, FOG_BOTH)


@claim(
    "mfog-only-missing-state-par", section=FOG, figure="mfog",
    text="With loss inside the fog only (.5), missing-as-a-state is on par with MI synthetic or better.",
    compared="Missing-as-a-state minus MI K=10 synthetic.",
    threshold="Above −5 an episode: on par means within half a step in water.",
)  # fmt: skip
def _mfog_missing_state_par(seen: Evidence) -> list[Asked]:
    gain = seen.sample(MISSING, FOG_ONLY) - seen.sample(MI_SYNTHETIC, FOG_ONLY)
    return [Ask("missing as a state − MI K=10 synthetic", gain, NO_WORSE, PER_EPISODE)]


@claim(
    "mfog-only-conservative-ok", section=FOG, figure="mfog",
    text="With loss inside the fog only, MI conservative still does well.",
    compared="MI K=10 conservative minus each of the four baselines.",
    threshold="Each difference above −5 an episode: on par with the best of them, or better.",
)  # fmt: skip
def _mfog_conservative_ok(seen: Evidence) -> list[Asked]:
    mi = seen.sample(MI_CONSERVATIVE, FOG_ONLY)
    return [
        Ask(f"{MI_CONSERVATIVE} − {other}", mi - seen.sample(other, FOG_ONLY), NO_WORSE, PER_EPISODE)
        for other in BASELINES
    ]


@claim(
    "mfog-only-synthetic-harmful", section=f"{FOG}, 4.2.4", figure="mfog",
    text="With loss inside the fog only, teaching the model imputed data is harmful.",
    compared="MI K=10 conservative minus synthetic.",
    threshold="Above 0: the model that learns from its own imputations earns less.",
)  # fmt: skip
def _mfog_synthetic_harmful(seen: Evidence) -> list[Asked]:
    loss = seen.sample(MI_CONSERVATIVE, FOG_ONLY) - seen.sample(MI_SYNTHETIC, FOG_ONLY)
    return [Ask("conservative − synthetic", loss, BETTER, PER_EPISODE)]


@claim(
    "k-diminishing", section=VARIANTS, figure="choosing-k",
    text="K=5 beats K=1, and K=10 adds less.",
    compared="For each model, over every θ above 0.1 in the table at which K = 1, 5 and 10 were run: the gain from "
    "K=1 to K=5, and that gain minus the one from K=5 to K=10.",
    threshold="Each above 0.",
)  # fmt: skip
def _k_diminishing(seen: Evidence) -> list[Asked]:
    asked: list[Asked] = []
    for model in MODELS:
        ways = [Shown(model, K) for K in (1, 5, 10)]
        where = seen.where(*ways, among=seen.thetas(LOW))
        one, five, ten = (seen.mean(shown, where) for shown in ways)
        first, second = five - one, ten - five
        asked.append(Ask(f"{ways[1]} − {ways[0]}", first, BETTER, PER_EPISODE))
        asked.append(Ask(f"{ways[1]}: gain from K=5 minus gain from K=10", first - second, BETTER, PER_EPISODE))
    return asked


@claim(
    "mixing-no-effect", section=VARIANTS, figure="mixing",
    text="Mixing makes little difference.",
    compared="With mixing (p = 0.1) minus without, for K = 5 and 10 and each model, over every setting in the "
    "table in which both were run. With K = 1 there is nothing to mix.",
    threshold="Each difference within ±5 an episode: half a step in water.",
)  # fmt: skip
def _mixing_no_effect(seen: Evidence) -> list[Asked]:
    asked: list[Asked] = []
    for model in MODELS:
        for K in (5, 10):
            plain, mixed = Shown(model, K), Shown(model, K, 0.1)
            where = seen.where(plain, mixed, among=seen.settings)
            asked.append(
                Ask(f"{mixed} − without", seen.mean(mixed, where) - seen.mean(plain, where), SIMILAR, PER_EPISODE)
            )
    return asked


@claim(
    "stay-no-effect", section=STAY, figure="stay",
    text="Allowing the agent to stay makes no consistent difference; the greedy agent learns not to stay.",
    compared="MI K=10 synthetic at its best alpha and gamma, over θ = 0.2, 0.4 and 0.8 as far as they are in the "
    "table, as in the paper's figure: staying allowed minus not, greedy (ε = 0) and not (ε = 0.05); and "
    "how often the greedy one stays.",
    threshold="Each difference within ±5 an episode, half a step in water; the share of steps spent staying below "
    "0.02, where choosing at random among nine actions would give 0.11.",
)  # fmt: skip
def _stay_no_effect(seen: Evidence) -> list[Asked]:
    asked: list[Asked] = []
    for epsilon, who in ((0.0, "greedy"), (0.05, "ε = 0.05")):
        free, bound = (seen.only(stay=stay, epsilon=epsilon) for stay in (True, False))
        where = bound.where(MI_SYNTHETIC, among=free.where(MI_SYNTHETIC, among=STAY_THETAS))
        gain = free.mean(MI_SYNTHETIC, where) - bound.mean(MI_SYNTHETIC, where)
        asked.append(Ask(f"staying allowed − not, {who}", gain, SIMILAR, PER_EPISODE))
        if epsilon == 0:
            asked.append(Ask("greedy: share of stay actions", free.mean(MI_SYNTHETIC, where, STAYED), NOT_USED, SHARE))
    return asked


BEYOND_CLAIMS = (
    _mcolor_mi_best, _mcolor_gap_grows, _mcolor_nmar_slower, _mcolor_missing_state_bad, _mcolor_conservative_faster,
    _mfog_both_mi_best, _mfog_missing_state_par, _mfog_conservative_ok, _mfog_synthetic_harmful, _k_diminishing,
    _mixing_no_effect, _stay_no_effect,
)  # fmt: skip
