"""Gymnasium wrappers: what an agent sees of an environment, factored, cut into bins, late, noisy, hidden or imputed."""

from __future__ import annotations

from lacuna.wrappers.binned import BinnedObservation
from lacuna.wrappers.carried import CarriedObservation
from lacuna.wrappers.delayed import DelayedObservation
from lacuna.wrappers.factored import FactoredObservation
from lacuna.wrappers.imputed import ImputedObservation
from lacuna.wrappers.missing import MissingObservation
from lacuna.wrappers.noisy import NoisyObservation
from lacuna.wrappers.vector import VectorMissingObservation

__all__ = [
    "BinnedObservation",
    "CarriedObservation",
    "DelayedObservation",
    "FactoredObservation",
    "ImputedObservation",
    "MissingObservation",
    "NoisyObservation",
    "VectorMissingObservation",
]
