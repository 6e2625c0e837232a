"""Our default against the paper's methods, as the Markdown tables of docs/evidence/default.md.

``python benchmarks/comparisons.py docs/results/claims.json``, a file that ``lacuna paper --full --honest`` writes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lacuna.quantities import number_text

YARDSTICKS = ("fully-observed", "mi-true-model", "qmdp-rewards")


def number(value: float) -> str:
    """Two digits after the point; three where rewards lie between 0 and 1."""
    return number_text(value, ".2f" if abs(value) >= 1 else ".3f")


def method(best: Mapping[str, Any]) -> str:
    """A method as the tables name it."""
    mixing = ", mixing" if best["p_shuffle"] else ""
    return f"`{best['method']}`" + (f", K = {best['K']}{mixing}" if best["K"] else "")


def line(one: Mapping[str, Any], *, world: bool) -> str:
    """A row: the best of the paper's, ours, the difference with its interval, the share of the gap, the yardsticks."""
    ahead, share = one["ahead"], one["share"]
    where = f"{one['world']}, " if world else ""
    cells = [
        f"{where}`{one['missingness']}`",
        f"{method(one['best'])}: {number(one['theirs']['estimate'])}",
        number(one["ours"]["estimate"]),
        f"{number(ahead['estimate'])} [{number(ahead['low'])}, {number(ahead['high'])}]",
        "–" if share is None else f"{number_text(100 * share['estimate'], '.0f')} %",
        *(number(found["estimate"]) if (found := one["yardsticks"].get(name)) else "–" for name in YARDSTICKS),
    ]
    return f"| {' | '.join(cells)} |"


def table(comparisons: Sequence[Mapping[str, Any]], *, world: bool) -> str:
    """A whole table."""
    names = ["missingness", "best of the paper's", "ours", "difference", "share of the gap to QMDP", "all observed"]
    head = f"| {' | '.join([*names, 'MI, true model', 'QMDP'])} |"
    return "\n".join([head, "|---" * 8 + "|", *(line(one, world=world) for one in comparisons)])


def main(path: Path) -> None:
    comparisons = json.loads(path.read_text())["comparisons"]
    for way, found in comparisons.items():
        print(f"{way}\n\n{table(found, world=way == 'untuned')}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
