"""A slow, obvious twin of late values, around any other twin. Imports nothing of lacuna."""

from typing import Any

from naive import State


class Remembering:
    """A twin that remembers its episode: for every state the pathways, what was seen, and the step that led there."""

    def __init__(self, twin: Any, lag: int) -> None:
        self.twin, self.lag = twin, lag
        self.rows: list[tuple[list[Any], State, int, float]] = []

    @property
    def paths(self) -> list[Any]:
        found: list[Any] = self.twin.paths
        return found

    def begin(self, observation: State) -> None:
        self.twin.begin(observation)
        self.rows = [(list(self.paths), observation, -1, 0.0)]

    def learn(self, action: int, reward: float, observation: State, terminated: bool) -> None:
        self.twin.learn(action, reward, observation, terminated)
        self.rows.append((list(self.paths), observation, action, reward))

    def correct(self, late: State, steps_ago: int) -> None:
        n = len(self.rows) - 1 - steps_ago
        if n < 0 or steps_ago > self.lag:
            return
        paths, seen, action, reward = self.rows[n]
        whole = tuple(new if old is None else old for old, new in zip(seen, late, strict=True))
        if whole == seen:
            return
        self.rows[n] = self.start(paths, whole) if n == 0 else (paths, whole, action, reward)
        for i in range(max(n, 1), len(self.rows)):
            self.stand(i - 1)
            _, seen, action, reward = self.rows[i]
            self.rows[i] = (self.following(action, reward, seen), seen, action, reward)
        self.stand(len(self.rows) - 1)

    def following(self, action: int, reward: float, seen: State) -> list[Any]:
        """The next states; what was paid may be evidence too."""
        if hasattr(self.twin, "filter"):
            return list(self.twin.filter(action, (reward, False), seen))
        return list(self.twin.foresee(action, seen, (reward, False)))

    def start(self, paths: list[Any], seen: State) -> tuple[list[Any], State, int, float]:
        """The first state of an episode: what is known now stands in the place of guesses."""
        method = getattr(self.twin, "method", "")
        if method == "missing-as-state":
            known: list[Any] = [seen]
        elif method == "random-action":
            known = [None if None in seen else seen]
        elif method in ("zero-context", "assumed-value", "carry-default"):
            self.twin.held = self.twin.assumed
            known = self.twin.impute(0, seen)
        else:
            known = [tuple(g if s is None else s for g, s in zip(path, seen, strict=True)) for path in paths]
        return known, seen, -1, 0.0

    def stand(self, n: int) -> None:
        paths, self.twin.previous, _, _ = self.rows[n]
        self.twin.paths, self.twin.held = list(paths), paths[0] or ()
