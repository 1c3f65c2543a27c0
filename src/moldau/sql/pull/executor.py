"""Runs a pull query over the stores of the query that keeps its table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.sql.errors import KsqlException
from moldau.sql.pull.planner import KeyLookup, KeyRange, PullPlan
from moldau.sql.sources.data_source import DataSource
from moldau.sql.topology.holders import Materialization
from moldau.streams.records import Window, Windowed

_HELP = (
    " See https://cnfl.io/queries for more info.\n"
    "Add EMIT CHANGES if you intended to issue a push query."
)
#: Key (with its window, if there are windows), row of the store, timestamp.
StoredRow = tuple[Any, Any, int]


class TableStore(Protocol):
    """A store without windows, as `moldau.streams` has it: values with timestamps."""

    def get(self, key: Any) -> Any: ...

    def range(self, start: Any = None, end: Any = None) -> Iterator[tuple[Any, Any]]: ...

    def all(self) -> Iterator[tuple[Any, Any]]: ...


def not_queryable(source: DataSource) -> KsqlException:
    if source.kind != "TABLE":
        return KsqlException(
            f"Unexpected data source type for table pull query: K{source.kind} {_HELP}"
        )
    name = source.name
    return KsqlException(
        f"The `{name}` table isn't queryable. To derive a queryable table, you can do 'CREATE "
        f"TABLE QUERYABLE_{name} AS SELECT * FROM {name}'.{_HELP}"
    )


@dataclass(frozen=True, slots=True)
class PullQuery:
    """A planned pull query over the table that a persistent query keeps.

    A host calls `rows` with the store of each partition that it has.
    """

    plan: PullPlan
    query_id: str
    materialization: Materialization

    @property
    def store_name(self) -> str:
        return self.materialization.store_name

    def rows(self, store: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of the answer that a store holds, sorted and cut as the query says."""
        yield from self.plan.ordering.apply(self.unordered(store))

    def unordered(self, store: Any) -> Iterator[tuple[Any, ...]]:
        """As many rows of a store as may be part of the answer, in the order of the store.

        Rows of several stores are put together by `plan.ordering.apply`.
        """
        plan = self.plan
        needed = plan.ordering.needed
        if needed == 0:
            return
        count = 0
        places = self._places()
        for key, row, timestamp in self._stored(store):
            shown = self.materialization.row(key, row, timestamp)
            if shown is None:
                continue
            full = self._full(key, shown, timestamp, places)
            if plan.keep is None or plan.keep(full):
                yield plan.project(full)
                count += 1
                if needed is not None and count >= needed:
                    return

    def _places(self) -> list[int]:
        """Where the values and headers of the table are in the rows of its query."""
        found = {each.name: index for index, each in enumerate(self.materialization.schema.value)}
        schema = self.plan.source.schema
        return [found[each.name] for each in (*schema.value, *schema.headers)]

    def _full(
        self, key: Any, row: tuple[Any, ...], timestamp: int, places: list[int]
    ) -> tuple[Any, ...]:
        values = tuple(row[place] for place in places)
        if isinstance(key, Windowed):
            return (*values, timestamp, *key.key, key.window.start, key.window.end)
        return (*values, timestamp, *key)

    def _stored(self, store: Any) -> Iterable[StoredRow]:
        window = self.materialization.window
        if window is None:
            return self._plain(store)
        if window.kind == "SESSION":
            return self._sessions(store)
        return self._windows(store, window.size_ms or 0)

    def _plain(self, store: TableStore) -> Iterator[StoredRow]:
        plan = self.plan
        if plan.kind == "KEY_LOOKUP":
            for lookup in plan.lookups:
                found = store.get(lookup.key)
                if found is not None:
                    yield lookup.key, found.value, found.timestamp
            return
        for key, found in _range(store, plan.key_range):
            yield key, found.value, found.timestamp

    def _windows(self, store: Any, size_ms: int) -> Iterator[StoredRow]:
        if self.plan.kind != "KEY_LOOKUP":
            for key, (row, timestamp) in store.all():
                yield key, row, timestamp
            return
        for lookup in self.plan.lookups:
            low, high = _start_range(lookup, size_ms)
            for start, (row, timestamp) in store.fetch(lookup.key, low, high):
                window = Window(start, start + size_ms)
                yield Windowed(lookup.key, window), row, timestamp

    def _sessions(self, store: Any) -> Iterator[StoredRow]:
        if self.plan.kind != "KEY_LOOKUP":
            for key, row in store.all():
                yield key, row, key.window.end
            return
        for lookup in self.plan.lookups:
            for key, row in store.find_sessions(lookup.key, 0, _MAX_TIME):
                window = key.window
                if lookup.start.contains(window.start) and lookup.end.contains(window.end):
                    yield key, row, window.end


_MAX_TIME = 2**63 - 1


def _start_range(lookup: KeyLookup, size_ms: int) -> tuple[int, int]:
    """The starts of the windows that the bounds of starts and ends allow."""
    lows = [0 if lookup.start.low is None else lookup.start.low]
    highs = [_MAX_TIME if lookup.start.high is None else lookup.start.high]
    if lookup.end.low is not None:
        lows.append(lookup.end.low - size_ms)
    if lookup.end.high is not None:
        highs.append(lookup.end.high - size_ms)
    return max(0, *lows), min(highs)


def _range(store: TableStore, wanted: KeyRange | None) -> Iterator[tuple[Any, Any]]:
    if wanted is None:
        return store.all()
    # The store's range includes its ends; the condition is checked again afterwards.
    if wanted.operator in (">", ">="):
        return store.range(wanted.key, None)
    return store.range(None, wanted.key)
