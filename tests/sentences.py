"""What every error message of the product must be."""

from __future__ import annotations


def one_sentence(error: BaseException) -> str:
    """The message, if people can read it."""
    message = str(error)
    assert message
    assert "\n" not in message
    assert "numba" not in message.lower()
    return message
