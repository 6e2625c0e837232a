"""A trial file: what is wrong is said in sentences with the place, what is left out is filled in."""

from __future__ import annotations

import itertools
import math
import tomllib
from dataclasses import replace
from datetime import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna.agent.methods import METHODS, YARDSTICKS
from lacuna.agent.settings import DEFAULT, Settings
from lacuna.trial.file.declared import BurnIn, Rule, Wait
from lacuna.trial.file.file_tables import TABLES
from lacuna.trial.file.trial_file import TrialFile, TrialFileError
from sentences import one_sentence

GOOD = """\
[trial]
name = "walk-2026"
actions = ["nothing", "prompt"]
absent = "nothing"
pool = "all"
update = { every = "batch", at = "03:00", zone = "Europe/Berlin" }
horizon = 180
[settings]
gamma = 0.5
[allocation]
rule = { logistic = { b = 2.0, c = 1.0 } }
bounds = [0.1, 0.9]
fallback = [0.5, 0.5]
burn_in = { decisions = 14, prob = [0.5, 0.5] }
sets = { driving = ["nothing"] }
[reward]
range = [0.0, 1.0]
wait = { hours = 72 }
[context]
"time of day" = { values = ["morning", "noon", "evening"] }
steps = { edges = [500, 2000], range = [0, 100000] }
mood = { values = [1, 2, 3, 4, 5] }
"at home" = { values = [false, true] }
[store]
url = "sqlite:walk.db"
"""

SMALL = """\
[trial]
name = "small"
actions = ["a", "b", "c"]
absent = "c"
[context]
x = { values = [1, 2] }
"""


def change(old: str, new: str) -> str:
    """The good trial with one thing altered."""
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def small(more: str = "", **trial: str) -> str:
    """The small trial with more keys of [trial], then more tables."""
    lines = "".join(f"{key} = {value}\n" for key, value in trial.items())
    return SMALL.replace("[context]", f"{lines}[context]") + more


def sentences(text: str) -> list[str]:
    """What is said about a wrong trial file, each line without the name of the file."""
    with pytest.raises(TrialFileError) as caught:
        TrialFile.parse(text, "walk.toml")
    lines = str(caught.value).splitlines()
    assert all(line.startswith("walk.toml: ") for line in lines)
    assert len(set(lines)) == len(lines)
    return [line.removeprefix("walk.toml: ") for line in lines]


def test_the_example_is_read() -> None:
    file = TrialFile.parse(GOOD)
    assert (file.name, file.actions, file.absent, file.pool) == ("walk-2026", ("nothing", "prompt"), 0, "all")
    assert (file.update_every, file.horizon, file.text) == ("batch", 180, GOOD)
    assert file.update_at is not None
    assert (file.update_at.at, file.update_at.zone.key) == (time(3), "Europe/Berlin")
    assert file.settings == replace(DEFAULT, gamma=0.5)
    assert file.rule == Rule("logistic", (2.0, 1.0))
    assert file.bounds == ((0.1, 0.9), (0.1, 0.9))
    assert file.fallback == (0.5, 0.5)
    assert file.burn_in == BurnIn(14, None, (0.5, 0.5))
    assert file.sets == {"driving": (0,)}
    assert (file.reward.range, file.reward.wait, file.reward.default) == ((0.0, 1.0), Wait(72.0, None), None)
    assert file.context.space.names == ("time of day", "steps", "mood", "at home")
    assert file.context.space.sizes == (3, 3, 5, 2)
    assert file.context.read({"steps": 600, "at home": True}).coded.tolist() == [-1, 1, -1, 1]
    assert file.store == "sqlite:walk.db"


def test_what_is_left_out_is_filled_in() -> None:
    file = TrialFile.parse(SMALL)
    assert (file.pool, file.update_every, file.update_at, file.horizon) == ("all", "batch", None, None)
    assert (file.unknown, file.on_invalid, file.max_gap) == ("fallback", "missing", 12)
    assert file.settings == DEFAULT
    assert (file.rule, file.bounds) == (Rule("votes"), ((0.0, 1.0),) * 3)
    assert (file.fallback, file.burn_in, file.sets) == ((1 / 3,) * 3, None, {})
    assert (file.reward.range, file.reward.wait, file.reward.default, file.reward.max_open) == (None, None, None, 100)
    assert (file.store, file.deadline) == ("sqlite:small.db", 2.0)


