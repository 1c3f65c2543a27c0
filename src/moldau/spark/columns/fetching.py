"""Fetches the batches of a range of one partition, one part at a time.

Invariants: what fails for a reason that passes (another leader, a lost connection, a
follower that is behind) is tried again for `default.api.timeout.ms`, counted again with every part;
after that, and at once for what does not pass, an error says what is missing and where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from moldau.client.consumer.list_offsets import OffsetFinder
from moldau.client.consumer.machine.fetch_buffer import end_of_batches
from moldau.client.deadline import Deadline
from moldau.client.errors import KafkaError, KafkaTimeoutError, error_for
from moldau.client.topics import Node, TopicPartition
from moldau.clock import pause
from moldau.spark.columns.clients import PooledClient
from moldau.spark.columns.errors import DataLossError, OpenTransactionError
from moldau.spark.columns.machine.progress import Meaning, meaning_of, part_size
from moldau.wire.batch_header import MAGIC, MAGIC_POSITION
from moldau.wire.errors import ErrorCode, WireError
from moldau.wire.fetch_response import (
    TOPIC_ID_VERSION,
    FetchedPart,
    FetchedResponse,
    read_fetch_response,
)
from moldau.wire.messages import FetchRequest
from moldau.wire.uuids import ZERO_UUID

__all__ = ["Part", "RangeFetcher"]

# In place of Kafka's 1 MiB, where nothing was set: the reader of a range wants all of it.
PART_BYTES: Final = 4 * 1024 * 1024
_NO_SESSION: Final = -1
_WAIT_MARGIN_MS: Final = 1_000
_FAILS_AT_ONCE: Final = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class Part(NamedTuple):
    """Batches, and the offset after the last of them. None: nothing is left below that offset.

    What they have below `position` is not to be read: it was read before, or it was deleted.
    """

    records: memoryview | None
    aborted: Sequence[tuple[int, int]]
    position: int
    next_offset: int


class RangeFetcher:
    """See the module. Lives on the client's loop; one `fetch` at a time."""

    def __init__(
        self,
        client: PooledClient,
        lane: str,
        key: TopicPartition,
        start: int,
        end: int,
        *,
        read_committed: bool,
        fail_on_data_loss: bool,
    ) -> None:
        self._cluster = client.cluster
        self._values: Any = client.values
        self._lane = lane
        self._key = key
        self._start = start
        self._end = end
        self._read_committed = read_committed
        self._fail_on_data_loss = fail_on_data_loss
        given = "max.partition.fetch.bytes" in client.given
        self._size_max = client.values["max.partition.fetch.bytes"] if given else PART_BYTES
        self._replica: int | None = None
        self._seen_count = 0
        self._seen_size = 0

    async def fetch(self, position: int) -> Part:
        """The next part, of which the first batch has `position` or follows it."""
        timeout_ms = self._values["default.api.timeout.ms"]
        deadline = Deadline(self._cluster.clock, timeout_ms)
        failures = 0
        while True:
            problem: KafkaError | None = None
            meaning = Meaning.STALE
            part: FetchedPart | None = None
            try:
                part = await self._ask(position, deadline)
                meaning = meaning_of(
                    part, position=position, end=self._end, read_committed=self._read_committed
                )
            except WireError as error:
                problem = error_for(ErrorCode.CORRUPT_MESSAGE, str(error))
            except KafkaError as error:
                if not error.retriable:
                    raise
                problem = error
                self._replica = None
            if part is not None:
                done = await self._done(meaning, part, position, deadline)
                if isinstance(done, Part):
                    return done
                if done is not None:
                    # The log begins later: what was there is lost, and that is allowed.
                    position = done
                    failures = 0
                    continue
            if deadline.passed:
                self._give_up(meaning, part, position, problem, timeout_ms)
                return Part(None, (), self._end, self._end)
            if meaning is Meaning.STALE:
                self._cluster.request_refresh()
            if meaning in (Meaning.STALE, Meaning.PASSING, Meaning.OUT_OF_RANGE):
                failures += 1
                delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
                await pause(self._cluster.clock, min(delay_ms, max(1, deadline.left_ms())))

    async def _done(
        self, meaning: Meaning, part: FetchedPart, position: int, deadline: Deadline
    ) -> Part | int | None:
        """What ends the asking at this position, another position, or None to ask again."""
        if meaning is Meaning.RECORDS and part.records is not None:
            return self._part(part, part.records, position)
        if meaning is Meaning.COMPLETE:
            return Part(None, (), self._end, self._end)
        if meaning is Meaning.ELSEWHERE:
            self._replica = part.preferred_read_replica
        elif meaning is Meaning.OUT_OF_RANGE:
            if self._replica is None:
                return await self._on_out_of_range(position, deadline)
            # A follower may not have it yet, or have it no longer: the leader knows.
            self._replica = None
        elif meaning is Meaning.REFUSED:
            raise error_for(part.error_code, f"fetching offset {position} of {self._key}")
        return None

    def _part(self, part: FetchedPart, records: memoryview, position: int) -> Part:
        next_offset = end_of_batches(records)
        if next_offset is not None and next_offset <= position:
            raise KafkaError(f"{self._key}: batches up to {next_offset} came for offset {position}")
        if next_offset is None:
            if len(records) > MAGIC_POSITION and records[MAGIC_POSITION] != MAGIC:
                # The decoder refuses them with the reason.
                return Part(records, (), position, position)
            raise KafkaError(
                f"no whole batch came for {self._key} at offset {position}",
                advice="raise max.partition.fetch.bytes and fetch.max.bytes",
            )
        self._seen_count += next_offset - position
        self._seen_size += len(records)
        return Part(records, part.aborted or (), position, next_offset)

    async def _on_out_of_range(self, position: int, deadline: Deadline) -> int | Part | None:
        finder = OffsetFinder(self._cluster, read_committed=False)
        first = (await finder.beginnings([self._key], deadline))[self._key]
        last = (await finder.ends([self._key], deadline))[self._key]
        if first <= position <= last:
            # It has come meanwhile, or a leader is gone that had less: asked again.
            return None
        if self._fail_on_data_loss:
            raise DataLossError(
                self._key.topic, self._key.partition, (position, self._end), (first, last)
            )
        return first if position < first < self._end else Part(None, (), self._end, self._end)

    def _give_up(
        self,
        meaning: Meaning,
        part: FetchedPart | None,
        position: int,
        problem: KafkaError | None,
        timeout_ms: int,
    ) -> None:
        key = self._key
        if meaning is Meaning.UNSTABLE and part is not None:
            raise OpenTransactionError(
                key.topic, key.partition, part.last_stable_offset, self._end, timeout_ms
            )
        if meaning is Meaning.SHORT and part is not None:
            if self._fail_on_data_loss:
                raise DataLossError(
                    key.topic,
                    key.partition,
                    (position, self._end),
                    (max(0, part.log_start_offset), part.high_watermark),
                )
            return
        if problem is None and part is not None:
            problem = error_for(part.error_code, None)
        raise KafkaTimeoutError(
            f"offset {position} of {key} could not be fetched within default.api.timeout.ms, "
            f"{timeout_ms} ms: {problem}"
        ) from problem

    # Asking.

    async def _ask(self, position: int, deadline: Deadline) -> FetchedPart:
        node_id, leader_epoch = await self._node(deadline)
        topic_id = self._cluster.metadata.topic_id(self._key.topic)
        by_id = topic_id != ZERO_UUID
        size = part_size(
            left_count=self._end - position,
            seen_count=self._seen_count,
            seen_size=self._seen_size,
            size_max=self._size_max,
        )
        wait_ms = self._values["fetch.max.wait.ms"]
        request = FetchRequest(
            max_wait_ms=min(wait_ms, max(1, deadline.left_ms())),
            min_bytes=self._values["fetch.min.bytes"],
            max_bytes=max(size, self._values["fetch.max.bytes"]),
            isolation_level=1 if self._read_committed else 0,
            session_id=0,
            session_epoch=_NO_SESSION,
            topics=[
                FetchRequest.FetchTopic(
                    topic=self._key.topic,
                    topic_id=topic_id,
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=self._key.partition,
                            current_leader_epoch=leader_epoch,
                            fetch_offset=position,
                            partition_max_bytes=size,
                        )
                    ],
                )
            ],
            rack_id=self._values["client.rack"],
        )
        raw = await self._cluster.call_raw(
            node_id,
            request,
            timeout_ms=max(self._cluster.settings.request_timeout_ms, wait_ms + _WAIT_MARGIN_MS),
            max_version=None if by_id else TOPIC_ID_VERSION - 1,
            lane=self._lane,
        )
        response = read_fetch_response(raw.version, raw.body)
        self._cluster.note_throttle(node_id, response.throttle_time_ms)
        return self._own_part(response)

    def _own_part(self, response: FetchedResponse) -> FetchedPart:
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f"fetching {self._key}")
        if not response.parts:
            raise error_for(ErrorCode.UNKNOWN_SERVER_ERROR, "the response leaves it out")
        part = response.parts[0][1]
        if part.current_leader is not None and part.current_leader[1] >= 0:
            picture = self._cluster.metadata.with_leaders(
                {self._key: part.current_leader}, [Node(*node) for node in response.nodes]
            )
            self._cluster.apply_leader_hints(picture)
        return part

    async def _node(self, deadline: Deadline) -> tuple[int, int]:
        """Whom to ask, and the leader's epoch as far as it is known."""
        cluster, key = self._cluster, self._key
        if cluster.metadata.partition(key) is None:
            await cluster.refresh([key.topic], deadline=deadline)
        picture = cluster.metadata
        view = picture.partition(key)
        if view is None:
            code = picture.errors.get(key.topic)
            if code in _FAILS_AT_ONCE:
                raise error_for(code, f"topic {key.topic}")
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(key))
        if self._replica is not None:
            if self._replica in picture.nodes:
                return self._replica, view.leader_epoch
            self._replica = None
        if view.leader_id not in picture.nodes:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, str(key))
        return view.leader_id, view.leader_epoch
