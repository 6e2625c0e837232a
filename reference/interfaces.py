"""Interfaces of modules as Markdown: signatures and docstrings in NumPy's style."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ForwardRef

WIDTH = 100
TERMS = ("Parameters", "Attributes", "Raises", "Returns", "Figures", "Columns")
"""Sections of a docstring that are lists of terms."""

MACHINERY = frozenset({"dynamics", "entry", "hiding", "layout", "learner", "make_room", "to_parts", "took_steps"})
"""Members that serve the compiled loop and are of no use to users."""

Links = Mapping[str, str]
"""Where each public name is described."""


def entry(heading: str, module: str, name: str, links: Links) -> str:
    """Describe a class, a function or a constant."""
    value = getattr(import_module(module), name)
    if inspect.isclass(value):
        return f"## `{heading}`\n\n{class_text(name, value, links)}"
    parts = [code(signature_text(name, value))] if inspect.isfunction(value) else []
    return "\n\n".join([f"## `{heading}`", *parts, docstring(doc_of(module, name), links)])


def class_text(name: str, value: type, links: Links) -> str:
    """Describe a class with its fields, methods and properties."""
    parts = [code(signature_text(name, value)), docstring(inspect.getdoc(value) or "", links)]
    documented = [f"- `{field}`: {inline(text, links)}" for field, text in field_docs(value).items() if text]
    parts += ["\n".join(documented)] if documented else []
    for method, member in vars(value).items():
        plain = getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", member)
        text = inspect.getdoc(plain)
        if method.startswith("_") or method in MACHINERY or not text or not inspect.isfunction(inspect.unwrap(plain)):
            continue
        called = inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
        bound = not isinstance(member, staticmethod)
        head = [code(signature_text(f"{name}.{method}", plain, bound=bound))] if called else []
        parts += [f"### `{name}.{method}`", *head, docstring(text, links)]
    return "\n\n".join(parts)


def doc_of(module: str, name: str) -> str:
    """Give the docstring of a public name; that of a constant is the string that follows it where it is defined."""
    value = getattr(import_module(module), name)
    if inspect.isclass(value) or inspect.isfunction(value):
        return inspect.getdoc(value) or ""
    home = next((one for one in imported_from(module, name) if own_docs(one).get(name)), None)
    return own_docs(home)[name] if home else ""


def imported_from(module: str, name: str) -> list[str]:
    """Give the modules that a name may be defined in, this one first."""
    found = [module]
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and node.module and any(one.name == name for one in node.names):
            found += imported_from(node.module, name)
    return found


# --- signatures ------------------------------------------------------------------------------------------------------


def signature_text(name: str, value: Any, *, bound: bool = False) -> str:
    """Give a signature as code, on one line if it fits; `bound` leaves out the first parameter."""
    if inspect.isclass(value) and (issubclass(value, BaseException | Enum) or getattr(value, "_is_protocol", False)):
        return f"class {name}"
    found = inspect.signature(value)
    given = list(found.parameters.values())[int(bound) :]
    words = [parameter_text(one) for one in given]
    by_name = [i for i, one in enumerate(given) if one.kind == one.KEYWORD_ONLY]
    if by_name:
        words.insert(by_name[0], "*")
    gives = found.return_annotation
    shown = "" if inspect.isclass(value) or gives is found.empty else f" -> {annotation_text(gives)}"
    line = f"{name}({', '.join(words)}){shown}"
    return line if len(line) <= WIDTH else "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){shown}"])


def parameter_text(parameter: inspect.Parameter) -> str:
    """Give a parameter with its type and its default."""
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}
    text = stars.get(parameter.kind.name, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {annotation_text(parameter.annotation)}"
    return text if parameter.default is parameter.empty else f"{text} = {default_text(parameter.default)}"


def annotation_text(annotation: Any) -> str:
    """Give a type as code."""
    # The fields of a NamedTuple hold a type that was written as text in this form.
    text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
    return text if isinstance(text, str) else inspect.formatannotation(text)


def default_text(value: Any) -> str:
    """Give a default as code, or three dots where that would be long."""
    text = str(value) if isinstance(value, Enum) else repr(value)
    if isinstance(value, Path):
        # The name of its class differs between systems.
        text = f"Path({str(value)!r})"
    return "…" if len(text) > 50 or text.startswith("<") else text


# --- what stands in a file -------------------------------------------------------------------------------------------


@cache
def tree_of(module: str) -> ast.Module:
    """Give the syntax tree of a module."""
    return ast.parse(inspect.getsource(import_module(module)))


def following_docs(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Give the names that a body assigns, each with the string that follows it, empty if none does."""
    found, last = {}, ""
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name):
            last = target.id
            found[last] = ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            found[last], last = inspect.cleandoc(str(node.value.value)), ""
        else:
            last = ""
    return found


