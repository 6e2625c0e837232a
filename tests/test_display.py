"""What notebooks and terminals show: no bare addresses of objects, no script, every text escaped."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

import lacuna
from lacuna import Agent, Mechanism, Problem, Run, Settings, Space, Store, Study, TabularMDP, display
from lacuna.agent.picture import policy_html, signs_of
from lacuna.missingness import bursts, by_component, mcar, parse

WORLD = lacuna.make_world("field")
STUDY = """
name = "small"
steps = 50
trials = 1
missingness = ["mcar:0.2"]
worlds = [{name = "corridor"}]
methods = [{name = "last-observed"}]
"""
TRIAL = """
[trial]
name = "walk"
actions = ["nothing", "prompt"]
absent = "nothing"
[allocation]
bounds = [0.2, 0.8]
[context]
"at home" = { values = [false, true] }
"""


def run_of(settings: Settings, steps: int = 300) -> Run:
    run = Run(WORLD, mcar(WORLD, 0.2), settings, seed=1)
    run.advance(steps)
    return run


def samples(folder: Path) -> Iterator[Any]:
    """One object of every public class, and everything public that is an object already."""
    run = run_of(Settings("mi-synthetic", K=3))
    yield from (run, run.agent, run.record(20), run.mechanism, WORLD, WORLD.space, Settings(), lacuna.Local(2))
    yield from (Run(WORLD, mcar(WORLD, 0.2), Settings("qmdp")), Run(WORLD, mcar(WORLD, 0.2), Settings("qmdp")).player)
    yield from (lacuna.Lake(), Problem.named("corridor", "none"), lacuna.solve(WORLD, 0.9))
    yield from (lacuna.TabularEnv(WORLD), lacuna.MissingObservation(gymnasium.make("FrozenLake-v1"), "mcar:0.5"))
    yield from (Study.parse(STUDY), Store(folder / "store"), lacuna.from_masks({"x": [1, None] * 20, "y": [0] * 40}))
    numbers, cards = gymnasium.make("MountainCar-v0"), gymnasium.make("Blackjack-v1")
    yield from (lacuna.BinnedObservation(numbers, 4), lacuna.Binning.uniform(4, [0.0], [1.0]))
    yield from (
        lacuna.FactoredObservation(cards),
        lacuna.DelayedObservation(cards, 1),
        lacuna.NoisyObservation(cards, 0.1),
    )
    hiding = lacuna.MissingObservation(gymnasium.make("FrozenLake-v1"), "mcar:0.5")
    yield from (lacuna.CarriedObservation(hiding), lacuna.ImputedObservation(hiding))
    yield lacuna.VectorMissingObservation(gymnasium.make_vec("FrozenLake-v1", 2), "mcar:0.5")
    yield from (lacuna.OwnMethod.named("lacuna:Agent"), lacuna.compare("corridor", "none", "last-observed", 50, 2))
    yield lacuna.replay("corridor", "mcar:0.2", "last-observed", at=[0], steps=5)
    file = lacuna.TrialFile.parse(TRIAL)
    with lacuna.Trial.create(file, store="memory:", seed=1) as trial:
        yield from (file, trial)
    yield from (getattr(lacuna, name) for name in ("DEFAULT", "UNPLANNED", "METHODS", "YARDSTICKS"))


def test_no_public_object_shows_itself_as_an_address(tmp_path: Path) -> None:
    seen = set()
    for one in samples(tmp_path):
        seen.add(type(one))
        for text in (repr(one), str(one)):
            assert not re.search(r"lacuna\.[\w.]+ object at 0x|<lacuna", text), text[:200]
    classes = {value for name in dir(lacuna) if inspect.isclass(value := getattr(lacuna, name))}
    assert classes - {lacuna.AgentLike} <= seen, "a public class is not among the samples"


class Reader(HTMLParser):
    """Tags, attributes and text of a piece of HTML, whose tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


ALLOWED = {"div", "table", "tr", "th", "td", "b", "svg", "rect", "text"}


def checked(one: Any) -> Reader:
    text = one._repr_html_()
    assert len(text) < 60_000
    read = Reader(text)
    assert read.tags <= ALLOWED
    assert not {name for name in read.attributes if name.startswith("on") or name in {"src", "href"}}
    assert not re.search(r"(?<![-\w])(color|background):\s*(#|black|white|rgb\()", text), (
        "colours that ignore the page's"
    )
    return read


