"""Groups of the consumer: how partitions move between members, of ours and of other clients."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from moldau.client.consumer import Consumer
from moldau.client.errors import (
    FencedInstanceIdError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)
from moldau.client.topics import TopicPartition
from moldau.wire.apis import ApiKey
from moldau.wire.messages import CreatePartitionsRequest
from support import asking
from support.consuming import new_group, new_topic, numbers, put
from support.either import either_broker
from support.group_members import Member, Ownership, await_shares, check_read_once
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.repeats import mostly_long
from support.waiting import eventually

# Heartbeats that tests can wait for. Sessions are long: a member may get no turn for a second or
# two on a busy machine. Only one that is killed has a short session, which the test waits out.
SESSION_MS, VICTIM_SESSION_MS = 30_000, 3_000
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    # librdkafka waits as long for an answer, and never hears of what came later.
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.session.timeout.ms": str(VICTIM_SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
}
PARTITIONS = 6
GROUP_CONFIG = 32


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), QUICK) as process:
        yield process


def classic(assignor: str = "range", **settings: Any) -> dict[str, Any]:
    return {
        "partition_assignment_strategy": assignor,
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": SESSION_MS,
    } | settings


def by_epoch(**settings: Any) -> dict[str, Any]:
    return {"group_protocol": "consumer"} | settings


EVERY_KIND = [
    pytest.param(classic("range"), id="range"),
    pytest.param(classic("roundrobin"), id="roundrobin"),
    pytest.param(classic("sticky"), id="sticky"),
    pytest.param(classic("cooperative-sticky"), id="cooperative-sticky"),
    pytest.param(by_epoch(), id="consumer"),
]
BOTH_PROTOCOLS = [
    pytest.param(classic("cooperative-sticky"), id="classic"),
    pytest.param(by_epoch(), id="consumer"),
]


class Group:
    """Members of one group, their topic, and the other end of it."""

    def __init__(self, broker: BrokerProcess, settings: dict[str, Any]) -> None:
        self.broker = broker
        self.topic = new_topic(broker, PARTITIONS)
        self.group_id = new_group()
        self.ownership = Ownership()
        self.sent = dict.fromkeys(range(PARTITIONS), 0)
        self._settings = {
            "bootstrap_servers": broker.bootstrap,
            "group_id": self.group_id,
        } | settings

    def member(self, name: str, **changes: Any) -> Member:
        return Member(self.ownership, name, [self.topic], **(self._settings | changes))

    def send(self, count: int = 5) -> None:
        for partition in self.sent:
            put(self.broker.bootstrap, self.topic, numbers(count), partition=partition)
            self.sent[partition] += count

    def check(self) -> None:
        check_read_once(self.ownership, self.topic, self.sent)
        assert self.ownership.faults == []


@pytest.mark.parametrize("settings", EVERY_KIND)
def test_members_come_and_go(broker: BrokerProcess, settings: dict[str, Any]) -> None:
    group = Group(broker, settings)
    group.send()
    with group.member("one") as one:
        await_shares(group.ownership, [6], what="one has all")
        with group.member("two"):
            await_shares(group.ownership, [3, 3], what="two share")
            group.send()
            with group.member("three"):
                await_shares(group.ownership, [2, 2, 2], what="three share")
                group.send()
            await_shares(group.ownership, [3, 3], what="two are left")
            group.send()
        await_shares(group.ownership, [6], what="one is left")
        group.send()
        group.check()
        assert not any(event == "lost" for event, _ in one.events)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_what_listeners_hear(broker: BrokerProcess, assignor: str) -> None:
    group = Group(broker, classic(assignor))
    with group.member("one") as one:
        await_shares(group.ownership, [6])
        with group.member("two") as two:
            await_shares(group.ownership, [3, 3])
    every = list(range(PARTITIONS))
    assert one.events[0] == ("assigned", every)
    if assignor == "range":
        # All is given up, then taken anew.
        assert one.events[1:3] == [("revoked", every), ("assigned", [0, 1, 2])]
        assert two.events == [("assigned", [3, 4, 5]), ("revoked", [3, 4, 5])]
    else:
        # Only what moves is given up, and given on in the round after.
        what, moved = one.events[1]
        assert what == "revoked"
        assert len(moved) == 3
        assert one.events[2] == ("assigned", [])
        # It may come too late for the first round, in which there was nothing for it.
        heard = [event for event in two.events if event != ("assigned", [])]
        assert heard == [("assigned", moved), ("revoked", moved)]


@pytest.mark.parametrize("settings", BOTH_PROTOCOLS)
def test_a_static_member_restarts_without_a_rebalance(
    broker: BrokerProcess, settings: dict[str, Any]
) -> None:
    group = Group(broker, settings)
    with group.member("one", group_instance_id="i1") as one:
        await_shares(group.ownership, [6])
        two = group.member("two", group_instance_id="i2")
        await_shares(group.ownership, [3, 3])
        had = group.ownership.of("two")
        eventually(lambda: one.generation == two.generation, what="the last round is over for both")
        generation = one.generation
        two.stop()
        with group.member("two", group_instance_id="i2") as again:
            eventually(lambda: group.ownership.of("two") == had, what="it has the same again")
            eventually(lambda: again.generation == generation, what="it is in the same generation")
        assert one.generation == generation


def test_two_with_one_instance_id(broker: BrokerProcess) -> None:
    group = Group(broker, classic())
    first = group.member("first", group_instance_id="same")
    await_shares(group.ownership, [6])
    with group.member("second", group_instance_id="same"):
        eventually(lambda: first.error, what="the first is told")
        with pytest.raises(FencedInstanceIdError):
            first.stop()
        eventually(lambda: len(group.ownership.of("second")) == 6, what="the second has all")


def test_an_instance_id_in_use_is_refused(broker: BrokerProcess) -> None:
    group = Group(broker, by_epoch())
    with group.member("first", group_instance_id="same"):
        await_shares(group.ownership, [6])
        second = group.member("second", group_instance_id="same")
        eventually(lambda: second.error, what="the second is told")
        with pytest.raises(UnreleasedInstanceIdError):
            second.stop()
        assert group.ownership.counts() == {"first": 6}


VICTIM = """
import sys
from moldau.client.consumer import Consumer
bootstrap, group, topic, protocol = sys.argv[1:]
settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol}
if protocol == "classic":
    settings |= {"session.timeout.ms": 3000, "heartbeat.interval.ms": 100}
