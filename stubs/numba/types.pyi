from collections.abc import Iterator
from typing import Any

class Type: ...

class BaseTuple(Type):
    def __iter__(self) -> Iterator[Type]: ...

class BaseNamedTuple(BaseTuple):
    instance_class: type[Any]
