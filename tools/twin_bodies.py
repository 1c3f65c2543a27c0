"""What the body of a twin's method becomes: the other twin's, rewritten, or a call of it.

`rewritten` makes plain code of a coroutine's: `await self.f()` becomes `self.f()`, which is a twin
itself, and any other `await f()` becomes `wait(f())`. Comments stay. `blocking_call` and
`awaited_call` forward to the other twin instead.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping

from twin_source import Function, Method

#: What plain code calls the same thing.
PLAIN_NAMES = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "AsyncIterator": "Iterator",
    "asynccontextmanager": "contextmanager",
}
_WORDS = [("an `async with`", "a `with`"), ("async with ", "with "), ("async for ", "for ")]
_ASYNC = (ast.AsyncFunctionDef, ast.AsyncWith, ast.AsyncFor)

Edit = tuple[int, int, str]


def rewritten(method: Method, *, wait: str, dropped: frozenset[str]) -> str:
    """The method's text, indented as in its class, without its `async` and `await`.

    `dropped` are whole statements that only an event loop needs; the comment above goes with them.
    """
    source = _Text(method)
    edits = [
        *source.without_statements(method.function, dropped),
        *source.without_waiting(method.function, wait),
        *source.plain_docstring(method.function),
    ]
    text = source.edited(edits)
    for name, plain in PLAIN_NAMES.items():
        text = re.sub(rf"\b{name}\b", plain, text)
    return "\n" + text


class _Text:
    """A method's lines, edited by positions of its syntax tree."""

    def __init__(self, method: Method) -> None:
        first = min([method.function.lineno, *(d.lineno for d in method.function.decorator_list)])
        lines = method.module.text.encode().splitlines(keepends=True)
        self._lines = lines
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._all = b"".join(lines)
        self._first = self._starts[first - 1]
        self._last = self._starts[method.function.end_lineno or 0]

    def _begin(self, node: ast.stmt | ast.expr) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.stmt | ast.expr) -> int:
        return self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def edited(self, edits: list[Edit]) -> str:
        text, position = b"", self._first
        for begin, end, new in sorted(edits):
            if begin < position:
                # Inside something that is gone already.
                continue
            text += self._all[position:begin] + new.encode()
            position = end
        return (text + self._all[position : self._last]).decode()

    def without_statements(self, function: Function, dropped: frozenset[str]) -> Iterator[Edit]:
        for node in ast.walk(function):
            if isinstance(node, ast.Expr) and ast.unparse(node) in dropped:
                first = node.lineno - 1
                while self._lines[first - 1].lstrip().startswith(b"#"):
                    first -= 1
                yield self._starts[first], self._starts[node.end_lineno or 0], ""

    def without_waiting(self, function: Function, wait: str) -> Iterator[Edit]:
        for node in ast.walk(function):
            if isinstance(node, _ASYNC):
                begin = self._begin(node)
                yield begin, begin + len("async "), ""
            elif isinstance(node, ast.Await):
                begin = self._begin(node)
                if _is_own_method(node.value):
                    yield begin, begin + len("await "), ""
                else:
                    yield begin, begin + len("await "), f"{wait}("
                    yield self._end(node), self._end(node), ")"

    def plain_docstring(self, function: Function) -> Iterator[Edit]:
        first = function.body[0]
        if ast.get_docstring(function) and isinstance(first, ast.Expr):
            begin, end = self._begin(first), self._end(first)
            yield begin, end, plain_words(self._all[begin:end].decode())


def _is_own_method(call: ast.expr) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self"))):
            return True
    return False


def blocking_call(method: Method, *, other: str, wait: str) -> str:
    """A plain method that waits for the coroutine of the other twin."""
    call = f"{other}.{method.name}({_passed(method.function)})"
    if isinstance(method.function, ast.AsyncFunctionDef):
        call = f"{wait}({call})"
    return _method("def", method, call, plain_words(method.words))


def awaited_call(method: Method, *, other: str, twins: Mapping[str, str]) -> str:
    """A coroutine that runs the other twin's method, or reads its property, in a thread.

    A method that makes an object of a class that has a twin (`twins`) makes that instead; this
    does not wait.
    """
    target = f"{other}.{method.name}"
    match method.function.returns:
        case ast.Name(id=name) if name in twins:
            made = f"{twins[name]}({target}({_passed(method.function)}))"
            return _method("def", method, made, method.words).replace(
                f") -> {name}:", f") -> {twins[name]}:"
            )
    if method.is_property:
        target = f"lambda: {target}"
    arguments = ", ".join(filter(None, [target, _passed(method.function)]))
    return _method("async def", method, f"await asyncio.to_thread({arguments})", method.words)


def _method(kind: str, method: Method, call: str, words: str) -> str:
    function = method.function
    returns = ast.unparse(function.returns) if function.returns else "None"
    body = call if returns == "None" else f"return {call}"
    if "\n" in words:
        words += "\n"
    lines = f'"""{words}"""\n{body}\n'
    signature = ast.unparse(function.args)
    head = f"\n    {kind} {function.name}({signature}) -> {returns}:\n"
    return head + textwrap.indent(lines, " " * 8)


def _passed(function: Function) -> str:
    arguments = function.args
    given = [each.arg for each in arguments.posonlyargs + arguments.args][1:]
    if arguments.vararg:
        given.append(f"*{arguments.vararg.arg}")
    given += [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    if arguments.kwarg:
        given.append(f"**{arguments.kwarg.arg}")
    return ", ".join(given)


def plain_words(text: str) -> str:
    """The examples for a blocking client: `(await f(x))[0]` becomes `f(x)[0]`."""
    while (start := text.find("(await ")) >= 0 and text[start - 1] in "( ":
        end, depth = start, 0
        while True:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if not depth:
                break
            end += 1
        text = text[:start] + text[start + len("(await ") : end] + text[end + 1 :]
    text = text.replace("await ", "")
    for other, plain in _WORDS:
        text = text.replace(other, plain)
    return text
