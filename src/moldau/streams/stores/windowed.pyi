from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from moldau.streams.records import Headers, Windowed
from moldau.streams.serdes import Serde
from moldau.streams.stores._cache import StoreCache
from moldau.streams.stores.base import Drop, Storage
from moldau.streams.stores.sessions import SessionStore

__all__ = ["SessionStore", "WindowStore"]

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
