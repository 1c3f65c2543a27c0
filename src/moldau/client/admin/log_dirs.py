"""Log directories: where replicas are on the brokers' disks, and moving them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from moldau.client.admin.base import AdminBase, by_topic
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.partition_values import (
    LogDirDescription,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from moldau.client.admin.routes import BrokerRoute
from moldau.client.errors import IllegalStateError, error_for
from moldau.client.results import Results
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

__all__ = ["LogDirOperations"]


class LogDirOperations(AdminBase):
    """Log directories."""

    async def alter_replica_log_dirs(
        self,
        replica_assignment: Mapping[TopicPartitionReplica, str],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartitionReplica, None]:
        """Move replicas to other directories of their brokers; returns when it has begun.

        >>> replica = TopicPartitionReplica("orders", 0, broker_id=1)
        >>> await admin.alter_replica_log_dirs({replica: "/data2"})
        """

        async def ask(
            call: Call, keys: Sequence[TopicPartitionReplica]
        ) -> Answer[TopicPartitionReplica, None]:
            response: AlterReplicaLogDirsResponse = await call(
                _move_request({key: replica_assignment[key] for key in keys})
            )
            answer: Answer[TopicPartitionReplica, None] = Answer()
            for topic in response.results:
                for each in topic.partitions:
                    key = TopicPartitionReplica(
                        topic.topic_name, each.partition_index, keys[0].broker_id
                    )
                    answer.settle(key, each.error_code, str(key), None)
            return answer

        route: BrokerRoute[TopicPartitionReplica] = BrokerRoute(lambda key: key.broker_id)
        return await self._run(
            "AlterReplicaLogDirs", replica_assignment, route, ask, timeout=timeout, check=check
        )

    async def describe_log_dirs(
        self,
        brokers: Collection[int],
        *,
        partitions: Collection[TopicPartition] | None = None,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[int, dict[str, LogDirDescription]]:
        """The log directories of brokers by path, with the replicas in them, or with those of some
        partitions.

        >>> print((await admin.describe_log_dirs([1]))[1])
        """

        asked = None if partitions is None else _topics(partitions)

        async def ask(call: Call, keys: Sequence[int]) -> Answer[int, dict[str, LogDirDescription]]:
            response: DescribeLogDirsResponse = await call(DescribeLogDirsRequest(topics=asked))
            answer: Answer[int, dict[str, LogDirDescription]] = Answer()
            if response.results:
                answer.put(keys[0], _descriptions(response))
            else:
                # Before version 3 there is no code, and nothing but this leaves the list empty.
                code = response.error_code or ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                answer.fail(keys[0], code, f"of broker {keys[0]}")
            return answer

        route: BrokerRoute[int] = BrokerRoute(lambda key: key)
        return await self._run("DescribeLogDirs", brokers, route, ask, timeout=timeout, check=check)

    async def describe_replica_log_dirs(
        self,
        replicas: Collection[TopicPartitionReplica],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Where replicas are, and where they are being moved to.

        >>> replica = TopicPartitionReplica("orders", 0, broker_id=1)
        >>> print((await admin.describe_replica_log_dirs([replica]))[replica])
        """

        async def ask(
            call: Call, keys: Sequence[TopicPartitionReplica]
        ) -> Answer[TopicPartitionReplica, ReplicaLogDirInfo]:
            partitions = [TopicPartition(key.topic, key.partition) for key in keys]
            response: DescribeLogDirsResponse = await call(
                DescribeLogDirsRequest(topics=_topics(partitions))
            )
            answer: Answer[TopicPartitionReplica, ReplicaLogDirInfo] = Answer()
            found = _places(_descriptions(response), partitions)
            for key in keys:
                answer.put(key, found[TopicPartition(key.topic, key.partition)])
            return answer

        route: BrokerRoute[TopicPartitionReplica] = BrokerRoute(lambda key: key.broker_id)
        return await self._run(
            "DescribeReplicaLogDirs", replicas, route, ask, timeout=timeout, check=check
        )


def _topics(
    partitions: Collection[TopicPartition],
) -> list[DescribeLogDirsRequest.DescribableLogDirTopic]:
    return [
        DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(partitions).items()
    ]


def _move_request(
    assignment: Mapping[TopicPartitionReplica, str],
) -> AlterReplicaLogDirsRequest:
    request = AlterReplicaLogDirsRequest
    by_path: dict[str, list[TopicPartition]] = {}
    for replica, path in assignment.items():
        by_path.setdefault(path, []).append(TopicPartition(replica.topic, replica.partition))
    return request(
        dirs=[
            request.AlterReplicaLogDir(
                path=path,
                topics=[
                    request.AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                    for topic, indexes in by_topic(partitions).items()
                ],
            )
            for path, partitions in by_path.items()
        ]
    )


def _descriptions(response: DescribeLogDirsResponse) -> dict[str, LogDirDescription]:
    return {
        found.log_dir: LogDirDescription(
            None if found.error_code == ErrorCode.NONE else error_for(found.error_code),
            {
                TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                    each.partition_size, each.offset_lag, each.is_future_key
                )
                for topic in found.topics
                for each in topic.partitions
            },
            None if found.total_bytes < 0 else found.total_bytes,
            None if found.usable_bytes < 0 else found.usable_bytes,
            found.is_cordoned,
        )
        for found in sorted(response.results, key=lambda each: each.log_dir)
    }


def _places(
    directories: Mapping[str, LogDirDescription], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ReplicaLogDirInfo]:
    places = dict.fromkeys(partitions, ReplicaLogDirInfo())
    for path, directory in directories.items():
        error = directory.error
        if error is not None and error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
            raise IllegalStateError(f"log directory {path}: {error}")
        for key, info in directory.replica_infos.items():
            known = places.get(key)
            if known is None:
                continue
            if info.is_future:
                places[key] = known._replace(
                    future_replica_log_dir=path, future_replica_offset_lag=info.offset_lag
                )
            else:
                places[key] = known._replace(
                    current_replica_log_dir=path, current_replica_offset_lag=info.offset_lag
                )
    return places