def test_the_other_values_are_read() -> None:
    more = """
[settings]
method = "mi-available"
parents = 0.3
[allocation]
rule = { softmax = { temperature = 2 } }
bounds = [[0, 0.5], [0.25, 0.75], [0.125, 1]]
burn_in = { enrolled = 10, prob = [1, 0, 0] }
sets = { two = ["c", "b"], one = ["a"] }
[reward]
wait = { decisions = 6 }
default = -1
max_open = 7
[store]
url = "sqlite:elsewhere/walk.db"
[service]
deadline = 0.5
"""
    text = small(more, update='"each"', unknown='"refuse"', on_invalid='"refuse"', max_gap="0", pool='"group"')
    file = TrialFile.parse(text)
    assert (file.update_every, file.unknown, file.on_invalid, file.max_gap) == ("each", "refuse", "refuse", 0)
    assert (file.pool, file.absent) == ("group", 2)
    assert file.settings == Settings("mi-available", parents=0.3)
    assert file.rule == Rule("softmax", (2.0,))
    assert file.bounds == ((0.0, 0.5), (0.25, 0.75), (0.125, 1.0))
    assert file.burn_in == BurnIn(None, 10, (1.0, 0.0, 0.0))
    assert file.sets == {"two": (1, 2), "one": (0,)}
    assert (file.reward.wait, file.reward.default, file.reward.max_open) == (Wait(None, 6), -1.0, 7)
    assert file.store == "sqlite:elsewhere/walk.db"
    assert file.deadline == 0.5
    fixed = TrialFile.parse(small("[allocation]\nrule = { fixed = [0.2, 0.3, 0.5] }\n"))
    assert fixed.rule == Rule("fixed", (0.2, 0.3, 0.5))
    assert TrialFile.parse(small('[allocation]\nrule = "votes"\n')).rule == Rule("votes")


@pytest.mark.parametrize("method", METHODS)
def test_the_settings_of_another_method_are_its_own(method: str) -> None:
    assert TrialFile.parse(small(f'[settings]\nmethod = "{method}"\n')).settings == Settings(method)


def test_an_update_at_a_time_without_a_zone_is_in_utc() -> None:
    at = TrialFile.parse(small(update='{ at = "23:59" }')).update_at
    assert at is not None
    assert (at.at, at.zone.key) == (time(23, 59), "UTC")


METHOD_NAMES = ", ".join(METHODS)
PAIR = "it must be two numbers from 0 to 1, the smaller one first"
RULE = '"votes", { softmax = { temperature = … } }, { logistic = { b = …, c = … } } or { fixed = [ … ] }'
RANGE = "it must be two finite numbers, the smaller one first"
FORM = "it must be sqlite:FILE"
TABLE = "it must be a table of keys and values"
TIME = 'it must be a time of day from "00:00" to "23:59"'
ZONE = 'it must be a time zone that this machine knows, e.g. "Europe/Berlin"'
COMPONENT = "it must be { values = [ … ] } or { edges = [ … ], range = [ … ] }"
NAME = "it must be a text of 1 to 64 printable characters"
SETTING_KEYS = (
    "method, K, alpha, gamma, epsilon, vote, update, p_shuffle, kappa, smoothing, parents, optimism, budget, cycles, "
    "q_table, assumed, evidence, look, lag"
)


def allocation(line: str) -> str:
    return small(f"[allocation]\n{line}\n")


def reward(line: str) -> str:
    return small(f"[reward]\n{line}\n")


def context(line: str) -> str:
    return small(f"{line}\n")


