"""DeleteRecords (key 21), v0-2: advance the log start offset of partitions.

The response waits until the followers have advanced theirs.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from moldau.broker.handlers.support.partition_errors import error_of
from moldau.broker.network.context import RequestContext
from moldau.broker.replication.deletion import delete_records, when_deleted
from moldau.broker.replication.machine.purgatory import TimerHandle
from moldau.broker.replication.partition import Partition
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse

NO_LOW_WATERMARK = -1

_Result = DeleteRecordsResponse.DeleteRecordsPartitionResult


class DeleteRecordsReplicas(Protocol):
    def get(self, key: str | bytes, index: int) -> Partition: ...


class DeleteRecordsHandler:
    """Answers DeleteRecords."""

    def __init__(self, replicas: DeleteRecordsReplicas) -> None:
        self._replicas = replicas

    def handle(
        self, context: RequestContext, request: DeleteRecordsRequest
    ) -> DeleteRecordsResponse | asyncio.Future[DeleteRecordsResponse]:
        waiting: list[_FollowersDelete] = []
        response = DeleteRecordsResponse(
            topics=[
                DeleteRecordsResponse.DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        self._delete(topic.name, wanted.partition_index, wanted.offset, waiting)
                        for wanted in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
        if not waiting:
            return response
        return _Waiting(response, waiting).start(max(request.timeout_ms, 0))

    def _delete(
        self, topic: str, index: int, offset: int, waiting: list[_FollowersDelete]
    ) -> _Result:
        result = _Result(partition_index=index, low_watermark=NO_LOW_WATERMARK)
        try:
            partition = self._replicas.get(topic, index)
            if partition.internal:
                raise ApiError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Cannot delete records of internal topic {topic}",
                )
            wanted = partition.high_watermark if offset == -1 else offset
            result.low_watermark = delete_records(partition, offset)
            if result.low_watermark < wanted:
                # The response unless the followers reach the offset in time.
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
                waiting.append(_FollowersDelete(partition, wanted, result))
        except Exception as error:
            result.error_code, _ = error_of(error, f"DeleteRecords of {topic}-{index}")
        return result


class _FollowersDelete:
    """One partition whose followers still have the records."""

    __slots__ = ("_offset", "_owner", "_partition", "_result")

    def __init__(self, partition: Partition, offset: int, result: _Result) -> None:
        self._partition = partition
        self._offset = offset
        self._result = result
        self._owner: _Waiting | None = None

    def start(self, owner: _Waiting) -> None:
        self._owner = owner
        when_deleted(self._partition, self._offset, self.on_outcome)

    def stop(self) -> None:
        self._partition.waiters.deletions.forget(self.on_outcome)

    def on_outcome(self, error: ErrorCode, low_watermark: int) -> None:
        self._result.error_code = error
        self._result.low_watermark = low_watermark
        if self._owner is not None:
            self._owner.on_done(self)


class _Waiting:
    """A request that waits for followers; answered once, at its timeout with the state then."""

    def __init__(self, response: DeleteRecordsResponse, parts: list[_FollowersDelete]) -> None:
        self._response = response
        self._parts = dict.fromkeys(parts)
        loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[DeleteRecordsResponse] = loop.create_future()
        self._timer: TimerHandle | None = None

    def start(self, timeout_ms: int) -> asyncio.Future[DeleteRecordsResponse]:
        self._timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, self._end)
        self._answer.add_done_callback(lambda _: self._end())
        for part in list(self._parts):
            part.start(self)
        return self._answer

    def on_done(self, part: _FollowersDelete) -> None:
        self._parts.pop(part, None)
        if not self._parts:
            self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for part in self._parts:
            part.stop()
        self._parts = {}
        if not self._answer.done():
            self._answer.set_result(self._response)
