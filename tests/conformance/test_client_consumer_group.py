"""The consumer in a group: subscribing, committing, listening to rebalances, leaving."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client.consumer import (
    AsyncConsumer,
    Consumer,
    ConsumerRebalanceListener,
    GroupMembershipOperation,
    SubscriptionPattern,
)
from moldau.client.errors import (
    CommitFailedError,
    ConcurrentModificationError,
    IllegalStateError,
    KafkaError,
    OffsetMetadataTooLargeError,
    WakeupError,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.apis import ApiKey
from moldau.wire.messages import DescribeGroupsRequest
from support.consuming import new_group, new_topic, numbers, poll_until, put, read, values
from support.either import create_and_wait, either_broker
from support.processes import ROOT, BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

Make = Callable[..., Consumer]

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """One whose members hear of changes soon."""
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(broker: BrokerProcess) -> Iterator[Make]:
    made: list[Consumer] = []

    def build(**settings: Any) -> Consumer:
        if settings.get("group_protocol") != "consumer":
            settings = {"heartbeat_interval_ms": 100} | settings
        settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50} | settings
        consumer = Consumer(bootstrap_servers=broker.bootstrap, **settings)
        made.append(consumer)
        return consumer

    yield build
    for each in made:
        each.close()


class Log(ConsumerRebalanceListener):
    """Writes down what it hears, and commits what is taken away."""

    def __init__(self, consumer: Consumer | None = None) -> None:
        self.events: list[tuple[str, list[TopicPartition]]] = []
        self.threads: set[int] = set()
        self._consumer = consumer

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self._note("assigned", partitions)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._note("revoked", partitions)
        if self._consumer is not None:
            self._consumer.commit_sync()

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._note("lost", partitions)

    def _note(self, what: str, partitions: list[TopicPartition]) -> None:
        self.events.append((what, partitions))
        self.threads.add(threading.get_ident())


def test_a_group_divides_a_topic(broker: BrokerProcess, make: Make, protocol: str) -> None:
    topic, group = new_topic(broker, 2), new_group()
    for partition in (0, 1):
        put(broker.bootstrap, topic, numbers(10), partition=partition)
    settings = {"group_id": group, "group_protocol": protocol, "enable_auto_commit": False}
    first = make(**settings)
    log = Log(first)
    first.subscribe([topic], log)
    assert first.subscription() == {topic}
    read(first, 20)
    both = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert first.assignment() == both
    assert log.events == [("assigned", sorted(both))]
    assert log.threads == {threading.get_ident()}

    # The second gets one of them, and begins where the first has committed on giving it up.
    second = make(**settings)
    second.subscribe([topic])
    found: list[Any] = []

    def shared() -> bool:
        found.extend(first.poll(0.05))
        return len(first.assignment()) == 1 and len(second.assignment()) == 1

    found += poll_until(second, shared, "each has one")
    assert first.assignment() | second.assignment() == both
    assert found == []
    revoked = [event for event in log.events if event[0] == "revoked"]
    assert revoked
    for partition in (0, 1):
        put(broker.bootstrap, topic, [b"more"], partition=partition)
    assert values(read(first, 1)) == [b"more"]
    assert values(read(second, 1)) == [b"more"]

    # And all of them when the other has gone.
    second.commit_sync()
    second.close()
    poll_until(first, lambda: first.assignment() == both, "the first has both")
    first.unsubscribe()
    assert first.assignment() == set()
    assert log.events[-1][0] == "revoked"


def test_commits(broker: BrokerProcess, make: Make, protocol: str) -> None:
    topic, group = new_topic(broker), new_group()
    put(broker.bootstrap, topic, numbers(10))
    partition = TopicPartition(topic, 0)
    consumer = make(
        group_id=group, group_protocol=protocol, enable_auto_commit=False, max_poll_records=4
    )
    consumer.subscribe([topic])
    read(consumer, 4)
    assert consumer.committed([partition]) == {partition: None}
    consumer.commit_sync()
    assert consumer.committed([partition]) == {partition: OffsetAndMetadata(4, "", 0)}
    consumer.commit_sync({partition: OffsetAndMetadata(2, "why")})
    assert consumer.committed([partition]) == {partition: OffsetAndMetadata(2, "why")}

    ended: list[Any] = []
    consumer.commit_async(callback=lambda offsets, error: ended.append((offsets, error)))
    consumer.commit_async({partition: 3}, lambda offsets, error: ended.append((offsets, error)))
    assert ended == []
    poll_until(consumer, lambda: len(ended) == 2, "the callbacks have run")
    assert ended == [
        ({partition: OffsetAndMetadata(4, "", 0)}, None),
        ({partition: OffsetAndMetadata(3)}, None),
    ]
    assert consumer.committed([partition])[partition] == OffsetAndMetadata(3)
    with pytest.raises(OffsetMetadataTooLargeError):
        consumer.commit_sync({partition: OffsetAndMetadata(2, "x" * 5000)})
    with pytest.raises(ValueError, match="negative"):
        consumer.commit_sync({partition: -5})
    consumer.close()

    # The next member goes on where the group stands.
    after = make(group_id=group, group_protocol=protocol)
    after.subscribe([topic])
    assert [record.offset for record in read(after, 7)] == list(range(3, 10))


def test_a_synchronous_commit_comes_after_the_callbacks(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(2))
    consumer = make(group_id=new_group(), enable_auto_commit=False)
    consumer.assign([(topic, 0)])
    read(consumer, 2)
    ended: list[int] = []
    for number in range(3):
        consumer.commit_async({(topic, 0): number}, lambda o, e, n=number: ended.append(n))
    consumer.commit_sync({(topic, 0): 2})
    assert ended == [0, 1, 2]
    assert consumer.committed([(topic, 0)])[TopicPartition(topic, 0)] == OffsetAndMetadata(2)


def test_a_member_that_was_thrown_out(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group()
    put(broker.bootstrap, topic, numbers(3))
    consumer = make(
        group_id=group,
        enable_auto_commit=False,
        session_timeout_ms=6000,
        max_poll_interval_ms=300,
        heartbeat_interval_ms=100,
    )
    log = Log()
    consumer.subscribe([topic], log)
    read(consumer, 3)
    other = make(group_id=group, enable_auto_commit=False)
    other.subscribe([topic])
    poll_until(other, other.assignment, "another took over from one that no longer polls")
    with pytest.raises(CommitFailedError, match="not part of an active group"):
        consumer.commit_sync()
    ended: list[Any] = []
    consumer.commit_async(callback=lambda offsets, error: ended.append(error))
    other.close()
    poll_until(consumer, lambda: ended and consumer.assignment(), "it is back")
    assert isinstance(ended[0], KafkaError)
    assert [what for what, _ in log.events][:2] == ["assigned", "lost"]


def test_automatic_commits(broker: BrokerProcess, make: Make, protocol: str) -> None:
    topic, group = new_topic(broker), new_group()
    put(broker.bootstrap, topic, numbers(10))
    partition = TopicPartition(topic, 0)
    told: list[Any] = []

    class Told:
        def on_commit(self, offsets: Any) -> None:
            told.append(offsets)

    consumer = make(
        group_id=group,
        group_protocol=protocol,
        auto_commit_interval_ms=50,
        max_poll_records=6,
        interceptor_classes=[Told()],
    )
    consumer.subscribe([topic])
    read(consumer, 6)
    consumer.pause([partition])
    # On the way there the position before any record may be committed as well.
    read_so_far = {partition: OffsetAndMetadata(6, "", 0)}
    poll_until(consumer, lambda: read_so_far in told, "a commit")
    assert consumer.committed([partition])[partition] == OffsetAndMetadata(6, "", 0)
    consumer.resume([partition])
    read(consumer, 4)
    # The last ones are committed by closing.
    consumer.close()
    reader = make(group_id=group)
    assert reader.committed([partition]) == {partition: OffsetAndMetadata(10, "", 0)}


def test_what_is_not_handed_out_is_not_committed(broker: BrokerProcess, make: Make) -> None:
    topic, group = new_topic(broker), new_group()
    put(broker.bootstrap, topic, numbers(10))
    consumer = make(group_id=group)
    consumer.subscribe([topic])
    for record in consumer:
        if record.offset == 6:
            break
    consumer.close()
    reader = make(group_id=group)
    found = reader.committed([(topic, 0)])[TopicPartition(topic, 0)]
    assert found is not None
    assert found.offset == 7


def test_a_pattern(broker: BrokerProcess, make: Make, protocol: str) -> None:
    first = new_topic(broker)
    prefix = f"matching-{first}"
    with RawConnection(broker.port) as to:
        create_and_wait(to, f"{prefix}-a")
    consumer = make(group_id=new_group(), group_protocol=protocol, metadata_max_age_ms=200)
    consumer.subscribe(re.compile(re.escape(prefix) + "-.*"))
    poll_until(consumer, consumer.assignment, "the first topic matches")
    assert consumer.subscription() == {f"{prefix}-a"}
    with RawConnection(broker.port) as to:
        create_and_wait(to, f"{prefix}-b")
    poll_until(consumer, lambda: len(consumer.assignment()) == 2, "so does a later one")
    assert consumer.subscription() == {f"{prefix}-a", f"{prefix}-b"}


def test_a_topic_that_is_created_later_is_read(
    broker: BrokerProcess, make: Make, protocol: str
) -> None:
    """Long before metadata is renewed for its age. So is one that the consumer itself has created,
    which brokers do not have at once."""
    topic = f"later-{new_group()}"
    consumer = make(group_id=new_group(), group_protocol=protocol, allow_auto_create_topics=False)
    consumer.subscribe([topic])
    poll_until(consumer, lambda: consumer.group_metadata().generation_id > 0, "it has joined")
    assert consumer.assignment() == set()
    with RawConnection(broker.port) as to:
        create_and_wait(to, topic)
    put(broker.bootstrap, topic, numbers(3))
    assert values(read(consumer, 3)) == numbers(3)


def test_a_pattern_for_the_broker(broker: BrokerProcess, make: Make) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(2))
    consumer = make(group_id=new_group(), group_protocol="consumer")
    consumer.subscribe(SubscriptionPattern(f"{topic}$|nothing.*"))
    assert values(read(consumer, 2)) == numbers(2)
    classic = make(group_id=new_group())
    with pytest.raises(IllegalStateError, match="CLASSIC"):
        classic.subscribe(SubscriptionPattern("a.*"))


def test_another_subscription(broker: BrokerProcess, make: Make, protocol: str) -> None:
    one, two = new_topic(broker), new_topic(broker)
    put(broker.bootstrap, two, [b"two"])
    consumer = make(group_id=new_group(), group_protocol=protocol)
    consumer.subscribe([one])
    poll_until(consumer, consumer.assignment, "the first topic is assigned")
    with pytest.raises(IllegalStateError, match="mutually exclusive"):
        consumer.assign([(two, 0)])
    with pytest.raises(TypeError, match="list of topics"):
        consumer.subscribe(one)
    consumer.subscribe([two])
    assert values(read(consumer, 1)) == [b"two"]
    assert consumer.assignment() == {TopicPartition(two, 0)}
    consumer.subscribe([])
    assert consumer.subscription() == set()
    consumer.assign([(one, 0)])
    assert consumer.position((one, 0)) == 0


def test_a_listener_that_fails(broker: BrokerProcess, make: Make, protocol: str) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(1))
    consumer = make(group_id=new_group(), group_protocol=protocol)

    calls: list[int] = []

    class Broken(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            calls.append(len(partitions))
            if len(calls) == 1:
                raise ValueError("no")

    consumer.subscribe([topic], Broken())
    with pytest.raises(KafkaError, match="rebalance callback") as caught:
        poll_until(consumer, lambda: False, "an error")
    assert isinstance(caught.value.__cause__, ValueError)
    # The assignment stands.
    assert values(read(consumer, 1)) == [b"0"]


def test_a_listener_seeks(broker: BrokerProcess, make: Make, protocol: str) -> None:
    topic = new_topic(broker)
    put(broker.bootstrap, topic, numbers(5))
    consumer = make(group_id=new_group(), group_protocol=protocol)

    class Seeking(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            assert consumer.position(partitions[0]) == 0
            consumer.seek(partitions[0], 3)

    consumer.subscribe([topic], Seeking())
    assert values(read(consumer, 2)) == numbers(2, 3)


@pytest.mark.parametrize("operation", GroupMembershipOperation)
def test_how_a_member_goes(
    broker: BrokerProcess, make: Make, operation: GroupMembershipOperation
) -> None:
    topic, group = new_topic(broker), new_group()
    gone = make(group_id=group, group_instance_id="static")
    gone.subscribe([topic])
    poll_until(gone, gone.assignment, "it is a member")
    gone.close(operation=operation)
    # A static member that remains keeps its place until its session ends.
    remains = operation is not GroupMembershipOperation.LEAVE_GROUP
    assert members(broker, group) == (["static"] if remains else [])


def members(broker: BrokerProcess, group: str) -> list[str | None]:
    with RawConnection(broker.port) as to:
        request = DescribeGroupsRequest(groups=[group])
        (found,) = to.call(ApiKey.DESCRIBE_GROUPS, 5, request).groups
        return [member.group_instance_id for member in found.members]


def test_group_metadata(broker: BrokerProcess, make: Make, protocol: str) -> None:
    topic, group = new_topic(broker), new_group()
    consumer = make(group_id=group, group_protocol=protocol, group_instance_id="here")
    assert consumer.group_metadata().group_id == group
    consumer.subscribe([topic])
    poll_until(consumer, consumer.assignment, "it is a member")
    identity = consumer.group_metadata()
    assert identity.generation_id > 0
    assert identity.member_id
    assert identity.group_instance_id == "here"
    consumer.enforce_rebalance("because")
    if protocol == "classic":
        poll_until(
            consumer,
            lambda: consumer.group_metadata().generation_id > identity.generation_id,
            "another generation",
        )


def test_waking_up_a_commit(broker: BrokerProcess, make: Make) -> None:
    consumer = make(group_id=new_group())
    consumer.assign([(new_topic(broker), 0)])
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.commit_sync({})


def test_asyncio(broker: BrokerProcess, protocol: str) -> None:
    topic, group = new_topic(broker), new_group()
    put(broker.bootstrap, topic, numbers(10))
    partition = TopicPartition(topic, 0)
    heard: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            heard.append(("assigned", await consumer.position(partitions[0])))

        async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            heard.append("revoked")

    async def ended(offsets: Any, error: Any) -> None:
        heard.append((offsets, error))

    async def session() -> None:
        nonlocal consumer
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": group}
        async with AsyncConsumer(
            settings, group_protocol=protocol, auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe([topic], Listener())
            async for record in consumer:
                if record.offset == 4:
                    break
            assert await consumer.position(partition) == 5
            consumer.commit_async(callback=ended)
            await consumer.commit_sync()
            assert (await consumer.committed([partition]))[partition] == (5, "", 0)
            consumer.seek(partition, 8)
            records = await consumer.poll(10)
            assert values(records) == numbers(2, 8)
            assert await consumer.end_offsets([partition]) == {partition: 10}
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert (await consumer.offsets_for_times({partition: 0}))[partition] is not None
            assert len(await consumer.partitions_for(topic)) == 1
            assert topic in await consumer.list_topics()
            waiting = asyncio.create_task(consumer.poll(60))
            await asyncio.sleep(0)
            with pytest.raises(ConcurrentModificationError):
                await consumer.poll(0)
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await waiting

    consumer: AsyncConsumer
    asyncio.run(session())
    assert heard[0] == ("assigned", 0)
    assert heard[1] == ({partition: OffsetAndMetadata(5, "", 0)}, None)
    assert heard[2] == "revoked"


def test_two_members_without_a_listener_see_everything_once(
    broker: BrokerProcess, make: Make, protocol: str
) -> None:
    topic, group = new_topic(broker, 4), new_group()
    consumers = [make(group_id=group, group_protocol=protocol, max_poll_records=3)]
    consumers[0].subscribe([topic])
    poll_until(consumers[0], consumers[0].assignment, "the first is a member")
    for partition in range(4):
        put(broker.bootstrap, topic, numbers(50), partition=partition)
    seen: list[tuple[int, int]] = []

    def take() -> bool:
        for each in consumers:
            seen.extend((record.partition, record.offset) for record in each.poll(0.02))
        if len(consumers) == 1 and len(seen) > 40:
            second = make(group_id=group, group_protocol=protocol, max_poll_records=3)
            second.subscribe([topic])
            consumers.append(second)
        return len(set(seen)) == 200

    eventually(take, what="everything was read")
    # Positions are committed when a partition goes: nothing is read twice.
    assert len(seen) == 200
    for partition in range(4):
        assert [offset for index, offset in seen if index == partition] == list(range(50))


def test_the_examples_of_the_documentation(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    with RawConnection(broker.port) as to:
        create_and_wait(to, "orders")
    put(broker.bootstrap, "orders", [b"soup", b"beer", b"closing time"])
    text = (ROOT / "docs" / "consumer.md").read_text()
    outputs = []
    for program in re.findall(r"```python\n(?!# not to be run)(.*?)```", text, re.DOTALL):
        exec(program.replace("127.0.0.1:9092", broker.bootstrap), {})
        outputs.append(capsys.readouterr().out)
    assert outputs[0].splitlines()[-1] == "orders 0 2 b'key-2' b'closing time'"
    assert outputs[1] == "3\n"
    assert outputs[2] == "now mine: ['orders-0']\n"
    assert outputs[3].splitlines()[1:] == ["[b'beer', b'closing time']", "0 3 0"]
    assert outputs[4] == "b'soup'\nb'beer'\nb'closing time'\n"
