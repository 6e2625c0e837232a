"""One run: an agent or a yardstick in a world, compiled or step by step, and measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lacuna.exports import exported

if TYPE_CHECKING:
    from lacuna.run.measures import standard_error as standard_error
    from lacuna.run.repetitions import EARLY_STEPS as EARLY_STEPS
    from lacuna.run.repetitions import threads as threads
else:
    __all__, __getattr__, __dir__ = exported(__name__)