WRONG: dict[str, tuple[str, str]] = {
    # --- tables and keys
    "a misspelt table": (
        change("[reward]", "[rewards]"),
        "'rewards' is no table of a trial file (did you mean 'reward'?); there are "
        "[trial], [settings], [allocation], [reward], [context], [store], [service]",
    ),
    "a table that is none": ("service = 5\n" + SMALL, f"[service] is 5; {TABLE}"),
    "no context": (SMALL.partition("[context]")[0], "[context] is missing; it is needed"),
    "no trial": ("[context]\nx = { values = [1, 2] }", "[trial] is missing; it is needed"),
    "no name": (SMALL.replace('name = "small"\n', ""), "[trial] name is missing; it is needed"),
    "no absent action": (SMALL.replace('absent = "c"\n', ""), "[trial] absent is missing; it is needed"),
    "a misspelt key": (
        change("horizon", "horizn"),
        "[trial] horizn is not a key (did you mean 'horizon'?); there are name, "
        "actions, absent, pool, update, horizon, unknown, on_invalid, max_gap",
    ),
    "a misspelt key within a key": (
        change("every =", "evry ="),
        "[trial] update.evry is not a key (did you mean 'every'?); there are every, at, zone",
    ),
    "a misspelt parameter": (
        allocation("rule = { softmax = { temperature = 1, temprature = 1 } }"),
        "[allocation] rule.softmax.temprature is not a key (did you mean 'temperature'?); there are temperature",
    ),
    "a misspelt setting": (
        change("gamma", "gama"),
        f"[settings] gama is not a key (did you mean 'gamma'?); there are {SETTING_KEYS}",
    ),
    "a misspelt key of a component": (
        context("y = { vals = [1] }"),
        "[context] y.vals is not a key (did you mean 'values'?); there are values, edges, range",
    ),
    "a key that breaks the line": (
        small('[service]\n"a\\nb" = 1\n'),
        r"[service] 'a\nb' is not a key; there are deadline",
    ),
    # --- the trial
    "a name that is a path": (
        SMALL.replace('"small"', '"../small"'),
        "[trial] name is '../small'; it must be made of letters, digits, spaces inside, and any of . , + - _ ( )",
    ),
    "a long name": (
        SMALL.replace("small", "s" * 65),
        f"[trial] name is '{'s' * 65}'; it must be shorter: at most 64 characters",
    ),
    "a name that is a number": (SMALL.replace('"small"', "5"), "[trial] name is 5; it must be a text in quotes"),
    "no actions": (
        SMALL.replace('["a", "b", "c"]', "[]"),
        "[trial] actions is []; it must be a list of at least one value",
    ),
    "actions that are none": (SMALL.replace('["a", "b", "c"]', "3"), "[trial] actions is 3; it must be a list"),
    "an action that is none": (SMALL.replace('"b"', "2"), "[trial] actions[1] is 2; it must be a text in quotes"),
    "an action twice": (SMALL.replace('"b"', '"a"'), "[trial] actions has 'a' twice; names must differ"),
    "an action without a name": (SMALL.replace('"b"', '""'), f"[trial] actions[1] is ''; {NAME}"),
    "an action with a long name": (
        SMALL.replace('"b"', f'"{"b" * 65}"'),
        f"[trial] actions[1] is '{'b' * 65}'; {NAME}",
    ),
    "an absent action that is none": (
        change('absent = "nothing"', 'absent = "nothin"'),
        "[trial] absent is 'nothin' (did you mean 'nothing'?); it must be one of 'nothing', 'prompt'",
    ),
    "a pool that is none": (
        small(pool='"al"'),
        "[trial] pool is 'al' (did you mean 'all'?); it must be one of all, each, group",
    ),
    "an update that is none": (
        small(update='"eech"'),
        "[trial] update.every is 'eech' (did you mean 'each'?); it must be one of batch, each",
    ),
    "an update that is a number": (
        small(update="5"),
        '[trial] update is 5; it must be "batch", "each" or { every = …, at = …, zone = … }',
    ),
    "an hour that is none": (small(update='{ at = "24:00" }'), f"[trial] update.at is '24:00'; {TIME}"),
    "a time without minutes": (small(update='{ at = "03" }'), f"[trial] update.at is '03'; {TIME}"),
    "a time with seconds": (small(update='{ at = "03:00:00" }'), f"[trial] update.at is '03:00:00'; {TIME}"),
    "a time in other digits": (small(update='{ at = "3:00a" }'), f"[trial] update.at is '3:00a'; {TIME}"),
    "a time of TOML": (
        small(update="{ at = 03:00:00 }"),
        "[trial] update.at is datetime.time(3, 0); it must be a text in quotes",
    ),
    "a time at each event": (
        small(update='{ every = "each", at = "03:00" }'),
        "[trial] update.at is '03:00', but every event updates; it needs every = \"batch\"",
    ),
    "a zone without a time": (
        small(update='{ zone = "UTC" }'),
        "[trial] update.zone is 'UTC', but there is no update.at; give both or neither",
    ),
    "a zone that is none": (
        change("Europe/Berlin", "Europe/Berlim"),
        f"[trial] update.zone is 'Europe/Berlim'; {ZONE}",
    ),
    "a zone that is a folder": (change("Europe/Berlin", "Europe"), f"[trial] update.zone is 'Europe'; {ZONE}"),
    "a zone that is a path": (change("Europe/Berlin", "../passwd"), f"[trial] update.zone is '../passwd'; {ZONE}"),
    "an empty zone": (change("Europe/Berlin", ""), f"[trial] update.zone is ''; {ZONE}"),
    "a horizon of nothing": (small(horizon="0"), "[trial] horizon is 0; it must be 1 or larger"),
    "a horizon too far": (small(horizon="2147483649"), "[trial] horizon is 2147483649; it must be at most 2147483648"),
    "a horizon in parts": (small(horizon="1.5"), "[trial] horizon is 1.5; it must be a whole number"),
    "a horizon that is true": (small(horizon="true"), "[trial] horizon is True; it must be a whole number"),
    "an unknown that is none": (
        small(unknown='"enroll"'),
        "[trial] unknown is 'enroll' (did you mean 'enrol'?); it must be one of fallback, enrol, refuse",
    ),
    "a group that nobody names": (
        small(pool='"group"', unknown='"enrol"'),
        "[trial] unknown is 'enrol', but with pool = 'group' no request can enrol: none names a group",
    ),
    "an on_invalid that is none": (
        small(on_invalid='"drop"'),
        "[trial] on_invalid is 'drop'; it must be one of missing, fallback, refuse",
    ),
    "a gap below nothing": (small(max_gap="-1"), "[trial] max_gap is -1; it must be 0 or larger"),
    "a gap too wide": (small(max_gap="100001"), "[trial] max_gap is 100001; it must be at most 100000"),
    # --- the settings
    "a setting out of range": (
        change("gamma = 0.5", "gamma = 2"),
        "[settings] gamma is 2; it must be a number between 0 and 1",
    ),
    "a method that is none": (
        small('[settings]\nmethod = "mi-planed"\n'),
        f"[settings] method is 'mi-planed' (did you mean 'mi-planned'?); it must be one of {METHOD_NAMES}",
    ),
    "a method that is a number": (
        small("[settings]\nmethod = 5\n"),
        f"[settings] method is 5; it must be one of {METHOD_NAMES}",
    ),
    "a method that is a list": (
        small("[settings]\nmethod = [5]\n"),
        f"[settings] method is [5]; it must be one of {METHOD_NAMES}",
    ),
    "a setting of another method": (
        small("[settings]\nalpha = 0.5\n"),
        "[settings] alpha is 0.5, but mi-planned has no such setting; alpha belongs to random-action, "
        "last-fully-observed, last-observed, missing-as-state, mi-synthetic, mi-conservative, mi-available, "
        "mi-masked, mi-chained, mi-separate, zero-context, assumed-value, carry-default",
    ),
    # --- the allocation
    "a rule that is none": (allocation('rule = "softmax"'), f"[allocation] rule is 'softmax'; it must be {RULE}"),
    "a rule that is a number": (allocation("rule = 5"), f"[allocation] rule is 5; it must be {RULE}"),
    "no rule": (allocation("rule = {}"), f"[allocation] rule is {{}}; it must be {RULE}"),
    "two rules": (
        allocation("rule = { fixed = [1, 0, 0], softmax = { temperature = 1 } }"),
        f"[allocation] rule is {{'fixed': [1, 0, 0], 'softmax': {{'temperature': 1}}}}; it must be {RULE}",
    ),
    "a softmax without a temperature": (
        allocation("rule = { softmax = {} }"),
        "[allocation] rule.softmax.temperature is missing; it is needed",
    ),
    "a temperature of 0": (
        allocation("rule = { softmax = { temperature = 0 } }"),
        "[allocation] rule.softmax.temperature is 0; it must be 1e-09 or larger",
    ),
    "a temperature without end": (
        allocation("rule = { softmax = { temperature = inf } }"),
        "[allocation] rule.softmax.temperature is inf; it must be at most 1000000000",
    ),
    "a temperature that is a text": (
        allocation('rule = { softmax = { temperature = "1" } }'),
        "[allocation] rule.softmax.temperature is '1'; it must be a number",
    ),
    "b below 0": (change("b = 2.0", "b = -1"), "[allocation] rule.logistic.b is -1; it must be 0 or larger"),
    "c of 0": (change("c = 1.0", "c = 0"), "[allocation] rule.logistic.c is 0; it must be 1e-09 or larger"),
    "logistic with three actions": (
        allocation("rule = { logistic = { b = 1, c = 1 } }"),
        "[allocation] rule is logistic, which needs 2 actions; [trial] actions has 3",
    ),
    "fixed for other actions": (
        allocation("rule = { fixed = [0.5, 0.5] }"),
        "[allocation] rule.fixed is [0.5, 0.5]; it must have a probability for each of 3 actions",
    ),
    "fixed above 1": (
        allocation("rule = { fixed = [1.5, -0.5, 0] }"),
        "[allocation] rule.fixed is [1.5, -0.5, 0.0]; probabilities must lie between 0 and 1",
    ),
    "fixed that is nan": (
        allocation("rule = { fixed = [nan, 0.5, 0.5] }"),
        "[allocation] rule.fixed is [nan, 0.5, 0.5]; probabilities must lie between 0 and 1",
    ),
    "fixed that is not all": (
        allocation("rule = { fixed = [0.5, 0.25, 0] }"),
        "[allocation] rule.fixed is [0.5, 0.25, 0.0], which sums to 0.75; it must sum to 1",
    ),
    "a fall-back that is not all": (
        change("fallback = [0.5, 0.5]", "fallback = [0.5, 0.500001]"),
        "[allocation] fallback is [0.5, 0.500001], which sums to 1.000001; it must sum to 1",
    ),
    "a fall-back for one": (
        change("fallback = [0.5, 0.5]", "fallback = [1]"),
        "[allocation] fallback is [1.0]; it must have a probability for each of 2 actions",
    ),
    "a fall-back for none": (
        change("fallback = [0.5, 0.5]", "fallback = []"),
        "[allocation] fallback is []; it must be a list of at least one value",
    ),
    "a burn-in that is not all": (
        change("prob = [0.5, 0.5]", "prob = [0.5, 0.4]"),
        "[allocation] burn_in.prob is [0.5, 0.4], which sums to 0.9; it must sum to 1",
    ),
    "a burn-in without end": (
        change("decisions = 14, ", ""),
        "[allocation] burn_in is {'prob': [0.5, 0.5]}; it must be "
        "{ decisions = …, prob = [ … ] } or { enrolled = …, prob = [ … ] }",
    ),
    "a burn-in with two ends": (
        change("decisions = 14", "decisions = 14, enrolled = 3"),
        "[allocation] burn_in is {'decisions': 14, 'enrolled': 3, 'prob': [0.5, 0.5]}; it must be "
        "{ decisions = …, prob = [ … ] } or { enrolled = …, prob = [ … ] }",
    ),
    "a burn-in without probabilities": (
        change(", prob = [0.5, 0.5]", ""),
        "[allocation] burn_in.prob is missing; it is needed",
    ),
    "a burn-in of nothing": (
        change("decisions = 14", "decisions = 0"),
        "[allocation] burn_in.decisions is 0; it must be 1 or larger",
    ),
    "bounds that are one": (allocation("bounds = [0.1]"), f"[allocation] bounds has [0.1]; {PAIR}"),
    "no bounds": (allocation("bounds = []"), f"[allocation] bounds has []; {PAIR}"),
    "bounds that are no list": (allocation("bounds = 0.1"), "[allocation] bounds is 0.1; it must be a list"),
    "bounds upside down": (allocation("bounds = [0.9, 0.1]"), f"[allocation] bounds has [0.9, 0.1]; {PAIR}"),
    "bounds above 1": (allocation("bounds = [0, 1.1]"), f"[allocation] bounds has [0, 1.1]; {PAIR}"),
    "bounds that are nan": (allocation("bounds = [nan, 1]"), f"[allocation] bounds has [nan, 1]; {PAIR}"),
    "bounds that are true": (allocation("bounds = [false, true]"), f"[allocation] bounds has [False, True]; {PAIR}"),
    "bounds that are texts": (allocation('bounds = ["0", "1"]'), f"[allocation] bounds has ['0', '1']; {PAIR}"),
    "bounds of two kinds": (allocation("bounds = [0, [0, 1], [0, 1]]"), f"[allocation] bounds has 0; {PAIR}"),
    "bounds for other actions": (
        allocation("bounds = [[0, 1], [0, 1]]"),
        "[allocation] bounds is [[0, 1], [0, 1]]; it must be a pair for all actions, or one for each of 3",
    ),
    "bounds without room": (
        allocation("bounds = [0.3, 0.3]"),
        "[allocation] bounds has [0.3, 0.3], and no multiple of 2^-32 "
        "lies between; bounds must be further apart: for constant probabilities take rule = { fixed = [ … ] }",
    ),
    "lower bounds above 1": (
        allocation("bounds = [0.5, 1]"),
        "[allocation] bounds: the lower bounds of all actions, rounded up to "
        "multiples of 2^-32, sum to 1.5; they must sum to at most 1",
    ),
    "upper bounds below 1": (
        allocation("bounds = [0, 0.25]"),
        "[allocation] bounds: the upper bounds of all actions, rounded down to "
        "multiples of 2^-32, sum to 0.75; they must sum to at least 1",
    ),
    "upper bounds of a set below 1": (
        allocation('bounds = [0, 0.4375]\nsets = { two = ["a", "b"] }'),
        "[allocation] bounds: the upper bounds of the set 'two', rounded down to multiples of 2^-32, sum to 0.875; "
        "they must sum to at least 1",
    ),
    "an empty set": (
        allocation("sets = { none = [] }"),
        "[allocation] sets.none is []; it must have at least one action",
    ),
    "a set of others": (
        allocation('sets = { x = ["d"] }'),
        "[allocation] sets.x has 'd'; it must be one of 'a', 'b', 'c'",
    ),
    "a set with one twice": (
        allocation('sets = { x = ["a", "a"] }'),
        "[allocation] sets.x is ['a', 'a']; an action must be in it once",
    ),
    "a set without a name": (allocation('sets = { "" = ["a"] }'), f"[allocation] sets: a name is ''; {NAME}"),
    "a set that is none": (allocation('sets = { x = "a" }'), "[allocation] sets.x is 'a'; it must be a list"),
    "sets that are none": (allocation("sets = 5"), f"[allocation] sets is 5; {TABLE}"),
    # --- the reward
    "a range upside down": (reward("range = [1, 0]"), f"[reward] range is [1.0, 0.0]; {RANGE}"),
    "a range of one": (reward("range = [1]"), f"[reward] range is [1.0]; {RANGE}"),
    "a range without end": (reward("range = [0, inf]"), f"[reward] range is [0.0, inf]; {RANGE}"),
    "a range too wide": (
        reward("range = [0, 1e101]"),
        "[reward] range is [0.0, 1e+101]; rewards must lie between -1e+100 and 1e+100",
    ),
    "a default out of the range": (
        reward("range = [0, 1]\ndefault = 2"),
        "[reward] default is 2.0; it must be a number between 0 and 1",
    ),
    "a default too large": (
        reward("default = 1e101"),
        "[reward] default is 1e+101; it must be a number between -1e+100 and 1e+100",
    ),
    "a default that is nan": (
        reward("default = nan"),
        "[reward] default is nan; it must be a number between -1e+100 and 1e+100",
    ),
    "a default larger than floats": (
        reward(f"default = {'9' * 400}"),
        f"[reward] default is {'9' * 200}…; it must be a number",
    ),
    "no wait": (reward("wait = {}"), "[reward] wait is {}; it must be { hours = … } or { decisions = … }"),
    "two waits": (
        reward("wait = { hours = 1, decisions = 1 }"),
        "[reward] wait is {'hours': 1, 'decisions': 1}; it must be { hours = … } or { decisions = … }",
    ),
    "a wait that is a number": (reward("wait = 72"), f"[reward] wait is 72; {TABLE}"),
    "a wait of no hours": (reward("wait = { hours = 0 }"), "[reward] wait.hours is 0; it must be above 0"),
    "a wait of years": (
        reward("wait = { hours = 1e6 }"),
        "[reward] wait.hours is 1000000.0; it must be at most 100000",
    ),
    "a wait of no decisions": (
        reward("wait = { decisions = 0 }"),
        "[reward] wait.decisions is 0; it must be 1 or larger",
    ),
    "nothing open": (reward("max_open = 0"), "[reward] max_open is 0; it must be 1 or larger"),
    "too much open": (reward("max_open = 100001"), "[reward] max_open is 100001; it must be at most 100000"),
    # --- the context
    "no component": (
        SMALL.replace("x = { values = [1, 2] }\n", ""),
        "[context] has no component; it must have at least one",
    ),
    "a component that is none": (context("y = 5"), f"[context] y is 5; {TABLE}"),
    "a component of nothing": (context("y = {}"), f"[context] y is {{}}; {COMPONENT}"),
    "a component of both": (
        context("y = { values = [1], edges = [1] }"),
        f"[context] y is {{'values': [1], 'edges': [1]}}; {COMPONENT}",
    ),
    "edges without a range": (context("y = { edges = [1] }"), f"[context] y is {{'edges': [1]}}; {COMPONENT}"),
    "no values": (context("y = { values = [] }"), "[context] y has no values; it must have at least one"),
    "a value twice": (
        context('"y z" = { values = [1, true, 1.0] }'),
        "[context] 'y z' has the value 1 twice; values must differ",
    ),
    "a value that is none": (
        context("y = { values = [[1]] }"),
        "[context] y has the value [1]; it must be a text of at most 64 "
        "printable characters, true, false or a finite number, whole numbers up to 2^53",
    ),
    "edges that fall": (
        context("y = { edges = [2, 1], range = [0, 9] }"),
        "[context] y: edges is [2.0, 1.0]; it must ascend",
    ),
    "edges that are texts": (
        context('y = { edges = ["2"], range = [0, 9] }'),
        "[context] y.edges[0] is '2'; it must be a number",
    ),
    "edges that are nan": (
        context("y = { edges = [nan], range = [0, 9] }"),
        "[context] y: edges is [nan]; it must be at least one number, all finite",
    ),
    "a range of a component that falls": (
        context("y = { edges = [1], range = [9, 0] }"),
        f"[context] y: range is [9.0, 0.0]; {RANGE}",
    ),
    "an edge outside": (
        context("y = { edges = [10], range = [0, 9] }"),
        "[context] y: edges is [10.0]; edges must lie above 0 and "
        "at most at 9, or a bin of range [0.0, 9.0] would be empty",
    ),
    "a component without a name": (context('"" = { values = [1] }'), f"[context] a component's name is ''; {NAME}"),
    "a component with a long name": (
        context(f"{'y' * 65} = {{ values = [1] }}"),
        f"[context] a component's name is '{'y' * 65}'; {NAME}",
    ),
    "too many states": (
        context("".join(f"y{j} = {{ values = [1, 2] }}\n" for j in range(40))),
        "[context] component 40 with 2 values makes more than 1099511627776 states, too many for a table",
    ),
    # --- the store and the service
    "another store": (change("sqlite:walk.db", "mysql://me:hunter2@x/y"), f"[store] url has another form; {FORM}"),
    "a store that is a path": (change("sqlite:walk.db", "walk.db"), f"[store] url has another form; {FORM}"),
    "a store without a file": (
        change("sqlite:walk.db", "sqlite:"),
        "[store] url names no file; it must be sqlite:FILE",
    ),
    "no deadline": (small("[service]\ndeadline = 0\n"), "[service] deadline is 0; it must be above 0"),
    "a late deadline": (small("[service]\ndeadline = 11\n"), "[service] deadline is 11; it must be at most 10"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_in_one_sentence_with_its_place(what: str) -> None:
    text, expected = WRONG[what]
    found = sentences(text)
    assert expected in found
    assert not any("hunter2" in line for line in found)
    # Only a misspelt key is two faults: the wrong one is there, and the right one may be missing.
    others = [line for line in found if line != expected and "missing" not in line and COMPONENT not in line]
    assert others == []


@pytest.mark.parametrize("method", YARDSTICKS)
def test_a_yardstick_is_refused(method: str) -> None:
    assert sentences(small(f'[settings]\nmethod = "{method}"\n')) == [
        f"[settings] method is '{method}', a yardstick: it knows what no trial can know; "
        f"it must be one of {METHOD_NAMES}"
    ]


def test_everything_wrong_is_said_at_once() -> None:
    text = (
        GOOD.replace("gamma = 0.5", "gamma = 5\nK = 0")
        .replace('pool = "all"', 'pool = "some"')
        .replace("range = [0.0, 1.0]", "range = [2, 1]")
        .replace("[500, 2000]", "[2000, 500]")
        .replace("[1, 2, 3, 4, 5]", "[]")
        .replace("[0.1, 0.9]", "[0.1, 0.9")
        .replace("bounds = [0.1, 0.9", "bonds = [0.1, 0.9]")
        .replace("sqlite:", "oracle:")
    )
    assert [line.partition("; ")[0] for line in sentences(text)] == [
        "[settings] gamma is 5",
        "[settings] K is 0",
        "[allocation] bonds is not a key (did you mean 'bounds'?)",
        "[trial] pool is 'some'",
        "[reward] range is [2.0, 1.0]",
        "[context] steps: edges is [2000.0, 500.0]",
        "[context] mood has no values",
        "[store] url has another form",
    ]


def test_bounds_are_judged_in_the_units_of_probabilities() -> None:
    ten = SMALL.replace('["a", "b", "c"]', str(list("abcdefghij")).replace("'", '"'))
    # Ten times 0.1 is 1, but 0.1 is no multiple of 2^-32, and rounded up ten of them are more.
    (line,) = sentences(ten + "[allocation]\nbounds = [0.1, 1]\n")
    assert "the lower bounds of all actions, rounded up to multiples of 2^-32, sum to 1.00000000093;" in line
    five = SMALL.replace('["a", "b", "c"]', '["a", "b", "c", "d", "e"]')
    assert "sum to 1.00000000093;" in sentences(five + "[allocation]\nbounds = [0.2, 1]\n")[0]
    assert "sum to 0.999999998603;" in sentences(ten + "[allocation]\nbounds = [0, 0.1]\n")[0]
    assert TrialFile.parse(ten + "[allocation]\nbounds = [0.0999, 1]\n").bounds == ((0.0999, 1.0),) * 10
    halves = SMALL.replace('["a", "b", "c"]', '["b", "c"]') + "[allocation]\nbounds = [0.5, 0.5]\n"
    assert TrialFile.parse(halves).bounds == ((0.5, 0.5),) * 2


def test_a_set_of_one_action_and_a_trial_of_one_action_need_no_bounds() -> None:
    assert TrialFile.parse(allocation('bounds = [0.1, 0.5]\nsets = { one = ["b"] }')).sets == {"one": (1,)}
    alone = SMALL.replace('["a", "b", "c"]', '["c"]') + "[allocation]\nbounds = [0.1, 0.5]\n"
    assert TrialFile.parse(alone).fallback == (1.0,)


def test_probabilities_may_miss_1_by_rounding() -> None:
    assert TrialFile.parse(allocation("fallback = [0.3333333333, 0.3333333333, 0.3333333333]")).fallback[0] < 1 / 3


@pytest.mark.parametrize(
    "text", ["[trial", "a = ", "[trial]\nname = 'x'\nname = 'y'", "x = " + "[" * 5000, f"x = {'9' * 5000}"]
)
def test_what_is_not_toml_is_said(text: str) -> None:
    with pytest.raises(TrialFileError, match=r"^walk\.toml is not valid TOML: ") as caught:
        TrialFile.parse(text, "walk.toml")
    one_sentence(caught.value)


def test_a_file_is_read_and_its_store_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SMALL, encoding="utf-8-sig")
    (tmp_path / "b.toml").write_text(GOOD)
    (tmp_path / "c.toml").write_text(change("sqlite:walk.db", "sqlite:/srv/walk.db"))
    stores = [TrialFile.read(tmp_path / name).store for name in ("a.toml", "b.toml", "c.toml")]
    assert stores == [f"sqlite:{tmp_path}/small.db", f"sqlite:{tmp_path}/walk.db", "sqlite:/srv/walk.db"]
    assert TrialFile.read(str(tmp_path / "a.toml")).text == SMALL


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"\xe9")
    for path in (tmp_path / "nowhere.toml", tmp_path, tmp_path / "latin.toml"):
        with pytest.raises(TrialFileError, match="cannot be read: ") as caught:
            TrialFile.read(path)
        assert one_sentence(caught.value).startswith(str(path))


