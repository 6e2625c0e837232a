"""Which tests are slow by nature; one browser for all that open a page, and one sentence about those that could not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import pytest
import typer.main

from patience import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No test asserts a time. The environment of Stable-Baselines3 has no Hypothesis, and reads this file all the same.
with suppress(ImportError):
    from hypothesis import settings

    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def _one_tree_of_commands() -> Iterator[None]:
    """Typer builds the tree of all commands at each call, which takes longer than most calls; here, once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        yield


NO_BROWSER = "they open a page, and there is no browser here that starts: apt-get install chromium libatomic1"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window. Playwright runs once in a process, so no test starts a browser of its own."""
    chromium = shutil.which("chromium")
    driver = [sys.executable, "-m", "playwright", "--version"]  # a program of its own, which needs libatomic
    if chromium is None or subprocess.run(driver, check=False, capture_output=True).returncode:
        if os.environ.get("CI") == "true":
            pytest.fail(NO_BROWSER, pytrace=False)
        pytest.skip(NO_BROWSER)
    # Here, as the environment of Stable-Baselines3 has no Playwright and reads this file all the same.
    from playwright.sync_api import expect, sync_playwright

    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        yield browser
        browser.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what opens a page, and what runs on a machine of its own."""
    for item in items:
        if {"browser", "machine"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once for all tests that were skipped why they were."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, n in reasons.items():
        terminalreporter.write_line(f"{n} tests skipped: {reason.removeprefix('Skipped: ')}")
