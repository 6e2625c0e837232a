"""An export holds what happened, every column explained, nobody named; and the summary counts the same."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from lacuna.files import write_whole
from lacuna.trial.engine.trial import Trial
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log import export as export_module
from lacuna.trial.log.chained_log import LogError, read_log
from lacuna.trial.log.codebook import FILES
from lacuna.trial.log.events import file_of
from lacuna.trial.log.export import export
from lacuna.trial.log.summary import summary, summary_text
from trial_runs import THREE, Noted, Runner, clock, trial_file

NAMES = ["codebook.json", "codebook.md", "decisions.parquet", "decisions.csv", "log.jsonl"]
WITH_WCLS = [*NAMES, "wcls.parquet", "wcls.csv"]
ALL = [*WITH_WCLS, "obp.npz"]
WCLS = [
    "id", "t", "at", "available", "treatment", "prob", "outcome", "outcome_missing", "randomised", "policy", "version",
    "in_study",
]  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> Runner:
    file = trial_file(method="mi-synthetic", reward="wait = { decisions = 5 }\ndefault = 0.25", on_invalid="fallback")
    return Runner(file, 3).run()


@pytest.fixture(scope="module")
def folder(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("export") / "new" / "walk"
    written = export(runner.trial.store.read(), where, wcls=True, obp=True)
    assert [path.name for path in written] == ALL
    return where


def noted(runner: Runner) -> dict[tuple[str, int], Noted]:
    return {(runner.trial.secret.pseudonym(who), t): one for (who, t), one in runner.notes.items()}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_decisions_are_the_table_in_both_forms(runner: Runner, folder: Path) -> None:
    table = runner.trial.decisions()
    parquet = pl.read_parquet(folder / "decisions.parquet")
    assert parquet.equals(table)
    assert parquet.schema == table.schema
    text = pl.read_csv(folder / "decisions.csv", schema_overrides={"at": pl.String, **_types(table, "at")})
    assert text.columns == table.columns
    for name in table.columns:
        if name != "at":
            assert text[name].equals(table[name]), name
    assert text["at"].str.to_datetime("%Y-%m-%dT%H:%M:%S%.3fZ", time_unit="ms", time_zone="UTC").equals(table["at"])


def _types(table: pl.DataFrame, but: str) -> dict[str, Any]:
    return {name: kind for name, kind in table.schema.items() if name != but}


def test_the_log_is_the_log(runner: Runner, folder: Path) -> None:
    assert list(read_log(folder / "log.jsonl", runner.trial.head)) == list(runner.trial.store.read())


def test_the_same_log_gives_the_same_bytes(runner: Runner, folder: Path, tmp_path: Path) -> None:
    export(runner.trial.store.read(), tmp_path, wcls=True, obp=True)
    assert content(tmp_path) == content(folder)


def test_the_columns_for_weighted_least_squares(runner: Runner, folder: Path) -> None:
    table, known = pl.read_parquet(folder / "wcls.parquet"), noted(runner)
    names = runner.trial.file.context.names
    assert table.columns == [*WCLS, *(f"{part}_{name}" for name in names for part in ("raw", "coded", "missing"))]
    assert pl.read_csv(folder / "wcls.csv", infer_schema=False).columns == table.columns
    unknown = {key for key, one in known.items() if not one.prob}
    assert unknown
    rows = {(row["id"], row["t"]): row for row in table.iter_rows(named=True)}
    assert set(rows) == {key for key in _keys(runner) if key not in unknown}
    for key, row in rows.items():
        one = known.get(key)
        if one is None:
            assert (row["treatment"], row["prob"], row["available"], row["outcome"]) == (0, 0.0, False, None)
            continue
        assert row["treatment"] == (one.action == "prompt")
        # Of treatment, not of what was drawn.
        assert row["prob"] == one.prob["prompt"]
        assert row["outcome"] == (one.reports[-1] if one.reports else None)
        assert row["outcome_missing"] == (not one.reports)
        assert row["randomised"] == one.randomised
        assert row["policy"] == one.policy
    treated = table.filter(pl.col("randomised"))
    assert {0, 1} == set(treated["treatment"])
    assert treated["prob"].min() > 0  # type: ignore[operator]
    stranger = runner.trial.secret.pseudonym("stranger")
    assert not table.filter(pl.col("id") == stranger)["in_study"].any()


def _keys(runner: Runner) -> list[tuple[str, int]]:
    return list(runner.trial.decisions().select("participant", "t").iter_rows())


def test_the_arrays_of_the_open_bandit_pipeline(runner: Runner, folder: Path) -> None:
    with np.load(folder / "obp.npz", allow_pickle=False) as file:
        found = dict(file)
    known = noted(runner)
    wanted = [known[key] for key in _keys(runner) if key in known and known[key].randomised and known[key].reports]
    n, sizes = len(wanted), runner.trial.file.context.space.sizes
    assert n > 30
    assert (int(found["n_rounds"]), int(found["n_actions"])) == (n, 2)
    shapes = {
        name: found[name].shape
        for name in ("context", "action_context", "action", "position", "reward", "pscore", "pi_b")
    }
    assert shapes == {
        "context": (n, sum(sizes) + len(sizes)), "action_context": (2, 2), "action": (n,), "position": (n,),
        "reward": (n,), "pscore": (n,), "pi_b": (n, 2, 1),
    }  # fmt: skip
    assert found["action"].tolist() == [int(one.action == "prompt") for one in wanted]
    assert found["reward"].tolist() == [one.reports[-1] for one in wanted]
    assert found["pscore"].tolist() == [one.prob[one.action] for one in wanted]
    assert found["pi_b"][:, :, 0].tolist() == [[one.prob["nothing"], one.prob["prompt"]] for one in wanted]
    assert not found["position"].any()
    assert np.array_equal(found["action_context"], np.eye(2))
    assert np.issubdtype(found["action"].dtype, np.integer)
    names = found["context_names"].tolist()
    for one, row in zip(wanted, found["context"], strict=True):
        on = [names[i] for i in np.flatnonzero(row)]
        assert len(on) == 4
        home = one.context["at home"]
        assert on[3] == f"at home: {'missing' if home is None else home}"
        steps = one.context["steps"]
        assert on[1] == "steps: " + (
            "missing" if steps is None or steps < 0 else
            "0 ≤ x < 500" if steps < 500 else "500 ≤ x < 2000" if steps < 2000 else "2000 ≤ x ≤ 100000"
        )  # fmt: skip


def test_the_codebook_explains_every_column_and_counts_what_is_missing(runner: Runner, folder: Path) -> None:
    book = json.loads((folder / "codebook.json").read_text())
    text = (folder / "codebook.md").read_text()
    assert [one["name"] for one in book["columns"]] == runner.trial.decisions().columns
    assert [one["name"] for one in book["wcls"]] == pl.read_parquet(folder / "wcls.parquet").columns
    assert list(book["files"]) == ALL == [name for name in FILES if (folder / name).exists()]
    assert book["head"] == {"seq": runner.trial.head.seq, "chain": runner.trial.head.chain.hex()}
    assert (book["treatment"], book["absent"], book["redacted"]) == ("prompt", "nothing", 0)
    known = list(runner.notes.values())
    assert book["rows"] == {"all": len(_keys(runner)), "asked": len(known), "absent": len(_keys(runner)) - len(known)}
    for component, one in zip(runner.trial.file.context.components, book["components"], strict=True):
        told = [noted.context[component.name] for noted in known]
        read = [None if value is None else component.read(value) for value in told]
        assert one["n_missing"] == sum(value is None for value in read)
        assert one["n_invalid"] == sum(
            value is not None and found is None for value, found in zip(told, read, strict=True)
        )
        assert f"{one['n_missing']} are missing, and {one['n_invalid']} of these invalid" in text
    assert book["components"][1]["bins"] == ["0 ≤ x < 500", "500 ≤ x < 2000", "2000 ≤ x ≤ 100000"]
    assert book["components"][2]["values"] == [1, 2, 3, "no answer"]
    for name in (*runner.trial.decisions().columns, *ALL):
        assert f"| {name.replace('_', chr(92) + '_')} |" in text, name


def test_nobody_is_named_in_any_file(runner: Runner, folder: Path) -> None:
    for name, body in content(folder).items():
        assert b"person " not in body, name
        assert b"stranger" not in body, name
    for name in ("decisions.csv", "wcls.csv"):
        assert b"HYPERLINK" not in (folder / name).read_bytes()
    assert b"HYPERLINK" in (folder / "log.jsonl").read_bytes()


# --- where it is written ---------------------------------------------------------------------------------------------


def small(seed: int = 1, **given: Any) -> Runner:
    return Runner(trial_file(**given), seed).run(2, 5)


def test_a_later_export_replaces_an_earlier_one_of_the_same_trial(tmp_path: Path) -> None:
    runner = small()
    export(runner.trial.store.read(), tmp_path, wcls=True, obp=True)
    (tmp_path / ".decisions.csv.part").write_bytes(b"half a li")
    runner.decide("person 0", 30)
    written = export(runner.trial.store.read(), tmp_path)
    assert [path.name for path in written] == NAMES
    assert sorted(content(tmp_path)) == sorted(NAMES)
    assert pl.read_parquet(tmp_path / "decisions.parquet").equals(runner.trial.decisions())


@pytest.mark.parametrize("strange", ["notes.txt", "wcls.csv.bak", ".hidden", "decisions.xlsx"])
def test_a_folder_with_other_files_is_refused_and_left_alone(strange: str, tmp_path: Path) -> None:
    runner = small()
    (tmp_path / strange).write_text("mine")
    with pytest.raises(ValueError, match="which is no file of an export; name a new folder"):
        export(runner.trial.store.read(), tmp_path)
    assert content(tmp_path) == {strange: b"mine"}
    (tmp_path / strange).unlink()
    export(runner.trial.store.read(), tmp_path)
    before = content(tmp_path)
    (tmp_path / strange).write_text("mine")
    with pytest.raises(ValueError, match="no file of an export"):
        export(runner.trial.store.read(), tmp_path, wcls=True)
    assert content(tmp_path) == before | {strange: b"mine"}


def test_an_export_of_another_trial_or_of_nobody_knows_what_is_left_alone(tmp_path: Path) -> None:
    export(small(1).trial.store.read(), tmp_path)
    before = content(tmp_path)
    with pytest.raises(ValueError, match="holds the export of another trial; name a new folder"):
        export(small(2).trial.store.read(), tmp_path)
    assert content(tmp_path) == before
    for body in (b"", b"[]", b"{}", b'{"begin": 3}', b"\xff", b"[" * 100_000):
        (tmp_path / "codebook.json").write_bytes(body)
        with pytest.raises(ValueError, match="of another trial"):
            export(small(1).trial.store.read(), tmp_path)
    (tmp_path / "codebook.json").unlink()
    with pytest.raises(ValueError, match="of another trial"):
        export(small(1).trial.store.read(), tmp_path)


def test_a_file_a_link_or_a_folder_in_the_way_is_refused(tmp_path: Path) -> None:
    runner, other = small(), tmp_path / "other"
    other.write_text("mine")
    with pytest.raises(ValueError, match="is not a folder"):
        export(runner.trial.store.read(), other)
    where = tmp_path / "walk"
    export(runner.trial.store.read(), where)
    (where / "obp.npz").symlink_to(other)
    with pytest.raises(ValueError, match=r"holds 'obp\.npz', which is no file of an export"):
        export(runner.trial.store.read(), where, obp=True)
    (where / "obp.npz").unlink()
    (where / "obp.npz").mkdir()
    with pytest.raises(ValueError, match=r"holds 'obp\.npz'"):
        export(runner.trial.store.read(), where, obp=True)
    assert other.read_text() == "mine"


def test_an_export_that_is_stopped_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, write, written = small(), write_whole, list[str]()

    def stop(path: Path, body: bytes) -> None:
        if path.name == "decisions.csv":
            raise KeyboardInterrupt
        write(path, body)
        written.append(path.name)

    monkeypatch.setattr(export_module, "write_whole", stop)
    with pytest.raises(KeyboardInterrupt):
        export(runner.trial.store.read(), tmp_path)
    assert sorted(content(tmp_path)) == sorted(written) != []
    monkeypatch.undo()
    export(runner.trial.store.read(), tmp_path)
    assert sorted(content(tmp_path)) == sorted(NAMES)


# --- trials of other kinds -------------------------------------------------------------------------------------------


def test_with_more_than_two_actions_the_treatment_must_be_named(tmp_path: Path) -> None:
    runner = Runner(trial_file(actions=THREE), 1).run(3, 12)
    where = tmp_path / "walk"
    for treatment, words in (
        (None, "the trial has 3 actions, so treatment = 1 is not defined; name one action as treatment"),
        ("cal", r"treatment is 'cal' \(did you mean 'call'\?\); it must be one of 'prompt', 'call'"),
        ("nothing", "treatment is 'nothing'; it must be one of 'prompt', 'call'"),
    ):
        with pytest.raises(ValueError, match=words):
            export(runner.trial.store.read(), where, wcls=True, treatment=treatment)
        assert not where.exists()
    with pytest.raises(ValueError, match="only the export for wcls has a treatment"):
        export(runner.trial.store.read(), where, treatment="call")
    export(runner.trial.store.read(), where, wcls=True, obp=True, treatment="call")
    table, known = pl.read_parquet(where / "wcls.parquet"), noted(runner)
    for row in table.iter_rows(named=True):
        if (one := known.get((row["id"], row["t"]))) is not None:
            assert (row["treatment"], row["prob"]) == (one.action == "call", one.prob["call"])
    with np.load(where / "obp.npz", allow_pickle=False) as file:
        assert file["pi_b"].shape[1:] == (3, 1)
        assert set(file["action"].tolist()) == {0, 1, 2}


@pytest.mark.parametrize("enrolled", [False, True])
def test_a_trial_without_decisions_is_exported(enrolled: bool, tmp_path: Path) -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    if enrolled:
        trial.enrol("person 0")
    export(trial.store.read(), tmp_path, wcls=True, obp=True)
    assert sorted(content(tmp_path)) == sorted(ALL)
    assert pl.read_parquet(tmp_path / "decisions.parquet").shape == (0, len(trial.decisions().columns))
    with np.load(tmp_path / "obp.npz", allow_pickle=False) as file:
        assert file["pi_b"].shape == (0, 2, 1)
        assert file["context"].shape == (0, 16)
        assert int(file["n_rounds"]) == 0
    assert summary(trial.store.read(), trial.file)["missing"] == dict.fromkeys(trial.file.context.names)
    assert "0 reported" in summary_text(summary(trial.store.read(), trial.file))


def test_a_log_without_its_beginning_is_refused(tmp_path: Path) -> None:
    runner = small()
    assert file_of(runner.trial.store.read()).digest == runner.trial.file.digest
    runner.trial.store.redact([0])
    for entries in (list(runner.trial.store.read()), []):
        with pytest.raises(LogError, match="event 0: it is not the beginning of a trial"):
            export(entries, tmp_path / "walk")
    assert not (tmp_path / "walk").exists()


def test_a_damaged_log_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    entries = list(small().trial.store.read())
    del entries[3]
    with pytest.raises(LogError, match="event 3 is missing"):
        export(entries, tmp_path / "walk")
    assert not (tmp_path / "walk").exists()


def test_redacted_events_are_counted(tmp_path: Path) -> None:
    runner = small()
    seqs = runner.trial.decisions().filter(pl.col("policy") == "burn-in")["seq"].to_list()
    runner.trial.store.redact(seqs)
    export(runner.trial.store.read(), tmp_path, wcls=True)
    book = json.loads((tmp_path / "codebook.json").read_text())
    assert book["redacted"] == len(seqs) > 0
    assert summary(runner.trial.store.read(), runner.trial.file)["redacted"] == len(seqs)


def test_names_that_markdown_would_change_are_shown_as_they_are(tmp_path: Path) -> None:
    file = TrialFile.parse(
        '[trial]\nname = "w"\nactions = ["a|b", "*c*"]\nabsent = "a|b"\n[context]\n"x|<y>" = { values = ["`", "|"] }'
    )
    export(Trial.create(file, store="memory:", seed=1).store.read(), tmp_path)
    text = (tmp_path / "codebook.md").read_text()
    assert r"| raw\_x\|\<y\> | text |" in text
    assert r"Actions: a\|b, \*c\*." in text


# --- the summary -----------------------------------------------------------------------------------------------------


def test_the_summary_counts_what_happened(runner: Runner) -> None:
    trial, known = runner.trial, list(runner.notes.values())
    found = summary(trial.store.read(), trial.file)
    json.dumps(found, allow_nan=False)
    assert (found["name"], found["events"], found["head"]) == ("walk", trial.head.seq + 1, trial.head.chain.hex())
    assert found["version"] == trial.state.updates == 4
    assert found["updated"].startswith("2026-11-16T")
    assert (found["enrolled"], found["ended"]) == (6, {"terminated": 1, "withdrawn": 1})
    counts = Counter(one.policy for one in known)
    assert found["decisions"] == {"absent": len(_keys(runner)) - len(known), **counts}
    assert found["fallbacks"] == Counter(one.reason for one in known if one.policy == "fallback")
    for component in trial.file.context.components:
        told = [one.context[component.name] for one in known]
        missing = sum(value is None or component.read(value) is None for value in told)
        assert found["missing"][component.name] == missing / len(known)
    learned = [one for one in known if one.policy != "fallback"]
    rewards = found["rewards"]
    assert rewards["reported"] == sum(bool(one.reports) for one in learned)
    assert rewards["unused"] == sum(bool(one.reports) and not any(one.used) for one in learned)
    assert rewards["reported"] + rewards["open"] + rewards["missing"] == len(learned)
    assert min(rewards.values()) > 0
    assert found["notes"] == found["conflicts"] == 0


def test_the_summary_can_be_read(runner: Runner) -> None:
    trial = runner.trial
    found = summary(trial.store.read(), trial.file)
    lines = dict(line.split("  ", 1) for line in summary_text(found).splitlines())
    assert lines["head"].strip() == found["head"]
    assert "6 enrolled, 1 terminated, 1 withdrawn" in lines["participants"]
    assert f"mood {found['missing']['mood']:.1%}" in lines["missing"]
    assert f"{found['rewards']['open']} awaited" in lines["rewards"]


def test_asking_again_is_noted() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    for _ in range(3):
        trial.decide("a", 0, None)
    found = summary(trial.store.read(), trial.file)
    assert (found["notes"], found["decisions"]) == (2, {"burn-in": 1})
    assert found["rewards"] == {"reported": 0, "unused": 0, "open": 1, "missing": 0}


def test_ghosts_of_an_earlier_trial_do_not_count() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.writer.commit([{"kind": "enrol", "p": trial.secret.pseudonym("ghost"), "group": None, "ghost": True}])
    trial.given("ghost", 0, None, "prompt")
    trial.enrol("a")
    found = summary(trial.store.read(), trial.file)
    assert (found["enrolled"], found["decisions"], found["rewards"]["open"]) == (1, {}, 0)


def test_names_that_the_trial_file_does_not_declare_are_counted() -> None:
    trial = Trial.create(trial_file(), store="memory:", seed=1, clock=clock())
    trial.enrol("a")
    assert "not components" not in summary_text(summary(trial.store.read(), trial.file))
    for t in range(2):
        trial.decide("a", t, {"stepz": 1203})
    found = summary(trial.store.read(), trial.file)
    assert found["unknown"] == {"stepz": 2}
    assert "stepz 2; the trial file does not declare them" in summary_text(found)


def test_what_an_app_names_like_a_formula_is_no_formula_in_the_csv(tmp_path: Path) -> None:
    text = """
    [trial]
    name = "walk"
    actions = ["-nothing", "=prompt"]
    absent = "-nothing"
    [context]
    mood = { values = ["@low", "high"] }
    """
    trial = Trial.create(TrialFile.parse(text), store="memory:", seed=1)
    trial.enrol("maria")
    for t in range(6):
        trial.decide("maria", t, {"mood": "@low"})
    export(trial.store.read(), tmp_path / "out", wcls=True, treatment="=prompt")
    found = pl.read_csv(tmp_path / "out" / "decisions.csv")
    assert set(found["action"]) <= {"'-nothing", "'=prompt"}
    assert set(found["raw_mood"]) == {"'@low"}
    assert set(pl.read_parquet(tmp_path / "out" / "decisions.parquet")["raw_mood"]) == {"@low"}
    assert set(pl.read_csv(tmp_path / "out" / "wcls.csv")["raw_mood"]) == {"'@low"}
