"""A controller's metadata through one seed: decisions, snapshots, stops and power failures.

The real metadata shell runs over the simulated disk as the only voter. What it has answered must
be in every later image; what was under way when it stopped may be, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.metadata.formatting import format_storage
from moldau.broker.metadata.machine.brokers import (
    check_broker_epoch,
    register_broker,
    unfencing_records,
)
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.model import Endpoint
from moldau.broker.metadata.machine.topics import create_topics, delete_topics
from moldau.broker.metadata.machine.view import ControllerView
from moldau.broker.metadata.shell import MetadataShell
from moldau.clock import Alarm
from moldau.peers.channel import Channel
from moldau.sim.disk import SimDisk, Stopped
from moldau.sim.world import Invariant, Violation, World, require
from moldau.times import ElapsedMs, WallMs
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from moldau.wire.uuids import uuid_from_text

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
DIRECTORY = "/metadata"
STEPS_MIN = 25
STEPS_MAX = 70
TOPICS = [f"topic{number}" for number in range(8)]
SETTLE_S = 25.0


class AnyRules:
    """Lets every configuration pass: no step sets one."""

    def validate_topic(self, values: Mapping[str, str]) -> None:
        return

    def validate_broker(self, values: Mapping[str, str], *, per_broker: bool) -> None:
        return

    def validate_group(self, values: Mapping[str, str]) -> None:
        return

    def validate_client_metrics(self, values: Mapping[str, str]) -> None:
        return

    def is_list(self, resource_type: int, key: str) -> bool:
        return False

    def default_value(self, resource_type: int, key: str) -> str | None:
        return None

    def effective_topic(
        self, topic: Mapping[str, str], cluster: Mapping[str, str], broker: Mapping[str, str]
    ) -> Sequence[Any]:
        return ()


class NoTransport:
    """The only voter has no peer to call."""

    def channel(self, node_id: int, host: str, port: int, listener_name: str) -> Channel:
        raise Violation(Invariant.NO_SURPRISE, f"the only voter calls {node_id} at {host}:{port}")


class ProcessClock:
    """Alarms do not go off in a process that has stopped."""

    def __init__(self, world: World, disk: SimDisk) -> None:
        self._world = world
        self._disk = disk

    def now_ms(self) -> WallMs:
        return self._world.now_ms()

    def elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(round(self._world.loop.time() * 1000))

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        def ring() -> None:
            if self._disk.alive:
                callback()

        return self._world.loop.call_later(delay_ms / 1000, ring)


@lru_cache(maxsize=8)
def _config(snapshot_bytes: int, segment_bytes: int, retention_bytes: int) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "log.dirs": DIRECTORY,
            "metadata.log.max.record.bytes.between.snapshots": str(snapshot_bytes),
            "internal.metadata.log.segment.bytes": str(segment_bytes),
            "metadata.max.retention.bytes": str(retention_bytes),
        }
    )


class MetadataScenario:
    def __init__(self, world: World) -> None:
        self.world = world
        random = world.random
        self._config = _config(
            random.choice((500, 3000, 1_000_000)),
            random.choice((1000, 4000)),
            random.choice((2000, 1_000_000)),
        )
        # What has been answered, and what was asked since without an answer.
        self._topics: dict[str, UUID] = {}
        self._asked: list[tuple[str, str]] = []
        self._epoch = -1
        self._incarnation = 0
        self._clean = False
        self._shell: MetadataShell | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        world = self.world
        while not self._format():
            world.fault("power failure")
            world.note(f"power fails while formatting: {world.platter.lose_power()} changes lost")
        await self._start()
        for _ in range(world.random.randint(STEPS_MIN, STEPS_MAX)):
            world.steps += 1
            await self._step()
        await self._crash()
        await self._start()

    def _format(self) -> bool:
        """Format the folder; an operator does so again when the power fails in between."""
        world = self.world
        disk = world.platter.start()
        if world.chance(0.2):
            world.platter.stop_after(world.random.randrange(20))
        try:
            format_storage(
                self._config,
                CLUSTER_ID,
                standalone=True,
                random_uuid=self._new_uuid,
                disk=disk,
                now_ms=world.now_ms(),
                ignore_formatted=True,
            )
        except Stopped:
            return False
        world.platter.stop_after(None)
        return True

    def _new_uuid(self) -> UUID:
        return UUID(bytes=self.world.bytes_random.randbytes(16), version=4)

    # Steps ------------------------------------------------------------------------------

    async def _step(self) -> None:
        world = self.world
        kind = world.random.choices(
            ("create", "delete", "wait", "arm", "crash", "stop"), (40, 15, 20, 6, 6, 4)
        )[0]
        if kind == "create":
            self._ask("create", world.random.choice(TOPICS))
        elif kind == "delete":
            self._ask("delete", world.random.choice(TOPICS))
        elif kind == "wait":
            await asyncio.sleep(world.random.choice((0.001, 1.0, SETTLE_S, 3600.0)))
        elif kind == "arm":
            world.platter.stop_after(world.random.choice((0, 1, 2, 4, 8, 16)))
        elif kind == "crash":
            await self._crash()
        else:
            await self._stop()
        await asyncio.sleep(world.random.choice((0.0, 0.0, 0.001, 1.0)))
        if not world.platter.disk.alive:
            await self._restart()
        world.check_errors()
        self._check_image()

    def _ask(self, action: str, topic: str) -> None:
        """One request, whose answer comes later or never."""
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(self.world.loop.create_task(self._request(action, topic)))

    async def _request(self, action: str, topic: str) -> None:
        shell = self._shell
        if shell is None:
            return
        decide = _create(topic) if action == "create" else _delete(topic)
        self.world.note(f"{action} {topic}")
        asked = (action, topic)

        def decide_and_note(controller: ControllerView) -> Decision[Any]:
            decision = decide(controller)
            if decision.records:
                self._asked.append(asked)
            return decision

        try:
            response = await shell.run(decide_and_note)
        except ApiError as error:
            told = f"{action} {topic}: {error.message}"
            expected = not self.world.platter.disk.alive or error.code == ErrorCode.NOT_CONTROLLER
            require(expected, Invariant.NO_SURPRISE, lambda: told)
            return
        self._answered(action, topic, response)

    def _answered(self, action: str, topic: str, response: Any) -> None:
        answer = response.topics[0] if action == "create" else response.responses[0]
        code = ErrorCode(answer.error_code)
        self.world.note(f"{action} {topic}: {code.name}")
        if code != ErrorCode.NONE:
            return
        # Answers come in the order of the log, so this one was asked first.
        self._asked.remove((action, topic))
        if action == "create":
            self._topics[topic] = answer.topic_id
        else:
            del self._topics[topic]

    # Stopping and starting ----------------------------------------------------------------

    async def _stop(self) -> None:
        shell, self._shell = self._shell, None
        if shell is None:
            return
        world = self.world
        world.fault("clean stop")
        world.note("stop")
        self._clean = False
        try:
            await self._unless_stopped(shell.stop())
            self._clean = True
        except Stopped:
            world.note("stopped before that")
        # The process leaves nothing to do behind; its folder has a mark of a clean stop.
        world.platter.stop()
        self._shell = shell
        await self._restart()

    async def _crash(self) -> None:
        self.world.platter.stop()
        await self._restart()

    async def _restart(self) -> None:
        world = self.world
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if world.chance(0.7):
            world.fault("power failure")
            world.note(f"power fails: {world.platter.lose_power()} changes lost")
        elif not self._clean:
            world.fault("kill")
            world.note("killed")
        while not await self._start():
            world.fault("power failure")
            world.note(f"power fails while starting: {world.platter.lose_power()} changes lost")
            self._clean = False

    async def _start(self) -> bool:
        world = self.world
        disk = world.platter.start()
        if world.chance(0.15):
            world.platter.stop_after(world.random.choice((0, 2, 5, 10, 20)))
        world.note("start")
        try:
            text = disk.read_bytes(f"{DIRECTORY}/meta.properties").decode()
            meta = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
            directory_id = uuid_from_text(meta["directory.id"])
            self._shell = shell = MetadataShell(
                self._config,
                cluster_id=CLUSTER_ID,
                directory_id=directory_id,
                rules=AnyRules(),
                random=world.random,
                disk=disk,
                background=world.background(),
                clock=ProcessClock(world, disk),
                transport=NoTransport(),
                controller_endpoints=(Endpoint(name="CONTROLLER", host="127.0.0.1", port=9093),),
                clean_shutdown=self._clean,
            )
            self._clean = False
            self._incarnation += 1
            await self._unless_stopped(self._begin(shell, directory_id))
        except Stopped:
            return False
        except Violation:
            raise
        except Exception as error:
            if not disk.alive:
                return False
            raise Violation(
                Invariant.STARTS, f"the controller does not start: {error!r}"
            ) from error
        world.platter.stop_after(None)
        self._settle(shell)
        return True

    async def _begin(self, shell: MetadataShell, directory_id: UUID) -> None:
        """Lead, and register a broker that topics can be placed on."""
        await shell.start()
        request = BrokerRegistrationRequest(
            broker_id=1,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=self._incarnation),
            listeners=[
                BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="localhost", port=9092)
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name,
                    min_supported_version=levels.min_version,
                    max_supported_version=levels.max_version,
                )
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            log_dirs=[directory_id],
        )
        now_ms = ElapsedMs(round(self.world.loop.time() * 1000))
        registered = await shell.run(register_broker, request, now_ms=now_ms)
        await shell.run(_unfence, registered.broker_epoch)

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for it; in a process that stops in between it would never end."""
        task = self.world.loop.create_task(work)
        while not task.done():
            if not self.world.platter.disk.alive:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                raise Stopped
            await asyncio.sleep(0.5)
        await task

    # What must hold ------------------------------------------------------------------------

    def _settle(self, shell: MetadataShell) -> None:
        """What was not answered may have happened, a first part of it in order."""
        require(
            shell.leader_epoch > self._epoch,
            Invariant.METADATA_SURVIVES,
            lambda: f"leading again in epoch {shell.leader_epoch} after {self._epoch}",
        )
        self._epoch = shell.leader_epoch
        found = {name: topic.id for name, topic in shell.image.topics_by_name.items()}
        possible = dict(self._topics)
        for action, topic in [*self._asked, ("", "")]:
            if _same(found, possible):
                self._asked.clear()
                self._topics = found
                self.world.note(f"epoch {self._epoch}, topics {sorted(found)}")
                return
            if action == "create":
                possible[topic] = UUID(int=0)
            else:
                possible.pop(topic, None)
        raise Violation(
            Invariant.METADATA_SURVIVES,
            f"there are {sorted(found)}, answered were {sorted(self._topics)}, asked {self._asked}",
        )

    def _check_image(self) -> None:
        """What was answered is in the image at once."""
        shell = self._shell
        if shell is None:
            return
        image = shell.image.topics_by_name
        for name, topic_id in self._topics.items():
            if any(topic == name for _, topic in self._asked):
                continue
            require(
                name in image and image[name].id == topic_id,
                Invariant.METADATA_SURVIVES,
                lambda name=name: f"{name} was created but is not in the image",  # type: ignore[misc]
            )


def _same(found: Mapping[str, UUID], possible: Mapping[str, UUID]) -> bool:
    """A topic whose creation was not answered may have any id."""
    return found.keys() == possible.keys() and all(
        possible[name] in (topic_id, UUID(int=0)) for name, topic_id in found.items()
    )


def _unfence(controller: ControllerView, broker_epoch: int) -> Decision[None]:
    """Without a session, which this scenario's broker does not need to be used."""
    broker = check_broker_epoch(controller, 1, broker_epoch)
    return Decision(tuple(unfencing_records(controller, broker)), None, atomic=False)


def _create(topic: str) -> Callable[[ControllerView], Decision[Any]]:
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=2, replication_factor=1)
        ]
    )
    return lambda controller: create_topics(controller, request)


def _delete(topic: str) -> Callable[[ControllerView], Decision[Any]]:
    request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=topic)])
    return lambda controller: delete_topics(controller, request)
