"""Kafka Streams for Python: streams, tables, joins, windows and processors.

A program builds a topology; a host runs it. `TopologyTestDriver` runs it in a test, `KafkaStreams`
on a cluster. A name is imported when it is first used: a test does not pay for the clients, nor an
application for the test driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moldau.collecting import keeping_all

if TYPE_CHECKING:
    from moldau.streams.errors import ProcessingError, StreamsError, TopologyError
    from moldau.streams.hosts.driver import TestInputTopic, TestOutputTopic, TopologyTestDriver
    from moldau.streams.hosts.kafka_streams import KafkaStreams
    from moldau.streams.hosts.mock_context import (
        CapturedForward,
        CapturedPunctuator,
        MockProcessorContext,
    )
    from moldau.streams.machine.context import Processor, ProcessorContext, PunctuationType
    from moldau.streams.machine.error_handlers import (
        DeadLetter,
        ErrorContext,
        ErrorResponse,
        Handlers,
        UnwrittenRecord,
        fail_on_error,
        retry_if_retriable,
        skip_on_error,
    )
    from moldau.streams.machine.extractors import (
        fail_on_invalid_timestamp,
        log_and_skip_on_invalid_timestamp,
        use_partition_time_on_invalid_timestamp,
        wall_clock_timestamp,
    )
    from moldau.streams.machine.lifecycle import State, UncaughtExceptionResponse
    from moldau.streams.machine.position import Position
    from moldau.streams.machine.processor_metrics import ProcessorMetrics
    from moldau.streams.machine.store_queries import (
        FailureReason,
        KeyQuery,
        MultiVersionedKeyQuery,
        PositionBound,
        QueryResult,
        RangeQuery,
        StateQueryRequest,
        StateQueryResult,
        TimestampedKeyQuery,
        TimestampedRangeQuery,
        VersionedKeyQuery,
        VersionedRecord,
        WindowKeyQuery,
        WindowRangeQuery,
    )
    from moldau.streams.records import (
        AggregationWithHeaders,
        Record,
        RecordContext,
        ValueAndTimestamp,
        ValueTimestampHeaders,
        Window,
        Windowed,
    )
    from moldau.streams.serdes import ListSerde, Serde, SimpleSerde
    from moldau.streams.stores.base import (
        PUT_RETURN_CODE_NOT_PUT,
        PUT_RETURN_CODE_VALID_TO_UNDEFINED,
        StateStore,
        StoreBuilder,
    )
    from moldau.streams.stores.builders import (
        key_value_store,
        lru_map,
        session_store,
        timestamped_key_value_store,
        versioned_key_value_store,
        window_store,
    )
    from moldau.streams.topology.dsl import (
        BranchedKStream,
        CogroupedKStream,
        GlobalKTable,
        KGroupedStream,
        KGroupedTable,
        KStream,
        KTable,
    )
    from moldau.streams.topology.handles import Materialized
    from moldau.streams.topology.join_options import StreamJoined
    from moldau.streams.topology.streams_builder import StreamsBuilder
    from moldau.streams.topology.topology import Topology
    from moldau.streams.windows import (
        EmitStrategy,
        JoinWindows,
        SessionWindows,
        SlidingWindows,
        Suppressed,
        TimeWindows,
        UnlimitedWindows,
    )

__all__ = [
    "PUT_RETURN_CODE_NOT_PUT",
    "PUT_RETURN_CODE_VALID_TO_UNDEFINED",
    "AggregationWithHeaders",
    "BranchedKStream",
    "CapturedForward",
    "CapturedPunctuator",
    "CogroupedKStream",
    "DeadLetter",
    "EmitStrategy",
    "ErrorContext",
    "ErrorResponse",
    "FailureReason",
    "GlobalKTable",
    "Handlers",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KafkaStreams",
    "KeyQuery",
    "ListSerde",
    "Materialized",
    "MockProcessorContext",
    "MultiVersionedKeyQuery",
    "Position",
    "PositionBound",
    "ProcessingError",
    "Processor",
    "ProcessorContext",
    "ProcessorMetrics",
    "PunctuationType",
    "QueryResult",
    "RangeQuery",
    "Record",
    "RecordContext",
    "Serde",
    "SessionWindows",
    "SimpleSerde",
    "SlidingWindows",
    "State",
    "StateQueryRequest",
    "StateQueryResult",
    "StateStore",
    "StoreBuilder",
    "StreamJoined",
    "StreamsBuilder",
    "StreamsError",
    "Suppressed",
    "TestInputTopic",
    "TestOutputTopic",
    "TimeWindows",
    "TimestampedKeyQuery",
    "TimestampedRangeQuery",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "UncaughtExceptionResponse",
    "UnlimitedWindows",
    "UnwrittenRecord",
    "ValueAndTimestamp",
    "ValueTimestampHeaders",
    "VersionedKeyQuery",
    "VersionedRecord",
    "Window",
    "WindowKeyQuery",
    "WindowRangeQuery",
    "Windowed",
    "fail_on_error",
    "fail_on_invalid_timestamp",
    "key_value_store",
    "log_and_skip_on_invalid_timestamp",
    "lru_map",
    "retry_if_retriable",
    "session_store",
    "skip_on_error",
    "timestamped_key_value_store",
    "use_partition_time_on_invalid_timestamp",
    "versioned_key_value_store",
    "wall_clock_timestamp",
    "window_store",
]

_MODULES = {
    "errors": ("ProcessingError", "StreamsError", "TopologyError"),
    "hosts.driver": ("TestInputTopic", "TestOutputTopic", "TopologyTestDriver"),
    "hosts.kafka_streams": ("KafkaStreams",),
    "hosts.mock_context": ("CapturedForward", "CapturedPunctuator", "MockProcessorContext"),
    "machine.context": ("Processor", "ProcessorContext", "PunctuationType"),
    "machine.error_handlers": (
        "DeadLetter",
        "ErrorContext",
        "ErrorResponse",
        "Handlers",
        "UnwrittenRecord",
        "fail_on_error",
        "retry_if_retriable",
        "skip_on_error",
    ),
    "machine.extractors": (
        "fail_on_invalid_timestamp",
        "log_and_skip_on_invalid_timestamp",
        "use_partition_time_on_invalid_timestamp",
        "wall_clock_timestamp",
    ),
    "machine.lifecycle": ("State", "UncaughtExceptionResponse"),
    "machine.position": ("Position",),
    "machine.processor_metrics": ("ProcessorMetrics",),
    "machine.store_queries": (
        "FailureReason",
        "KeyQuery",
        "MultiVersionedKeyQuery",
        "PositionBound",
        "QueryResult",
        "RangeQuery",
        "StateQueryRequest",
        "StateQueryResult",
        "TimestampedKeyQuery",
        "TimestampedRangeQuery",
        "VersionedKeyQuery",
        "VersionedRecord",
        "WindowKeyQuery",
        "WindowRangeQuery",
    ),
    "records": (
        "AggregationWithHeaders",
        "Record",
        "RecordContext",
        "ValueAndTimestamp",
        "ValueTimestampHeaders",
        "Window",
        "Windowed",
    ),
    "serdes": ("ListSerde", "Serde", "SimpleSerde"),
    "stores.base": (
        "PUT_RETURN_CODE_NOT_PUT",
        "PUT_RETURN_CODE_VALID_TO_UNDEFINED",
        "StateStore",
        "StoreBuilder",
    ),
    "stores.builders": (
        "key_value_store",
        "lru_map",
        "session_store",
        "timestamped_key_value_store",
        "versioned_key_value_store",
        "window_store",
    ),
    "topology.dsl": (
        "BranchedKStream",
        "CogroupedKStream",
        "GlobalKTable",
        "KGroupedStream",
        "KGroupedTable",
        "KStream",
        "KTable",
    ),
    "topology.handles": ("Materialized",),
    "topology.join_options": ("StreamJoined",),
    "topology.streams_builder": ("StreamsBuilder",),
    "topology.topology": ("Topology",),
    "windows": (
        "EmitStrategy",
        "JoinWindows",
        "SessionWindows",
        "SlidingWindows",
        "Suppressed",
        "TimeWindows",
        "UnlimitedWindows",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Looking for garbage in what is imported took a fifth of the time.
    with keeping_all():
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
