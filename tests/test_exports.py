"""What lacuna and its rooms export: said once, imported when it is used, and never hidden by a module."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import lacuna
from lacuna.exports import exported

PACKAGES = ["lacuna", *(f"lacuna.{found.name}" for found in iter_modules(lacuna.__path__) if found.ispkg)]


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_there_and_no_module_of_the_package_has_the_same(package: str) -> None:
    module = import_module(package)
    names = getattr(module, "__all__", ())
    assert set(names) <= set(dir(module))
    assert len(PACKAGES) == 12
    # Once a module is imported, its package has it under its name, whatever else the package exports.
    for found in iter_modules(module.__path__):
        if found.name in names:
            import_module(f"{package}.{found.name}")
    assert [name for name in names if inspect.ismodule(getattr(module, name))] == []


def test_no_name_is_exported_by_two_rooms() -> None:
    rooms = PACKAGES[1:]
    names = [name for room in rooms for name in getattr(import_module(room), "__all__", ())]
    assert {name for name in names if names.count(name) > 1} == set()


def test_every_function_that_a_room_exports_has_an_example() -> None:
    rooms = [import_module(package) for package in PACKAGES[1:]]
    functions = {name: getattr(room, name) for room in rooms for name in getattr(room, "__all__", ())}
    # A kernel is an object of the compiler, which keeps the function.
    functions = {name: one for name, one in functions.items() if inspect.isfunction(getattr(one, "py_func", one))}
    assert len(functions) > 60
    assert [name for name, value in functions.items() if ">>>" not in str(value.__doc__)] == []


def test_one_name_is_imported_without_the_rest_of_its_room() -> None:
    told = in_a_new_process(
        "import sys; from lacuna.report import BLUE; from lacuna.cli import progress\n"
        "print(BLUE, sorted({'altair', 'polars', 'scipy', 'lacuna.report.page', 'lacuna.cli.main'} & set(sys.modules)))"
    )
    assert told == "#0072b2 []"


def test_importing_lacuna_compiles_nothing_and_imports_no_room_that_only_clients_use() -> None:
    told = in_a_new_process(
        "import sys, lacuna\n"
        "print([name for name in sys.modules if name.startswith(('lacuna.report', 'lacuna.study', 'lacuna.trial'))])"
    )
    assert told == "[]"


def test_a_package_exports_what_type_checkers_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(
        "from typing import TYPE_CHECKING\nfrom lacuna.exports import exported\nfrom math import pi as pi, tau\n"
        "if TYPE_CHECKING:\n    from string import digits as digits, hexdigits\n    from no_such_module import x as x\n"
        "else:\n    __all__, __getattr__, __dir__ = exported(__name__)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shop = import_module("shop")
    assert shop.__all__ == ["digits", "pi", "x"]
    assert shop.digits == "0123456789"
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'hexdigits'"):
        _ = shop.hexdigits
    assert exported("shop")[0] == shop.__all__


def test_a_name_that_needs_an_extra_says_which(tmp_path: Path) -> None:
    (tmp_path / "polars.py").write_text("raise ModuleNotFoundError(name='polars')\n")
    told = in_a_new_process(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "try:\n    from lacuna.study import thinned\nexcept ImportError as error:\n    print(error)"
    )
    assert told == "this needs polars, which comes with an extra: pip install 'lacuna[study]'"
