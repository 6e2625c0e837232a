"""The basis of all kernels: compilation, spaces, random numbers, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lacuna.exports import exported

if TYPE_CHECKING:
    from lacuna.kernels.compiled import kernel as kernel
else:
    __all__, __getattr__, __dir__ = exported(__name__)
