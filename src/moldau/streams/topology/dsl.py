"""The language: streams, tables, and what lies between them. Each class wraps a place in the graph.

One module, because each class makes the others. What a method does is in `*_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, TypeVar, Unpack, cast, overload

from moldau.streams.machine._steps import count_one
from moldau.streams.machine.context import FixedKeySupplier, Processor, check_supplier
from moldau.streams.machine.definitions import Partitioner, TopicChooser
from moldau.streams.machine.getters import View
from moldau.streams.machine.stateless import (
    Filter,
    FlatMap,
    FlatMapValues,
    FlatMapValuesWithKey,
    Map,
    MapValues,
    Peek,
    SelectKey,
)
from moldau.streams.records import Windowed
from moldau.streams.serdes import LONG, SerdeLike
from moldau.streams.topology import aggregate_steps, stream_steps, table_steps
from moldau.streams.topology.aggregate_steps import Aggregation, Grouped, Windows
from moldau.streams.topology.handles import Handle, Materialized, TableHandle, chosen
from moldau.streams.topology.join_options import StreamJoinOptions, TableJoinOptions
from moldau.streams.topology.stream_steps import KEY, VALUE, Split
from moldau.streams.windows import EmitStrategy, Suppressed

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
R = TypeVar("R")
A = TypeVar("A")
#: The key of an aggregation's result: the grouped key, or with windows that key and its window.
KR = TypeVar("KR")
Store = str | Materialized | None
Name = str | None
Serde = SerdeLike | None


class GlobalKTable(Generic[K, V]):
    """A table that every instance holds whole: builder.global_table("rates", store="rates")."""

    def __init__(self, view: View) -> None:
        self._view = view


class KStream(Generic[K, V]):
    """A stream of records: each stands for itself. `name` names the operator's node."""

    def __init__(self, handle: Handle) -> None:
        self._at = handle

    def _step(
        self, prefix: str, name: Name, supplier: Callable[[], Processor], **changes: Any
    ) -> KStream[Any, Any]:
        return KStream(stream_steps.step(self._at, f"KSTREAM-{prefix}-", name, supplier, **changes))

    def filter(self, predicate: Callable[[K, V], bool], *, name: Name = None) -> KStream[K, V]:
        """Keep the records for which it holds: stream.filter(lambda key, value: value > 1)."""
        return self._step("FILTER", name, lambda: Filter(predicate))

    def filter_not(self, predicate: Callable[[K, V], bool], *, name: Name = None) -> KStream[K, V]:
        """Drop the records for which it holds: stream.filter_not(lambda key, value: key == "")."""
        return self._step("FILTER", name, lambda: Filter(predicate, negate=True))

    def select_key(self, mapper: Callable[[K, V], K2], *, name: Name = None) -> KStream[K2, V]:
        """Change the key: stream.select_key(lambda key, value: value["user"])."""
        return self._step("KEY-SELECT", name, lambda: SelectKey(mapper), **KEY)

    def map(self, mapper: Callable[[K, V], tuple[K2, V2]], *, name: Name = None) -> KStream[K2, V2]:
        """Change key and value: stream.map(lambda key, value: (value, key))."""
        return self._step("MAP", name, lambda: Map(mapper), **KEY, **VALUE)

    def map_values(self, mapper: Callable[[V], V2], *, name: Name = None) -> KStream[K, V2]:
        """Change the value: stream.map_values(str.upper)."""
        return self._step("MAPVALUES", name, lambda: MapValues(mapper), **VALUE)

    def map_values_with_key(
        self, mapper: Callable[[K, V], V2], *, name: Name = None
    ) -> KStream[K, V2]:
        """The same with the key at hand: stream.map_values_with_key(lambda k, v: (k, v))."""
        return self._step("MAPVALUES", name, lambda: MapValues(mapper, True), **VALUE)

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[K2, V2]]], *, name: Name = None
    ) -> KStream[K2, V2]:
        """Any number of records: stream.flat_map(lambda key, value: [(w, key) for w in value])."""
        return self._step("FLATMAP", name, lambda: FlatMap(mapper), **KEY, **VALUE)

    def flat_map_values(
        self, mapper: Callable[[V], Iterable[V2]], *, name: Name = None
    ) -> KStream[K, V2]:
        """Any number of values under the same key: stream.flat_map_values(str.split)."""
        return self._step("FLATMAPVALUES", name, lambda: FlatMapValues(mapper), **VALUE)

    def flat_map_values_with_key(
        self, mapper: Callable[[K, V], Iterable[V2]], *, name: Name = None
    ) -> KStream[K, V2]:
        """The same with the key at hand: stream.flat_map_values_with_key(lambda k, v: [k, v])."""
        return self._step("FLATMAPVALUES", name, lambda: FlatMapValuesWithKey(mapper), **VALUE)

    def peek(self, action: Callable[[K, V], object], *, name: Name = None) -> KStream[K, V]:
        """Look at each record: stream.peek(lambda key, value: seen.append(key))."""
        return self._step("PEEK", name, lambda: Peek(action))

    def foreach(self, action: Callable[[K, V], object], *, name: Name = None) -> None:
        """End the stream in an action: stream.foreach(lambda key, value: seen.append(value))."""
        self._step("FOREACH", name, lambda: Peek(action, passes_on=False))

    def print(
        self,
        write: Callable[[str], object],
        *,
        label: str | None = None,
        mapper: Callable[[K, V], object] = "{}, {}".format,
        name: Name = None,
    ) -> None:
        """Write each record as a line: stream.print(sys.stdout.write, label="orders").

        Without a label it is that of the stream's name.
        """
        prefix = f"[{self._at.name if label is None else label}]: "
        action = lambda key, value: write(f"{prefix}{mapper(key, value)}\n")  # noqa: E731
        self._step("PRINTER", name, lambda: Peek(action, passes_on=False))

    def merge(self, other: KStream[K, V], *, name: Name = None) -> KStream[K, V]:
        """The records of both streams, in no order: clicks.merge(views)."""
        return KStream(stream_steps.merge(self._at, other._at, name))

    def split(self, *, name: Name = None) -> BranchedKStream[K, V]:
        """Several streams: stream.split().branch(is_big, name="big").default_branch()."""
        return BranchedKStream(Split(self._at, name))

    def repartition(
        self,
        *,
        name: Name = None,
        partitions: int | None = None,
        key_serde: Serde = None,
        value_serde: Serde = None,
        partitioner: Partitioner | None = None,
    ) -> KStream[K, V]:
        """Write to an internal topic and read it back: stream.repartition(partitions=6)."""
        handle = stream_steps.repartition(
            self._at,
            name=name,
            partitions=partitions,
            key_serde=key_serde,
            value_serde=value_serde,
            partitioner=partitioner,
        )
        return KStream(handle)

    def to(
        self,
        topic: str | TopicChooser,
        *,
        key_serde: Serde = None,
        value_serde: Serde = None,
        partitioner: Partitioner | None = None,
        name: Name = None,
    ) -> None:
        """Write to a topic, or to one per record: stream.to("out", value_serde="long")."""
        stream_steps.to(
            self._at,
            topic,
            key_serde=key_serde,
            value_serde=value_serde,
            partitioner=partitioner,
            name=name,
        )

    def to_table(self, *, store: Store = None, name: Name = None) -> KTable[K, V]:
        """The latest value of each key: stream.to_table(store="users")."""
        return KTable(stream_steps.to_table(self._at, store, name))

    def group_by_key(
        self,
        *,
        key_serde: Serde = None,
        value_serde: Serde = None,
        name: Name = None,
    ) -> KGroupedStream[K, V, K]:
        """Group by the key as it is: stream.group_by_key().count()."""
        at = self._at
        keys, values = chosen(key_serde, at.key_serde), chosen(value_serde, at.value_serde)
        at = replace(at, key_serde=keys, value_serde=values)
        return KGroupedStream(Grouped(handle=at, name=name))

    def group_by(
        self,
        mapper: Callable[[K, V], K2],
        *,
        key_serde: Serde = None,
        value_serde: Serde = None,
        name: Name = None,
    ) -> KGroupedStream[K2, V, K2]:
        """Group by a new key: stream.group_by(lambda key, word: word, key_serde="string")."""
        keyed = self.select_key(mapper, name=name)
        return keyed.group_by_key(key_serde=key_serde, value_serde=value_serde, name=name)

    def join(
        self,
        other: KStream[K, V2] | KTable[K, V2] | GlobalKTable[Any, V2],
        joiner: Callable[..., R],
        **options: Unpack[StreamJoinOptions],
    ) -> KStream[K, R]:
        """Join: with a stream (`windows`), a table (`grace` if versioned), a global one (`key`).

        clicks.join(users, lambda click, user: (click, user)). With `with_key` the joiner gets the
        key first. `key_serde`, `value_serde` and `other_value_serde` are those of the topics and
        stores of the join, `store` names its stores, or is a `StreamJoined`.
        """
        return self._join(other, joiner, (False, False), options)

    def left_join(
        self,
        other: KStream[K, V2] | KTable[K, V2] | GlobalKTable[Any, V2],
        joiner: Callable[..., R],
        **options: Unpack[StreamJoinOptions],
    ) -> KStream[K, R]:
        """The same, with `None` where there is no match: clicks.left_join(users, enrich)."""
        return self._join(other, joiner, (True, False), options)

    def outer_join(
        self,
        other: KStream[K, V2],
        joiner: Callable[..., R],
        **options: Unpack[StreamJoinOptions],
    ) -> KStream[K, R]:
        """Join two streams, with `None` for a missing side: a.outer_join(b, pair, windows=w)."""
        return self._join(other, joiner, (True, True), options)

    def _join(
        self,
        other: Any,
        joiner: Callable[..., Any],
        outer: tuple[bool, bool],
        options: StreamJoinOptions,
    ) -> KStream[Any, Any]:
        from moldau.streams.topology.join_steps import join_stream

        target = other._view if isinstance(other, GlobalKTable) else other._at
        return KStream(join_stream(self._at, target, joiner, outer, options))

    def process(
        self, supplier: Callable[[], Processor], *stores: str, name: Name = None
    ) -> KStream[Any, Any]:
        """Run a processor with these stores and those of its supplier: stream.process(P, "s")."""
        prefix, checked = "KSTREAM-PROCESSOR-", check_supplier(supplier)
        return KStream(stream_steps.process(self._at, prefix, checked, stores, name))

    def process_values(
        self, supplier: Callable[[], Processor], *stores: str, name: Name = None
    ) -> KStream[K, Any]:
        """The same for processors that keep the key: stream.process_values(Enrich)."""
        prefix, fixed = "KSTREAM-PROCESSVALUES-", FixedKeySupplier(check_supplier(supplier))
        return KStream(stream_steps.process(self._at, prefix, fixed, stores, name))


