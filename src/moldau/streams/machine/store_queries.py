"""Queries of stores as objects (KIP-796), and how a store answers each; pure.

Names are Kafka Streams' in Python's writing: `KeyQuery.withKey(k)` is `KeyQuery(key)`, and what
Java adds by `with...` methods are keyword arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from moldau.streams.errors import InvalidStateStoreError
from moldau.streams.machine.position import Position
from moldau.streams.records import Windowed
from moldau.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from moldau.streams.stores.sessions import SessionStore
from moldau.streams.stores.versioned import VersionedKeyValueStore
from moldau.streams.stores.windowed import WindowStore
from moldau.streams.stores.with_headers import without_headers

R = TypeVar("R")
_EVER = 2**63 - 1


class FailureReason(Enum):
    """Why a partition of a store could not answer."""

    #: The store has no such query.
    UNKNOWN_QUERY_TYPE = "UNKNOWN_QUERY_TYPE"
    #: Only an active task was asked for, and this one is not running.
    NOT_ACTIVE = "NOT_ACTIVE"
    #: The store has not read as far as the request wants.
    NOT_UP_TO_BOUND = "NOT_UP_TO_BOUND"
    #: Another instance has the partition.
    NOT_PRESENT = "NOT_PRESENT"
    #: The store has no such partition.
    DOES_NOT_EXIST = "DOES_NOT_EXIST"
    #: The store raised an error.
    STORE_EXCEPTION = "STORE_EXCEPTION"


@dataclass(frozen=True, slots=True)
class PositionBound:
    """How far a store has to be: PositionBound.at(result.position)."""

    position: Position = field(default_factory=Position)

    @classmethod
    def unbounded(cls) -> PositionBound:
        """Whatever it has."""
        return cls()

    @classmethod
    def at(cls, position: Position) -> PositionBound:
        """At least this far: what a write or an earlier query has seen."""
        return cls(position)


class VersionedRecord(NamedTuple):
    """A version of a key: valid from `timestamp` until `valid_to`, which the latest has not."""

    value: Any
    timestamp: int
    valid_to: int | None = None


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """The value of a key; with `skip_cache` without updates that wait for the next commit."""

    key: Any
    skip_cache: bool = False


@dataclass(frozen=True, slots=True)
class TimestampedKeyQuery:
    """The value of a key with its timestamp; with `skip_cache` as of the last commit."""

    key: Any
    skip_cache: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeQuery:
    """The entries between two keys, both included; without a bound all on that side."""

    lower_bound: Any = None
    upper_bound: Any = None
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampedRangeQuery(RangeQuery):
    """The same, values with their timestamps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKeyQuery:
    """The windows of a key whose starts are in a range, both included: start and value."""

    key: Any
    time_from: int
    time_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRangeQuery:
    """The sessions of a key, or the windows of all keys whose starts are in a range."""

    key: Any = None
    time_from: int | None = None
    time_to: int | None = None


@dataclass(frozen=True, slots=True)
class VersionedKeyQuery:
    """The version of a key that was valid at a time; the latest without one."""

    key: Any
    as_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiVersionedKeyQuery:
    """The versions of a key that were valid at any time of a range, the latest first."""

    key: Any
    time_from: int | None = None
    time_to: int | None = None
    ascending: bool = False


