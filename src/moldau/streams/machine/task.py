"""A task: the nodes of one or more sub-topologies for one partition, and their stores.

Invariants: a record is processed to the end before the next one; a punctuation fires at most once
per call, and its next time stays on the grid of its interval; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from moldau.invariant import invariant
from moldau.streams.errors import PassedOnError, ProcessingError, StreamsError
from moldau.streams.machine._nodes import SinkNode, SourceNode
from moldau.streams.machine.context import Node, Processor, ProcessorContext, PunctuationType
from moldau.streams.machine.definitions import (
    Definition,
    Partitioner,
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
    TimestampExtractor,
)
from moldau.streams.machine.error_handlers import (
    Answer,
    ErrorContext,
    Handlers,
    UnwrittenRecord,
    goes_on,
    without_retry,
)
from moldau.streams.machine.progress import CommittedOffset, Progress, TopicPartition
from moldau.streams.machine.punctuations import Punctuation, PunctuationQueue
from moldau.streams.machine.surroundings import Surroundings
from moldau.streams.machine.task_stores import Changelog, TaskStores
from moldau.streams.machine.wrappers import ProcessorWrapper, no_wrapper
from moldau.streams.records import Headers, Produced, Record, RecordContext, TaskCore
from moldau.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.streams.stores._cache import RecordCache
from moldau.streams.stores._tables import ChangelogWriter, HeadersLog, OwnHeadersLog
from moldau.streams.stores.base import ChangelogRecord, Meter, StoreBuilder, TaskState
from moldau.streams.stores.read_only import read_only

Collector = Callable[[Produced], None]


class InputRecord(Protocol):
    """A record as a consumer gives it."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> Any: ...

    @property
    def value(self) -> Any: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def headers(self) -> Headers: ...


@dataclass(slots=True, kw_only=True)
class TaskSettings:
    """What a host decides about a task."""

    application_id: str
    task_id: str = "0_0"
    config: dict[str, Any] = field(default_factory=dict)
    handlers: Handlers = field(default_factory=Handlers)
    #: The name of an internal topic on the cluster; others stay as they are.
    topic_name: Callable[[str], str] = str
    #: The changelog topic of a store.
    changelog_topic: Callable[[str], str] = str
    partition_count: Callable[[str], int] = lambda topic: 1
    #: Input topics that serve as changelogs, by the name of their store.
    source_changelogs: Mapping[str, str] = field(default_factory=dict)
    #: Where stores are kept on disk; without it all are in memory.
    state: TaskState | None = None
    #: Whether stores that ask for neither are kept on disk.
    persistent_stores: bool = True
    #: The room for record caches, shared with other tasks of a thread; without it none caches.
    cache: RecordCache | None = None
    #: Wraps every processor; Kafka Streams' `processor.wrapper.class`.
    processor_wrapper: ProcessorWrapper = no_wrapper
    #: Measures what is done to stores, for metrics.
    meter: Meter | None = None
    #: The time of records of sources that name no extractor.
    timestamp_extractor: TimestampExtractor | None = None
    #: What processors may ask for about the application.
    surroundings: Surroundings = field(default_factory=Surroundings)
    #: The partition of a key's bytes among a number of partitions, for windowed keys.
    partition_of: Callable[[bytes, int], int] | None = None

    @property
    def stores_with_headers(self) -> bool:
        """Whether stores of tables that say neither keep headers."""
        return str(self.config.get("dsl.store.format")).upper() == "HEADERS"

    @property
    def partition(self) -> int:
        """The partition of this task, which its changelogs have, too."""
        return int(self.task_id.rpartition("_")[2])


def _windowed_partitioner(definition: SinkDefinition, settings: TaskSettings) -> Partitioner | None:
    """All windows of a key go to the partition of the key."""
    serde, partition_of = definition.key_serde, settings.partition_of
    if partition_of is None or not isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
        return None

    def partition(topic: str, key: Any, value: Any, count: int) -> int | None:
        return None if key is None else partition_of(serde.base_key(topic, key), count)

    return partition


def _to_each(collect: Collector) -> Collector:
    """Writes a record to every partition that a partitioner has chosen."""

    def collect_each(record: Produced) -> None:
        chosen: Any = record.partition
        if chosen is None or isinstance(chosen, int):
            collect(record)
            return
        key, value, headers = record.key, record.value, record.headers
        for partition in chosen:
            collect(Produced(record.topic, key, value, record.timestamp, headers, partition))

    return collect_each


