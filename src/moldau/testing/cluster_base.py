"""Brokers under test: a cluster of real ones on fresh ports of 127.0.0.1, with throw-away data.

`cluster.py` has the classes that tests use. Invariants: nothing of a cluster survives it, neither a
process nor a file; an address stays a node's own, also while the node is down; and two clusters
with one seed draw the same random numbers.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypedDict, TypeVar, Unpack

from moldau.testing import registry
from moldau.testing.certificates import Certificates
from moldau.testing.disturbance import Disturbance
from moldau.testing.errors import BrokerError
from moldau.testing.nodes import Node
from moldau.testing.security import ADMIN, ClusterSecurity, SecurityProtocol
from moldau.testing.settings import HOST, data_folder
from moldau.testing.template import Template, start_template
from moldau.testing.waiting import wait_until

if TYPE_CHECKING:
    from os import PathLike

    from moldau.client.consumer_record import ConsumerRecord
    from moldau.testing.data import DataClient
    from moldau.testing.groups import Group

__all__ = ["ClusterBase", "ClusterOptions", "RecordOptions", "Topic"]

T = TypeVar("T")

BROKERS_MAX: Final = 20
LOG_DIRS_MAX: Final = 10


class RecordOptions(TypedDict, total=False):
    """What `Cluster.records` takes besides the topic."""

    count: int | None
    timeout: float
    partition: int | None
    isolation_level: Literal["read_committed", "read_uncommitted"]


class ClusterOptions(TypedDict, total=False):
    """How a cluster is made; see `Cluster`."""

    config: Mapping[str, Any] | None
    topics: Mapping[str, int] | Iterable[str]
    seed: int | None
    log_dirs: int
    data: str | PathLike[str] | None
    log_level: str
    security: SecurityProtocol
    users: Mapping[str, str] | None


class ClusterBase(Disturbance):
    """Several brokers as one cluster; up to three of them are controllers as well."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: Mapping[str, Any] | None = None,
        topics: Mapping[str, int] | Iterable[str] = (),
        seed: int | None = None,
        log_dirs: int = 1,
        data: str | PathLike[str] | None = None,
        log_level: str = "INFO",
        security: SecurityProtocol = "PLAINTEXT",
        users: Mapping[str, str] | None = None,
    ) -> None:
        """`config` has server.properties for all nodes, `topics` the names and partition counts to
        create; `seed` is the source of random faults and ids, `data` the parent directory. With
        `security` all listeners have TLS (SSL), logins of `users` with their passwords
        (SASL_PLAINTEXT) or both (SASL_SSL): `client_config` is what a client needs then."""
        if not 1 <= brokers <= BROKERS_MAX:
            raise ValueError(f"brokers={brokers}: a cluster under test has 1 to {BROKERS_MAX}")
        if not 1 <= log_dirs <= LOG_DIRS_MAX:
            raise ValueError(f"log_dirs={log_dirs}: a node under test has 1 to {LOG_DIRS_MAX}")
        self.seed = secrets.randbelow(2**32) if seed is None else seed
        self.config: Mapping[str, str] = {
            key: _property(value) for key, value in (config or {}).items()
        }
        self.log_dirs = log_dirs
        self.log_level = log_level
        self._security = ClusterSecurity(security, users)
        self.cluster_id = _cluster_id(self.seed)
        self.folder = ""
        self.template: Template | None = None
        self._parent = data
        self._topics = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        self._reserved: list[socket.socket] = []
        self._data: DataClient | None = None
        self._lock = threading.Lock()
        self._nodes = {node_id: Node(self, node_id) for node_id in range(1, brokers + 1)}

    @property
    def nodes(self) -> dict[int, Node]:
        return self._nodes

    def reserve_ports(self) -> tuple[int, int]:
        """Two ports that stay this cluster's own: bound here, though nobody listens, they are given
        to no one else, and a node that is down refuses connections as it should."""
        return self._reserve_port(), self._reserve_port()

    def _reserve_port(self) -> int:
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((HOST, 0))
        self._reserved.append(holder)
        return int(holder.getsockname()[1])

    # Life.

    def start(self) -> Self:
        """Returns when every node serves and knows the others."""
        if self.folder:
            raise BrokerError("this cluster was already started: create a new one")
        self.folder = data_folder(self._parent)
        registry.opened(self)
        try:
            self._security.make_files(Path(self.folder) / "certificates")
            self.config = {**self._security.node_properties, **self.config}
            # The first asks for votes: the others should be there by then.
            for node in reversed(self.nodes.values()):
                node.spawn()
            for node in self.nodes.values():
                node.wait_until_ready()
            self.wait_until_whole()
            if self._security.uses_sasl:
                self._security.add_scram_users(self.client_config)
            for name, partitions in self._topics.items():
                self.create_topic(name, partitions)
        except BaseException:
            self.close()
            raise
        return self

    def take_template(self) -> None:
        """The process to fork nodes from; should it have died, all nodes have, and there is a new
        one."""
        template = start_template()
        if template is not self.template:
            self.template = template
            template.own(self.folder)

    def close(self) -> None:
        """End all nodes and remove their data; nothing is written any more."""
        if self._data is not None:
            self._data.close()
            self._data = None
        registry.closed(self)
        template = self.template
        if template is not None and template.usable:
            for node in self.nodes.values():
                with suppress(BrokerError):
                    node.kill()
            template.remove(self.folder)
        elif template is not None and template.pid == os.getpid():
            # The template has ended, and all nodes with it.
            shutil.rmtree(self.folder, ignore_errors=True)
        for holder in self._reserved:
            holder.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.bootstrap_servers} seed={self.seed}>"

    # Addresses.

    @property
    def bootstrap_servers(self) -> str:
        """What every client takes as bootstrap.servers."""
        return ",".join(node.address for node in self.nodes.values())

    @property
    def client_config(self) -> dict[str, str]:
        """The settings of a client that reaches the cluster, by Kafka's names."""
        return self.client_config_of(ADMIN)

    def client_config_of(self, user: str, *, mechanism: str = "PLAIN") -> dict[str, str]:
        """The same for one of the `users`, who logs in by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""
        config = {"bootstrap.servers": self.bootstrap_servers}
        return config | self._security.client_config(user, mechanism)

    @property
    def security(self) -> str:
        """The security protocol of all listeners."""
        return self._security.protocol

    @property
    def certificates(self) -> Certificates | None:
        """None without TLS."""
        return self._security.certificates

    @property
    def logs(self) -> str:
        """What all nodes have logged, one node after the other."""
        return "\n".join(
            f"--- node {node.id}\n{node.logs}" for node in self.nodes.values() if node.logs
        )

    # Waiting.

    def wait_until(
        self, condition: Callable[[], T], *, timeout: float = 15.0, what: str | None = None
    ) -> T:
        """See `moldau.testing.wait_until`."""
        return wait_until(condition, timeout=timeout, what=what)

    def wait_until_whole(self, timeout: float = 30.0) -> None:
        """Until all nodes that run know each other as usable; paused ones are not asked."""
        running = [node for node in self.nodes.values() if node.running]
        wanted = {node.id for node in running if not node.paused}

        def whole() -> bool:
            return all(wanted <= node.known_brokers() for node in running if not node.paused)

        wait_until(whole, timeout=timeout, interval=0.002, what=f"brokers {sorted(wanted)}")

    # Data.

    @property
    def data(self) -> DataClient:
        """The client behind `create_topic`, `produce`, `records` and groups."""
        with self._lock:
            if self._data is None:
                from moldau.testing.data import DataClient

                self._data = DataClient(self.client_config)
            return self._data

    @property
    def topics(self) -> dict[str, int]:
        """Topics and how many partitions they have, without Kafka's own."""
        return self.data.topics()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Topic:
        """Returns when every node serves the topic."""
        configs = {key: _property(value) for key, value in (config or {}).items()}
        self.data.create_topic(name, partitions, replication_factor, configs)
        return Topic(name, self)

    def delete_topic(self, name: str) -> None:
        """Returns when the topic is deleted."""
        self.data.delete_topic(name)

    def leader(self, topic: str, partition: int = 0) -> Node:
        """The node that leads a partition."""
        return self.nodes[self.data.leader(topic, partition)]

    def coordinator(self, group: str) -> Node:
        """The node that coordinates a group."""
        return self.nodes[self.data.group_coordinator(group)]

    def transaction_coordinator(self, transactional_id: str) -> Node:
        """The node that coordinates the transactions of a producer."""
        return self.nodes[self.data.transaction_coordinator(transactional_id)]

    def controller(self) -> Node:
        """The node whose controller is active."""
        return self.nodes[self.data.controller()]

    def produce(self, topic: str, *values: Any, key: Any = None, partition: int = 0) -> list[int]:
        """Write records with these values (bytes, text, None, or anything JSON can express) and one
        key; returns their offsets."""
        return self.data.produce(topic, values, key=key, partition=partition)

    def records(
        self,
        topic: str,
        *,
        count: int | None = None,
        timeout: float = 15.0,
        partition: int | None = None,
        isolation_level: Literal["read_committed", "read_uncommitted"] = "read_uncommitted",
    ) -> list[ConsumerRecord]:
        """All records of a topic, partition by partition; with `count` it waits until there are as
        many."""
        return self.data.records(
            topic,
            count=count,
            timeout=timeout,
            partition=partition,
            committed=_is_committed(isolation_level),
        )

    def values(self, topic: str, **options: Unpack[RecordOptions]) -> list[bytes | None]:
        """The values of all records of a topic; options as of `records`."""
        return [record.value for record in self.records(topic, **options)]

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the next record, by partition."""
        return self.data.end_offsets(topic)

    def group(self, group_id: str) -> Group:
        """A consumer, share or classic group: its state, its members, and what can happen to it."""
        from moldau.testing.groups import Group

        return Group(self.data, group_id)

    def data_of(self, topic: str, partition: int = 0) -> list[Path]:
        """The directories of a partition's replicas on disk."""
        return [
            folder / f"{topic}-{partition}"
            for node in self.nodes.values()
            for folder in node.log_dirs
            if (folder / f"{topic}-{partition}").is_dir()
        ]


