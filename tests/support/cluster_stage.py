"""Three nodes in the place of one broker: scenarios that were written for one run on a cluster.

`--cluster` puts this where a scenario starts its broker. A restart is that of one node, each time
another; coordinators move between nodes all the time; single requests go to the node that leads
the partition, or coordinates the group or transaction, that they are about.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from moldau.wire.apis import ApiKey
from moldau.wire.message import Message
from moldau.wire.messages import AlterPartitionReassignmentsRequest, ElectLeadersRequest
from support.cluster import (
    GROUP_COORDINATOR,
    TRANSACTION_COORDINATOR,
    ClusterUnderTest,
)
from support.cluster_node import lasting_port
from support.processes import BrokerProcess
from support.raw import ROUTES

MOVE_SECONDS = 1.0
# A session begins anew where a coordinator has moved to. A member whose farewell was lost by a move
# is missed only if the next one comes later.
REST_SECONDS = 12.0
SESSION_MS = 6_000
SESSIONS = tuple(
    f"group.{kind}.{key}"
    for kind in ("consumer", "share", "streams")
    for key in ("min.session.timeout.ms", "session.timeout.ms")
)
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
PREFERRED = 0

# Where a request names its partition: the lists on the way down, then the fields.
_TOPIC_LISTS = ("topic_data", "topics")
_PARTITION_LISTS = ("partition_data", "partitions", "partition_indexes")
_PARTITION_FIELDS = ("index", "partition", "partition_index")
_TO_LEADERS = {
    ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.DELETE_RECORDS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.DESCRIBE_PRODUCERS, ApiKey.WRITE_TXN_MARKERS,
}  # fmt: skip
_TO_TRANSACTION_COORDINATORS = {
    ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN, ApiKey.DESCRIBE_TRANSACTIONS,
}  # fmt: skip
_TO_NAMED_BROKERS = {
    ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS,
}  # fmt: skip
_BROKER_CONFIG = 4
_GROUP_FIELDS = ("group_id", "groups", "groups_names", "group_ids")
_TRANSACTION_FIELDS = ("transactional_id", "transactional_ids", "v3_and_below_transactional_id")


class ClusterAsBroker(BrokerProcess):
    """See the module. `port` is nobody's: requests to it are sent where they belong."""

    def __init__(self, kind: str, folder: Path, settings: Mapping[str, str]) -> None:
        kept = {key: value for key, value in settings.items() if key != "node.id"}
        for key in SESSIONS:
            kept[key] = str(min(SESSION_MS, int(kept.get(key, SESSION_MS))))
        self.cluster = ClusterUnderTest(kind, folder, kept)
        self._mover = Mover(self.cluster)
        self._turns = itertools.cycle(self.cluster.nodes)
        self._away: int | None = None
        self._sessions: dict[str, int | None] = {}
        self._is_started = False
        super().__init__([], lasting_port(), folder / "cluster.log")

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    @property
    def pid(self) -> int:
        raise RuntimeError("a cluster is several processes")

    @property
    def data_folders(self) -> list[Path]:
        folders = [node.properties["log.dirs"].split(",") for node in self.cluster.nodes.values()]
        return [Path(each) for of_node in folders for each in of_node]

    def folder_of(self, topic: str, index: int = 0) -> Path:
        return self.cluster.log_folder(self.cluster.leader(topic, index), topic, index)

    def start(self) -> ClusterAsBroker:
        """All nodes, or the one that is away."""
        if not self._is_started:
            self.cluster.start()
            self._is_started = True
            ROUTES[self.port] = self._route
            self._mover.start()
        elif self._away is not None:
            self.cluster.start_node(self._away)
            self._away = None
            self.cluster.wait_until_whole()
        return self

    def stop(self) -> int:
        self._away = next(self._turns)
        self.cluster.stop(self._away)
        return 0

    def kill(self) -> None:
        self._away = next(self._turns)
        self.cluster.kill(self._away)

    def output(self) -> str:
        return self.cluster.reports()

    def __enter__(self) -> ClusterAsBroker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        ROUTES.pop(self.port, None)
        try:
            self._mover.stop()
        finally:
            self.cluster.close()

    def _route(self, key: ApiKey, request: Message) -> int:
        """The port of the node that a request is for."""
        node_id = None
        if key in _TO_LEADERS:
            node_id = self._leader(request)
            if member_id := getattr(request, "member_id", None):
                # Of a share session only the first request names the partitions.
                node_id = self._sessions[member_id] = node_id or self._sessions.get(member_id)
        elif key in _TO_NAMED_BROKERS:
            node_id = _named_broker(request)
        elif key in _TO_TRANSACTION_COORDINATORS:
            name = _first(request, _TRANSACTION_FIELDS)
            node_id = self._coordinator(name, TRANSACTION_COORDINATOR)
        elif key not in (ApiKey.METADATA, ApiKey.FIND_COORDINATOR):
            node_id = self._coordinator(_first(request, _GROUP_FIELDS), GROUP_COORDINATOR)
        return self.cluster.nodes[node_id or self.cluster.serving[0]].port

    def _coordinator(self, name: Any, kind: int) -> int | None:
        return self.cluster.coordinator(name, kind) if isinstance(name, str) and name else None

    def _leader(self, request: Message) -> int | None:
        for topic in _first(request, _TOPIC_LISTS) or []:
            name = self._topic_name(topic)
            for partition in _first(topic, _PARTITION_LISTS) or []:
                listed = isinstance(partition, int)
                index = partition if listed else _first(partition, _PARTITION_FIELDS)
                if name and isinstance(index, int):
                    state = self.cluster.partitions(name).get((name, index))
                    return state.leader if state and state.leader >= 0 else None
        return None

    def _topic_name(self, topic: Message) -> str | None:
        name = _first(topic, ("name", "topic"))
        if name:
            return str(name)
        topic_id = getattr(topic, "topic_id", None)
        return self.cluster.topic_names().get(topic_id) if topic_id else None


