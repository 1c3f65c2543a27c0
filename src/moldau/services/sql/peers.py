"""Peers: the other servers of a service id. Heartbeats, lags, and pull queries sent on to them."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import Any, Final

from moldau.client.errors import KafkaError
from moldau.services.sql.config import SqlConfig
from moldau.services.sql.hosting import QueryHost
from moldau.services.sql.machine.frames import DELIMITED
from moldau.services.sql.machine.liveness import Liveness
from moldau.streams.errors import StreamsError

__all__ = ["SKIP_FORWARDING", "PeerFailed", "Peers"]

logger = logging.getLogger(__name__)

#: ksqlDB's property of a pull query that was passed on: it is not passed on again.
SKIP_FORWARDING: Final = "request.ksql.query.pull.skip.forwarding"
_BEAT_TIMEOUT_S: Final = 2.0


class PeerFailed(Exception):
    """Another server did not answer, or refused."""


class Peers:
    """Sends from a thread of its own; requests to other servers have a limit of time."""

    def __init__(self, config: SqlConfig, host: QueryHost) -> None:
        self._config = config
        self._host = host
        self._scheme = "http"
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.liveness = Liveness(
            own="",
            window_ms=config["ksql.heartbeat.window.ms"],
            interval_ms=config["ksql.heartbeat.send.interval.ms"],
            missed_max=config["ksql.heartbeat.missed.threshold.ms"],
            enabled=config["ksql.heartbeat.enable"],
        )

    def start(self, address: str, scheme: str) -> None:
        self.liveness.own = address
        self._scheme = scheme
        if self._config["ksql.heartbeat.enable"] or self._config["ksql.lag.reporting.enable"]:
            self._thread = threading.Thread(target=self._run, name="sql-heartbeats", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_BEAT_TIMEOUT_S * 2)

    # Who is there.

    def addresses(self) -> set[str]:
        """All servers that have a part of a query, and this one."""
        found = {self.liveness.own} if self.liveness.own else set()
        for query_id in self._host.persistent_ids():
            streams = self._host.streams(query_id)
            if streams is None:
                continue
            try:
                for each in streams.metadata_for_all_streams_clients():
                    found.add(f"{each.host_info.host}:{each.host_info.port}")
            except StreamsError:
                # It is not running yet.
                continue
        return {each for each in found if each != "unavailable:-1"}

    def others(self) -> list[str]:
        return sorted(self.addresses() - {self.liveness.own})

    def is_alive(self, address: str) -> bool:
        with self._lock:
            return self.liveness.is_alive(address, _now_ms())

    def heard(self, address: str) -> None:
        with self._lock:
            self.liveness.heard(address, _now_ms())

    def reported(self, address: str, lags: Mapping[str, Any]) -> None:
        with self._lock:
            self.liveness.reported(address, dict(lags))

    def own_lags(self) -> dict[str, Any]:
        """How far the stores here are behind, by query and store, in ksqlDB's form."""
        found: dict[str, Any] = {}
        for query_id in self._host.persistent_ids():
            streams = self._host.streams(query_id)
            if streams is None:
                continue
            try:
                lags = streams.all_local_store_partition_lags()
            except (StreamsError, KafkaError, CancelledError):
                # The query ends while it is asked: others go on hearing of the rest.
                continue
            for store, partitions in lags.items():
                found[f"{query_id}#{store}"] = {
                    "lagByPartition": {
                        str(partition): {
                            "currentOffsetPosition": each.current_offset_position,
                            "endOffsetPosition": each.end_offset_position,
                            "offsetLag": each.offset_lag,
                        }
                        for partition, each in partitions.items()
                    }
                }
        return {"stateStoreLags": found, "updateTimeMs": _now_ms()}

    def _run(self) -> None:
        interval_s = self._config["ksql.heartbeat.send.interval.ms"] / 1000
        lag_s = self._config["ksql.lag.reporting.send.interval.ms"] / 1000
        lags_at = 0.0
        while not self._closing.wait(interval_s):
            others = self.others()
            with self._lock:
                self.liveness.known(set(others), _now_ms())
            sends_lags = self._config["ksql.lag.reporting.enable"] and time.monotonic() >= lags_at
            if sends_lags:
                lags_at = time.monotonic() + lag_s
            for each in others:
                self._send_to(each, lags=sends_lags)

    def _send_to(self, address: str, *, lags: bool) -> None:
        host, _, port = self.liveness.own.rpartition(":")
        own = {"host": host, "port": int(port)}
        try:
            if self._config["ksql.heartbeat.enable"]:
                self._post(address, "/heartbeat", {"hostInfo": own, "timestamp": _now_ms()})
            if lags:
                body = {"ksqlHost": own, "hostStoreLags": self.own_lags()}
                self._post(address, "/lag", body)
        except PeerFailed as error:
            logger.debug("%s does not take heartbeats: %s", address, error)

    # Queries.

    def pull(
        self, address: str, sql: str, properties: Mapping[str, Any], authorization: str | None
    ) -> list[str]:
        """The rows that another server has of a pull query, each as a JSON array."""
        timeout_s = self._config["ksql.query.pull.forwarding.timeout.ms"] / 1000
        body = {"sql": sql, "properties": {**properties, SKIP_FORWARDING: True}}
        headers = {"Accept": DELIMITED}
        if authorization is not None:
            headers["Authorization"] = authorization
        answer = self._post(address, "/query-stream", body, headers, timeout_s)
        return [line for line in answer.decode().splitlines()[1:] if line.strip()]

    def _post(
        self,
        address: str,
        path: str,
        body: Any,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = _BEAT_TIMEOUT_S,
    ) -> bytes:
        given = {"Content-Type": "application/json", **(headers or {})}
        url = f"{self._scheme}://{address}{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), given)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                found: bytes = answer.read()
                return found
        except urllib.error.HTTPError as error:
            with error:
                raise PeerFailed(f"{address} answered with {error.code}") from None
        except OSError as error:
            raise PeerFailed(f"{address} cannot be reached: {error}") from None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