class Topic(str):
    """A string, its name: it can be passed to any client."""

    cluster: ClusterBase

    def __new__(cls, name: str, cluster: ClusterBase) -> Topic:
        topic = super().__new__(cls, name)
        topic.cluster = cluster
        return topic

    @property
    def name(self) -> str:
        return str(self)

    def produce(self, *values: Any, key: Any = None, partition: int = 0) -> list[int]:
        """Write records; returns their offsets."""
        return self.cluster.produce(self, *values, key=key, partition=partition)

    def records(self, **options: Unpack[RecordOptions]) -> list[ConsumerRecord]:
        """All records; options as of `Cluster.records`."""
        return self.cluster.records(self, **options)

    def values(self, **options: Unpack[RecordOptions]) -> list[bytes | None]:
        """The values of all records; options as of `Cluster.records`."""
        return self.cluster.values(self, **options)

    def end_offsets(self) -> dict[int, int]:
        return self.cluster.end_offsets(self)

    def leader(self, partition: int = 0) -> Node:
        return self.cluster.leader(self, partition)

    def delete(self) -> None:
        self.cluster.delete_topic(self)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # In another process it is a name and nothing else.
        return str, (str(self),)


def _property(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _is_committed(isolation_level: str) -> bool:
    if isolation_level not in ("read_committed", "read_uncommitted"):
        raise ValueError(
            f'isolation_level={isolation_level!r}: "read_committed" or "read_uncommitted"'
        )
    return isolation_level == "read_committed"


def _cluster_id(seed: int) -> str:
    import random
    from uuid import UUID

    from moldau.wire.uuids import uuid_to_text

    return uuid_to_text(UUID(bytes=random.Random(f"{seed}/cluster").randbytes(16), version=4))
