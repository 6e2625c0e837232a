"""For every test and every example: a temporary folder to run in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that an example writes do not end up among the sources."""
    monkeypatch.chdir(tmp_path)
