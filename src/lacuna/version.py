"""The versions of lacuna and of its results."""

from __future__ import annotations

__version__ = "0.1.0"
"""The version of the package."""

RESULTS_VERSION = 5
"""Raised when the same run would give other figures; part of every run's name, so old results never mix with new."""
