"""Unmodified clients against three nodes, and what the protocol says of replicas.

`--against-kafka` runs the same against Apache Kafka.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import FetchRequest
from moldau.wire.records import encode_batch
from moldau.wire.uuids import uuid_to_text
from support import asking
from support.clients import CLIENTS, Row
from support.cluster import (
    SHARE_COORDINATOR,
    TRANSACTION_COORDINATOR,
    ClusterUnderTest,
    always_whole,
    cluster_for,
)
from support.raw import RawConnection
from support.repeats import mostly_long
from support.scenarios import members
from support.scenarios.members import Membership, Place
from support.scenarios.sharing import GROUP_CONFIG, ShareWorker
from support.scenarios.workers import Load, Team, write
from support.traffic import Writing
from support.transactional import PRODUCERS, Seen, committed_offset, look
from support.waiting import eventually

SETTINGS = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": "1000",
    "group.min.session.timeout.ms": "100",
    # librdkafka waits as long for an answer, and never hears of a revocation that came later.
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
}
BATCH = encode_batch([(None, b"value", time.time_ns() // 1_000_000, ())])


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterUnderTest]:
    with cluster_for(request, tmp_path_factory.mktemp("cluster"), SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    with always_whole(shared) as cluster:
        yield cluster


def to_leader(cluster: ClusterUnderTest, topic: str, index: int = 0) -> RawConnection:
    return RawConnection(cluster.nodes[cluster.leader(topic, index)].port, timeout=60)


@pytest.mark.parametrize(
    "name", mostly_long(CLIENTS, "one broker has every client in test_client_session", keep=2)
)
def test_every_client_writes_and_reads_what_others_wrote(
    cluster: ClusterUnderTest, name: str
) -> None:
    if name == "kcat" and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed here: Debian's package kcat has it")
    topic = f"session-{name}"
    cluster.create_topic(topic)
    client = CLIENTS[name](cluster.bootstrap)
    try:
        now_ms = time.time_ns() // 1_000_000
        rows = [Row(b"key-%d" % each, b"value-%d" % each, now_ms, ()) for each in range(9)]
        client.produce(topic, "none", rows[:6])
        # The partition goes to another node: clients find it there.
        before = cluster.leader(topic)
        cluster.stop(before)
        cluster.wait_for_leader(topic, not_in=[before])
        client.produce(topic, "none", rows[6:])
        seen = client.read(topic, offset=0, count=len(rows))
        cluster.start_node(before)
    finally:
        client.close()
    assert [(row.key, row.value) for row in seen] == [(row.key, row.value) for row in rows]
    assert [row.offset for row in seen] == list(range(len(rows)))


def with_confluent(bootstrap: str, acks: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": acks, "log_level": 0})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def with_kafka_python(bootstrap: str, acks: str, topic: str, value: bytes) -> None:
    number = acks if acks == "all" else int(acks)
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks=number, enable_idempotence=False)
    producer.send(topic, value).get(30)
    producer.close()


def with_aiokafka(bootstrap: str, acks: str, topic: str, value: bytes) -> None:
    async def send() -> None:
        number = acks if acks == "all" else int(acks)
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks=number) as producer:
            await producer.send_and_wait(topic, value)

    asyncio.run(send())


SENDERS: list[Callable[[str, str, str, bytes], None]] = [
    with_confluent, with_kafka_python, with_aiokafka,
]  # fmt: skip


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_every_kind_of_acknowledgement(cluster: ClusterUnderTest, acks: str) -> None:
    topic = f"acks-{acks}"
    cluster.create_topic(topic)
    values = [send.__name__.encode() for send in SENDERS]
    for send, value in zip(SENDERS, values, strict=True):
        send(cluster.bootstrap, acks, topic, value)

    def committed() -> list[bytes | None]:
        with to_leader(cluster, topic) as to:
            end = asking.list_offset(to, topic, 0, asking.LATEST)
            if (end.error_code, end.offset) != (0, len(values)):
                return []
            return [record.value for record in asking.fetch_everything(to, topic, 0)]

    assert cluster.eventually(committed, what="all records are committed") == values


OTHER_CLIENT = pytest.mark.long("a dead coordinator is also shown with confluent-kafka")


@pytest.mark.parametrize(
    "name",
    [
        each if each == "confluent-kafka classic" else pytest.param(each, marks=OTHER_CLIENT)
        for each in members.CLIENTS
    ],
)
def test_a_group_goes_on_when_its_coordinator_dies(cluster: ClusterUnderTest, name: str) -> None:
    topic = f"group-{name}".replace(" ", "-")
    cluster.create_topic(topic, 6)
    places = frozenset(Place(topic, index) for index in range(6))
    membership = Membership(bootstrap=cluster.bootstrap, group=topic, topics=(topic,))
    with Team(members.CLIENTS[name], membership) as team, Load(cluster.bootstrap, places) as load:
        for _ in range(3):
            team.join()
        team.wait_until_shared(places)
        team.wait_for_records(50)
        coordinator = cluster.coordinator(topic)
        cluster.kill(coordinator)
        team.wait_for_records(team.ledger.count() + 200)
        cluster.start_node(coordinator)
        cluster.wait_until_whole()
        team.wait_until_shared(places)
        delivered = load.finish()
        team.wait_for_records(len(delivered))
        assert team.ledger.values == delivered


# kafka-python goes on asking a coordinator that is gone, also with Apache Kafka.
@pytest.mark.parametrize(
    "library", ["confluent-kafka", pytest.param("aiokafka", marks=OTHER_CLIENT)]
)
def test_a_transaction_goes_on_when_its_coordinator_stops(
    cluster: ClusterUnderTest, library: str
) -> None:
    topic, group = f"transaction-{library}", f"transaction-group-{library}"
    cluster.create_topic(topic)
    producer = PRODUCERS[library](cluster.bootstrap, f"id-{library}")  # type: ignore[call-arg]
    producer.init()
    try:
        producer.begin()
        producer.send(topic, b"before")
        producer.send_offsets({topic: 5}, group)
        coordinator = cluster.coordinator(f"id-{library}", TRANSACTION_COORDINATOR)
        cluster.stop(coordinator)
        producer.send(topic, b"after")
        producer.commit()
        producer.begin()
        producer.send(topic, b"never")
        producer.abort()
        cluster.wait_for_leader(topic, not_in=[coordinator])
        seen = cluster.eventually(
            lambda: now if (now := look_at(cluster, topic)).settled else None,
            what="everything is decided",
        )
        assert seen.values == (b"before", b"after")

        def offset_is_committed() -> bool:
            # Its marker is another than the topic's, and its coordinator may be moving.
            asked = cluster.nodes[cluster.coordinator(group)].port
            return committed_offset(asked, group, topic) == (0, 5)

        cluster.eventually(offset_is_committed, what="the group's offset is decided")
    finally:
        with suppress(Exception):
            producer.close()


def look_at(cluster: ClusterUnderTest, topic: str) -> Seen:
    return look(cluster.nodes[cluster.leader(topic)].port, topic)


@pytest.mark.long("stops nodes one after the other; restarts of one are in test_share_group")
def test_a_share_group_goes_on_when_nodes_stop(cluster: ClusterUnderTest) -> None:
    topic = "shared"
    cluster.create_topic(topic, 3)
    with RawConnection(cluster.nodes[1].port) as to:
        begin = {"share.auto.offset.reset": "earliest"}
        assert asking.alter_config(to, GROUP_CONFIG, topic, begin) == (0, None)
    places = [Place(topic, index) for index in range(3)]
    values = write(cluster.bootstrap, places, 60, "first")
    worker = ShareWorker(cluster.bootstrap, topic, topic)
    try:
        eventually(lambda: worker.accepted.keys() >= values, what="records are shared out",
                   seconds_max=60)  # fmt: skip
        for number in range(2):
            key = f"{topic}:{topic_id_of(cluster, topic)}:0"
            node_id = (
                cluster.coordinator(topic) if number == 0
                else cluster.coordinator(key, SHARE_COORDINATOR)
            )  # fmt: skip
            cluster.stop(node_id)
            more = write(cluster.bootstrap, places, 60, f"without {number}")
            values |= more
            eventually(lambda more=more: worker.accepted.keys() >= more,
                       what="records are shared out", seconds_max=60)  # fmt: skip
            cluster.start_node(node_id)
            cluster.wait_until_whole()
    finally:
        worker.stop()
    assert worker.accepted.keys() == values


def topic_id_of(cluster: ClusterUnderTest, topic: str) -> str:
    with to_leader(cluster, topic) as to:
        return uuid_to_text(asking.describe_topic(to, topic).topic_id)


def fetch_near(to: RawConnection, topic: str, rack: str, offset: int = 0) -> object:
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, session_id=0, session_epoch=-1, rack_id=rack,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )  # fmt: skip
    return to.call(ApiKey.FETCH, 11, request).responses[0].partitions[0]


def test_readers_are_sent_to_the_replica_in_their_rack(cluster: ClusterUnderTest) -> None:
    topic = "near"
    cluster.create_topic(topic, assignment=[[1, 2, 3]])
    values = write(cluster.bootstrap, [Place(topic, 0)], 20)
    with RawConnection(cluster.nodes[1].port) as leader:
        for node_id, preferred in ((1, -1), (2, 2), (3, 3)):
            # The leader knows what followers have when they fetched once more.
            answer = eventually(
                lambda node_id=node_id, preferred=preferred: (
                    found if (found := fetch_near(leader, topic, f"rack-{node_id}"))
                    .preferred_read_replica == preferred else None
                ),
                what="a follower in the reader's rack is named",
            )  # fmt: skip
            assert answer.error_code == 0
            assert bool(answer.records) == (preferred == -1)
        assert fetch_near(leader, topic, "nowhere").preferred_read_replica == -1
    with RawConnection(cluster.nodes[2].port) as follower:
        eventually(
            lambda: fetch_near(follower, topic, "rack-2").high_watermark == len(values),
            what="the follower hears of the high watermark",
        )
    consumer = Consumer({
        "bootstrap.servers": cluster.bootstrap, "group.id": "near", "client.rack": "rack-2",
        "auto.offset.reset": "earliest", "enable.auto.commit": False, "log_level": 0,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        seen: set[bytes] = set()
        read_until(consumer, seen, values)
        # Without the near one it reads from the leader.
        cluster.kill(2)
        values |= write(cluster.bootstrap, [Place(topic, 0)], 20, "later")
        read_until(consumer, seen, values)
    finally:
        consumer.close()


def read_until(consumer: Consumer, seen: set[bytes], wanted: set[bytes]) -> None:
    def read() -> bool:
        for message in consumer.consume(100, 0.05):
            if message.error() is None:
                seen.add(bytes(message.value() or b""))
        return seen == wanted

    eventually(read, what="the reader comes to the end", seconds_max=60)


def test_too_few_replicas_are_in_sync(cluster: ClusterUnderTest) -> None:
    topic = "all-three"
    follower = next(each for each in cluster.brokers if each != cluster.active_controller())
    leader, other = cluster.others(follower)
    cluster.create_topic(
        topic, config={"min.insync.replicas": "3"}, assignment=[[leader, other, follower]]
    )
    with RawConnection(cluster.nodes[leader].port, timeout=60) as to:
        assert asking.produce(to, topic, 0, BATCH).error_code == ErrorCode.NONE
        cluster.nodes[follower].pause()
        # In sync when it was written, no longer when it would be acknowledged. Since Kafka 4 the
        # high watermark stays where too few are in sync, so this is known to nobody.
        after = asking.produce(to, topic, 0, BATCH, timeout_ms=8_000)
        assert after.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert follower not in cluster.partitions(topic)[topic, 0].isr
        before = asking.produce(to, topic, 0, BATCH)
        assert before.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        # With acks=1 nobody counts.
        assert asking.produce(to, topic, 0, BATCH, acks=1).error_code == ErrorCode.NONE
        cluster.nodes[follower].resume()
        cluster.wait_until_whole(topic)
        assert asking.produce(to, topic, 0, BATCH).error_code == ErrorCode.NONE
        high = lambda: asking.list_offset(to, topic, 0, asking.LATEST).offset  # noqa: E731
        eventually(lambda: high() == 4, what="all that is in the log is committed")


def test_a_write_that_times_out_waiting_for_replicas(cluster: ClusterUnderTest) -> None:
    topic = "late"
    follower = next(each for each in cluster.brokers if each != cluster.active_controller())
    leader, other = cluster.others(follower)
    cluster.create_topic(topic, assignment=[[leader, other, follower]])
    with RawConnection(cluster.nodes[leader].port, timeout=60) as to:
        cluster.nodes[follower].pause()
        late = asking.produce(to, topic, 0, BATCH, timeout_ms=500)
        assert late.error_code == ErrorCode.REQUEST_TIMED_OUT
        # Out of sync it is not waited for.
        cluster.eventually(
            lambda: follower not in cluster.partitions(topic)[topic, 0].isr, what="the ISR shrinks"
        )
        assert asking.produce(to, topic, 0, BATCH).error_code == ErrorCode.NONE
        cluster.nodes[follower].resume()


def test_who_is_no_leader_says_so(cluster: ClusterUnderTest) -> None:
    topic = "elsewhere"
    cluster.create_topic(topic, assignment=[[1, 2]])
    with RawConnection(cluster.nodes[2].port) as to:
        refused = asking.produce(to, topic, 0, BATCH)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        listed = asking.list_offset(to, topic, 0, asking.LATEST)
        assert listed.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with RawConnection(cluster.nodes[3].port) as to:
        assert asking.fetch(to, topic, 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        listed = asking.list_offset(to, topic, 0, asking.LATEST)
        assert listed.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_graceful_stop_moves_leaders_first(cluster: ClusterUnderTest) -> None:
    topic = "graceful"
    cluster.create_topic(topic, 9)
    writing = Writing(cluster.bootstrap, topic, 9)
    writing.start()
    try:
        eventually(lambda: writing.steps > 100, what="records are written")
        for node_id in cluster.brokers:
            assert any(state.leader == node_id for state in cluster.partitions(topic).values())
            cluster.hand_over(node_id)
            cluster.eventually(
                lambda node_id=node_id: all(
                    state.leader not in (-1, node_id)
                    for other in cluster.serving
                    for state in cluster.partitions(topic, node_id=other).values()
                ),
                what="its partitions are led by others",
            )
            done = writing.steps
            eventually(lambda done=done: writing.steps > done + 50, what="records are written")
            cluster.start_node(node_id)
            cluster.wait_until_whole(topic)
            prefer(cluster, topic)
    finally:
        writing.end()
    writing.check()


def prefer(cluster: ClusterUnderTest, topic: str) -> None:
    """Give leadership back to each partition's first replica."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    partitions = [TopicPartition(*at) for at in cluster.partitions(topic)]
    admin.elect_leaders(ElectionType.PREFERRED, partitions).result(30)
    cluster.eventually(
        lambda: all(
            state.leader == state.replicas[0]
            for node_id in cluster.serving
            for state in cluster.partitions(topic, node_id=node_id).values()
        ),
        what="each partition is led by its first replica",
    )


