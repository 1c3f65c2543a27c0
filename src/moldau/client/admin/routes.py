"""Which node is asked: any node, the controller, a partition's leader, a coordinator, a broker.

A route splits the keys of an operation by the node to ask, and is called with what failed, so that
it forgets a node that is no longer the right one. Invariant: every key that goes in comes out once,
under a node or with an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from moldau.client.cluster import ClusterClient
from moldau.client.errors import (
    BrokerNotAvailableError,
    KafkaError,
    UnsupportedEndpointTypeError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.topics import Node, TopicPartition
from moldau.wire.errors import COORDINATOR_MOVED, LEADER_CHANGED, ErrorCode
from moldau.wire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

__all__ = [
    "AnyRoute",
    "BrokerRoute",
    "ControllerRoute",
    "CoordinatorRoute",
    "LeaderRoute",
    "Located",
    "NodeUnknownError",
    "Route",
]

K = TypeVar("K", bound=Hashable)

_WAIT_FOR_COORDINATOR: Final = COORDINATOR_MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
_MOVED_CONTROLLER: Final = frozenset({ErrorCode.NOT_CONTROLLER})
# A controller that follows another says so in the words of its metadata log.
_FOLLOWS: Final = _MOVED_CONTROLLER | {ErrorCode.NOT_LEADER_OR_FOLLOWER}
# Topics have names here: an id that is not known is no reason to ask again.
_MOVED_LEADER: Final = LEADER_CHANGED | {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
# FindCoordinator asks for several keys from this version on.
_BATCHED_FIND_COORDINATOR = 4


@dataclass(slots=True)
class Located(Generic[K]):
    """Keys by the node to ask, None for whichever can be reached; and those without a node."""

    nodes: dict[Node | None, list[K]] = field(default_factory=dict)
    errors: dict[K, KafkaError] = field(default_factory=dict)

    def put(self, node: Node | None, key: K) -> None:
        self.nodes.setdefault(node, []).append(key)


class Route(Protocol[K]):
    #: Item errors, beside those of the operation, after which a key is asked for again.
    retried: frozenset[ErrorCode]
    #: Whether controllers serve it when the client knows only them (`bootstrap.controllers`).
    of_controllers: bool

    async def locate(self, cluster: ClusterClient, keys: Sequence[K]) -> Located[K]: ...

    def failed(self, cluster: ClusterClient, key: K, error: KafkaError) -> None:
        """A key is going to be asked for again after this error."""
        ...


class AnyRoute(Generic[K]):
    """The first node that can be reached; with `bootstrap.controllers`, the active controller."""

    retried: frozenset[ErrorCode] = frozenset()

    def __init__(self, *, of_controllers: bool = False) -> None:
        self.of_controllers = of_controllers
        if of_controllers:
            self.retried = _FOLLOWS

    async def locate(self, cluster: ClusterClient, keys: Sequence[K]) -> Located[K]:
        if not cluster.settings.controllers:
            return Located({None: list(keys)})
        if cluster.metadata.controller is None:
            await cluster.refresh()
        return Located({cluster.metadata.controller: list(keys)})

    def failed(self, cluster: ClusterClient, key: K, error: KafkaError) -> None:
        cluster.request_refresh()


class ControllerRoute(Generic[K]):
    """The active controller, by way of a broker unless the client talks to controllers."""

    retried = _FOLLOWS

    def __init__(self, *, of_controllers: bool = False) -> None:
        self.of_controllers = of_controllers

    async def locate(self, cluster: ClusterClient, keys: Sequence[K]) -> Located[K]:
        if cluster.metadata.controller is None:
            await cluster.refresh()
        return Located({cluster.metadata.controller: list(keys)})

    def failed(self, cluster: ClusterClient, key: K, error: KafkaError) -> None:
        cluster.request_refresh()


class BrokerRoute(Generic[K]):
    """The broker that a function names for each key; None for any."""

    retried: frozenset[ErrorCode] = frozenset()

    def __init__(
        self, broker_of: Callable[[K], int | None], *, of_controllers: bool = False
    ) -> None:
        self._broker_of = broker_of
        self.of_controllers = of_controllers
        if of_controllers:
            self.retried = _FOLLOWS

    async def locate(self, cluster: ClusterClient, keys: Sequence[K]) -> Located[K]:
        wanted = {key: self._broker_of(key) for key in keys}
        known = cluster.metadata.nodes
        if not known or any(each not in known for each in wanted.values() if each is not None):
            await cluster.refresh()
        located: Located[K] = Located()
        for key, broker_id in wanted.items():
            node = None if broker_id is None else cluster.metadata.nodes.get(broker_id)
            if broker_id is not None and node is None:
                located.errors[key] = NodeUnknownError(f"node {broker_id} is not in the cluster")
            elif node is None and cluster.settings.controllers:
                located.put(cluster.metadata.controller, key)
            else:
                located.put(node, key)
        return located

    def failed(self, cluster: ClusterClient, key: K, error: KafkaError) -> None:
        cluster.request_refresh()


class NodeUnknownError(BrokerNotAvailableError):
    """A broker that may still come."""

    @property
    def retriable(self) -> bool:
        return True


class LeaderRoute:
    """The leaders of partitions. Leaders are asked for once, and again for those that failed."""

    retried = _MOVED_LEADER
    of_controllers = False

    def __init__(self, known: dict[TopicPartition, Node] | None = None) -> None:
        self._leaders: dict[TopicPartition, Node] = dict(known or {})

    async def locate(
        self, cluster: ClusterClient, keys: Sequence[TopicPartition]
    ) -> Located[TopicPartition]:
        located: Located[TopicPartition] = Located()
        missing = [key for key in keys if key not in self._leaders]
        if missing:
            located.errors.update(await self._find(cluster, missing))
        for key in keys:
            node = self._leaders.get(key)
            if node is not None:
                located.put(node, key)
        return located

    async def _find(
        self, cluster: ClusterClient, keys: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KafkaError]:
        topics = sorted({topic for topic, _ in keys})
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        response: MetadataResponse = await cluster.call_any(request)
        nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        found = {topic.name: topic for topic in response.topics}
        errors: dict[TopicPartition, KafkaError] = {}
        # A plain (topic, partition) is as good a key as a TopicPartition, which equals it.
        for key in (TopicPartition(*each) for each in keys):
            leader = self._leader_of(found.get(key.topic), key, nodes)
            if isinstance(leader, KafkaError):
                errors[key] = leader
            else:
                self._leaders[key] = leader
        return errors

    @staticmethod
    def _leader_of(
        topic: MetadataResponse.MetadataResponseTopic | None,
        key: TopicPartition,
        nodes: dict[int, Node],
    ) -> Node | KafkaError:
        if topic is None:
            return error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, key.topic)
        if topic.error_code != ErrorCode.NONE:
            return error_for(topic.error_code, key.topic)
        for each in topic.partitions:
            if each.partition_index == key.partition:
                leader = nodes.get(each.leader_id)
                if leader is not None:
                    return leader
                return error_for(each.error_code or ErrorCode.LEADER_NOT_AVAILABLE, str(key))
        return error_for(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{key.topic} has no partition {key.partition}",
        )

    def failed(self, cluster: ClusterClient, key: TopicPartition, error: KafkaError) -> None:
        self._leaders.pop(key, None)


class CoordinatorRoute(Generic[K]):
    """The coordinators of groups or transactional ids, many asked for at once."""

    of_controllers = False
    retried = _WAIT_FOR_COORDINATOR

    def __init__(self, kind: CoordinatorType, name_of: Callable[[K], str] = str) -> None:
        self._kind = kind
        self._name_of = name_of
        self._nodes: dict[str, Node] = {}

    async def locate(self, cluster: ClusterClient, keys: Sequence[K]) -> Located[K]:
        names = dict.fromkeys(self._name_of(key) for key in keys)
        errors = await self._find(cluster, [each for each in names if each not in self._nodes])
        located: Located[K] = Located()
        for key in keys:
            name = self._name_of(key)
            if name in errors:
                located.errors[key] = errors[name]
            else:
                located.put(self._nodes[name], key)
        return located

    async def _find(self, cluster: ClusterClient, names: Sequence[str]) -> dict[str, KafkaError]:
        if not names:
            return {}
        request = FindCoordinatorRequest(key_type=self._kind, coordinator_keys=list(names))
        try:
            response: FindCoordinatorResponse = await cluster.call_any(request)
        except UnsupportedVersionError:
            return await self._find_each(cluster, names)
        errors: dict[str, KafkaError] = {}
        for each in response.coordinators:
            if each.error_code != ErrorCode.NONE:
                errors[each.key] = error_for(each.error_code, each.error_message)
            else:
                self._nodes[each.key] = Node(each.node_id, each.host, each.port)
        for name in names:
            if name not in errors and name not in self._nodes:
                errors[name] = error_for(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE, f"nothing was answered about {name}"
                )
        return errors

    async def _find_each(
        self, cluster: ClusterClient, names: Iterable[str]
    ) -> dict[str, KafkaError]:
        async def find(name: str) -> tuple[str, FindCoordinatorResponse]:
            request = FindCoordinatorRequest(key_type=self._kind, key=name)
            last = _BATCHED_FIND_COORDINATOR - 1
            return name, await cluster.call_any(request, max_version=last)

        errors: dict[str, KafkaError] = {}
        for name, found in await asyncio.gather(*map(find, names)):
            if found.error_code != ErrorCode.NONE:
                errors[name] = error_for(found.error_code, found.error_message)
            else:
                self._nodes[name] = Node(found.node_id, found.host, found.port)
        return errors

    def failed(self, cluster: ClusterClient, key: K, error: KafkaError) -> None:
        if error.code is None or error.code in COORDINATOR_MOVED:
            self._nodes.pop(self._name_of(key), None)

    def node(self, key: K) -> Node:
        """Who was found to coordinate a key."""
        return self._nodes[self._name_of(key)]


def refuse_controllers(route: Route[K], cluster: ClusterClient, what: str) -> None:
    """Raise if only controllers are known and they do not serve this."""
    if cluster.settings.controllers and not route.of_controllers:
        raise UnsupportedEndpointTypeError(
            f"{what} is not served by controllers", advice="set bootstrap.servers instead"
        )
