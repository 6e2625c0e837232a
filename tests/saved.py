"""Saved files for tests: an agent with a past, its file, and the sentence with which a bad one is refused."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edits import TAIL, sealed
from lacuna.agent.agent import Agent
from lacuna.agent.savefile import SaveFileError
from lacuna.agent.settings import Settings
from lacuna.kernels.space import Space
from sentences import one_sentence


def experienced(method: str = "mi-synthetic", steps: int = 60, **rest: Any) -> Agent:
    agent = Agent(Space((3, 2, 4), ("a", "b", "c")), 3, Settings(method, gamma=0.9, epsilon=0.2, **rest), seed=5)
    rng = np.random.default_rng(0)
    agent.begin([0, 0, 0])
    for _ in range(steps):
        agent.act()
        values, hidden = rng.integers(agent.space.sizes), rng.random(3) < 0.4
        seen = [None if h else int(v) for v, h in zip(values, hidden, strict=True)]
        agent.learn(float(rng.normal()), seen, terminated=False)
    return agent


def body_of(agent: Agent) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent")
        return (Path(folder) / "agent").read_bytes()


@cache
def whole_body() -> bytes:
    """The file of an agent that is ready to act."""
    return body_of(experienced())


def refused(path: Path, load: Callable[[Path], Any] = Agent.load) -> str:
    """The sentence with which a file is refused; the file and its folder stay as they were."""
    before = {p: p.read_bytes() if p.is_file() else None for p in path.parent.iterdir()}
    with pytest.raises(SaveFileError) as caught:
        load(path)
    assert {p: p.read_bytes() if p.is_file() else None for p in path.parent.iterdir()} == before
    message = one_sentence(caught.value)
    assert str(path) in message
    return message


def resealed(body: bytes) -> bytes:
    """A body whose checksum is right again."""
    return sealed(body[:-TAIL])