@pytest.mark.long("stops all replicas in turn; simulations show it for thousands of seeds")
def test_the_last_in_sync_replica_is_waited_for(cluster: ClusterUnderTest) -> None:
    """Its followers lack what it had: nobody leads until it returns, unless one allows for loss."""
    careful, careless = "careful", "careless"
    follower = next(each for each in cluster.brokers if each != cluster.active_controller())
    (last,) = cluster.others(follower, cluster.active_controller())
    for topic in (careful, careless):
        cluster.create_topic(
            topic, config={"min.insync.replicas": "1"}, assignment=[[last, follower]]
        )
    cluster.kill(follower)
    cluster.wait_until_fenced(follower)
    with RawConnection(cluster.nodes[last].port) as to:
        for topic in (careful, careless):
            assert asking.produce(to, topic, 0, BATCH).error_code == ErrorCode.NONE
    # The quorum needs two of three: the follower returns when the last one is gone.
    cluster.nodes[last].kill()
    cluster.start_node(follower)
    cluster.wait_for_brokers(*cluster.others(last))
    asked = {"unclean.leader.election.enable": "true"}
    with RawConnection(cluster.nodes[follower].port) as to:
        assert asking.alter_config(to, asking.TOPIC_CONFIG, careless, asked) == (0, None)
    cluster.eventually(
        lambda: cluster.partitions(careless, node_id=follower)[careless, 0].leader == follower,
        what="the other leads, without the record",
    )
    assert cluster.partitions(careful, node_id=follower)[careful, 0].leader == -1
    cluster.start_node(last)
    cluster.wait_until_whole(careful, careless)
    for topic, count in ((careful, 1), (careless, 0)):
        with to_leader(cluster, topic) as to:
            eventually(
                lambda to=to, topic=topic, count=count: len(
                    asking.fetch_everything(to, topic, 0)) == count,
                what=f"{count} records are in {topic}",
            )  # fmt: skip


def test_requests_to_any_node_reach_the_controller(cluster: ClusterUnderTest) -> None:
    for node_id, number in itertools.product(cluster.brokers, range(2)):
        with RawConnection(cluster.nodes[node_id].port) as to:
            asking.create_topic(to, f"by-{node_id}-{number}", 2)
    names = {f"by-{node_id}-{number}" for node_id in cluster.brokers for number in range(2)}
    cluster.eventually(
        lambda: all(
            names <= {topic for topic, _ in cluster.partitions(node_id=node_id)}
            for node_id in cluster.brokers
        ),
        what="all nodes know all topics",
    )
    for node_id, name in itertools.product(cluster.brokers[:1], sorted(names)):
        with RawConnection(cluster.nodes[node_id].port) as to:
            asking.delete_topic(to, name)
