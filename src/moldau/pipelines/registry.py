"""The registry of pipelines: the compacted topic `__moldau_pipelines` of the cluster.

Its records are in `control/records.py`. Invariants:

- A user's change is decided on the newest state and refused if another one came in between: the
  writer first takes the registry's transactional id, which fences every earlier writer, then reads
  to the end, then commits. So of two at the same time one is made again on the other's result.
- A writer reads its own change at once: `change` returns when its record can be read.
- The control loop's statuses are plain records under keys of their own.

It uses nothing but Kafka's protocol, so it lives on Apache Kafka as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    TopicExistsError,
    TransactionAbortedError,
    UnknownTopicOrPartitionError,
)
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.records import (
    STATUS_SUFFIX,
    PipelineRecord,
    StatusRecord,
    View,
    name_problem,
)

__all__ = ["TOPIC", "Registry"]

TOPIC: Final = "__moldau_pipelines"
_PARTITION: Final = TopicPartition(TOPIC, 0)
_TRANSACTIONAL_ID: Final = "__moldau_pipelines"
_REPLICATION_FACTOR_MAX: Final = 3
# A writer that died is out of the readers' way after this.
_TRANSACTION_TIMEOUT_MS: Final = 10_000
_CHANGE_TRIES_MAX: Final = 20
# The loop does nothing else while it waits for this; what is not written then is written later.
_STATUS_MS_MAX: Final = 5_000
_CONNECTION_KEYS: Final = (
    "bootstrap.",
    "client.",
    "config.providers",
    "sasl.",
    "security.",
    "ssl.",
)
# Small segments: what compaction leaves is what a reader has to go through.
_TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.3",
    "max.compaction.lag.ms": str(24 * 60 * 60 * 1000),
}

# INVALID_TXN_STATE: the transaction was aborted for the next writer just before its commit came.
_OVERTAKEN: Final = (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionAbortedError,
)

#: From the present record (None if there is none) to the new one, or None to delete it.
Change = Callable[[PipelineRecord | None], PipelineRecord | None]


class Registry:
    """One user's or the loop's sight of the registry; not for several threads at once."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        config: Mapping[str, Any] | None = None,
        timeout: float = 30.0,
        call_timeout: float | None = None,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        """`timeout` is for a whole read or change, `call_timeout` for one call to the cluster, if
        that is to fail earlier. A read is given up when `is_ending` returns true."""
        self._config = connection_config(bootstrap_servers, config)
        self._timeout = timeout
        self._call_timeout = timeout if call_timeout is None else call_timeout
        self._is_ending = is_ending
        self._view = View()
        self._producer: Producer | None = None
        self._make_topic()
        self._consumer = Consumer(
            self._config
            | {
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
                # Most of the time nothing changes: a question every 5 s costs a tenth of two a
                # second, and what changes is answered at once.
                "fetch.max.wait.ms": "5000",
            }
        )
        self._consumer.assign([_PARTITION])
        self._consumer.seek_to_beginning([_PARTITION])

    def __enter__(self) -> Registry:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    @property
    def view(self) -> View:
        """What has been read so far."""
        return self._view

    def read(self) -> View:
        """Everything that had been written when this was called. The view stays the same object."""
        deadline = time.monotonic() + self._timeout
        end = self._consumer.end_offsets([_PARTITION], timeout=self._call_timeout)[_PARTITION]
        self._read_to(end, deadline)
        return self._view

    def poll(self, timeout: float) -> View:
        """What has come meanwhile; waits for at most `timeout` seconds for something new."""
        for record in self._consumer.poll(timeout):
            self._view.apply(record.key, record.value)
        return self._view

    def change(self, name: str, change: Change) -> PipelineRecord | None:
        """Replace a pipeline's record by what `change` makes of the newest one.

        `change` may be called several times: again whenever another writer wrote in between. What
        it raises ends the call and nothing is written.
        """
        problem = name_problem(name)
        if problem is not None:
            raise PipelineError(problem)
        deadline = time.monotonic() + self._timeout
        for _ in range(_CHANGE_TRIES_MAX):
            try:
                return self._change_once(name, change, deadline)
            except _OVERTAKEN:
                # Another writer took the transactional id: its change comes first.
                if time.monotonic() > deadline:
                    break
        raise PipelineError(
            f"{name}: other programs keep changing the registry", hint="try again in a moment"
        )

    def _change_once(self, name: str, change: Change, deadline: float) -> PipelineRecord | None:
        settings = {
            "transactional.id": _TRANSACTIONAL_ID,
            "transaction.timeout.ms": str(_TRANSACTION_TIMEOUT_MS),
            "max.block.ms": str(max(1_000, int(self._timeout * 1000))),
        }
        producer = Producer(self._config | settings)
        try:
            producer.init_transactions()
            present = self.read().pipelines.get(name)
            wanted = change(present)
            if wanted == present:
                return present
            producer.begin_transaction()
            value = None if wanted is None else wanted.to_bytes()
            future = producer.send(TOPIC, value=value, key=name.encode(), partition=0)
            if wanted is None:
                # A status without its pipeline means nothing.
                future = producer.send(
                    TOPIC, value=None, key=f"{name}{STATUS_SUFFIX}".encode(), partition=0
                )
            producer.commit_transaction()
            # The answer to a commit may come before the end of the transaction can be read.
            self._read_to(future.result().offset + 1, deadline)
            return wanted
        finally:
            producer.close(timeout=5.0)

    def write_status(self, status: StatusRecord) -> None:
        """Written, not merely sent, when this returns: a session is known before it is used."""
        if self._producer is None:
            limit = str(_STATUS_MS_MAX)
            self._producer = Producer(
                self._config
                | {
                    "linger.ms": "0",
                    "delivery.timeout.ms": limit,
                    "max.block.ms": limit,
                    "request.timeout.ms": limit,
                }
            )
        key = f"{status.name}{STATUS_SUFFIX}".encode()
        self._producer.send(TOPIC, value=status.to_bytes(), key=key, partition=0).result(
            timeout=self._timeout
        )

    def _read_to(self, offset: int, deadline: float) -> None:
        while self._consumer.position(_PARTITION, timeout=self._call_timeout) < offset:
            left = deadline - time.monotonic()
            if self._is_ending():
                raise PipelineError(f"the registry {TOPIC} was not read to its end: shutting down")
            if left <= 0:
                raise PipelineError(
                    f"the registry {TOPIC} could not be read to its end in {self._timeout:g} s",
                    hint="see with `moldau topics --describe` whether its partition has a leader",
                )
            self.poll(min(left, 1.0))

    def _make_topic(self) -> None:
        with Admin(self._config) as admin:
            try:
                admin.describe_topics([TOPIC], timeout=self._call_timeout)
                return
            except UnknownTopicOrPartitionError:
                pass
            brokers = len(admin.describe_cluster(timeout=self._call_timeout).nodes)
            factor = min(_REPLICATION_FACTOR_MAX, brokers)
            topic = NewTopic(TOPIC, 1, factor, configs=dict(_TOPIC_CONFIG))
            try:
                admin.create_topics([topic], timeout=self._call_timeout)
            except TopicExistsError:
                return
            except KafkaError as error:
                raise PipelineError(
                    f"the registry {TOPIC} cannot be created: {error}",
                    hint="create it as a compacted topic with one partition",
                ) from error


def connection_config(
    bootstrap_servers: str, config: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What says how to reach the cluster, without what is for producers or consumers alone."""
    kept = {key: value for key, value in (config or {}).items() if key.startswith(_CONNECTION_KEYS)}
    return kept | {"bootstrap.servers": bootstrap_servers}
