"""The numbers that a trial computes once, when it begins, with functions of the C library.

They are kept in the log as hexadecimal floats, and a replay takes them from there: so no C library can change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose, log
from typing import Any, NamedTuple

from lacuna.agent.settings import LATER, Rules
from lacuna.trial.file.trial_file import TrialFile
from lacuna.validation import shown

_SAME = 1e-9


class Numbers(NamedTuple):
    """The settings as kernels see them, and log c of the logistic rule, 0 for others."""

    rules: Rules
    log_c: float

    @classmethod
    def of(cls, file: TrialFile) -> Numbers:
        """Compute them."""
        logistic = file.rule.name == "logistic"
        return cls(file.settings.rules, log(file.rule.parameters[1]) if logistic else 0.0)

    @classmethod
    def read(cls, written: Any, file: TrialFile) -> Numbers:
        """Take them from a log, if they are those of this file but for the last digits."""
        own = cls.of(file).written
        if isinstance(written, Mapping):
            # Of settings that came later than the log.
            written = {name: own[name] for name in LATER} | dict(written)
        if not isinstance(written, Mapping) or set(written) != set(own):
            raise ValueError(f"the numbers of the trial are {shown(written)}; they must be those of {', '.join(own)}")
        found = {name: _read(name, written[name], value) for name, value in own.items()}
        log_c = found.pop("log_c")
        return cls(Rules(**found), log_c)

    @property
    def written(self) -> dict[str, Any]:
        """All of them by name, floats in hexadecimal."""
        named = self.rules._asdict() | {"log_c": self.log_c}
        return {name: value.hex() if isinstance(value, float) else int(value) for name, value in named.items()}


def _read(name: str, written: Any, own: Any) -> Any:
    if isinstance(own, int):
        if type(written) is not int or written != own:
            raise ValueError(f"{name} is {shown(written)} in the log and {own} by the trial file")
        return own
    try:
        value = float.fromhex(written)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {shown(written)} in the log; it must be a hexadecimal float") from None
    if not isclose(value, float.fromhex(own), rel_tol=_SAME):
        raise ValueError(f"{name} is {value} in the log and {float.fromhex(own)} by the trial file")
    return value
