"""Writes the blocking admin client, `src/moldau/client/admin/blocking.py`, from the asyncio one.

    python tools/generate_blocking.py            write it if it changed
    python tools/generate_blocking.py --check    write nothing, fail if it would change

Every public method of AsyncAdmin becomes a plain one with the same signature and words, so that
type checkers and editors know the blocking client as well as the other.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADMIN = ROOT / "src" / "moldau" / "client" / "admin"
TARGET = ADMIN / "blocking.py"
SOURCE = ADMIN / "async_admin.py"

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Written by hand below, because they differ.
OWN = {"close"}

HEADER = '''\
"""The blocking admin client. Made by tools/generate_blocking.py from AsyncAdmin; edit that.

Each call runs on the client's own event loop thread and waits for its end there. Several threads
may use one client at the same time.
"""

from __future__ import annotations

%(imports)s

__all__ = ["Admin"]

T = TypeVar("T")


@point_from(ADMIN_NAMES)
class Admin:
    """%(words)s
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[AdminKeywords]
    ) -> None:
        self._admin = AsyncAdmin(config, **settings)
        self._thread = LoopThread("moldau-admin")
        try:
            self._call(self._admin.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        self._closed = False
        self._thread.ended_with(self, "Admin", self._admin.close)

    def __repr__(self) -> str:
        return f"<Admin at {self._admin._described()}>"

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Let go of all connections. Operations under way in other threads fail.

        >>> admin.close()
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._call(self._admin.close(timeout))
        finally:
            self._thread.stop()

    def _call(self, operation: Coroutine[Any, Any, T]) -> T:
        return self._thread.call(operation)
'''

# What the text above needs.
IMPORTS = {
    "Any": "typing",
    "TypeVar": "typing",
    "Unpack": "typing",
    "ADMIN_NAMES": "moldau.client.other_clients",
    "point_from": "moldau.client.other_clients",
    "AdminKeywords": "moldau.client.config.keywords",
    "Coroutine": "collections.abc",
    "Mapping": "collections.abc",
    "TracebackType": "types",
    "AsyncAdmin": "moldau.client.admin.async_admin",
    "LoopThread": "moldau.client.loop_thread",
}


def read(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports_of(module: ast.Module) -> dict[str, str]:
    """Where each imported name comes from."""
    return {
        alias.name: node.module
        for node in module.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def class_in(module: ast.Module, name: str) -> ast.ClassDef:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise SystemExit(f"no class {name}")


def operations() -> list[tuple[Function, dict[str, str], str]]:
    """What AsyncAdmin lists (`name = _area(Class.name)`), each in its area's words, then its own
    methods; with the imports of their modules."""
    module = read(SOURCE)
    known = imports_of(module)
    listed: list[tuple[Function, dict[str, str], str]] = []
    own: list[tuple[Function, dict[str, str], str]] = []
    for node in class_in(module, "AsyncAdmin").body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own.append((node, known, "moldau.client.admin.async_admin"))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            (method,) = node.value.args
            assert isinstance(method, ast.Attribute)
            assert isinstance(method.value, ast.Name)
            place = known[method.value.id]
            area = read(ROOT / "src" / (place.replace(".", "/") + ".py"))
            function = function_in(class_in(area, method.value.id), method.attr)
            listed.append((function, imports_of(area), place))
    return [*listed, *own]


def function_in(area: ast.ClassDef, name: str) -> Function:
    for node in area.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    raise SystemExit(f"{area.name} has no method {name}")


def names_in(function: Function) -> set[str]:
    """What the signature mentions."""
    parts: list[ast.AST] = [function.args]
    if function.returns is not None:
        parts.append(function.returns)
    return {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}


def passed(function: Function) -> str:
    positional = [each.arg for each in function.args.posonlyargs + function.args.args][1:]
    keywords = [f"{each.arg}={each.arg}" for each in function.args.kwonlyargs]
    return ", ".join(positional + keywords)


def blocking_method(function: Function) -> str:
    docstring = ast.get_docstring(function)
    if not docstring:
        raise SystemExit(f"{function.name} has no docstring")
    returns = ast.unparse(function.returns) if function.returns else "None"
    call = f"self._admin.{function.name}({passed(function)})"
    if isinstance(function, ast.AsyncFunctionDef):
        call = f"self._call({call})"
    body = call if returns == "None" else f"return {call}"
    # Examples in it are code for the asyncio client.
    words = without_await(docstring).replace("\n", "\n        ")
    if "\n" in words:
        words += "\n        "
    signature = ast.unparse(function.args)
    text = f'\n    def {function.name}({signature}) -> {returns}:\n        """{words}"""\n'
    return "\n".join(line.rstrip() for line in text.splitlines()) + f"\n        {body}\n"


def without_await(text: str) -> str:
    """The same code for a blocking client: `(await f(x))[0]` becomes `f(x)[0]`."""
    while (start := text.find("(await ")) >= 0 and text[start - 1] in "( ":
        end, depth = start, 0
        while True:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if not depth:
                break
            end += 1
        text = text[:start] + text[start + len("(await ") : end] + text[end + 1 :]
    return text.replace("await ", "")


def import_lines(names: dict[str, str]) -> str:
    modules: dict[str, list[str]] = {}
    for name, module in names.items():
        modules.setdefault(module, []).append(name)
    return "\n".join(
        f"from {module} import {', '.join(sorted(modules[module]))}" for module in sorted(modules)
    )


def constants(place: str, names: set[str], imported: dict[str, str]) -> dict[str, str]:
    """Defaults that are constants of the area's own module."""
    own = {
        target.id
        for node in read(ROOT / "src" / (place.replace(".", "/") + ".py")).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    return {name: place for name in names if name in own and name not in imported}


def render() -> str:
    needed = dict(IMPORTS)
    methods = []
    for function, imported, place in operations():
        if function.name.startswith("_") or function.name in OWN:
            continue
        names = names_in(function)
        needed.update({name: imported[name] for name in names if name in imported})
        needed.update(constants(place, names, imported))
        methods.append(blocking_method(function))
    admin = class_in(read(SOURCE), "AsyncAdmin")
    words = (ast.get_docstring(admin) or "").replace("; made and used on one event loop", "")
    text = HEADER % {
        "imports": import_lines(needed),
        "words": "\n    ".join(words.splitlines()).replace("    \n", "\n"),
    }
    return formatted(text + "".join(methods))


def formatted(text: str) -> str:
    for command in (["check", "--select", "I", "--fix", "-q"], ["format", "-q"]):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout
    return text


def main() -> int:
    text = render()
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{TARGET} is out of date: run tools/generate_blocking.py", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
