from typing import Any

class Environment:
    _memo: dict[str, Environment]
    env_name: str
    consts: list[Any]
    def __init__(self, module: dict[str, Any]) -> None: ...

def lookup_environment(env_name: str) -> Environment | None: ...
