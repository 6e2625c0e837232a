"""What hides parts of the state: mechanisms as arrays, their labels, and the Gymnasium wrapper."""

from __future__ import annotations

from lacuna.missingness.constructors import (
    after_actions,
    bursts,
    by_component,
    by_state,
    by_true_state,
    mcar,
    mcolor,
    mfog,
    none,
    whole,
)
from lacuna.missingness.label import Label, Verdict
from lacuna.missingness.mechanism import Hiding, Mechanism, RateBy, hide
from lacuna.missingness.registry import MECHANISMS, parse
from lacuna.missingness.wrapper import MissingObservation

__all__ = [
    "MECHANISMS",
    "Hiding",
    "Label",
    "Mechanism",
    "MissingObservation",
    "RateBy",
    "Verdict",
    "after_actions",
    "bursts",
    "by_component",
    "by_state",
    "by_true_state",
    "hide",
    "mcar",
    "mcolor",
    "mfog",
    "none",
    "parse",
    "whole",
]
