"""Metadata shells of several nodes in one process: virtual time, a network of calls, real files.

Nodes 1 to 3 are controllers, those from 11 on brokers only. A node is stopped in order, killed (its
process does nothing more from one moment to the next) or cut off from others.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.log.background import InlineBackground
from moldau.broker.log.disk import OsDisk
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.metadata.machine.broker_lifecycle import process_heartbeat
from moldau.broker.metadata.machine.brokers import register_broker
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.topics import create_topics, delete_topics
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.raft.machine.voters import ReplicaKey
from moldau.broker.raft.service import RaftService
from moldau.peers.channel import ChannelError
from moldau.sim.loop import VirtualLoop
from moldau.sim.process import PROCESS, Process
from moldau.wire.apis import ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AddRaftVoterRequest,
    ApiVersionsResponse,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    RemoveRaftVoterRequest,
)
from moldau.wire.uuids import uuid_to_text

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
LISTENER = "CONTROLLER"
LATENCY_S = 0.001
START_MS = 1_700_000_000_000
FIRST_BROKER_ID = 11


class LoopTime:
    """The virtual loop's time."""

    def now_ms(self) -> int:
        return START_MS + self.elapsed_ms()

    def elapsed_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)


class Channel:
    def __init__(self, quorum: Quorum, caller_id: int, port: int) -> None:
        self._quorum = quorum
        self._caller_id = caller_id
        self._callee_id = port

    async def call(
        self, key: ApiKey, request: Message, *, timeout_ms: int, max_version: int | None = None
    ) -> Message:
        version = type(request).HIGHEST_VERSION
        message = decode(type(request), version, encode(request, version))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                response = await self._deliver(key, message)
        except TimeoutError as error:
            raise ChannelError(f"no answer from {self._callee_id}") from error
        return decode(type(response), version, encode(response, version))

    async def _deliver(self, key: ApiKey, message: Any) -> Message:
        quorum = self._quorum
        await asyncio.sleep(LATENCY_S)
        node = quorum.nodes.get(self._callee_id)
        if node is None or not node.is_up:
            raise ChannelError(f"node {self._callee_id} is down")
        if not quorum.connected(self._caller_id, self._callee_id):
            await asyncio.get_running_loop().create_future()
        # The peer's work is its own process's.
        served = asyncio.get_running_loop().create_task(
            serve(node.shell.service, key, message), context=node.process.context()
        )
        # If the peer dies nothing comes back, not even that it was cancelled.
        await asyncio.wait({served})
        response = served.result()
        await asyncio.sleep(LATENCY_S)
        if not quorum.connected(self._callee_id, self._caller_id):
            await asyncio.get_running_loop().create_future()
        return response

    async def call_raw(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("the quorum's calls are small")

    def close(self) -> None:
        """There is no connection."""


async def serve(service: RaftService, key: ApiKey, message: Any) -> Message:
    match key:
        case ApiKey.VOTE:
            return await service.vote(message, LISTENER)
        case ApiKey.BEGIN_QUORUM_EPOCH:
            return await service.begin_quorum_epoch(message, LISTENER)
        case ApiKey.END_QUORUM_EPOCH:
            return await service.end_quorum_epoch(message, LISTENER)
        case ApiKey.FETCH:
            return await service.fetch(message, LISTENER)
        case ApiKey.FETCH_SNAPSHOT:
            return await service.fetch_snapshot(message, LISTENER)
        case ApiKey.UPDATE_RAFT_VOTER:
            return await service.update_voter(message, LISTENER)
        case ApiKey.ADD_RAFT_VOTER:
            return await service.add_voter(message)
        case ApiKey.REMOVE_RAFT_VOTER:
            return await service.remove_voter(message)
        case ApiKey.API_VERSIONS:
            feature = ApiVersionsResponse.SupportedFeatureKey(
                name="kraft.version", min_version=0, max_version=1
            )
            return ApiVersionsResponse(supported_features=[feature])
        case _:
            raise AssertionError(f"nobody serves {key}")


class Ways:
    """The transport of one node."""

    def __init__(self, quorum: Quorum, node_id: int) -> None:
        self._quorum = quorum
        self._node_id = node_id

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Channel:
        assert listener_name == LISTENER
        return Channel(self._quorum, self._node_id, port)


class Node:
    """One node's folder, and the shell that runs on it at the moment."""

    def __init__(self, quorum: Quorum, node_id: int, config: BrokerConfig) -> None:
        self.quorum = quorum
        self.node_id = node_id
        self.config = config
        self.directory_id = UUID(int=node_id * 1000 + 4, version=4)
        self.random = random.Random(node_id)
        self.process = Process(f"node{node_id}")
        self.process.die()
        self.shell: MetadataShell
        self.deltas: list[MetadataDelta] = []
        self.failures: list[BaseException] = []
        self.cluster_id = CLUSTER_ID
        self.is_up = False

    async def start(self) -> MetadataShell:
        assert not self.process.alive
        self.process = Process(f"node{self.node_id}")
        end = Endpoint(name=LISTENER, host="localhost", port=self.node_id)
        self.deltas = []
        self.shell = shell = MetadataShell(
            self.config,
            cluster_id=self.cluster_id,
            directory_id=self.directory_id,
            rules=self.quorum.rules,
            random=self.random,
            disk=OsDisk(),
            background=InlineBackground(),
            clock=LoopTime(),
            transport=Ways(self.quorum, self.node_id),
            controller_endpoints=(end,) if self.node_id < FIRST_BROKER_ID else (),
            on_failure=self.failures.append,
        )
        shell.subscribe(lambda delta, image: self.deltas.append(delta))
        await self.within(shell.start())
        self.is_up = True
        return shell

    async def within(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do it in this node's process."""
        return await asyncio.get_running_loop().create_task(work, context=self.process.context())

    def kill(self) -> None:
        self.is_up = False
        self.process.die()

    async def stop(self) -> None:
        await self.within(self.shell.stop())
        self.kill()

    @property
    def replica(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)


class Quorum:
    def __init__(self, folder: Path, rules: Any, *, voters: int = 3, **props: str) -> None:
        """`props` replace settings of all nodes, with '_' for '.'."""
        self.folder = folder
        self.rules = rules
        self.voter_ids = range(1, voters + 1)
        self._props = {name.replace("_", "."): value for name, value in props.items()}
        self.nodes: dict[int, Node] = {}
        self._cut: set[tuple[int, int]] = set()
        self.apart: set[int] = set()

    # Nodes ------------------------------------------------------------------------------

    def add(self, node_id: int, *, initial: bool = True, **props: str) -> Node:
        """Format a folder; `initial` says that it knows the first voters."""
        path = self.folder / f"node{node_id}"
        broker_only = node_id >= FIRST_BROKER_ID
        settings = {
            "process.roles": "broker" if broker_only else "controller",
            "node.id": str(node_id),
            "listeners": f"{'PLAINTEXT' if broker_only else LISTENER}://localhost:{node_id}",
            "controller.listener.names": LISTENER,
            "controller.quorum.bootstrap.servers": ",".join(
                f"localhost:{each}" for each in self.voter_ids
            ),
            "log.dirs": str(path),
        }
        settings |= self._props | {name.replace("_", "."): v for name, v in props.items()}
        if "controller.quorum.voters" in settings:
            del settings["controller.quorum.bootstrap.servers"]
        config = BrokerConfig.from_properties(settings)
        node = self.nodes[node_id] = Node(self, node_id, config)
        dynamic = not config.quorum.controller_quorum_voters
        named = initial and dynamic and not broker_only
        format_storage(
            config,
            CLUSTER_ID,
            initial_controllers=self._initial_controllers() if named else None,
            no_initial_controllers=not named and dynamic and not broker_only,
            random_uuid=lambda: node.directory_id,
            disk=OsDisk(),
            now_ms=START_MS,
        )
        return node

    def _initial_controllers(self) -> str:
        return ",".join(
            f"{each}@localhost:{each}:{uuid_to_text(UUID(int=each * 1000 + 4, version=4))}"
            for each in self.voter_ids
        )

    async def start(self) -> MetadataShell:
        """Start the first voters; the active controller's shell."""
        for node_id in self.voter_ids:
            await self.add(node_id).start()
        return await self.active()

    async def active(self) -> MetadataShell:
        """The shell of the one active controller that everybody who runs knows of."""

        def found() -> MetadataShell | None:
            running = [n for n in self.nodes.values() if n.is_up and n.node_id not in self.apart]
            active = [node.shell for node in running if node.shell.is_active]
            known = {node.shell.controller_node() for node in running}
            if len(active) == 1 and known == {active[0].controller_node()}:
                return active[0]
            return None

        shell: MetadataShell = await self.until(found)
        return shell

    async def stop(self) -> None:
        for node in self.nodes.values():
            assert node.failures == []
            if node.is_up:
                await node.stop()

    # Waiting ----------------------------------------------------------------------------

    async def until(self, found: Callable[[], Any], *, within_s: float = 30.0) -> Any:
        """What `found` gives as soon as it gives anything."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not (value := found()):
            assert loop.time() < deadline, "it never became true"
            await asyncio.sleep(0.002)
        return value

    async def until_equal(self) -> MetadataImage:
        """Every running node has the active controller's image; that image."""
        active = await self.active()

        def equal() -> bool:
            shells = [node.shell for node in self.nodes.values() if node.is_up]
            return all(
                shell.offset == active.raft.log.end_offset - 1 and shell.image == active.image
                for shell in shells
            )

        await self.until(equal)
        return active.image

    # The network ------------------------------------------------------------------------

    def connected(self, sender_id: int, receiver_id: int) -> bool:
        return (sender_id, receiver_id) not in self._cut

    def isolate(self, node_id: int) -> None:
        self.apart.add(node_id)
        for other in self.nodes:
            self._cut |= {(node_id, other), (other, node_id)}

    def heal(self) -> None:
        self._cut.clear()
        self.apart.clear()

    # Requests ---------------------------------------------------------------------------

    async def run(self, decide: Callable[..., Any], *args: Any, **options: Any) -> Any:
        active = await self.active()
        return await self.run_on(active.raft.machine.local.id, decide, *args, **options)

    async def run_on(
        self, node_id: int, decide: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        node = self.nodes[node_id]
        return await node.within(node.shell.run(decide, *args, **options))

    def addition(self, node_id: int) -> AddRaftVoterRequest:
        listener = AddRaftVoterRequest.Listener(name=LISTENER, host="localhost", port=node_id)
        return AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=1000,
            voter_id=node_id,
            voter_directory_id=self.nodes[node_id].directory_id,
            listeners=[listener],
        )

    def removal(self, node_id: int) -> RemoveRaftVoterRequest:
        return RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            voter_id=node_id,
            voter_directory_id=self.nodes[node_id].directory_id,
        )


def create(*names: str, partitions: int = 1) -> Callable[[Any], Any]:
    """Topics whose one replica is on broker 11, which has to be registered and alive."""
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1
            )
            for name in names
        ]
    )
    return lambda controller: create_topics(controller, request)


