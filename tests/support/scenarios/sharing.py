"""Workers of a share group: confluent-kafka's share consumer, and single requests by hand."""

from __future__ import annotations

import multiprocessing
import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from ctypes import c_int
from typing import Any, NamedTuple

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer

from moldau.wire.apis import ApiKey
from moldau.wire.messages import (
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from moldau.wire.records import decode_batch, iterate_headers
from support import asking
from support.raw import RawConnection
from support.scenarios.members import Place
from support.waiting import eventually

GROUP_CONFIG = 32
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
_CONTEXT = multiprocessing.get_context("forkserver")


class Delivery(NamedTuple):
    offset: int
    value: bytes
    times: int


def share_consumer(bootstrap: str, group: str, topic: str, records_max: int = 50) -> ShareConsumer:
    consumer = ShareConsumer({
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
        "max.poll.records": records_max,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.ms": 5,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 20,
        "log_level": 2,
        "error_cb": lambda _: None,
    })  # fmt: skip
    consumer.subscribe([topic])
    return consumer


def deliveries(consumer: ShareConsumer, seconds: float = 0.1) -> list[tuple[Message, Delivery]]:
    """What one poll brings; a broker that is away brings nothing."""
    try:
        messages = consumer.poll(seconds)
    except KafkaException as failed:
        if not failed.args[0].retriable():
            raise
        return []
    return [
        (each, Delivery(each.offset() or 0, bytes(each.value() or b""), each.delivery_count() or 0))
        for each in messages
        if each.error() is None
    ]


def wait_for_delivery(consumer: ShareConsumer) -> list[tuple[Message, Delivery]]:
    return eventually(lambda: deliveries(consumer), what="a record is delivered")


class ShareWorker:
    """Accepts every record that comes, in a thread; the book tells what became of each."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.delivered: Counter[bytes] = Counter()
        self.accepted: Counter[bytes] = Counter()
        self.failure: BaseException | None = None
        self._arguments = (bootstrap, group, topic)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            consumer = share_consumer(*self._arguments)
            while not self._stop.is_set():
                self._serve(consumer, deliveries(consumer))
            consumer.close()
        except BaseException as failure:
            self.failure = failure

    def _serve(self, consumer: ShareConsumer, records: list[tuple[Message, Delivery]]) -> None:
        for message, delivery in records:
            self.delivered[delivery.value] += 1
            consumer.acknowledge(message, AcknowledgeType.ACCEPT)
        if not records:
            return
        results = consumer.commit_sync(30)
        if results and all(error is None for error in results.values()):
            self.accepted.update(delivery.value for _, delivery in records)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "a share consumer does not end"
        if self.failure is not None:
            raise AssertionError(f"a share consumer ended: {self.failure!r}") from self.failure


def _hold(bootstrap: str, group: str, topic: str, held: Any) -> None:
    """Take records and keep them: the process is there to be killed."""
    consumer = share_consumer(bootstrap, group, topic)
    while not held.value:
        held.value = len(deliveries(consumer))
    threading.Event().wait()


class CrashingWorker:
    """A process with a share consumer that acquires records and dies with them."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._held = _CONTEXT.Value(c_int, 0, lock=False)
        self._process = _CONTEXT.Process(target=_hold, args=(bootstrap, group, topic, self._held))
        self._process.start()

    def crash_when_holding(self) -> int:
        """Kill it as soon as it holds records; how many they are."""
        eventually(lambda: self._held.value, what="a worker acquires records")
        self.kill()
        return int(self._held.value)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


class RawShareMember:
    """A member of a share group by hand, with one partition in its share session."""

    def __init__(self, port: int, group: str, place: Place) -> None:
        self.connection = RawConnection(port)
        self.group = group
        self.member_id = str(uuid.uuid4())
        self.place = place
        self.topic_id = asking.describe_topic(self.connection, place.topic).topic_id
        self.session_epoch = 0
        self._member_epoch = 0
        eventually(self._heartbeat_until_assigned, what="a share member gets its partition")

    def _heartbeat_until_assigned(self) -> bool:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self._member_epoch,
            subscribed_topic_names=[self.place.topic] if self._member_epoch == 0 else None,
        )  # fmt: skip
        answer = self.connection.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
        # The coordinator's topic may still be in the making.
        if answer.error_code in (14, 15, 16):
            return False
        assert answer.error_code == 0, answer
        self._member_epoch = answer.member_epoch
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    def fetch(self, *, records_max: int = 1) -> list[Delivery]:
        """Acquire records, one batch of at most so many."""
        partition = ShareFetchRequest.FetchPartition(partition_index=self.place.partition)
        topic = ShareFetchRequest.FetchTopic(topic_id=self.topic_id, partitions=[partition])
        request = ShareFetchRequest(
            group_id=self.group, member_id=self.member_id, share_session_epoch=self.session_epoch,
            max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, max_records=records_max,
            batch_size=records_max, topics=[topic] if self.session_epoch == 0 else [],
        )  # fmt: skip
        answer = self.connection.call(ApiKey.SHARE_FETCH, 1, request)
        assert answer.error_code == 0, answer
        self.session_epoch += 1
        found = []
        for response in answer.responses:
            for data in response.partitions:
                assert data.error_code == 0, data
                found += _acquired(data)
        return found

    def acknowledge(self, offsets: Iterable[int], kind: int) -> tuple[int, int]:
        """The top-level error and the partition's."""
        batches = [
            ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=offset, last_offset=offset, acknowledge_types=[kind]
            )
            for offset in offsets
        ]
        partition = ShareAcknowledgeRequest.AcknowledgePartition(
            partition_index=self.place.partition, acknowledgement_batches=batches
        )
        request = ShareAcknowledgeRequest(
            group_id=self.group, member_id=self.member_id, share_session_epoch=self.session_epoch,
            is_renew_ack=kind == RENEW,
            topics=[ShareAcknowledgeRequest.AcknowledgeTopic(
                topic_id=self.topic_id, partitions=[partition])],
        )  # fmt: skip
        answer = self.connection.call(ApiKey.SHARE_ACKNOWLEDGE, 2, request)
        if answer.error_code:
            return answer.error_code, 0
        self.session_epoch += 1
        return 0, answer.responses[0].partitions[0].error_code

    def close(self) -> None:
        self.connection.close()


def _acquired(data: Any) -> list[Delivery]:
    counts = {
        offset: each.delivery_count
        for each in data.acquired_records
        for offset in range(each.first_offset, each.last_offset + 1)
    }
    return [
        Delivery(record.offset, bytes(record.value or b""), counts[record.offset])
        for position, _ in iterate_headers(data.records or b"")
        for record in decode_batch(data.records, position)
        if record.offset in counts
    ]


def share_group_lag(port: int, group: str, place: Place) -> int:
    """How many records the group is not yet done with, -1 before its first."""
    topic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(
        topic_name=place.topic, partitions=[place.partition]
    )
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(
        group_id=group, topics=[topic]
    )
    with RawConnection(port) as to:
        request = DescribeShareGroupOffsetsRequest(groups=[asked])
        answer = to.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request)
    [described] = answer.groups
    assert described.error_code == 0, described
    [partition] = described.topics[0].partitions
    assert partition.error_code == 0, partition
    return int(partition.lag)
