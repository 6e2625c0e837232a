"""For every test and every example: a temporary folder to run in, and kernels compiled in peace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from numba import config

from lacuna.compiled import cache_folder

worker = os.environ.get("PYTEST_XDIST_WORKER")
if worker and "NUMBA_CACHE_DIR" not in os.environ:
    # Numba's cache is not safe when two processes fill it at once: one may be given code that the other compiled for
    # other types. So each process of a parallel run, with what it starts, has a folder of its own.
    os.environ["NUMBA_CACHE_DIR"] = config.CACHE_DIR = f"{cache_folder()}-{worker}"


@pytest.fixture(autouse=True)
def _in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that an example writes do not end up among the sources."""
    monkeypatch.chdir(tmp_path)
