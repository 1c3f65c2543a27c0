"""The process that runs functions of users: calls in, results out, one line of JSON each.

Calls come in batches: `{"calls": [[function, types, method, constants, arguments], ...]}`. It
limits its own memory before it loads anything of the user's, and dies with its parent.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from moldau.data.sql_types import parse as parse_type
from moldau.sql.functions.decorators import MARK, Spec
from moldau.sql.functions.sandbox.values import from_python, to_python

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_MESSAGE_MAX = 500


def main() -> None:
    """Arguments: what to load (a file or a module) and the limit of memory in bytes."""
    where, memory_max = sys.argv[1], int(sys.argv[2])
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    # What a function prints must not look like an answer.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    _limit(memory_max)
    try:
        functions = _Functions(_load(where))
    except BaseException as error:
        _send(answers, {"error": _said(error)})
        return
    _send(answers, {"functions": functions.declared()})
    for line in requests:
        _send(
            answers, {"results": [_answer(functions, each) for each in json.loads(line)["calls"]]}
        )


def _limit(memory_max: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_max, memory_max))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _load(where: str) -> ModuleType:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    name = os.path.splitext(os.path.basename(where))[0]
    sys.path.insert(0, os.path.dirname(where))
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise ImportError(f"{where} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _send(answers: Any, answer: dict[str, Any]) -> None:
    data = json.dumps(answer, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[answers.write(data) :]


class _Functions:
    """What a module declares, in the order it stands there."""

    def __init__(self, module: ModuleType) -> None:
        self._all: list[tuple[Spec, Any]] = [
            (found, each)
            for each in vars(module).values()
            if isinstance(found := getattr(each, MARK, None), Spec)
            and getattr(each, "__module__", None) == module.__name__
        ]
        self._bound: dict[str, Callable[[list[Any]], Any]] = {}

    def declared(self) -> list[dict[str, Any]]:
        return [spec.fields for spec, _ in self._all]

    def call(self, index: int, types: list[str], method: str, constants: list[Any]) -> Any:
        """The function for the types of its arguments; the last type is that of the result."""
        key = json.dumps([index, types, method, constants])
        found = self._bound.get(key)
        if found is None:
            made = self._all[index][1]
            target = made if not method else getattr(made(*constants), method)
            reads = [to_python(parse_type(each)) for each in types[:-1]]
            write = from_python(parse_type(types[-1]))

            def found(arguments: list[Any]) -> Any:
                given = [read(each) for read, each in zip(reads, arguments, strict=True)]
                result = target(*given)
                return write(list(result) if hasattr(result, "__next__") else result)

            self._bound[key] = found
        return found


def _answer(functions: _Functions, call: list[Any]) -> dict[str, Any]:
    index, types, method, constants, arguments = call
    try:
        return {"result": functions.call(index, types, method, constants)(arguments)}
    except MemoryError:
        return {"memory": True}
    except Exception as error:
        return {"error": _said(error)}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_MESSAGE_MAX]


if __name__ == "__main__":
    main()
