"""Replay a trial from its log, and stop at the first difference."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from typing import Any

import numba
import numpy as np

from lacuna.trial.engine.snapshot import FORM
from lacuna.trial.engine.state import TrialState
from lacuna.trial.file.numbers import Numbers
from lacuna.trial.file.trial_file import TrialFile
from lacuna.trial.log.chained_log import (
    START,
    Entry,
    Head,
    LogError,
    check,
    check_all_but_form,
    checked,
    describe,
    encode,
)
from lacuna.trial.log.events import Form, begin_file
from lacuna.trial.log.keys import DrawsKey
from lacuna.validation import shown
from lacuna.version import RESULTS_VERSION, __version__

_EVERY = ("seq", "kind", "at")


class ReplayError(ValueError):
    """The log differs from what is computed from it.

    Attributes
    ----------
    seq : int
        Number of the first event that differs.
    """

    def __init__(self, message: str, seq: int) -> None:
        super().__init__(message)
        self.seq = seq


class RedactedError(ValueError):
    """A body that the replay needs was erased from the log."""


def provenance() -> dict[str, Any]:
    """The versions and the machine that compute, for the log."""
    libc = " ".join(platform.libc_ver()).strip()
    return {
        "lacuna": __version__, "results": RESULTS_VERSION, "kernels": FORM.digest, "numpy": np.__version__,
        "numba": numba.__version__, "python": platform.python_version(), "libc": libc, "machine": platform.machine(),
    }  # fmt: skip


def begin_body(file: TrialFile, secret_fingerprint: str, draws_key: DrawsKey) -> dict[str, Any]:
    """The inputs of the first event."""
    return {
        "file": file.text, "digest": file.digest, "secret": secret_fingerprint, "draws": draws_key.fingerprint,
        "provenance": provenance(), "numbers": Numbers.of(file).written,
    }  # fmt: skip


def begin_state(content: Mapping[str, Any] | None, draws_key: DrawsKey) -> TrialState:
    """Return the state after event 0, checked against the log."""
    file = begin_file(content)
    begin = content or {}
    if begin.get("draws") != draws_key.fingerprint:
        raise ReplayError("event 0: the log was made with another draws key than this one", 0)
    try:
        return TrialState(file, draws_key, begin.get("numbers"))
    except ValueError as error:
        raise ReplayError(f"event 0: {error}", 0) from None


def replay(
    entries: Iterable[Entry], draws_key: DrawsKey, state: TrialState | None = None, after: Head = START
) -> tuple[TrialState, Head]:
    """Replay events and compare them with the log; returns the state after the last event, and the end of the log.

    Parameters
    ----------
    entries
        The events after `after`; the chain is verified on the way.
    draws_key
        Of the trial.
    state
        The state after the event `after`, which is modified; None to begin with event 0.
    after
        Where to begin.
    """
    head, form = after, None if state is None else Form(state.file)
    for entry, content in checked(entries, after, look=check_all_but_form):
        if state is None or form is None:
            state = begin_state(content, draws_key)
            form = Form(state.file)
        else:
            replay_event(entry, content, state, form)
        head = entry.head
    if state is None:
        raise LogError("event 0 is missing: the log is empty", 0)
    return state, head


def replay_event(entry: Entry, content: dict[str, Any] | None, state: TrialState, form: Form) -> None:
    """Apply one event, which must have the form of its kind, and compare its outputs with the log."""
    if content is None:
        raise RedactedError(
            f"event {entry.seq} was redacted, so what follows cannot be computed from here; "
            "replay from a snapshot after it"
        )
    inputs = form.check(entry, content).inputs
    try:
        outputs = state.apply(content)
        same = encode({key: content[key] for key in (*_EVERY, *inputs)} | outputs) == entry.body
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ReplayError(f"{describe(entry, content)}: it cannot have happened: {reason}", entry.seq) from error
    if not same:
        check(entry)
        difference = _first_difference(content, outputs) or "its zeros have other signs here"
        raise ReplayError(f"{describe(entry, content)}: {difference}", entry.seq)


def _first_difference(logged: Mapping[str, Any], computed: Mapping[str, Any]) -> str | None:
    """Describe the first field that differs; None if none does."""
    for key, value in computed.items():
        if key not in logged:
            return f"it lacks {key!r}, which is {shown(value)} here"
        if (found := _difference(key, logged[key], value)) is not None:
            return found
    return None


def _difference(key: str, logged: Any, computed: Any) -> str | None:
    parts: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(logged, list) and isinstance(computed, list) and len(logged) == len(computed):
        parts = ((f"{key}[{i}]", one, other) for i, (one, other) in enumerate(zip(logged, computed, strict=True)))
    elif isinstance(logged, dict) and isinstance(computed, dict) and set(logged) == set(computed):
        parts = ((f"{key}.{part}", logged[part], computed[part]) for part in computed)
    elif logged != computed or isinstance(logged, bool) != isinstance(computed, bool):
        return f"{key} is {shown(logged)} in the log and {shown(computed)} here"
    return next((found for part in parts if (found := _difference(*part)) is not None), None)
