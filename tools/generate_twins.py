"""Writes the second API of every class that has one for threads and one for event loops.

    python tools/generate_twins.py            write the files that changed
    python tools/generate_twins.py --check    write nothing, fail if one would change

The clients are written for asyncio, and the blocking ones generated. The clusters under test are
blocking, and their asyncio API generated. `TWINS` lists them.

Signatures and docstrings are the same on both sides, so that type checkers and editors know both
equally well. What differs for a reason (the constructor, the end, hot paths) is written by hand in
the twin's base class: a method that the base has is not generated, unless it is abstract there.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from twin_bodies import PLAIN_NAMES, awaited_call, blocking_call, rewritten
from twin_source import ROOT, Method, Place, methods_of, module, path_of


@dataclass(frozen=True)
class Twin:
    """One class to generate; places are written `module:Class`."""

    name: str
    sources: tuple[str, ...]
    """Classes with the methods; those of earlier ones hide those of later ones."""
    base: str
    """Written by hand. Its docstring becomes the twin's."""
    body: Callable[[Method], str]
    parameters: str = ""
    forwards: bool = False
    """Whether methods call the other twin, so that it needs none that are private."""
    imported_for_types: tuple[str, ...] = ()
    """Packages that signatures name, and that should not be imported for that alone."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Methods that the twin does not have, and why."""


@dataclass(frozen=True)
class File:
    module: str
    words: str
    twins: tuple[Twin, ...]


_LOOP_ONLY = frozenset({"await self.start()", "await asyncio.sleep(0)"})
_CLIENT = "moldau.client"
_KIT = "moldau.testing"
_FOR_NODES = "between the cluster and its nodes"

FILES = (
    File(
        f"{_CLIENT}.producer.blocking",
        "The blocking producer: for threads, and safe to share between them.",
        (
            Twin(
                "Producer",
                (f"{_CLIENT}.producer.asynchronous:AsyncProducer",),
                f"{_CLIENT}.producer.blocking_base:BlockingProducer",
                partial(rewritten, wait="self._thread.call", dropped=_LOOP_ONLY),
                left_out={
                    "start": "the constructor starts the thread",
                    "send_nowait": "a thread can wait",
                },
            ),
        ),
    ),
    File(
        f"{_CLIENT}.consumer.blocking",
        "The consumer for threads.",
        (
            Twin(
                "Consumer",
                (f"{_CLIENT}.consumer.asynchronous:AsyncConsumer",),
                f"{_CLIENT}.consumer.blocking_base:BlockingConsumer",
                partial(rewritten, wait="self._calls.call", dropped=_LOOP_ONLY),
                parameters="[K, V]",
                left_out={"_soon": "LoopThread.soon"},
            ),
        ),
    ),
    File(
        f"{_CLIENT}.share.blocking",
        "The share consumer for threads.",
        (
            Twin(
                "ShareConsumer",
                (f"{_CLIENT}.share.asynchronous:AsyncShareConsumer",),
                f"{_CLIENT}.share.blocking_base:BlockingShareConsumer",
                partial(rewritten, wait="self._calls.call", dropped=_LOOP_ONLY),
                parameters="[K, V]",
                left_out={"_soon": "LoopThread.soon"},
            ),
        ),
    ),
    File(
        f"{_CLIENT}.admin.blocking",
        "The blocking admin client. Several threads may use one client at the same time.",
        (
            Twin(
                "Admin",
                (f"{_CLIENT}.admin.asynchronous:AsyncAdmin",),
                f"{_CLIENT}.admin.blocking_base:BlockingAdmin",
                partial(blocking_call, other="self._admin", wait="self._thread.call"),
                forwards=True,
            ),
        ),
    ),
    File(
        f"{_KIT}.aio",
        "Brokers under test for tests on an event loop: everything that waits is awaited.",
        (
            Twin(
                "AsyncGroup",
                (f"{_KIT}.groups:Group",),
                f"{_KIT}.aio_base:AsyncGroupBase",
                partial(awaited_call, other="self.sync", twins={"Group": "AsyncGroup"}),
                forwards=True,
                imported_for_types=(_KIT,),
            ),
            Twin(
                "AsyncClusterCalls",
                (f"{_KIT}.cluster_base:ClusterBase", f"{_KIT}.disturbance:Disturbance"),
                f"{_KIT}.aio_base:AsyncClusterBase",
                partial(awaited_call, other="self.sync", twins={"Group": "AsyncGroup"}),
                forwards=True,
                imported_for_types=(_KIT,),
                left_out={
                    "close": "the end of `async with`",
                    "data": "blocking; tests use their own client",
                    "data_of": "only looks at the disk: `sync.data_of`",
                    "disturbed": "for the plugin",
                    "partitioned": "partition and heal_network do not wait",
                    "reserve_ports": _FOR_NODES,
                    "start": "the beginning of `async with`",
                    "take_template": _FOR_NODES,
                },
            ),
        ),
    ),
)


