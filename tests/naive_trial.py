"""Slow, obvious twin of a trial's bookkeeping, written from its description. Imports nothing of lacuna.

It learns as `missing-as-state` does: a state is a context in which "missing" is a value like others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from naive_allocation import WHOLE, nearest, normalised, projected, votes

CHOICE, FALLBACK = 1, 2
Context = tuple[int | None, ...]


class Refused(Exception):  # noqa: N818  it is no error of the twin
    """What a trial answers with an error."""


@dataclass
class Rules:
    """What the trial file says."""

    every: str = "batch"
    pool: str = "all"
    max_gap: int = 2
    horizon: int | None = None
    unknown: str = "fallback"
    on_invalid: str = "missing"
    wait_decisions: int | None = None
    wait_hours: float | None = None
    default: float | None = None
    max_open: int = 100
    burn_in: int = 0
    fixed: tuple[Fraction, ...] | None = None
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    alpha: float = 0.5
    gamma: float = 0.5
    epsilon: Fraction = Fraction(1, 8)
    n_actions: int = 3
    sizes: tuple[int, ...] = (3, 2, 4)
    burn_in_prob: tuple[Fraction, ...] = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    fallback: tuple[Fraction, ...] = (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))


@dataclass
class Record:
    """A decision point of one participant."""

    who: str
    t: int
    at: int
    kind: str
    action: int
    context: Context
    next: Context | str | None = None
    reward: float | None = None
    reported: float | None = None
    revision: int = 0
    taught: bool = False
    credited: bool = False
    closed: bool = False
    by_default: bool = False

    @property
    def open(self) -> bool:
        return self.kind == "decision" and not (self.credited or self.closed)


@dataclass
class Person:
    pool: str
    last: int = -1
    current: Record | None = None
    asked: int = 0
    ended: str | None = None


@dataclass
class Pool:
    Q: dict[tuple[Context, int], float] = field(default_factory=lambda: defaultdict(float))
    taught: int = 0
    credited: int = 0


class NaiveTrial:
    """A trial with dictionaries and lists; `number` gives the draw of (who, t, purpose), `alias` orders people."""

    def __init__(self, rules: Rules, number: Callable[[str, int, int], float], alias: Callable[[str], str]) -> None:
        self.rules, self.number, self.alias = rules, number, alias
        self.now = self.updates = 0
        self.people: dict[str, Person] = {}
        self.pools: dict[str, Pool] = defaultdict(Pool)
        self.records: dict[tuple[str, int], Record] = {}
        self.answers: dict[tuple[str, int], dict[str, Any]] = {}
        self.told: dict[tuple[str, int], tuple[Context, int]] = {}
        """What was given, by which the same is known when it comes again."""
        self.missing: Context = (None,) * len(rules.sizes)

    # --- people ---

    def enrol(self, who: str, group: str | None) -> None:
        if self.rules.pool == "group" and group is None:
            raise Refused
        if who not in self.people:
            keys = {"all": "all", "each": who, "group": str(group)}
            self.people[who] = Person(keys[self.rules.pool])

    def end(self, who: str, how: str) -> None:
        if who not in self.people or self.people[who].ended not in (None, how):
            raise Refused
        person = self.people[who]
        if person.ended is None and how == "terminated":
            self.terminate(person)
        elif person.ended is None and person.current is not None:
            person.current.closed = True
            person.current = None
        person.ended = how

    def terminate(self, person: Person) -> None:
        person.ended = "terminated"
        if person.current is not None:
            person.current.next = "end"
            self.learn_at_once(person.current)
            person.current = None

    # --- learning ---

    def pool_of(self, record: Record) -> Pool:
        return self.pools[self.people[record.who].pool]

    def teach(self, record: Record) -> None:
        if record.next not in (None, "end") and not record.taught:
            record.taught = True
            self.pool_of(record).taught += 1

    def credit(self, record: Record) -> None:
        if record.open and record.next is not None and record.reward is not None:
            pool, rules = self.pool_of(record), self.rules
            ahead = 0.0
            if isinstance(record.next, tuple):
                ahead = rules.gamma * max(pool.Q[record.next, a] for a in range(rules.n_actions))
            row = record.context, record.action
            pool.Q[row] += rules.alpha * (record.reward + ahead - pool.Q[row])
            record.credited = True
            pool.credited += 1

    def learn_at_once(self, record: Record) -> None:
        if self.rules.every == "each":
            self.credit(record)
            self.teach(record)

    def update(self) -> dict[str, int]:
        if self.rules.wait_hours is not None:
            for record in list(self.records.values()):
                if record.open and record.reward is None and record.at < self.now - self.rules.wait_hours * 3_600_000:
                    self.close(record)
        before = self.total()
        ordered = sorted(self.records.values(), key=lambda record: (self.alias(record.who), record.t))
        for record in ordered:
            self.teach(record)
        for record in ordered:
            self.credit(record)
        after = self.total()
        self.updates += 1
        return {"version": self.updates, "taught": after[0] - before[0], "credited": after[1] - before[1]}

    def total(self) -> tuple[int, int]:
        return sum(pool.taught for pool in self.pools.values()), sum(pool.credited for pool in self.pools.values())

    def close(self, record: Record) -> None:
        if self.rules.default is None:
            record.closed = True
        else:
            record.reward, record.by_default = self.rules.default, True
            self.learn_at_once(record)

    # --- contexts ---

    def waiting(self, who: str) -> list[Record]:
        own = [record for record in self.records.values() if record.who == who]
        return sorted((r for r in own if r.open and r.reward is None), key=lambda record: record.t)

    def arrive(self, who: str, t: int, context: Context) -> int:
        """Close what has waited for too long, fill in what was missed, and let a context arrive."""
        person, rules = self.people[who], self.rules
        waiting = self.waiting(who)
        late = [r for r in waiting if rules.wait_decisions is not None and r.t <= t - rules.wait_decisions]
        many = waiting[: max(0, len(waiting) - rules.max_open + 1)]
        gap = t - person.last - 1
        restart = person.current is not None and gap > rules.max_gap
        for record in waiting:
            if (record in late or record in many) and not (restart and record is person.current):
                self.close(record)
        if restart and person.current is not None:
            person.current.closed, person.current = True, None
        began = person.current is None
        for missed in range(person.last + 1, t) if not began else ():
            self.follow(person, self.missing)
            found = self.records.get((who, missed))
            if found is None:
                found = Record(who, missed, self.now, "absent", 0, self.missing)
                self.records[who, missed] = found
            found.context, person.current = self.missing, found
        if not began:
            self.follow(person, context)
        person.last = t
        return 0 if began else gap

    def follow(self, person: Person, context: Context) -> None:
        assert person.current is not None
        person.current.next = context
        self.learn_at_once(person.current)

    def note(self, who: str, t: int, action: int, context: Context) -> None:
        person = self.people[who]
        person.current = self.records[who, t] = Record(who, t, self.now, "decision", action, context)
        if self.rules.horizon is not None and t >= self.rules.horizon - 1:
            self.terminate(person)

    # --- decisions ---

    def decide(
        self, who: str, t: int, context: Context, *, invalid: bool, available: bool, allowed: list[int],
        previous: tuple[int, float] | None,
    ) -> dict[str, Any]:  # fmt: skip
        rules, person = self.rules, self.people.get(who)
        if previous is not None and (who, previous[0]) not in self.records:
            raise Refused
        if (who, t) in self.answers:
            if previous is not None:
                self.outcome(who, *previous)
            return self.answers[who, t] | {"repeated": True}
        if person is None and rules.unknown == "refuse":
            raise Refused
        if invalid and rules.on_invalid == "refuse":
            raise Refused
        if previous is not None:
            self.outcome(who, *previous)
        if person is None and rules.unknown == "enrol":
            self.enrol(who, None)
            person = self.people[who]
        reason = None
        if person is None:
            reason = "unknown"
        elif person.ended is not None:
            reason = "ended"
        elif t <= person.last:
            reason = "past"
        elif invalid and rules.on_invalid == "fallback":
            reason = "invalid"
        if reason is not None or person is None:
            found = self.fall_back(who, t, str(reason), allowed if available else [0])
        else:
            self.arrive(who, t, context)
            chosen = allowed if available else [0]
            burns = len(chosen) > 1 and person.asked < rules.burn_in
            found = {
                "policy": "burn-in" if burns else "learned", "reason": None, "randomised": len(chosen) > 1,
                "prob": self.probabilities(person, context, chosen, burns=burns), "version": self.version(person),
            }  # fmt: skip
            found["action"] = self.drawn(found["prob"], self.number(who, t, CHOICE)) if len(chosen) > 1 else chosen[0]
            self.note(who, t, found["action"], context)
            person.asked += 1
        self.answers[who, t] = found
        return found | {"repeated": False}

    def version(self, person: Person) -> int:
        pool = self.pools[person.pool]
        return self.updates if self.rules.every == "batch" else pool.taught + pool.credited

    def drawn(self, prob: list[Fraction], u: float) -> int:
        return next(a for a in range(len(prob)) if Fraction(u) < sum(prob[: a + 1], Fraction(0)))

    def fall_back(self, who: str, t: int, reason: str, allowed: list[int]) -> dict[str, Any]:
        found = self.records.get((who, t))
        if reason == "ended" or (found is not None and found.kind == "absent"):
            allowed = [0]
        certain, n = len(allowed) == 1, self.rules.n_actions
        shares = normalised([self.rules.fallback[a] for a in allowed])
        units = projected([nearest(p) for p in shares], [0] * len(allowed), [WHOLE] * len(allowed))
        prob = [Fraction(0)] * n
        for a, part in zip(allowed, units, strict=True):
            prob[a] = Fraction(part, WHOLE)
        action = allowed[0] if certain else self.drawn(prob, self.number(who, t, FALLBACK))
        if found is None and who in self.people:
            self.records[who, t] = Record(who, t, self.now, "outside", action, self.missing)
        return {"policy": "fallback", "reason": reason, "randomised": not certain, "prob": prob, "version": None,
                "action": action}  # fmt: skip

    def probabilities(self, person: Person, context: Context, chosen: list[int], *, burns: bool) -> list[Fraction]:
        rules, pool = self.rules, self.pools[person.pool]
        if len(chosen) == 1:
            return [Fraction(a == chosen[0]) for a in range(rules.n_actions)]
        fixed = rules.burn_in_prob if burns else rules.fixed
        if fixed is not None:
            shares = normalised([fixed[a] for a in chosen])
        else:
            shares = votes([[Fraction(pool.Q[context, a]) for a in chosen]], "sampled", rules.epsilon)
        low, high = (Fraction(0), Fraction(1)) if burns else (rules.low, rules.high)
        least, most = -int(-low * WHOLE // 1), int(high * WHOLE // 1)
        units = projected([nearest(p) for p in shares], [least] * len(chosen), [most] * len(chosen))
        prob = [Fraction(0)] * rules.n_actions
        for a, n in zip(chosen, units, strict=True):
            prob[a] = Fraction(n, WHOLE)
        return prob

    def given(self, who: str, t: int, context: Context, action: int) -> dict[str, Any]:
        if who not in self.people:
            raise Refused
        person = self.people[who]
        if (who, t) in self.answers:
            if self.told.get((who, t)) != (context, action):
                raise Refused
            return self.answers[who, t] | {"repeated": True}
        if person.ended is not None or t <= person.last:
            raise Refused
        self.arrive(who, t, context)
        found: dict[str, Any] = {
            "policy": "given", "reason": None, "randomised": False, "prob": [], "version": self.version(person),
            "action": action,
        }  # fmt: skip
        self.note(who, t, action, context)
        self.answers[who, t] = found
        self.told[who, t] = context, action
        return found | {"repeated": False}

    # --- rewards ---

    def outcome(self, who: str, t: int, reward: float) -> tuple[bool, int]:
        """Whether it is learned from, and how often this reward has been given."""
        if (who, t) not in self.records:
            raise Refused
        record = self.records[who, t]
        if record.reported == reward:
            used = record.reward == reward and record.kind == "decision" and not (record.closed or record.by_default)
            return used, record.revision
        record.reported = reward
        record.revision += 1
        if not record.open or record.by_default:
            return False, record.revision
        record.reward = reward
        self.learn_at_once(record)
        return True, record.revision