class Task:
    """Processes records one by one and passes what is written to `collect`.

    A host creates it, restores its `changelogs`, and calls `initialize`; then `process` and the
    punctuations; `prepare_commit`, and `committed` once records and offsets are; finally `close`.
    """

    def __init__(
        self,
        definitions: Iterable[Definition],
        stores: Mapping[str, StoreBuilder],
        settings: TaskSettings,
        collect: Collector,
        global_stores: Mapping[str, Any] | None = None,
        wall_clock_ms: int = 0,
    ) -> None:
        self.application_id = settings.application_id
        self.task_id = settings.task_id
        self.config = settings.config
        self.surroundings = settings.surroundings
        self.core = TaskCore(wall_clock_ms)
        self.shared: dict[object, Any] = {}
        self.commit_requested = False
        self.partition_count = settings.partition_count
        self._handlers = settings.handlers
        self._timestamp_extractor = settings.timestamp_extractor
        self._collect = collect
        self._global_stores = dict(global_stores or {})
        self._partition = settings.partition
        self.progress = Progress()
        self._stores = TaskStores(
            settings.state,
            settings.persistent_stores,
            settings.cache,
            self.core,
            settings.meter,
            settings.stores_with_headers,
        )
        self._punctuations = {kind: PunctuationQueue() for kind in PunctuationType}
        self._nodes: dict[str, Node] = {}
        self._sources: dict[str, SourceNode] = {}
        self._source_names: dict[str, str] = {}
        self._patterns: list[tuple[SourceDefinition, ProcessorContext]] = []
        self._initialized = False
        definitions = list(definitions)
        # In the order of the nodes, which is also that of a flush.
        used = [
            name
            for each in definitions
            if isinstance(each, ProcessorDefinition)
            for name in each.stores
        ]
        for name in dict.fromkeys(used):
            if name in stores:
                self._create_store(stores[name], settings)
        self._build(definitions, settings)

    def _create_store(self, builder: StoreBuilder, settings: TaskSettings) -> None:
        source = settings.source_changelogs.get(builder.name)
        log, changelog, topic = ChangelogWriter(), None, settings.changelog_topic(builder.name)
        if source is not None:
            changelog, topic = (source, True), source
        elif builder.logging:
            changelog = topic, False
            kind = ChangelogWriter
            if builder.logs_headers:
                kind = HeadersLog
            elif self._stores.has_headers(builder):
                kind = OwnHeadersLog
            log = kind(self._collect, topic, self._partition, self.core)
        self._stores.create(builder, log, self._drop, changelog, topic)

    def _drop(self) -> None:
        self.core.dropped += 1

    def _build(self, definitions: list[Definition], settings: TaskSettings) -> None:
        for definition in definitions:
            node: Node
            if isinstance(definition, SourceDefinition):
                node = Node(definition.name, Processor(), ())
            elif isinstance(definition, SinkDefinition):
                serdes = definition.key_serde, definition.value_serde
                sink = SinkNode(
                    definition.topic,
                    serdes,
                    definition.partitioner or _windowed_partitioner(definition, settings),
                    self,
                    _to_each(self._collect) if definition.partitioner else self._collect,
                    settings.topic_name,
                )
                node = Node(definition.name, sink, ())
            else:
                supplier = settings.processor_wrapper(definition.name, definition.supplier)
                node = Node(definition.name, supplier(), definition.stores)
            node.context = ProcessorContext(node, self)
            self._nodes[definition.name] = node
            if isinstance(definition, SourceDefinition):
                for topic in definition.topics:
                    name = settings.topic_name(topic)
                    self._sources[name] = self._reader(name, definition, node.context)
                if definition.pattern is not None:
                    self._patterns.append((definition, node.context))
        for definition in definitions:
            for parent in definition.parents:
                self._nodes[parent].children.append(self._nodes[definition.name])

    def counts(self) -> dict[str, int]:
        """How many records each node but the sources has been given."""
        return {name: node.count for name, node in self._nodes.items()}

    def changelogs(self) -> list[Changelog]:
        """What is to be restored before `initialize`, and from which offset."""
        return self._stores.changelogs()

    def restore(self, store: str, records: Iterable[ChangelogRecord], next_offset: int) -> None:
        """Apply a batch of a store's changelog, which ends before `next_offset`."""
        self._stores.restore(store, records, next_offset)

    def initialize(self, committed: Mapping[TopicPartition, str | None] | None = None) -> None:
        """Start the processors. `committed` has the metadata of the partitions' offsets."""
        invariant(not self._initialized, f"task {self.task_id} is initialized once")
        self._initialized = True
        for partition, metadata in (committed or {}).items():
            time = self.progress.resume(partition, metadata)
            self.core.stream_time_ms = max(self.core.stream_time_ms, time)
        for node in self._nodes.values():
            node.processor.init(node.context)

    @property
    def dropped(self) -> int:
        """Records that were dropped: late, without a key, or refused by a handler."""
        return self.core.dropped

    @property
    def stream_time_ms(self) -> int:
        """The largest timestamp so far; -1 before the first record."""
        return self.core.stream_time_ms

    # What processors see.

    def store(self, name: str) -> Any:
        """A store of this task, or a global one."""
        found = self._stores.by_name.get(name)
        return read_only(self._global_stores[name]) if found is None else found

    def is_global(self, name: str) -> bool:
        return name in self._global_stores

    @property
    def stores(self) -> dict[str, Any]:
        """All stores of this task."""
        return dict(self._stores.by_name)

    def failed(self, node: Node, record: Record[Any, Any], error: Exception) -> None:
        """A node raised an error: ask the handler whether to go on."""
        context = self._failed_at(self.core.record_context, node.name)
        answer = self._handlers.processing(context, record, node.name, error)
        if self._is_skipped(answer, context, error):
            return
        raise ProcessingError(
            f"Exception caught in process. taskId={self.task_id}, processor={node.name}, "
            f"topic={context.topic}, partition={context.partition}, offset={context.offset}",
            node.name,
        ) from error

    def not_written(self, topic: str, record: Record[Any, Any], error: Exception) -> bool:
        """A record cannot be serialized: whether that stops the application."""
        unwritten = UnwrittenRecord.of(record, self._failed_at(self.core.record_context, ""))
        answer = without_retry(self._handlers.production(topic, unwritten, error))
        return not self._is_skipped(answer, self.core.record_context, error)

    def _failed_at(self, where: RecordContext, node: str) -> ErrorContext:
        raw = self.core.raw_key, self.core.raw_value
        return ErrorContext.of(where, raw, task_id=self.task_id, node=node)

    def _is_skipped(self, answer: Answer, where: RecordContext, error: Exception) -> bool:
        """Write the dead letters of an input record; whether to go on without it."""
        skipped = goes_on(answer)
        raw = (self.core.raw_key, self.core.raw_value)
        for letter in self._handlers.letters(answer, where, raw, error):
            self._collect(letter)
        self.core.dropped += skipped
        return skipped

    def not_read(
        self, where: RecordContext, key: bytes | None, value: bytes | None, error: Exception
    ) -> None:
        """An input record cannot be deserialized: ask the handler whether to go on."""
        self.core.raw_key, self.core.raw_value = key, value
        context = self._failed_at(where, self._source_names[where.topic])
        if self._is_skipped(self._handlers.deserialization(context, error), where, error):
            return
        raise StreamsError(
            f"Deserialization exception handler is set to fail upon a deserialization error. If "
            f"you would rather have the streaming pipeline continue after a deserialization "
            f"error, please set the deserialization.exception.handler appropriately. "
            f"taskId={self.task_id}, topic={where.topic}, partition={where.partition}, "
            f"offset={where.offset}"
        ) from error

    def schedule(
        self,
        context: ProcessorContext,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
        start_ms: int | None = None,
    ) -> Punctuation:
        core = self.core
        by_wall_clock = kind is PunctuationType.WALL_CLOCK_TIME
        now_ms = core.wall_clock_ms if by_wall_clock else core.stream_time_ms
        first_ms = start_ms
        if first_ms is None:
            first_ms = now_ms + interval_ms if by_wall_clock else 0
        made = Punctuation(context, interval_ms, first_ms, callback)
        if start_ms is not None and start_ms < now_ms:
            made.advance(now_ms)
        self._punctuations[kind].add(made)
        return made

    def request_commit(self) -> None:
        self.commit_requested = True

    # What hosts call.

    def _reader(
        self, topic: str, definition: SourceDefinition, context: ProcessorContext
    ) -> SourceNode:
        serdes = definition.key_serde, definition.value_serde
        self._source_names[topic] = definition.name
        extractor = definition.timestamp_extractor or self._timestamp_extractor
        return SourceNode(topic, serdes, extractor, context, self)

    def _source(self, topic: str) -> SourceNode:
        found = self._sources.get(topic)
        if found is None:
            for definition, context in self._patterns:
                if definition.pattern is not None and definition.pattern.fullmatch(topic):
                    found = self._sources[topic] = self._reader(topic, definition, context)
                    break
            else:
                raise StreamsError(f"no source of task {self.task_id} reads topic {topic}")
        return found

    def reads(self, topic: str) -> bool:
        """Whether a source of this task reads a topic."""
        return topic in self._sources or any(
            definition.pattern is not None and definition.pattern.fullmatch(topic)
            for definition, _ in self._patterns
        )

    def process(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers = (),
    ) -> None:
        """Process one input record to the end."""
        self._source(topic).read(partition, offset, key, value, timestamp, headers)

    def process_records(self, topic: str, partition: int, records: Iterable[InputRecord]) -> None:
        """Process records of one partition in their order, without punctuations in between."""
        self._source(topic).read_all(partition, records)

    @property
    def waits_for_stream_time(self) -> bool:
        """Whether a processor has scheduled anything by stream time."""
        return len(self._punctuations[PunctuationType.STREAM_TIME]) > 0

    def punctuate_stream_time(self) -> bool:
        """Fire what is due by stream time; whether anything was."""
        now_ms = self.core.stream_time_ms
        return now_ms >= 0 and self._punctuate(PunctuationType.STREAM_TIME, now_ms)

    def punctuate_wall_clock(self, now_ms: int) -> bool:
        """Set the wall clock and fire what is due by it; whether anything was."""
        self.core.wall_clock_ms = now_ms
        return self._punctuate(PunctuationType.WALL_CLOCK_TIME, now_ms)

    def _punctuate(self, kind: PunctuationType, now_ms: int) -> bool:
        return self._punctuations[kind].fire(now_ms, self._call)

    def _call(self, punctuation: Punctuation, now_ms: int) -> None:
        where = self.core.record_context = RecordContext("", -1, -1, now_ms, ())
        self.core.raw_key = self.core.raw_value = None
        try:
            punctuation.callback(now_ms)
        except PassedOnError:
            raise
        except Exception as error:
            name = punctuation.context.name
            context = self._failed_at(where, name)
            answer = self._handlers.processing(context, None, name, error)
            if self._is_skipped(answer, where, error):
                return
            raise ProcessingError(
                f"Exception caught in punctuate. taskId={self.task_id}, processor={name}", name
            ) from error

    def flush(self) -> None:
        """Write what stores and caches hold back. `prepare_commit` does it, too."""
        self._stores.flush()

    def prepare_commit(self) -> dict[TopicPartition, CommittedOffset]:
        """Write what is held back, and return the offsets to commit.

        Everything that was passed to `collect` until now belongs to this commit.
        """
        self.commit_requested = False
        self.flush()
        return self.progress.to_commit()

    def committed(self, changelog_offsets: Mapping[str, int], *, force: bool = False) -> None:
        """Offsets and records are committed; make local state durable.

        `changelog_offsets` has, by store, the offset after the last record of its changelog. Input
        topics that serve as changelogs need none. `force` writes the checkpoint at once, as it is
        needed before a task is closed.
        """
        offsets = dict(changelog_offsets)
        for changelog in self._stores.changelogs():
            place = TopicPartition(changelog.topic, self._partition)
            if changelog.is_source and place in self.progress.positions:
                offsets[changelog.store] = self.progress.positions[place]
        self.progress.committed()
        self._stores.checkpoint(offsets, force=force)

    def close(self) -> None:
        """Close processors, then stores. What was not committed is lost."""
        for node in self._nodes.values() if self._initialized else ():
            node.processor.close()
        self._stores.close()