def test_what_has_a_picture_has_one_without_scripts(tmp_path: Path) -> None:
    # A replay needs its player, which stands in a frame of its own: test_replay.py looks at that.
    shown = [one for one in samples(tmp_path) if hasattr(one, "_repr_html_") and not isinstance(one, lacuna.Replay)]
    kinds = {type(one).__name__ for one in shown}
    assert kinds >= {"Agent", "Mechanism", "Run", "Trace", "TabularMDP", "Study", "Store", "FittedMissingness"}
    for one in shown:
        assert checked(one).words.strip()


NASTY = "<script>alert('x')</script>\"'&"


@given(name=st.one_of(st.just(NASTY), st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)))
@effort(max_examples=25, deadline=None)
def test_every_name_is_escaped(name: str) -> None:
    space = Space((3, 3, 2), (name, f"{name}2", "z"))
    mdp = TabularMDP.build(
        lambda s, a: [(1.0, (s + 1 + a) % 18, 1.0, False)], space=space, shows=np.arange(18), n_actions=2,
        starts=[{0: 1.0}], terminates=False, action_names=(name, "b"), regions={name: np.ones(18)}, name=name,
    )  # fmt: skip
    mechanism = by_component(space, 0, (0.1, 0.2, 0.3), name=name)
    run = Run(mdp, mechanism, Settings("last-observed"))
    run.advance(30)
    fit = lacuna.from_masks({name: [name, None] * 20, "y": [0, 1] * 20})
    for one in (mdp, mechanism, run, run.agent, fit):
        words = checked(one).words
        assert name in words or repr(name) in words or "".join(name.split()) in "".join(words.split())


def test_an_agent_on_a_grid_is_a_picture_with_a_sign_in_every_cell_it_knows() -> None:
    run = run_of(Settings("mi-synthetic", K=3), 2000)
    html = run._repr_html_()
    sizes = WORLD.space.sizes
    assert html.count("<rect") == sizes[0] * sizes[1]
    assert any(sign in html for sign in "↑↓←→")
    assert run.agent._repr_html_().count("<rect") == html.count("<rect")
    assert "Nothing was learned yet" in Agent(WORLD.space, 4)._repr_html_()


def test_the_grid_shows_the_best_action_of_the_mean_over_the_other_components() -> None:
    space = Space((3, 4, 2), ("a", "b", "c"))
    Q = np.zeros((24, 2))
    Q[space.encode((1, 2, 0))] = (0.0, 3.0)
    Q[space.encode((1, 2, 1))] = (2.0, 0.0)
    html = policy_html(space, Q, signs_of((), 2))
    signs = re.findall(r">([^<]*)</text>", html)
    assert signs == ["1" if k == 1 * 4 + 2 else "" for k in range(12)]
    assert "averaged over c" in html
    rows = policy_html(Space((3, 2)), np.array([[0.0, 0], [0, 0], [0, 0], [5, 1], [0, 0], [0, 0]]), ["0", "1"])
    assert re.findall(r"<td[^>]*>([^<]*)</td>", rows) == ["1", "1", "0", "5"]


@pytest.mark.parametrize("method", ["mi-planned", "missing-as-state", "mi-available", "random-action"])
def test_an_agent_of_every_kind_can_be_shown(method: str) -> None:
    agent = Agent(WORLD.space, 4, Settings(method, gamma=0.9))
    agent.begin([0, 0])
    agent.act()
    agent.learn(1.0, [1, None], terminated=False)
    assert method in checked(agent).words


def test_a_mechanism_shows_its_rates_its_label_and_the_reason() -> None:
    words = checked(bursts(Space((2, 2), ("dose", "mood")), 0.1, 0.5, 0.9)).words
    for part in ("dose", "mood", "0.9", "MCAR", "modes", "bursts:0.1,0.5,0.9"):
        assert part in words
    lake = lacuna.make_world("lake")
    mechanism: Mechanism = parse("mcolor:0.2,0.4,0.6", lake)
    assert mechanism.reason.split(":")[0] in checked(mechanism).words


def test_long_tables_say_how_much_is_left_out() -> None:
    assert "and 5 more rows" in display.table(["x"], [[i] for i in range(17)])
    assert "more rows" not in display.table(["x"], [[i] for i in range(12)])