SAME = [
    change("range = [0.0, 1.0]", "range = [0, 1]"),
    change("hours = 72", "hours = 72.0"),
    change("[1, 2, 3, 4, 5]", "[1.0, 2, 3, 4, 5.0]"),
    change("bounds = [0.1, 0.9]", "bounds = [[0.1, 0.9], [0.1, 0.9]]"),
    change('pool = "all"\n', ""),
    change("gamma = 0.5", 'gamma = 0.5\nmethod = "mi-planned"\nK = 10'),
    change("[0, 100000]", "[-0.0, 1e5]"),
    change("sqlite:walk.db", "sqlite:y.db"),
    change("fallback = [0.5, 0.5]\n", ""),
    GOOD + "[service]\ndeadline = 1\n",
    "# a remark\n" + GOOD,
]


@pytest.mark.parametrize("text", SAME)
def test_what_declares_the_same_has_the_same_digest(text: str) -> None:
    file, other = TrialFile.parse(text), TrialFile.parse(GOOD)
    assert file.digest == other.digest
    assert len(file.digest) == 64
    assert file.first_difference(other) is None


DIFFERENT = {
    '"walk-2026"': ('"walk-2027"', '[trial] name is "walk-2026" in the log and "walk-2027" in walk.toml'),
    '["nothing", "prompt"]': (
        '["nothing", "push"]',
        '[trial] actions is ["nothing","prompt"] in the log and ["nothing","push"] in walk.toml',
    ),
    'absent = "nothing"': ('absent = "prompt"', '[trial] absent is "nothing" in the log and "prompt" in walk.toml'),
    'pool = "all"': ('pool = "each"', '[trial] pool is "all" in the log and "each" in walk.toml'),
    '"03:00"': (
        '"04:00"',
        '[trial] update is {"at":"03:00","every":"batch","zone":"Europe/Berlin"} in the log and '
        '{"at":"04:00","every":"batch","zone":"Europe/Berlin"} in walk.toml',
    ),
    "horizon = 180": ("max_gap = 3", "[trial] horizon is 180 in the log and null in walk.toml"),
    "gamma = 0.5": ("gamma = 0.25", "[settings] gamma is 0.5 in the log and 0.25 in walk.toml"),
    "b = 2.0": (
        "b = 3.0",
        '[allocation] rule is {"logistic":[2.0,1.0]} in the log and {"logistic":[3.0,1.0]} in walk.toml',
    ),
    "[0.1, 0.9]": (
        "[0.1, 0.8]",
        "[allocation] bounds is [[0.1,0.9],[0.1,0.9]] in the log and [[0.1,0.8],[0.1,0.8]] in walk.toml",
    ),
    "driving =": (
        "walking =",
        '[allocation] sets is {"driving":["nothing"]} in the log and {"walking":["nothing"]} in walk.toml',
    ),
    "hours = 72": (
        "decisions = 72",
        '[reward] wait is {"decisions":null,"hours":72.0} in the log and {"decisions":72,"hours":null} in walk.toml',
    ),
    "[500, 2000]": (
        "[500, 3000]",
        '[context] steps is {"edges":[500.0,2000.0],"range":[0.0,100000.0]} in the log and '
        '{"edges":[500.0,3000.0],"range":[0.0,100000.0]} in walk.toml',
    ),
    "[false, true]": (
        "[0, 1]",
        '[context] \'at home\' is {"values":[false,true]} in the log and {"values":[0,1]} in walk.toml',
    ),
    "mood =": ("anger =", '[context] anger is not there in the log and {"values":[1,2,3,4,5]} in walk.toml'),
}


