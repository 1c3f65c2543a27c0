"""Members of groups whose coordinator fails, forgets them, refuses them, moves or dies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from moldau.client.consumer import AsyncConsumer, Consumer, ConsumerRebalanceListener
from moldau.client.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    KafkaError,
    UnsupportedAssignorError,
)
from moldau.client.topics import TopicPartition
from moldau.testing import Broker, Cluster
from support.group_members import Member, Ownership, await_shares, check_read_once
from support.waiting import eventually

_numbers = itertools.count(1)
PARTITIONS = 3
CLASSIC: dict[str, Any] = {
    "partition_assignment_strategy": "cooperative-sticky",
    "heartbeat_interval_ms": 100,
    # A member that comes back with another id waits until its former self has expired.
    "session_timeout_ms": 3_000,
}
BY_EPOCH: dict[str, Any] = {"group_protocol": "consumer"}
BOTH = [pytest.param(CLASSIC, id="classic"), pytest.param(BY_EPOCH, id="consumer")]

# Those whose members poll on, as if nothing had happened.
JOINING = [
    pytest.param(CLASSIC, api, error, id=f"{api} {error}")
    for api, errors in {
        "FindCoordinator": ["COORDINATOR_NOT_AVAILABLE"],
        "JoinGroup": [
            "COORDINATOR_LOAD_IN_PROGRESS",
            "NOT_COORDINATOR",
            "UNKNOWN_MEMBER_ID",
            "REBALANCE_IN_PROGRESS",
        ],
        "SyncGroup": [
            "REBALANCE_IN_PROGRESS",
            "UNKNOWN_MEMBER_ID",
            "ILLEGAL_GENERATION",
            "NOT_COORDINATOR",
        ],
    }.items()
    for error in errors
] + [
    pytest.param(BY_EPOCH, "ConsumerGroupHeartbeat", error, id=f"ConsumerGroupHeartbeat {error}")
    for error in [
        "COORDINATOR_LOAD_IN_PROGRESS",
        "NOT_COORDINATOR",
        "COORDINATOR_NOT_AVAILABLE",
        "UNKNOWN_MEMBER_ID",
    ]
]


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    config = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 500}
    with Broker(config=config) as running:
        yield running


class Group:
    def __init__(self, broker: Cluster, settings: dict[str, Any]) -> None:
        self.broker = broker
        number = next(_numbers)
        self.topic, self.group_id = f"faulty-{number}", f"faulty-{number}"
        broker.create_topic(self.topic, partitions=PARTITIONS)
        self.ownership = Ownership()
        self.sent = dict.fromkeys(range(PARTITIONS), 0)
        self._settings = {
            "bootstrap_servers": broker.bootstrap_servers,
            "group_id": self.group_id,
            "retry_backoff_ms": 20,
            "reconnect_backoff_ms": 20,
        } | settings

    def member(self, name: str, **changes: Any) -> Member:
        return Member(self.ownership, name, [self.topic], **(self._settings | changes))

    def send(self, count: int = 5) -> None:
        for partition in self.sent:
            self.broker.produce(self.topic, *map(str, range(count)), partition=partition)
            self.sent[partition] += count

    def await_read(self, count: int) -> None:
        eventually(lambda: len(self.ownership.read) == count, what=f"{count} records were read")

    def check(self) -> None:
        check_read_once(self.ownership, self.topic, self.sent)
        assert self.ownership.faults == []


@pytest.mark.parametrize(("settings", "api", "error"), JOINING)
def test_what_fails_while_joining_is_tried_again(
    node: Broker, settings: dict[str, Any], api: str, error: str
) -> None:
    group = Group(node, settings)
    group.send()
    with node.fail(api, error=error, times=1) as fault, group.member("one") as one:
        await_shares(group.ownership, [PARTITIONS])
        group.check()
        assert fault.hits == 1
        assert one.error is None


@pytest.mark.parametrize(
    ("settings", "api"),
    [
        pytest.param(CLASSIC, "JoinGroup", id="JoinGroup"),
        pytest.param(CLASSIC, "SyncGroup", id="SyncGroup"),
        pytest.param(BY_EPOCH, "ConsumerGroupHeartbeat", id="ConsumerGroupHeartbeat"),
    ],
)
def test_connections_that_break_while_joining_are_made_again(
    node: Broker, settings: dict[str, Any], api: str
) -> None:
    group = Group(node, settings)
    group.send()
    with node.disconnect(api, times=2) as fault, group.member("one"):
        await_shares(group.ownership, [PARTITIONS])
        group.check()
        assert fault.hits == 2


@pytest.mark.parametrize(
    ("settings", "api", "error"),
    [
        pytest.param(CLASSIC, "Heartbeat", "UNKNOWN_MEMBER_ID", id="unknown member"),
        pytest.param(CLASSIC, "Heartbeat", "ILLEGAL_GENERATION", id="illegal generation"),
        pytest.param(BY_EPOCH, "ConsumerGroupHeartbeat", "UNKNOWN_MEMBER_ID", id="unknown epoch"),
        pytest.param(BY_EPOCH, "ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH", id="fenced epoch"),
    ],
)
def test_a_member_that_the_group_forgot_loses_all_and_joins_again(
    node: Broker, settings: dict[str, Any], api: str, error: str
) -> None:
    group = Group(node, settings)
    with group.member("one") as one:
        await_shares(group.ownership, [PARTITIONS])
        before = len(one.events)
        with node.fail(api, error=error, times=1):
            eventually(lambda: len(one.events) >= before + 2, what="it hears of it")
        assert one.events[before : before + 2] == [("lost", [0, 1, 2]), ("assigned", [0, 1, 2])]
        group.send()
        group.check()


@pytest.mark.parametrize(
    ("settings", "api"), [(CLASSIC, "Heartbeat"), (BY_EPOCH, "ConsumerGroupHeartbeat")]
)
def test_a_forgotten_member_still_says_who_it_was(
    node: Broker, settings: dict[str, Any], api: str
) -> None:
    # With the identity of nobody a transaction of it would not be fenced.
    name = f"zombie-{next(_numbers)}"
    node.create_topic(name)
    with Consumer(bootstrap_servers=node.bootstrap_servers, group_id=name, **settings) as consumer:
        consumer.subscribe([name])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment(), what="it is a member")
        identity = consumer.group_metadata()
        assert identity.generation_id > 0
        with node.fail(api, error="UNKNOWN_MEMBER_ID", times=1) as fault:
            eventually(lambda: fault.hits == 1, what="it was forgotten")
        with pytest.raises(CommitFailedError):
            eventually(lambda: consumer.commit_sync({(name, 0): 0}), what="it notices that")
        assert consumer.group_metadata() == identity


class Hesitant(ConsumerRebalanceListener):
    """Does not come to an end the first time."""

    def __init__(self, event: str) -> None:
        self._event = event
        self.hesitated = False

    async def on_partitions_revoked(self, partitions: Any) -> None:
        await self._hesitate("revoked")

    async def on_partitions_assigned(self, partitions: Any) -> None:
        await self._hesitate("assigned")

    async def _hesitate(self, event: str) -> None:
        if event == self._event and not self.hesitated:
            self.hesitated = True
            await asyncio.sleep(60)


@pytest.mark.parametrize("event", ["revoked", "assigned"])
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(CLASSIC | {"partition_assignment_strategy": "range"}, id="range"),
        pytest.param(CLASSIC, id="cooperative-sticky"),
        pytest.param(BY_EPOCH, id="consumer"),
    ],
)
def test_a_poll_that_is_broken_off_in_a_listener(
    node: Broker, settings: dict[str, Any], event: str
) -> None:
    name = f"hesitant-{next(_numbers)}"
    node.create_topic(name, partitions=2)
    common = settings | {"bootstrap_servers": node.bootstrap_servers, "group_id": name}

    async def session() -> None:
        listener = Hesitant(event)
        async with AsyncConsumer(**common) as one, AsyncConsumer(**common) as two:
            one.subscribe([name], listener)
            two.subscribe([name])

            shares: dict[AsyncConsumer, set[TopicPartition]] = {one: set(), two: set()}

            async def go_on(consumer: AsyncConsumer) -> None:
                while {len(share) for share in shares.values()} != {1}:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(consumer.poll(0.1), 0.3)
                    shares[consumer] = consumer.assignment()

            if event == "revoked":
                while len(one.assignment()) < 2:
                    await one.poll(0.1)
            async with asyncio.timeout(30):
                await asyncio.gather(go_on(one), go_on(two))
            assert listener.hesitated
            assert shares[one].isdisjoint(shares[two])

    asyncio.run(session())


def test_a_fatal_error_stays_until_the_consumer_unsubscribes(node: Broker) -> None:
    name = f"fatal-{next(_numbers)}"
    node.create_topic(name)
    with Consumer(bootstrap_servers=node.bootstrap_servers, group_id=name, **BY_EPOCH) as consumer:
        consumer.subscribe([name])
        with node.fail("ConsumerGroupHeartbeat", error="GROUP_AUTHORIZATION_FAILED", times=1):
            for _ in range(3):
                with pytest.raises(GroupAuthorizationFailedError):
                    consumer.poll(20.0)
        consumer.unsubscribe()
        consumer.subscribe([name])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment(), what="it is a member")


@pytest.mark.parametrize("settings", BOTH)
@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"])
def test_heartbeats_that_fail_are_not_heard_of(
    node: Broker, settings: dict[str, Any], error: str
) -> None:
    group = Group(node, settings)
    if settings is CLASSIC:
        group = Group(node, CLASSIC | {"session_timeout_ms": 30_000})
    with group.member("one") as one:
        await_shares(group.ownership, [PARTITIONS])
        heard = len(one.events)
        with node.fail("Heartbeat", "ConsumerGroupHeartbeat", error=error, times=3) as fault:
            eventually(lambda: fault.hits == 3, what="three heartbeats were refused")
        group.send()
        group.check()
        assert len(one.events) == heard


@pytest.mark.parametrize(
    ("settings", "api", "error", "kind"),
    [
        pytest.param(
            CLASSIC,
            "JoinGroup",
            "GROUP_AUTHORIZATION_FAILED",
            GroupAuthorizationFailedError,
            id="may not join",
        ),
        pytest.param(
            CLASSIC,
            "JoinGroup",
            "GROUP_MAX_SIZE_REACHED",
            GroupMaxSizeReachedError,
            id="group is full",
        ),
        pytest.param(
            CLASSIC,
            "FindCoordinator",
            "GROUP_AUTHORIZATION_FAILED",
            GroupAuthorizationFailedError,
            id="may not look",
        ),
        pytest.param(
            BY_EPOCH,
            "ConsumerGroupHeartbeat",
            "GROUP_AUTHORIZATION_FAILED",
            GroupAuthorizationFailedError,
            id="may not beat",
        ),
        pytest.param(
            BY_EPOCH,
            "ConsumerGroupHeartbeat",
            "UNSUPPORTED_ASSIGNOR",
            UnsupportedAssignorError,
            id="no such assignor",
        ),
    ],
)
def test_what_the_application_has_to_mend_is_raised(
    node: Broker, settings: dict[str, Any], api: str, error: str, kind: type[KafkaError]
) -> None:
    group = Group(node, settings)
    with node.fail(api, error=error, times=1):
        member = group.member("one")
        eventually(lambda: member.error, what="it is raised")
    with pytest.raises(kind):
        member.stop()


@pytest.fixture
def three() -> Iterator[Cluster]:
    with Cluster(config={"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


@pytest.mark.long("kills a node; test_cluster_clients kills a coordinator")
def test_a_coordinator_that_dies_takes_nothing_with_it(three: Cluster) -> None:
    # A session that outlives the coordinator's.
    old = Group(three, CLASSIC | {"session_timeout_ms": 10_000})
    victim = three.coordinator(old.group_id)
    new = Group(three, BY_EPOCH)
    while three.coordinator(new.group_id).id != victim.id:
        new = Group(three, BY_EPOCH)
    with ExitStack() as stack:
        members = [
            stack.enter_context(group.member(name))
            for group in (old, new)
            for name in ("one", "two")
        ]
        for group in (old, new):
            await_shares(group.ownership, [1, 2])
            group.send()
            group.await_read(15)
        victim.kill()
        for group in (old, new):
            group.send()
        for group in (old, new):
            group.await_read(30)
            stack.enter_context(group.member("three"))
            await_shares(group.ownership, [1, 1, 1], what="the group goes on")
            assert three.coordinator(group.group_id).id != victim.id
        for member in members:
            assert not any(event == "lost" for event, _ in member.events)
        for group in (old, new):
            group.check()
