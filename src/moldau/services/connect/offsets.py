"""Offsets of connectors, for users: read, altered, reset. Sources have them in the offset store,
sinks in their consumer group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client import Admin, KafkaError, OffsetAndMetadata, TopicPartition
from moldau.connect.api import (
    ConnectError,
    DataError,
    SinkConnector,
    SourceConnector,
    SourcePartition,
)
from moldau.connect.machine.source_offsets import checked
from moldau.connect.plugins import named_plugin
from moldau.connect.runtime.clients import connector_client
from moldau.connect.runtime.worker import Worker
from moldau.services.connect.machine.errors import BadRequest

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_TIMEOUT_S = 30.0
Pairs = list[tuple[Mapping[str, Any], Mapping[str, Any] | None]]


class ConnectorOffsets:
    """All calls block."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def read(self, name: str, config: Mapping[str, str | None]) -> Pairs:
        resolved, connector = self._connector(config)
        if isinstance(connector, SourceConnector):
            with self._worker.offsets.lease(resolved) as lease:
                return list(lease.store.all(name).items())
        group = self._group(name, resolved)
        with self._admin(resolved) as admin:
            try:
                found = admin.list_consumer_group_offsets(group)[group]
            except KafkaError as error:
                raise ConnectError(
                    f"Failed to retrieve consumer group offsets for sink connector {name}: {error}"
                ) from error
        return [
            ({TOPIC: at.topic, PARTITION: at.partition}, {OFFSET: each.offset})
            for at, each in sorted(found.items())
            if each is not None
        ]

    def modify(self, name: str, config: Mapping[str, str | None], pairs: Pairs | None) -> str:
        """Set offsets, or with None forget all; the message for the user."""
        resolved, connector = self._connector(config)
        if isinstance(connector, SourceConnector):
            handled = self._modify_source(name, resolved, connector, pairs)
        else:
            handled = self._modify_sink(name, resolved, connector, pairs)
        what = "reset" if pairs is None else "altered"
        if handled:
            return f"The offsets for this connector have been {what} successfully"
        return (
            f"The Connect framework-managed offsets for this connector have been {what} "
            "successfully. However, if this connector manages offsets externally, they will need "
            f"to be manually {what} in the system that the connector uses."
        )

    def _modify_source(
        self,
        name: str,
        config: Mapping[str, str],
        connector: SourceConnector,
        pairs: Pairs | None,
    ) -> bool:
        with self._worker.offsets.lease(config) as lease:
            wanted = (
                dict.fromkeys(lease.store.all(name), None)
                if pairs is None
                else source_offsets(pairs)
            )
            handled = connector.alter_offsets(config, wanted)
            if wanted:
                lease.store.put(name, wanted, _TIMEOUT_S)
        return handled

    def _modify_sink(
        self,
        name: str,
        config: Mapping[str, str],
        connector: SinkConnector,
        pairs: Pairs | None,
    ) -> bool:
        group = self._group(name, config)
        with self._admin(config) as admin:
            try:
                if pairs is None:
                    found = admin.list_consumer_group_offsets(group)[group]
                    handled = connector.alter_offsets(config, dict.fromkeys(found, None))
                    admin.delete_consumer_groups([group])
                    return handled
                wanted = sink_offsets(pairs)
                handled = connector.alter_offsets(config, wanted)
                changed = {at: OffsetAndMetadata(o) for at, o in wanted.items() if o is not None}
                if changed:
                    admin.alter_consumer_group_offsets(group, changed)
                gone = [at for at, o in wanted.items() if o is None]
                if gone:
                    admin.delete_consumer_group_offsets(group, gone)
            except KafkaError as error:
                if type(error).__name__ == "GroupIdNotFoundError" and pairs is None:
                    return connector.alter_offsets(config, {})
                raise ConnectError(
                    f"Failed to {'reset' if pairs is None else 'alter'} consumer group offsets "
                    f"for connector {name}: {error}. If its tasks stopped just now, try again"
                ) from error
        return handled

    def _connector(self, config: Mapping[str, str | None]) -> tuple[dict[str, str], Any]:
        resolved = self._worker.config.resolved(config)
        return resolved, self._worker.plugins.connector(*named_plugin(resolved))()

    def _group(self, name: str, config: Mapping[str, str]) -> str:
        return config.get("consumer.override.group.id") or f"connect-{name}"

    def _admin(self, config: Mapping[str, str]) -> Admin:
        settings = self._worker.config.settings
        return Admin(connector_client(settings, "admin", config, defaults={}))


def source_offsets(pairs: Pairs) -> dict[SourcePartition, Mapping[str, Any] | None]:
    """Raises BadRequest for what is no offset of a source."""
    found: dict[SourcePartition, Mapping[str, Any] | None] = {}
    for partition, offset in pairs:
        if partition is None and offset is None:
            # There is nothing to forget.
            continue
        if not isinstance(partition, Mapping):
            raise BadRequest("The partition of a source connector offset must be a map")
        try:
            checked("source partition", partition)
            checked("source offset", offset)
        except DataError as error:
            raise BadRequest(str(error)) from None
        found[SourcePartition(partition)] = offset
    return found


def sink_offsets(pairs: Pairs) -> dict[TopicPartition, int | None]:
    """Raises BadRequest for what is no offset of a sink."""
    found: dict[TopicPartition, int | None] = {}
    for partition, offset in pairs:
        if not isinstance(partition, Mapping):
            raise BadRequest("The partition for a sink connector offset cannot be null or missing")
        if TOPIC not in partition or PARTITION not in partition:
            raise BadRequest(
                f"The partition for a sink connector offset must contain the keys '{TOPIC}' and "
                f"'{PARTITION}'"
            )
        topic = partition[TOPIC]
        if not isinstance(topic, str):
            raise BadRequest("Kafka topic names must be valid strings and may not be null")
        at = TopicPartition(topic, _number("partition", partition[PARTITION]))
        if offset is None:
            found[at] = None
            continue
        if not isinstance(offset, Mapping) or OFFSET not in offset:
            raise BadRequest(
                "The offset for a sink connector should either be null or contain the key "
                f"'{OFFSET}'"
            )
        found[at] = _number("offset", offset[OFFSET])
    return found


def _number(what: str, value: Any) -> int:
    if value is None and what == "partition":
        raise BadRequest("Kafka partitions must be valid numbers and may not be null")
    try:
        if isinstance(value, bool | float):
            raise ValueError
        found = int(value)
        if not 0 <= found < 1 << 63:
            raise ValueError
    except (TypeError, ValueError):
        raise BadRequest(
            f"Failed to parse the following Kafka {what} value in the provided offsets: "
            f"'{'null' if value is None else value}'. {what.capitalize()} values for sink "
            "connectors need to be integers."
        ) from None
    return found
