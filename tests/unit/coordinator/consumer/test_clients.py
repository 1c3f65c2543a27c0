"""Simulated consumers, any order of events: nobody shares a partition, and all settle in the end.

A client does what consumers do: it drops what it is told to give up before it says so, takes
what it is given, sends what changed, and after an error or a lost answer says everything. The
coordinator may restart at any moment.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moldau.wire.errors import ApiError, ErrorCode

TOPICS = {"t": 4, "u": 3, "v": 1}
REBALANCE_MS = 30_000
JOIN_AGAIN = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
GONE_ALREADY = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
_STAGE: list[Any] = []


class Client:
    def __init__(self, stage: Any, name: str, instance: str | None) -> None:
        self.stage = stage
        self.name = name
        self.instance = instance
        self.starts = 0
        self.member_id = ""
        self.subscription: dict[str, Any] = {"names": ["t"]}
        self.owned: dict[UUID, set[int]] = {}
        self.stop()

    def stop(self) -> None:
        self.running = False
        self.epoch = 0
        self.owned = {}
        self.say_everything = True
        self.acknowledge = False

    def start(self) -> None:
        self.stop()
        self.running = True
        self.starts += 1
        self.member_id = f"{self.name}.{self.starts}"

    def heartbeat(self, lose_answer: bool = False) -> None:
        options: dict[str, Any] = {}
        if self.say_everything or self.epoch == 0:
            options = {"timeout_ms": REBALANCE_MS, "owned": self.owned, **self.subscription}
        elif self.acknowledge:
            options = {"owned": self.owned}
        try:
            response = self.stage.heartbeat(
                self.member_id, self.epoch, instance=self.instance, **options
            )
        except ApiError as error:
            if error.code not in JOIN_AGAIN:
                raise
            self.epoch, self.owned, self.say_everything = 0, {}, True
            return
        if lose_answer:
            self.say_everything = True
            return
        self.epoch = response.member_epoch
        self.say_everything = self.acknowledge = False
        if response.assignment is not None:
            told = {
                topic.topic_id: set(topic.partitions)
                for topic in response.assignment.topic_partitions
            }
            self.acknowledge = told != self.owned
            self.owned = told

    def subscribe(self, subscription: dict[str, Any]) -> None:
        self.subscription = {"names": [], "regex": "", **subscription}
        self.say_everything = True

    def leave(self, epoch: int) -> None:
        try:
            self.stage.heartbeat(self.member_id, epoch, instance=self.instance)
        except ApiError as error:
            if error.code not in GONE_ALREADY:
                raise
        self.stop()


SUBSCRIPTIONS = st.sampled_from(
    [
        {"names": ["t"]},
        {"names": ["t", "u"]},
        {"names": ["u", "v", "missing"]},
        {"names": []},
        {"regex": "t|u"},
        {"regex": ".*"},
        {"names": ["v"], "regex": "t"},
    ]
)
CLIENTS = st.integers(0, 4)


class Consumers(RuleBasedStateMachine):
    @initialize(interval_ms=st.sampled_from([0, 1_000]))
    def begin(self, interval_ms: int) -> None:
        self.stage = stage = _STAGE[0]()
        stage.settings.values["consumer.assignment.interval.ms"] = interval_ms
        for name, partitions in TOPICS.items():
            stage.topics.create(name, partitions)
        self.clients = [
            Client(stage, f"c{index}", f"i{index}" if index < 2 else None) for index in range(5)
        ]

    @rule(index=CLIENTS, lose_answer=st.booleans())
    def heartbeat(self, index: int, lose_answer: bool) -> None:
        client = self.clients[index]
        if not client.running:
            client.start()
        client.heartbeat(lose_answer)

    @rule()
    def all_heartbeat(self) -> None:
        for client in self.clients:
            if client.running:
                client.heartbeat()

    @rule(index=CLIENTS, subscription=SUBSCRIPTIONS)
    def subscribe(self, index: int, subscription: dict[str, Any]) -> None:
        self.clients[index].subscribe(subscription)

    @rule(index=CLIENTS)
    def leave(self, index: int) -> None:
        client = self.clients[index]
        if client.running and client.epoch > 0:
            client.leave(-1)

    @rule(index=CLIENTS)
    def restart_static(self, index: int) -> None:
        client = self.clients[index]
        if client.running and client.epoch > 0 and client.instance is not None:
            client.leave(-2)

    @rule(index=CLIENTS)
    def crash(self, index: int) -> None:
        self.clients[index].stop()

    @rule(delay_ms=st.sampled_from([0, 1_000, 11_000, 40_000]))
    def wait(self, delay_ms: int) -> None:
        self.stage.advance(delay_ms)

    @rule(name=st.sampled_from(["t", "u", "v", "tx"]), more=st.integers(1, 2))
    def add_partitions(self, name: str, more: int) -> None:
        facts = self.stage.topics.topic(name)
        self.stage.topics.create(name, more if facts is None else facts.partition_count + more)

    @rule(name=st.sampled_from(["u", "tx"]))
    def delete_topic(self, name: str) -> None:
        if self.stage.topics.topic(name) is not None:
            self.stage.topics.delete(name)

    @rule()
    def restart_coordinator(self) -> None:
        self.stage.reload()

    @invariant()
    def nobody_shares(self) -> None:
        group = self.stage.section.groups.get("g")
        if group is None:
            return
        owners: dict[Any, str] = {}
        for member in group.members.values():
            for part in (member.assigned, member.pending_revocation):
                for topic_id, partitions in part.items():
                    for partition in partitions:
                        assert (topic_id, partition) not in owners
                        owners[topic_id, partition] = member.member_id
        assert owners == {
            (topic_id, partition): member_id
            for topic_id, partitions in group.owners.items()
            for partition, member_id in partitions.items()
        }
        for client in self.clients:
            if client.running and client.member_id in group.members:
                for topic_id, owned in client.owned.items():
                    for partition in owned:
                        assert owners[topic_id, partition] == client.member_id, (
                            "the coordinator knows of all that a member may be reading"
                        )

    def teardown(self) -> None:
        """From wherever things are: undisturbed clients settle, and nothing is left over."""
        if not hasattr(self, "clients"):
            return
        running = [client for client in self.clients if client.running]
        # Those who vanished run into their timeouts; then patterns may be due again.
        for _ in range(24):
            for client in running:
                client.heartbeat()
            self.nobody_shares()
            self.stage.advance(5_000)
        group = self.stage.section.groups.get("g")
        if group is None:
            assert not running
            return
        assert group.members.keys() == {client.member_id for client in running}
        assert group.state_name == ("Stable" if running else "Empty")
        wanted = {
            (self.stage.topics.topic(name).id, partition)
            for name in group.subscriptions.topics()
            if self.stage.topics.topic(name) is not None
            for partition in range(self.stage.topics.topic(name).partition_count)
        }
        assert wanted == {
            (topic_id, partition)
            for topic_id, partitions in group.owners.items()
            for partition in partitions
        }
        for client in running:
            member = group.members[client.member_id]
            assert client.epoch == member.member_epoch
            assert client.owned == {topic_id: set(p) for topic_id, p in member.assigned.items()}
            subscribed = group.subscriptions.topics_of(member)
            assert {self.stage.topics.topic_by_id(each).name for each in client.owned} <= subscribed
        before = len(self.stage.written)
        for client in running:
            client.heartbeat()
        assert len(self.stage.written) == before, "a settled group writes nothing"


def test_consumers(Stage: Any) -> None:
    _STAGE[:] = [Stage]
    machine: Any = Consumers
    case = machine.TestCase
    case.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
    case().runTest()


def test_five_hundred_members_settle_within_a_few_heartbeats(Stage: Any) -> None:
    stage = Stage()
    stage.check_reload = False
    stage.settings.values["consumer.assignment.interval.ms"] = 1_000
    stage.topics.create("t", 1_000)
    clients = [Client(stage, f"c{index}", None) for index in range(500)]
    for client in clients:
        client.start()
        client.heartbeat()
        stage.advance(1)
    for _ in range(4):
        stage.advance(5_000)
        for client in clients:
            client.heartbeat()
            if client.acknowledge:
                client.heartbeat()
    assert stage.group().state_name == "Stable"
    assert {len(partitions) for partitions in _sizes(clients)} == {2}
    # Each member: its subscription, its epochs and assignments; and a few targets for all.
    assert len(stage.written) < 500 * 10


def _sizes(clients: list[Client]) -> list[list[Any]]:
    return [[each for part in client.owned.values() for each in part] for client in clients]
