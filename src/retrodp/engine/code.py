"""Functions of a user's own that a plan names: loaded only where that was allowed.

Promise: no code that a plan names runs unless whoever started the process said so, and a store
never runs another source text than the one it was created with.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType

from retrodp.errors import PlanChangedError, PlanError
from retrodp.mechanisms.oneshot.own import OwnFunction

_allowed: ContextVar[bool] = ContextVar("retrodp code of plans", default=False)


@contextmanager
def code_allowed() -> Iterator[None]:
    """Let plans run the functions that they name, inside the block."""
    before = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(before)


def own_function(name: str, *, path: str) -> OwnFunction:
    """The function that a plan names, as `private` declared it.

    Args:
        name: "module:function"; the module is looked for in the working directory first.
        path: Dotted path of the plan's key, for errors.

    Raises:
        PlanError: Running code was not allowed, or there is no such declared function.
    """
    if not _allowed.get():
        raise PlanError(
            f"{path} names code to run: {name}.",
            expected="--allow-code, or `with retrodp.code_allowed():` in Python",
            do="Read the code first: whoever writes it sees the exact values of the sample.",
        )
    module_name, function_name = name.split(":")
    found = getattr(_module(module_name, path), function_name, None)
    if not isinstance(found, OwnFunction):
        raise PlanError(
            f"{path}: {module_name} has no declared private function {function_name!r}.",
            expected="a function under @retrodp.private(epsilon=..., low=..., high=...)",
        )
    return found


def require_source(function: OwnFunction, *, stored: str) -> None:
    """Raise `PlanChangedError` unless the source text is the one of the store's plan."""
    if function.source != stored:
        raise PlanChangedError(
            f"The source of {function.name} is not the one that the store was created with.",
            do="Put the file back as it was; another function needs a store and a budget of its own.",
        )


def _module(name: str, path: str) -> ModuleType:
    file = Path.cwd().joinpath(*name.split(".")).with_suffix(".py")
    try:
        if not file.is_file():
            return importlib.import_module(name)
        loaded = sys.modules.get(name)
        if loaded is not None and Path(loaded.__file__ or "").resolve() == file.resolve():
            return loaded
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]  # half a module must not be found the next time
            raise
    except ImportError:
        raise PlanError(
            f"{path}: there is no module {name!r}.",
            expected=f"{file.name} in the working directory, or an installed module",
        ) from None
    return module
