"""Short ways to ask a broker over a RawConnection, without a client's retries and caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.wire.apis import ApiKey
from moldau.wire.messages import (
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from moldau.wire.records import Record, decode_batch, iterate_headers
from support.raw import RawConnection

TOPIC_CONFIG = 2
BROKER_CONFIG = 4
EARLIEST, LATEST = -2, -1
SET, DELETE = 0, 1


@dataclass(frozen=True)
class Folder:
    """A log folder as DescribeLogDirs tells of it, with the sizes of its replicas."""

    error: int
    current: dict[tuple[str, int], int] = field(default_factory=dict)
    future: dict[tuple[str, int], int] = field(default_factory=dict)


def create_topic(
    to: RawConnection, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        # The broker's default: one, or in a cluster as many as there are nodes.
        replication_factor=-1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in (config or {}).items()
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    answer = to.call(ApiKey.CREATE_TOPICS, 7, request).topics[0]
    assert answer.error_code == 0, answer


def delete_topic(to: RawConnection, name: str) -> None:
    topic = DeleteTopicsRequest.DeleteTopicState(name=name)
    request = DeleteTopicsRequest(topics=[topic], timeout_ms=30_000)
    answer = to.call(ApiKey.DELETE_TOPICS, 6, request).responses[0]
    assert answer.error_code == 0, answer


def describe_topic(to: RawConnection, name: str) -> Any:
    topic = MetadataRequest.MetadataRequestTopic(name=name)
    request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
    return to.call(ApiKey.METADATA, 12, request).topics[0]


def produce(
    to: RawConnection,
    topic: str,
    index: int,
    batch: bytes,
    *,
    acks: int = -1,
    timeout_ms: int = 30_000,
) -> Any:
    """The partition's part of the answer, error or not."""
    partition = ProduceRequest.PartitionProduceData(index=index, records=batch)
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])
    return to.call(ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0]


def fetch(
    to: RawConnection, topic: str, index: int, offset: int = 0, *, max_bytes: int = 1 << 20
) -> Any:
    """The partition's part of the answer, error or not; it never waits."""
    partition = FetchRequest.FetchPartition(
        partition=index, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
    return to.call(ApiKey.FETCH, 11, request).responses[0].partitions[0]


def fetch_everything(to: RawConnection, topic: str, index: int, offset: int = 0) -> list[Record]:
    """All records from `offset` up to the high watermark."""
    records: list[Record] = []
    while True:
        answer = fetch(to, topic, index, offset)
        assert answer.error_code == 0, answer
        if offset >= answer.high_watermark:
            return records
        for position, header in iterate_headers(answer.records):
            records += (
                record
                for record in decode_batch(answer.records, position)
                if record.offset >= offset
            )
            offset = header.next_offset


def list_offset(to: RawConnection, topic: str, index: int, timestamp: int) -> Any:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    data = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])
    request = ListOffsetsRequest(replica_id=-1, topics=[data])
    return to.call(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0]


def delete_records(to: RawConnection, topic: str, index: int, before: int) -> Any:
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=before)
    data = DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[partition])
    request = DeleteRecordsRequest(topics=[data], timeout_ms=30_000)
    return to.call(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]


def log_folders(to: RawConnection) -> dict[str, Folder]:
    folders = {}
    request = DescribeLogDirsRequest(topics=None)
    for result in to.call(ApiKey.DESCRIBE_LOG_DIRS, 4, request).results:
        folder = folders[result.log_dir] = Folder(result.error_code)
        for topic in result.topics:
            for partition in topic.partitions:
                replicas = folder.future if partition.is_future_key else folder.current
                replicas[topic.name, partition.partition_index] = partition.partition_size
    return folders


def move(to: RawConnection, topic: str, indexes: Iterable[int], path: str) -> dict[int, int]:
    """Ask for a move to another folder; the error code of each partition."""
    data = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic, partitions=list(indexes))
    folder = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=[data])
    request = AlterReplicaLogDirsRequest(dirs=[folder])
    results = to.call(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request).results
    return {part.partition_index: part.error_code for part in results[0].partitions}


def alter_config(
    to: RawConnection, kind: int, name: str, changes: Mapping[str, str | None]
) -> tuple[int, str | None]:
    """Set keys, or delete those whose value is None; the error code and message."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=key, config_operation=DELETE if value is None else SET, value=value
            )
            for key, value in changes.items()
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = to.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0]
    return answer.error_code, answer.error_message


def config(to: RawConnection, kind: int, name: str, key: str) -> tuple[str | None, int]:
    """The value in force and its source: 1 topic, 2 broker, 3 cluster, 4 static, 5 default."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[key]
    )
    request = DescribeConfigsRequest(resources=[resource])
    answer = to.call(ApiKey.DESCRIBE_CONFIGS, 4, request).results[0]
    assert answer.error_code == 0, answer
    return answer.configs[0].value, answer.configs[0].config_source