consumer = Consumer(settings)
consumer.subscribe([topic])
while True:
    consumer.poll(0.1)
    if consumer.assignment():
        print(len(consumer.assignment()), flush=True)
"""


@pytest.mark.parametrize("settings", [classic(), by_epoch()], ids=["classic", "consumer"])
def test_what_a_killed_member_had_goes_to_the_others(
    broker: BrokerProcess, settings: dict[str, Any]
) -> None:
    group = Group(broker, settings)
    protocol = settings.get("group_protocol", "classic")
    if protocol == "consumer":
        # There the group has a session timeout, not the member.
        timeout = {"consumer.session.timeout.ms": str(VICTIM_SESSION_MS)}
        with RawConnection(broker.port) as to:
            assert asking.alter_config(to, GROUP_CONFIG, group.group_id, timeout) == (0, None)
    command = [
        sys.executable,
        "-c",
        VICTIM,
        broker.bootstrap,
        group.group_id,
        group.topic,
        protocol,
    ]
    with (
        group.member("survivor"),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim,
    ):
        try:
            assert victim.stdout is not None
            assert victim.stdout.readline()
            await_shares(group.ownership, [3], what="the victim has half")
        finally:
            victim.send_signal(signal.SIGKILL)
        await_shares(group.ownership, [6], what="the survivor has all")
        group.send()
        group.check()


@pytest.mark.parametrize("settings", BOTH_PROTOCOLS)
def test_who_stays_away_from_poll_loses_all_and_comes_back(
    broker: BrokerProcess, settings: dict[str, Any]
) -> None:
    group = Group(broker, settings | {"max_poll_interval_ms": 700})
    with group.member("one"):
        await_shares(group.ownership, [6])
        with group.member("two") as two:
            await_shares(group.ownership, [3, 3])
            away = threading.Event()
            two.busy_until = away
            eventually(lambda: len(group.ownership.of("one")) == 6, what="the other has all")
            away.set()
            eventually(
                lambda: any(event == "lost" for event, _ in two.events), what="it hears of it"
            )
            await_shares(group.ownership, [3, 3], what="it is back")


def test_a_join_that_is_broken_off_does_not_hold_up_the_next(broker: BrokerProcess) -> None:
    group = Group(broker, classic())
    with group.member("busy") as busy:
        await_shares(group.ownership, [6])
        away = threading.Event()
        busy.busy_until = away
        eventually(lambda: busy.is_busy, what="it does not poll")
        settings = classic(group_id=group.group_id)
        with Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
            consumer.subscribe([group.topic])
            # The coordinator waits for the other one.
            consumer.poll(0.5)
            consumer.unsubscribe()
            consumer.subscribe([group.topic])
            consumer.poll(0.5)
            assert not consumer.assignment()
            away.set()
            eventually(lambda: consumer.poll(0.1) or consumer.assignment(), what="it has its share")


def test_new_partitions_are_assigned_by_the_leader(broker: BrokerProcess) -> None:
    group = Group(broker, classic("range", metadata_max_age_ms=300))
    with group.member("one"), group.member("two"):
        await_shares(group.ownership, [3, 3])
        with RawConnection(broker.port) as to:
            topic = CreatePartitionsRequest.CreatePartitionsTopic(
                name=group.topic, count=8, assignments=None
            )
            request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)
            response = to.call(ApiKey.CREATE_PARTITIONS, 3, request)
            assert response.results[0].error_code == 0
        await_shares(group.ownership, [4, 4])


def test_the_brokers_assignor_is_chosen_by_name(broker: BrokerProcess) -> None:
    group = Group(broker, by_epoch(group_remote_assignor="range"))
    with group.member("one"), group.member("two"):
        await_shares(group.ownership, [3, 3])
        shares = {tuple(sorted(group.ownership.of(name))) for name in ("one", "two")}
        assert {tuple(key.partition for key in share) for share in shares} == {(0, 1, 2), (3, 4, 5)}
    group = Group(broker, by_epoch(group_remote_assignor="no-such"))
    member = group.member("one")
    eventually(lambda: member.error, what="it is refused")
    with pytest.raises(UnsupportedAssignorError):
        member.stop()


class Sevens:
    """A custom assignor: partition 0 to the last member, the rest to the first."""

    name = "sevens"

    def assign(self, metadata: Any, subscriptions: Any) -> Any:
        first, last = min(subscriptions), max(subscriptions)
        topic = subscriptions[first].topics[0]
        found: dict[str, list[tuple[str, int]]] = {each: [] for each in subscriptions}
        for index in metadata.topics[topic].partitions:
            found[first if index else last].append((topic, index))
        return found

    def subscription_user_data(self, topics: Any) -> bytes:
        return b"seven"

    def on_assignment(self, assignment: Any, group_metadata: Any) -> None:
        assert group_metadata.generation_id > 0


def test_a_custom_assignor(broker: BrokerProcess) -> None:
    group = Group(broker, classic(partition_assignment_strategy=[Sevens]))
    with group.member("a"), group.member("b"):
        await_shares(group.ownership, [1, 5])


class OtherMember:
    """A member of another client, polling in a thread."""

    def __init__(self, ownership: Ownership, name: str) -> None:
        self.ownership = ownership
        self.name = name
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.poll()
        self.close()

    def poll(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> OtherMember:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(30)


class ConfluentMember(OtherMember):
    def __init__(self, group: Group, assignor: str) -> None:
        if assignor == "consumer":
            membership: dict[str, Any] = {"group.protocol": "consumer"}
        else:
            membership = {
                "partition.assignment.strategy": assignor,
                "heartbeat.interval.ms": 100,
                "session.timeout.ms": SESSION_MS,
            }
        self._consumer = ConfluentConsumer(
            {
                "bootstrap.servers": group.broker.bootstrap,
                "group.id": group.group_id,
                "auto.offset.reset": "earliest",
                "log_level": 0,
                **membership,
            }
        )
        self._consumer.subscribe(
            [group.topic], on_assign=self._on_assign, on_revoke=self._on_revoke
        )
        super().__init__(group.ownership, "confluent")

    def _on_assign(self, consumer: Any, partitions: Any) -> None:
        self.ownership.give(self.name, _keys(partitions))

    def _on_revoke(self, consumer: Any, partitions: Any) -> None:
        self.ownership.take(self.name, _keys(partitions))

    def poll(self) -> None:
        self._consumer.poll(0.1)

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonMember(OtherMember):
    def __init__(self, group: Group, assignor: str) -> None:
        kinds = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
        self._consumer = KafkaConsumer(
            group.topic,
            bootstrap_servers=group.broker.bootstrap,
            group_id=group.group_id,
            partition_assignment_strategy=[kinds[assignor]],
            heartbeat_interval_ms=100,
            session_timeout_ms=SESSION_MS,
            auto_offset_reset="earliest",
        )
        super().__init__(group.ownership, "kafka-python")

    def poll(self) -> None:
        self._consumer.poll(100)
        assigned = {TopicPartition(*key) for key in self._consumer.assignment()}
        had = self.ownership.of(self.name)
        # It is asked after the fact, so that only counts can be compared.
        self.ownership.lose(self.name, sorted(had - assigned))
        for key in assigned - had:
            self.ownership.owners[key] = self.name

    def close(self) -> None:
        self._consumer.close()


def _keys(partitions: Any) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in partitions]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky", "consumer"])
@pytest.mark.parametrize(
    "ours_leads",
    [
        pytest.param(True, id="ours leads"),
        pytest.param(False, id="theirs leads", marks=pytest.mark.long("the other one leads")),
    ],
)
def test_a_group_with_confluent_kafka(
    broker: BrokerProcess, assignor: str, ours_leads: bool
) -> None:
    group = Group(broker, by_epoch() if assignor == "consumer" else classic(assignor))
    with ExitStack() as stack:
        enter = [
            lambda: stack.enter_context(group.member("ours")),
            lambda: stack.enter_context(ConfluentMember(group, assignor)),
        ]
        first, second = enter if ours_leads else reversed(enter)
        first()
        await_shares(group.ownership, [6], what="the first has all")
        second()
        await_shares(group.ownership, [3, 3], what="both have half")
        assert group.ownership.faults == []


@pytest.mark.parametrize("assignor", mostly_long(["range", "roundrobin"], "another assignor"))
def test_a_group_with_kafka_python(broker: BrokerProcess, assignor: str) -> None:
    group = Group(broker, classic(assignor))
    with group.member("ours"):
        await_shares(group.ownership, [6], what="the first has all")
        with KafkaPythonMember(group, assignor):
            await_shares(group.ownership, [3, 3], what="both have half")
        await_shares(group.ownership, [6], what="ours has all again")


def test_a_group_moves_to_the_other_protocol_member_by_member(broker: BrokerProcess) -> None:
    group = Group(broker, {})
    group.send()
    with group.member("old", **classic("cooperative-sticky")) as old:
        await_shares(group.ownership, [6], what="the first has all")
        with group.member("new", **by_epoch()):
            await_shares(group.ownership, [3, 3], what="members of both protocols share")
            group.send()
            eventually(lambda: len(group.ownership.read) == 60, what="all was read")
            old.stop()
            await_shares(group.ownership, [6], what="the new one has all")
            group.send()
            group.check()


def test_figures_of_a_group(broker: BrokerProcess) -> None:
    group = Group(broker, classic())
    with group.member("one") as one:
        await_shares(group.ownership, [6])

        def figure(name: str) -> float:
            metrics = one.consumer.metrics()
            return next(float(m.value) for k, m in metrics.items() if k.name == name)

        eventually(lambda: figure("heartbeat-total") >= 1, what="heartbeats are counted")
        assert figure("rebalance-total") == 1
        assert figure("join-total") == 1
        assert figure("sync-total") == 1
        assert figure("assigned-partitions") == 6
        assert figure("last-rebalance-seconds-ago") >= 0


def test_assignors_are_checked_when_the_consumer_is_made(broker: BrokerProcess) -> None:
    with pytest.raises(ValueError, match="Did you mean range"):
        Consumer(
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            partition_assignment_strategy="rang",
        )
