"""What hides parts of the state: mechanisms as arrays, their labels, and mechanisms fitted to a log.

A file here that declares a mechanism (`registry.mechanism`) is found by itself.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from lacuna.missingness.constructors import after_actions, bursts, late, mcar, mcolor, mfog, none, whole
from lacuna.missingness.empirical import by_seen, pattern_shares
from lacuna.missingness.label import Classification, Label
from lacuna.missingness.mechanism import Mechanism, RateBy
from lacuna.missingness.rates import by_component, by_state, by_true_state
from lacuna.missingness.self_report import self_report
from lacuna.missingness.texts import MECHANISMS, parse

__all__ = [
    "MECHANISMS",
    "Classification",
    "Label",
    "Mechanism",
    "RateBy",
    "after_actions",
    "bursts",
    "by_component",
    "by_seen",
    "by_state",
    "by_true_state",
    "late",
    "mcar",
    "mcolor",
    "mfog",
    "none",
    "parse",
    "pattern_shares",
    "self_report",
    "whole",
]

for _found in iter_modules(__path__, f"{__name__}."):
    import_module(_found.name)