def delete(name: str) -> Callable[[Any], Any]:
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)])
    return lambda controller: delete_topics(controller, request)


def registration(broker_id: int, incarnation: int = 1) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=UUID(int=broker_id * 100 + incarnation),
        listeners=[
            BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="localhost", port=broker_id)
        ],
        features=[
            BrokerRegistrationRequest.Feature(
                name=name,
                min_supported_version=levels.min_version,
                max_supported_version=levels.max_version,
            )
            for name, levels in SUPPORTED_FEATURES.items()
        ],
        log_dirs=[UUID(int=broker_id * 1000, version=4)],
    )


def now_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1000)


async def register(quorum: Quorum, broker_id: int = 11, incarnation: int = 1) -> int:
    """Register a broker and unfence it; its epoch."""
    response = await quorum.run(
        register_broker, registration(broker_id, incarnation), now_ms=now_ms()
    )
    await beat(quorum, broker_id, response.broker_epoch)
    return int(response.broker_epoch)


async def beat(quorum: Quorum, broker_id: int, broker_epoch: int) -> Any:
    active = await quorum.active()
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        current_metadata_offset=active.raft.log.end_offset,
        want_fence=False,
        want_shut_down=False,
    )
    return await quorum.run(process_heartbeat, request, now_ms=now_ms())


def play(main: Coroutine[Any, Any, None]) -> None:
    """Run a scenario in virtual time; no callback may have raised."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        loop.run(main)
    finally:
        asyncio.set_event_loop(None)
    assert PROCESS.get() is None
    assert loop.errors == []
