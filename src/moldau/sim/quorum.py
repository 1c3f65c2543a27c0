"""A metadata quorum through one seed: real quorum nodes, logs, snapshots and RPCs, nothing above.

Three nodes, or five, or three and two observers; a static quorum or one whose voters change.
Writers append on nodes that lead. Every node collects the committed values, takes snapshots of them
and removes the log before. The power of all nodes may fail at any time, because everything that the
quorum commits is synced (`quorum_watch.py` has the invariants). In the end all nodes have the same
values, and everything that was acknowledged is among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.handlers.api_versions import ApiVersionsHandler, FeatureLevels
from moldau.broker.handlers.begin_quorum_epoch import BeginQuorumEpochHandler
from moldau.broker.handlers.end_quorum_epoch import EndQuorumEpochHandler
from moldau.broker.handlers.fetch_snapshot import FetchSnapshotHandler
from moldau.broker.handlers.update_raft_voter import UpdateRaftVoterHandler
from moldau.broker.handlers.vote import VoteHandler
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.metadata.machine.features import KRAFT_VERSION
from moldau.broker.network.context import RequestContext
from moldau.broker.network.dispatcher import Dispatcher, Route
from moldau.broker.raft.log import RaftLog, RaftLogConfig
from moldau.broker.raft.machine.batches import MetadataBatch, encode_records
from moldau.broker.raft.machine.rpcs import Peer
from moldau.broker.raft.machine.settings import QuorumSettings
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.node import RaftNode
from moldau.broker.raft.service import RaftService
from moldau.broker.raft.snapshots import Snapshot, SnapshotId, snapshot_parts
from moldau.sim.background import SimBackground
from moldau.sim.disk import SimDisk, Stopped
from moldau.sim.fleet_faults import WEIGHTS, FleetFaults, PowerRule
from moldau.sim.listening import SimNetwork
from moldau.sim.machine import Fleet, Machine
from moldau.sim.process import Process
from moldau.sim.quorum_watch import QuorumWatch, StoredBatches
from moldau.sim.world import Invariant, Violation, World, require
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AddRaftVoterRequest,
    FeatureLevelRecord,
    FetchRequest,
    FetchResponse,
    RemoveRaftVoterRequest,
)
from moldau.wire.uuids import uuid_to_text

T = TypeVar("T")

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
LISTENER = "CONTROLLER"
PORT = 9093
FOLDER = "/data"
METADATA_VERSION = 29
SETTLE_S = 90.0
CHECK_EVERY_S = 0.5

FAULTS = {**WEIGHTS, "power failure of all": 6, "kill of all": 3}


class QuorumNode(Machine):
    """A machine with nothing but a node of the quorum on it."""

    def __init__(self, quorum: Quorum, node_id: int) -> None:
        super().__init__(quorum, node_id)
        self._quorum = quorum
        self.key = ReplicaKey(node_id, quorum.new_uuid())
        self.endpoint = VoterEndpoint(name=LISTENER, host=self.host, port=PORT)
        self.running_program: QuorumProgram | None = None

    @property
    def program(self) -> QuorumProgram | None:
        return self.running_program if self.running else None

    async def boot(
        self, process: Process, disk: SimDisk, background: SimBackground
    ) -> QuorumProgram:
        quorum = self._quorum
        log = RaftLog.open(
            FOLDER,
            disk=disk,
            background=background,
            config=quorum.log_config,
            now_ms=self.clock.now_ms(),
        )
        program = QuorumProgram(self, log, Random(self.random.random()))
        static = quorum.static_voters
        transport = self.transport()
        raft = RaftNode(
            log,
            local=Voter(key=self.key, endpoints=(self.endpoint,)),
            static_voters=static,
            newest_snapshot=log.latest_snapshot(),
            settings=QuorumSettings(
                listener_name=LISTENER,
                fetch_snapshot_max_bytes=300,
                bootstrap=tuple(
                    Peer(id=-2 - number, host=each.host, port=PORT)
                    for number, each in enumerate(quorum.machines)
                    if each is not self
                ),
            ),
            cluster_id=CLUSTER_ID,
            transport=transport,
            clock=self.clock,
            random=self.random,
            listener=program,
        )
        network = SimNetwork(
            self._fleet.net, process, _config(self.node_id).listeners, _config(self.node_id).network
        )
        await program.start(raft, network)
        self.running_program = program
        return program


class QuorumProgram:
    """The quorum's listener: keeps what is committed, and takes snapshots of it."""

    def __init__(self, machine: QuorumNode, log: RaftLog, random: Random) -> None:
        self._machine = machine
        self._log = log
        self._random = random
        self.raft: RaftNode
        self.service: RaftService
        self._network: SimNetwork
        self._dispatcher: Dispatcher
        self.values: list[str] = []
        self._committed = SnapshotId(0, 0)
        self._snapshot: asyncio.Task[None] | None = None
        self.waiting: dict[str, asyncio.Future[bool]] = {}

    async def start(self, raft: RaftNode, network: SimNetwork) -> None:
        self.raft, self.service, self._network = raft, RaftService(raft), network
        found = self._log.latest_snapshot()
        if found is not None:
            self.on_snapshot(*found)
        await network.bind()
        raft.start()
        self._dispatcher = Dispatcher(_routes(self.service))
        await network.start(self._dispatcher)

    async def stop(self) -> None:
        await self.raft.stop()
        await self._network.stop(1.0)
        await self._dispatcher.stop()
        if self._snapshot is not None:
            await asyncio.gather(self._snapshot, return_exceptions=True)
        self._log.close()

    # RaftListener.

    def on_committed(self, batches: Sequence[MetadataBatch]) -> None:
        for batch in batches:
            for record in batch.records:
                self.values.append(record.name)
                waiting = self.waiting.pop(record.name, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(True)
            self._committed = SnapshotId(batch.next_offset, batch.epoch)
        if self._random.random() < 0.03 and self._snapshot is None:
            self._snapshot = asyncio.get_running_loop().create_task(self._take_snapshot())

    def on_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        self.values = [record.name for record in snapshot.records]
        self._committed = snapshot_id

    def on_leader(self, epoch: int, leader_id: int) -> None:
        self._machine.note(f"epoch {epoch}: leader {leader_id}")

    def on_step_down(self, epoch: int) -> None:
        waiting, self.waiting = self.waiting, {}
        for each in waiting.values():
            if not each.done():
                each.set_result(False)

    def on_failure(self, error: BaseException) -> None:
        self._machine.on_failure(error)

    async def _take_snapshot(self) -> None:
        raft, snapshot_id = self.raft, self._committed
        try:
            if snapshot_id in self._log.snapshots or snapshot_id.end_offset <= 0:
                return
            version, voters = raft.machine.history.at(snapshot_id.end_offset)
            records = [FeatureLevelRecord(name=name, feature_level=1) for name in self.values]
            writer = self._log.start_snapshot(snapshot_id)
            now_ms = self._machine.clock.now_ms()
            for part in snapshot_parts(
                records,
                epoch=snapshot_id.epoch,
                now_ms=now_ms,
                metadata_version=METADATA_VERSION,
                last_contained_log_timestamp=now_ms,
                kraft_version=version,
                voters=voters if version > 0 else None,
            ):
                writer.append(part)
                await asyncio.sleep(0)
            await self._log.finish_snapshot(writer, snapshot_id)
            self._log.clean(self._machine.clock.now_ms())
        finally:
            self._snapshot = None

    # What writers ask.

    async def write(self, name: str) -> bool | None:
        """Whether it was committed; None if that is not known."""
        raft = self.raft
        data = encode_records(
            [FeatureLevelRecord(name=name, feature_level=1)],
            base_offset=raft.log.end_offset,
            epoch=raft.epoch,
            now_ms=self._machine.clock.now_ms(),
            metadata_version=METADATA_VERSION,
        )
        committed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.waiting[name] = committed
        try:
            raft.append(data, epoch=raft.epoch)
        except ApiError as error:
            del self.waiting[name]
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
            return False
        return True if await committed else None


class Quorum(Fleet):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.straggling, self.straggle_s = 0.02, 0.5
        random = world.random
        self._uuids = Random(f"{world.seed}/uuids")
        voters = random.choice((3, 3, 3, 5))
        observers = random.choice((0, 0, 1, 2)) if voters == 3 else 0
        self.dynamic = random.random() < 0.6
        self.log_config = RaftLogConfig(
            log_segment_bytes=random.choice((600, 4000, 1 << 20)),
            max_retention_bytes=random.choice((1500, 6000, 1 << 30)),
        )
        self.nodes = [QuorumNode(self, number + 1) for number in range(voters + observers)]
        self.first_voters = VoterSet.of(
            Voter(
                key=node.key if self.dynamic else ReplicaKey(node.node_id),
                endpoints=(node.endpoint,),
            )
            for node in self.nodes[:voters]
        )

    @property
    def static_voters(self) -> VoterSet:
        return VoterSet() if self.dynamic else self.first_voters

    @property
    def machines(self) -> Sequence[QuorumNode]:
        return self.nodes

    def new_uuid(self) -> UUID:
        return UUID(bytes=self._uuids.randbytes(16), version=4)

    def format(self) -> None:
        voters = ",".join(
            f"{voter.key.id}@{voter.endpoints[0].host}:{PORT}:{uuid_to_text(voter.key.directory_id)}"
            for voter in self.first_voters.voters.values()
        )
        for node in self.nodes:
            is_voter = node.node_id in self.first_voters.voters
            if not is_voter and not self.dynamic:
                continue
            format_storage(
                _config(node.node_id, "" if self.dynamic else _addresses(self.first_voters)),
                CLUSTER_ID,
                initial_controllers=voters if self.dynamic and is_voter else None,
                no_initial_controllers=self.dynamic and not is_voter,
                random_uuid=lambda node=node: node.key.directory_id,  # type: ignore[misc]
                disk=node.platter.start(),
                now_ms=node.clock.now_ms(),
            )

    def leader(self) -> QuorumProgram | None:
        """The leader of the newest epoch, if it runs."""
        leading = [
            program
            for node in self.nodes
            if (program := node.program) is not None and program.raft.is_leader
        ]
        return max(leading, key=lambda program: program.raft.epoch, default=None)


def _addresses(voters: VoterSet) -> str:
    return ",".join(f"{i}@{each.endpoints[0].host}:{PORT}" for i, each in voters.voters.items())


@lru_cache(maxsize=64)
def _config(node_id: int, static_voters: str = "") -> BrokerConfig:
    quorum = (
        {"controller.quorum.voters": static_voters}
        if static_voters
        else {"controller.quorum.bootstrap.servers": f"node1:{PORT}"}
    )
    return BrokerConfig.from_properties(
        {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"{LISTENER}://node{node_id}:{PORT}",
            "controller.listener.names": LISTENER,
            "log.dirs": FOLDER,
            **quorum,
        }
    )


def _routes(service: RaftService) -> dict[ApiKey, Route]:
    routes = {
        ApiKey.VOTE: Route(VoteHandler(service).handle),
        ApiKey.BEGIN_QUORUM_EPOCH: Route(BeginQuorumEpochHandler(service).handle),
        ApiKey.END_QUORUM_EPOCH: Route(EndQuorumEpochHandler(service).handle),
        ApiKey.FETCH_SNAPSHOT: Route(FetchSnapshotHandler(service).handle),
        ApiKey.UPDATE_RAFT_VOTER: Route(UpdateRaftVoterHandler(service).handle),
    }

    async def fetch(context: RequestContext, request: FetchRequest) -> FetchResponse:
        return await service.fetch(request, context.listener_name)

    routes[ApiKey.FETCH] = Route(fetch)
    levels = FeatureLevels({KRAFT_VERSION: (0, 1)}, {}, -1)
    routes[ApiKey.API_VERSIONS] = Route(
        ApiVersionsHandler(routes, lambda: levels, broker_listener=False).handle
    )
    return routes


class QuorumScenario:
    def __init__(
        self,
        world: World,
        *,
        weights: Mapping[str, int] = FAULTS,
        falls_after_vote: float = 0.1,
        delay_s: float | None = None,
    ) -> None:
        """`falls_after_vote` is how often a node is killed just after it has voted, `delay_s` the
        longest that a message usually takes."""
        self.world = world
        self._delay_s = delay_s or world.random.choice((0.002, 0.002, 0.01, 0.2))
        self._falls_after_vote = falls_after_vote
        self._voted: dict[QuorumNode, tuple[int, ReplicaKey | None]] = {}
        self._falls = Random(f"{world.seed}/falls")
        self._faults: FleetFaults | None = None
        self.quorum = Quorum(world)
        self.watch = QuorumWatch()
        self._weights = weights
        self._stopping = False
        self._acknowledged: list[str] = []
        self._written = 0

    async def run(self) -> None:
        self.world.loop.on_moment = self._look
        with self.quorum.watching_the_log():
            try:
                await self._run()
            except Violation:
                self.quorum.check()
                raise

    def _look(self) -> None:
        for node in self.quorum.nodes:
            process, program = node.process, node.program
            if process is not None and process.ran and program is not None:
                process.ran = False
                raft = program.raft
                self.watch.look(node.node_id, node.boots, raft.machine, StoredBatches(raft.log))
                self._look_for_votes(node, program.raft)

    def _look_for_votes(self, node: QuorumNode, raft: RaftNode) -> None:
        election = raft.machine.election
        vote = election.epoch, election.voted
        if election.voted is None or self._voted.get(node) == vote:
            return
        self._voted[node] = vote
        if self._faults is not None and self._falls.random() < self._falls_after_vote:
            self.world.fault("kill after a vote")
            delay_s = self._falls.choice((0.001, 0.01, 0.06)) * self._falls.random()
            self.world.loop.call_later(delay_s, self._faults.bounce, node)

    async def _run(self) -> None:
        world, quorum = self.world, self.quorum
        world.note(
            f"{len(quorum.first_voters)} voters of {len(quorum.nodes)} nodes,"
            f" {'dynamic' if quorum.dynamic else 'static'}"
        )
        quorum.format()
        quorum.net.delay_s = self._delay_s
        quorum.net.cut_chance = world.random.choice((0.0, 0.002, 0.01))
        faults = self._faults = FleetFaults(
            quorum,
            hosts=(),
            power=PowerRule(one=lambda machine: True, all=True),
            weights=self._weights,
            leader=self._leader,
        )
        faults.start_all()
        loop = world.loop
        tasks = [loop.create_task(self._write(number)) for number in range(3)]
        if quorum.dynamic:
            tasks.append(loop.create_task(self._change_voters()))
        seconds = world.random.choice((15.0, 40.0, 80.0))
        trouble = loop.create_task(faults.run(seconds, world.random.randint(1, 3)))
        while not trouble.done():
            await self._pass_time([trouble, *tasks], faults)
        world.note("heal")
        await faults.heal()
        self._stopping = True
        deadline = loop.time() + SETTLE_S
        while not (all(task.done() for task in tasks) and self._settled(faults)):
            await self._pass_time(tasks, faults)
            if loop.time() > deadline:
                raise Violation(Invariant.SETTLES, f"after {SETTLE_S} s: {self._described()}")
        self._check_end()

    def _leader(self) -> QuorumNode | None:
        program = self.quorum.leader()
        return None if program is None else self.quorum.nodes[program.raft.machine.local.id - 1]

    async def _pass_time(self, tasks: list[asyncio.Task[None]], faults: FleetFaults) -> None:
        await asyncio.sleep(CHECK_EVERY_S)
        self.quorum.check()
        faults.check()
        for task in tasks:
            if task.done():
                task.result()

    def _settled(self, faults: FleetFaults) -> bool:
        """Whether all nodes are up and have everything."""
        if not faults.all_up:
            return False
        programs = [node.program for node in self.quorum.nodes]
        ends = {0 if each is None else each.raft.high_watermark for each in programs}
        logs = {0 if each is None else each.raft.log.end_offset for each in programs}
        return len(ends) == 1 and ends == logs and self.quorum.leader() is not None

    def _described(self) -> str:
        described = []
        for node in self.quorum.nodes:
            program = node.program
            if program is None or not node.up:
                described.append(f"{node.host} is down")
                continue
            machine = program.raft.machine
            described.append(
                f"{node.host} {machine.role_name.value} in epoch {machine.epoch}, high watermark"
                f" {machine.high_watermark} of {program.raft.log.end_offset},"
                f" voters {sorted(machine.voters.voters)}"
            )
        return "; ".join(described)

    def _check_end(self) -> None:
        programs = [node.program for node in self.quorum.nodes]
        values = [each.values for each in programs if each is not None]
        for other in values[1:]:
            require(
                other == values[0],
                Invariant.QUORUM_COMMIT_AGREES,
                lambda other=other: f"in the end there are {values[0]} and {other}",  # type: ignore[misc]
            )
        missing = set(self._acknowledged) - set(values[0])
        require(
            not missing and len(set(values[0])) == len(values[0]),
            Invariant.METADATA_SURVIVES,
            lambda: f"acknowledged and lost: {sorted(missing)}, there are {values[0]}",
        )
        self.world.note(
            f"held with {len(values[0])} values in {len(self.watch.leaders)} epochs with leaders"
        )

    # Clients of the quorum.

    async def _write(self, writer: int) -> None:
        random = Random(f"{self.world.seed}/writer{writer}")
        quorum = self.quorum
        while not self._stopping:
            await asyncio.sleep(random.choice((0.02, 0.2, 1.0)) * random.random())
            # Also on nodes that wrongly believe that they lead.
            node = random.choice(quorum.nodes)
            program, process = node.program, node.process
            if program is None or process is None or not program.raft.is_leader:
                continue
            self._written += 1
            name = f"{writer}/{self._written}"
            if await self._ask(process, program.write(name), timeout_s=4.0):
                self._acknowledged.append(name)
                self.world.note(f"{name} is committed")

    async def _change_voters(self) -> None:
        random = Random(f"{self.world.seed}/voters")
        while not self._stopping:
            await asyncio.sleep(6.0 * random.random())
            program = self.quorum.leader()
            node = random.choice(self.quorum.nodes)
            if program is None or self._stopping:
                continue
            voters = program.raft.machine.voters
            process = self.quorum.nodes[program.raft.machine.local.id - 1].process
            if process is None:
                continue
            if node.node_id in voters.voters and len(voters) <= 1:
                continue
            remove = node.node_id in voters.voters
            ask = self._remove(program, node) if remove else self._add(program, node)
            answer = await self._ask(process, ask, timeout_s=10.0)
            self.world.note(f"{'remove' if remove else 'add'} voter {node.node_id}: {answer}")
            if answer == "NONE":
                self.world.fault("voter removed" if remove else "voter added")

    async def _ask(
        self, process: Process, work: Coroutine[Any, Any, T], timeout_s: float
    ) -> T | None:
        """The result, if the process returns it in time; None if it does not, or dies."""
        task = self.world.loop.create_task(work, context=process.context())
        await asyncio.wait({task}, timeout=timeout_s)
        try:
            return task.result() if task.done() else None
        except Stopped:
            return None

    async def _add(self, program: QuorumProgram, node: QuorumNode) -> str:
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=8_000,
            voter_id=node.key.id,
            voter_directory_id=node.key.directory_id,
            listeners=[
                AddRaftVoterRequest.Listener(name=LISTENER, host=node.endpoint.host, port=PORT)
            ],
        )
        try:
            response = await program.service.add_voter(request)
        except ApiError as error:
            return error.code.name
        return ErrorCode(response.error_code).name

    async def _remove(self, program: QuorumProgram, node: QuorumNode) -> str:
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            voter_id=node.key.id,
            voter_directory_id=node.key.directory_id,
        )
        try:
            response = await program.service.remove_voter(request)
        except ApiError as error:
            return error.code.name
        return ErrorCode(response.error_code).name
