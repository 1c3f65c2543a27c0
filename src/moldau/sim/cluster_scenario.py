"""A whole broker through one seed: clients of every kind use it while things go wrong.

A seed draws a profile (which clients there are), what power failures may take, and then faults.
Every client checks what it sees at once; in the end all faults are over, every client must come
to its end, and what is in the logs is checked against what the clients know (`history.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from moldau.sim.clients.actor import Actor, check
from moldau.sim.clients.groups import fetch_offset
from moldau.sim.clients.history import History, TopicPartition
from moldau.sim.clients.members import ClassicMember, ConsumerMember, Member, Ownership
from moldau.sim.clients.pipeline import Pipeline, check_exactly_once
from moldau.sim.clients.producer import IdempotentProducer
from moldau.sim.clients.reader import Reader
from moldau.sim.clients.sharing import Queue, ShareMember, check_all_done
from moldau.sim.clients.transactions import TransactionalProducer
from moldau.sim.cluster import Cluster, Node
from moldau.sim.faults import WEIGHTS, Faults, Power
from moldau.sim.world import Invariant, Violation, World
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse

SETTLE_S = 300.0
CHECK_EVERY_S = 1.0

PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "group.initial.rebalance.delay.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "4000",
    "group.share.delivery.count.limit": "10",
    "group.share.initialize.retry.interval.ms": "1000",
    # As in Kafka, a wall clock that is set back would delay the next assignment by as much.
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    # Compaction runs in a process of its own; `logs/` has it simulated.
    "log.cleaner.enable": "false",
}

ONE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@dataclass(slots=True)
class Profile:
    """Which clients a run has. Tests pick one to look at one thing closely."""

    name: str
    topics: dict[str, int]
    join: Callable[[ClusterScenario], None]
    """Adds the clients."""
    lossy: bool = False
    """Whether it makes sense when a power failure takes acknowledged records."""
    weight: int = 10
    faults: dict[str, int] = field(default_factory=lambda: dict(WEIGHTS))
    derived: frozenset[str] = frozenset()
    """Topics that applications write; only `final_checks` know what belongs there."""


class ClusterScenario:
    replication_factor = 1

    def __init__(
        self, world: World, *, profile: Profile | None = None, power: Power | None = None
    ) -> None:
        self.world = world
        if profile is None:
            weights = [each.weight for each in PROFILES]
            profile = world.random.choices(PROFILES, weights)[0]
        if power is None:
            choices = [Power.ALWAYS_ON, Power.FLUSHED] + [Power.LOSSY] * profile.lossy
            power = world.random.choice(choices)
        self.profile = profile
        self.power = power
        properties = {**PROPERTIES, **ONE_REPLICA}
        if power is Power.FLUSHED:
            properties["log.flush.interval.messages"] = "1"
        properties["log.roll.ms"] = world.random.choice(("2000", "20000", "604800000"))
        self._populate(Cluster(world, properties))
        # A partition has no owner if a kill came into its creation, or a power failure before its
        # first flush had ended.
        self.cluster.expected = ("has no readable topic id",)
        self.history.lossy = power is Power.LOSSY
        self.history.power_fails = power is not Power.ALWAYS_ON

    def _populate(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.history = History(self.world)
        self.history.derived = self.profile.derived
        self.actors: list[Actor] = []
        self.final_checks: list[Callable[[Facts], Awaitable[None]]] = []
        self.profile.join(self)

    @property
    def partitions(self) -> list[TopicPartition]:
        return [(t, index) for t, count in self.profile.topics.items() for index in range(count)]

    def add(self, actor: Actor) -> None:
        self.actors.append(actor)

    # The run.

    async def run(self) -> None:
        with self.cluster.watching_the_log():
            try:
                await self._run()
            except Violation:
                # What was reported first explains more than what followed from it.
                self.cluster.check()
                raise

    async def _run(self) -> None:
        world, cluster = self.world, self.cluster
        world.note(f"profile {self.profile.name}, power: {self.power.value}")
        cluster.format()
        for node in cluster.nodes:
            await node.start()
        await self._create_topics()
        cluster.net.cut_chance = world.random.choice((0.0, 0.002, 0.01))
        faults = Faults(
            cluster,
            power=self.power,
            hosts=[actor.name for actor in self.actors],
            on_start=self._on_start,
            weights=self.profile.faults,
        )
        tasks = {world.loop.create_task(actor.run()): actor.name for actor in self.actors}
        trouble = world.loop.create_task(faults.run(world.random.choice((20.0, 60.0, 120.0))))
        await self._watch([trouble], list(tasks))
        world.note("heal")
        await faults.heal()
        self.history.stopping = True
        deadline = world.loop.time() + SETTLE_S
        while not await self._watch_once(list(tasks)):
            if world.loop.time() > deadline:
                waiting = sorted(name for task, name in tasks.items() if not task.done())
                raise Violation(
                    Invariant.SETTLES, f"after {SETTLE_S} s these still wait: {', '.join(waiting)}"
                )
        await self._check_end()

    async def _watch(self, until: list[asyncio.Task[None]], also: list[asyncio.Task[None]]) -> None:
        while not all(task.done() for task in until):
            await self._watch_once([*until, *also])
        await self._watch_once([*until, *also])

    async def _watch_once(self, tasks: list[asyncio.Task[None]]) -> bool:
        """Whether all have ended; the first error among them is raised."""
        _, pending = await asyncio.wait(
            tasks, timeout=CHECK_EVERY_S, return_when=asyncio.FIRST_EXCEPTION
        )
        self.cluster.check()
        for task in tasks:
            if task.done():
                task.result()
        if pending and len(pending) < len(tasks):
            await asyncio.sleep(CHECK_EVERY_S)
        return not pending

    async def _create_topics(self) -> None:
        admin = Actor(self.cluster, self.history, "admin")

        async def attempt() -> None:
            response = await admin.wire.call(
                admin.wire.anybody(),
                CreateTopicsRequest(
                    topics=[
                        CreateTopicsRequest.CreatableTopic(
                            name=name,
                            num_partitions=count,
                            replication_factor=self.replication_factor,
                        )
                        for name, count in self.profile.topics.items()
                    ],
                    timeout_ms=10_000,
                ),
                CreateTopicsResponse,
            )
            for topic in response.topics:
                if topic.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    check(topic.error_code)

        await admin.patiently(attempt)
        admin.wire.close()

    def _on_start(self, node: Node) -> None:
        replicas = node.replicas
        if replicas is None:
            return
        ends = {}
        for where in self.partitions:
            partition = replicas.find(*where)
            ends[where] = 0 if partition is None else partition.log.log_end_offset
        self.history.on_power_failure(ends)

    # The end.

    async def _check_end(self) -> None:
        if self.world.chance(0.5):
            self.world.note("stop and start once more")
            for node in self.cluster.nodes:
                await node.stop()
                await node.start()
        await self._check_facts()

    async def _check_facts(self) -> None:
        facts = Facts(
            everything=await self._read_all(committed=False),
            committed=await self._read_all(committed=True),
        )
        for where, records in facts.everything.items():
            if where[0] not in self.profile.derived:
                self.history.check_all(where, records)
        self.history.check_transactions(
            {value for records in facts.committed.values() for value in records.values()}
        )
        for final_check in self.final_checks:
            await final_check(facts)
        self.cluster.check(at_end=True)
        count = sum(len(records) for records in facts.everything.values())
        self.world.note(f"held with {count} records, {len(self.history.transactions)} transactions")

    async def _read_all(self, *, committed: bool) -> dict[TopicPartition, dict[int, bytes]]:
        name = "last-committed" if committed else "last-reader"
        reader = Reader(self.cluster, self.history, name, self.partitions, committed=committed)
        found = await reader.read_to_the_end()
        reader.wire.close()
        return found


@dataclass(frozen=True, slots=True)
class Facts:
    """What fresh readers find when all is over."""

    everything: dict[TopicPartition, dict[int, bytes]]
    committed: dict[TopicPartition, dict[int, bytes]]


def _join_logs(scenario: ClusterScenario) -> None:
    cluster, history, partitions = scenario.cluster, scenario.history, scenario.partitions
    for number in range(3):
        scenario.add(IdempotentProducer(cluster, history, f"producer{number}", partitions))
    scenario.add(Reader(cluster, history, "reader", partitions, committed=False))
    scenario.add(Reader(cluster, history, "committed-reader", partitions, committed=True))


def _join_transactions(scenario: ClusterScenario) -> None:
    cluster, history, partitions = scenario.cluster, scenario.history, scenario.partitions
    for number, version in enumerate((1, 2, 2)):
        # The last two are of one id and fence each other.
        transactional_id = f"transaction{min(number, 1)}"
        scenario.add(
            TransactionalProducer(
                cluster,
                history,
                f"transactional{number}",
                partitions,
                transactional_id=transactional_id,
                version=version,
            )
        )
    scenario.add(IdempotentProducer(cluster, history, "producer", partitions))
    scenario.add(Reader(cluster, history, "reader", partitions, committed=False))
    scenario.add(Reader(cluster, history, "committed-reader", partitions, committed=True))


def _join_pipeline(scenario: ClusterScenario) -> None:
    cluster, history = scenario.cluster, scenario.history
    sources = [where for where in scenario.partitions if where[0] == "in"]
    scenario.add(IdempotentProducer(cluster, history, "producer", sources))
    for source in sources:
        target = ("out", source[1])
        version = scenario.world.random.choice((1, 2))
        for instance in range(2):
            scenario.add(
                Pipeline(
                    cluster,
                    history,
                    f"pipeline{source[1]}-{instance}",
                    source=source,
                    target=target,
                    group="pipeline",
                    transactional_id=f"pipeline{source[1]}",
                    version=version,
                )
            )
    scenario.add(Reader(cluster, history, "committed-reader", scenario.partitions, committed=True))

    async def final_check(facts: Facts) -> None:
        asking = Actor(cluster, history, "last-asking")
        for source in sources:
            offset = await asking.patiently(
                lambda source=source: fetch_offset(asking, "pipeline", source)  # type: ignore[misc]
            )
            outputs = facts.committed["out", source[1]]
            check_exactly_once(source, facts.committed[source], outputs, max(offset, 0))
        asking.wire.close()

    scenario.final_checks.append(final_check)


def _join_group(member: type[Member]) -> Callable[[ClusterScenario], None]:
    def join(scenario: ClusterScenario) -> None:
        cluster, history, partitions = scenario.cluster, scenario.history, scenario.partitions
        scenario.add(IdempotentProducer(cluster, history, "producer", partitions))
        ownership = Ownership()
        for number in range(3):
            name = f"member{number}"
            scenario.add(
                member(cluster, history, name, partitions, group="group", ownership=ownership)
            )

    return join


def _join_share(scenario: ClusterScenario) -> None:
    cluster, history, partitions = scenario.cluster, scenario.history, scenario.partitions
    scenario.add(IdempotentProducer(cluster, history, "producer", partitions))
    queue = Queue()
    for number in range(3):
        name = f"sharer{number}"
        scenario.add(ShareMember(cluster, history, name, partitions, group="share", queue=queue))

    async def final_check(facts: Facts) -> None:
        records = {
            (where[1], offset): value
            for where, found in facts.everything.items()
            for offset, value in found.items()
        }
        check_all_done(queue, records)

    scenario.final_checks.append(final_check)


LOGS = Profile("logs", {"plain": 2}, _join_logs, lossy=True)
TRANSACTIONS = Profile("transactions", {"plain": 2}, _join_transactions, weight=20)
PIPELINE = Profile("pipeline", {"in": 2, "out": 2}, _join_pipeline, weight=20)
CLASSIC = Profile("classic group", {"plain": 4}, _join_group(ClassicMember))
CONSUMER = Profile("consumer group", {"plain": 4}, _join_group(ConsumerMember), weight=15)

SHARE = Profile("share group", {"queue": 1}, _join_share, weight=15)

PROFILES = [LOGS, TRANSACTIONS, PIPELINE, CLASSIC, CONSUMER, SHARE]
