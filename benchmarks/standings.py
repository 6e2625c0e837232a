"""Where our default stands, as the Markdown tables of docs/choosing.md.

``python benchmarks/standings.py docs/results/claims.json``, a file that ``lacuna paper --full --honest`` writes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

YARDSTICKS = ("fully-observed", "mi-true-model", "qmdp-rewards")


def number(value: float) -> str:
    """Two digits after the point; three where rewards lie between 0 and 1."""
    return f"{value:.{2 if abs(value) >= 1 else 3}f}".replace("-", "−")


def method(best: Mapping[str, Any]) -> str:
    """A method as the tables name it."""
    mixing = ", mixing" if best["p_shuffle"] else ""
    return f"`{best['method']}`" + (f", K = {best['K']}{mixing}" if best["K"] else "")


def line(standing: Mapping[str, Any], *, world: bool) -> str:
    """A row: the best of the paper's, ours, the difference with its interval, the share of the gap, the yardsticks."""
    ahead, share = standing["ahead"], standing["share"]
    where = f"{standing['world']}, " if world else ""
    cells = [
        f"{where}`{standing['missingness']}`",
        f"{method(standing['best'])}: {number(standing['theirs']['estimate'])}",
        number(standing["ours"]["estimate"]),
        f"{number(ahead['estimate'])} [{number(ahead['low'])}, {number(ahead['high'])}]",
        "–" if share is None else f"{100 * share['estimate']:.0f} %".replace("-", "−"),
        *(number(found["estimate"]) if (found := standing["yardsticks"].get(name)) else "–" for name in YARDSTICKS),
    ]
    return f"| {' | '.join(cells)} |"


def table(standings: Sequence[Mapping[str, Any]], *, world: bool) -> str:
    """A whole table."""
    names = ["missingness", "best of the paper's", "ours", "difference", "share of the gap to QMDP", "all observed"]
    head = f"| {' | '.join([*names, 'MI, true model', 'QMDP'])} |"
    return "\n".join([head, "|---" * 8 + "|", *(line(standing, world=world) for standing in standings)])


def main(path: Path) -> None:
    standings = json.loads(path.read_text())["standings"]
    for way, found in standings.items():
        print(f"{way}\n\n{table(found, world=way == 'untuned')}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
