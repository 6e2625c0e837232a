"""The agent: all that one learner is. Methods and settings, memory and file, votes, models, the verbs of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lacuna.exports import exported

if TYPE_CHECKING:
    from lacuna.agent.memory import blank_memory as blank_memory
    from lacuna.agent.methods import NAMED as NAMED
    from lacuna.agent.methods import method_named as method_named
    from lacuna.agent.qlearning import update_apart as update_apart
    from lacuna.agent.qlearning import update_together as update_together
    from lacuna.agent.settings import SETTINGS as SETTINGS
else:
    __all__, __getattr__, __dir__ = exported(__name__)
