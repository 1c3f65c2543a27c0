"""A node's partitions on a real disk folder, in virtual time: what handlers are tested against."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from moldau.broker.config import BrokerConfig, LogConfig
from moldau.broker.log.background import InlineBackground
from moldau.broker.log.disk import OsDisk
from moldau.broker.log.manager import LogManager
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.replication.machine.names import NodeEndpoint
from moldau.broker.replication.manager import ReplicaManager, Replication
from moldau.broker.replication.partition import Partition
from moldau.times import ELAPSED_ZERO, ElapsedMs, WallMs
from moldau.wire.messages import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from moldau.wire.records import encode_batch
from moldau.wire.uuids import DIRECTORY_UNASSIGNED

NODE_ID = 1
OTHER_NODE_ID = 2
TOPIC = 2


class VirtualFuture:
    """The part of a future that handlers and the network use, without an event loop."""

    def __init__(self) -> None:
        self._outcome: tuple[str, Any] | None = None
        self._callbacks: list[Callable[[VirtualFuture], object]] = []

    def done(self) -> bool:
        return self._outcome is not None

    def cancelled(self) -> bool:
        return self._outcome is not None and self._outcome[0] == "cancelled"

    def cancel(self) -> None:
        self._end("cancelled", None)

    def set_result(self, result: Any) -> None:
        self._end("result", result)

    def set_exception(self, error: BaseException) -> None:
        self._end("error", error)

    def add_done_callback(self, callback: Callable[[VirtualFuture], object]) -> None:
        self._callbacks.append(callback)

    def result(self) -> Any:
        assert self._outcome is not None, "the request still waits"
        kind, value = self._outcome
        if kind == "error":
            raise value
        assert kind == "result", "the request was cancelled"
        return value

    def _end(self, kind: str, value: Any) -> None:
        assert self._outcome is None, "answered twice"
        self._outcome = (kind, value)
        for callback in self._callbacks:
            callback(self)


class NoFetchers:
    """Fetchers that copy nothing."""

    def follow(self, partition: Partition, leader: NodeEndpoint) -> None: ...

    def leave(self, partition: Partition) -> None: ...

    def relocate(self, leader: NodeEndpoint) -> None: ...


def alone(elapsed_ms: Callable[[], ElapsedMs] = lambda: ELAPSED_ZERO) -> Replication:
    """For a node that copies nothing and whose proposals reach no controller."""
    return Replication(
        fetchers=NoFetchers(),
        propose=lambda partition, proposal: None,
        elapsed_ms=elapsed_ms,
        lag_ms_max=lambda: 30_000,
        inter_broker_listener="PLAINTEXT",
    )


class _Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """The time of a VirtualLoop; its wall clock can be set by `wall_ahead_ms`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.wall_ahead_ms = 0

    def now_ms(self) -> WallMs:
        return WallMs(self._loop.now_ms + self.wall_ahead_ms)

    def elapsed_ms(self) -> ElapsedMs:
        return ElapsedMs(self._loop.now_ms)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> _Timer:
        return self._loop.call_later(delay_ms / 1000, callback)


