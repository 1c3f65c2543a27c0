"""The sink for Splunk's HTTP Event Collector, and whatever else takes its requests.

At least once: offsets are committed when the collector has answered, or, with acknowledgements,
when it says that the events are indexed.
"""

from __future__ import annotations

import gzip
import threading
import time
import uuid
from collections.abc import Collection, Mapping, Sequence

from moldau.connect.api import (
    ConfigError,
    ConfigValue,
    ConnectError,
    DataError,
    OffsetAndMetadata,
    RetriableError,
    SinkRecord,
    SinkTask,
    TopicPartition,
)
from moldau.connect.connectors.splunk.config import CONFIG, event_rules
from moldau.connect.connectors.splunk.machine import events
from moldau.connect.connectors.splunk.machine.acks import Acknowledgements, Waiting
from moldau.connect.connectors.splunk.machine.events import Batch
from moldau.connect.connectors.support.plain import PlainSink
from moldau.connect.connectors.support.web import Answer, WebClient, plain
from moldau.data import json_text


class SplunkSinkConnector(PlainSink):
    DESCRIPTION = "Records to events of Splunk's HTTP Event Collector"
    SETTINGS = CONFIG

    def validate(self, props: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(props)
        if not any(each.errors for each in values):
            try:
                event_rules({each.name: each.value for each in values}, props)
            except ConfigError as error:
                next(each for each in values if each.name == error.key).errors.append(str(error))
        return values

    def task_class(self) -> type[SinkTask]:
        return SplunkSinkTask


class SplunkSinkTask(SinkTask):
    def start(self, props: Mapping[str, str]) -> None:
        config = self._config = CONFIG.parse(props)
        self._rules = event_rules(config, props)
        self._clients = [
            WebClient(
                url,
                key="splunk.hec.uri",
                timeout_s=config["read.timeout.ms"] / 1000,
                authorization=f"Splunk {plain(config['splunk.hec.token'])}",
                trusted=config["ssl.truststore.location"],
                verify_hostname=config["ssl.verify.hostname"],
            )
            for url in config["splunk.hec.uri"]
        ]
        self._turn = 0
        self._channel = str(uuid.uuid4())
        self._headers = {"X-Splunk-Request-Channel": self._channel}
        if config["splunk.hec.enable.compression"]:
            self._headers["Content-Encoding"] = "gzip"
        self._acks = Acknowledgements(config["splunk.hec.event.timeout"] * 1000)
        self._asked_at_s = time.monotonic()
        self._stopped = threading.Event()

    def put(self, records: Sequence[SinkRecord]) -> None:
        wanted = [record for record in records if record.value is not None]
        for batch in events.batches(self._rules, self._usable(wanted)):
            while self._acks.count >= self._config["splunk.hec.max.outstanding.events"]:
                self._wait_for_acks()
            self._send(batch)
        self._ask_if_due()

    def _usable(self, records: Sequence[SinkRecord]) -> Sequence[SinkRecord]:
        """Without those that cannot be events, which are reported."""
        reporter = self.context.errant_record_reporter
        if not self._rules.formatted or reporter is None:
            return records
        found = []
        for record in records:
            try:
                list(events.batches(self._rules, [record]))
                found.append(record)
            except DataError as error:
                reporter.report(record, error)
        return found

    def _send(self, batch: Batch) -> None:
        """To the servers in turn; one that does not answer is passed over."""
        body = batch.body
        if self._config["splunk.hec.enable.compression"]:
            body = gzip.compress(body)
        problem: RetriableError | None = None
        for _ in self._clients:
            server = self._turn = (self._turn + 1) % len(self._clients)
            try:
                answer = self._clients[server].request("POST", batch.path, body, self._headers)
            except RetriableError as error:
                problem = error
                continue
            self._check(server, batch.path, answer)
            if self._config["splunk.hec.ack.enabled"]:
                self._acks.sent(Waiting(server, self._ack_id(answer), batch, _now_ms()))
            return
        raise problem or RetriableError("no address was asked")

    def _check(self, server: int, path: str, answer: Answer) -> None:
        if answer.status >= 300:
            raise ConnectError(
                f"{self._clients[server].shown}{path} was answered with {answer.status}: "
                f"{answer.text[:500]}"
            )

    @staticmethod
    def _ack_id(answer: Answer) -> int:
        try:
            return int(json_text.parse(answer.body)["ackId"])
        except (ValueError, KeyError, TypeError):
            raise ConnectError(
                f"the answer has no ackId: {answer.text[:200]}: enable acknowledgements of the "
                "token, or set splunk.hec.ack.enabled to false"
            ) from None

    # Acknowledgements.

    def _ask_if_due(self) -> None:
        interval_s = self._config["splunk.hec.ack.poll.interval"]
        if self._acks.count and time.monotonic() - self._asked_at_s >= interval_s:
            self._ask()

    def _wait_for_acks(self) -> None:
        if self._stopped.wait(self._config["splunk.hec.ack.poll.interval"]):
            raise RetriableError("the task is stopping")
        self._ask()

    def _ask(self) -> None:
        self._asked_at_s = time.monotonic()
        path = f"/services/collector/ack?channel={self._channel}"
        headers = {"X-Splunk-Request-Channel": self._channel}
        for server, client in enumerate(self._clients):
            if ids := self._acks.ids(server):
                body = json_text.compact({"acks": ids}).encode()
                try:
                    answer = client.request("POST", path, body, headers)
                except RetriableError:
                    # What it had is sent again, to another one, when its time is up.
                    continue
                self._check(server, path, answer)
                states = json_text.parse(answer.body).get("acks") or {}
                self._acks.acknowledged(server, [int(key) for key, done in states.items() if done])
        for each in self._acks.take_late(_now_ms()):
            try:
                self._send(each.batch)
            except RetriableError:
                self._acks.sent(each)

    def pre_commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        if self._acks.count:
            self._ask()
        waiting = self._acks.first_offsets()
        return {
            at: OffsetAndMetadata(waiting[at]) if at in waiting else given
            for at, given in offsets.items()
        }

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._acks.forget(partitions)

    def stop(self) -> None:
        self._stopped.set()
        for client in self._clients:
            client.close()


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
