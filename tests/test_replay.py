"""A replay holds what the agent did, all of it, and can be repeated from its header; what cannot be is refused."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import lacuna
from lacuna import Agent, Problem, Settings, Space, TabularMDP, make_world
from lacuna.agent.memory import NO_STATE
from lacuna.agent.methods import METHODS
from lacuna.cli.main import app
from lacuna.missingness import mcar
from lacuna.report.encoding import pack, recording_data, stage_from, unpack
from lacuna.report.player import opening_step
from lacuna.report.recording import Stage, record
from lacuna.report.replay import bytes_of, replay
from lacuna.report.scenery import haze, world_data
from lacuna.report.still import still_picture
from lacuna.report.verifying import check_page, recordings_in
from lacuna.run.run import Run
from lacuna.worlds.mdp.drawing import Drawing, Ground, Scene, drawing_of
from sentences import one_sentence

FOG = Problem.named("lake,max_steps=40", "mfog:0.5,0.2", first_observed=False)
SETTINGS = [Settings(name, optimism=0.2 if name == "mi-available" else 0.0) for name in METHODS]
SETTINGS.append(Settings("mi-synthetic", K=3, q_table="own"))


def run_plainly(settings: Settings, problem: Problem, steps: int) -> list[dict[str, Any]]:
    """The plain loop, an agent and an environment: what is so before every step, and what follows."""
    env, agent = problem.environment(), Agent(problem.space, problem.n_actions, settings, seed=3)
    base: Any = env.unwrapped
    agent.begin(env.reset(seed=3)[0])
    rows = []
    for _ in range(steps):
        row: dict[str, Any] = {
            "state": base.true_state, "seen": agent.memory.previous.tolist(),
            "S": (agent.memory.S - agent.memory.first).tolist(),
            "p": agent.probabilities().tolist(), "best": [np.flatnonzero(q == q.max()).tolist() for q in agent.Q],
        }  # fmt: skip
        row["action"] = agent.act()
        observation, row["reward"], terminated, truncated, _ = env.step(row["action"])
        agent.learn(row["reward"], observation, terminated)
        row |= {
            "arrival": base.true_state,
            "seen after": agent.memory.previous.tolist(),
            "S after": (agent.memory.S - agent.memory.first).tolist(),
        }
        row["stopped"] = terminated or truncated
        rows.append(row)
        if row["stopped"]:
            agent.begin(env.reset()[0])
    return rows


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("at", [0, 60])
def test_what_is_recorded_is_what_an_agent_in_an_environment_does(settings: Settings, at: int) -> None:
    (stage,) = record(FOG, [settings], at=[at], steps=60, seed=3).stages[0]
    rows = run_plainly(settings, FOG, at + 60)[at:]
    assert stage.before.state[:-1].tolist() == [row["state"] for row in rows]
    assert stage.before.seen[:-1].tolist() == [row["seen"] for row in rows]
    assert stage.before.pathways[:-1].tolist() == [row["S"] for row in rows]
    assert stage.probability.tolist() == [row["p"] for row in rows]
    assert stage.action.tolist() == [row["action"] for row in rows]
    assert stage.reward.tolist() == [row["reward"] for row in rows]
    stops = [row for row in rows if row["stopped"]]
    assert stops, "a stage without the end of an episode shows little"
    assert stage.stopped.tolist() == [t for t, row in enumerate(rows) if row["stopped"]]
    assert stage.stops.state.tolist() == [row["arrival"] for row in stops]
    assert stage.stops.pathways.tolist() == [row["S after"] for row in stops]
    assert stage.stops.seen.tolist() == [row["seen after"] for row in stops]


@pytest.mark.parametrize("name", ["mi-synthetic", "last-observed", "mi-planned"])
def test_the_arrows_are_those_of_q_at_every_step(name: str) -> None:
    (stage,) = record(FOG, [Settings(name)], at=[0], steps=60, seed=3).stages[0]
    best = stage.best.copy()
    for t, row in enumerate(run_plainly(Settings(name), FOG, 60)):
        for (step, state), changed in zip(stage.changes, stage.changed, strict=True):
            if step == t:
                best[state] = changed
        assert [np.flatnonzero(flags).tolist() for flags in best] == row["best"]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_votes_make_the_probabilities_where_one_vote_decides(settings: Settings) -> None:
    (stage,) = record(FOG, [settings], at=[30], steps=40, seed=3).stages[0]
    shares = stage.votes / np.maximum(stage.votes.sum(axis=2, keepdims=True), 1)
    blind = stage.before.pathways[:-1, 0] == NO_STATE
    assert not stage.votes[blind].any()
    if settings.method != "mi-planned":
        assert np.allclose(shares.mean(axis=1)[~blind], stage.probability[~blind])


def test_stages_that_overlap_are_those_of_one_run() -> None:
    (first, second) = record(FOG, [Settings("mi-synthetic")], at=[30, 0], steps=60).stages[0]
    assert (first.at, second.at) == (0, 30)
    assert np.array_equal(first.before.state[30:], second.before.state[:31])
    assert np.array_equal(first.probability[30:], second.probability[:30])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_recording_survives_the_way_into_a_page_and_back(settings: Settings) -> None:
    recording = record(FOG, [settings], at=[50], steps=50, seed=1)
    kept = recording.stages[0][0]
    (data,) = json.loads(json.dumps(recording_data(recording)))[0]
    back = stage_from(data, settings.pathways, FOG.n_actions, FOG.mdp.dynamics.shown)
    for name in Stage._fields:
        one, other = getattr(kept, name), getattr(back, name)
        pairs = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        assert all(np.array_equal(a, b) for a, b in pairs), name


@pytest.mark.parametrize("numbers", [[0, 255], [-1, 3], [0, 65_535], [-40_000], [2**32 - 1], []])
def test_numbers_are_packed_without_loss(numbers: list[int]) -> None:
    assert unpack(pack(np.array(numbers, dtype=np.int64))).tolist() == numbers


# --- pages -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "lake.html"
    replay("lake,max_steps=25", "mcar:0.4", ["mi-synthetic", "last-observed"], at=[0, 40], steps=60, seed=2).save(path)
    return path


def test_every_trace_of_a_page_replays_bit_for_bit_from_its_header(page: Path) -> None:
    assert check_page(page).endswith("1 recording, 240 steps, equal to the bit when run again")


@pytest.mark.parametrize("what", ["action", "reward", "before", "stops", "ended", "p", "votes", "best", "truncated"])
def test_a_page_that_was_altered_is_found_out(page: Path, tmp_path: Path, what: str) -> None:
    data: Any = recordings_in(page)["recording"]
    stage = data["tracks"][1][0]
    holder, key = {
        "before": (stage["before"], "pathways"), "stops": (stage["stops"], "state"), "reward": (stage["reward"], "at"),
        "p": (stage["p"], "of"),
    }.get(what, (stage, what))  # fmt: skip
    values = unpack(holder[key])
    values[0] = 0 if values[0] else 1
    holder[key] = pack(values)
    forged = tmp_path / "forged.html"
    forged.write_text(
        f'<script type="application/json" id="recording">{json.dumps(data, separators=(",", ":"))}</script>'
    )
    with pytest.raises(
        ValueError, match=r"forged\.html: the recording 'recording' cannot be repeated: the .* from step 0 on"
    ):
        check_page(forged)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"results": 1}, "its results have version 1; this lacuna gives version"),
        ({"world": "lake,wind=0.2"}, "is not the problem that was recorded"),
        ({"world": "nowhere"}, "no world is called 'nowhere'"),
        ({"steps": 10**9}, "steps is 1000000000"),
    ],
)
def test_a_header_that_cannot_be_repeated_says_why(
    page: Path, tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    data: Any = dict(recordings_in(page)["recording"])
    data["header"] = data["header"] | change
    other = tmp_path / "other.html"
    other.write_text(
        f'<script type="application/json" id="recording">{json.dumps(data, separators=(",", ":"))}</script>'
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        check_page(other)


def test_a_file_that_is_no_replay_is_refused(tmp_path: Path) -> None:
    empty, cut = tmp_path / "empty.html", tmp_path / "cut.html"
    empty.write_text("<p>hello</p>")
    cut.write_text('<script type="application/json" id="recording">{"header":{}}</script>')
    binary = tmp_path / "binary.html"
    binary.write_bytes(bytes(range(256)))
    for other in (empty, binary):
        with pytest.raises(ValueError, match="is not the page of a replay"):
            check_page(other)
    with pytest.raises(ValueError, match=r"none\.html cannot be read: No such file"):
        check_page(tmp_path / "none.html")
    with pytest.raises(ValueError, match="is damaged"):
        check_page(cut)


def test_a_world_that_is_an_object_is_checked_against_that_object(tmp_path: Path) -> None:
    world = TabularMDP.build(
        lambda s, a: [(0.5, s, -1.0, False), (0.5, (s + 1 + a) % 6, 1.0, s == 4)], space=Space((2, 3), ("up", "side")),
        shows=range(6), n_actions=2, starts=[{0: 1.0}], name="mine",
    )  # fmt: skip
    replay(world, mcar(world, 0.3), "mi-conservative,K=4", at=[0], steps=30).save(tmp_path / "mine.html")
    assert "30 steps, equal to the bit" in check_page(tmp_path / "mine.html", world)
    with pytest.raises(ValueError, match="no world is called 'mine'"):
        check_page(tmp_path / "mine.html")


def test_a_page_that_is_too_large_says_how_many_steps_fit(tmp_path: Path) -> None:
    found = replay("lake", "mcar:0.4", "mi-synthetic", at=[0], steps=400)
    most = len(found.html.encode()) - 2000
    with pytest.raises(ValueError, match="steps fit") as caught:
        found.save(tmp_path / "large.html", max_size=most)
    fitting = int(re.search(r"(\d+) of 400 steps fit", str(caught.value))[1])  # type: ignore[index]
    assert 0 < fitting < 400
    shorter = replay("lake", "mcar:0.4", "mi-synthetic", at=[0], steps=fitting)
    assert shorter.save(tmp_path / "fits.html", max_size=most) <= most
    longer = replay("lake", "mcar:0.4", "mi-synthetic", at=[0], steps=fitting + 1)
    with pytest.raises(ValueError, match=f"{fitting} of {fitting + 1} steps fit"):
        longer.save(tmp_path / "large.html", max_size=most)
    with pytest.raises(ValueError, match="not one step fits"):
        found.save(tmp_path / "large.html", max_size="1kB")
    assert not (tmp_path / "large.html").exists()


def test_sizes_are_read_as_people_write_them() -> None:
    assert [bytes_of(size) for size in (7, "7", "5MB", "1.5 kB", "1GB")] == [7, 7, 5_000_000, 1500, 10**9]
    for wrong in ("5 apples", "-1", ""):
        with pytest.raises(ValueError, match="write it as bytes, kB, MB or GB"):
            bytes_of(wrong)


def test_in_a_notebook_a_replay_is_a_frame_of_its_own(page: Path) -> None:
    found = replay("corridor", "mcar:0.4", "last-observed", at=[0], steps=5)
    html = found._repr_html_()
    assert html.count("<") == 2, "a frame, its end, and no other tag"
    attributes = dict(re.findall(r'(\w+)="([^"]*)"', html))
    assert unescape(attributes["srcdoc"]) == found.html
    # allow-same-origin would give the player's script the run of the notebook.
    assert attributes["sandbox"] == "allow-scripts"


# --- the command -----------------------------------------------------------------------------------------------------


def refusal(words: list[str]) -> str:
    """What the command says when it refuses."""
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ValueError | TypeError | OSError), done.output
    return one_sentence(done.exception)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "out is missing"),
        ("--out replay.pdf", "its name must end in .html"),
        ("--out nowhere/replay.html", "there is no folder nowhere"),
        ("--out r.html --world nowhere", "no world is called 'nowhere'"),
        ("--out r.html --world FrozenLake-v1", "whose true state is unknown"),
        ("--out r.html --method optimum", "optimum is a yardstick"),
        ("--out r.html --against best", "no method is called 'best'"),
        ("--out r.html --at 5,x", "write steps with commas between them"),
        ("--out r.html --at -5", "a step of at is -5"),
        ("--out r.html --at 99999999999999999999", "a step of at is 99999999999999999999"),
        ("--out r.html --steps 0", "steps is 0"),
        ("--out r.html --seed -1", "seed is -1"),
        ("--out r.html --max-size huge", "write it as bytes, kB, MB or GB"),
        ("--out r.html --max-size 9kB --at 0 --steps 20 --world corridor", "not one step fits"),
        ("--check nothing.html", "No such file"),
    ],
)
def test_the_command_refuses_in_one_sentence(words: str, sentence: str) -> None:
    assert sentence in refusal(["replay", *words.split()])
    assert not Path("r.html").exists()


def test_the_command_writes_a_page_that_it_can_check(tmp_path: Path) -> None:
    words = ["replay", "--world", "corridor", "--method", "mi-synthetic", "--K", "3", "--against", "last-observed"]
    done = CliRunner().invoke(app, [*words, "--at", "0,50", "--steps", "20", "--out", "corridor.html"])
    assert done.exit_code == 0, done.output
    assert "kB)" in done.output
    checked = CliRunner().invoke(app, ["replay", "--check", "corridor.html"])
    assert "1 recording, 80 steps, equal to the bit" in checked.output
    assert "exists already" in refusal([*words, "--out", "corridor.html"])
    header: Any = recordings_in("corridor.html")["recording"]["header"]
    assert (header["at"], header["steps"], header["seed"]) == ([0, 50], 20, 0)
    assert [method["K"] for method in header["methods"]] == [3, None]


# --- drawings --------------------------------------------------------------------------------------------------------


def test_worlds_with_rows_and_columns_are_maps_and_others_are_strips() -> None:
    shapes = {
        name: drawing_of(make_world(name)).shape for name in ("lake", "frozen-lake", "taxi", "cliff-walking", "field")
    }
    assert shapes == {"lake": (8, 8), "frozen-lake": (4, 4), "taxi": (5, 5), "cliff-walking": (4, 12), "field": (4, 6)}
    assert world_data(Problem.named("corridor", "none"))["map"] is None


def test_a_map_that_is_too_large_is_shown_as_strips() -> None:
    lines = ["." * 120 for _ in range(120)]
    world = make_world("lake", map="\n".join(["S" + lines[0][1:], *lines[2:], lines[0][1:] + "G"]))
    assert drawing_of(world).shape == (0, 0)
    assert drawing_of(world).labels


def test_a_map_shows_the_water_of_the_map_in_force() -> None:
    lake, world = lacuna.Lake(), make_world("lake")
    drawing = drawing_of(world)
    assert drawing.scene is not None
    for state in range(world.n_states):
        row, column, _ = lake.place(state)
        assert (drawing.scenes[drawing.scene[state]].rows[row][column] == "~") == world.bad[state]


def test_haze_lies_where_more_goes_missing() -> None:
    foggy = Problem.named("lake", "mfog:0.5,0.1")
    assert np.allclose(haze(foggy.mdp, foggy.mechanism), np.where(foggy.mdp.regions["fog"], 0.4, 0.0))
    even = Problem.named("lake", "mcar:0.4")
    assert not haze(even.mdp, even.mechanism).any()


@pytest.mark.parametrize(
    ("drawing", "sentence"),
    [
        (Drawing("row", "column", {".": Ground("grass")}, [Scene(["..", "..."])]), "must have 2 rows of 3 cells"),
        (Drawing("row", "column", {".": Ground("grass")}, [Scene(["..#", "..."])]), "no ground for '#'"),
        (Drawing("row", "side", {}, [Scene(["...", "..."])]), "no component is called 'side'"),
        (Drawing("row", "column"), "no scene"),
        (Drawing("row", "column", {".": Ground("x", "red")}, [Scene(["...", "..."])]), "write it as #rrggbb"),
        (Drawing("row", "column", {".": Ground("x")}, [Scene(["...", "..."], marks={(2, 0): "S"})]), "marks row 2"),
        (Drawing("row", "column", {".": Ground("x")}, [Scene(["...", "..."])], [0, 1]), "one of 1"),
        (Drawing(labels={"row": ["only one"]}), "has 1 words for row, which has 2 values"),
    ],
)
def test_a_drawing_of_another_world_is_refused(drawing: Drawing, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        TabularMDP.build(
            lambda s, _: [(1.0, s, 0.0, False)], space=Space((2, 3), ("row", "column")), shows=range(6), n_actions=1,
            starts=[{0: 1.0}], drawing=drawing,
        )  # fmt: skip


def test_the_still_picture_has_the_guesses_and_the_truth() -> None:
    recording = replay("lake", "mcar:0.4", "mi-synthetic", at=[100], steps=60).recording
    stage, step = opening_step(recording)
    distinct = [len(set(row)) for row in recording.stages[0][0].before.pathways[:-1].tolist()]
    assert distinct[step] == max(distinct) > 1
    assert still_picture(recording, stage, step).count('fill-opacity=".3"') == 10


def test_a_run_is_what_it_was_before_it_was_watched() -> None:
    watched, alone = (Run(FOG.mdp, FOG.mechanism, Settings("mi-planned"), seed=3) for _ in range(2))
    for _ in range(20):
        watched.agent.probabilities() if watched.steps else None
        watched.record(1)
    alone.advance(20)
    assert np.array_equal(watched.agent.Q, alone.agent.Q)
