"""The state of a trial: after event n, a function of events 1 … n and of the draws key.

An event has inputs, which come from outside, and outputs, which are computed. `TrialState.apply` takes the inputs of
one event, updates the state and returns the outputs. Running a trial and replaying its log both call it. So there is
one algorithm, and a replay compares its outputs with the logged ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacuna.agent.learner import draws_per_step
from lacuna.agent.voting import sample_action
from lacuna.kernels.compiled import typed
from lacuna.kernels.philox import FALLBACK, fill_numbers
from lacuna.kernels.space import MISSING
from lacuna.kernels.streams import Uniforms
from lacuna.trial.engine.allocation import Allocation, action_set, allocation_of
from lacuna.trial.engine.ledger import ABSENT, BY_DEFAULT, CLOSED, CREDITED, ENDS, HAS_NEXT, OUTSIDE, TAUGHT, Ledger
from lacuna.trial.engine.pool import Person, Places, Pool
from lacuna.trial.engine.steps import NO_ROOM, Desk, Moment, choose, learn_row, move_on
from lacuna.trial.engine.units import fixed_probabilities
from lacuna.trial.file.numbers import Numbers
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.events import milliseconds
from lacuna.trial.log.keys import DrawsKey, key_words, words

_MOST_DIGESTS = 100


class TrialState:
    """The complete state of a trial after some events.

    Parameters
    ----------
    file
        The trial file.
    draws_key
        The key that determines every draw.
    numbers
        The value of `Numbers.written` when the trial began; None if it begins now, to compute them.
    """

    def __init__(self, file: TrialFile, draws_key: DrawsKey, numbers: Any = None) -> None:
        self.file, self.settings, self.schema = file, file.settings, file.context
        self.space, self.n_actions = self.schema.space, len(file.actions)
        self.numbers = Numbers.of(file) if numbers is None else Numbers.read(numbers, file)
        self.rules = self.numbers.rules
        self.people: dict[str, Person] = {}
        self.pools: dict[str, Pool] = {}
        K, d = self.settings.pathways, self.space.d
        self.ledger, self.places = Ledger(K, d), Places(K, d)
        self.updates = 0
        self.update_keys: dict[str, dict[str, int]] = {}
        """The results of updates that had a key."""
        self.enrolled = 0
        self._key = key_words(draws_key)
        self._step: Callable[..., int] | None = None
        """`move_on`, compiled for the argument types of this trial."""
        self._learns_at_once = file.update_every == "each"
        self._desk = _desk(draws_per_step(self.rules, d), K, self.n_actions)
        self._nothing = np.full(d, MISSING, dtype=np.int64)
        self.allocations = self._allocations()
        self._sets: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._alone = [np.array([a]) for a in range(self.n_actions)]
        self._all = self.action_set(range(self.n_actions))
        self._fallback_prob = fixed_probabilities(file.fallback)
        self._apply: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "enrol": self._enrol, "decision": self._decision, "given": self._given, "fallback": self._fallback,
            "outcome": self._outcome, "close": self._close, "end": self._end, "rebuild": self._rebuild,
            "update": self._update,
        }  # fmt: skip

    def _allocations(self) -> dict[str, Allocation]:
        """The allocation rule of the file, and its fixed probabilities during burn-in."""
        file, K, A = self.file, self.settings.pathways, self.n_actions
        given, parameters = file.rule.parameters, dict[str, Any]()
        if file.rule.name == "softmax":
            parameters = {"temperature": given[0]}
        elif file.rule.name == "logistic":
            parameters = {"b": given[0], "log_c": self.numbers.log_c}
        elif file.rule.name == "fixed":
            parameters = {"p": given}
        p = file.burn_in.prob if file.burn_in is not None else file.fallback
        return {
            "learned": allocation_of(file.rule.name, parameters, file.bounds, K, A),
            "burn-in": allocation_of("fixed", {"p": p}, [(0.0, 1.0)] * A, K, A),
        }

    def action_set(self, allowed: Sequence[int]) -> NDArray[np.int64]:
        """The allowed actions as kernels take them; an error if the bounds cannot be met."""
        found = self._sets.get(key := tuple(allowed))
        if found is None:
            found = self._sets[key] = action_set(key, self.allocations["learned"])
        return found

    def apply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Apply one event, given its inputs, and return its outputs."""
        change = self._apply.get(body["kind"])
        return change(body) if change is not None else {}

    # --- participants ------------------------------------------------------------------------------------------------

    def pool_key(self, p: str, group: str | None) -> str:
        """The key of a participant's pool."""
        if self.file.pool == "group":
            return f"group:{group}"
        return p if self.file.pool == "each" else "all"

    def pool_of(self, person: Person) -> Pool:
        """The pool of a participant, created when first needed."""
        if person.pool not in self.pools:
            many = self.file.pool == "each"
            self.pools[person.pool] = Pool(self.space, self.n_actions, self.settings, many=many)
        return self.pools[person.pool]

    def _enrol(self, body: Mapping[str, Any]) -> dict[str, Any]:
        p, group = body["p"], body["group"]
        if p in self.people:
            raise ValueError("this participant is enrolled already")
        number = self.places.add()
        self.people[p] = Person(p, number, self.pool_key(p, group), group, bool(body["ghost"]))
        self.enrolled += not body["ghost"]
        return {"pool": self.people[p].pool}

    # --- contexts ----------------------------------------------------------------------------------------------------

    def _move_on(
        self, person: Person, t: int, coded: NDArray[np.int64], allowed: NDArray[np.int64], policy: str = "learned"
    ) -> int:
        """Take in a context after a participant's last decision, if there is one; returns the next action."""
        ledger, pool, row = self.ledger, self.pool_of(person), person.last_row
        to_credit = to_teach = False
        if row >= 0:
            if not ledger.has(row, ENDS):
                ledger.mark(row, HAS_NEXT)
            if self._learns_at_once:
                to_credit, to_teach = ledger.is_due(row)
        moment = Moment(self._key, person.words, t, person.number, row, to_credit, to_teach)
        allocation, trial = self.allocations[policy], (ledger.steps, self.places.standing, self._desk)
        arguments = moment, coded, allocation, allowed, trial, pool.learner
        if self._step is None:
            self._step = typed(move_on, *arguments)
        action = self._step(*arguments)
        if action == NO_ROOM:
            pool.make_room()
            learn_row(row, to_credit, to_teach, ledger.steps, pool.learner)
            action = choose(moment, allocation, allowed, trial, pool.learner)
        if to_credit or to_teach:
            pool.has_learned(to_credit=to_credit, to_teach=to_teach)
            ledger.mark(row, CREDITED * to_credit | TAUGHT * to_teach)
        return int(action)

    @property
    def _basis(self) -> str:
        """First 8 bytes of SHA-256 of all values that the last decision read."""
        return hashlib.sha256(self._desk.read[: self._desk.n_read[0]].tobytes()).hexdigest()[:16]

    def missed(self, person: Person, t: int) -> int | None:
        """How many decision points were missed before this one; None if it is the first, or the gap is too long."""
        gap = t - person.last_t - 1
        return None if person.last_t < 0 or person.last_row < 0 or gap > self.file.max_gap else gap

    def _take_context(
        self, person: Person, t: int, at: int, coded: NDArray[np.int64], allowed: NDArray[np.int64], policy: str
    ) -> tuple[int, int]:
        """Take in a context and the missed ones before it; returns how many were missed, and the action."""
        gap = self.missed(person, t)
        if gap is None:
            person.last_row = -1
        else:
            for missed in range(person.last_t + 1, t):
                self._move_on(person, missed, self._nothing, self._alone[self.file.absent])
                if missed not in person.rows:  # otherwise a fall-back was given there
                    row = self.ledger.add(person.number, missed, at, self.file.absent, ABSENT)
                    person.rows[missed] = row
                person.last_row = person.rows[missed]
        action = self._move_on(person, t, coded, allowed, policy)
        person.last_t = t
        return gap or 0, action

    # --- learning ----------------------------------------------------------------------------------------------------

    def _learn(self, row: int, person: Person) -> None:
        """Learn from one decision whatever is due, in the order in which an agent learns."""
        to_credit, to_teach = self.ledger.is_due(row)
        if to_credit or to_teach:
            self.pool_of(person).learn(row, self.ledger, to_credit=to_credit, to_teach=to_teach)
            self.ledger.mark(row, CREDITED * to_credit | TAUGHT * to_teach)

    def _update(self, body: Mapping[str, Any]) -> dict[str, Any]:
        ledger, digests = self.ledger, {}
        teach, credit = self._in_order(ledger.to_teach()), self._in_order(ledger.to_credit())
        for key in sorted({*teach, *credit}):
            pool, none = self.pools[key], np.zeros(0, dtype=np.int64)
            pool.teach(teach.get(key, none), ledger)
            pool.credit(credit.get(key, none), ledger)
            pool.plan(credit.get(key, none), ledger)
            digests[key] = pool.digest
        for flag, found in ((TAUGHT, teach), (CREDITED, credit)):
            for rows in found.values():
                ledger.mark(rows, flag)
        self.updates += 1
        if len(digests) > _MOST_DIGESTS:
            whole = hashlib.sha256("".join(f"{key} {one}\n" for key, one in digests.items()).encode())
            digests = {f"{len(digests)} pools": whole.hexdigest()[:16]}
        taught, credited = (sum(rows.size for rows in found.values()) for found in (teach, credit))
        gave = {"version": self.updates, "taught": taught, "credited": credited}
        if body["key"] is not None:
            self.update_keys[body["key"]] = gave
        return {**gave, "pools": digests}

    def _in_order(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """Rows by pool, sorted by pseudonym and decision point, so that the order of arrival does not matter."""
        people, whose = list(self.people.values()), self.ledger.person
        rank = np.empty(len(people), dtype=np.int64)
        rank[sorted(range(len(people)), key=lambda i: (people[i].pool, people[i].p))] = np.arange(len(people))
        rows = rows[np.lexsort((self.ledger.t[rows], rank[whose[rows]]))]
        by_pool = groupby(rows.tolist(), key=lambda row: people[whose[row]].pool)
        return {key: np.array(list(own), dtype=np.int64) for key, own in by_pool}

    def _rebuild(self, _: Mapping[str, Any]) -> dict[str, Any]:
        credited = self._in_order(self.ledger.credited())
        digests = {}
        for key, pool in sorted(self.pools.items()):
            if pool.stale:
                pool.rebuild(credited[key], self.ledger)
                digests[key] = pool.digest
        return {"pools": digests}

    @property
    def stale(self) -> bool:
        """Whether a reward was corrected after a planner took it in."""
        return any(pool.stale for pool in self.pools.values())

    # --- decisions ---------------------------------------------------------------------------------------------------

    def _decision(self, body: Mapping[str, Any]) -> dict[str, Any]:
        person, t, at = self.people[body["p"]], body["t"], milliseconds(body["at"])
        coded = self.schema.read(body["context"]).coded
        randomised = (allowed := self._allowed(body)).size > 1
        policy = "burn-in" if randomised and self._is_burning_in(person) else "learned"
        gap, action = self._take_context(person, t, at, coded, allowed, policy)
        outputs = {
            "coded": coded.tolist(), "gap": gap, "prob": self._desk.p.tolist(),
            "u": float(self._desk.choice[0]) if randomised else None, "action": action, "policy": policy,
            "randomised": randomised, "pool": person.pool, "version": self.version_of(person), "basis": self._basis,
            "reason": None,
        }  # fmt: skip
        self._note(person, t, at, action, person.asked + 1)
        return outputs

    def _given(self, body: Mapping[str, Any]) -> dict[str, Any]:
        person, t, at, action = self.people[body["p"]], body["t"], milliseconds(body["at"]), body["action"]
        coded = self.schema.read(body["context"]).coded
        gap, _ = self._take_context(person, t, at, coded, self._alone[action], "learned")
        outputs = {
            "coded": coded.tolist(), "gap": gap, "policy": "given", "pool": person.pool,
            "version": self.version_of(person), "basis": self._basis,
        }  # fmt: skip
        self._note(person, t, at, action, person.asked)
        return outputs

    def _note(self, person: Person, t: int, at: int, action: int, asked: int) -> None:
        """Store a decision until it can be learned from; the one at the horizon is the last."""
        row = self.ledger.add(person.number, t, at, action)
        person.rows[t] = person.waiting[t] = person.last_row = row
        person.asked = asked
        if self.file.horizon is not None and t >= self.file.horizon - 1:
            self._terminate(person)

    def _terminate(self, person: Person) -> None:
        """End the episode with the last decision; without a context, the final state is drawn from the model."""
        person.ended = "terminated"
        if person.last_row >= 0:
            self.ledger.end(person.last_row)
            self._move_on(person, person.last_t + 1, self._nothing, self._alone[self.file.absent])
            person.last_row = -1

    def version_of(self, person: Person) -> int:
        """The version of the policy of a participant."""
        pool = self.pool_of(person)
        return pool.taught + pool.credited if self._learns_at_once else self.updates

    def _is_burning_in(self, person: Person) -> bool:
        if (burn_in := self.file.burn_in) is None:
            return False
        if burn_in.decisions is not None and person.asked < burn_in.decisions:
            return True
        return burn_in.enrolled is not None and self.enrolled < burn_in.enrolled

    def probabilities(self, person: Person) -> NDArray[np.float64]:
        """Probability of each action in a participant's current state, if all actions are allowed."""
        policy = "burn-in" if self._is_burning_in(person) else "learned"
        moment = Moment(self._key, person.words, person.last_t, person.number, -1, to_credit=False, to_teach=False)
        trial = self.ledger.steps, self.places.standing, self._desk
        choose(moment, self.allocations[policy], self._all, trial, self.pool_of(person).learner)
        return self._desk.p.copy()

    def fallback(
        self, who: NDArray[np.uint64], t: int, allowed: NDArray[np.int64] | None = None
    ) -> tuple[int, list[float], float | None]:
        """The fall-back at a decision point: the action, its probabilities, and the random number, if one was drawn."""
        fill_numbers(self._key, who, t, FALLBACK, self._desk.choice)
        prob = self._fallback_prob if allowed is None else fixed_probabilities(self.file.fallback, allowed)
        u = float(self._desk.choice[0])
        return int(sample_action(prob, u)), prob.tolist(), None if allowed is not None and allowed.size == 1 else u

    def _fallback(self, body: Mapping[str, Any]) -> dict[str, Any]:
        p, t, person = body["p"], body["t"], self.people.get(body["p"])
        allowed = self._allowed(body) if "allowed" in body else self._all
        row = -1 if person is None else person.rows.get(t, -1)
        if body["reason"] == "ended" or (row >= 0 and self.ledger.has(row, ABSENT)):
            allowed = self._alone[self.file.absent]
        action, prob, u = self.fallback(words(p), t, allowed)
        if person is not None and row < 0:
            person.rows[t] = self.ledger.add(person.number, t, milliseconds(body["at"]), action, OUTSIDE)
        return {"action": action, "prob": prob, "u": u, "policy": "fallback", "randomised": u is not None}

    def _allowed(self, body: Mapping[str, Any]) -> NDArray[np.int64]:
        """The actions that a request leaves: only the one for absence if the participant is not available."""
        return self.action_set(body["allowed"]) if body["available"] else self._alone[self.file.absent]

    # --- what happens later ------------------------------------------------------------------------------------------

    def _outcome(self, body: Mapping[str, Any]) -> dict[str, Any]:
        person, ledger, t, reward = self.people[body["p"]], self.ledger, body["t"], body["reward"]
        row = person.rows[t]
        ledger.report(row, reward, body["delivered"])
        used = False
        if reward is not None and not ledger.has(row, BY_DEFAULT):
            corrects = ledger.has(row, CREDITED) and self.pool_of(person).tables.planner is not None
            used = ledger.is_open(row) or corrects
            if used:
                ledger.steps.reward[row] = reward
                person.waiting.pop(t, None)
            if corrects:
                self.pool_of(person).stale = True
            elif used and self._learns_at_once:
                self._learn(row, person)
        return {"used": used, "revision": int(ledger.revision[row])}

    def closings(self, person: Person, t: int, told: int | None) -> list[tuple[int, str]]:
        """Which decisions a new context closes, and why; the reward of decision `told` comes with the context."""
        reward, found = self.file.reward, dict[int, str]()
        if waiting := [old for old in person.waiting if old != told]:
            if reward.wait is not None and reward.wait.decisions is not None:
                found = {old: "wait" for old in waiting if old <= t - reward.wait.decisions}
            for old in waiting[: max(0, len(waiting) - reward.max_open + 1)]:
                found.setdefault(old, "max_open")
        if person.last_row >= 0 and self.missed(person, t) is None:
            found[person.last_t] = "gap"
        return sorted(found.items())

    def overdue(self, at: str) -> list[tuple[str, int]]:
        """The decisions whose reward is overdue at a time: participant and decision point."""
        wait = self.file.reward.wait
        if wait is None or wait.hours is None:
            return []
        people = list(self.people.values())
        rows = self.ledger.without_reward(milliseconds(at) - round(wait.hours * 3_600_000))
        return sorted((people[self.ledger.person[row]].p, int(self.ledger.t[row])) for row in rows)

    def _close(self, body: Mapping[str, Any]) -> dict[str, Any]:
        person, ledger, t = self.people[body["p"]], self.ledger, body["t"]
        row, default = person.rows[t], self.file.reward.default
        person.waiting.pop(t, None)
        cut_off = body["why"] in ("gap", "withdrawn")
        filled = default is not None and not cut_off and ledger.reward(row) is None
        if filled:
            ledger.steps.reward[row] = default
            ledger.mark(row, BY_DEFAULT)
            if self._learns_at_once:
                self._learn(row, person)
        else:
            ledger.mark(row, CLOSED)
        if cut_off:
            person.last_row = -1
        return {"default": default if filled else None}

    def _end(self, body: Mapping[str, Any]) -> dict[str, Any]:
        person = self.people[body["p"]]
        if body["how"] == "terminated":
            self._terminate(person)
        elif person.last_row >= 0:
            self._close({"p": body["p"], "t": person.last_t, "why": "withdrawn"})
        person.ended = body["how"]
        return {"last": person.last_t}


def _desk(draws: int, K: int, n_actions: int) -> Desk:
    imputation = Uniforms(np.empty(draws), np.zeros(1, dtype=np.int64))
    units, p, read = np.zeros(n_actions, dtype=np.int64), np.zeros(n_actions), np.zeros(K + (2 * K + 1) * n_actions + 2)
    return Desk(imputation, np.zeros(1), units, p, read, np.zeros(1, dtype=np.int64))
