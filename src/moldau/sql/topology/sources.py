"""The topics that a plan reads, as streams and tables."""

from __future__ import annotations

from typing import Any

from moldau.sql.planning.building import internal, internal_key
from moldau.sql.planning.steps import SourceStep, Step, is_repartitioned
from moldau.sql.sources.data_source import DataSource
from moldau.sql.topology.context_table import context_table
from moldau.sql.topology.holders import Holder, Materialization, StreamHolder, TableHolder
from moldau.sql.topology.processors import AddColumns, header_columns, key_columns
from moldau.sql.topology.serdes import Serdes
from moldau.sql.topology.times import ReadTime, extractor, is_key_time, time_reader
from moldau.streams.machine.definitions import TimestampExtractor
from moldau.streams.records import RecordContext
from moldau.streams.topology import stream_steps
from moldau.streams.topology.handles import Materialized
from moldau.streams.topology.stream_steps import VALUE
from moldau.streams.topology.streams_builder import StreamsBuilder


class SourceBuilder:
    """Adds sources to a topology."""

    def __init__(
        self,
        streams: StreamsBuilder,
        serdes: Serdes,
        internal_serdes: Serdes,
        plan: Step,
        *,
        throws: bool,
    ) -> None:
        self._streams = streams
        self._serdes = serdes
        self._internal = internal_serdes
        self._plan = plan
        self._throws = throws

    def build(self, step: SourceStep) -> Holder:
        return self._stream(step) if step.kind == "STREAM" else self._table(step)

    def _times(self, source: DataSource) -> tuple[TimestampExtractor | None, ReadTime | None]:
        """A column of the value is read before the record is processed, one of the key after."""
        timestamp = source.timestamp
        if timestamp is None:
            return None, None
        if is_key_time(source.schema, timestamp):
            return None, time_reader(source.schema, timestamp)
        return extractor(source.schema, timestamp, throws=self._throws), None

    def _stream(self, step: SourceStep) -> Holder:
        source = step.source
        extract, read_time = self._times(source)
        stream = self._streams.stream(
            source.topic,
            key_serde=self._serdes.key(source.key_format, source.schema),
            value_serde=self._serdes.value(
                source.value_format.format, source.schema, source.value_format.features
            ),
            timestamp_extractor=extract,
        )
        keys = key_columns(source.schema, windowed=source.is_windowed)
        headers = header_columns(source.schema.headers) if source.schema.headers else None
        handle = stream_steps.step(
            stream._at,
            "KSTREAM-PROCESSVALUES-",
            None,
            lambda: AddColumns(keys, headers, read_time),
            **VALUE,
        )
        return StreamHolder(handle=handle, schema=step.schema)

    def _table(self, step: SourceStep) -> Holder:
        source, schema = step.source, step.source.schema
        extract, _ = self._times(source)
        features = source.value_format.features
        table = self._streams.table(
            source.topic,
            key_serde=self._serdes.key(source.key_format, schema),
            value_serde=self._serdes.value(source.value_format.format, schema, features),
            timestamp_extractor=extract,
            offset_reset="earliest",
        )
        store_schema = schema.with_pseudo_to_materialize()
        key_format = internal_key(source.key_format)
        store = None
        if not is_repartitioned(self._plan, step):
            store = Materialized(
                name="-".join((*step.context[:-1], "Reduce")),
                key_serde=self._internal.key(key_format, schema),
                value_serde=self._internal.value(
                    internal(source.value_format.format), store_schema
                ),
            )
        headers = header_columns(schema.headers)
        keys = key_columns(schema, windowed=source.is_windowed)
        plain = len(schema.value) + len(schema.headers)

        def placed(key: Any, row: Any, timestamp: int, where: RecordContext | None) -> Any:
            if where is None:
                return (*row, *headers(()), None, None)
            return (*row, *headers(where.headers), where.partition, where.offset)

        def timed(key: Any, row: Any, timestamp: int, where: RecordContext | None) -> Any:
            return row[:plain] + (timestamp,) + row[plain:] + keys(key)

        with_place = context_table(table._at, placed, store)
        found = None
        if store is not None:
            found = Materialization(
                store_name=store.name or "",
                store_schema=store_schema,
                schema=store_schema,
                key_format=key_format,
                window=source.key_format.window,
            ).then(lambda key, row, timestamp: timed(key, row, timestamp, None), step.schema)
        return TableHolder(
            table=context_table(with_place, timed), schema=step.schema, materialization=found
        )