class VirtualLoop:
    """Timers and callbacks that run when a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.clock = VirtualClock(self)
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _Timer, Callable[..., object], tuple[Any, ...]]] = []
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> _Timer:
        timer = _Timer()
        due = self.now_ms + delay * 1000
        heapq.heappush(self._timers, (due, next(self._order), timer, callback, args))
        return timer

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        self._soon.append((callback, args))

    def create_future(self) -> Any:
        return VirtualFuture()

    @property
    def timers_count(self) -> int:
        return sum(not timer.cancelled for _, _, timer, _, _ in self._timers)

    def turn(self) -> None:
        """Run what was put off to the next turn, until nothing is left."""
        while self._soon:
            callback, args = self._soon.pop(0)
            callback(*args)

    def advance(self, ms: int) -> None:
        self.turn()
        end = self.now_ms + ms
        while self._timers and self._timers[0][0] <= end:
            due, _, timer, callback, args = heapq.heappop(self._timers)
            self.now_ms = int(due)
            if not timer.cancelled:
                callback(*args)
                self.turn()
        self.now_ms = end


class Host:
    """One node: a metadata image that tests change by records, and the partitions it hosts."""

    def __init__(
        self,
        folder: Path,
        *,
        image: MetadataImage | None = None,
        directories: tuple[str, ...] = ("logs",),
        node_id: int = NODE_ID,
        replication: Replication | None = None,
    ) -> None:
        self.loop = VirtualLoop()
        self.image = image or MetadataImage()
        numbers = itertools.count(1)
        self.logs = LogManager(
            [str(folder / name) for name in directories],
            disk=OsDisk(),
            background=InlineBackground(),
            now_ms=self.loop.clock.now_ms,
            random_bytes=lambda size: next(numbers).to_bytes(size, "big"),
            on_dir_failure=lambda directory: self.replicas.on_log_dir_failed(directory),
        )
        self.logs.open_dirs(cluster_id="test", node_id=node_id)
        self.reported: list[tuple[UUID, int, UUID]] = []
        self._config = BrokerConfig.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": str(NODE_ID),
                "controller.quorum.voters": f"{NODE_ID}@localhost:9093",
                "controller.listener.names": "CONTROLLER",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "log.dirs": str(folder),
            }
        )
        self.logs.load(self.log_config)
        self.replicas = ReplicaManager(
            node_id=node_id,
            logs=self.logs,
            log_config=self.log_config,
            report_directory=lambda *told: self.reported.append(told),
            replication=replication or alone(),
        )
        if image is not None:
            self.replicas.apply_image(image)
            return
        self.apply(
            *(
                RegisterBrokerRecord(
                    broker_id=node_id,
                    broker_epoch=node_id,
                    fenced=False,
                    rack=None,
                    end_points=[
                        RegisterBrokerRecord.BrokerEndpoint(
                            name="PLAINTEXT", host=f"host{node_id}", port=9000 + node_id
                        )
                    ],
                )
                for node_id in (NODE_ID, OTHER_NODE_ID)
            )
        )

    def restarted(self, folder: Path) -> Host:
        """The same node after a clean stop."""
        self.logs.close()
        return Host(folder, image=self.image)

    def log_config(self, topic: str) -> LogConfig:
        return LogConfig.for_topic(self._config, self.image.topic_configs(topic))

    def apply(self, *records: Any) -> None:
        delta = MetadataDelta()
        for record in records:
            self.image.replay(record, delta)
        self.replicas.apply(delta, self.image)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        topic_id: UUID | None = None,
        replicas: tuple[int, ...] = (NODE_ID,),
        isr: tuple[int, ...] | None = None,
        leader: int = NODE_ID,
        config: Mapping[str, str] | None = None,
        directory_id: UUID | None = None,
    ) -> UUID:
        topic_id = topic_id or uuid5(NAMESPACE_DNS, name)
        self.apply(
            TopicRecord(name=name, topic_id=topic_id),
            *(
                ConfigRecord(resource_type=TOPIC, resource_name=name, name=key, value=value)
                for key, value in (config or {}).items()
            ),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=list(replicas),
                    directories=[directory_id or DIRECTORY_UNASSIGNED] * len(replicas),
                    isr=list(replicas if isr is None else isr),
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index in range(partitions)
            ),
        )
        return topic_id

    def change_partition(self, topic_id: UUID, index: int = 0, **changes: Any) -> None:
        self.apply(PartitionChangeRecord(topic_id=topic_id, partition_id=index, **changes))

    def delete_topic(self, topic_id: UUID) -> None:
        self.apply(RemoveTopicRecord(topic_id=topic_id))

    def set_config(self, topic: str, key: str, value: str) -> None:
        self.apply(ConfigRecord(resource_type=TOPIC, resource_name=topic, name=key, value=value))

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.replicas.get(topic, index)

    def append(self, topic: str, *values: bytes, index: int = 0, **fields: Any) -> int:
        """Append one batch; its first offset."""
        batch = memoryview(bytearray(batch_of(*values, now_ms=self.loop.now_ms, **fields)))
        info = self.partition(topic, index).append(batch, now_ms=self.loop.now_ms)
        return info.base_offset


def batch_of(*values: bytes, now_ms: int = 1_000_000, **fields: Any) -> bytes:
    """One batch of records with these values."""
    return encode_batch([(None, value, now_ms, ()) for value in values], **fields)
