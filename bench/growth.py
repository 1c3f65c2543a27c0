"""One node with very many partitions: how long it takes to make, stop, start and recover them.

A start is measured from the process's start until a record to one of the partitions is
acknowledged, a stop from SIGTERM until the process has ended. CPU is that of the node's process,
which says more than seconds where neighbours share the cores.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

from bench.calls import Connection, Unreachable
from bench.nodes import Node, Nodes

TOPIC = "many"
CREATED_AT_ONCE = 1_000
WRITTEN_AT_ONCE = 500
WAIT_SECONDS_MAX = 300.0
RETRY_SECONDS = 0.01
IDLE_SECONDS = 10.0
# Kafka's defaults: nothing here waits for a session to end, and a busy node must not lose its own.
SESSION = {"broker_session_timeout_ms": "9000", "broker_heartbeat_interval_ms": "2000"}


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a node with many partitions costs."""

    created: Cost
    written: Cost
    idle_cpu_percent: float
    memory_mb: float
    stopped: Cost
    started: Cost
    killed_started: Cost


def measure(cluster: Nodes, *, partitions: int, written: int) -> Growth:
    """Create `partitions`, write to `written` of them, stop, start, write, kill, start."""
    (node,) = cluster.nodes
    topics = [f"{TOPIC}-{number}" for number in range(-(-partitions // CREATED_AT_ONCE))]
    each = partitions // len(topics)
    filled = topics[: max(1, written // each)]

    def write() -> None:
        for topic in filled:
            for first in range(0, each, WRITTEN_AT_ONCE):
                indexes = range(first, min(each, first + WRITTEN_AT_ONCE))
                _until_all(lambda left, name=topic: _produced(node, name, left), indexes)

    created = _costs(node, lambda: _create(node, topics, each))
    wrote = _costs(node, write)
    idle = _costs(node, lambda: time.sleep(IDLE_SECONDS))
    memory = cluster.memory_mb()
    stopped = _stop(node)
    started = _start(node, filled[0])
    write()
    node.kill()
    return Growth(
        created=created,
        written=wrote,
        idle_cpu_percent=100 * idle.cpu_seconds / idle.seconds,
        memory_mb=memory,
        stopped=stopped,
        started=started,
        killed_started=_start(node, filled[0]),
    )


def seconds_until_written(cluster: Nodes, topic: str, *, partitions: int) -> float:
    """Until a record to every partition of a topic is acknowledged by all replicas."""
    started = time.monotonic()

    def produce(left: set[int]) -> set[int]:
        with Connection(cluster.nodes[0].port) as to:
            found = to.partitions(topic)
        # Leaders may change meanwhile.
        return {
            index
            for node in cluster.nodes
            for index in _produced(
                node, topic, {each for each in left if found[each].leader_id == node.node_id}
            )
        } | {index for index in left if found[index].leader_id < 0}

    _until_all(produce, range(partitions))
    return time.monotonic() - started


def _create(node: Node, topics: list[str], partitions: int) -> None:
    with Connection(node.port) as to:
        for topic in topics:
            if code := to.create_topic(topic, partitions=partitions, replicas=1):
                raise RuntimeError(f"{topic} was not created: error {code}")
    for topic in topics:
        wait_until_served(node.port, topic, partitions)


def wait_until_served(port: int, topic: str, partitions: int) -> None:
    """CreateTopics is answered before the logs are there."""
    _until_all(lambda left: _listed(port, topic, left), range(partitions))


def _produced(node: Node, topic: str, indexes: set[int]) -> set[int]:
    if not indexes:
        return set()
    with Connection(node.port) as to:
        return to.produce(topic, sorted(indexes))


def _listed(port: int, topic: str, indexes: set[int]) -> set[int]:
    with Connection(port) as to:
        return to.offsets_missing(topic, sorted(indexes))


def _until_all(attempt: Callable[[set[int]], set[int]], indexes: Iterable[int]) -> None:
    """Repeat `attempt`, which returns what it could not do, until that is nothing."""
    left = set(indexes)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while left:
        left = attempt(left)
        if left:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(left)} partitions are not served")
            time.sleep(RETRY_SECONDS)


def _costs(node: Node, work: Callable[[], object]) -> Cost:
    before, started = _cpu_seconds(node), time.monotonic()
    work()
    return Cost(time.monotonic() - started, _cpu_seconds(node) - before)


def _cpu_seconds(node: Node) -> float:
    assert node.process is not None
    times = psutil.Process(node.process.pid).cpu_times()
    return times.user + times.system


def _stop(node: Node) -> Cost:
    assert node.process is not None
    before, started = _cpu_seconds(node), time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    # The process's whole CPU time is known only to the one that reaps it.
    _, status, usage = os.wait4(node.process.pid, 0)
    node.process.returncode = os.waitstatus_to_exitcode(status)
    if node.process.returncode not in (0, 128 + signal.SIGTERM):
        raise RuntimeError(f"the node stopped with {node.process.returncode}")
    return Cost(time.monotonic() - started, usage.ru_utime + usage.ru_stime - before)


def _start(node: Node, topic: str) -> Cost:
    started = time.monotonic()
    node.start()
    node.wait_until_listening()
    while True:
        try:
            if not _produced(node, topic, {0}):
                return Cost(time.monotonic() - started, _cpu_seconds(node))
        except Unreachable:
            pass
        if time.monotonic() > started + WAIT_SECONDS_MAX:
            raise RuntimeError("the node acknowledges nothing after its start")
        time.sleep(0.005)
