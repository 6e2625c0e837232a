"""Frames a second while a replay of 2,000 steps is scrubbed and played in Chromium."""

from __future__ import annotations

import json
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import sync_playwright

from lacuna import replay

STEPS = 2000
SCRUB = """async () => {
  const slider = document.querySelector(".scrub"), most = Number(slider.max), times = [];
  for (let i = 0; i < 600; i++) {
    slider.value = Math.round((most * ((i * 7) % 600)) / 600);
    slider.dispatchEvent(new Event("input"));
    times.push(await new Promise(requestAnimationFrame));
  }
  return times;
}"""
PLAY = """async () => {
  const times = [];
  const player = [...players.values()][0];
  player.seek(0);
  player.setSpeed(16);
  player.play();
  for (let i = 0; i < 300; i++) times.push(await new Promise(requestAnimationFrame));
  return times;
}"""
WORK = """() => {
  const player = [...players.values()][0], start = performance.now();
  for (let i = 0; i < 500; i++) { player.at = (i * 37) % player.times.length; player.draw(); }
  return (performance.now() - start) / 500;
}"""


def rates(times: list[float]) -> dict[str, float]:
    """Mean frames a second, and that of the slowest twentieth of the frames."""
    gaps = sorted(b - a for a, b in pairwise(times[5:]))
    return {"mean": 1000 * len(gaps) / sum(gaps), "slowest 5 %": 1000 / gaps[int(0.95 * len(gaps))]}


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        options = ["--headless", "--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        for name, methods in (("one method", ["mi-synthetic"]), ("two methods", ["mi-synthetic", "last-observed"])):
            path = Path(folder) / f"{name}.html"
            size = replay("lake", "mcar:0.4", methods, at=[5000], steps=STEPS).save(path)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            page.wait_for_timeout(500)
            found[name] = {
                "kB": size / 1000,
                "milliseconds to draw": page.evaluate(WORK),
                "scrubbing": rates(page.evaluate(SCRUB)),
                "playing": rates(page.evaluate(PLAY)),
            }
            page.close()
        browser.close()
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
