"""How long tests wait for a browser."""

from __future__ import annotations

PATIENCE = 120_000.0
"""Milliseconds until a page counts as stuck: a busy machine draws slowly, and that is no failure."""
