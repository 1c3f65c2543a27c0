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

class WindowStore(Generic[K, V]):
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
    def put(self, key: K, value: V | None, start: int, timestamp: int = 0) -> None: ...
    def get(self, key: K, start: int) -> tuple[V, int] | None: ...
    def fetch(self, key: K, low: int, high: int) -> list[tuple[int, tuple[V, int]]]: ...
    def backward_fetch(self, key: K, low: int, high: int) -> list[tuple[int, tuple[V, int]]]: ...
    def fetch_range(
        self, key_from: K | None, key_to: K | None, low: int, high: int
    ) -> list[tuple[Windowed[K], tuple[V, int]]]: ...
    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, low: int, high: int
    ) -> list[tuple[Windowed[K], tuple[V, int]]]: ...
    def fetch_all(self, low: int, high: int) -> list[tuple[Windowed[K], tuple[V, int]]]: ...
    def backward_fetch_all(
        self, low: int, high: int
    ) -> list[tuple[Windowed[K], tuple[V, int]]]: ...
    def all(self) -> Iterator[tuple[Windowed[K], tuple[V, int]]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed[K], tuple[V, int]]]: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def restore(
        self, records: Iterable[tuple[bytes, bytes | None, int, Headers]]
    ) -> None: ...

class WindowStoreWithHeaders(Generic[K, V]):
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
    def put(
        self, key: K, value: V | None, start: int, timestamp: int = 0, headers: Headers = ()
    ) -> None: ...
    def get(self, key: K, start: int) -> ValueTimestampHeaders[V] | None: ...
    def fetch(self, key: K, low: int, high: int) -> list[tuple[int, ValueTimestampHeaders[V]]]: ...
    def backward_fetch(
        self, key: K, low: int, high: int
    ) -> list[tuple[int, ValueTimestampHeaders[V]]]: ...
    def fetch_range(
        self, key_from: K | None, key_to: K | None, low: int, high: int
    ) -> list[tuple[Windowed[K], ValueTimestampHeaders[V]]]: ...
    def backward_fetch_range(
        self, key_from: K | None, key_to: K | None, low: int, high: int
    ) -> list[tuple[Windowed[K], ValueTimestampHeaders[V]]]: ...
    def fetch_all(
        self, low: int, high: int
    ) -> list[tuple[Windowed[K], ValueTimestampHeaders[V]]]: ...
    def backward_fetch_all(
        self, low: int, high: int
    ) -> list[tuple[Windowed[K], ValueTimestampHeaders[V]]]: ...
    def all(self) -> Iterator[tuple[Windowed[K], ValueTimestampHeaders[V]]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed[K], ValueTimestampHeaders[V]]]: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def restore(
        self, records: Iterable[tuple[bytes, bytes | None, int, Headers]]
    ) -> None: ...
    def without_headers(self) -> WindowStore[K, V]: ...
