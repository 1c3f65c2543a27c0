"""The InfluxDB source: points of measurements to topics, by InfluxQL over HTTP (version 1, and what
answers its queries).

With `mode=timestamp` the offset of a measurement is the time of its last point: points that come
later with an earlier time are not seen, which `timestamp.delay.interval.ms` allows for. A poll does
not end between points of one time, so none of them is lost.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from moldau.connect.api import (
    CheckedBy,
    ConfigDef,
    ConnectError,
    Importance,
    Kind,
    OneOf,
    Range,
    SourceRecord,
    SourceTask,
)
from moldau.connect.connectors.http.login import check_url
from moldau.connect.connectors.support.plain import SingleSource
from moldau.connect.connectors.support.web import WebClient, basic, define_connection, plain

CONFIG: Final = (
    define_connection(ConfigDef())
    .define("influxdb.url", Kind.STRING, importance=Importance.HIGH, group="InfluxDB",
            validator=CheckedBy(check_url, "a URL"), doc="Address")
    .define("influxdb.db", Kind.STRING, importance=Importance.HIGH, group="InfluxDB",
            doc="Database")
    .define("influxdb.username", Kind.STRING, "", group="InfluxDB", doc="User")
    .define("influxdb.password", Kind.PASSWORD, None, group="InfluxDB", doc="Its password")
    .define("mode", Kind.STRING, "timestamp", group="Mode",
            validator=OneOf(("timestamp", "bulk")),
            doc="timestamp: points that are newer than the last; bulk: all, each time")
    .define("timestamp.delay.interval.ms", Kind.LONG, 0, validator=Range(0), group="Mode",
            doc="How old points must be, so that late ones are not missed")
    .define("influxdb.measurement.whitelist", Kind.LIST, (), group="Mode",
            doc="Measurements to read; empty: all")
    .define("influxdb.measurement.blacklist", Kind.LIST, (), group="Mode",
            doc="Measurements to leave out")
    .define("poll.interval.ms", Kind.INT, 5000, validator=Range(1), group="Mode",
            doc="How long to wait when there is nothing new")
    .define("batch.size", Kind.INT, 1000, validator=Range(1), group="Mode",
            doc="How many points of a measurement one query returns")
    .define("topic.prefix", Kind.STRING, "", group="Records", doc="Prefix of topics")
    .define("topic.mapper", Kind.STRING, "db", group="Records",
            validator=OneOf(("db", "measurement")),
            doc="What follows the prefix: the name of the database, or of the measurement")
)  # fmt: skip
_NS_PER_MS: Final = 1_000_000


class InfluxDbSourceConnector(SingleSource):
    DESCRIPTION = "Points of InfluxDB's measurements to topics"
    SETTINGS = CONFIG

    def task_class(self) -> type[SourceTask]:
        return InfluxDbSourceTask


class InfluxDbSourceTask(SourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._stopped = threading.Event()
        self._last: dict[str, int] = {}
        self._waits = False
        user = config["influxdb.username"]
        self._client = WebClient(
            config["influxdb.url"],
            key="influxdb.url",
            timeout_s=config["read.timeout.ms"] / 1000,
            authorization=basic(user, plain(config["influxdb.password"]) or "") if user else None,
            trusted=config["ssl.truststore.location"],
            verify_hostname=config["ssl.verify.hostname"],
        )

    def poll(self) -> Sequence[SourceRecord] | None:
        config = self._config
        if self._waits and self._stopped.wait(config["poll.interval.ms"] / 1000):
            return None
        found: list[SourceRecord] = []
        for measurement in self._measurements():
            found += self._points(measurement)
        self._waits = config["mode"] == "bulk" or not found
        return found or None

    def _measurements(self) -> list[str]:
        wanted = self._config["influxdb.measurement.whitelist"]
        unwanted = self._config["influxdb.measurement.blacklist"]
        series = self._query("SHOW MEASUREMENTS")
        names = [row[0] for each in series for row in each.get("values", ())]
        return [name for name in names if (not wanted or name in wanted) and name not in unwanted]

    def _points(self, measurement: str) -> list[SourceRecord]:
        config = self._config
        name = _quoted(measurement)
        bulk = config["mode"] == "bulk"
        limit = config["batch.size"]
        while True:
            where = "" if bulk else f" WHERE {self._window(measurement)}"
            series = self._query(
                f"SELECT * FROM {name}{where} ORDER BY time ASC"
                + ("" if bulk else f" LIMIT {limit}")
            )
            columns = series[0]["columns"] if series else []
            rows = series[0].get("values", []) if series else []
            at = columns.index("time") if rows else 0
            whole = rows
            if not bulk and len(rows) >= limit:
                # The last time may have more points than fit: it is left for the next query.
                whole = [row for row in rows if row[at] != rows[-1][at]]
            if whole or not rows:
                break
            limit *= 2
        if not whole:
            return []
        tags = self._tags(name)
        return [
            self._record(measurement, dict(zip(columns, row, strict=True)), tags) for row in whole
        ]

    def _window(self, measurement: str) -> str:
        if measurement not in self._last:
            stored = self.context.offset_storage_reader.offset(self._partition(measurement)) or {}
            self._last[measurement] = int(stored.get("time", -1))
        delay_ms = self._config["timestamp.delay.interval.ms"]
        newest = time.time_ns() - delay_ms * _NS_PER_MS
        return f"time > {self._last[measurement]} AND time <= {newest}"

    def _tags(self, name: str) -> set[str]:
        series = self._query(f"SHOW TAG KEYS FROM {name}")
        return {row[0] for each in series for row in each.get("values", ())}

    def _record(self, measurement: str, point: dict[str, Any], tags: set[str]) -> SourceRecord:
        config = self._config
        moment = int(point.pop("time"))
        self._last[measurement] = moment
        given = {key: value for key, value in point.items() if value is not None}
        value = {
            "measurement": measurement,
            "time": moment,
            "tags": {key: each for key, each in given.items() if key in tags},
            **{key: each for key, each in given.items() if key not in tags},
        }
        suffix = config["influxdb.db"] if config["topic.mapper"] == "db" else measurement
        return SourceRecord(
            self._partition(measurement),
            {"time": moment},
            config["topic.prefix"] + suffix,
            value=value,
            timestamp=moment // _NS_PER_MS,
        )

    def _partition(self, measurement: str) -> dict[str, str]:
        return {"db": self._config["influxdb.db"], "measurement": measurement}

    def _query(self, text: str) -> list[dict[str, Any]]:
        """The series of the first result."""
        path = "/query?" + urlencode({"db": self._config["influxdb.db"], "epoch": "ns", "q": text})
        answer = self._client.request("GET", path)
        try:
            document = json.loads(answer.body)
        except ValueError:
            raise ConnectError(
                f"{self._client.shown} did not answer JSON to a query: {answer.text[:200]}"
            ) from None
        result = (document.get("results") or [{}])[0]
        error = document.get("error") or result.get("error")
        if answer.status >= 300 or error:
            raise ConnectError(f"InfluxDB: {text} was answered with {answer.status}: {error}")
        series: list[dict[str, Any]] = result.get("series") or []
        return series

    def stop(self) -> None:
        self._stopped.set()
        self._client.close()


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
