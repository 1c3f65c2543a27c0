"""What clients notice when a node dies, returns, or meets many of them at once.

All settings are the defaults, so a broker's session lasts 9 s. Time without a leader runs for each
partition from the SIGKILL until a surviving broker's Metadata shows another leader; the silence of
a producer is the longest time that any partition went without an acknowledgement. When a broker is
registered is the append time of its record in the metadata log, read from the log's file.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from confluent_kafka import Producer as LibrdkafkaProducer

from bench import nodes, servers
from bench.calls import Connection, Unreachable
from bench.cluster import POLL_SECONDS, _expired, _readable_batches, create
from bench.nodes import Node, Nodes
from moldau.client import Producer as MoldauProducer
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.framing import encode_request_frame
from moldau.wire.messages import ApiVersionsRequest, RegisterBrokerRecord

DEFAULTS = {
    "broker_session_timeout_ms": "9000",
    "broker_heartbeat_interval_ms": "2000",
}
PARTITIONS = 12
CONNECTIONS = 2_000
CONNECT_SECONDS_MAX = 120.0
SEND_SECONDS = 0.01
WATCH_SECONDS = 0.02
# Before a kill, so that what follows is seen against something.
CALM_SECONDS = 1.0
WAIT_SECONDS_MAX = 60.0


# Producers.


class Acknowledgements:
    """When each partition last took a record, and when before that."""

    def __init__(self, partitions: int) -> None:
        self._times: dict[int, list[float]] = {index: [] for index in range(partitions)}
        self.failures = 0

    def add(self, partition: int) -> None:
        self._times[partition].append(time.time())

    def all_since(self, moment: float) -> bool:
        return all(times and times[-1] > moment for times in self._times.values())

    def silence_ms(self, since: float) -> float:
        """The longest time that any partition went without one."""
        gaps = [
            later - earlier
            for times in self._times.values()
            for earlier, later in pairwise([since, *(each for each in times if each > since)])
        ]
        return 1e3 * max(gaps)


@contextmanager
def _librdkafka(cluster: Nodes, seen: Acknowledgements) -> Iterator[Callable[[str, int], None]]:
    producer = LibrdkafkaProducer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0}
    )

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            seen.add(message.partition())
        else:
            seen.failures += 1

    def send(topic: str, partition: int) -> None:
        producer.produce(topic, b"x" * 100, partition=partition, on_delivery=delivered)
        producer.poll(0)

    yield send
    producer.flush(WAIT_SECONDS_MAX)


@contextmanager
def _moldau(cluster: Nodes, seen: Acknowledgements) -> Iterator[Callable[[str, int], None]]:
    with MoldauProducer(bootstrap_servers=cluster.bootstrap) as producer:

        def delivered(metadata: Any, error: BaseException | None) -> None:
            if error is None:
                seen.add(metadata.partition)
            else:
                seen.failures += 1

        def send(topic: str, partition: int) -> None:
            producer.send(topic, b"x" * 100, partition=partition, on_delivery=delivered)

        yield send


CLIENTS = {"librdkafka": _librdkafka, "moldau": _moldau}


@dataclass(slots=True)
class Senders:
    """One idempotent producer of each kind, at its default settings, to every partition."""

    cluster: Nodes
    topic: str
    partitions: int
    seen: dict[str, Acknowledgements] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = []
        for kind in CLIENTS:
            self.seen[kind] = Acknowledgements(self.partitions)
            threads.append(threading.Thread(target=self._send, args=(kind,)))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _send(self, kind: str) -> None:
        with CLIENTS[kind](self.cluster, self.seen[kind]) as send:
            while not self._stop.wait(SEND_SECONDS):
                for partition in range(self.partitions):
                    send(self.topic, partition)

    def wait_for_all(self, moment: float) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not all(each.all_since(moment) for each in self.seen.values()):
            _expired(deadline, f"{self.cluster.name}: acknowledgements of every partition")
            time.sleep(POLL_SECONDS)


# Death.


@dataclass(frozen=True, slots=True)
class Death:
    """Of a node under load: by partition that it led, and by producer."""

    leaderless_ms: list[float]
    silence_ms: dict[str, float]


def deaths(
    cluster: Nodes, topic: str, *, partitions: int, rounds: int, of_controller: bool
) -> list[Death]:
    """SIGKILL a node that leads partitions, and is the active controller or is not."""
    results = []
    for number in range(rounds):
        controller = cluster.active_controller()
        others = [node for node in cluster.nodes if node is not controller]
        victim = controller if of_controller else others[number % len(others)]
        _lead_evenly(cluster, topic, partitions)
        senders = Senders(cluster, topic, partitions)
        with senders.running():
            results.append(_death(cluster, topic, victim, senders))
        cluster.restart(victim)
    return results


def _lead_evenly(cluster: Nodes, topic: str, partitions: int) -> None:
    """Every node leads its share, the victim too."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        with Connection(cluster.running[0].port) as to:
            whole = all(len(each.isr_nodes) == 3 for each in to.partitions(topic).values())
            if whole and to.elect_preferred(topic, range(partitions)):
                return
        _expired(deadline, f"{cluster.name}: preferred leaders")
        time.sleep(0.1)


def _death(cluster: Nodes, topic: str, victim: Node, senders: Senders) -> Death:
    senders.wait_for_all(time.time() + CALM_SECONDS)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    with ExitStack() as stack:
        survivors = [
            stack.enter_context(Connection(node.port))
            for node in cluster.nodes
            if node is not victim
        ]
        found = survivors[0].partitions(topic)
        left = {index for index, each in found.items() if each.leader_id == victim.node_id}
        killed = victim.kill()
        leaderless: list[float] = []
        while left:
            for to in survivors:
                found = to.partitions(topic)
                led = {i for i in left if found[i].leader_id not in (-1, victim.node_id)}
                leaderless += [1e3 * (time.time() - killed)] * len(led)
                left -= led
            _expired(deadline, f"{cluster.name}: new leaders")
            # The survivors have work to do.
            time.sleep(WATCH_SECONDS)
    senders.wait_for_all(time.time())
    silence = {kind: seen.silence_ms(killed) for kind, seen in senders.seen.items()}
    return Death(leaderless, silence)