@pytest.mark.parametrize("old", DIFFERENT)
def test_the_first_difference_is_named(old: str) -> None:
    new, sentence = DIFFERENT[old]
    file, begun = TrialFile.parse(change(old, new), "walk.toml"), TrialFile.parse(GOOD, "the log")
    assert file.digest != begun.digest
    assert file.first_difference(begun) == sentence
    assert begun.first_difference(file) is not None


def test_the_order_of_components_counts() -> None:
    lines = GOOD.splitlines(keepends=True)
    at = lines.index("mood = { values = [1, 2, 3, 4, 5] }\n")
    lines[at - 1 : at + 1] = lines[at - 1 : at + 1][::-1]
    file, begun = TrialFile.parse("".join(lines), "walk.toml"), TrialFile.parse(GOOD, "the log")
    assert file.digest != begun.digest
    assert file.first_difference(begun) == (
        "[context] has the order 'time of day', 'steps', 'mood', 'at home' in the log and "
        "'time of day', 'mood', 'steps', 'at home' in walk.toml"
    )


def test_the_digest_does_not_change_by_itself() -> None:
    # A trial under way could not be opened again.
    assert TrialFile.parse(GOOD).digest == "2cb943d9a32873b079d16be58f1547f7ebdb35d041f5992915cad816e6bd0f99"


