"""A trial keeps its books as the twin in `naive_trial.py` does, whatever happens in whatever order."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from lacuna.agent.settings import Settings
from lacuna.trial.engine.ledger import ABSENT, BY_DEFAULT, CLOSED, CREDITED, OUTSIDE, TAUGHT
from lacuna.trial.engine.replay import replay
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.keys import key_words, words
from naive_trial import NaiveTrial, Refused, Rules
from sentences import one_sentence
from trial_cases import ACTIONS, SPACE, START, state_bytes, trial_file

PEOPLE = ("ada", "ben", "eve")
HOUR = 3_600_000
SEEN: Counter[str] = Counter()

rules_of_a_trial = st.builds(
    Rules,
    every=st.sampled_from(["batch", "each"]),
    pool=st.sampled_from(["all", "each", "group"]),
    max_gap=st.sampled_from([0, 2]),
    horizon=st.sampled_from([None, None, 1, 9]),
    unknown=st.sampled_from(["fallback", "enrol", "refuse"]),
    on_invalid=st.sampled_from(["missing", "fallback", "refuse"]),
    wait_decisions=st.sampled_from([None, 1, 3]),
    default=st.sampled_from([None, 0.25]),
    max_open=st.sampled_from([100, 1, 2]),
    burn_in=st.sampled_from([0, 2]),
    fixed=st.sampled_from([None, (Fraction(1, 8), Fraction(3, 8), Fraction(1, 2))]),
    low=st.sampled_from([Fraction(0), Fraction(1, 10)]),
).filter(lambda rules: (rules.pool, rules.unknown) != ("group", "enrol"))
contexts_seen = st.tuples(*(st.sampled_from([None, *range(size)]) for size in SPACE.sizes))
act = st.fixed_dictionaries({
    "kind": st.sampled_from(["decide"] * 6 + ["outcome"] * 4 + ["given", "update", "end", "again"]),
    "who": st.sampled_from(PEOPLE),
    "ahead": st.sampled_from([1, 1, 1, 1, 1, 2, 3, 4, 0, -1, -2]),
    "context": contexts_seen,
    "invalid": st.sampled_from([False] * 6 + [True]),
    "available": st.sampled_from([True] * 5 + [False]),
    "allowed": st.sampled_from([[0, 1, 2]] * 4 + [[0, 2], [1]]),
    "previous": st.sampled_from([None, None, 0, 1, 2, 3]),
    "reward": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    "back": st.integers(0, 5),
    "how": st.sampled_from(["terminated", "withdrawn"]),
    "action": st.integers(0, 2),
    "hours": st.sampled_from([0, 0, 1, 5]),
})  # fmt: skip


def file_of(rules: Rules) -> Any:
    wait = f"wait = {{ decisions = {rules.wait_decisions} }}" if rules.wait_decisions is not None else ""
    if rules.wait_hours is not None:
        wait = f"wait = {{ hours = {rules.wait_hours} }}"
    listed = {name: [float(x) for x in getattr(rules, name)] for name in ("fallback", "burn_in_prob")}
    allocation = [f"bounds = [{float(rules.low)}, {float(rules.high)}]", f"fallback = {listed['fallback']}"]
    if rules.burn_in:
        allocation.append(f"burn_in = {{ decisions = {rules.burn_in}, prob = {listed['burn_in_prob']} }}")
    if rules.fixed is not None:
        allocation.append(f"rule = {{ fixed = {[float(x) for x in rules.fixed]} }}")
    lines = [f'update = "{rules.every}"', f'pool = "{rules.pool}"', f"max_gap = {rules.max_gap}",
             f'unknown = "{rules.unknown}"', f'on_invalid = "{rules.on_invalid}"']  # fmt: skip
    lines += [f"horizon = {rules.horizon}"] if rules.horizon is not None else []
    reward = [
        wait,
        f"max_open = {rules.max_open}",
        *([f"default = {rules.default}"] if rules.default is not None else []),
    ]
    settings = Settings("missing-as-state", alpha=rules.alpha, gamma=rules.gamma, epsilon=float(rules.epsilon))
    return trial_file(settings, trial="\n".join(lines), allocation="\n".join(allocation), reward="\n".join(reward))


class Both:
    """A trial and its twin, asked the same."""

    def __init__(self, rules: Rules) -> None:
        self.now = 0
        self.trial = Trial.create(file_of(rules), store="memory:", seed=3, clock=self.clock)
        key = key_words(self.trial.secret.draws_key)

        def number(who: str, t: int, purpose: int) -> float:
            person = words(self.trial.secret.pseudonym(who))
            counter = np.array([0, 4 * t + purpose, *person.tolist()], dtype=np.uint64)
            return float(np.random.Generator(np.random.Philox(counter=counter, key=key)).random())

        self.twin = NaiveTrial(rules, number, self.trial.secret.pseudonym)
        for i, who in enumerate(PEOPLE[:2]):
            self.trial.enrol(who, ("left", "right")[i])
            self.twin.enrol(who, ("left", "right")[i])

    def clock(self) -> str:
        return f"{START + np.timedelta64(self.now, 'ms')}Z"

    def point(self, one: dict[str, Any]) -> int:
        person = self.twin.people.get(one["who"])
        ahead: int = one["ahead"]
        return max(0, (person.last if person is not None else -1) + ahead)

    def ask(self, one: dict[str, Any]) -> None:
        self.now += one["hours"] * HOUR + 1
        self.twin.now = self.now
        found, wanted = list[Any](), list[Any]()
        for answers, side in ((wanted, self.of_twin), (found, self.of_trial)):
            try:
                answers.append(side(one))
            except Refused:
                answers.append("refused")
            except ValueError as error:
                one_sentence(error)
                answers.append("refused")
        assert found == wanted, one
        SEEN[f"{one['kind']} {wanted[0] if wanted[0] == 'refused' else ''}"] += 1

    def of_twin(self, one: dict[str, Any]) -> Any:
        twin, who, self.t = self.twin, one["who"], self.point(one)
        match one["kind"]:
            case "decide" | "again":
                told = None if one["previous"] is None else (max(0, self.t - one["previous"]), one["reward"])
                context = (*one["context"][:-1], None) if one["invalid"] else one["context"]
                gave = twin.decide(who, self.t, context, invalid=one["invalid"], available=one["available"],
                                   allowed=one["allowed"], previous=told)  # fmt: skip
                SEEN[f"{gave['policy']} {gave['reason']}"] += 1
                return gave
            case "given":
                return twin.given(who, self.t, one["context"], one["action"])
            case "outcome":
                self.t = max(0, self.t - one["back"])
                return twin.outcome(who, self.t, one["reward"])
            case "update":
                return twin.update()
        return twin.end(who, one["how"])

    def of_trial(self, one: dict[str, Any]) -> Any:
        trial, who, t = self.trial, one["who"], self.t
        context = dict(zip(SPACE.names, one["context"], strict=True))
        match one["kind"]:
            case "decide" | "again":
                told = None if one["previous"] is None else {"t": max(0, t - one["previous"]), "reward": one["reward"]}
                context |= {"mood": "none"} if one["invalid"] else {}
                allowed = [ACTIONS[a] for a in one["allowed"]]
                decision = trial.decide(who, t, context, available=one["available"], allowed=allowed, previous=told)
            case "given":
                decision = trial.given(who, t, context, ACTIONS[one["action"]])
            case "outcome":
                gave = trial.outcome(who, t, one["reward"])
                return gave.used, gave.revision
            case "update":
                return trial.update()
            case _:
                return trial.end(who, one["how"])
        return {
            "policy": decision.policy, "reason": decision.reason, "randomised": decision.randomised,
            "prob": [Fraction(p) for p in decision.prob.values()], "version": decision.version,
            "action": ACTIONS.index(decision.action), "repeated": decision.repeated,
        }  # fmt: skip

    def compare(self) -> None:
        """Every decision point, what was learned from, and the values."""
        state, ledger = self.trial.state, self.trial.state.ledger
        found = {}
        for who in self.twin.people:
            for t, row in state.people[self.trial.secret.pseudonym(who)].rows.items():
                kind = "absent" if ledger.has(row, ABSENT) else "outside" if ledger.has(row, OUTSIDE) else "decision"
                flags = [ledger.has(row, flag) for flag in (TAUGHT, CREDITED, CLOSED, BY_DEFAULT)]
                found[who, t] = [kind, int(ledger.steps.action[row]), ledger.reward(row), *flags]
        twin = self.twin
        assert found == {
            key: [r.kind, r.action, r.reward, r.taught, r.credited, r.closed, r.by_default]
            for key, r in twin.records.items()
        }
        names = {self.trial.secret.pseudonym(who): who for who in PEOPLE} | {"all": "all"}
        names |= {f"group:{group}": group for group in ("left", "right")}
        for key, pool in state.pools.items():
            own = twin.pools[names[key]]
            assert (pool.taught, pool.credited) == (own.taught, own.credited)
            table = np.zeros_like(pool.tables.memory.Q)
            for (context, action), value in own.Q.items():
                row = 0
                for seen, size in zip(context, SPACE.sizes, strict=True):
                    row = row * (size + 1) + (size if seen is None else seen)
                table[row, action] = value
            np.testing.assert_allclose(pool.tables.memory.Q, table, rtol=0, atol=1e-12)


def follow(rules: Rules, acts: list[dict[str, Any]]) -> None:
    both = Both(rules)
    for one in acts:
        both.ask(one)
    both.compare()
    state, _ = replay(both.trial.store.read(), both.trial.secret.draws_key)
    assert state_bytes(state) == state_bytes(both.trial.state)


@given(rules=rules_of_a_trial, acts=st.lists(act, min_size=5, max_size=60))
@effort(max_examples=250)
def test_the_books_are_those_of_the_twin(rules: Rules, acts: list[dict[str, Any]]) -> None:
    follow(rules, acts)


@given(rules=rules_of_a_trial, hours=st.sampled_from([2.0, 6.0]), acts=st.lists(act, min_size=5, max_size=60))
@effort(max_examples=80)
def test_rewards_are_waited_for_by_the_hour(rules: Rules, hours: float, acts: list[dict[str, Any]]) -> None:
    rules.wait_decisions, rules.wait_hours = None, hours
    follow(rules, acts)


@pytest.mark.parametrize("every", ["batch", "each"])
def test_long_stories(every: str) -> None:
    """Random, not chosen to be short: so that states are met again and closings of all kinds occur."""
    SEEN.clear()
    rng = np.random.default_rng(4)
    for i in range(12):
        rules = Rules(every=every, pool=("all", "each", "group")[i % 3], default=(None, 0.25)[i % 2], max_gap=2,
                      on_invalid=("missing", "fallback")[i % 2], max_open=3, wait_decisions=(None, 2)[i // 6],
                      burn_in=2 * (i % 2), low=Fraction(1, 20))  # fmt: skip
        acts = [drawn(rng) for _ in range(300)]
        follow(rules, [one for one in acts if one["kind"] != "end" or rng.random() < 0.03])
    for what in ("learned None", "burn-in None", "fallback past", "fallback ended", "fallback invalid",
                 "fallback unknown", "given ", "given refused", "outcome refused", "end ", "update "):  # fmt: skip
        assert SEEN[what] > 3, what


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    def some(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    return {
        "kind": some(*["decide"] * 6, *["outcome"] * 4, "given", "update", "end"),
        "who": some("ada", "ada", "ben", "eve"), "ahead": some(1, 1, 1, 1, 1, 2, 3, 4, 0, -1),
        "invalid": rng.random() < 0.1, "available": bool(rng.random() < 0.9),
        "context": tuple(some(None, *range(size)) for size in SPACE.sizes),
        "allowed": some([0, 1, 2], [0, 1, 2], [0, 2]), "previous": some(None, None, 0, 1, 2),
        "reward": some(0.0, 0.25, 0.5, 1.0), "back": some(0, 1, 1, 2, 3), "how": some("terminated", "withdrawn"),
        "action": some(0, 1, 2), "hours": 0,
    }  # fmt: skip
