"""Stores that can be read, and not written."""

from __future__ import annotations

from typing import Any

from moldau.streams.errors import StreamsError

_WRITES = frozenset(
    {
        "add",
        "close",
        "delete",
        "flush",
        "keep",
        "put",
        "put_all",
        "put_if_absent",
        "remove",
        "restore",
        "write",
    }
)


class ReadOnlyStore:
    """Passes on what reads a store, and refuses what writes to it."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in _WRITES:
            raise StreamsError(
                f"store {self._store.name} is read-only here: {name} is for the processor that "
                f"fills it"
            )
        found = getattr(self._store, name)
        if callable(found):
            # The next read finds it without asking.
            setattr(self, name, found)
        return found

    def __repr__(self) -> str:
        return f"ReadOnlyStore({self._store!r})"


def read_only(store: Any) -> Any:
    """A store that refuses writes: read_only(store).get("a")."""
    return ReadOnlyStore(store)
