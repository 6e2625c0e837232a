"""Compare the methods in Lake World under one kind of missingness: a table here, or a page to open.

    python examples/compare_methods.py --missingness mcar:0.4 --steps 50000 --trials 5 --page out/page.html

All methods see the same seeds, so they meet the same world and the same kind of loss. This is one setting; the paper's
study chooses among many.
"""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path
from typing import Any

from lacuna.measures import mean_and_error
from lacuna.methods import METHODS, Settings
from lacuna.trials import Problem, run_trials

CHOICES = [Settings(method.name) for method in METHODS.values()] + [
    Settings(method.name, K=1) for method in METHODS.values() if method.multiple
]
COLUMNS = {
    "mean_total_reward": "total reward per episode",
    "mean_water_steps": "water steps per episode",
    "mean_path_length": "path length",
    "episodes": "episodes completed",
    "open_steps": "steps in the open episode",
}
NOTE = (
    "One setting only: alpha 0.1, gamma 1, epsilon 0, the same for every method. The paper's study, in which every "
    "method is shown at its best of many settings, is not part of this version yet."
)
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 3rem auto; padding: 0 1rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: .4rem .8rem; border-bottom: 1px solid #ccc; text-align: right; white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
.note {{ background: #fff3cd; color: #333; padding: .8rem 1rem; }}
</style>
<h1>{title}</h1>
<p class="note"><strong>Not the paper's study yet.</strong> {note}</p>
<p>{about}</p>
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table></div>
<p>Mean over trials ± its standard error. Figures per episode count completed episodes only, so look at the open
episode too: a run that got stuck spends its steps there. A dash: no trial completed an episode.</p>
</html>
"""


def name(settings: Settings) -> str:
    return f"{settings.method}, K = {settings.K}" if settings.K else settings.method


def cell(rows: list[dict[str, Any]], figure: str) -> str:
    """Mean and standard error over the trials that have the figure."""
    values = [row[figure] for row in rows if row[figure] is not None]
    if not values:
        return "–"
    mean, error = mean_and_error(values)
    text = f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"
    return text if len(values) == len(rows) else f"{text} ({len(values)} of {len(rows)} trials)"


def html_row(tag: str, cells: list[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the methods in Lake World.")
    parser.add_argument("--missingness", default="mcar:0.4", help="as listed by `lacuna worlds`")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--page", type=Path, help="write the table as a page to this file too")
    options = parser.parse_args()

    problem = Problem.named("lake", options.missingness)
    about = (
        f"{options.trials} trials of {options.steps:,} steps, seeds 0 to {options.trials - 1}; "
        f"missingness {problem.mechanism.name} ({problem.mechanism.label})."
    )
    print(about, NOTE, sep="\n", end="\n\n")
    table = []
    for settings in CHOICES:
        rows = run_trials(problem, settings, steps=options.steps, seeds=range(options.trials))
        table.append([name(settings), *(cell(rows, figure) for figure in COLUMNS)])
        reward, _, _, episodes, _ = table[-1][1:]
        print(f"{name(settings):24} total reward per episode {reward:>16}   episodes completed {episodes}", flush=True)

    if options.page is not None:
        options.page.parent.mkdir(parents=True, exist_ok=True)
        body = "\n".join(f"<tr>{html_row('td', cells)}</tr>" for cells in table)
        page = PAGE.format(
            title="Methods in Lake World", note=escape(NOTE), about=escape(about),
            head=html_row("th", ["method", *COLUMNS.values()]), body=body,
        )  # fmt: skip
        options.page.write_text(page, encoding="utf-8")
        print(f"\nWrote {options.page}")


if __name__ == "__main__":
    main()