def _named_broker(request: Any) -> int | None:
    for resource in request.resources:
        if resource.resource_type == _BROKER_CONFIG and resource.resource_name:
            return int(resource.resource_name)
    return None


def _first(message: Any, names: tuple[str, ...]) -> Any:
    """The first of these fields that holds something; of a list of names, its first."""
    for name in names:
        value = getattr(message, name, None)
        if isinstance(value, list) and value and name in (*_GROUP_FIELDS, "transactional_ids"):
            head = value[0]
            value = head if isinstance(head, str) else getattr(head, "group_id", None)
        if value not in (None, "", []):
            return value
    return None


class Mover:
    """Moves the leaders of internal topics' partitions, and so coordinators, one after another."""

    def __init__(self, cluster: ClusterUnderTest, seed: int = 20_264) -> None:
        self.moves = 0
        self._cluster = cluster
        self._chance = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._moved_at: dict[tuple[str, int], float] = {}
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(60)
        if self.failure is not None:
            raise AssertionError(f"coordinators were not moved: {self.failure!r}")

    def _work(self) -> None:
        # A pace: clients shall come on between two moves.
        while not self._stop.wait(MOVE_SECONDS):
            try:
                # Nodes are stopped and killed meanwhile: then it is not moved this time.
                with suppress(OSError):
                    self._move()
            except BaseException as failure:
                self.failure = failure
                return

    def _move(self) -> None:
        now = time.monotonic()
        states = {
            at: state for at, state in self._cluster.partitions().items()
            if at[0] in INTERNAL and state.is_whole and len(state.replicas) > 1
            and now - self._moved_at.get(at, 0.0) > REST_SECONDS
        }  # fmt: skip
        if not states:
            return
        (topic, index), state = self._chance.choice(sorted(states.items()))
        leader = self._chance.choice([each for each in state.replicas if each != state.leader])
        replicas = [leader, *(each for each in state.replicas if each != leader)]
        self._moved_at[topic, index] = now
        self._lead_by_first(topic, index, replicas)
        self.moves += 1

    def _lead_by_first(self, topic: str, index: int, replicas: list[int]) -> None:
        reassigned = AlterPartitionReassignmentsRequest.ReassignablePartition(
            partition_index=index, replicas=replicas
        )
        asked = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            topics=[
                AlterPartitionReassignmentsRequest.ReassignableTopic(
                    name=topic, partitions=[reassigned]
                )
            ],
        )
        self._cluster.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, asked)
        elected = ElectLeadersRequest(
            election_type=PREFERRED,
            timeout_ms=10_000,
            topic_partitions=[ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[index])],
        )
        self._cluster.ask(ApiKey.ELECT_LEADERS, 2, elected)
