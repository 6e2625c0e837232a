"""Make the picture of a study report, docs/pictures/report.png: run a small study, report it, open the page, look.

``python reference/screenshot.py`` needs Chromium (``apt-get install chromium libatomic1``) and takes a minute. No test
compares the picture: every browser draws letters a little differently.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from lacuna.cli.main import app

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "report.png"

STUDY = """
name = "rates"
steps = 5000
trials = 8
curve_points = 25
missingness = ["mcar:0.0", "mcar:0.2", "mcar:0.4", "mcar:0.6"]
worlds = [{name = "lake"}]
methods = [{name = "mi-planned"}, {name = "mi-synthetic"}, {name = "last-observed"}, {name = "missing-as-state"}]
"""


def main() -> None:
    """Make the picture."""
    with TemporaryDirectory() as folder:
        study, results, page = (str(Path(folder, name)) for name in ("rates.toml", "results", "report.html"))
        Path(study).write_text(STUDY)
        for words in (["run", study, "--out", results], ["report", results, "--out", page]):
            app(["study", *words], standalone_mode=False)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1000, "height": 1180})
            tab.goto(Path(page).as_uri())
            tab.wait_for_selector("figure.chart[data-drawn]")
            tab.screenshot(path=PICTURE)
            browser.close()


if __name__ == "__main__":
    main()
