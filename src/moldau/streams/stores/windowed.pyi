from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from moldau.streams.records import Headers, ValueTimestampHeaders, Windowed
from moldau.streams.serdes import Serde
from moldau.streams.stores._cache import StoreCache
from moldau.streams.stores.base import Drop, Storage
from moldau.streams.stores.sessions import SessionStore
from moldau.streams.stores.with_headers import SessionStoreWithHeaders

__all__ = ["SessionStore", "SessionStoreWithHeaders", "WindowStore", "WindowStoreWithHeaders"]

K = TypeVar("K")
V = TypeVar("V")
#: What a store finds: the value, and what else it keeps.
F = TypeVar("F")

class _Windows(Generic[K, V, F]):
    name: str
    def __init__(
        self,
        name: str,
        key_serde: Serde[K],
        value_serde: Serde[V],
        *,
        retention_ms: int,
        window_size_ms: int,
        retain_duplicates: bool = False,
        timestamped: bool = True,
        log: Callable[..., None] | None = None,
        drop: Drop = ...,
        storage: Storage | None = None,
        cache: StoreCache | None = None,
        topic: str | None = None,
    ) -> None: ...
    def listen(
        self, listener: Callable[[Windowed[K], V | None, V | None, int | None], None]
    ) -> bool: ...
    def get(self, key: K, start: int) -> F | None: ...
    def fetch(self, key: K, low: int, high: int) -> list[tuple[int, F]]: ...
    def backward_fetch(self, key: K, low: int, high: int) -> list[tuple[int, F]]: ...
    def fetch_range(
        self, key_from: K | None, key_to: K | None, low: int, high: int
    ) -> list[tuple[Windowed[K], F]]: ...
    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, low: int, high: int
    ) -> list[tuple[Windowed[K], F]]: ...
    def fetch_all(self, low: int, high: int) -> list[tuple[Windowed[K], F]]: ...
    def backward_fetch_all(
        self, low: int, high: int
    ) -> list[tuple[Windowed[K], F]]: ...
    def all(self) -> Iterator[tuple[Windowed[K], F]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed[K], F]]: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def restore(
        self, records: Iterable[tuple[bytes, bytes | None, int, Headers]]
    ) -> None: ...

class WindowStore(_Windows[K, V, tuple[V, int]]):
    def put(self, key: K, value: V | None, start: int, timestamp: int = 0) -> None: ...

class WindowStoreWithHeaders(_Windows[K, V, ValueTimestampHeaders[V]]):
    def put(
        self, key: K, value: V | None, start: int, timestamp: int = 0, headers: Headers = ()
    ) -> None: ...
    def without_headers(self) -> WindowStore[K, V]: ...