class BranchedKStream(Generic[K, V]):
    """A stream that is being split. A record goes to the first branch whose predicate holds.

    `function` is given the branch, and what it returns stands for it in the result; `consumer` is
    given the branch, which is then not in the result.
    """

    def __init__(self, split: Split) -> None:
        self._split = split
        self._branches: dict[str, KStream[Any, Any]] = {}

    def branch(
        self,
        predicate: Callable[[K, V], bool],
        *,
        name: Name = None,
        function: Callable[[KStream[K, V]], KStream[Any, Any] | None] | None = None,
        consumer: Callable[[KStream[K, V]], object] | None = None,
    ) -> BranchedKStream[K, V]:
        """Add a branch: split.branch(lambda key, value: value > 100, name="big")."""
        return self._add(predicate, name, function, consumer)

    def default_branch(
        self,
        *,
        name: Name = None,
        function: Callable[[KStream[K, V]], KStream[Any, Any] | None] | None = None,
        consumer: Callable[[KStream[K, V]], object] | None = None,
    ) -> dict[str, KStream[Any, Any]]:
        """The branch of all other records, and all branches by name: split.default_branch()."""
        return self._add(None, name, function, consumer).no_default_branch()

    def _add(
        self,
        predicate: Callable[[K, V], bool] | None,
        name: Name,
        function: Callable[[KStream[K, V]], KStream[Any, Any] | None] | None,
        consumer: Callable[[KStream[K, V]], object] | None,
    ) -> BranchedKStream[K, V]:
        if function is not None and consumer is not None:
            raise ValueError("a branch has a function or a consumer, not both")
        child = self._split.add(predicate, name)
        stream: KStream[K, V] = KStream(self._split.branches[child])
        if consumer is not None:
            consumer(stream)
            return self
        found = stream if function is None else function(stream)
        if found is not None:
            self._branches[child] = found
        return self

    def no_default_branch(self) -> dict[str, KStream[Any, Any]]:
        """All branches by name; other records are dropped: split.no_default_branch()."""
        return dict(self._branches)