class Unit:
    """A file while it is generated: its classes, and the names that they need."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._needed: dict[str, Place] = {}
        self._classes = [self._class(twin) for twin in file.twins]

    def text(self) -> str:
        sources = " and ".join(
            source.partition(":")[2] for twin in self._file.twins for source in twin.sources[:1]
        )
        names = ", ".join(sorted(f'"{twin.name}"' for twin in self._file.twins))
        head = (
            f'"""{self._file.words}\n\nGenerated by tools/generate_twins.py from {sources}; edit '
            'the original.\n"""\n\nfrom __future__ import annotations\n\n'
        )
        return head + self._imports() + f"\n\n__all__ = [{names}]\n\n" + "\n\n".join(self._classes)

    def _class(self, twin: Twin) -> str:
        base_module, _, base_name = twin.base.partition(":")
        base = module(base_module).class_(base_name)
        words = ast.get_docstring(base, clean=False) or ""
        by_hand = {each.name for each in methods_of(twin.base) if not each.is_abstract}
        by_hand |= set(twin.left_out)
        self._needed[base_name] = Place(base_module)
        if twin.parameters:
            for name in twin.parameters.strip("[]").split(", "):
                self._needed[name] = module(base_module).names[name]
        text = f'class {twin.name}({base_name}{twin.parameters}):\n    """{words}"""\n'
        for source in twin.sources:
            for method in methods_of(source):
                name = PLAIN_NAMES.get(method.name, method.name)
                if name in by_hand or (twin.forwards and name.startswith("_")):
                    continue
                by_hand.add(name)
                made = twin.body(method)
                self._need(twin, method, made)
                text += made
        return text

    def _need(self, twin: Twin, method: Method, text: str) -> None:
        """Names that the generated method uses, from where the original one has them."""
        known = {PLAIN_NAMES.get(name, name): place for name, place in method.module.names.items()}
        known["asyncio"] = Place("")
        tree = ast.parse("class _:\n" + text)
        for name in (node.id for node in ast.walk(tree) if isinstance(node, ast.Name)):
            place = known.get(name)
            if place is not None and place.module.startswith(twin.imported_for_types):
                place = replace(place, for_types=True)
            if place is not None:
                self._needed[name] = place

    def _imports(self) -> str:
        plain = [(place, name) for name, place in self._needed.items() if not place.for_types]
        typed = [(place, name) for name, place in self._needed.items() if place.for_types]
        lines = _import_lines(plain)
        if typed:
            lines = ["from typing import TYPE_CHECKING", *lines, "if TYPE_CHECKING:"]
            lines += [f"    {line}" for line in _import_lines(typed)]
        return "\n".join(lines)


def _import_lines(names: list[tuple[Place, str]]) -> list[str]:
    ordered = sorted(names, key=lambda each: (each[0].module, each[1]))
    lines = []
    for origin, group in groupby(ordered, key=lambda each: each[0].module):
        listed = [name for _, name in group]
        if origin:
            lines.append(f"from {origin} import {', '.join(listed)}")
        else:
            lines += [f"import {name}" for name in listed]
    return lines


def render(file: File) -> str:
    text = Unit(file).text()
    for command in (["check", "--select", "I", "--fix", "-q"], ["format", "-q"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command]
            + ["--stdin-filename", str(path_of(file.module)), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        if ran.returncode:
            raise SystemExit(f"{file.module}: {ran.stderr}\n{text}")
        text = ran.stdout
    return text


def main() -> int:
    stale = 0
    for file in FILES:
        path = path_of(file.module)
        text = render(file)
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{path} is out of date: run tools/generate_twins.py", file=sys.stderr)
            stale = 1
        else:
            path.write_text(text)
    return stale


if __name__ == "__main__":
    sys.exit(main())
