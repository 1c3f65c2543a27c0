"""DescribeLogDirs (key 35), v1-5: what each log directory contains.

v4 added the volume's size and free space, v5 whether a directory gets no new replicas (cordoned).
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.config import BrokerConfig
from moldau.broker.log.descriptions import LogDirInfo
from moldau.broker.log.manager import LogManager
from moldau.broker.network.context import RequestContext
from moldau.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = DescribeLogDirsResponse.DescribeLogDirsTopic
Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


class DescribeLogDirsHandler:
    def __init__(self, logs: LogManager, config: Callable[[], BrokerConfig]) -> None:
        self._logs = logs
        self._config = config

    def handle(
        self, context: RequestContext, request: DescribeLogDirsRequest
    ) -> DescribeLogDirsResponse:
        wanted = None
        if request.topics is not None:
            wanted = {
                (topic.topic, index) for topic in request.topics for index in topic.partitions
            }
        cordoned = self._config().log.cordoned_log_dirs
        return DescribeLogDirsResponse(
            results=[
                _result(info, is_cordoned=info.path in cordoned or "*" in cordoned)
                for info in self._logs.describe(wanted)
            ]
        )


def _result(info: LogDirInfo, *, is_cordoned: bool) -> Result:
    topics: dict[str, list[Partition]] = {}
    for replica in info.replicas:
        topics.setdefault(replica.topic, []).append(
            Partition(
                partition_index=replica.partition,
                partition_size=replica.size,
                offset_lag=replica.offset_lag,
                is_future_key=replica.is_future,
            )
        )
    return Result(
        error_code=info.error,
        log_dir=info.path,
        topics=[Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=info.total_bytes,
        usable_bytes=info.usable_bytes,
        is_cordoned=is_cordoned,
    )