Query = (
    KeyQuery
    | TimestampedKeyQuery
    | RangeQuery
    | WindowKeyQuery
    | WindowRangeQuery
    | VersionedKeyQuery
    | MultiVersionedKeyQuery
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult(Generic[R]):
    """What one partition answered: a result, or why there is none."""

    result: R | None = None
    position: Position | None = None
    failure_reason: FailureReason | None = None
    failure_message: str = ""
    execution_info: tuple[str, ...] = ()

    @property
    def is_success(self) -> bool:
        return self.failure_reason is None

    @property
    def is_failure(self) -> bool:
        return self.failure_reason is not None

    @classmethod
    def failure(cls, reason: FailureReason, message: str) -> QueryResult[R]:
        return cls(failure_reason=reason, failure_message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQueryRequest:
    """What to ask of which store: StateQueryRequest(store="counts", query=KeyQuery("hello"))."""

    store: str
    query: Query
    #: Which partitions to ask; `None` stands for all that this instance has.
    partitions: frozenset[int] | None = None
    position_bound: PositionBound = field(default_factory=PositionBound)
    #: Ask running tasks only, not standby tasks and such as are being restored.
    require_active: bool = False
    #: Whether results say what was done.
    execution_info: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQueryResult:
    """The answers by partition; of a global store there is one."""

    partition_results: dict[int, QueryResult[Any]] = field(default_factory=dict)
    global_result: QueryResult[Any] | None = None

    @property
    def only_partition_result(self) -> QueryResult[Any] | None:
        """The answer of the one partition that has one, as for a key; `None` if none has."""
        found = [
            each
            for each in self.partition_results.values()
            if each.is_success and each.result is not None
        ]
        if len(found) > 1:
            raise InvalidStateStoreError(
                f"the result has {len(found)} partitions with an answer: use partition_results"
            )
        return found[0] if found else None

    @property
    def position(self) -> Position:
        """How far all partitions are that answered."""
        merged = Position()
        for each in self.partition_results.values():
            if each.position is not None:
                merged = merged.merge(each.position)
        return merged


class _Unknown(Exception):
    """The store has no such query."""


def answer(
    query: Query, store: Any, partition: int, position: Position, bound: PositionBound
) -> QueryResult[Any]:
    """What a partition of a store answers; `position` is how far it is."""
    if not position.reaches(bound.position, partition):
        return QueryResult.failure(
            FailureReason.NOT_UP_TO_BOUND,
            f"For store partition {partition}, the current position {position} is not yet up to "
            f"the bound {bound.position}",
        )
    # No query asks for headers, so each has the same result in stores with headers.
    store = without_headers(store)
    try:
        found = _answered(query, store)
    except _Unknown:
        return QueryResult.failure(
            FailureReason.UNKNOWN_QUERY_TYPE,
            f"This store ({type(store).__name__}) doesn't know how to execute the given query "
            f"({query!r}).",
        )
    except Exception as error:
        return QueryResult.failure(
            FailureReason.STORE_EXCEPTION, f"{type(error).__name__}: {error}"
        )
    return QueryResult(result=found, position=position)


def _answered(query: Query, store: Any) -> Any:
    match query:
        case KeyQuery():
            return _value(store, _kept(store, query))
        case TimestampedKeyQuery():
            _require(store, TimestampedKeyValueStore)
            return _kept(store, query)
        case TimestampedRangeQuery():
            _require(store, TimestampedKeyValueStore)
            return _range(query, store)
        case RangeQuery():
            _require(store, KeyValueStore, TimestampedKeyValueStore)
            return [(key, _value(store, kept)) for key, kept in _range(query, store)]
        case WindowKeyQuery(key=key, time_from=low, time_to=high):
            _require(store, WindowStore)
            return list(store.fetch(key, low, high))
        case WindowRangeQuery():
            return _windows(query, store)
        case VersionedKeyQuery(key, as_of):
            _require(store, VersionedKeyValueStore)
            return _version(store, key, as_of)
        case MultiVersionedKeyQuery():
            _require(store, VersionedKeyValueStore)
            return _versions(query, store)
    raise _Unknown


def _require(store: Any, *kinds: type) -> None:
    if not isinstance(store, kinds):
        raise _Unknown


def _kept(store: Any, query: KeyQuery | TimestampedKeyQuery) -> Any:
    _require(store, KeyValueStore, TimestampedKeyValueStore)
    return store.get_stored(query.key) if query.skip_cache else store.get(query.key)


def _value(store: Any, kept: Any) -> Any:
    """The value alone."""
    return kept.value if kept is not None and isinstance(store, TimestampedKeyValueStore) else kept


def _range(query: RangeQuery, store: Any) -> list[tuple[Any, Any]]:
    found = list(store.range(query.lower_bound, query.upper_bound))
    return found[::-1] if query.descending else found


def _windows(query: WindowRangeQuery, store: Any) -> list[tuple[Windowed[Any], Any]]:
    low = 0 if query.time_from is None else query.time_from
    high = _EVER if query.time_to is None else query.time_to
    if query.key is not None:
        _require(store, SessionStore)
        return list(store.find_sessions(query.key, low, high))
    _require(store, WindowStore)
    return list(store.fetch_all(low, high))


def _version(store: Any, key: Any, as_of: int | None) -> VersionedRecord | None:
    moment = _EVER if as_of is None else as_of
    for each in reversed(store.versions(key)):
        record = VersionedRecord(*each)
        if record.timestamp <= moment:
            if record.valid_to is None:
                return record
            return record if moment < record.valid_to and store.remembers(moment) else None
    return None


def _versions(query: MultiVersionedKeyQuery, store: Any) -> list[VersionedRecord]:
    low = 0 if query.time_from is None else query.time_from
    high = _EVER if query.time_to is None else query.time_to
    found = [
        record
        for record in _records(store.versions(query.key))
        if record.timestamp <= high and (record.valid_to is None or record.valid_to > low)
    ]
    return found if query.ascending else found[::-1]


def _records(versions: Iterable[tuple[Any, int, int | None]]) -> list[VersionedRecord]:
    return [VersionedRecord(*each) for each in versions]