class KTable(Generic[K, V]):
    """A table: each record updates the row of its key, and `None` deletes it."""

    def __init__(self, table: TableHandle) -> None:
        self._at = table

    @property
    def queryable_store_name(self) -> str | None:
        """The store's name, if one was given: table.queryable_store_name."""
        return self._at.store_name

    def filter(
        self, predicate: Callable[[K, V], bool], *, store: Store = None, name: Name = None
    ) -> KTable[K, V]:
        """Keep the rows for which it holds: table.filter(lambda key, value: value > 1)."""
        keep = lambda key, value: value if predicate(key, value) else None  # noqa: E731
        return self._derive("KTABLE-FILTER-", keep, name, store, keeps_values=True)

    def filter_not(
        self, predicate: Callable[[K, V], bool], *, store: Store = None, name: Name = None
    ) -> KTable[K, V]:
        """Drop the rows for which it holds: table.filter_not(lambda key, value: value < 0)."""
        return self.filter(lambda key, value: not predicate(key, value), store=store, name=name)

    def map_values(
        self, mapper: Callable[[V], V2], *, store: Store = None, name: Name = None
    ) -> KTable[K, V2]:
        """Change each value: table.map_values(len, store="lengths")."""
        compute = lambda key, value: mapper(value)  # noqa: E731
        return self._derive("KTABLE-MAPVALUES-", compute, name, store, keeps_values=False)

    def map_values_with_key(
        self, mapper: Callable[[K, V], V2], *, store: Store = None, name: Name = None
    ) -> KTable[K, V2]:
        """The same with the key at hand: table.map_values_with_key(lambda k, v: (k, v))."""
        return self._derive("KTABLE-MAPVALUES-", mapper, name, store, keeps_values=False)

    def transform_values(
        self, mapper: Callable[[K, V], V2], *, store: Store = None, name: Name = None
    ) -> KTable[K, V2]:
        """The same with the key at hand: table.transform_values(lambda k, v: (k, v))."""
        return self._derive("KTABLE-TRANSFORMVALUES-", mapper, name, store, keeps_values=False)

    def _derive(
        self,
        prefix: str,
        compute: Callable[[Any, Any], Any],
        name: Name,
        store: Store,
        *,
        keeps_values: bool,
    ) -> KTable[Any, Any]:
        return KTable(
            table_steps.derive(
                self._at, prefix, compute, name=name, store=store, keeps_values=keeps_values
            )
        )

    @overload
    def to_stream(self, *, name: Name = None) -> KStream[K, V]: ...

    @overload
    def to_stream(self, mapper: Callable[[K, V], K2], *, name: Name = None) -> KStream[K2, V]: ...

    def to_stream(
        self, mapper: Callable[[K, V], Any] | None = None, *, name: Name = None
    ) -> KStream[Any, V]:
        """The table's updates, under a new key if one is computed: table.to_stream().to("out")."""
        stream: KStream[K, V] = KStream(table_steps.to_stream(self._at, name))
        return stream if mapper is None else stream.select_key(mapper)

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Hold updates back: table.suppress(Suppressed.until_window_closes())."""
        return KTable(table_steps.suppress(self._at, suppressed))

    def group_by(
        self,
        selector: Callable[[K, V], tuple[K2, V2]],
        *,
        key_serde: Serde = None,
        value_serde: Serde = None,
        name: Name = None,
    ) -> KGroupedTable[K2, V2]:
        """Group rows by a new key: table.group_by(lambda key, value: (value["city"], value))."""
        handle = table_steps.group_table(
            self._at, selector, key_serde=key_serde, value_serde=value_serde, name=name
        )
        return KGroupedTable(handle, name)

    def join(
        self,
        other: KTable[Any, V2],
        joiner: Callable[[V, V2], R],
        **options: Unpack[TableJoinOptions],
    ) -> KTable[K, R]:
        """Join by key, or by a key that the value holds (`foreign_key`): orders.join(users, pair).

        With `with_key`, `foreign_key` gets the key and the value. `partitioner` and
        `other_partitioner` say how the tables are partitioned, if not by the default.
        """
        return self._join(other, joiner, (False, False), options)

    def left_join(
        self,
        other: KTable[Any, V2],
        joiner: Callable[[V, V2 | None], R],
        **options: Unpack[TableJoinOptions],
    ) -> KTable[K, R]:
        """The same, with `None` where the other table has no row: orders.left_join(users, pair)."""
        return self._join(other, joiner, (True, False), options)

    def outer_join(
        self,
        other: KTable[K, V2],
        joiner: Callable[[V | None, V2 | None], R],
        *,
        store: Store = None,
        name: Name = None,
    ) -> KTable[K, R]:
        """Join by key, with `None` for a missing row on either side: a.outer_join(b, pair)."""
        return self._join(other, joiner, (True, True), {"store": store, "name": name})

    def _join(
        self,
        other: KTable[Any, Any],
        joiner: Callable[[Any, Any], Any],
        outer: tuple[bool, bool],
        options: TableJoinOptions,
    ) -> KTable[Any, Any]:
        from moldau.streams.topology.join_steps import join_table

        foreign_key = _of_row(options.get("foreign_key"), options.get("with_key", False))
        names = options.get("store"), options.get("name")
        partitioners = options.get("partitioner"), options.get("other_partitioner")
        sides = self._at, other._at
        return KTable(join_table(*sides, joiner, outer, foreign_key, *names, partitioners))


def _of_row(
    foreign_key: Callable[..., Any] | None, with_key: bool
) -> Callable[[Any, Any], Any] | None:
    """A foreign key as a function of key and value."""
    if foreign_key is None or with_key:
        return foreign_key
    return lambda key, value: foreign_key(value)


class KGroupedTable(Generic[K, V]):
    """A table whose rows are grouped by a new key. Updates take the old row out of its group."""

    def __init__(self, handle: Handle, name: Name) -> None:
        self._at = handle
        self._name = name

    def _aggregate(self, prefix: str, **options: Any) -> KTable[Any, Any]:
        return KTable(table_steps.aggregate_table(self._at, self._name, prefix=prefix, **options))

    def count(self, *, store: Store = None, name: Name = None) -> KTable[K, int]:
        """The number of rows: grouped.count(store="per-city")."""
        return self._aggregate(
            "KTABLE-AGGREGATE-",
            initializer=lambda: 0,
            adder=lambda key, value, count: count + 1,
            subtractor=lambda key, value, count: count - 1,
            store=store,
            name=name,
            value_serde=LONG,
        )

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        store: Store = None,
        name: Name = None,
    ) -> KTable[K, V]:
        """Combine values: grouped.reduce(operator.add, operator.sub)."""
        return self._aggregate(
            "KTABLE-REDUCE-",
            initializer=None,
            adder=lambda key, value, total: adder(total, value),
            subtractor=lambda key, value, total: subtractor(total, value),
            store=store,
            name=name,
            value_serde=self._at.value_serde,
        )

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A],
        *,
        store: Store = None,
        name: Name = None,
    ) -> KTable[K, A]:
        """Add rows to an aggregate, and take them out: grouped.aggregate(list, add, remove)."""
        return self._aggregate(
            "KTABLE-AGGREGATE-",
            initializer=initializer,
            adder=adder,
            subtractor=subtractor,
            store=store,
            name=name,
            value_serde=None,
        )


class KGroupedStream(Generic[K, V, KR]):
    """A stream whose records are grouped by key, and by windows after `windowed_by`."""

    def __init__(
        self,
        grouped: Grouped,
        windows: Windows | None = None,
        emit: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE,
    ) -> None:
        self._grouped = grouped
        self._windows = windows
        self._emit = emit

    def windowed_by(self, windows: Windows) -> KGroupedStream[K, V, Windowed[K]]:
        """Group by time, too: grouped.windowed_by(TimeWindows(size=60_000)).count()."""
        return KGroupedStream(self._grouped, windows)

    def emit_strategy(self, emit: EmitStrategy) -> KGroupedStream[K, V, KR]:
        """When results come: windowed.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)."""
        return KGroupedStream(self._grouped, self._windows, emit)

    def _table(self, kind: str, store: Store, name: Name, values: Any, **what: Any) -> Any:
        aggregation = Aggregation(windows=self._windows, emit=self._emit, **what)
        return KTable(
            aggregate_steps.aggregate_stream(
                self._grouped,
                aggregation,
                prefix="KSTREAM-REDUCE-" if kind == "reduce" else "KSTREAM-AGGREGATE-",
                store=store,
                name=name,
                value_serde=values,
                is_count=kind == "count",
            )
        )

    def count(self, *, store: Store = None, name: Name = None) -> KTable[KR, int]:
        """The number of records: grouped.count(store="counts")."""
        table: KTable[KR, int] = self._table(
            "count",
            store,
            name,
            LONG,
            initializer=lambda: 0,
            aggregator=count_one,
            merger=lambda key, one, two: one + two,
        )
        return table

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: Store = None, name: Name = None
    ) -> KTable[KR, V]:
        """Combine values: grouped.reduce(max)."""
        values = self._grouped.handle.value_serde
        what = aggregate_steps.reduction(reducer)
        table: KTable[KR, V] = self._table("reduce", store, name, values, **what)
        return table

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        merger: Callable[[K, A, A], A] | None = None,
        *,
        store: Store = None,
        name: Name = None,
    ) -> KTable[KR, A]:
        """Combine values into another type: grouped.aggregate(list, lambda k, v, all: [*all, v]).

        Sessions also need a `merger`, which combines the aggregates of two sessions.
        """
        what = {"initializer": initializer, "aggregator": aggregator, "merger": merger}
        table: KTable[KR, A] = self._table("aggregate", store, name, None, **what)
        return table

    def cogroup(self, aggregator: Callable[[K, V, A], A]) -> CogroupedKStream[K, A, K]:
        """Aggregate with other streams: clicks.cogroup(add_click).cogroup(views, add_view)."""
        return CogroupedKStream([(self._grouped, cast(Any, aggregator))])


class CogroupedKStream(Generic[K, A, KR]):
    """Several grouped streams that make one aggregate, each with its own aggregator."""

    def __init__(
        self,
        groups: list[tuple[Grouped, Callable[[Any, Any, Any], Any]]],
        windows: Windows | None = None,
    ) -> None:
        self._groups = groups
        self._windows = windows

    def cogroup(
        self, grouped: KGroupedStream[K, V2, K], aggregator: Callable[[K, V2, A], A]
    ) -> CogroupedKStream[K, A, KR]:
        """Add a stream: cogrouped.cogroup(views, add_view).

        A grouped stream that is there already gets this aggregator instead of its own.
        """
        added = (grouped._grouped, cast(Any, aggregator))
        groups = [added if each[0] is added[0] else each for each in self._groups]
        if not any(each is added for each in groups):
            groups.append(added)
        return CogroupedKStream(groups, self._windows)

    def windowed_by(self, windows: Windows) -> CogroupedKStream[K, A, Windowed[K]]:
        """Group by time, too: cogrouped.windowed_by(TimeWindows(size=60_000))."""
        return CogroupedKStream(self._groups, windows)

    def aggregate(
        self,
        initializer: Callable[[], A],
        merger: Callable[[K, A, A], A] | None = None,
        *,
        store: Store = None,
        name: Name = None,
    ) -> KTable[KR, A]:
        """The aggregate, with a merger for sessions: cogrouped.aggregate(dict, store="profile")."""
        what = Aggregation(
            initializer=initializer,
            aggregator=self._groups[0][1],
            merger=cast(Any, merger),
            windows=self._windows,
        )
        return KTable(aggregate_steps.aggregate_cogroup(self._groups, what, store=store, name=name))
