"""How fast a step is, by method and size, next to a hand-written C++ loop doing the same work."""

from lacuna.bench.measure import measure, show

__all__ = ["measure", "show"]
