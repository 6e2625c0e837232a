r"""Formulas as text, turned into MathML, which browsers draw without any help from the network, or into plain Unicode.

The notation: Unicode letters and signs as they are; ``_{…}`` and ``^{…}`` for sub- and superscripts; ``\frac{…}{…}``;
``\sqrt{…}``; ``\sum_{…}^{…}``; words in double quotes stay upright; a letter followed by a combining accent carries it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

_SIGN = re.compile(r'\\[a-z]+|"[^"]*"|[0-9]+(?:[.,][0-9]+)*|[A-Za-zΑ-Ωα-ω?]\u0302|[A-Za-zΑ-Ωα-ω?]\u0303|\s+|.')
_ACCENTS = "\u0302\u0303"
_OPERATORS = set("=<>+−-·×/≤≥≠→≈,|∞()[]∈⟂:!;…←")
_CLOSING = {"(": ")", "[": "]"}
_RAISED = str.maketrans("0123456789+−-()nKtkj", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿᴷᵗᵏʲ")


@dataclass(frozen=True)
class _Node:
    kind: str
    text: str = ""
    parts: tuple[_Node, ...] = ()


class _Reader:
    """Reads one formula into a tree."""

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

    def row(self, end: str) -> _Node:
        parts: list[_Node] = []
        while self.peek() != end:
            parts.append(self.scripted())
        if end:
            self.take()
        return parts[0] if len(parts) == 1 else _Node("row", parts=tuple(parts))

    def group(self) -> _Node:
        r"""What follows ``\frac``, ``_`` and the like: something in braces, or one atom."""
        if self.peek() == "{":
            self.take()
            return self.row("}")
        return self.atom()

    def scripted(self) -> _Node:
        base, below, above = self.atom(), None, None
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                below = self.group()
            else:
                above = self.group()
        if below and above:
            return _Node("both", parts=(base, below, above))
        if below or above:
            return _Node("below" if below else "above", parts=(base, below or above or base))
        return base

    def atom(self) -> _Node:
        sign = self.take()
        if sign == "{":
            return self.row("}")
        if sign in _CLOSING:
            # What stands in brackets is one thing, so that an exponent belongs to all of it.
            inside = self.row(_CLOSING[sign])
            return _Node("row", parts=(_Node("operator", sign), inside, _Node("operator", _CLOSING[sign])))
        if sign == r"\frac":
            return _Node("frac", parts=(self.group(), self.group()))
        if sign == r"\sqrt":
            return _Node("sqrt", parts=(self.group(),))
        if sign == r"\sum":
            return _Node("sum", "Σ")
        if sign.startswith("\\") or sign in ("_", "^", "}"):
            raise ValueError(f"the formula {self.text!r} has {sign!r} where it means nothing")
        if sign.startswith('"'):
            return _Node("words", sign[1:-1])
        if sign[0].isdigit():
            return _Node("number", sign)
        if len(sign) == 2 and sign[1] in _ACCENTS:
            return _Node("accent", sign)
        return _Node("operator" if sign in _OPERATORS else "letter", sign)


def _tree(text: str) -> _Node:
    return _Reader(text).row("")


def to_mathml(text: str, *, block: bool = True) -> str:
    r"""Give a formula as MathML.

    Examples
    --------
    >>> to_mathml(r"\frac{1}{n}", block=False)
    '<math><mfrac><mn>1</mn><mi>n</mi></mfrac></math>'
    """
    opening = '<math display="block">' if block else "<math>"
    return f"{opening}{_markup(_tree(text))}</math>"


def _markup(node: _Node) -> str:
    inside = [_markup(part) for part in node.parts]
    match node.kind:
        case "row":
            padded = (_padded(part, text) for part, text in zip(node.parts, inside, strict=True))
            return f"<mrow>{''.join(padded)}</mrow>"
        case "frac" | "sqrt":
            return f"<m{node.kind}>{''.join(inside)}</m{node.kind}>"
        case "below" | "above" | "both":
            return _scripts(node, inside)
        case "accent":
            return f'<mi style="font-style: italic">{escape(node.text)}</mi>'
        case "words":
            return f"<mtext>{escape(node.text)}</mtext>"
        case "number":
            return f"<mn>{node.text}</mn>"
        case "letter":
            # 𝔼 and 𝕍 are upright by nature; a lone letter is set in italics.
            return f"<mi>{escape(node.text)}</mi>"
        case _:
            return f"<mo>{escape(node.text)}</mo>"


def _padded(node: _Node, text: str) -> str:
    """Words between formulas need spaces around them, which MathML leaves out."""
    return (
        text.replace("<mtext>", "<mtext>\u00a0").replace("</mtext>", "\u00a0</mtext>") if node.kind == "words" else text
    )


def _scripts(node: _Node, inside: list[str]) -> str:
    over = node.parts[0].kind == "sum"
    name = {"below": "munder" if over else "msub", "above": "mover" if over else "msup"}.get(
        node.kind, "munderover" if over else "msubsup"
    )
    return f"<{name}>{''.join(inside)}</{name}>"


def to_text(text: str) -> str:
    r"""Give a formula as plain Unicode text.

    Examples
    --------
    >>> to_text(r"1 + \frac{(1 − p_o)^2}{2p_o − 1}")
    '1 + (1 − p_o)²/(2p_o − 1)'
    """
    spaced = re.sub(r"\s+", " ", _plain(_tree(text))).strip()
    spaced = re.sub(r"([(\[|→]) ?([−+]) ", r"\1\2", spaced).replace("→−", "→ −")
    return re.sub(r"\s*\|\s*", " | ", re.sub(r" ([,;])", r"\1", spaced)).replace("( ", "(")


def _plain(node: _Node) -> str:
    match node.kind:
        case "row":
            return _in_a_row(node.parts)
        case "frac":
            return "/".join(_in_brackets(part) for part in node.parts)
        case "sqrt":
            return f"√{_in_brackets(node.parts[0])}"
        case "below" | "above" | "both":
            base, *scripts = (_plain(part) for part in node.parts)
            if node.kind != "above":
                below = scripts[0].replace(", ", ",")
                base += f"_({below})" if " " in below else f"_{below}"
            return base if node.kind == "below" else base + _raise(scripts[-1])
        case "operator" if node.text in "=<>+−≤≥≠→≈≠∈⟂←":
            return f" {node.text} "
        case "operator" if node.text in ",;":
            return f"{node.text} "
        case _:
            return node.text


def _in_a_row(parts: tuple[_Node, ...]) -> str:
    """Parts side by side, with a space where an index or a sum would run into the next letter."""
    texts = [f" {part.text} " if part.kind == "words" else _plain(part) for part in parts]
    for i, part in enumerate(parts[:-1]):
        if part.kind in ("below", "above", "both") and texts[i + 1][:1].isalnum():
            texts[i] += " "
    return "".join(texts)


def _in_brackets(node: _Node) -> str:
    """Brackets where a quotient needs them."""
    text = _plain(node)
    simple = node.kind != "row" or not any(sign in text for sign in "+−-·/ ")
    return text if simple or _one_bracket(text) else f"({text})"


def _one_bracket(text: str) -> bool:
    """Whether the first bracket closes at the very end, or the text is a bracket with an exponent."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0:
            return text[0] in "([" and all(rest in "⁰¹²³⁴⁵⁶⁷⁸⁹" for rest in text[i + 1 :])
    return False


def _raise(text: str) -> str:
    raised = text.translate(_RAISED)
    return raised if len(text) == 1 and raised != text else f"^({text})" if len(text) > 1 else f"^{text}"


def to_html(text: str) -> str:
    """Give prose as HTML: indices and exponents lowered and raised, `words in ticks` as code.

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
