"""An agent takes what is valid and refuses the rest with a sentence, in any order of its verbs, and nothing changes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lacuna.agent.agent import Agent
from lacuna.agent.methods import METHODS
from lacuna.agent.qlearning import MAX_REWARD
from lacuna.agent.settings import VOTES, Settings
from lacuna.kernels.space import Space
from lacuna.missingness import mcar
from lacuna.run.run import DRIVERS, Run
from lacuna.worlds.toys import corridor
from sentences import one_sentence

SPACE = Space((3, 2), ("room", "door"))


def same(one: Agent, parts: Any) -> bool:
    header, arrays = one.to_parts()
    return bool(header == parts[0] and all(arrays[name].tobytes() == parts[1][name].tobytes() for name in arrays))


def parts_of(agent: Agent) -> Any:
    header, arrays = agent.to_parts()
    return header, {name: array.copy() for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("kind", "made", "sentence"),
    [
        (TypeError, lambda: Agent((3, 2), 2), r"space is \(3, 2\); it must be a Space"),  # type: ignore[arg-type]
        (TypeError, lambda: Agent(SPACE, 2, "mi-synthetic"), "settings is 'mi-synthetic'; it must be Settings"),  # type: ignore[arg-type]
        (ValueError, lambda: Agent(SPACE, 0), "n_actions is 0; it must be a whole number, 1 or larger"),
        (ValueError, lambda: Agent(SPACE, True), "n_actions is True; it must be"),  # noqa: FBT003
        (ValueError, lambda: Agent(SPACE, 2.0), "n_actions is 2.0; it must be"),  # type: ignore[arg-type]
        (ValueError, lambda: Agent(SPACE, 2, seed=-1), "seed is -1; it must be a whole number, 0 or larger"),
        (ValueError, lambda: Agent(SPACE, 2, seed=None), "seed is None; it must be"),  # type: ignore[arg-type]
        (
            ValueError,
            lambda: Agent(SPACE, 2**62),
            "6 states of 2 components and 4611686018427387904 actions do not fit into memory",
        ),
        (
            ValueError,
            lambda: Agent(Space((2,) * 40), 2**30),
            "1099511627776 states of 40 components and .* do not fit into memory",
        ),
        (ValueError, lambda: Run(corridor(), mcar(3, 0.1), Settings()), r"hides \(1, 1, 1\), the world shows \(5,\)"),
        (ValueError, lambda: Run(corridor(), mcar(Space((5,)), 0.1), Settings(), driver="fast"), "driver is 'fast'"),
        (ValueError, lambda: Run(corridor(), mcar(Space((5,)), 0.1), Settings()).advance(-1), "steps is -1"),
    ],
)
def test_agents_and_runs_that_cannot_be_made_say_why(kind: type[Exception], made: Any, sentence: str) -> None:
    with pytest.raises(kind, match=sentence) as caught:
        made()
    one_sentence(caught.value)


# --- observations and rewards ----------------------------------------------------------------------------------------

values = st.one_of(
    st.integers(-2, 4), st.sampled_from([None, True, False, 0.0, 1.0, "0", math.nan, 10**30, [0], -1]),
    st.integers(0, 3).map(np.int64), st.integers(0, 3).map(np.uint8), st.just(np.bool_(1)), st.just(np.float64(1)),
)  # fmt: skip
vectors = st.one_of(
    st.tuples(values, values), st.lists(values, max_size=4),
    st.tuples(st.integers(0, 3), st.integers(0, 2)).map(np.array),
    st.tuples(st.integers(0, 3), st.integers(0, 2)).map(lambda pair: np.array(pair, dtype=np.float64)),
)  # fmt: skip
observations = st.one_of(
    vectors,
    st.fixed_dictionaries({"values": vectors, "mask": st.lists(st.integers(0, 1), min_size=1, max_size=3)}),
    st.fixed_dictionaries({"values": vectors, "mask": st.lists(values, min_size=2, max_size=2)}),
    st.fixed_dictionaries({"values": vectors}),
    st.sampled_from([None, 3, "01", b"\x00\x01", {}, {"values": [0, 0], "mask": [0, 0], "truth": [0, 0]}, {3: 4}]),
)


def meaning(observation: Any) -> tuple[int, ...] | None:
    """What an observation of `SPACE` says (-1 for missing), or None if it is none: from the documentation alone."""
    mask: list[Any] = [0, 0]
    if isinstance(observation, dict):
        if set(observation) != {"values", "mask"}:
            return None
        observation, mask = observation["values"], observation["mask"]
        if len(mask) != 2 or not all(isinstance(m, int | float | np.generic) and m in (0, 1) for m in mask):
            return None
    if not isinstance(observation, list | tuple | np.ndarray) or len(observation) != 2:
        return None
    found = []
    for value, hidden, size in zip(observation, mask, SPACE.sizes, strict=True):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if hidden or value is None:
            found.append(-1)
        elif whole and 0 <= value <= size:
            found.append(-1 if value == size else int(value))
        else:
            return None
    return tuple(found)


rewards = st.one_of(
    st.floats(), st.integers(), st.sampled_from([None, "1", True, 10**400, -(10**400), 1e300, [1.0], np.float32(2.5)])
)


def is_reward(reward: Any) -> bool:
    number = isinstance(reward, int | float | np.floating) and not isinstance(reward, bool)
    return number and abs(reward if isinstance(reward, int) else float(reward)) <= MAX_REWARD


class Verbs(RuleBasedStateMachine):
    """The verbs of an agent in any order, with anything as an observation, beside what the documentation says."""

    def __init__(self) -> None:
        super().__init__()
        self.agent: Agent | None = None
        self.phase = "new"
        self.steps = 0
        self.seen: tuple[int, ...] = ()

    @precondition(lambda self: self.agent is None)
    @rule(method=st.sampled_from(list(METHODS)), vote=st.sampled_from(VOTES), K=st.integers(1, 4))
    def make(self, method: str, vote: Any, K: int) -> None:
        rest: dict[str, Any] = {"K": K} if METHODS[method].multiple else {}
        rest |= {"vote": vote, "p_shuffle": 0.5} if METHODS[method].votes else {}
        self.agent = Agent(SPACE, 3, Settings(method, epsilon=0.1, gamma=0.9, **rest), seed=1)

    def expect(self, kind: type[Exception], call: Any, words: str, *, allowed: bool) -> bool:
        assert self.agent is not None
        before = parts_of(self.agent)
        if allowed:
            call()
            return True
        with pytest.raises(kind) as caught:
            call()
        assert words in one_sentence(caught.value)
        assert same(self.agent, before), "a refused call changed the agent"
        return False

    @precondition(lambda self: self.agent is not None)
    @rule(observation=observations)
    def begin(self, observation: Any) -> None:
        agent = self.agent
        assert agent is not None
        said = meaning(observation)
        if self.expect(ValueError, lambda: agent.begin(observation), "", allowed=said is not None):
            self.phase, self.seen = "ready", said or ()

    @precondition(lambda self: self.agent is not None)
    @rule()
    def act(self) -> None:
        agent = self.agent
        assert agent is not None
        words = "begin(observation)" if self.phase == "new" else "learn(reward, observation, terminated)"
        if self.expect(RuntimeError, agent.act, f"act() was called before {words}", allowed=self.phase == "ready"):
            self.phase = "acted"

    @precondition(lambda self: self.agent is not None)
    @rule(observation=observations, reward=rewards, ended=st.sampled_from([True, False, np.True_, np.False_, 1, "no"]))
    def learn(self, observation: Any, reward: Any, ended: Any) -> None:
        agent = self.agent
        assert agent is not None
        said = meaning(observation)
        if self.phase != "acted":
            self.expect(RuntimeError, lambda: agent.learn(reward, observation, ended), "before act()", allowed=False)
            return
        fine_end = isinstance(ended, bool | np.bool_)
        words = "" if is_reward(reward) else "the reward is "
        allowed = said is not None and is_reward(reward) and fine_end
        if self.expect(ValueError, lambda: agent.learn(reward, observation, ended), words, allowed=allowed):
            self.phase, self.seen = "new" if ended else "ready", said or ()
            self.steps += 1

    @precondition(lambda self: self.agent is not None)
    @rule(observation=st.sampled_from([[0, 0], [None, 1], [2, None], [None, None]]), reward=st.floats(-5, 5))
    def take_a_step(self, observation: Any, reward: float) -> None:
        """Most calls above are refused; this one gets somewhere."""
        assert self.agent is not None
        if self.phase == "new":
            self.begin(observation)
        if self.phase == "ready":
            self.act()
        self.learn(observation, reward, ended=False)

    @invariant()
    def what_is_shown_is_what_was_seen(self) -> None:
        if self.agent is None:
            return
        assert self.agent.steps == self.steps
        assert self.agent.ready == (self.phase == "ready")
        if self.phase == "new":
            with pytest.raises(RuntimeError, match=r"probabilities\(\) was called before begin\(observation\)"):
                self.agent.probabilities()
        else:
            assert self.agent.probabilities().sum() == pytest.approx(1.0)
        carries_all = self.agent.settings.method in ("last-fully-observed", "zero-context")
        for path in self.agent.pathways:
            for value, said, size in zip(path, self.seen, SPACE.sizes, strict=True):
                assert value is None or 0 <= value < size
                assert said == -1 or carries_all or value == said
        assert np.isfinite(self.agent.Q).all()


TestVerbs = Verbs.TestCase
TestVerbs.settings = effort(max_examples=120, stateful_step_count=25)


def test_a_refused_component_is_named_with_its_range() -> None:
    agent = Agent(SPACE, 2)
    with pytest.raises(
        ValueError, match="door is -1; it must be a whole number between 0 and 1, or 2 or None for miss"
    ):
        agent.begin([0, -1])
    with pytest.raises(ValueError, match=r"the observation \[0\] needs 2 components: room, door"):
        agent.begin([0])
    with pytest.raises(ValueError, match=r"the mask is \[0, 7\]; it must be 1 where missing and 0 elsewhere"):
        agent.begin({"values": [0, 0], "mask": [0, 7]})
    agent.begin([0, 0])
    agent.act()
    for reward in (math.nan, math.inf, 1e101, 10**400):
        with pytest.raises(ValueError, match=r"the reward is .*; it must be finite, between -1e\+100 and 1e\+100"):
            agent.learn(reward, [0, 0], terminated=False)
    odd: list[Any] = [None, True, "1", [1.0], 1j]
    for reward in odd:
        with pytest.raises(ValueError, match="it must be a number: missing rewards cannot be learned") as caught:
            agent.learn(reward, [0, 0], terminated=False)
        assert f"the reward is {reward!r}" in str(caught.value)
    with pytest.raises(ValueError, match="terminated is 'no'; it must be True or False"):
        agent.learn(0.0, [0, 0], terminated="no")  # type: ignore[arg-type]


def test_the_largest_rewards_never_break_the_table() -> None:
    agent = Agent(SPACE, 2, Settings("mi-synthetic", K=3, alpha=1.0, gamma=1.0), seed=0)
    agent.begin([0, 0])
    for t in range(300):
        agent.act()
        agent.learn(MAX_REWARD if t % 7 else -MAX_REWARD, [0, None], terminated=False)
    assert np.isfinite(agent.Q).all()
    assert agent.probabilities().sum() == pytest.approx(1.0)


# --- Series and NaN --------------------------------------------------------------------------------------------------


def test_a_series_is_as_good_as_a_list() -> None:
    columns: list[Any] = [
        pd.Series([2, 1]), pd.Series([2, 1], index=["room", "door"]), pd.Series([2, 1], dtype="Int64"),
        pd.Series([2, 1], dtype="uint8"), pl.Series([2, 1]), pl.Series("name", [2, 1], dtype=pl.Int8),
        pd.DataFrame({"room": [2], "door": [1]}).iloc[0], {"values": pl.Series([2, 0]), "mask": pd.Series([0, 0])},
    ]  # fmt: skip
    for column in columns:
        agent = Agent(SPACE, 2, Settings("missing-as-state"))
        agent.begin(column)
        assert agent.pathways == ((2, 0 if isinstance(column, dict) else 1),)
    gaps: list[Any] = [pl.Series([2, None]), pd.Series([2, None], dtype=object)]
    for gap in gaps:
        agent = Agent(SPACE, 2, Settings("missing-as-state"))
        agent.begin(gap)
        assert agent.pathways == ((2, None),)


NOT_A_NUMBER: list[Any] = [
    [2, math.nan], [math.nan, 0], (np.float32("nan"), 1), np.array([2.0, np.nan]), pd.Series([2, None]),
    pd.Series([2.0, np.nan], index=["room", "door"]), pl.Series([2.0, math.nan]), pl.Series([2.0, 1.0, math.nan])[1:],
    {"values": [2, math.nan], "mask": [0, 0]},
]  # fmt: skip


@pytest.mark.parametrize("observation", NOT_A_NUMBER, ids=range(len(NOT_A_NUMBER)))
def test_nan_is_refused_by_its_name(observation: Any) -> None:
    agent = Agent(SPACE, 2)
    before = parts_of(agent)
    with pytest.raises(
        ValueError, match=r"component (room|door) is NaN; a missing value is given as None or as"
    ) as caught:
        agent.begin(observation)
    one_sentence(caught.value)
    assert same(agent, before)


def test_nan_under_a_mask_is_not_looked_at() -> None:
    agent = Agent(SPACE, 2, Settings("missing-as-state"))
    agent.begin({"values": [2, math.nan], "mask": [0, 1]})
    assert agent.pathways == ((2, None),)


@pytest.mark.parametrize(
    "odd", [pd.Series([2, 1, 0]), pd.Series([2.0, 1.0]), pd.Series([2, None], dtype="Int64"), pl.Series(["a", "b"]),
            pd.DataFrame({"room": [2], "door": [1]}), pl.Series([[1], [2]]), np.zeros((40, 40)),
            {"values": [0, 0], "mask": pd.NA}],
    ids=range(8),
)  # fmt: skip
def test_whatever_it_is_it_is_refused_in_one_line(odd: Any) -> None:
    with pytest.raises(ValueError, match=" ") as caught:
        Agent(SPACE, 2).begin(odd)
    assert len(one_sentence(caught.value)) < 400


# --- the number of a decision ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("method", METHODS)
def test_decisions_are_numbered_whatever_becomes_of_them(method: str, epsilon: float, tmp_path: Path) -> None:
    agent = Agent(SPACE, 3, Settings(method, epsilon=epsilon, gamma=0.9), seed=2)
    rng = np.random.default_rng(4)
    for t in range(200):
        if not agent.ready:
            agent.begin([int(rng.integers(3)), None])
        assert agent.decisions == t
        agent.act()
        assert agent.decisions == t + 1
        if t % 3:
            agent.learn(1.0, [None, 1], terminated=bool(t % 5 == 0))
        elif t % 2:
            # The reward never comes.
            agent.begin([0, 0])
        if t % 40 == 0:
            agent.save(tmp_path / "agent")
            agent = Agent.load(tmp_path / "agent")
    assert agent.steps < agent.decisions == 200


@pytest.mark.parametrize("driver", DRIVERS)
def test_in_a_run_every_step_is_a_decision(driver: str) -> None:
    run = Run(corridor(), mcar(Space((5,)), 0.3), Settings("mi-synthetic", K=3, epsilon=0.1), driver=driver)
    for _ in range(3):
        run.advance(170)
        assert run.agent.decisions == run.steps


def test_a_masked_array_hides_what_it_masks() -> None:
    agent = Agent(SPACE, 2, Settings("missing-as-state"))
    agent.begin(np.ma.array([2, 1], mask=[False, True]))
    assert agent.pathways == ((2, None),)


def test_observations_are_not_kept_or_changed() -> None:
    agent = Agent(SPACE, 2)
    shown = np.array([1, 1])
    agent.begin(shown)
    shown[:] = 0
    assert set(agent.pathways) == {(1, 1)}
    agent.act()
    agent.learn(1.0, shown, terminated=False)
    assert shown.tolist() == [0, 0]


def test_views_are_read_only() -> None:
    agent = Agent(SPACE, 2)
    agent.begin([0, 0])
    with pytest.raises(ValueError, match="read-only"):
        agent.Q[0, 0] = 1.0
    p = agent.probabilities()
    p[:] = 0.0
    assert agent.probabilities().sum() == 1.0
    assert isinstance(agent.pathways, tuple)


# --- what is never seen ----------------------------------------------------------------------------------------------

NEVER = """
import numpy as np
from lacuna.kernels.space import Space
from lacuna.agent.agent import Agent
from lacuna.agent.settings import Settings
agent = Agent(Space((12, 12, 2)), 2, Settings("mi-planned", 3, gamma=0.9, budget=3), seed=1)
agent.begin([0, 0, None])
for t in range(60):
    agent.act()
    agent.learn(float(t % 3), [t % 12, 5 * t // 3 % 12, None], terminated=False)
assert np.isfinite(agent.Q).all()
"""


def test_a_planner_stays_inside_its_arrays_where_a_component_is_never_seen() -> None:
    # The other two have more next states together than there is room for. Python notices whoever leaves an array.
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", NEVER], env=environment, check=True)
