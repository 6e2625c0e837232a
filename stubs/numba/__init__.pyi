from collections.abc import Callable
from typing import TypeVar

from . import config as config

_F = TypeVar("_F", bound=Callable[..., object])

__version__: str

def typeof(val: object) -> object: ...
def njit(*, nogil: bool, error_model: str = ..., forceinline: bool = ..., _nrt: bool = ...) -> Callable[[_F], _F]: ...
