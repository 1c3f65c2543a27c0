"""The InfluxDB sink, for versions 1 and 2 and all that take the line protocol over HTTP.

A point that is written again, with the same tags and time, replaces itself: records that come twice
do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConnectError,
    DataError,
    Importance,
    Kind,
    Range,
    SinkRecord,
    SinkTask,
)
from moldau.connect.connectors.http.login import check_url
from moldau.connect.connectors.influxdb.machine.lines import line
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import WebClient, basic, define_connection, plain
from moldau.data.struct import Struct

CONFIG: Final = (
    define_connection(ConfigDef())
    .define("influxdb.url", Kind.STRING, importance=Importance.HIGH, group="InfluxDB",
            validator=CheckedBy(check_url, "a URL"), doc="Address")
    .define("influxdb.db", Kind.STRING, "", group="InfluxDB", doc="Database, for version 1")
    .define("influxdb.username", Kind.STRING, "", group="InfluxDB", doc="User, for version 1")
    .define("influxdb.password", Kind.PASSWORD, None, group="InfluxDB", doc="Its password")
    .define("influxdb.org", Kind.STRING, "", group="InfluxDB", doc="Organisation, for version 2")
    .define("influxdb.bucket", Kind.STRING, "", group="InfluxDB", doc="Bucket, for version 2")
    .define("influxdb.token", Kind.PASSWORD, None, group="InfluxDB", doc="Token, for version 2")
    .define("measurement.name.format", Kind.STRING, "${topic}", group="Points",
            doc="Measurement; ${topic} is replaced")
    .define("tags", Kind.LIST, (), group="Points", doc="Fields that become tags")
    .define("event.time.fieldname", Kind.STRING, "", group="Points",
            doc="Field with the time in ms; empty: the record's timestamp")
    .define("batch.size", Kind.INT, 5000, validator=Range(1), group="Points",
            doc="How many points one request has")
)  # fmt: skip


class InfluxDbSinkConnector(PlainSink):
    DESCRIPTION = "Records to points of InfluxDB"
    SETTINGS = CONFIG

    def task_class(self) -> type[SinkTask]:
        return InfluxDbSinkTask


class InfluxDbSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        authorization = None
        if token := plain(config["influxdb.token"]):
            authorization = f"Token {token}"
        elif config["influxdb.username"]:
            password = plain(config["influxdb.password"]) or ""
            authorization = basic(config["influxdb.username"], password)
        if config["influxdb.bucket"]:
            query = {"org": config["influxdb.org"], "bucket": config["influxdb.bucket"]}
            self._path = "/api/v2/write?" + urlencode({**query, "precision": "ns"})
        else:
            self._path = "/write?" + urlencode({"db": config["influxdb.db"], "precision": "ns"})
        self._client = WebClient(
            config["influxdb.url"],
            key="influxdb.url",
            timeout_s=config["read.timeout.ms"] / 1000,
            authorization=authorization,
            trusted=config["ssl.truststore.location"],
            verify_hostname=config["ssl.verify.hostname"],
        )

    def put(self, records: Sequence[SinkRecord]) -> None:
        lines = []
        for record in records:
            try:
                if record.value is not None:
                    lines.append(self._line(record))
            except DataError as error:
                reporter = self.context.errant_record_reporter
                if reporter is None:
                    raise
                reporter.report(record, error)
        size = self._config["batch.size"]
        for start in range(0, len(lines), size):
            self._send("\n".join(lines[start : start + size]).encode())

    def _line(self, record: SinkRecord) -> str:
        value = record.value
        fields: dict[str, Any]
        if isinstance(value, Struct):
            fields = {each.name: value.get(each.name) for each in value.schema.fields}
        elif isinstance(value, dict):
            fields = dict(value)
        else:
            raise DataError(
                f"record {record.topic}-{record.partition}@{record.offset} has no fields"
            )
        time_ms = record.timestamp
        if name := self._config["event.time.fieldname"]:
            found = fields.pop(name, None)
            if not isinstance(found, int):
                raise DataError(f"field {name} has no time in ms: {found!r}")
            time_ms = found
        measurement = self._config["measurement.name.format"].replace("${topic}", record.topic)
        time_ns = None if time_ms is None else time_ms * 1_000_000
        return line(measurement, fields, self._config["tags"], time_ns)

    def _send(self, body: bytes) -> None:
        answer = self._client.request("POST", self._path, body)
        if answer.status >= 300:
            raise ConnectError(
                f"{self._client.shown} was answered with {answer.status}: {answer.text[:500]}"
            )

    def stop(self) -> None:
        self._client.close()
