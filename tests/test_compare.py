"""`compare`: the runs are those of a study, differences go seed by seed, and what cannot be is told in a sentence."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

from lacuna import (
    Agent,
    Comparison,
    OwnMethod,
    Problem,
    Settings,
    Space,
    Store,
    compare,
    make_world,
    run_trials,
)
from lacuna.missingness import by_component, mcar
from lacuna.study.statistics import mean_interval, paired_difference
from own_parts import study_of, write_parts

METHODS: list[Any] = ["last-observed", Settings("mi-conservative", K=3, epsilon=0.1), "mi-planned,K=4"]


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare("corridor,length=6", ["mcar:0.4", "mcar:0.1"], METHODS, steps=400, seeds=range(3, 8))


def test_figures_are_those_of_plain_trials_in_the_order_given(found: Comparison) -> None:
    assert found.names == ("last-observed", "mi-conservative,K=3,epsilon=0.1", "mi-planned,K=4")
    assert found.missingness == ("mcar:0.4", "mcar:0.1")
    assert found.table["missingness"].to_list() == ["mcar:0.4"] * 15 + ["mcar:0.1"] * 15
    settings = [Settings("last-observed"), Settings("mi-conservative", K=3, epsilon=0.1), Settings("mi-planned", K=4)]
    for name, one in zip(found.names, settings, strict=True):
        for missingness in found.missingness:
            rows = run_trials(Problem.named("corridor,length=6", missingness), one, steps=400, seeds=range(3, 8))
            mine = found.table.filter(name=name, missingness=missingness)
            assert mine["trial"].to_list() == [3, 4, 5, 6, 7]
            for column in ("mean_total_reward", "episodes", "open_reward"):
                assert mine[column].to_list() == [row[column] for row in rows]


def test_the_summary_and_the_differences_are_those_of_the_statistics(found: Comparison) -> None:
    values = {
        key: part["mean_total_reward_with_open"].to_list()
        for key, part in found.table.group_by("missingness", "name", maintain_order=True)
    }
    assert found.measure == "mean_total_reward_with_open"
    for row in found.summary.iter_rows(named=True):
        mine, first = values[row["missingness"], row["name"]], values[row["missingness"], "last-observed"]
        assert (row["mean"], row["low"], row["high"], row["seeds"]) == mean_interval(mine)
        less = paired_difference(mine, first)
        wanted = (None, None, None) if row["name"] == "last-observed" else less[:3]
        assert (row["difference"], row["difference_low"], row["difference_high"]) == wanted
    forth, back = found.paired("mi-planned,K=4", 0), found.paired(0, 2)
    assert forth["difference"].to_list() == [-x for x in back["difference"]]
    assert (forth["low"] > 0).all()
    steps = found.paired(2, 0, measure="mean_path_length")
    assert steps["b"].to_list() == ["last-observed"] * 2


def test_curves_add_up_to_what_was_earned(found: Comparison) -> None:
    assert found.curves.height == 2 * 3 * 50
    earned = found.curves.group_by("missingness", "name").agg((pl.col("mean") * 400 / 50).sum().alias("total"))
    per_step = found.table.group_by("missingness", "name").agg((pl.col("reward_per_step") * 400).mean().alias("total"))
    both = earned.join(per_step, on=["missingness", "name"])
    assert both.height == 6
    np.testing.assert_allclose(both["total"], both["total_right"])


def test_it_shows_itself(found: Comparison) -> None:
    lines = repr(found).splitlines()
    assert lines[0] == "Total reward per episode in corridor,length=6: 5 seeds of 400 steps"
    assert len(lines) == 2 + 2 * 3
    assert lines[1].split("  ")[0] == "missingness"
    html = found._repr_html_()
    assert "gamma below 1" not in html
    assert html.count("<tr ") == 7
    assert all(name in html for name in found.names)
    assert len(found.plot().to_dict(validate=False)["datasets"]["points"]) == 300


def test_where_nothing_ends_reward_per_step_is_compared() -> None:
    found = compare("random,components=2", "mcar:0.2", ["last-observed"], steps=100, seeds=2)
    assert found.measure == "reward_per_step"
    assert "more than" not in repr(found)
    hint = "No episode ended by itself. If none ever does, discount later rewards: give gamma below 1."
    assert repr(found).endswith(hint)
    assert hint in found._repr_html_()
    discounted = compare("random,components=2", "mcar:0.2", ["last-observed,gamma=0.9"], steps=100, seeds=2)
    assert hint not in repr(discounted) + discounted._repr_html_()


class Room(gymnasium.Env[Any, Any]):
    """Pays for the action that equals what is shown, which is new in every step; a time limit of ten steps."""

    observation_space: Any = gymnasium.spaces.Discrete(3)
    action_space: Any = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.now, self.t = int(self.np_random.integers(3)), 0
        return self.now, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        paid, self.now, self.t = float(action == self.now), int(self.np_random.integers(3)), self.t + 1
        return self.now, paid, False, self.t == 10, {}


def test_any_environment_and_any_agent_take_part(tmp_path: Path) -> None:
    class Knows:
        """Says what it sees."""

        def __init__(self, space: Space, n_actions: int, *, seed: int) -> None:
            assert space.sizes == (3,)
            self.seen = seed % n_actions

        def begin(self, observation: Any) -> None:
            self.seen = self.seen if observation["mask"][0] else int(observation["values"][0])

        def act(self) -> int:
            return self.seen

        def learn(self, reward: float, observation: Any, terminated: bool) -> None:
            assert reward in (0.0, 1.0)
            assert terminated is False
            self.begin(observation)

    found = compare(Room, ["none", "mcar:0.5"], [Knows, "last-observed", lambda s, n, *, seed: Agent(s, n, seed=seed)],
                    steps=200, seeds=4)  # fmt: skip
    assert found.measure == "mean_total_reward_with_open"
    assert found.names[1] == "last-observed"
    assert found.names[0] == "Knows"
    # Nothing hidden: it is right in every step. Half hidden: right where seen, and by chance elsewhere.
    seen, half = found.summary.filter(name=found.names[0])["mean"]
    assert seen == 10.0
    assert 10 * (0.5 + 0.5 / 3) - half == pytest.approx(0, abs=4 * (10 * 0.25 / 80) ** 0.5)
    assert found.table.filter(pl.col("mean_bad_steps").is_not_null()).height == 0
    assert (found.table["cut_episodes"] == 20).all()
    # The same class has the same name again; two that are called alike are numbered.
    again = compare(Room, "none", [Knows, "last-observed", Knows], steps=np.int64(20), seeds=2)  # type: ignore[arg-type]
    assert again.names == ("Knows", "last-observed", "Knows_2")
    assert set(again.table["method"]) == set(again.names)
    # The same name with another meaning, in the same process.
    rooms = [compare(lambda n=n: make_world("corridor", length=n), "none", "last-observed", 50, 2) for n in (3, 6)]
    assert rooms[0].table["episodes"].min() > rooms[1].table["episodes"].max()  # type: ignore[operator]
    with pytest.raises(ValueError, match="known to this process only, so no store can keep its runs"):
        compare(Room, "none", Knows, 50, 2, store=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_mechanisms_called_alike_are_both_run() -> None:
    world = make_world("corridor")
    sizes = world.space.sizes
    kept, lost = (by_component(world.space, 0, [rate] * sizes[0], name="cold") for rate in (0.0, 1.0))
    found = compare("corridor", [kept, lost, "none"], "last-observed", steps=50, seeds=2)
    assert found.missingness == ("cold", "cold_2", "none")
    alone = compare("corridor", lost, "last-observed", steps=50, seeds=2)
    for part, same in (("cold", found.table.filter(missingness="none")), ("cold_2", alone.table)):
        assert found.table.filter(missingness=part)["reward_per_step"].to_list() == same["reward_per_step"].to_list()


def test_a_name_that_looks_numbered_is_not_taken_twice() -> None:
    space = make_world("corridor").space
    names, rates = ("cold", "cold", "cold_2"), (0.0, 0.5, 1.0)
    hidden = [
        by_component(space, 0, [rate] * space.sizes[0], name=name) for name, rate in zip(names, rates, strict=True)
    ]
    found = compare("corridor", hidden, "last-observed", steps=50, seeds=2)
    assert found.missingness == ("cold", "cold_2", "cold_2_2")
    assert found.summary["seeds"].to_list() == [2, 2, 2]
    assert len(set(found.summary["mean"])) == 3


def test_an_id_of_ones_own_for_an_environment_of_gymnasium_is_known_by_its_arguments(tmp_path: Path) -> None:
    def run(*, is_slippery: bool) -> pl.DataFrame:
        gymnasium.registry.pop("Ice-v0", None)
        made_by = "gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv"
        gymnasium.register("Ice-v0", made_by, kwargs={"is_slippery": is_slippery})
        return compare("Ice-v0", "none", "random-action", 200, 1, store=tmp_path / "store").table

    assert run(is_slippery=True)["mean_path_length"][0] != run(is_slippery=False)["mean_path_length"][0]
    assert len(Store.existing(tmp_path / "store").done()) == 2
    gymnasium.registry.pop("Ice-v0")


def test_an_environment_that_is_registered_anew_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    parts = write_parts(tmp_path)

    def run(**registered: Any) -> pl.DataFrame:
        gymnasium.registry.pop("Walk-v0", None)
        gymnasium.register("Walk-v0", f"{parts}:Walk", **registered)
        return compare("Walk-v0", "none", "last-observed", 100, 1, store=tmp_path / "store").table

    first, wide, cut = run(), run(kwargs={"sides": 9, "pay": 0.0}), run(max_episode_steps=2)
    assert run().equals(first)
    assert first["mean_total_reward"][0] > 0 == wide["mean_total_reward"][0]
    assert (first["cut_episodes"][0], cut["cut_episodes"][0]) == (0, 50)
    assert len(Store.existing(tmp_path / "store").done()) == 3
    gymnasium.registry.pop("Walk-v0")


def test_a_step_without_a_reward_is_told_in_a_sentence() -> None:
    class Unpaid(Room):
        """Forgets the reward."""

        def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            return super().step(action)[0], None, False, False, {}

    with pytest.raises(ValueError, match="the reward of a step is None; it must be a number"):
        compare(Unpaid, "none", "last-observed", steps=5, seeds=1)


def test_a_store_keeps_what_was_run_and_shares_it_with_studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    parts, folder = write_parts(tmp_path), tmp_path / "store"
    methods: list[Any] = ["last-observed", f"{parts}:Mine,explore=0.5", OwnMethod.named(f"{parts}:Mine")]
    first = compare(f"{parts}:maze,size=5", f"{parts}:by_mood,rate=0.5", methods, 200, 2, store=folder)
    assert len(Store.existing(folder).done()) == 6
    parts_before = sorted((folder / "parts").iterdir())
    again = compare(f"{parts}:maze,size=5", f"{parts}:by_mood,rate=0.5", methods, 200, 2, store=folder)
    assert sorted((folder / "parts").iterdir()) == parts_before
    assert again.table.equals(first.table)
    more = compare(f"{parts}:maze,size=5", f"{parts}:by_mood,rate=0.5", methods, 200, 3, store=Store(folder))
    assert len(Store.existing(folder).done()) == 9
    assert more.table.filter(pl.col("trial") < 2).equals(first.table)
    assert f"{parts}:maze" in study_of(parts)
    # Objects with a digest of their content are known again.
    world = make_world("corridor")
    for _ in range(2):
        compare(world, mcar(world, 0.3), "last-observed", 100, 2, store=tmp_path / "objects")
    assert len(Store.existing(tmp_path / "objects").done()) == 2
    compare(
        make_world("corridor", length=4), mcar(Space((4,)), 0.3), "last-observed", 100, 2, store=tmp_path / "objects"
    )
    assert len(Store.existing(tmp_path / "objects").done()) == 4


def test_worlds_that_differ_in_their_regions_or_names_only_are_told_apart(tmp_path: Path) -> None:
    lake = make_world("lake")
    foggy = replace(lake, regions={"fog": np.ones(lake.n_states, dtype=np.bool_)})
    idle = replace(lake, idle=0)
    for store in (None, tmp_path / "store"):
        here, there, still = (
            compare(world, "mfog:1,0", "last-observed", 300, 1, store=store).table for world in (lake, foggy, idle)
        )
        assert here["hidden_shares"][0][3] < there["hidden_shares"][0][3] == 1.0 - there["hidden_shares"][0][0]
        assert here["idle_share"][0] != still["idle_share"][0]
    swapped = replace(lake, space=Space(lake.space.sizes, ("column", "row", "colour")))
    shares = [compare(one, "by:row=0.0,else=1", "last-observed", 50, 1).table for one in (lake, swapped)]
    assert shares[0]["id"][0] != shares[1]["id"][0]


GOOD: dict[str, Any] = {
    "world": "corridor",
    "missingness": "mcar:0.2",
    "methods": "last-observed",
    "steps": 20,
    "seeds": 2,
}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"world": lambda: 3}, "it must make a TabularMDP, or a Gymnasium environment"),
    ({"world": Room()}, "give a function that makes one, since every run needs its own"),
    ({"world": 3}, "world is 3; it must be a name, or a function or class that makes it"),
    ({"world": "CartPole-v1"}, "or give bins with its name: 'CartPole-v1,bins=8'"),
    ({"world": "lack"}, "did you mean 'lake'?"),
    ({"missingness": "mcra:0.2"}, "did you mean 'mcar'?"),
    ({"missingness": mcar(3, 0.2)}, "hides"),
    ({"missingness": []}, "missingness is []; it must be a list of at least one value"),
    ({"methods": 3}, "a method is 3; it must be a name"),
    ({"methods": ["last-observd"]}, "did you mean 'last-observed'?"),
    ({"methods": lambda *_, seed: seed}, "which has no begin()"),
    ({"methods": "last-observed,K=3"}, "has no such setting"),
    ({"steps": 0}, "steps is 0; it must be 1 or larger"),
    ({"steps": 2.5}, "steps is 2.5; it must be a whole number"),
    ({"seeds": [1, 3]}, "it must be a number, or seeds in a row"),
    ({"seeds": 0}, "seeds is 0"),
    ({"seeds": 2.5}, "seeds is 2.5"),
    ({"workers": 0}, "workers is 0"),
]


@pytest.mark.parametrize(("changes", "part"), WRONG, ids=[part for _, part in WRONG])
def test_what_cannot_be_compared_is_told_in_a_sentence(tmp_path: Path, changes: dict[str, Any], part: str) -> None:
    with pytest.raises((TypeError, ValueError)) as told:
        compare(**GOOD | changes, store=tmp_path / "store")
    assert part in str(told.value)
    assert "\n" not in str(told.value)
    assert not (tmp_path / "store").exists()


def test_a_wrong_method_or_measure_is_refused(found: Comparison) -> None:
    for wrong in ("mi-planed", 3, True):
        with pytest.raises(ValueError, match="method"):
            found.paired(wrong, 0)
    with pytest.raises(ValueError, match=r"did you mean 'reward_per_step'\?"):
        found.paired(0, 1, measure="reward_per_stp")
    with pytest.raises(ValueError, match="budget is not known for every run"):
        found.summed_up("budget")


def test_real_numbers_are_cut_into_bins_and_the_report_is_written(tmp_path: Path) -> None:
    found = compare("MountainCar-v0,bins=[3, 2]", "mcar:0.3", ["last-observed", Knows3x2], steps=60, seeds=2)
    assert found.table["steps"].to_list() == [60] * 4
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Knows3x2" in page
    assert "here:Knows3x2" not in page
    assert "Dotted: yardsticks" not in page
    with_optimum = compare("corridor", "none", ["last-observed", "optimum"], steps=60, seeds=2)
    assert "Dotted: yardsticks" in with_optimum.report(tmp_path / "other.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="only the real numbers of a Box are cut into bins"):
        compare("FrozenLake-v1,bins=3", "none", "last-observed", steps=10, seeds=1)
    with pytest.raises(ValueError, match="bins"):
        compare("MountainCar-v0,bins=0", "none", "last-observed", steps=10, seeds=1)


class Knows3x2(Agent):
    """An agent that is only made for components of these sizes."""

    def __init__(self, space: Space, n_actions: int, *, seed: int) -> None:
        assert space.sizes == (3, 2)
        super().__init__(space, n_actions, Settings("last-observed"), seed=seed)


def test_a_seed_that_got_stuck_is_named_with_the_median() -> None:
    plain = compare("corridor,length=6", "mcar:0.1", ["last-observed", "mi-synthetic"], steps=300, seeds=8)
    assert plain.summary["outliers"].to_list() == ["", ""]
    measure = plain.measure
    stuck = (pl.col("method") == "mi-synthetic") & (pl.col("trial") == 3)
    edited = plain.runs.with_columns(pl.when(stuck).then(-1e6).otherwise(measure).alias(measure))
    found = replace(plain, runs=edited)
    last = found.summary.row(1, named=True)
    median = float(np.median(found.table.filter(name="mi-synthetic")[measure]))
    assert last["outliers"] == f"1 of 8 trials lies far below the others; the median is {median:.4g}".replace("-", "−")
    assert last["difference_outliers"].startswith("1 of 8 trials lies far below the others")
    for text in (repr(found), found._repr_html_()):
        assert "mcar:0.1, mi-synthetic: 1 of 8 trials lies far below the others" in text
        assert "mcar:0.1, mi-synthetic, difference: 1 of 8" in text
    assert "far below" not in repr(plain)


def test_equal_figures_are_of_unknown_spread() -> None:
    plain = compare("corridor,length=6", "mcar:0.1", ["last-observed", "mi-synthetic"], steps=300, seeds=2)
    bonus = pl.when(method="mi-synthetic").then(1.0).otherwise(0.0)
    found = replace(plain, runs=plain.runs.with_columns((bonus + 3.0).alias(plain.measure)))
    last = found.summary.row(1, named=True)
    assert (last["mean"], last["low"], last["high"]) == (4.0, None, None)
    assert (last["difference"], last["difference_low"], last["difference_high"]) == (1.0, None, None)
    lines = repr(found).splitlines()
    assert lines[2].count("unknown spread") == 1
    assert lines[3].count("unknown spread") == 2
    assert found.paired(1, 0).row(0, named=True)["low"] is None
