"""Finds the nodes of a cluster and calls them: what producer, consumer and admin stand on.

Decided here: whom to ask (a node by id, any node, the controller, a coordinator), when the picture
of the cluster is asked for again, and what a failed call becomes. What always holds: a call gives
a response or raises a `KafkaError`; there is one refresh of the metadata at a time, and no two
within `retry.backoff.ms`; a node that throttles us is left alone for as long as it asked.

Nodes are reached over lanes: one connection per node and lane. Brokers answer a connection's
requests one after the other, so what they may hold back (Fetch, JoinGroup) has lanes of its own.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from moldau.client.bootstrap import Bootstrap
from moldau.client.deadline import Deadline
from moldau.client.errors import (
    ClosedError,
    DisconnectError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.machine.coordinators import CoordinatorType
from moldau.client.machine.metadata import EMPTY, ClusterMetadata
from moldau.client.network_settings import NetworkSettings
from moldau.client.outages import OutageLog, addresses
from moldau.client.topics import Node
from moldau.clock import Alarm, Clock, LoopClock, pause
from moldau.peers.channel import (
    CallTimedOut,
    ChannelError,
    ConnectionObserver,
    NotConnected,
    RawResponse,
    UnsupportedVersion,
)
from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.peers.machine.peer_versions import PeerVersions
from moldau.peers.node_channel import ChannelSettings, NodeChannel, NodeTransport
from moldau.wire.apis import API_BY_KEY, Api
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

__all__ = ["ClusterClient", "CoordinatorType", "api_of"]

T = TypeVar("T")

LANE_DEFAULT: Final = ""
LANE_COORDINATOR: Final = "coordinator"
LANE_FETCH: Final = "fetch"
# FindCoordinator asks for several keys from this version on.
_BATCHED_FIND_COORDINATOR = 4
_BROKERS, _CONTROLLERS = 1, 2


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
        self.settings = settings
        self.bootstrap = Bootstrap(settings)
        self.clock: Clock = clock or LoopClock()
        self.random: RandomSource = random or random_module.Random()
        self.backoff = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self.metadata: ClusterMetadata = EMPTY
        #: Called with each new picture; must not raise.
        self.on_metadata: list[Callable[[ClusterMetadata], None]] = []
        #: Topics to keep in the picture, all of them if None. The owner changes it.
        self.wanted_topics: set[str] | None = set()
        self.allow_auto_topic_creation = False
        self._transport = transport or NodeTransport(
            client_id=settings.client_id,
            clock=self.clock,
            random=self.random,
            observer=observer,
            settings=ChannelSettings(
                reconnect_backoff_ms=settings.reconnect_backoff_ms,
                reconnect_backoff_max_ms=settings.reconnect_backoff_max_ms,
                socket_connection_setup_timeout_ms=settings.socket_connection_setup_timeout_ms,
                socket_connection_setup_timeout_max_ms=(
                    settings.socket_connection_setup_timeout_max_ms
                ),
                response_bytes_max=2**31 - 1,
                calls_in_flight_max=settings.calls_in_flight_max,
                send_buffer_bytes=settings.send_buffer_bytes,
                receive_buffer_bytes=settings.receive_buffer_bytes,
                connections_max_idle_ms=settings.connections_max_idle_ms,
            ),
        )
        # By address, so that a node that moved gets new ones. (host, port, lane)
        self._channels: dict[tuple[str, int, str], NodeChannel] = {}
        self._muted_until_ms: dict[int, int] = {}
        self._coordinators: dict[tuple[CoordinatorType, str], Node] = {}
        self._finding: dict[tuple[CoordinatorType, str], asyncio.Task[Node]] = {}
        self._refreshing: asyncio.Task[ClusterMetadata] | None = None
        self._refreshed_ms: int | None = None
        self._refresh_alarm: Alarm | None = None
        self._refresh_failures = 0
        self._unreachable_since_ms: int | None = None
        self.outages = OutageLog(self.clock)
        self._closed = False

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
        await self._await_unmuted(where.id)
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            response = await self._channel(where, lane).call(
                api_of(request).key, request, timeout_ms=max(1, limit_ms), max_version=max_version
            )
        except ChannelError as error:
            raise self._failed(error) from error
        self.outages.answered(where)
        self._note_throttle(where.id, getattr(response, "throttle_time_ms", 0))
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
        await self._await_unmuted(where.id)
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            response = await self._channel(where, lane).call_raw(
                api_of(request).key, request, timeout_ms=max(1, limit_ms), max_version=max_version
            )
        except ChannelError as error:
            raise self._failed(error) from error
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
            return self._channel(self._node(node), lane).start_call(
                api_of(request).key,
                request,
                timeout_ms=max(1, timeout_ms),
                max_version=max_version,
                unanswered=unanswered,
            )
        except ChannelError as error:
            raise self._failed(error) from error

    def as_error(self, error: BaseException) -> KafkaError:
        """What a failed `start_raw` means."""
        return self._failed(error) if isinstance(error, ChannelError) else KafkaError(str(error))

    def throttled_ms(self, node_id: int) -> int:
        """For how long a node still wants to be left alone."""
        until_ms = self._muted_until_ms.get(node_id)
        return 0 if until_ms is None else max(0, until_ms - self.clock.elapsed_ms())

    async def send_only(
        self, node: int | Node, request: Message, *, timeout_ms: int, lane: str = LANE_DEFAULT
    ) -> None:
        """Send what has no response (Produce with acks=0); returns when it has left."""
        where = self._node(node)
        try:
            await self._channel(where, lane).send_only(
                api_of(request).key, request, timeout_ms=timeout_ms
            )
        except ChannelError as error:
            raise self._failed(error) from error

    async def versions(self, node: int | Node, *, timeout_ms: int | None = None) -> PeerVersions:
        """What a node serves."""
        limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            return await self._channel(self._node(node), LANE_DEFAULT).versions(timeout_ms=limit_ms)
        except ChannelError as error:
            raise self._failed(error) from error

    def finalized_features(self) -> tuple[int, Mapping[str, int]]:
        """The newest that a connected node knows: its epoch, and levels by name."""
        best: tuple[int, Mapping[str, int]] = (-1, {})
        for channel in self._channels.values():
            known = channel.known_versions
            if known is not None and known.finalized_features_epoch > best[0]:
                best = (known.finalized_features_epoch, known.finalized_features)
        return best

    async def call_any(
        self, request: Message, *, timeout_ms: int | None = None, max_version: int | None = None
    ) -> Any:
        """The response of the first node that can be reached, beginning at a random one."""
        last: KafkaError | None = None
        await self.bootstrap.resolve()
        for node in self._candidates():
            try:
                return await self.call(
                    node, request, timeout_ms=timeout_ms, max_version=max_version
                )
            except DisconnectError as error:
                last = error
        where = addresses(self.metadata.nodes) or str(self.bootstrap)
        raise DisconnectError(
            f"no broker can be reached at {where}: {_reason(last)}",
            advice="is one running there?",
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
            return await self._shared_refresh()
        return await self.retrying(self._shared_refresh, deadline=deadline, what="Metadata")

    def request_refresh(self, *, at_once: bool = False) -> None:
        """Ask for a newer picture soon, and nobody waits for it.

        Not within `retry.backoff.ms` of the last one, unless `at_once`, which is for topics that
        are wanted for the first time.
        """
        if self._closed or self._refreshing is not None:
            return
        age_ms = self.metadata_age_ms
        if not at_once and age_ms is not None and age_ms < self.settings.retry_backoff_ms:
            if self._refresh_alarm is None:
                delay_ms = self.settings.retry_backoff_ms - age_ms
                self._refresh_alarm = self.clock.call_later(delay_ms, self._on_refresh_alarm)
            return
        task = self._start_refresh()
        # Whoever wants the picture looks at `metadata`; the failure is counted in _refresh.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _on_refresh_alarm(self) -> None:
        self._refresh_alarm = None
        self.request_refresh(at_once=True)

    @property
    def metadata_age_ms(self) -> int | None:
        """Since the last good refresh; None before the first."""
        if self._refreshed_ms is None:
            return None
        return self.clock.elapsed_ms() - self._refreshed_ms

    def apply_leader_hints(self, picture: ClusterMetadata) -> None:
        """Take over a picture made by `ClusterMetadata.with_leaders` from the present one."""
        if picture is not self.metadata:
            self._publish(picture)

    async def _shared_refresh(self) -> ClusterMetadata:
        # One that is under way may not have asked for what is wanted now.
        if self._refreshing is not None:
            with suppress(KafkaError):
                await self._shared(self._refreshing)
        return await self._shared(self._refreshing or self._start_refresh())

    async def _shared(self, task: asyncio.Task[T]) -> T:
        """The result of a task that others wait for too; it ends with the client."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._closed and task.cancelled():
                raise ClosedError("the client was closed") from None
            raise

    def _start_refresh(self) -> asyncio.Task[ClusterMetadata]:
        if self._closed:
            raise ClosedError("the client is closed")
        task = asyncio.get_running_loop().create_task(self._refresh())
        self._refreshing = task
        task.add_done_callback(self._on_refreshed)
        return task

    def _on_refreshed(self, task: asyncio.Task[ClusterMetadata]) -> None:
        self._refreshing = None

    async def _refresh(self) -> ClusterMetadata:
        if self._refresh_failures:
            await pause(self.clock, self.backoff.delay_ms(self._refresh_failures, self.random))
        try:
            if self.settings.controllers:
                picture = await self._ask_controllers()
            else:
                picture = await self._ask_brokers()
        except KafkaError as error:
            self._refresh_failures += 1
            self._note_unreachable(error)
            raise
        self._refresh_failures = 0
        self._unreachable_since_ms = None
        self._refreshed_ms = self.clock.elapsed_ms()
        self.outages.cluster_reached(picture.nodes)
        self._publish(picture)
        return picture

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
        nodes = {
            each.broker_id: Node(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
            for each in response.brokers
        }
        return self.metadata._replace(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes=nodes,
            version=self.metadata.version + 1,
        )

    def _publish(self, picture: ClusterMetadata) -> None:
        self.metadata = picture
        self._drop_unused_channels(picture)
        for listener in tuple(self.on_metadata):
            listener(picture)

    def _note_unreachable(self, error: KafkaError) -> None:
        """Go back to the bootstrap addresses once no known node was reachable for a while."""
        now_ms = self.clock.elapsed_ms()
        # A connection that breaks is no outage yet, one that cannot be made is. A consumer's poll
        # raises nothing when nobody is there: this is how one learns why.
        if isinstance(error.__cause__, NotConnected) or self._refresh_failures > 1:
            self.outages.cluster_failed(error.message)
        if self._unreachable_since_ms is None:
            self._unreachable_since_ms = now_ms
        waited_ms = now_ms - self._unreachable_since_ms
        if waited_ms >= self.settings.metadata_recovery_rebootstrap_trigger_ms:
            self._rebootstrap()

    def _rebootstrap(self) -> None:
        if self.settings.metadata_recovery_strategy == "rebootstrap":
            self.metadata = self.metadata._replace(nodes={}, controller_id=-1)
            self._unreachable_since_ms = None

    # Coordinators.

    async def coordinator(self, kind: CoordinatorType, key: str) -> Node:
        """Where a group, transaction or share partition is coordinated; asked for when unknown.

        Raises KafkaError, retriable when there is none yet.
        """
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        task = self._finding.get((kind, key))
        if task is None:
            task = asyncio.get_running_loop().create_task(self._find_coordinator(kind, key))
            self._finding[kind, key] = task
            task.add_done_callback(lambda done: self._finding.pop((kind, key), None))
        node = await self._shared(task)
        self._coordinators[kind, key] = node
        return node

    def forget_coordinator(self, kind: CoordinatorType, key: str) -> None:
        self._coordinators.pop((kind, key), None)

    async def _find_coordinator(self, kind: CoordinatorType, key: str) -> Node:
        try:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            response: FindCoordinatorResponse = await self.call_any(request)
        except UnsupportedVersionError:
            request = FindCoordinatorRequest(key_type=kind, key=key)
            response = await self.call_any(request, max_version=_BATCHED_FIND_COORDINATOR - 1)
        found: Any = response.coordinators[0] if response.coordinators else response
        if found.error_code != ErrorCode.NONE:
            raise error_for(found.error_code, found.error_message)
        return Node(found.node_id, found.host, found.port)

    # Connections.

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
        return sorted(ordered, key=lambda node: not self._is_connected(node))

    def _is_connected(self, node: Node) -> bool:
        channel = self._channels.get((node.host, node.port, LANE_DEFAULT))
        return channel is not None and channel.connected

    def _channel(self, node: Node, lane: str) -> NodeChannel:
        if self._closed:
            raise ClosedError("the client is closed")
        where = (node.host, node.port, lane)
        channel = self._channels.get(where)
        if channel is None:
            channel = self._transport.channel(node.id, node.host, node.port, "PLAINTEXT")
            self._channels[where] = channel
        return channel

    def _drop_unused_channels(self, picture: ClusterMetadata) -> None:
        used = {(node.host, node.port) for node in picture.nodes.values()}
        used.update((node.host, node.port) for node in self._coordinators.values())
        for where in [where for where in self._channels if where[:2] not in used]:
            if self._channels[where].idle:
                self._channels.pop(where).close()

    def _failed(self, error: ChannelError) -> KafkaError:
        if isinstance(error, UnsupportedVersion):
            return UnsupportedVersionError(str(error))
        if isinstance(error, CallTimedOut):
            return error_for(ErrorCode.REQUEST_TIMED_OUT, str(error))
        if self._closed:
            return ClosedError("the client was closed")
        if isinstance(error, NotConnected):
            return DisconnectError(f"cannot connect to {error.peer}: {error.reason}")
        return DisconnectError(str(error))

    def note_throttle(self, node_id: int, throttle_time_ms: int) -> None:
        """Leave a node alone for as long as it asked for in a response."""
        self._note_throttle(node_id, throttle_time_ms)

    def _note_throttle(self, node_id: int, throttle_time_ms: int) -> None:
        if throttle_time_ms > 0:
            self._muted_until_ms[node_id] = self.clock.elapsed_ms() + throttle_time_ms

    async def _await_unmuted(self, node_id: int) -> None:
        until_ms = self._muted_until_ms.get(node_id)
        if until_ms is not None:
            delay_ms = until_ms - self.clock.elapsed_ms()
            if delay_ms > 0:
                await pause(self.clock, delay_ms)
            if self._muted_until_ms.get(node_id) == until_ms:
                del self._muted_until_ms[node_id]

    async def close(self) -> None:
        """Fail what waits and let go of all connections."""
        self._closed = True
        if self._refresh_alarm is not None:
            self._refresh_alarm.cancel()
        tasks = [*self._finding.values()]
        if self._refreshing is not None:
            tasks.append(cast(Any, self._refreshing))
        for task in tasks:
            task.cancel()
        self._transport.close()
        await asyncio.gather(*tasks, return_exceptions=True)


def _reason(error: KafkaError | None) -> str:
    """Why a node could not be asked, without what it was to be asked."""
    if error is None:
        return "there is none"
    cause = error.__cause__
    return cause.reason if isinstance(cause, NotConnected) else error.message
