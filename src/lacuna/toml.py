"""TOML from outside. A text that would keep the parser busy for minutes is refused before it is parsed."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MOST_PARTS = 32
"""Most parts of a dotted key: the parser's time grows with their square, and no key of ours has more than five."""

# A text that does not end is opaque to where the parser gives up. Nothing here looks at a sign twice.
_OPAQUE = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)' r"|'''.*?(?:'''|\Z)" r'|"(?:[^"\\\n]|\\.)*+"?' r"|'[^'\n]*+'?" r"|#[^\n]*+",
    re.DOTALL,
)
"""Texts in quotes, and comments: dots inside separate nothing."""
_DEEP = re.compile(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MOST_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    r"""Return the content of TOML, or raise a `ValueError` that says what is wrong and where.

    Examples
    --------
    >>> parse_toml('trial.update.every = "each"')
    {'trial': {'update': {'every': 'each'}}}
    >>> parse_toml("\n" + ".".join(["a"] * 100_000) + " = 1")
    Traceback (most recent call last):
    ValueError: a key in line 2 has more than 32 parts; that is nested too deep
    """
    # What is opaque keeps its lines, and stands for one part of a key.
    bare = _OPAQUE.sub(lambda found: "q" + "\n" * found[0].count("\n"), text)
    if deep := _DEEP.search(bare):
        line = bare.count("\n", 0, deep.start()) + 1
        raise ValueError(f"a key in line {line} has more than {MOST_PARTS} parts; that is nested too deep")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its lists or tables are nested too deep") from None
