"""What draws a world: the true state, and over it what is hidden from the agent."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Hidden(NamedTuple):
    """What the agent does not see: the components hidden at this moment, by name; and whether there is a fog."""

    components: frozenset[str] = frozenset()
    fog: bool = False


NOTHING_HIDDEN = Hidden()


class Painter(Protocol):
    """Draws a true state as text."""

    def text(self, state: int, hidden: Hidden = NOTHING_HIDDEN) -> str:
        """The state as a few lines of text, with hidden components marked."""
        ...


@runtime_checkable
class PicturePainter(Painter, Protocol):
    """Draws a true state as text and as a picture."""

    def picture(self, state: int, hidden: Hidden = NOTHING_HIDDEN) -> NDArray[np.uint8]:
        """The state as pixels ``[height, width, 3]``, with hidden components marked."""
        ...
