"""Finds the nodes of a cluster and calls them: the foundation of producer, consumer and admin.

Decided here: which node is asked (a node by id, any node, the controller, a coordinator), and what
becomes of the metadata that it returns. The parts: `connections.py` (one per node and lane),
`metadata_refresh.py` (when metadata is asked for), `coordinator_finder.py`. Invariants: a call
returns a response or raises a `KafkaError`; a node that throttles the client gets no request for as
long as it asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from moldau.client.bootstrap import Bootstrap
from moldau.client.connections import (
    LANE_COORDINATOR,
    LANE_DEFAULT,
    LANE_FETCH,
    Connections,
    node_transport,
)
from moldau.client.coordinator_finder import CoordinatorFinder
from moldau.client.deadline import Deadline
from moldau.client.environment import ENVIRONMENT
from moldau.client.errors import (
    AuthenticationError,
    DisconnectError,
    KafkaError,
    KafkaTimeoutError,
    NotKafkaError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.machine.metadata import EMPTY, ClusterMetadata
from moldau.client.metadata_refresh import MetadataRefresher
from moldau.client.network_settings import NetworkSettings
from moldau.client.outages import OutageLog, addresses
from moldau.client.topics import Node
from moldau.clock import Clock, pause
from moldau.peers.channel import (
    ChannelError,
    ConnectionObserver,
    NotConnected,
    RawResponse,
)
from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.peers.machine.peer_versions import PeerVersions
from moldau.peers.node_channel import NodeTransport
from moldau.wire.apis import API_BY_KEY, Api
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)

__all__ = [
    "LANE_COORDINATOR",
    "LANE_DEFAULT",
    "LANE_FETCH",
    "ClusterClient",
    "CoordinatorType",
    "api_of",
]

T = TypeVar("T")

_CONTROLLERS: Final = 2

_API_OF_REQUEST: dict[type[Message], Api] = {}


def api_of(request: Message) -> Api:
    """The API that a request belongs to."""
    kind = type(request)
    api = _API_OF_REQUEST.get(kind)
    if api is None:
        api = _API_OF_REQUEST[kind] = API_BY_KEY[cast(int, kind.TYPE)]
    return api


class ClusterClient:
    """See the module. Lives on one event loop; every method is called there."""

    def __init__(
        self,
        settings: NetworkSettings,
        *,
        clock: Clock | None = None,
        random: RandomSource | None = None,
        transport: NodeTransport | None = None,
        observer: ConnectionObserver | None = None,
    ) -> None:
        environment = ENVIRONMENT.get()
        self.settings = settings
        self.bootstrap = Bootstrap(settings)
        self.clock: Clock = clock or environment.clock()
        self.random: RandomSource = random or environment.random()
        self.backoff = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self.metadata: ClusterMetadata = EMPTY
        #: Called with each new picture; must not raise.
        self.on_metadata: list[Callable[[ClusterMetadata], None]] = []
        #: Called when none of the addresses is a Kafka broker's; must not raise.
        self.on_fatal: list[Callable[[KafkaError], None]] = []
        #: Topics to keep in the picture, all of them if None. The owner changes it.
        self.wanted_topics: set[str] | None = set()
        self.allow_auto_topic_creation = False
        self._connections = Connections(
            transport
            or node_transport(settings, clock=self.clock, random=self.random, observer=observer),
            self.clock,
        )
        self._coordinators = CoordinatorFinder(self.call_any, lambda: self._connections.closed)
        self._refresher = MetadataRefresher(
            settings,
            clock=self.clock,
            random=self.random,
            backoff=self.backoff,
            ask=self._ask_controllers if settings.controllers else self._ask_brokers,
            on_refreshed=self._on_refreshed,
            on_failed=self._on_refresh_failed,
            rebootstrap=self._rebootstrap,
        )
        self.outages = OutageLog(self.clock)

    # Calls.

    async def call(
        self,
        node: int | Node,
        request: Message,
        *,
        timeout_ms: int | None = None,
        max_version: int | None = None,
        lane: str = LANE_DEFAULT,
    ) -> Any:
        """The response of a node, by id or as it is; raises KafkaError, never retries."""
        where = self._node(node)
        await self._connections.await_unthrottled(where.id)
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            response = await self._connections.channel(where, lane).call(
                api_of(request).key, request, timeout_ms=max(1, limit_ms), max_version=max_version
            )
        except ChannelError as error:
            raise self._connections.as_error(error) from error
        self.outages.answered(where)
        self._connections.note_throttle(where.id, getattr(response, "throttle_time_ms", 0))
        return response

    async def call_raw(
        self,
        node: int | Node,
        request: Message,
        *,
        timeout_ms: int | None = None,
        max_version: int | None = None,
        lane: str = LANE_DEFAULT,
    ) -> RawResponse:
        """As `call`, with the response's bytes. Its throttle time is the caller's to note."""
        where = self._node(node)
        await self._connections.await_unthrottled(where.id)
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            response = await self._connections.channel(where, lane).call_raw(
                api_of(request).key, request, timeout_ms=max(1, limit_ms), max_version=max_version
            )
        except ChannelError as error:
            raise self._connections.as_error(error) from error
        self.outages.answered(where)
        return response

    def start_raw(
        self,
        node: int | Node,
        request: Message,
        *,
        timeout_ms: int,
        max_version: int | None = None,
        unanswered: bool = False,
        lane: str = LANE_DEFAULT,
    ) -> asyncio.Future[RawResponse]:
        """As `call_raw`, for who is called back when it is done: no task, no wait for a node that
        throttles (`throttled_ms`). Its error is a ChannelError: see `as_error`."""
        try:
            return self._connections.channel(self._node(node), lane).start_call(
                api_of(request).key,
                request,
                timeout_ms=max(1, timeout_ms),
                max_version=max_version,
                unanswered=unanswered,
            )
        except ChannelError as error:
            raise self._connections.as_error(error) from error

    def as_error(self, error: BaseException) -> KafkaError:
        """What a failed `start_raw` means."""
        if isinstance(error, ChannelError):
            return self._connections.as_error(error)
        return KafkaError(str(error))

    def throttled_ms(self, node_id: int) -> int:
        """For how long a node still wants to be left alone."""
        return self._connections.throttled_ms(node_id)

    def note_throttle(self, node_id: int, throttle_time_ms: int) -> None:
        """Leave a node alone for as long as it asked for in a response."""
        self._connections.note_throttle(node_id, throttle_time_ms)

    async def send_only(
        self, node: int | Node, request: Message, *, timeout_ms: int, lane: str = LANE_DEFAULT
    ) -> None:
        """Send what has no response (Produce with acks=0); returns when it has left."""
        where = self._node(node)
        try:
            await self._connections.channel(where, lane).send_only(
                api_of(request).key, request, timeout_ms=timeout_ms
            )
        except ChannelError as error:
            raise self._connections.as_error(error) from error

    async def versions(self, node: int | Node, *, timeout_ms: int | None = None) -> PeerVersions:
        """What a node serves."""
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            return await self._connections.channel(self._node(node), LANE_DEFAULT).versions(
                timeout_ms=limit_ms
            )
        except ChannelError as error:
            raise self._connections.as_error(error) from error

    def finalized_features(self) -> tuple[int, Mapping[str, int]]:
        """The newest that a connected node knows: its epoch, and levels by name."""
        return self._connections.finalized_features()

    async def call_any(
        self, request: Message, *, timeout_ms: int | None = None, max_version: int | None = None
    ) -> Any:
        """The response of the first node that can be reached, beginning at a random one."""
        failures: list[KafkaError] = []
        await self.bootstrap.resolve()
        for node in self._candidates():
            try:
                return await self.call(
                    node, request, timeout_ms=timeout_ms, max_version=max_version
                )
            except (AuthenticationError, NotKafkaError, DisconnectError) as error:
                failures.append(error)
        if (fatal := _fatal(failures)) is not None:
            raise fatal
        last = failures[-1] if failures else None
        where = addresses(self.metadata.nodes) or str(self.bootstrap)
        raise DisconnectError(
            f"no broker can be reached at {where}: {_reason(last)}",
            advice="is a broker running there?",
        ) from (last and last.__cause__)

    async def call_controller(
        self, request: Message, *, timeout_ms: int | None = None, max_version: int | None = None
    ) -> Any:
        """The response of the active controller, or of the broker that passes it on."""
        if self.metadata.controller is None:
            await self.refresh()
        node = self.metadata.controller
        if node is None:
            return await self.call_any(request, timeout_ms=timeout_ms, max_version=max_version)
        return await self.call(node, request, timeout_ms=timeout_ms, max_version=max_version)

    async def call_coordinator(
        self,
        kind: CoordinatorType,
        key: str,
        request: Message,
        *,
        timeout_ms: int | None = None,
        max_version: int | None = None,
        lane: str = LANE_COORDINATOR,
    ) -> Any:
        """The response of a coordinator. Errors inside the response that say it has moved are
        the caller's to notice: `forget_coordinator`, then try again."""
        node = await self.coordinator(kind, key)
        try:
            return await self.call(
                node, request, timeout_ms=timeout_ms, max_version=max_version, lane=lane
            )
        except DisconnectError:
            self.forget_coordinator(kind, key)
            raise

    async def retrying(
        self, attempt: Callable[[], Awaitable[T]], *, deadline: Deadline, what: str
    ) -> T:
        """The result of an attempt, tried again after a pause while its error is retriable."""
        failures = 0
        while True:
            try:
                return await attempt()
            except UnsupportedVersionError:
                raise
            except KafkaError as error:
                failures += 1
                if not error.retriable:
                    raise
                delay_ms = self.backoff.delay_ms(failures, self.random)
                if deadline.left_ms() <= delay_ms:
                    raise KafkaTimeoutError(
                        f"{what} was not done within {deadline.timeout_ms} ms: {error}"
                    ) from error
                if error.code is None or error.code.refresh_metadata:
                    self.request_refresh()
            await pause(self.clock, delay_ms)

    # Metadata.

    async def refresh(
        self, topics: Iterable[str] | None = None, *, deadline: Deadline | None = None
    ) -> ClusterMetadata:
        """A picture newer than the present one, with `topics` beside the wanted ones in it.

        Without a deadline one attempt is made. A topic that cannot be had is in `errors`.
        """
        if topics is not None and self.wanted_topics is not None:
            self.wanted_topics.update(topics)
        if deadline is None:
            return await self._refresher.refresh()
        return await self.retrying(self._refresher.refresh, deadline=deadline, what="Metadata")

    def request_refresh(self, *, at_once: bool = False) -> None:
        """Ask for a newer picture soon, and nobody waits for it.

        Not within `retry.backoff.ms` of the last one, unless `at_once`, which is for topics that
        are wanted for the first time.
        """
        self._refresher.request(at_once=at_once)

    @property
    def metadata_age_ms(self) -> int | None:
        """Since the last good refresh; None before the first."""
        return self._refresher.age_ms

    def apply_leader_hints(self, picture: ClusterMetadata) -> None:
        """Take over a picture made by `ClusterMetadata.with_leaders` from the present one."""
        if picture is not self.metadata:
            self._publish(picture)

    def _on_refreshed(self, picture: ClusterMetadata) -> None:
        self.outages.cluster_reached(picture.nodes)
        self._publish(picture)

    def _on_refresh_failed(self, error: KafkaError, failures: int) -> None:
        # A connection that breaks is no outage yet, one that cannot be made is. A consumer's poll
        # raises nothing when no broker is there: the log shows the reason.
        if isinstance(error.__cause__, NotConnected) or failures > 1:
            self.outages.cluster_failed(error.message)
        if isinstance(error, (NotKafkaError, AuthenticationError)):
            for listener in tuple(self.on_fatal):
                listener(error)

    async def _ask_brokers(self) -> ClusterMetadata:
        wanted = self.wanted_topics
        request = MetadataRequest(
            topics=None
            if wanted is None
            else [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(wanted)],
            allow_auto_topic_creation=self.allow_auto_topic_creation,
        )
        response: MetadataResponse = await self.call_any(request)
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._rebootstrap()
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, "Metadata")
        return self.metadata.updated(response, complete=True)

    async def _ask_controllers(self) -> ClusterMetadata:
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        response: DescribeClusterResponse = await self.call_any(request)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message)
        return self.metadata.with_controllers(response)

    def _publish(self, picture: ClusterMetadata) -> None:
        self.metadata = picture
        nodes = [*picture.nodes.values(), *self._coordinators.nodes()]
        self._connections.drop_unused({(node.host, node.port) for node in nodes})
        for listener in tuple(self.on_metadata):
            listener(picture)

    def _rebootstrap(self) -> None:
        """Go back to the bootstrap addresses."""
        if self.settings.metadata_recovery_strategy == "rebootstrap":
            self.metadata = self.metadata._replace(nodes={}, controller_id=-1)
            self._refresher.forget_outage()

    # Coordinators.

    async def coordinator(self, kind: CoordinatorType, key: str) -> Node:
        """Where a group, transaction or share partition is coordinated; asked for when unknown.

        Raises KafkaError, retriable when there is none yet.
        """
        return await self._coordinators.find(kind, key)

    def forget_coordinator(self, kind: CoordinatorType, key: str) -> None:
        self._coordinators.forget(kind, key)

    # Nodes.

    def _node(self, node: int | Node) -> Node:
        if isinstance(node, Node):
            return node
        found = self.metadata.nodes.get(node)
        if found is None:
            self.request_refresh()
            raise error_for(ErrorCode.BROKER_NOT_AVAILABLE, f"node {node} is not in the cluster")
        return found

    def _candidates(self) -> list[Node]:
        """Nodes to ask when any will do: the known ones, or those that were given at first."""
        known = list(self.metadata.nodes.values()) or self.bootstrap.nodes()
        start = self.random.randrange(len(known))
        ordered = known[start:] + known[:start]
        # Those that a connection exists to come first.
        return sorted(ordered, key=lambda node: not self._connections.is_connected(node))

    async def close(self) -> None:
        """Fail what waits and let go of all connections."""
        self._connections.close()
        await self._refresher.close()
        await self._coordinators.close()


def _fatal(failures: list[KafkaError]) -> KafkaError | None:
    """The failure that waiting does not help against: a node was rejected or rejects the client, or
    nothing that was reached is a broker."""
    rejected = [each for each in failures if isinstance(each, AuthenticationError)]
    if rejected:
        return rejected[-1]
    if failures and all(isinstance(each, NotKafkaError) for each in failures):
        return failures[-1]
    return None


def _reason(error: KafkaError | None) -> str:
    """Why a node could not be asked, without what it was to be asked."""
    if error is None:
        return "there is none"
    cause = error.__cause__
    return cause.reason if isinstance(cause, NotConnected) else error.message
