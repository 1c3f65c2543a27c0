"""Asks a cluster about the topics of one source: which partitions, which offsets, anything new.

A thin shell over the client. Invariants: every call ends in bounded time; who waits for new
records is woken by the brokers, which hold a Fetch until there are some, so that waiting costs next
to nothing; a list of partitions is at most a second old, longer only where asking is dear.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from moldau.client._fetch_reader import FetchReader
from moldau.client.cluster import LANE_FETCH, ClusterClient
from moldau.client.config import CONSUMER_KEYS, parse_settings
from moldau.client.consumer.list_offsets import OffsetFinder
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    KafkaError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
    error_for,
)
from moldau.client.loop_thread import LoopThread
from moldau.client.machine.metadata import ClusterMetadata
from moldau.client.network_settings import NetworkSettings
from moldau.client.topics import Node, TopicPartition
from moldau.spark.source.machine.offsets import EARLIEST, LATEST, Offsets
from moldau.spark.source.machine.options import Assign, SourceOptions, Subscribe, SubscribePattern
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import FetchRequest, FetchResponse

__all__ = ["SourceCluster"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

# The last version that speaks of topics by name.
_FETCH_BY_NAME: Final = 12
_WAIT_MARGIN_MS: Final = 1_000
_PARTITIONS_AGE_S: Final = 1.0
_PARTITIONS_AGE_S_MAX: Final = 30.0
# Asking for partitions takes at most this part of a core.
_PARTITIONS_COST: Final = 0.02
_AGE_TIMEOUT_S: Final = 1.0


class SourceCluster:
    """See the module. Blocking; for one thread."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        values = parse_settings(
            CONSUMER_KEYS, {"default.api.timeout.ms": "60000", **options.config}
        )
        settings = NetworkSettings.of(
            values, client_id=values["client.id"] or "moldau-spark-source"
        )
        self.api_timeout_ms: int = values["default.api.timeout.ms"]
        self._patience_ms = self.api_timeout_ms
        self._thread = LoopThread("moldau-spark-source")
        self._cluster, self._finder = self._thread.call(self._open(settings))
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._missing: frozenset[str] = frozenset()
        self._partitions_until_s = 0.0
        # Fetches that brokers still hold, by node: the next wait listens to them again.
        self._held: dict[int, asyncio.Task[bool]] = {}

    @property
    def thread(self) -> LoopThread:
        """Where other coroutines of the source may run."""
        return self._thread

    async def _open(self, settings: NetworkSettings) -> tuple[ClusterClient, OffsetFinder]:
        cluster = ClusterClient(settings)
        if isinstance(self._options.strategy, SubscribePattern):
            cluster.wanted_topics = None
        return cluster, OffsetFinder(cluster, read_committed=self._options.read_committed)

    # Partitions.

    def partitions(
        self, *, fresh: bool = False, may_miss: bool = False
    ) -> frozenset[TopicPartition]:
        """Those that the source reads.

        Raises KafkaError, also if a topic that was named is not there, unless some `may_miss`:
        then it is left out.
        """
        if fresh or time.monotonic() >= self._partitions_until_s:
            begun_s = time.process_time()
            self._ask_partitions()
            pause_s = (time.process_time() - begun_s) / _PARTITIONS_COST
            pause_s = min(max(_PARTITIONS_AGE_S, pause_s), _PARTITIONS_AGE_S_MAX)
            self._partitions_until_s = time.monotonic() + pause_s
        if self._missing and not may_miss:
            self._partitions_until_s = 0.0
            raise self._missing_error()
        return self._partitions

    def _ask_partitions(self) -> None:
        """What is missing is asked for again, as often as `fetchOffset.numRetries` says: a broker
        that has just started does not know everything yet."""
        known = self._missing
        for attempt in range(1, self._options.fetch_offset_num_retries + 1):
            self._partitions, self._missing = self._retrying(self._find_partitions)
            if self._missing <= known or attempt == self._options.fetch_offset_num_retries:
                return
            _log.warning("Not found, asking again: %s", ", ".join(sorted(self._missing)))
            time.sleep(self._options.fetch_offset_retry_interval_ms / 1000)

    async def _find_partitions(self) -> tuple[frozenset[TopicPartition], frozenset[str]]:
        """Those that are there, and the names of what is not."""
        deadline = Deadline(self._cluster.clock, self.api_timeout_ms)
        match self._options.strategy:
            case SubscribePattern(pattern):
                picture = await self._cluster.refresh(deadline=deadline)
                names = [
                    name
                    for name, view in picture.topics.items()
                    if not view.is_internal and pattern.matches(name)
                ]
                return _partitions_of(picture, names), frozenset()
            case Subscribe(topics):
                picture = await self._cluster.refresh(topics, deadline=deadline)
                there = [name for name in topics if name in picture.topics]
                return _partitions_of(picture, there), frozenset(topics).difference(there)
            case Assign(partitions):
                wanted = {key.topic for key in partitions}
                picture = await self._cluster.refresh(wanted, deadline=deadline)
                found = frozenset(key for key in partitions if picture.partition(key) is not None)
                return found, frozenset(map(str, partitions - found))

    def _missing_error(self) -> KafkaError:
        missing = sorted(self._missing)
        errors = self._cluster.metadata.errors
        servers = self._options.config["bootstrap.servers"]
        denied = [
            name for name in missing if errors.get(name) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ]
        if denied:
            return error_for(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{', '.join(denied)} at {servers}"
            )
        if isinstance(self._options.strategy, Assign):
            return UnknownTopicOrPartitionError(
                f"partitions that 'assign' names do not exist at {servers}: {', '.join(missing)}"
            )
        return UnknownTopicOrPartitionError(
            f"topic {', '.join(missing)} does not exist at {servers}",
            advice="correct its name, or create it: `moldau topics --create --topic "
            f"{missing[0]} --bootstrap-server {servers}`",
        )

    # Offsets.

    def latest_there(self) -> Offsets:
        """The ends of the partitions that are there; those that are deleted just now are not."""
        for _ in range(self._options.fetch_offset_num_retries):
            partitions = self.partitions(may_miss=True)
            try:
                return self.latest(partitions, waits_for_unknown=False)
            except UnknownTopicOrPartitionError:
                self._partitions_until_s = 0.0
        return self.latest(self.partitions(may_miss=True))

    def latest(
        self, partitions: Collection[TopicPartition], *, waits_for_unknown: bool = True
    ) -> Offsets:
        """The ends of partitions; with read_committed the last stable offsets."""
        return self._edges(partitions, LATEST, waits_for_unknown)

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offsets. Partitions that are not there any more are left out."""
        there = self.partitions(may_miss=True)
        return self._edges([key for key in partitions if key in there], EARLIEST, True)

    def at_times(
        self, times: Mapping[TopicPartition, int], *, waits_for_unknown: bool = True
    ) -> dict[TopicPartition, int | None]:
        """The first offset at or after each time; -2 is the first, -1 the last."""
        if not times:
            return {}
        return self._retrying(lambda: self._find(times), waits_for_unknown)

    def _edges(
        self, partitions: Collection[TopicPartition], which: int, waits_for_unknown: bool
    ) -> Offsets:
        times = dict.fromkeys(partitions, which)
        found = self.at_times(times, waits_for_unknown=waits_for_unknown)
        return {key: 0 if offset is None else offset for key, offset in found.items()}

    async def _find(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Raises at once for a partition that is not there: the caller may know a later list."""
        deadline = Deadline(self._cluster.clock, self.api_timeout_ms)
        found: dict[TopicPartition, int | None] = {}
        failures = 0
        while True:
            left = {key: each for key, each in times.items() if key not in found}
            answers, error = await self._finder.find_once(left)
            found.update(
                {key: None if each is None else each.offset for key, each in answers.items()}
            )
            if len(found) == len(times):
                return found
            if error is None or not error.retriable:
                raise error or KafkaError(f"no offsets of {', '.join(map(str, left))}")
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise error
            failures += 1
            delay_ms = self._cluster.backoff.delay_ms(failures, self._cluster.random)
            if deadline.left_ms() <= delay_ms:
                raise KafkaTimeoutError(
                    f"No offsets of {', '.join(sorted(map(str, left)))} within "
                    f"{deadline.timeout_ms} ms (default.api.timeout.ms): {error}"
                ) from error
            self._cluster.request_refresh()
            await asyncio.sleep(delay_ms / 1000)

    def _retrying(
        self, ask: Callable[[], Coroutine[Any, Any, T]], waits_for_unknown: bool = True
    ) -> T:
        """As often as `fetchOffset.numRetries` says; what took its whole time is not repeated."""
        for attempt in range(1, self._options.fetch_offset_num_retries + 1):
            try:
                return self._thread.call(self._bounded(ask))
            except KafkaTimeoutError:
                raise
            except KafkaError as error:
                if isinstance(error, UnknownTopicOrPartitionError) and not waits_for_unknown:
                    raise
                if attempt == self._options.fetch_offset_num_retries:
                    raise
                _log.warning("Error in attempt %d getting Kafka offsets: %s", attempt, error)
                time.sleep(self._options.fetch_offset_retry_interval_ms / 1000)
                self._partitions_until_s = 0.0
        raise AssertionError("there is at least one attempt")

    async def _bounded(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            async with asyncio.timeout(self._patience_ms / 1000):
                return await ask()
        except KafkaError:
            raise
        except TimeoutError:
            servers = self._options.config["bootstrap.servers"]
            raise KafkaTimeoutError(
                f"the cluster at {servers} did not answer within {self._patience_ms} ms"
            ) from None

    @contextmanager
    def patience(self, milliseconds: int) -> Iterator[None]:
        """Let each question take at most so long, shorter than `default.api.timeout.ms`."""
        self._patience_ms = min(milliseconds, self.api_timeout_ms)
        try:
            yield
        finally:
            self._patience_ms = self.api_timeout_ms

    # Waiting.

    def wait(self, positions: Mapping[TopicPartition, int], seconds: float) -> bool:
        """Until a partition has something at its position, at most for so long."""
        return self._thread.call(self._wait(positions, seconds))

    async def _wait(self, positions: Mapping[TopicPartition, int], seconds: float) -> bool:
        by_leader: dict[Node, list[TopicPartition]] = {}
        for key in positions:
            leader = self._cluster.metadata.leader(key)
            if leader is not None:
                by_leader.setdefault(leader, []).append(key)
        deadline_s = time.monotonic() + seconds
        for leader, keys in by_leader.items():
            held = self._held.get(leader.id)
            if held is None or held.done():
                request = _fetch_request(
                    {key: positions[key] for key in keys},
                    wait_ms=int(seconds * 1000),
                    read_committed=self._options.read_committed,
                )
                self._held[leader.id] = asyncio.create_task(self._has_news(leader, request))
        waiting = {self._held[leader.id] for leader in by_leader}
        while waiting and (left_s := deadline_s - time.monotonic()) > 0:
            done, waiting = await asyncio.wait(
                waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )
            if any(task.result() for task in done):
                return True
        # Without a leader, or with one that answered at once with an error: do not ask in a circle.
        await asyncio.sleep(max(0.0, deadline_s - time.monotonic()))
        return False

    async def _has_news(self, leader: Node, request: FetchRequest) -> bool:
        try:
            response: FetchResponse = await self._cluster.call(
                leader,
                request,
                timeout_ms=request.max_wait_ms + _WAIT_MARGIN_MS,
                max_version=_FETCH_BY_NAME,
                lane=LANE_FETCH,
            )
        except KafkaError:
            self._cluster.request_refresh()
            return False
        found = False
        for topic in response.responses:
            for each in topic.partitions:
                if each.error_code != ErrorCode.NONE:
                    self._cluster.request_refresh()
                elif each.records:
                    found = True
        return found

    # Ages.

    def timestamps(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The time of the first record at or after each position, where it is soon to be had."""

        async def ask() -> dict[TopicPartition, int]:
            found: dict[TopicPartition, int] = {}
            try:
                async with asyncio.timeout(_AGE_TIMEOUT_S):
                    for key, offset in positions.items():
                        timestamp = await self._timestamp(key, offset)
                        if timestamp is not None:
                            found[key] = timestamp
            except (TimeoutError, KafkaError) as error:
                _log.debug("The age of unread records is not known: %s", error)
            return found

        return self._thread.call(ask())

    async def _timestamp(self, key: TopicPartition, offset: int) -> int | None:
        leader = self._cluster.metadata.leader(key)
        if leader is None:
            return None
        request = _fetch_request(
            {key: offset}, wait_ms=0, read_committed=self._options.read_committed
        )
        response: FetchResponse = await self._cluster.call(
            leader, request, max_version=_FETCH_BY_NAME
        )
        for topic in response.responses:
            for each in topic.partitions:
                if each.error_code == ErrorCode.NONE and each.records:
                    records = FetchReader(each.records, *key, offset).next(1)
                    if records:
                        return int(records[0].timestamp)
        return None

    def close(self) -> None:
        """Let go of the connections."""
        try:
            self._thread.call(self._close())
        finally:
            self._thread.stop()

    async def _close(self) -> None:
        for task in self._held.values():
            task.cancel()
        await asyncio.gather(*self._held.values(), return_exceptions=True)
        await self._cluster.close()


def _partitions_of(picture: ClusterMetadata, topics: Iterable[str]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(name, each) for name in topics for each in picture.topics[name].partitions
    )


def _fetch_request(
    positions: Mapping[TopicPartition, int], *, wait_ms: int, read_committed: bool
) -> FetchRequest:
    """For as little as a broker gives: one batch of the first partition that has any."""
    topics: dict[str, FetchRequest.FetchTopic] = {}
    for key, offset in positions.items():
        topic = topics.get(key.topic)
        if topic is None:
            topic = topics[key.topic] = FetchRequest.FetchTopic(topic=key.topic)
        topic.partitions.append(
            FetchRequest.FetchPartition(
                partition=key.partition, fetch_offset=offset, partition_max_bytes=1
            )
        )
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1,
        isolation_level=1 if read_committed else 0,
        topics=list(topics.values()),
    )
