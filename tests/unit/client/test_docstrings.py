"""Every public method of the clients has a docstring with an example of its use."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterator

import pytest

from moldau.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    Consumer,
    ConsumerRecords,
    Producer,
    ShareConsumer,
)

CLIENTS = (
    Producer,
    AsyncProducer,
    Consumer,
    AsyncConsumer,
    ShareConsumer,
    AsyncShareConsumer,
    Admin,
    AsyncAdmin,
    ConsumerRecords,
)
# Called by the client's own machinery, not by applications.
INTERNAL = {"leave"}


def methods() -> Iterator[tuple[type, str]]:
    for kind in CLIENTS:
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and name not in INTERNAL:
                assert callable(member)
                yield kind, name


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*each, id=f"{each[0].__name__}.{each[1]}") for each in methods()],
)
def test_a_method_has_a_docstring_with_an_example(kind: type, name: str) -> None:
    method = getattr(kind, name)
    docstring = inspect.getdoc(method) or ""
    sentence = docstring.partition("\n\n")[0]
    assert sentence.rstrip().endswith((".", ":")), docstring
    examples = doctest.DocTestParser().get_examples(docstring)
    assert examples, f"{name} has no example"
    source = "".join(each.source for each in examples)
    program = ast.parse(f"async def example():\n{_indented(source)}")
    assert name in source
    # The asyncio clients' coroutines are awaited, the blocking clients' calls are not.
    awaited = any(isinstance(each, ast.Await) for each in ast.walk(program))
    assert awaited == inspect.iscoroutinefunction(method) or "async with" in source


def _indented(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.splitlines())
