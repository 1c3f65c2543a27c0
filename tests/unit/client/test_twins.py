"""Classes for threads and their twins for event loops: the same methods, signatures and words."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    Consumer,
    Producer,
    ShareConsumer,
)
from moldau.testing import AsyncCluster, Cluster, Group
from moldau.testing.aio import AsyncGroup

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import twin_bodies  # noqa: E402
import twin_source  # noqa: E402

CLIENTS = [
    (Producer, AsyncProducer),
    (Consumer, AsyncConsumer),
    (ShareConsumer, AsyncShareConsumer),
    (Admin, AsyncAdmin),
]
#: Methods that only one of two clients has.
ALONE = {"start", "leave", "send_nowait"}
#: The words differ, as the thread does.
OWN_WORDS = {"send", "close", "transaction"}


def test_generated_files_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_twins.py"), "--check"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def public(kind: type) -> set[str]:
    # Names of other clients are there only to be refused with a hint.
    return {name for name in dir(kind) if not name.startswith("_") and hasattr(kind, name)}


def pairs() -> Iterator[Any]:
    for blocking, other in CLIENTS:
        for name in sorted(public(other) - ALONE):
            yield pytest.param(blocking, other, name, id=f"{blocking.__name__}.{name}")


@pytest.mark.parametrize(("blocking", "other"), CLIENTS, ids=lambda kind: kind.__name__)
def test_clients_have_the_same_methods(blocking: type, other: type) -> None:
    assert public(blocking) - ALONE == public(other) - ALONE


@pytest.mark.parametrize(("blocking", "other", "name"), [*pairs()])
def test_methods_have_the_same_signature_and_words(blocking: type, other: type, name: str) -> None:
    one, two = getattr(blocking, name), getattr(other, name)
    if name != "transaction":
        assert inspect.signature(one) == inspect.signature(two)
    assert not inspect.iscoroutinefunction(one)
    if name not in OWN_WORDS:
        # The examples differ: one of them awaits.
        assert words(one) == words(two)


def words(method: object) -> str:
    return (inspect.getdoc(method) or "").partition(">>>")[0]


@pytest.mark.parametrize(
    ("blocking", "other"), [(Cluster, AsyncCluster), (Group, AsyncGroup)], ids=lambda k: k.__name__
)
def test_what_waits_is_awaited_on_a_loop(blocking: type, other: type) -> None:
    for name in public(blocking) & public(other):
        function = getattr(other, name)
        if inspect.iscoroutinefunction(function) and name not in ("rebalance", "wait_until"):
            original = getattr(blocking, name)
            if not isinstance(original, property):
                assert inspect.signature(function) == inspect.signature(original)
                assert inspect.getdoc(function) == inspect.getdoc(original)


SOURCE = '''
class AsyncTill:
    @asynccontextmanager
    async def open(self, key: str) -> AsyncIterator[int]:
        """Inside an `async with` block.

        >>> async with till.open("a") as count:
        ...     print((await till.count())[0])
        """
        # Only a loop needs this.
        await asyncio.sleep(0)
        # A reason that stays.
        await self.start()
        async with self._lock:
            yield (await self._drawer.count(key)).total
            await self.count(await self._drawer.read())

    def plain(self) -> int:
        return 1
'''

REWRITTEN = '''
    @contextmanager
    def open(self, key: str) -> Iterator[int]:
        """Inside a `with` block.

        >>> with till.open("a") as count:
        ...     print(till.count()[0])
        """
        # A reason that stays.
        self.start()
        with self._lock:
            yield (wait(self._drawer.count(key))).total
            self.count(wait(self._drawer.read()))

    def plain(self) -> int:
        return 1
'''


def test_rewriting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin_source, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "till.py").write_text(SOURCE)
    twin_source.module.cache_clear()
    dropped = frozenset({"await asyncio.sleep(0)"})
    made = [
        twin_bodies.rewritten(method, wait="wait", dropped=dropped)
        for method in twin_source.methods_of("till:AsyncTill")
    ]
    assert "".join(made) == REWRITTEN
