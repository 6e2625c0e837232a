r"""Formulas as text, turned into MathML, which browsers draw without any help from the network.

The notation: Unicode letters and signs as they are; ``_{…}`` and ``^{…}`` for sub- and superscripts; ``\frac{…}{…}``;
``\sum_{…}^{…}``; words in double quotes stay upright; a letter followed by a combining accent carries it.
"""

from __future__ import annotations

import re
from html import escape

_LETTER = "[A-Za-zΑ-Ωα-ω?]"
_SIGN = re.compile(rf'\\[a-z]+|"[^"]*"|[0-9]+(?:[.,][0-9]+)*|{_LETTER}\u0302|{_LETTER}\u0303|\s+|.')
_OPERATORS = set("=<>+−-·×/≤≥≠→≈,|∞()[]∈⟂:!;…←")
_CLOSING = {"(": ")", "[": "]"}
_SUM = "<mo>Σ</mo>"


class _Reader:
    """Reads one formula from left to right; every method takes signs and gives their markup."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.signs = [sign for sign in _SIGN.findall(text) if not sign.isspace()]
        self.at = 0

    def peek(self) -> str:
        return self.signs[self.at] if self.at < len(self.signs) else ""

    def take(self) -> str:
        sign = self.peek()
        if not sign:
            raise ValueError(f"the formula {self.text!r} ends too early")
        self.at += 1
        return sign

    def row(self, end: str) -> str:
        parts: list[str] = []
        while self.peek() != end:
            parts.append(self.scripted())
        if end:
            self.take()
        return parts[0] if len(parts) == 1 else f"<mrow>{''.join(map(_padded, parts))}</mrow>"

    def group(self) -> str:
        r"""What follows ``\frac``, ``_`` and the like: something in braces, or one atom."""
        if self.peek() == "{":
            self.take()
            return self.row("}")
        return self.atom()

    def scripted(self) -> str:
        base, below, above = self.atom(), "", ""
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                below = self.group()
            else:
                above = self.group()
        if not below and not above:
            return base
        # The bounds of a sum stand below and above it, all others beside.
        under, over = ("under", "over") if base == _SUM else ("sub", "sup")
        name = f"m{under if below else ''}{over if above else ''}"
        return f"<{name}>{base}{below}{above}</{name}>"

    def atom(self) -> str:
        sign = self.take()
        if sign == "{":
            return self.row("}")
        if sign in _CLOSING:
            # What stands in brackets is one thing, so that an exponent belongs to all of it.
            return f"<mrow><mo>{sign}</mo>{self.row(_CLOSING[sign])}<mo>{_CLOSING[sign]}</mo></mrow>"
        if sign == r"\frac":
            return f"<mfrac>{self.group()}{self.group()}</mfrac>"
        if sign == r"\sum":
            return _SUM
        if sign.startswith("\\") or sign in ("_", "^", "}"):
            raise ValueError(f"the formula {self.text!r} has {sign!r} where it means nothing")
        if sign.startswith('"'):
            return f"<mtext>{escape(sign[1:-1])}</mtext>"
        if sign[0].isdigit():
            return f"<mn>{sign}</mn>"
        if len(sign) == 2:
            # With an accent it is two characters, which browsers would set upright.
            return f'<mi style="font-style: italic">{escape(sign)}</mi>'
        return f"<mo>{escape(sign)}</mo>" if sign in _OPERATORS else f"<mi>{escape(sign)}</mi>"


def _padded(part: str) -> str:
    """Words between formulas need spaces around them, which MathML leaves out."""
    words = part.removeprefix("<mtext>")
    return part if words == part else f"<mtext>\u00a0{words.removesuffix('</mtext>')}\u00a0</mtext>"


def to_mathml(text: str) -> str:
    r"""Return a formula as MathML.

    Examples
    --------
    >>> to_mathml(r"\frac{1}{n}")
    '<math display="block"><mfrac><mn>1</mn><mi>n</mi></mfrac></math>'
    """
    return f'<math display="block">{_Reader(text).row("")}</math>'


def to_html(text: str) -> str:
    """Return prose as HTML: indices and exponents lowered and raised, `words in ticks` as code.

    Examples
    --------
    >>> to_html("like t^(−p_o), by `lacuna`")
    'like t<sup>−p<sub>o</sub></sup>, by <code>lacuna</code>'
    """
    parts = escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else _lowered(part) for i, part in enumerate(parts))


def _lowered(text: str) -> str:
    text = re.sub(r"\^\(((?:[^()]|\([^()]*\))*)\)", r"<sup>\1</sup>", text)
    text = re.sub(r"(?<=[\w)\u0302\u0303])\^(\w)", r"<sup>\1</sup>", text)
    text = re.sub(r"_\{([^}]*)\}", r"<sub>\1</sub>", text)
    return re.sub(r"(?<=[^\W_])([\u0302\u0303]?)_([A-Za-z0-9]+(?:,[a-z]\b)*|\?(?:,[a-z]\b)?)", r"\1<sub>\2</sub>", text)
