"""What every store has, where stores keep their entries, and how a topology describes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypedDict

from moldau.streams.records import Headers, TaskCore
from moldau.streams.stores._cache import RecordCache, StoreCache
from moldau.streams.stores._maps import OrderedMap

#: A record of a changelog: key, value (`None` deletes), timestamp, headers.
ChangelogRecord = tuple[bytes, bytes | None, int, Headers]
#: An entry of a segmented store: key, time, and a number that tells entries of one time apart.
Entry = tuple[bytes, int, int]
#: What `put` of a versioned store returns when the version is the latest: no other one ends it.
PUT_RETURN_CODE_VALID_TO_UNDEFINED = -1
#: What `put` returns when the version is older than the history.
PUT_RETURN_CODE_NOT_PUT = -(2**63)


class Log(Protocol):
    """Writes a changelog record."""

    def __call__(
        self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()
    ) -> None:
        """`None` as value deletes; `None` as time is that of the input record."""


#: Counts a record that came too late for a store.
Drop = Callable[[], None]


def no_log(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()) -> None:
    """The log of a store without a changelog."""


def no_drop() -> None:
    """Counts nothing."""


class SegmentedMap(Protocol):
    """Entries by key and time, which expire by whole segments of time.

    Invariants: an entry is visible while its time is within the retention of the newest time that
    was put; a put into a segment that is no longer kept is refused.
    """

    def get(self, entry: Entry) -> bytes | None: ...

    def put(self, entry: Entry, value: bytes | None) -> bool:
        """Set or delete (`None`); false when the entry is too old."""

    def of_key(self, key: bytes, low: int, high: int) -> Iterator[tuple[Entry, bytes]]:
        """The visible entries of a key with a time from `low` to `high`, in the order of time."""

    def between(self, low: int, high: int) -> list[tuple[Entry, bytes]]:
        """The visible entries of all keys with a time from `low` to `high`, in no order."""

    def all(self) -> list[tuple[Entry, bytes]]:
        """The visible entries: key, then time."""


class Storage(Protocol):
    """Where one store keeps its entries: in memory, or on disk."""

    #: The newest time that was put; kept with the entries.
    observed_ms: int

    @property
    def is_used(self) -> bool:
        """Whether the store keeps anything here; if not, it is restored from its changelog."""

    def map(self) -> OrderedMap: ...

    def segments(self, retention_ms: int, drop: Drop) -> SegmentedMap: ...


class TaskState(Protocol):
    """The local state of a task, which outlives the process.

    Writes are kept apart until `commit`, which makes them durable together with the offsets of
    the changelogs that they are in. What was not committed is gone after `close`.
    """

    def storage(self, store: str) -> Storage: ...

    def check_format(self, store: str, *, headers: bool) -> None:
        """A store is opened with or without headers; raises StreamsError if it cannot be read so.

        One without headers becomes one with headers, but not the other way round.
        """

    def checkpoint(self, store: str) -> int | None:
        """The changelog offset up to which the store has everything; `None` if unknown."""

    def commit(self, checkpoints: Mapping[str, int], *, force: bool = False) -> None:
        """All writes so far are committed. They may wait for a larger batch unless forced."""

    def close(self) -> None: ...


class Meter(Protocol):
    """Measures what is done to the stores of a task, for its metrics."""

    def storage(self, name: str, storage: Storage) -> Storage:
        """Where a store keeps its entries, as it is or measured."""

    def cache(self, name: str, shared: RecordCache, core: TaskCore) -> StoreCache:
        """The cache of a store."""

    def created(self, name: str, store: Any, *, persistent: bool) -> None:
        """A store is there."""

    def run(self, name: str, operation: str, work: Callable[[], None]) -> None:
        """Do something to a store as a whole."""


class StateStore(Protocol):
    """What a custom store implements. A task owns its stores; nothing else changes them."""

    @property
    def name(self) -> str:
        """The name under which processors get it."""

    def flush(self) -> None:
        """Called at every commit, before the offsets are committed: write what is held back."""

    def close(self) -> None:
        """Called once, when the task closes."""

    def restore(self, records: Iterable[ChangelogRecord]) -> None:
        """Apply records of the changelog in their order. They must not be logged again."""


class StoreContext(NamedTuple):
    """What a task gives to a store that it creates."""

    storage: Storage
    #: The topic that serdes are given: the store's changelog, whether or not it is written.
    topic: str = ""
    #: Writes to the changelog; does nothing where the store has none.
    log: Log = no_log
    #: Counts records that came too late.
    drop: Drop = no_drop
    #: Where updates wait that are passed on at a commit; `None` passes on each at once.
    cache: StoreCache | None = None
    #: Whether values have headers.
    headers: bool = False


class StoreOptions(TypedDict, total=False):
    """What all kinds of stores have in common."""

    #: Whether the store has a changelog.
    logging: bool
    #: Settings of the changelog topic: {"segment.bytes": "1048576"}.
    changelog_config: Mapping[str, str]
    #: On disk, or in memory; `None` leaves it to `default.dsl.store`.
    persistent: bool | None
    #: Makes a place of its own for the entries, by the store's name.
    storage: Callable[[str], Storage] | None


@dataclass(slots=True)
class StoreBuilder:
    """A store of a topology: a name, and how a task makes its own instance."""

    name: str
    create: Callable[[StoreContext], Any]
    logging: bool = True
    #: Settings of the changelog topic, such as `segment.bytes`.
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    history_ms: int | None = None
    #: How long a window or session store keeps entries: its changelog is also deleted by time.
    retention_ms: int | None = None
    #: On disk where the host has a place for it; `None` leaves it to the application's default.
    #: A store that does not use its context's storage is never on disk.
    persistent: bool | None = None
    #: Makes a place of its own for the entries, by the store's name; a changelog fills it.
    storage: Callable[[str], Storage] | None = None
    #: Whether updates are held in the task's cache, so that only the last of several is forwarded.
    caching: bool = False
    #: Whether records of the changelog have the headers of the record that caused them.
    logs_headers: bool = False
    #: Whether values have headers; `None` leaves it to `dsl.store.format`.
    headers: bool | None = False

    @property
    def is_versioned(self) -> bool:
        return self.history_ms is not None
