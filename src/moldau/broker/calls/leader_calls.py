"""Calls to the broker that leads a partition, many of them in one request.

Decided here: which broker is called, which calls share a request, and which error a missing leader,
a lost connection and an incomplete response become.

Invariants: a call ends with its own result or with an ApiError; a call that this broker can answer
sends nothing; at most one request of an API and a group is in flight to a broker, and the next one
carries everything that has accumulated meanwhile. Nothing is retried here, as a caller that retries
has to look up the leader again (`retries.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from moldau.broker.calls.brokers import NO_LEADER, BrokerChannels, PartitionLeaders
from moldau.broker.calls.gathering import Gathering
from moldau.peers.channel import ChannelError
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message

T = TypeVar("T")
R = TypeVar("R")

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """The brokers of the cluster, as one of them reaches the others."""

    node_id: int
    """This broker."""
    leaders: PartitionLeaders
    channels: BrokerChannels
    timeout_ms: Callable[[], int]
    """For one request: request.timeout.ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest(Generic[T, R]):
    """How the items of several calls become one request, and its response their results."""

    api: ApiKey
    encode: Callable[[Sequence[T]], Message]
    decode: Callable[[Message], Mapping[Hashable, R | ApiError]]
    """The results by key. Raises ApiError if the request failed as a whole."""
    key: Callable[[T], Hashable]
    """Identifies an item in a response. Items of equal keys never share a request."""
    group: Callable[[T], Hashable] = lambda item: None
    """Items of different groups never share a request, and do not wait for one another."""


class _Destination(NamedTuple):
    broker_id: int
    group: Hashable


class LeaderCalls(Generic[T, R]):
    def __init__(
        self,
        brokers: Brokers,
        request: BatchRequest[T, R],
        *,
        no_partition: ErrorCode,
        no_leader: ErrorCode,
    ) -> None:
        """`no_partition` and `no_leader` are raised when the metadata has no such partition, or no
        leader for it."""
        self._brokers = brokers
        self._request = request
        self._no_partition = no_partition
        self._no_leader = no_leader
        self._requests: Gathering[_Destination, T, R | ApiError] = Gathering(
            self._send, key=request.key
        )

    def leader(self, partition: TopicPartition) -> int:
        """The id of the broker that leads the partition."""
        leader = self._brokers.leaders.leader(*partition)
        if leader is None:
            raise ApiError(self._no_partition, "partition {}-{} does not exist".format(*partition))
        if leader == NO_LEADER:
            raise ApiError(self._no_leader, "partition {}-{} has no leader".format(*partition))
        return leader

    def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, ErrorCode]]:
        """The partitions of each leader, and the errors of those without one."""
        led: dict[int, list[TopicPartition]] = {}
        errors: dict[TopicPartition, ErrorCode] = {}
        for partition in partitions:
            try:
                led.setdefault(self.leader(partition), []).append(partition)
            except ApiError as error:
                errors[partition] = error.code
        return led, errors

    async def call(self, partition: TopicPartition, item: T, here: Callable[[], Awaitable[R]]) -> R:
        """The result from the partition's leader, which is that of `here` if this broker leads."""
        return await self.call_broker(self.leader(partition), item, here)

    async def call_broker(self, broker_id: int, item: T, here: Callable[[], Awaitable[R]]) -> R:
        """The result from this broker.

        Raises ApiError: NETWORK_EXCEPTION if no response arrived, in which case the call may or may
        not have been carried out; UNKNOWN_SERVER_ERROR if the response has no result for the item.
        """
        if broker_id == self._brokers.node_id:
            return await here()
        try:
            result = await self._requests.call(
                _Destination(broker_id, self._request.group(item)), item
            )
        except ChannelError as error:
            raise ApiError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        if isinstance(result, ApiError):
            raise result
        return result

    async def _send(self, destination: _Destination, items: Sequence[T]) -> Sequence[R | ApiError]:
        request = self._request
        response = await self._brokers.channels.call(
            destination.broker_id,
            request.api,
            request.encode(items),
            timeout_ms=self._brokers.timeout_ms(),
        )
        try:
            results = request.decode(response)
        except ApiError as error:
            # Not raised: each call gets an exception of its own, as a traceback grows with every
            # place that raises it.
            return [ApiError(error.code, error.message) for _ in items]
        return [self._result(results, destination.broker_id, request.key(item)) for item in items]

    def _result(
        self, results: Mapping[Hashable, R | ApiError], broker_id: int, key: Hashable
    ) -> R | ApiError:
        if key in results:
            return results[key]
        name = API_BY_KEY[self._request.api].name
        return ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"the {name} response of broker {broker_id} has no result for {key}",
        )
