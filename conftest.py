"""For every test and every example: a temporary folder to run in, and no declaration that outlives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import gymnasium
import pytest

from lacuna.missingness import MECHANISMS
from lacuna.worlds.registry import WORLDS

pytest_plugins = ["shared_browser"]


@pytest.fixture(autouse=True)
def _in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that an example writes do not end up among the sources."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _declarations_are_undone() -> Iterator[None]:
    """Worlds and mechanisms that an example declares are unknown to the next."""
    with patch.dict(WORLDS), patch.dict(MECHANISMS), patch.dict(gymnasium.registry):
        yield


# Where the site was built; their examples are those of the docstrings, which run where they stand.
collect_ignore_glob = ["docs/reference/*"]
