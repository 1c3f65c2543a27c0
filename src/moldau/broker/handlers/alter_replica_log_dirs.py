"""AlterReplicaLogDirs (key 34), v1-2: move replicas of this broker to other log directories.

The response means that the moves have begun; DescribeLogDirs shows their progress.
"""

from __future__ import annotations

from moldau.broker.log_moves import LogMoves
from moldau.broker.network.context import RequestContext
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
Partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


class AlterReplicaLogDirsHandler:
    def __init__(self, moves: LogMoves) -> None:
        self._moves = moves

    def handle(
        self, context: RequestContext, request: AlterReplicaLogDirsRequest
    ) -> AlterReplicaLogDirsResponse:
        results: dict[str, list[Partition]] = {}
        for directory in request.dirs:
            for topic in directory.topics:
                answers = results.setdefault(topic.name, [])
                for index in topic.partitions:
                    code = self._start(topic.name, index, directory.path)
                    answers.append(Partition(partition_index=index, error_code=code))
        return AlterReplicaLogDirsResponse(
            results=[
                Topic(topic_name=name, partitions=partitions)
                for name, partitions in results.items()
            ]
        )

    def _start(self, topic: str, index: int, path: str) -> ErrorCode:
        try:
            self._moves.start(topic, index, path)
        except ApiError as error:
            return error.code
        return ErrorCode.NONE
