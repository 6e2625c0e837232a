"""TOML that would keep the parser busy is refused before it is parsed; every other text means what it meant."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from commands import caller, is_one_sentence
from lacuna.study.spec import Study, StudyError
from lacuna.toml import MOST_PARTS, parse_toml
from lacuna.trial.file.trial_file import TrialFile, TrialFileError

DOTS = ".".join(["a"] * 100_000)
LONG = [
    f"{DOTS} = 1", f"[{DOTS}]", f"[[{DOTS}]]", f"x = {{{DOTS} = 1}}", f"x = 1\n{DOTS.replace('.', ' . ')} = 1",
    DOTS.replace("a", '"a b"') + " = 1", DOTS.replace("a", "'a.b'") + " = 1", f'x = """\\""" {{""" #"\n{DOTS} = 1',
]  # fmt: skip
FINE = [
    f'map = "{DOTS}"', f"map = '{DOTS}'", f'map = """\n{DOTS}\n"""', f"map = '''\n{DOTS}'''", f"# {DOTS}\nx = 1",
    ".".join(["a"] * MOST_PARTS) + " = 1", 'x = """a"""""\ny = 1.5', 'x = "\\"" # "\ny = "#"', '"a.b".c = 1979-05-27',
]  # fmt: skip


@pytest.mark.parametrize("text", LONG)
def test_a_key_of_a_hundred_thousand_parts_is_refused_with_its_line(text: str) -> None:
    line = text[: text.index("a.a") if "a.a" in text else len(text)].count("\n") + 1
    with pytest.raises(ValueError, match=rf"a key in line \d+ has more than {MOST_PARTS} parts") as refused:
        parse_toml(text)
    assert "a.a" not in text or f"in line {line} " in str(refused.value)


@pytest.mark.parametrize("text", FINE)
def test_dots_in_texts_and_comments_count_for_nothing(text: str) -> None:
    assert parse_toml(text) == tomllib.loads(text)


def test_a_trial_file_and_a_study_file_of_dots_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TrialFileError, match="is not valid TOML: a key in line 1"):
        TrialFile.parse(LONG[0])
    with pytest.raises(StudyError, match="is not valid TOML: a key in line 1"):
        Study.parse(LONG[0])
    (tmp_path / "dots.toml").write_text(LONG[0])
    answer = caller(capsys, monkeypatch)("study", "plan", tmp_path / "dots.toml")
    assert answer.code == 2
    assert is_one_sentence(answer.err)
