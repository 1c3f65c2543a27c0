"""The sink for Splunk's HTTP Event Collector, and whatever else takes its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConnectError,
    Importance,
    Kind,
    Range,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.http.sink import check_url
from moldau.connect.connectors.support.documents import document
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import WebClient, define_connection, plain
from moldau.data import json_text

CONFIG: Final = (
    define_connection(ConfigDef())
    .define("splunk.hec.uri", Kind.STRING, importance=Importance.HIGH,
            validator=CheckedBy(check_url, "a URL"), group="Splunk", doc="Address of the collector")
    .define("splunk.hec.token", Kind.PASSWORD, importance=Importance.HIGH, group="Splunk",
            doc="Its token")
    .define("splunk.hec.max.batch.size", Kind.INT, 500, validator=Range(1), group="Splunk",
            doc="How many events one request has")
    .define("splunk.indexes", Kind.STRING, "", group="Splunk", doc="Index; empty: the token's own")
    .define("splunk.sources", Kind.STRING, "", group="Splunk", doc="Source of events")
    .define("splunk.sourcetypes", Kind.STRING, "", group="Splunk", doc="Source type of events")
    .define("splunk.hec.raw", Kind.BOOLEAN, False, group="Splunk",
            doc="Send texts as they are to /services/collector/raw")
    .define("splunk.hec.use.record.timestamp", Kind.BOOLEAN, True, group="Splunk",
            doc="Whether the time of an event is that of its record")
)  # fmt: skip


class SplunkSinkConnector(PlainSink):
    DESCRIPTION = "Records to events of Splunk's HTTP Event Collector"
    SETTINGS = CONFIG

    def task_class(self) -> type[SinkTask]:
        return SplunkSinkTask


class SplunkSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._client = WebClient(
            config["splunk.hec.uri"],
            key="splunk.hec.uri",
            timeout_s=config["read.timeout.ms"] / 1000,
            authorization=f"Splunk {plain(config['splunk.hec.token'])}",
            trusted=config["ssl.truststore.location"],
            verify_hostname=config["ssl.verify.hostname"],
        )

    def put(self, records: Sequence[SinkRecord]) -> None:
        size, raw = self._config["splunk.hec.max.batch.size"], self._config["splunk.hec.raw"]
        wanted = [record for record in records if record.value is not None]
        path = "/services/collector/raw" if raw else "/services/collector/event"
        for start in range(0, len(wanted), size):
            batch = wanted[start : start + size]
            lines = [self._raw(each) if raw else self._event(each) for each in batch]
            answer = self._client.request("POST", path, b"\n".join(lines))
            if answer.status >= 300:
                raise ConnectError(
                    f"{self._client.shown}{path} was answered with {answer.status}: "
                    f"{answer.text[:500]}"
                )

    @staticmethod
    def _raw(record: SinkRecord) -> bytes:
        value = record.value
        if isinstance(value, (bytes, bytearray)):
            return bytes(value)
        return (value if isinstance(value, str) else json_text.compact(document(value))).encode()

    def _event(self, record: SinkRecord) -> bytes:
        event: dict[str, Any] = {"event": document(record.value)}
        for key, name in (
            ("indexes", "index"),
            ("sources", "source"),
            ("sourcetypes", "sourcetype"),
        ):
            if self._config[f"splunk.{key}"]:
                event[name] = self._config[f"splunk.{key}"]
        if self._config["splunk.hec.use.record.timestamp"] and record.timestamp is not None:
            event["time"] = record.timestamp / 1000
        event["fields"] = {
            "kafka_topic": record.original_topic,
            "kafka_partition": str(record.original_partition),
            "kafka_offset": str(record.original_offset),
        }
        return json_text.compact(event).encode()

    def stop(self) -> None:
        self._client.close()
