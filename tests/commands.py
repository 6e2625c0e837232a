"""The `lacuna` command called in this process, through its real entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from lacuna.cli import main as cli


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Answer]


def caller(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    def call(*words: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["lacuna", *map(str, words)])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        return Answer(int(code or 0), *capsys.readouterr())

    return call


def is_one_sentence(text: str) -> bool:
    return text.startswith("lacuna: ") and text.count("\n") == 1 and text.endswith("\n")
