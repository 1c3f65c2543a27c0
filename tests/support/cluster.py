"""Clusters under test: real processes on 127.0.0.1, of Moldau or of Apache Kafka, or of both.

Nodes are acted upon by their process ids. What the cluster looks like is asked over the protocol,
and waited for; nothing here sleeps for a time and hopes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)
from moldau.wire.uuids import random_uuid, uuid_to_text
from support.cluster_node import BROKER, CLUSTER_ID, CONTROLLER, ClusterNode
from support.processes import (
    kafka_missing,
    write_properties,
)
from support.proxy import CLIENTS, Proxy
from support.raw import RawConnection
from support.waiting import eventually

GROUP_COORDINATOR, TRANSACTION_COORDINATOR, SHARE_COORDINATOR = 0, 1, 2
WHOLE_SECONDS_MAX = 90.0
# A broker that stops when told to: Java says that a signal ended it.
STOPPED_WELL = (0, 143)

# The quorum has no leader for a moment, or a broker was missed for one.
NOT_YET = (
    ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_REPLICATION_FACTOR,
)  # fmt: skip

# What would take Kafka's defaults seconds takes less; internal topics are small and replicated.
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.wait.max.ms": "100",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "5000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.request.timeout.ms": "1000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True)
class PartitionState:
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


@dataclass(frozen=True)
class Shape:
    """Which nodes there are: by id their roles, and by id their kind where it is another one."""

    roles: Mapping[int, tuple[str, ...]] = field(
        default_factory=lambda: dict.fromkeys((1, 2, 3), (BROKER, CONTROLLER))
    )
    static_voters: bool = False
    with_proxy: bool = False
    racks: bool = True
    host: str = "127.0.0.1"
    """By which nodes and clients call a node; Kerberos wants a name."""


COMBINED = Shape()
SEPARATE = Shape(roles={
    **dict.fromkeys((1, 2, 3), (BROKER,)), **dict.fromkeys((101, 102, 103), (CONTROLLER,)),
})  # fmt: skip


class ClusterUnderTest:
    """Nodes of one cluster; `with` starts them all and stops whatever still runs."""

    def __init__(
        self,
        kind: str,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        shape: Shape = COMBINED,
        kinds: Mapping[int, str] | None = None,
    ) -> None:
        self.kind = kind
        self.folder = folder
        self.shape = shape
        self.settings = SETTINGS | dict(settings or {})
        self.nodes = {
            node_id: ClusterNode(
                node_id, roles, (kinds or {}).get(node_id, kind), folder / f"node-{node_id}",
                shape.with_proxy,
            )
            for node_id, roles in shape.roles.items()
        }  # fmt: skip
        self.proxy: Proxy | None = None
        self._directories = {
            node_id: uuid_to_text(random_uuid(random.SystemRandom().randbytes(16)))
            for node_id in self.controllers
        }
        for node in self.nodes.values():
            node.properties = self._properties(node)

    # Which nodes.

    @property
    def brokers(self) -> list[int]:
        return [id for id, node in self.nodes.items() if BROKER in node.roles]

    @property
    def controllers(self) -> list[int]:
        return [id for id, node in self.nodes.items() if CONTROLLER in node.roles]

    @property
    def serving(self) -> list[int]:
        """Brokers that run and are not paused."""
        return [
            id for id in self.brokers if self.nodes[id].is_running and not self.nodes[id].paused
        ]

    @property
    def bootstrap(self) -> str:
        ports = [self.nodes[node_id].port for node_id in self.brokers]
        return ",".join(f"{self.shape.host}:{port}" for port in ports)

    @property
    def controller_bootstrap(self) -> str:
        ports = [self.nodes[node_id].advertised["CONTROLLER"] for node_id in self.controllers]
        return ",".join(f"{self.shape.host}:{port}" for port in ports)

    def others(self, *than: int) -> list[int]:
        return [node_id for node_id in self.nodes if node_id not in than]

    # Start and stop.

    def _properties(self, node: ClusterNode) -> dict[str, str]:
        properties = {
            "process.roles": ",".join(node.roles),
            "node.id": str(node.node_id),
            "listeners": _addresses(node.listeners),
            "advertised.listeners": _addresses(node.advertised, self.shape.host),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(node.data),
        }
        if self.shape.static_voters:
            properties["controller.quorum.voters"] = ",".join(
                f"{id}@{self.shape.host}:{self.nodes[id].advertised['CONTROLLER']}"
                for id in self.controllers
            )
        else:
            properties["controller.quorum.bootstrap.servers"] = self.controller_bootstrap
        if self.shape.racks and BROKER in node.roles:
            properties["broker.rack"] = f"rack-{node.node_id}"
        return properties | self.settings

    def format(
        self, *how: str, cluster_id: str = CLUSTER_ID, only: Iterable[int] | None = None
    ) -> None:
        """Write the configuration files and format folders, each node's as its operator would."""
        nodes = [self.nodes[id] for id in (only or self.nodes)]
        for node in nodes:
            write_properties(node.config, node.properties)
        for node in nodes:
            if node.kind == "moldau":
                self._format(node, cluster_id, *how)
        javas = [node for node in nodes if node.kind != "moldau"]
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(lambda node: self._format(node, cluster_id, *how), javas))

    def format_new_folders(self, node_id: int) -> None:
        """What an operator does with a new disk of a node that exists."""
        self._format(self.nodes[node_id], CLUSTER_ID, "--ignore-formatted")

    def _format(self, node: ClusterNode, cluster_id: str, *how: str) -> None:
        if self.shape.static_voters:
            node.format(*how, cluster_id=cluster_id)
        elif CONTROLLER in node.roles:
            voters = ",".join(
                f"{id}@{self.shape.host}:{self.nodes[id].advertised['CONTROLLER']}:{directory}"
                for id, directory in self._directories.items()
            )
            node.format("--initial-controllers", voters, *how, cluster_id=cluster_id)
        else:
            node.format("--no-initial-controllers", *how, cluster_id=cluster_id)

    def start(self) -> ClusterUnderTest:
        if self.shape.with_proxy:
            self.proxy = Proxy().start()
            for node in self.nodes.values():
                for name, port in node.listeners.items():
                    self.proxy.serve(node.node_id, node.advertised[name], port)
        try:
            self.format()
            self.start_node(*self.nodes)
            self.wait_for_brokers()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End whatever still runs, at once: what a test wants of a clean stop it does itself."""
        for node in self.nodes.values():
            node.kill()
        if self.proxy is not None:
            self.proxy.close()

    def __enter__(self) -> ClusterUnderTest:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self, node_id: int) -> None:
        """SIGTERM, and the end that follows."""
        code = self.nodes[node_id].stop()
        assert code in STOPPED_WELL, f"{code}: {self.nodes[node_id].output()}"

    def hand_over(self, node_id: int) -> None:
        """Stop a node, which has moved what it leads before it goes: nobody has to miss it."""
        log = self.nodes[node_id].log
        said_before = log.stat().st_size
        self.stop(node_id)
        if self.nodes[node_id].kind == "moldau":
            said = log.read_bytes()[said_before:].decode(errors="replace")
            assert "controlled shutdown complete" in said, said

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.nodes[node_id].kill()

    def start_node(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.nodes[node_id].spawn()
        if self.proxy is not None:
            running = [node for node in self.nodes.values() if node.is_running]
            self.proxy.know({node.pid: node.node_id for node in running})
        for node_id in node_ids:
            self.nodes[node_id].wait_until_listening()

    def reports(self) -> str:
        """The ends of all nodes' output, for a failure's report."""
        return "\n".join(
            f"--- node {node.node_id} ({'runs' if node.is_running else 'ended'})\n{node.output()}"
            for node in self.nodes.values()
            if node.log.exists()
        )

    # What the cluster says.

    def ask(self, key: ApiKey, version: int, request: Message, node_id: int | None = None) -> Any:
        """Ask one node, or the first that answers."""
        failure: OSError | None = None
        for each in [node_id] if node_id is not None else self.serving:
            try:
                with RawConnection(self.nodes[each].port, timeout=10) as to:
                    return to.call(key, version, request)
            except OSError as error:
                failure = error
        raise failure or ConnectionError("no node serves")

    def partitions(self, *topics: str, node_id: int | None = None) -> dict[Any, PartitionState]:
        """All partitions as a node knows them, by topic and index."""
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics] or None
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
        answer = self.ask(ApiKey.METADATA, 12, request, node_id)
        return {
            (topic.name, part.partition_index): PartitionState(
                part.leader_id, part.leader_epoch, tuple(part.replica_nodes), tuple(part.isr_nodes)
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    def log_folder(self, node_id: int, topic: str, index: int) -> Path:
        """Where a node keeps a partition."""
        folders = self.nodes[node_id].properties["log.dirs"].split(",")
        (found,) = [
            path for path in (Path(each) / f"{topic}-{index}" for each in folders) if path.is_dir()
        ]
        return found

    def directory_id(self, node_id: int) -> str:
        """Of the folder with the metadata log."""
        return self._directories[node_id]

    def topic_names(self) -> dict[UUID, str]:
        answer = self.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))
        return {topic.topic_id: topic.name for topic in answer.topics}

    def leader(self, topic: str, index: int = 0) -> int:
        return self.partitions(topic)[topic, index].leader

    def unfenced(self, node_id: int | None = None) -> set[int]:
        request = DescribeClusterRequest(include_fenced_brokers=True)
        answer = self.ask(ApiKey.DESCRIBE_CLUSTER, 2, request, node_id)
        return {broker.broker_id for broker in answer.brokers if not broker.is_fenced}

    def quorum(self) -> Any:
        """What the leader of the metadata quorum says of it, asked without a broker in between."""
        partition = DescribeQuorumRequest.PartitionData(partition_index=0)
        topic = DescribeQuorumRequest.TopicData(
            topic_name="__cluster_metadata", partitions=[partition]
        )
        request = DescribeQuorumRequest(topics=[topic])
        found = []
        for node_id in self.controllers:
            node = self.nodes[node_id]
            if not node.is_running or node.paused:
                continue
            with (
                suppress(OSError),
                RawConnection(node.advertised["CONTROLLER"], timeout=5) as to,
            ):
                answer = to.call(ApiKey.DESCRIBE_QUORUM, 2, request)
                if not answer.error_code and not answer.topics[0].partitions[0].error_code:
                    found.append(answer.topics[0].partitions[0])
        # One that has been replaced may not know it yet.
        return max(found, key=lambda each: each.leader_epoch, default=None)

    def active_controller(self) -> int:
        return int(self.eventually(self.quorum, what="the quorum has a leader").leader_id)

    def coordinator(self, key: str, kind: int = GROUP_COORDINATOR) -> int:
        def find() -> int | None:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            (found,) = self.ask(ApiKey.FIND_COORDINATOR, 6, request).coordinators
            return None if found.error_code else int(found.node_id) + 1

        return eventually(self._tried(find), what=f"{key} has a coordinator") - 1

    # Waiting.

    def _tried(self, probe: Callable[[], Any]) -> Callable[[], Any]:
        """Nodes may come and go while they are asked."""

        def attempt() -> Any:
            try:
                return probe()
            except OSError:
                return None

        return attempt

    def eventually(
        self, probe: Callable[[], Any], *, what: str, seconds_max: float = WHOLE_SECONDS_MAX
    ) -> Any:
        try:
            return eventually(self._tried(probe), what=what, seconds_max=seconds_max)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.reports()}") from None

    def wait_for_brokers(self, *node_ids: int) -> None:
        """Until every running node knows these brokers, or all, as the ones to be used."""
        wanted = set(node_ids or self.brokers)
        self.eventually(
            lambda: all(self.unfenced(node_id) == wanted for node_id in self.serving),
            what=f"brokers {sorted(wanted)} are unfenced",
        )

    def wait_until_fenced(self, node_id: int) -> None:
        self.eventually(lambda: node_id not in self.unfenced(), what=f"broker {node_id} is fenced")

    def wait_for_leader(self, topic: str, index: int = 0, *, not_in: Iterable[int] = ()) -> int:
        """Until all running nodes name the same leader of a partition, and none of these."""
        excluded = {-1, *not_in}

        def agreed() -> int | None:
            known = {
                self.partitions(topic, node_id=node_id)[topic, index].leader
                for node_id in self.serving
            }
            return known.pop() + 1 if len(known) == 1 and not known & excluded else None

        what = f"{topic}-{index} has a leader, not of {sorted(excluded)}"
        return int(self.eventually(agreed, what=what)) - 1

    def wait_until_whole(self, *topics: str) -> None:
        """Every broker is back and every replica in sync, as every node sees it."""
        self.wait_for_brokers()

        def whole() -> bool:
            return all(
                state.is_whole
                for node_id in self.serving
                for state in self.partitions(*topics, node_id=node_id).values()
            )

        try:
            self.eventually(whole, what="every replica is in sync")
        except AssertionError as error:
            broken = {
                at: state for at, state in self.partitions(*topics).items() if not state.is_whole
            }
            raise AssertionError(f"{broken}\n{error}") from None

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        *,
        replication: int = 3,
        assignment: Sequence[Sequence[int]] = (),
    ) -> None:
        """Create and wait until every node serves it."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1 if assignment else partitions,
            replication_factor=-1 if assignment else replication,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(
                    partition_index=index, broker_ids=list(ids)
                )
                for index, ids in enumerate(assignment)
            ],
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in (config or {}).items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        attempts = itertools.count()

        def created() -> bool:
            number, serving = next(attempts), self.serving
            node_id = serving[number % len(serving)]
            (answer,) = self.ask(ApiKey.CREATE_TOPICS, 7, request, node_id).topics
            if answer.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and number > 0:
                # Made by an attempt whose answer did not come in time.
                return True
            assert answer.error_code in (ErrorCode.NONE, *NOT_YET), answer
            return answer.error_code == ErrorCode.NONE

        self.eventually(created, what=f"{name} is created")
        count = len(assignment) or partitions

        def known() -> bool:
            views = [self.partitions(name, node_id=node_id) for node_id in self.serving]
            return all(
                len(view) == count and all(state.is_whole for state in view.values())
                for view in views
            )

        self.eventually(known, what=f"{name} is known and in sync")

    # The network between nodes, with a proxy.

    def isolate(self, node_id: int, *, from_clients: bool = False) -> None:
        """No bytes between this node and the others, in either direction."""
        assert self.proxy is not None
        far = [*self.others(node_id), *([CLIENTS] if from_clients else [])]
        self.proxy.block({pair for each in far for pair in ((node_id, each), (each, node_id))})

    def silence(self, node_id: int, *, incoming: bool = False) -> None:
        """One way only: the others do not hear this node, or it does not hear them."""
        assert self.proxy is not None
        pairs = {(node_id, other) for other in self.others(node_id)}
        self.proxy.block({(b, a) for a, b in pairs} if incoming else pairs)

    def heal(self) -> None:
        assert self.proxy is not None
        self.proxy.block(set())


def _addresses(listeners: Mapping[str, int], host: str = "127.0.0.1") -> str:
    return ",".join(f"{name}://{host}:{port}" for name, port in listeners.items())


def cluster_for(
    request: pytest.FixtureRequest,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    shape: Shape = COMBINED,
) -> ClusterUnderTest:
    """Not started yet: of Moldau, or of Apache Kafka with --against-kafka."""
    return ClusterUnderTest(cluster_kind(request), folder, settings, shape)


def cluster_kind(request: pytest.FixtureRequest) -> str:
    if not request.config.getoption("--against-kafka"):
        return "moldau"
    if reason := kafka_missing():
        pytest.skip(reason)
    return "kafka"


@contextmanager
def always_whole(cluster: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    """What a test did to a cluster that others share is undone, also when it failed."""
    try:
        yield cluster
    finally:
        if cluster.proxy is not None:
            cluster.heal()
        for node in cluster.nodes.values():
            if node.paused:
                node.resume()
            if not node.is_running:
                cluster.start_node(node.node_id)
        cluster.wait_until_whole()
