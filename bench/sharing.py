"""How many acknowledgements of a share group a broker takes in, with members by hand."""

from __future__ import annotations

import time
import uuid
from typing import Any

from bench.groups import wait_for_coordinator
from bench.raw import Connection, request_frame
from bench.servers import Server
from bench.transactions import producer
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)

MEMBERS = 4
ACCEPT = 1
GROUP_CONFIG = 32
_LATER = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def fill(server: Server, topic: str, *, count: int, batch_records: int) -> None:
    sender = producer(server, **{"linger.ms": 5, "batch.num.messages": batch_records})
    for _ in range(count):
        sender.produce(topic, bytes(100), partition=0)
    if sender.flush(120):
        raise RuntimeError(f"{server.name} did not acknowledge all")


def acknowledgements_per_second(
    server: Server, topic: str, *, count: int, batch_records: int
) -> float:
    """Records accepted per second; each fetch brings the acknowledgements of the last."""
    group = f"share-{uuid.uuid4()}"
    with Connection(server) as connection:
        _read_from_the_start(connection, group)
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        topic_id = connection.call(ApiKey.METADATA, 12, request).topics[0].topic_id
    wait_for_coordinator(server, group)
    members = [_Member(server, group, topic, topic_id, batch_records) for _ in range(MEMBERS)]
    accepted = 0
    started = time.perf_counter()
    deadline = started + 120
    while accepted < count:
        if time.perf_counter() > deadline:
            raise RuntimeError(f"{server.name}: {accepted} of {count} records accepted, then none")
        for member in members:
            member.send_fetch()
        accepted += sum(member.receive() for member in members)
    seconds = time.perf_counter() - started
    for member in members:
        member.connection.close()
    return accepted / seconds


def _read_from_the_start(connection: Connection, group: str) -> None:
    change = IncrementalAlterConfigsRequest.AlterableConfig(
        name="share.auto.offset.reset", config_operation=0, value="earliest"
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP_CONFIG, resource_name=group, configs=[change]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = connection.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0]
    if answer.error_code:
        raise RuntimeError(f"the group's config is refused: {answer.error_message}")


class _Member:
    def __init__(
        self, server: Server, group: str, topic: str, topic_id: uuid.UUID, records_max: int
    ) -> None:
        self.connection = Connection(server)
        self._group = group
        self._topic = topic
        self._topic_id = topic_id
        self._records_max = records_max
        self._member_id = str(uuid.uuid4())
        self._session_epoch = 0
        # What the last fetch acquired, to be accepted by the next; and how many records that is.
        self._batches: list[ShareFetchRequest.AcknowledgementBatch] = []
        self._acquired = 0
        self._join()

    def _join(self) -> None:
        epoch = 0
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            request = ShareGroupHeartbeatRequest(
                group_id=self._group,
                member_id=self._member_id,
                member_epoch=epoch,
                subscribed_topic_names=[self._topic] if epoch == 0 else None,
            )
            answer = self.connection.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
            if answer.error_code and answer.error_code not in _LATER:
                raise RuntimeError(f"a share member is refused: {answer.error_message}")
            epoch = answer.member_epoch if answer.error_code == 0 else epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return
            time.sleep(0.05)
        raise RuntimeError("a share member gets no partition within 60 s")

    def send_fetch(self) -> None:
        partition = ShareFetchRequest.FetchPartition(
            partition_index=0, acknowledgement_batches=self._batches
        )
        topics = [ShareFetchRequest.FetchTopic(topic_id=self._topic_id, partitions=[partition])]
        request = ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._session_epoch,
            max_wait_ms=10,
            min_bytes=1,
            max_bytes=1 << 22,
            max_records=self._records_max,
            batch_size=self._records_max,
            topics=topics if self._batches or self._session_epoch == 0 else [],
        )
        self.connection.send(request_frame(ApiKey.SHARE_FETCH, 1, request))

    def receive(self) -> int:
        """Take in the answer; how many records it confirms as accepted."""
        answer = self.connection.receive_answer(ApiKey.SHARE_FETCH, 1)
        if answer.error_code:
            raise RuntimeError(f"ShareFetch is refused: {answer.error_message}")
        self._session_epoch += 1
        accepted = self._acquired
        self._batches, self._acquired = [], 0
        for response in answer.responses:
            for partition in response.partitions:
                self._take(partition)
        return accepted

    def _take(self, partition: Any) -> None:
        error = partition.error_code or partition.acknowledge_error_code
        if error:
            raise RuntimeError(f"a share partition answers {ErrorCode(error).name}")
        for each in partition.acquired_records:
            self._acquired += each.last_offset - each.first_offset + 1
            self._batches.append(
                ShareFetchRequest.AcknowledgementBatch(
                    first_offset=each.first_offset,
                    last_offset=each.last_offset,
                    acknowledge_types=[ACCEPT],
                )
            )
