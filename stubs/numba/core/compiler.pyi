from typing import Any

class CompileResult:
    library: Any
    target_context: Any
    def _reduce(self) -> tuple[Any, ...]: ...
    @classmethod
    def _rebuild(cls, target_context: Any, *parts: Any) -> CompileResult: ...
