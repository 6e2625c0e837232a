"""Quantities as text: a count with its noun, a time in a suitable unit, a number with its sign."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """Return a count and its noun, in the singular or the plural.

    Examples
    --------
    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def duration(seconds: float) -> str:
    """Say how long, in a fitting unit.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.024, 0.97, 1.4, 119.6, 7300)]
    ['0.024 seconds', '1 second', '1 second', '2 minutes', '2.0 hours']
    """
    if 0 < seconds < 0.95:
        return f"{seconds:.2g} seconds"
    if seconds < 119.5:
        return counted(round(seconds), "second")
    return counted(round(seconds / 60), "minute") if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def number_text(value: float, form: str) -> str:
    """Write a number in a given form, with a minus sign rather than a hyphen, and without one before 0.

    Examples
    --------
    >>> number_text(-1.5, ".2f"), number_text(-0.001, ".2f"), number_text(-12345.6, ",.0f")
    ('−1.50', '0.00', '−12,346')
    """
    text = format(value, form)
    return text.replace("-", "−") if text.strip("-0.,%") else text.removeprefix("-")
