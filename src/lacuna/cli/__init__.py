"""The command: every command and its options. Heavy imports happen inside the commands that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lacuna.exports import exported

if TYPE_CHECKING:
    from lacuna.cli.options import page_to_write as page_to_write
    from lacuna.terminal import progress as progress
else:
    __all__, __getattr__, __dir__ = exported(__name__)
