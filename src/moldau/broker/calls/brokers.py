"""Which broker leads a partition, and channels to the brokers.

Invariants: there is one channel to a broker, to the endpoint in the metadata; when a broker is
unregistered, fenced or registered again, its channel is closed, so that callers that wait for its
response can turn to the new leader.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Broker, Node
from moldau.peers.channel import Channel, ChannelError, Transport
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message

NO_LEADER = -1


def known_code(code: int) -> ErrorCode:
    """The error code of a response; a broker of a later release may send an unknown one."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


class PartitionLeaders:
    """Answers from the current metadata image."""

    def __init__(self, image: Callable[[], MetadataImage], listener_name: str) -> None:
        """`listener_name` is the listener that brokers use to reach one another."""
        self._image = image
        self._listener_name = listener_name

    def leader(self, topic: str, index: int) -> int | None:
        """The leader's broker id, NO_LEADER if it has none, None if there is no such partition."""
        found = self._image().topics_by_name.get(topic)
        state = None if found is None else found.partitions.get(index)
        return None if state is None else state.leader

    def node(self, broker_id: int) -> Node | None:
        """Where a broker is reached; None unless it is registered and unfenced."""
        broker = self._image().brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        endpoint = broker.endpoint(self._listener_name)
        return None if endpoint is None else Node(broker.id, endpoint.host, endpoint.port)

    @property
    def listener_name(self) -> str:
        return self._listener_name


class BrokerChannels:
    """One object per purpose: responses come in order, so a slow one delays those behind it."""

    def __init__(self, transport: Transport, leaders: PartitionLeaders) -> None:
        self._transport = transport
        self._leaders = leaders
        self._channels: dict[int, tuple[Node, Channel]] = {}
        self._closed = False

    async def call(
        self, broker_id: int, key: ApiKey, request: Message, *, timeout_ms: int
    ) -> Message:
        """The broker's response; raises ChannelError, also if the broker is fenced or gone."""
        if self._closed:
            raise ChannelError(f"{API_BY_KEY[key].name} is not sent: this node is stopping")
        node = self._leaders.node(broker_id)
        if node is None:
            raise ChannelError(
                f"{API_BY_KEY[key].name} is not sent: broker {broker_id} is fenced or gone"
            )
        return await self._channel(node).call(key, request, timeout_ms=timeout_ms)

    def _channel(self, node: Node) -> Channel:
        known = self._channels.get(node.node_id)
        if known is not None:
            if known[0] == node:
                return known[1]
            self._drop(node.node_id)
        channel = self._transport.channel(*node, self._leaders.listener_name)
        self._channels[node.node_id] = node, channel
        return channel

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Close the channels to brokers that were fenced, unregistered or registered again."""
        if delta.from_snapshot:
            gone = [each for each in self._channels if self._leaders.node(each) is None]
        else:
            gone = [
                broker_id
                for broker_id, before in delta.brokers.items()
                if broker_id in self._channels
                and not _goes_on(before, image.brokers.get(broker_id))
            ]
        for broker_id in gone:
            self._drop(broker_id)

    def _drop(self, broker_id: int) -> None:
        known = self._channels.pop(broker_id, None)
        if known is not None:
            known[1].close()

    def close(self) -> None:
        """Fail the calls in flight and every later call."""
        self._closed = True
        for broker_id in list(self._channels):
            self._drop(broker_id)


def _goes_on(before: Broker | None, after: Broker | None) -> bool:
    """Whether it is the same registration, and not fenced."""
    return (
        before is not None
        and after is not None
        and not after.fenced
        and after.epoch == before.epoch
        and after.endpoints == before.endpoints
    )