@cache
def own_docs(module: str) -> dict[str, str]:
    """Give what a module defines, in its order: functions, classes, and constants that have a docstring."""
    constants, found = following_docs(tree_of(module).body), {}
    for node in tree_of(module).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = ast.get_docstring(node) or ""
        elif isinstance(target, ast.Name) and constants[target.id]:
            found[target.id] = constants[target.id]
    return found


def public_names(module: str) -> tuple[str, ...]:
    """Give the names that a module exports, or else those it defines."""
    exported = getattr(import_module(module), "__all__", None)
    return tuple(exported or (name for name in own_docs(module) if not name.startswith("_")))


def field_docs(value: type) -> dict[str, str]:
    """Give the fields of a class, each with the string that follows it."""
    found = [node for node in tree_of(value.__module__).body if isinstance(node, ast.ClassDef)]
    return next((following_docs(node.body) for node in found if node.name == value.__name__), {})


def first_line(path: Path) -> str:
    """Give the first paragraph of a file's docstring on one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return inline(" ".join(text.split("\n\n")[0].split()), {})


# --- from docstrings to Markdown -------------------------------------------------------------------------------------


def sections(text: str) -> dict[str, str]:
    """Give the sections of a docstring by their titles; the text before the first has none."""
    pieces = re.split(r"^(\S[^\n]*)\n-{3,}$", text, flags=re.MULTILINE)
    return {"": pieces[0].strip("\n")} | {
        title: body.strip("\n") for title, body in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def items(body: str) -> dict[str, str]:
    """Give the terms of a section, each with the indented text below it: on one line, unless it holds a list."""
    pieces = re.split(r"^(\S[^\n]*)$", body, flags=re.MULTILINE)
    return {term: folded(text) for term, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def folded(text: str) -> str:
    """Give an indented text on one line; each item of a list in it gets a line, indented to stand below a term."""
    found, listed = "", False
    for block in re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n")):
        if block.startswith("- "):
            found += "".join(f"\n    - {' '.join(item.split())}" for item in re.split(r"^- ", block, flags=re.M)[1:])
            listed = True
        else:
            found += ("\n\n    " if listed else " ") + " ".join(block.split())
    return found.strip()


def docstring(text: str, links: Links) -> str:
    """Give a docstring as Markdown."""
    parts = []
    for title, body in sections(text).items():
        head = f"**{title}**\n\n" if title else ""
        if title in TERMS:
            parts.append(head + "\n".join(f"- `{term}`: {inline(words, links)}" for term, words in items(body).items()))
        elif body:
            parts.append(head + "\n\n".join(block_text(block, links) for block in re.split(r"\n\s*\n", body)))
    return "\n\n".join(parts)


def block_text(block: str, links: Links) -> str:
    """Give a paragraph, an example or a formula as Markdown."""
    if block.startswith(">>>"):
        return code(block)
    if all(line.startswith("    ") for line in block.splitlines()):
        return f"```\n{textwrap.dedent(block)}\n```"
    return inline(block, links)


def inline(text: str, links: Links) -> str:
    """Give text as Markdown: literals in single backticks, public names as links."""
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    return re.sub(r"(?<![\[`])`([A-Za-z_]\w*)`(?![`\]])", lambda found: link(found.group(1), links), text)


def link(name: str, links: Links) -> str:
    """Give a name as code, with a link to where it is described if it is public."""
    return f"[`{name}`]({links[name]})" if name in links else f"`{name}`"


def anchor(heading: str) -> str:
    """Give the anchor that Markdown makes of a heading."""
    return re.sub(r"[^\w-]", "", heading.lower())


def code(text: str) -> str:
    """Give code as a block."""
    return f"```python\n{text}\n```"
