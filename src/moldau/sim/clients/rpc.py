"""How a simulated client reaches the brokers: it learns the leaders, and retries elsewhere.

The connections are the broker's own channels (`broker/network/node_channel.py`) over the simulated
network, with versions negotiated and everything encoded and decoded as on a real one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar, cast
from uuid import UUID

from moldau.peers.channel import Channel, ChannelError
from moldau.peers.node_channel import ChannelSettings, NodeTransport
from moldau.sim.cluster import Cluster
from moldau.sim.machine import SimClock
from moldau.sim.network import Dialler, End
from moldau.wire.apis import API_BY_KEY
from moldau.wire.errors import COORDINATOR_MOVED, PARTITION_MOVED, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

M = TypeVar("M", bound=Message)
Address = tuple[str, int]
TopicPartition = tuple[str, int]

REQUEST_TIMEOUT_MS = 5_000
_KEYS = {api.name: api.key for api in API_BY_KEY.values()}

#: Answers that only mean: later, or somewhere else.
#: Fewer than Kafka calls retriable: corrupt batches and failed disks must not pass unseen here.
RETRIABLE = frozenset(
    {
        *COORDINATOR_MOVED,
        *PARTITION_MOVED,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)


class Lost(Exception):
    """No answer: the request may have been carried out or not."""


@dataclass(slots=True)
class View:
    """What a client knows of the cluster."""

    topic_ids: dict[str, UUID] = field(default_factory=dict)
    leaders: dict[TopicPartition, Address] = field(default_factory=dict)
    coordinators: dict[tuple[int, str], Address] = field(default_factory=dict)


class Wire:
    """One client's way to the cluster. `host` is where it runs, as the network sees it."""

    def __init__(self, cluster: Cluster, host: str, random: Random) -> None:
        self._cluster = cluster
        self._random = random
        self.host = host
        self._dialler = Dialler(cluster.net, host)
        self._transport = NodeTransport(
            client_id=host,
            clock=SimClock(cluster.world),
            random=random,
            settings=ChannelSettings(socket_connection_setup_timeout_ms=3_000),
            connect=self._dialler,
        )
        self._channels: dict[Address, Channel] = {}
        self.view = View()
        self._epochs: dict[TopicPartition, int] = {}

    @property
    def ends(self) -> Sequence[End]:
        return self._dialler.ends

    def close(self) -> None:
        self._transport.close()

    async def call(
        self,
        address: Address,
        request: Message,
        response_class: type[M],
        *,
        max_version: int | None = None,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> M:
        key = _KEYS[type(request).__name__.removesuffix("Request")]
        try:
            response = await self._channel(address).call(
                key, request, timeout_ms=timeout_ms, max_version=max_version
            )
        except ChannelError as error:
            self.view = View(topic_ids=self.view.topic_ids)
            raise Lost(str(error)) from error
        return cast(M, response)

    def _channel(self, address: Address) -> Channel:
        channel = self._channels.get(address)
        if channel is None:
            number = len(self._channels) + 1
            channel = self._channels[address] = self._transport.channel(
                number, *address, "PLAINTEXT"
            )
        return channel

    def anybody(self) -> Address:
        return self._random.choice(self._cluster.addresses)

    # Who does what.

    async def refresh(self, topics: Sequence[str]) -> None:
        response = await self.call(
            self.anybody(),
            MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
                allow_auto_topic_creation=False,
            ),
            MetadataResponse,
        )
        brokers = {each.node_id: (each.host, each.port) for each in response.brokers}
        for topic in response.topics:
            if topic.error_code != ErrorCode.NONE or topic.name is None:
                continue
            self.view.topic_ids[topic.name] = topic.topic_id
            for partition in topic.partitions:
                where = topic.name, partition.partition_index
                # As Kafka's clients do (KIP-320): a broker that is behind may name a leader that
                # is none any more, and does not know it either.
                if partition.leader_epoch < self._epochs.get(where, -1):
                    continue
                self._epochs[where] = partition.leader_epoch
                if partition.leader_id in brokers:
                    self.view.leaders[where] = brokers[partition.leader_id]

    async def leader(self, topic: str, partition: int) -> Address:
        if (topic, partition) not in self.view.leaders:
            await self.refresh([topic])
        found = self.view.leaders.get((topic, partition))
        if found is None:
            raise Lost(f"{topic}-{partition} has no leader")
        return found

    def leader_epoch(self, topic: str, partition: int) -> int:
        """That of the last known leader, -1 before."""
        return self._epochs.get((topic, partition), -1)

    async def topic_id(self, topic: str) -> UUID:
        if topic not in self.view.topic_ids:
            await self.refresh([topic])
        if topic not in self.view.topic_ids:
            raise Lost(f"{topic} is not known")
        return self.view.topic_ids[topic]

    async def coordinator(self, key: str, key_type: int) -> Address:
        found = self.view.coordinators.get((key_type, key))
        if found is not None:
            return found
        response = await self.call(
            self.anybody(),
            FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]),
            FindCoordinatorResponse,
        )
        answer = response.coordinators[0]
        if answer.error_code != ErrorCode.NONE:
            raise Lost(f"no coordinator for {key}: {ErrorCode(answer.error_code).name}")
        address = self.view.coordinators[key_type, key] = (answer.host, answer.port)
        return address

    def forget(self) -> None:
        """A broker has refused a request because it is not the leader or coordinator."""
        self.view = View(topic_ids=self.view.topic_ids)
