"""What a service keeps for each of its users, such as clients with the user's own credentials.

At most so many are kept: the least recently used one that nobody is using is closed. One that the
other side does not accept is closed at once, so that guessed passwords are not kept.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from moldau.http.machine.errors import too_many_requests
from moldau.http.request import Principal

__all__ = ["UserPool", "credential_hash"]

CLOSE_S: Final = 5.0


class _Closable(Protocol):
    async def close(self) -> None: ...


S = TypeVar("S", bound=_Closable)
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Kept(Generic[S]):
    held: S
    requests: int = 0
    """That use it now."""


class UserPool(Generic[K, S]):
    def __init__(self, count_max: int, *, refused: type[Exception]) -> None:
        """`refused`: what is raised where the other side does not accept the credentials."""
        self._count_max = count_max
        self._refused = refused
        self._kept: OrderedDict[K, _Kept[S]] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._kept)

    @contextmanager
    def using(self, key: K, make: Callable[[], S]) -> Iterator[S]:
        """What is kept under a key, which stays open until the end of the block. Raises HttpError
        if everything that may be kept is in use."""
        kept = self._kept.get(key)
        if kept is None:
            self._make_room()
            kept = self._kept[key] = _Kept(make())
        self._kept.move_to_end(key)
        kept.requests += 1
        try:
            yield kept.held
        except self._refused:
            if self._kept.get(key) is kept:
                self.forget(key)
            raise
        finally:
            kept.requests -= 1

    def __iter__(self) -> Iterator[K]:
        """The keys there are now."""
        return iter(list(self._kept))

    def forget(self, key: K) -> None:
        task = asyncio.create_task(self._kept.pop(key).held.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        for each in self._kept.values():
            await each.held.close()
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_S)

    def _make_room(self) -> None:
        if len(self._kept) < self._count_max:
            return
        for key, each in self._kept.items():
            if each.requests == 0:
                self.forget(key)
                return
        raise too_many_requests()


def credential_hash(principal: Principal) -> bytes:
    """Tells users apart without keeping their passwords."""
    return hashlib.sha256(f"{principal.name}\0{principal.secret}".encode()).digest()
