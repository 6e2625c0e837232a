"""Wrappers that change what is shown of a Gymnasium environment: factored, cut into bins, late, or noisy."""

from __future__ import annotations

from lacuna.observing.binned import BinnedObservation
from lacuna.observing.binning import Binning
from lacuna.observing.delayed import DelayedObservation
from lacuna.observing.factored import FactoredObservation
from lacuna.observing.noisy import NoisyObservation

__all__ = ["BinnedObservation", "Binning", "DelayedObservation", "FactoredObservation", "NoisyObservation"]
