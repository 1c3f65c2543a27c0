"""A whole cluster through one seed: several real nodes and clients of every kind.

A seed draws a layout (three nodes that are brokers and controllers, a static quorum of three, or
three of each apart), a profile of clients, timeouts, and what goes wrong (`fleet_faults.py`,
`promise.py`). Nodes are watched after every moment (`quorum_watch.py`, `partition_watch.py`), and
clients check what they see at once. In the end all faults are over: every node must come up, every
replica join its ISR, every client come to its end; then what is in the logs is checked against
what the clients know, and replicas against one another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from moldau.sim.clients.operator import Operator
from moldau.sim.cluster import APART, THREE, THREE_STATIC, Cluster, Layout, Node
from moldau.sim.cluster_scenario import PROFILES, PROPERTIES, ClusterScenario, Profile
from moldau.sim.fleet_faults import WEIGHTS, FleetFaults, PowerRule
from moldau.sim.partition_watch import PartitionWatch
from moldau.sim.promise import Promise
from moldau.sim.quorum_watch import QuorumWatch, StoredBatches
from moldau.sim.world import Invariant, Violation, World

SETTLE_S = 150.0
CHECK_EVERY_S = 1.0

REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
LAYOUTS = [THREE, THREE_STATIC, APART]
LAYOUT_WEIGHTS = [6, 2, 1]


class ReplicatedScenario(ClusterScenario):
    replication_factor = 3

    def __init__(
        self,
        world: World,
        *,
        profile: Profile | None = None,
        layout: Layout | None = None,
        weights: Mapping[str, int] = WEIGHTS,
        operator: bool | None = None,
        properties: Mapping[str, str] | None = None,
        flushed: bool = False,
    ) -> None:
        """`flushed`: every record is synced before it is acknowledged, and any power may fail."""
        self.world = world
        self._flushed = flushed
        random = world.random
        self.profile = profile or random.choices(PROFILES, [each.weight for each in PROFILES])[0]
        self.layout = layout or random.choices(LAYOUTS, LAYOUT_WEIGHTS)[0]
        self._weights = weights
        self._populate(
            Cluster(
                world,
                {
                    **PROPERTIES,
                    **REPLICATED,
                    **self._timeouts(),
                    **({"log.flush.interval.messages": "1"} if flushed else {}),
                    **(properties or {}),
                },
                layout=self.layout,
            )
        )
        cluster = self.cluster
        # A partition whose first flush has not ended belongs to no replica after a power failure.
        cluster.expected = ("does not tell its topic id",)
        self.promise = Promise(cluster)
        self.quorum_watch = QuorumWatch()
        self.partition_watch = PartitionWatch(
            cluster.newest_image,
            lambda node_id: cluster.nodes[node_id - 1].replicas,
            lambda node_id: self.promise.is_excused(cluster.nodes[node_id - 1]),
        )
        self._metadata_offset = -1
        cluster.leader_changes = lambda: self.partition_watch.leader_changes
        self.faults: FleetFaults
        if random.random() < 0.5 if operator is None else operator:
            self.add(
                Operator(
                    cluster,
                    self.history,
                    "operator",
                    self.profile.topics,
                    on_new=lambda node: self.faults.start(node),
                )
            )

    def _timeouts(self) -> dict[str, str]:
        """Kafka's own, or shorter ones, so that more happens in less time."""
        choice = self.world.random.choice
        heartbeat_ms = choice((300, 1000, 2000))
        return {
            "broker.heartbeat.interval.ms": str(heartbeat_ms),
            "broker.session.timeout.ms": str(choice((3, 4)) * heartbeat_ms),
            "replica.lag.time.max.ms": choice(("1500", "5000", "30000")),
            "replica.fetch.wait.max.ms": choice(("100", "500")),
            "replica.fetch.backoff.ms": choice(("100", "1000")),
            "log.roll.ms": choice(("5000", "604800000")),
        }

    # The run.

    def _look(self) -> None:
        for node in self.cluster.nodes:
            process = node.process
            if process is None or not process.ran or not process.alive:
                continue
            process.ran = False
            raft, replicas = node.raft, node.replicas
            if raft is not None:
                log = StoredBatches(raft.log)
                self.quorum_watch.look(node.node_id, node.boots, raft.machine, log)
            if replicas is not None:
                self.partition_watch.look(node.node_id, node.boots, replicas)
            metadata = node.metadata
            if metadata is not None and metadata.offset > self._metadata_offset:
                self._metadata_offset = metadata.offset
                self.partition_watch.look_at_image()

    async def _run(self) -> None:
        world, cluster = self.world, self.cluster
        world.note(f"profile {self.profile.name}, {self.layout.name}")
        cluster.format()
        faults = self.faults = self._faults()
        world.loop.on_moment = self._look
        faults.start_all()
        await self._until(lambda: faults.all_up, faults, "nodes do not come up")
        await self._watch([world.loop.create_task(self._create_topics())], [])
        cluster.net.cut_chance = world.random.choice((0.0, 0.002, 0.005))
        tasks = {world.loop.create_task(actor.run()): actor.name for actor in self.actors}
        seconds = world.random.choice((8.0, 15.0, 25.0))
        trouble = world.loop.create_task(faults.run(seconds, world.random.randint(1, 3)))
        await self._watch([trouble], list(tasks))
        world.note("heal")
        await faults.heal()
        self.history.stopping = True
        await self._until(lambda: faults.all_up, faults, "nodes do not come up")
        deadline = world.loop.time() + SETTLE_S
        while not await self._watch_once(list(tasks)):
            if world.loop.time() > deadline:
                waiting = sorted(name for task, name in tasks.items() if not task.done())
                raise Violation(
                    Invariant.SETTLES, f"after {SETTLE_S} s these still wait: {', '.join(waiting)}"
                )
        await self._until(self._in_sync, faults, "replicas do not join their ISR")
        await self._check_facts()
        await self._until(self._same_ends, faults, "replicas do not come to the same end")
        image = cluster.newest_image()
        if image is not None:
            self.partition_watch.check_same(
                {n.node_id: n.replicas for n in cluster.brokers if n.replicas is not None}, image
            )

    def _faults(self) -> FleetFaults:
        promise = self.promise
        rule = PowerRule(
            one=promise.may_lose_power,
            all=False,
            may_end=promise.may_end,
            on_lost=promise.on_power_lost,
        )
        if self._flushed:
            rule = PowerRule(one=lambda machine: True, all=True)
        return FleetFaults(
            self.cluster,
            hosts=[actor.name for actor in self.actors],
            power=rule,
            weights=self._weights,
            leader=self._controller,
        )

    def _controller(self) -> Node | None:
        """The active one."""
        leading = [n for n in self.cluster.nodes if n.raft is not None and n.raft.is_leader]
        return max(leading, key=lambda n: n.raft.epoch if n.raft else -1, default=None)

    async def _until(
        self, condition: Callable[[], bool], faults: FleetFaults, problem: str
    ) -> None:
        deadline = self.world.loop.time() + SETTLE_S
        while not condition():
            if self.world.loop.time() > deadline:
                raise Violation(Invariant.SETTLES, f"{problem}: {self._described()}")
            await asyncio.sleep(0.5)
            self.cluster.check()
            faults.check()

    def _in_sync(self) -> bool:
        return not self._lagging()

    def _lagging(self) -> list[str]:
        image = self.cluster.newest_image()
        if image is None:
            return ["no metadata"]
        return [
            f"{topic.name}-{index} leader {state.leader} isr {state.isr} of {state.replicas}"
            f" elr {state.elr} last known {state.last_known_elr}"
            for topic in image.topics_by_id.values()
            for index, state in topic.partitions.items()
            if set(state.isr) != set(state.replicas) or state.leader < 0
        ]

    def _same_ends(self) -> bool:
        image = self.cluster.newest_image()
        by_id = {node.node_id: node.replicas for node in self.cluster.brokers}
        if image is None:
            return False
        for topic in image.topics_by_id.values():
            for index, state in topic.partitions.items():
                ends: set[int | None] = set()
                for node_id in state.replicas:
                    replicas = by_id.get(node_id)
                    replica = None if replicas is None else replicas.find(topic.name, index)
                    ends |= (
                        {None}
                        if replica is None
                        else {replica.log.log_end_offset, replica.log.high_watermark}
                    )
                if len(ends) != 1 or None in ends:
                    return False
        return True

    def _described(self) -> str:
        told = []
        for node in self.cluster.nodes:
            raft = node.raft
            if raft is None:
                told.append(f"{node.host} is down")
                continue
            machine = raft.machine
            told.append(
                f"{node.host}{'' if node.up else ' (not up)'} {machine.role_name.value} in epoch"
                f" {machine.epoch}, {machine.high_watermark} of {raft.log.end_offset}"
            )
        return "; ".join(told + self._lagging())