# Return.


def returns(cluster: Nodes, *, rounds: int, killed: bool) -> list[tuple[float, float]]:
    """From the start of a process, after a stop in order or a SIGKILL, until its broker is
    registered, and until the others' Metadata names it; seconds."""
    results = []
    for number in range(rounds):
        controller = cluster.active_controller()
        others = [node for node in cluster.nodes if node is not controller]
        node, witness = others if number % 2 else others[::-1]
        node.kill() if killed else node.stop()
        started = time.time()
        node.start()
        _wait_until_named(cluster, witness, node.node_id)
        named = time.time()
        node.wait_until_listening()
        cluster.settle()
        registered = registration_time(controller, node.node_id, since=started)
        results.append((registered - started, named - started))
    return results


def _wait_until_named(cluster: Nodes, witness: Node, broker_id: int) -> None:
    """Gone first: a broker that was killed may still be named for a while."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    with Connection(witness.port) as to:
        for wanted in (False, True):
            while (broker_id in {each.node_id for each in to.metadata().brokers}) is not wanted:
                _expired(deadline, f"{cluster.name}: broker {broker_id}")
                time.sleep(POLL_SECONDS)


def registration_time(controller: Node, broker_id: int, *, since: float) -> float:
    """When the active controller wrote that it registers the broker."""
    for segment in sorted(controller.metadata_log.glob("*.log"), reverse=True):
        for batch in _readable_batches(segment.read_bytes()):
            moment = batch.append_time_ms / 1e3
            if moment >= since and any(
                isinstance(record, RegisterBrokerRecord) and record.broker_id == broker_id
                for record in batch.records
            ):
                return moment
    raise RuntimeError(f"no record registers broker {broker_id} in {controller.metadata_log}")


# Many clients.


def connect_one_by_one(port: int, count: int = CONNECTIONS) -> float:
    """Seconds until so many connections, opened one after the other, have all been answered."""
    started = time.monotonic()
    with ExitStack() as stack:
        opened = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS_MAX)
            opened.append(stack.enter_context(connection))
        _ask_all(opened)
        return time.monotonic() - started


def connect_at_once(port: int, count: int = CONNECTIONS) -> float:
    """As above, with all connections begun before the first is waited for."""
    started = time.monotonic()
    with ExitStack() as stack:
        begun = []
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
            begun.append(connection)
        _wait_all(begun, selectors.EVENT_WRITE)
        _ask_all(begun)
        return time.monotonic() - started


def _ask_all(connections: list[socket.socket]) -> None:
    request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    frame = encode_request_frame(API_BY_KEY[ApiKey.API_VERSIONS], 3, 1, "bench", request)
    for connection in connections:
        connection.sendall(frame)
    _wait_all(connections, selectors.EVENT_READ)
    for connection in connections:
        if len(connection.recv(4)) < struct.calcsize(">i"):
            raise Unreachable("a connection was closed instead of answered")


def _wait_all(connections: list[socket.socket], event: int) -> None:
    deadline = time.monotonic() + CONNECT_SECONDS_MAX
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, event)
        while selector.get_map():
            for key, _ in selector.select(1.0):
                selector.unregister(key.fileobj)
            _expired(deadline, f"{len(connections)} connections")


# All of it.


class Figure(NamedTuple):
    what: str
    unit: str
    value: float
    aim: str = ""


def measure(name: str, *, rounds: int) -> list[Figure]:
    """The figures of "moldau" or "kafka", always the same in the same order."""
    figures: list[Figure] = []
    with nodes.running(name, **DEFAULTS) as running:
        create(running, "failover", partitions=PARTITIONS, replicas=3)
        for victim in ("broker", "active controller"):
            found = deaths(
                running,
                "failover",
                partitions=PARTITIONS,
                rounds=rounds,
                of_controller=victim == "active controller",
            )
            figures += _of_deaths(victim, found)
        for end in ("stopped", "killed"):
            back = returns(running, rounds=max(2, rounds // 4), killed=end == "killed")
            registered, named = (statistics.median(times) for times in zip(*back, strict=True))
            figures.append(Figure(f"{end} and started again: registered", "s", registered, "<= 1"))
            figures.append(Figure(f"{end} and started again: others name it", "s", named))
    with (servers.moldau if name == "moldau" else servers.apache_kafka)() as server:
        connect_one_by_one(server.port, 10)
        for how, connect in (("one by one", connect_one_by_one), ("at once", connect_at_once)):
            what = f"{CONNECTIONS:,} connections, {how}"
            figures.append(Figure(what, "s", connect(server.port), "< 1"))
    return figures


def _of_deaths(victim: str, found: list[Death]) -> list[Figure]:
    leaderless = [ms for death in found for ms in death.leaderless_ms]
    without = f"{victim} killed: partition without a leader"
    figures = [
        Figure(f"{without}, median", "ms", statistics.median(leaderless), "< 700"),
        Figure(f"{without}, worst", "ms", max(leaderless), "<= 1,500"),
    ]
    for client in CLIENTS:
        silences = [death.silence_ms[client] for death in found]
        silent = f"{victim} killed: {client} producer silent"
        figures.append(Figure(f"{silent}, median", "ms", statistics.median(silences)))
        figures.append(Figure(f"{silent}, worst", "ms", max(silences)))
    return figures