def test_a_long_difference_is_cut() -> None:
    values = [f"{j} {'x' * 60}" for j in range(20)]
    text = change("[1, 2, 3, 4, 5]", str(values).replace("'", '"'))
    line = TrialFile.parse(text).first_difference(TrialFile.parse(GOOD))
    assert line is not None
    assert len(line) < 400


def test_every_table_and_key_can_be_of_any_type_and_is_answered_in_sentences() -> None:
    wrong = ["5", "-1", "1.5", "nan", "inf", "true", '""', '"x"', "[]", "[[]]", "[1]", '["x"]', "{}", "{ x = 1 }",
             "2020-01-02", "03:00:00", "9" * 400]  # fmt: skip
    data = tomllib.loads(GOOD)
    assert set(data) <= set(TABLES)
    keys = [(table, key) for table in data for key in data[table]]
    assert len(keys) == 19
    n = 0
    for (table, key), value in itertools.product(keys, wrong):
        written = key if key.isidentifier() else f'"{key}"'
        lines = [f"{written} = {value}" if line.startswith(f"{written} =") else line for line in GOOD.splitlines()]
        try:
            TrialFile.parse("\n".join(lines), "walk.toml")
        except TrialFileError as error:
            n += 1
            for line in str(error).splitlines():
                assert line.startswith("walk.toml: ["), (table, key, value)
                assert "; " in line
    assert n > 250


junk: Any = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
)


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08X}" for letter in value if not "\ud800" <= letter <= "\udfff") + '"'
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{toml(key)} = {toml(part)}' for key, part in value.items())}}}"
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else str(value)


KEYS = [key for model in TABLES.values() if model is not None for key in model.model_fields] + ["gamma", "method"]


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(list(TABLES)), st.dictionaries(st.sampled_from(KEYS), junk, max_size=3) | junk))
def test_no_content_is_too_much(data: dict[str, Any]) -> None:
    text = "".join(f"{key} = {toml(value)}\n" for key, value in data.items())
    with pytest.raises(TrialFileError) as caught:
        TrialFile.parse(text, "walk.toml")
    assert all(line.startswith("walk.toml") for line in str(caught.value).split("\n"))
