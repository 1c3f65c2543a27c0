"""The client with which a test sets up a cluster and looks into it: topics, records, groups.

It speaks the ordinary protocol over `moldau.client`, on a thread of its own, so it can be used from
any test; faults for all clients spare it. Invariants: every call ends within its time.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from moldau.client._fetch_reader import FetchReader
from moldau.client.cluster import LANE_FETCH, ClusterClient
from moldau.client.config import ADMIN_KEYS, parse_settings
from moldau.client.consumer_record import ConsumerRecord
from moldau.client.deadline import Deadline
from moldau.client.errors import error_for
from moldau.client.loop_thread import LoopThread
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.network_settings import NetworkSettings
from moldau.testing.errors import WaitTimeout
from moldau.testing.machine.rules import HELPER
from moldau.wire.errors import COORDINATOR_MOVED, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeQuorumRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from moldau.wire.records import encode_batch

__all__ = ["DataClient"]

T = TypeVar("T")

_TIMEOUT_MS: Final = 30_000
_EARLIEST, _LATEST = -2, -1
_FETCH_BYTES: Final = 16 << 20


class DataClient:
    """Blocking calls to a cluster under test."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """`config` has the settings of a client that reaches the cluster."""
        self._thread = LoopThread("moldau-testing")
        values = parse_settings(ADMIN_KEYS, dict(config))
        self._cluster: ClusterClient = self._thread.call(self._open(values))

    async def _open(self, values: Mapping[str, Any]) -> ClusterClient:
        settings = NetworkSettings.of(
            values,
            client_id=HELPER,
            # A node that is paused or cut off should not hold up the others for long.
            request_timeout_ms=5_000,
            retry_backoff_ms=10,
            retry_backoff_max_ms=200,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=200,
        )
        client = ClusterClient(settings)
        client.wanted_topics = None
        return client

    def close(self) -> None:
        self._thread.call(self._cluster.close())
        self._thread.stop()

    def run(
        self, attempt: Callable[[ClusterClient], Awaitable[T]], what: str, timeout: float = 30.0
    ) -> T:
        """The result of calls to the cluster, tried again while their errors are retriable."""

        async def work() -> T:
            deadline = Deadline(self._cluster.clock, round(timeout * 1000))
            return await self._cluster.retrying(
                lambda: attempt(self._cluster), deadline=deadline, what=what
            )

        return self._thread.call(work())

    def submit(self, work: Callable[[ClusterClient], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin something that takes its time."""
        return self._thread.submit(work(self._cluster))

    # Topics.

    def topics(self) -> dict[str, int]:
        async def ask(client: ClusterClient) -> dict[str, int]:
            response: MetadataResponse = await client.call_any(
                MetadataRequest(topics=None, allow_auto_topic_creation=False)
            )
            return {
                str(topic.name): len(topic.partitions)
                for topic in response.topics
                if not topic.is_internal
            }

        return self.run(ask, "the topics")

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int | None,
        config: Mapping[str, str],
    ) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1 if replication_factor is None else replication_factor,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in config.items()
            ],
        )

        attempts = itertools.count()

        async def create(client: ClusterClient) -> None:
            is_first = next(attempts) == 0
            request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
            response = await client.call_controller(request)
            (result,) = response.topics
            if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and not is_first:
                # Made by an attempt whose answer was lost.
                return
            _check(result.error_code, result.error_message, f"topic {name}")

        async def known(client: ClusterClient) -> None:
            """Every node leads what it has to, and says so."""
            request = MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=name)],
                allow_auto_topic_creation=False,
            )
            for node_id in (await client.refresh()).nodes:
                response = await client.call(node_id, request)
                (found,) = response.topics
                _check(found.error_code, None, f"topic {name}")
                if len(found.partitions) < partitions:
                    raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
                for part in found.partitions:
                    _check(part.error_code, None, f"{name}-{part.partition_index}")

        self.run(create, f"creating {name}")
        self.run(known, f"topic {name} on all nodes")

    def delete_topic(self, name: str) -> None:
        attempts = itertools.count()

        async def delete(client: ClusterClient) -> None:
            is_first = next(attempts) == 0
            state = DeleteTopicsRequest.DeleteTopicState(name=name)
            request = DeleteTopicsRequest(
                topics=[state], topic_names=[name], timeout_ms=_TIMEOUT_MS
            )
            response = await client.call_controller(request)
            (result,) = response.responses
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if is_first:
                    raise LookupError(f"there is no topic {name!r}")
                # Deleted by an attempt whose answer was lost.
                return
            _check(result.error_code, result.error_message, f"topic {name}")

        self.run(delete, f"deleting {name}")

    def leader(self, topic: str, partition: int) -> int:
        async def find(client: ClusterClient) -> int:
            return _one(await self._leaders(client, topic), topic, partition)

        return self.run(find, f"the leader of {topic}-{partition}")

    async def _leaders(self, client: ClusterClient, topic: str) -> dict[int, int]:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
        )
        response: MetadataResponse = await client.call_any(request)
        (found,) = response.topics
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # Not retried: it was never there, or it is not there any more.
            raise LookupError(f"there is no topic {topic!r}: create it first")
        _check(found.error_code, None, f"topic {topic}")
        leaders = {part.partition_index: part.leader_id for part in found.partitions}
        if not leaders or -1 in leaders.values():
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, topic)
        if any(leader not in client.metadata.nodes for leader in leaders.values()):
            await client.refresh()
        return dict(sorted(leaders.items()))

    # Nodes.

    def group_coordinator(self, group: str) -> int:
        return self._coordinator(CoordinatorType.GROUP, group)

    def transaction_coordinator(self, transactional_id: str) -> int:
        return self._coordinator(CoordinatorType.TRANSACTION, transactional_id)

    def _coordinator(self, kind: CoordinatorType, key: str) -> int:
        async def find(client: ClusterClient) -> int:
            client.forget_coordinator(kind, key)
            return (await client.coordinator(kind, key)).id

        return self.run(find, f"the coordinator of {key}")

    def controller(self) -> int:
        async def find(client: ClusterClient) -> int:
            partition = DescribeQuorumRequest.PartitionData(partition_index=0)
            topic = DescribeQuorumRequest.TopicData(
                topic_name="__cluster_metadata", partitions=[partition]
            )
            response = await client.call_any(DescribeQuorumRequest(topics=[topic]))
            _check(response.error_code, response.error_message, "the quorum")
            found = response.topics[0].partitions[0]
            _check(found.error_code, found.error_message, "the quorum")
            return int(found.leader_id)

        return self.run(find, "the active controller")

    async def call_group(
        self, client: ClusterClient, group: str, request: Message, max_version: int | None = None
    ) -> Any:
        """The answer of a group's coordinator."""
        return await client.call_coordinator(
            CoordinatorType.GROUP, group, request, max_version=max_version
        )

    def check(self, client: ClusterClient, group: str, code: int) -> None:
        """Raise what a coordinator answered; one that is none any more is looked for again."""
        if code in COORDINATOR_MOVED:
            client.forget_coordinator(CoordinatorType.GROUP, group)
        _check(code, None, f"group {group}")

    # Records.

    def produce(self, topic: str, values: Sequence[Any], *, key: Any, partition: int) -> list[int]:
        if not values:
            return []
        now_ms = time.time_ns() // 1_000_000
        raw_key = to_bytes(key)
        records = [(raw_key, to_bytes(value), now_ms, ()) for value in values]

        async def identify(client: ClusterClient) -> int:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            response = await client.call_any(request)
            _check(response.error_code, None, "a producer id")
            return int(response.producer_id)

        # One of its own for each call: however often it has to be sent, it is written once.
        producer_id = self.run(identify, "a producer id")
        batch = encode_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0)

        async def write(client: ClusterClient) -> list[int]:
            leader = _one(await self._leaders(client, topic), topic, partition)
            data = ProduceRequest.PartitionProduceData(index=partition, records=batch)
            request = ProduceRequest(
                acks=-1,
                timeout_ms=_TIMEOUT_MS,
                topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
            )
            # By name: the newest version asks for topic ids.
            response = await client.call(leader, request, max_version=12)
            answer = response.responses[0].partition_responses[0]
            _check(answer.error_code, answer.error_message, f"{topic}-{partition}")
            return [answer.base_offset + index for index in range(len(values))]

        return self.run(write, f"writing to {topic}-{partition}")

    def end_offsets(self, topic: str) -> dict[int, int]:
        async def ask(client: ClusterClient) -> dict[int, int]:
            leaders = await self._leaders(client, topic)
            return {
                index: await self._offset(client, leader, topic, index, _LATEST)
                for index, leader in leaders.items()
            }

        return self.run(ask, f"the ends of {topic}")

    async def _offset(
        self,
        client: ClusterClient,
        leader: int,
        topic: str,
        index: int,
        timestamp: int,
        committed: bool = False,
    ) -> int:
        partition = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=index, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(committed),
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])],
        )
        response = await client.call(leader, request)
        answer = response.topics[0].partitions[0]
        _check(answer.error_code, None, f"{topic}-{index}")
        return int(answer.offset)

    def records(
        self,
        topic: str,
        *,
        count: int | None,
        timeout: float,
        partition: int | None,
        committed: bool,
    ) -> list[ConsumerRecord]:
        async def read(client: ClusterClient) -> list[ConsumerRecord]:
            leaders = await self._leaders(client, topic)
            if partition is not None:
                leaders = {partition: _one(leaders, topic, partition)}
            found: list[ConsumerRecord] = []
            for index, leader in leaders.items():
                found += await self._read(client, leader, topic, index, committed)
            return found

        deadline = time.monotonic() + timeout
        while True:
            records = self.run(read, f"reading {topic}", max(1.0, timeout))
            if count is None or len(records) >= count:
                return records
            if time.monotonic() >= deadline:
                raise WaitTimeout(
                    f"{topic} has {len(records)} records after {timeout:g} s, expected {count}"
                )
            time.sleep(0.01)

    async def _read(
        self, client: ClusterClient, leader: int, topic: str, index: int, committed: bool
    ) -> list[ConsumerRecord]:
        position = await self._offset(client, leader, topic, index, _EARLIEST)
        end = await self._offset(client, leader, topic, index, _LATEST, committed)
        found: list[Any] = []
        while position < end:
            reader = await self._fetch(client, leader, topic, index, position, committed)
            while records := reader.next(10_000):
                found += [record for record in records if record.offset < end]
            if reader.next_offset <= position:
                raise error_for(ErrorCode.OFFSET_NOT_AVAILABLE, f"{topic}-{index} at {position}")
            position = reader.next_offset
        return found

    async def _fetch(
        self,
        client: ClusterClient,
        leader: int,
        topic: str,
        index: int,
        position: int,
        committed: bool,
    ) -> FetchReader:
        partition = FetchRequest.FetchPartition(
            partition=index, fetch_offset=position, partition_max_bytes=_FETCH_BYTES
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=int(committed),
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
        )
        # By name: newer versions ask for topic ids.
        response = await client.call(leader, request, lane=LANE_FETCH, max_version=12)
        answer = response.responses[0].partitions[0]
        what = f"{topic}-{index} at {position}"
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # Deleted since the start was asked for: all is read again.
            raise error_for(ErrorCode.OFFSET_NOT_AVAILABLE, what)
        _check(answer.error_code, None, what)
        aborted = [
            (each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()
        ]
        return FetchReader(
            answer.records or b"",
            topic,
            index,
            position,
            read_committed=committed,
            aborted=aborted,
        )


def to_bytes(value: Any) -> bytes | None:
    """What a test wrote as a key or value: bytes and text as they are, all else as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value).encode()


def _one(leaders: Mapping[int, int], topic: str, partition: int) -> int:
    if partition not in leaders:
        raise LookupError(f"topic {topic!r} has {len(leaders)} partitions, and no {partition}")
    return leaders[partition]


def _check(code: int, message: str | None, what: str) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, f"{what}: {message}" if message else what)
