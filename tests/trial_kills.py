"""Kill a trial at random moments, again and again: no answer is lost, and none is given twice differently.

    python tests/trial_kills.py 500

A child opens the trial, asks again what it asked last, goes on, and tells every answer that it got through a pipe. It
is killed with SIGKILL while it opens, decides, learns or takes a snapshot. Then every answer that was ever told is in
the log, equal; every key is there once; and at the end a replay gives the state that recovery does.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from lacuna.agent.settings import Settings
from lacuna.trial.engine import writer as live
from lacuna.trial.engine.recovery import open_store, secret_path
from lacuna.trial.engine.replay import replay
from lacuna.trial.engine.trial import Trial
from lacuna.trial.log.chained_log import check
from lacuna.trial.log.keys import Secret
from trial_cases import contexts, state_bytes, trial_file

PEOPLE, LONGEST = 7, 0.12
Answers = dict[int, list[Any]]
ERROR = -1


def ask(trial: Trial, n: int) -> list[Any]:
    """Request number `n`, the same whenever it is made; gives what a client sees of the answer."""
    rng = Random(n)
    who, t = f"person {n % PEOPLE}", n // PEOPLE
    (context,) = contexts(1, 0.3, n)
    previous = {"t": t - 1, "reward": float(rng.random() < 0.5)} if t and rng.random() < 0.8 else None
    decision = trial.decide(who, t, context, previous=previous)
    return [decision.action, dict(decision.prob), decision.policy, decision.version, decision.seq, decision.reason]


def client(path: Path, told: Answers, pipe: int) -> None:
    """What a client does after a crash: ask again what it may not have got, then go on."""
    live.SNAPSHOT_EVERY = 40
    first = max(told, default=-1) + 1
    with Trial.open(path) as trial:
        os.write(pipe, b"\n")
        for i in range(PEOPLE):
            trial.enrol(f"person {i}")
        for n in range(max(0, first - 3), first + 10**6):
            os.write(pipe, json.dumps([n, ask(trial, n)]).encode() + b"\n")
            if n % 25 == 24:
                trial.update(f"after {n}")


def killed(path: Path, told: Answers, rng: Random) -> list[tuple[int, list[Any]]]:
    """Start a client and kill it; gives the answers that it got."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            client(path, told, into)
        except BaseException as error:  # noqa: BLE001  the parent must hear of it
            os.write(into, json.dumps([ERROR, [repr(error)]]).encode() + b"\n")
        finally:
            os._exit(1)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        found = b"" if rng.random() < 0.2 else pipe.readline()
        time.sleep(rng.random() * LONGEST)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found += pipe.read()
    # The last line may be cut off: that answer was not told.
    lines = [json.loads(line) for line in found.split(b"\n")[:-1] if line]
    return [(n, answer) for n, answer in lines]


def check_log(path: Path, told: Answers, secret: Secret) -> int:
    """Compare all that was ever told with the log; gives the number of events."""
    with open_store(path, write=False)[0] as store:
        decisions: dict[tuple[str, int], list[dict[str, Any]]] = {}
        events = 0
        for entry in store.read():
            body = check(entry) or {}
            events += 1
            if body["kind"] == "decision":
                decisions.setdefault((body["p"], body["t"]), []).append(body)
        actions = trial_file().actions
        for n, answer in told.items():
            key = secret.pseudonym(f"person {n % PEOPLE}"), n // PEOPLE
            (body,) = decisions.get(key, [{}])
            assert body, f"answer {n} is not in the log"
            prob = dict(zip(actions, body["prob"], strict=True))
            logged = [actions[body["action"]], prob, body["policy"], body["version"], body["seq"], body["reason"]]
            assert logged == answer, f"answer {n} was {answer}, and the log says {logged}"
            assert store.find(*key) == body["seq"]
        assert all(len(found) == 1 for found in decisions.values()), "a decision is in the log twice"
    return events


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a trial at random moments.")
    parser.add_argument("kills", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng, told, seen = Random(given.seed), Answers(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walk.db"
        Trial.create(trial_file(Settings("mi-available", 4)), store=f"sqlite:{path}").close()
        secret = Secret.read(secret_path(path))
        with Trial.create(trial_file(Settings("mi-available", 4)), store="memory:") as warm:
            for i in range(PEOPLE):
                warm.enrol(f"person {i}")
            for n in range(30):
                ask(warm, n)
            warm.update()
        for kill in range(given.kills):
            for n, answer in killed(path, told, rng):
                if n == ERROR:
                    sys.exit(f"kill {kill}: {answer[0]}")
                seen["asked again"] += n in told
                if told.setdefault(n, answer) != answer:
                    sys.exit(f"kill {kill}: request {n} got {told[n]} first, and then {answer}")
            if kill % 10 == 9 or kill == given.kills - 1:
                events = check_log(path, told, secret)
        with Trial.open(path) as trial:
            state, head = replay(trial.store.read(), trial.secret.draws_key)
            assert head == trial.head
            assert state_bytes(state) == state_bytes(trial.state), "a replay gives another state than recovery"
    print(f"{given.kills} kills: {len(told):,} answers, {seen['asked again']:,} of them given again after a crash, "
          f"{events:,} events: all in the log, all equal; the replay is equal")  # fmt: skip


if __name__ == "__main__":
    main()
