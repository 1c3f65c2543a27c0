"""The same requests to Moldau and to Apache Kafka: the answers agree, field by field.

What must differ is left out: addresses, ids drawn at random, clocks, and the wording of error
messages (the codes must agree).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    AlterConfigsRequest,
    AlterReplicaLogDirsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    ListConfigResourcesRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    UpdateFeaturesRequest,
)
from moldau.wire.records import encode_batch
from support.processes import BrokerProcess, apache_kafka, kafka_missing, moldau
from support.processes import kafka_properties as single_node
from support.raw import RawConnection

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

IGNORED = {
    "batch_index_error_message", "cluster_id", "controller_id", "documentation", "error_message",
    "host", "last_timestamp", "log_append_time_ms", "log_dir", "port", "producer_id", "session_id",
    "throttle_time_ms", "total_bytes", "unknown_tagged_fields", "usable_bytes",
}  # fmt: skip
NOW = int(time.time() * 1000)
SECONDS_MAX = 60.0


def comparable(value: Any) -> Any:
    if isinstance(value, Message):
        fields = [name for name in value.__slots__ if name not in IGNORED]
        return {name: comparable(getattr(value, name)) for name in fields}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, UUID):
        return "an id" if value.int else "no id"
    return value


def differences(ours: Any, kafkas: Any, at: str = "") -> dict[str, tuple[Any, Any]]:
    """Where two answers differ: path -> (ours, Kafka's)."""
    if isinstance(ours, dict) and isinstance(kafkas, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for name in ours.keys() | kafkas.keys():
            found |= differences(ours.get(name), kafkas.get(name), f"{at}.{name}")
        return found
    if isinstance(ours, list) and isinstance(kafkas, list) and len(ours) == len(kafkas):
        found = {}
        for index, (one, other) in enumerate(zip(ours, kafkas, strict=True)):
            found |= differences(one, other, f"{at}[{index}]")
        return found
    return {} if ours == kafkas else {at: (ours, kafkas)}


@dataclass(frozen=True)
class Pair:
    ours: RawConnection
    kafkas: RawConnection

    def compare(self, key: ApiKey, version: int, request: Message) -> Any:
        """Send to both, compare, and give our answer back."""
        expected = comparable(self.kafkas.call(key, version, request))
        response = self.ours.call(key, version, request)
        assert differences(comparable(response), expected) == {}
        return response


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerProcess, ...]]:
    ours, kafkas = tmp_path_factory.mktemp("moldau"), tmp_path_factory.mktemp("kafka")
    overrides = [
        f"{key}={value}"
        for key, value in single_node(ours, 0).items()
        if key.startswith(("offsets.", "transaction.", "group.", "share."))
    ]
    with moldau(ours, overrides) as first, apache_kafka(kafkas) as second:
        yield first, second


@pytest.fixture
def pair(brokers: tuple[BrokerProcess, BrokerProcess]) -> Iterator[Pair]:
    ours, kafkas = brokers
    with RawConnection(ours.port) as first, RawConnection(kafkas.port) as second:
        yield Pair(first, second)


def new_topic(
    pair: Pair, name: str, partitions: int = 1, config: dict[str, str] | None = None
) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in (config or {}).items()
        ],
    )
    for connection in (pair.ours, pair.kafkas):
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        response = connection.call(ApiKey.CREATE_TOPICS, 7, request)
        assert response.topics[0].error_code == 0, response
    wait_for_leaders(pair, name)


def ensure_topic(pair: Pair, name: str) -> None:
    """As `new_topic`, unless another case has made it."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    if pair.ours.call(ApiKey.METADATA, 9, request).topics[0].error_code:
        new_topic(pair, name)


def wait_for_leaders(pair: Pair, name: str) -> None:
    """Kafka answers before the broker has heard of the new topic and opened its logs."""
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[partition])
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    for connection in (pair.ours, pair.kafkas):
        deadline = time.monotonic() + SECONDS_MAX
        while connection.call(ApiKey.LIST_OFFSETS, 6, request).topics[0].partitions[0].error_code:
            assert time.monotonic() < deadline, f"{name} has no leader"


def produce(pair: Pair, topic: str, batch: bytes, *, version: int = 9, acks: int = -1) -> Any:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)],
            )
        ],
    )
    return pair.compare(ApiKey.PRODUCE, version, request)


def creatable(name: str, **fields: Any) -> CreateTopicsRequest.CreatableTopic:
    values = {"num_partitions": 1, "replication_factor": 1} | fields
    return CreateTopicsRequest.CreatableTopic(name=name, **values)


def assignments(*replicas: list[int]) -> list[CreateTopicsRequest.CreatableReplicaAssignment]:
    return [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
        for index, nodes in enumerate(replicas)
    ]


def topic_configs(**values: str | None) -> list[CreateTopicsRequest.CreatableTopicConfig]:
    return [
        CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in values.items()
    ]


@pytest.mark.parametrize(
    "topic",
    [
        pytest.param(creatable("ok"), id="plain"),
        pytest.param(creatable("defaults", num_partitions=-1, replication_factor=-1), id="default"),
        pytest.param(creatable(""), id="empty name"),
        pytest.param(creatable("."), id="dot"),
        pytest.param(creatable("a/b"), id="slash"),
        pytest.param(creatable("x" * 250), id="too long"),
        pytest.param(creatable("zero", num_partitions=0), id="no partitions"),
        pytest.param(creatable("minus", num_partitions=-2), id="negative partitions"),
        pytest.param(creatable("rf", replication_factor=3), id="more replicas than brokers"),
        pytest.param(creatable("rf0", replication_factor=0), id="no replicas"),
        pytest.param(
            creatable("manual", num_partitions=-1, replication_factor=-1,
                      assignments=assignments([1], [1])), id="manual"),
        pytest.param(
            creatable("both", assignments=assignments([1])), id="assignment and counts"),
        pytest.param(
            creatable("unknown-broker", num_partitions=-1, replication_factor=-1,
                      assignments=assignments([9])), id="unknown broker"),
        pytest.param(
            creatable("twice", num_partitions=-1, replication_factor=-1,
                      assignments=assignments([1, 1])), id="broker twice"),
        pytest.param(creatable("bad-key", configs=topic_configs(no_such_key="1")), id="bad key"),
        pytest.param(
            creatable("bad-value", configs=topic_configs(retention_ms="soon")), id="bad value"),
        pytest.param(
            creatable("range", configs=topic_configs(retention_ms="-5")), id="out of range"),
        pytest.param(
            creatable("good", configs=topic_configs(retention_ms="5", cleanup_policy="compact")),
            id="configs"),
        pytest.param(creatable("null", configs=topic_configs(retention_ms=None)), id="null value"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("validate_only", [True, False])
def test_create_topics(
    pair: Pair, topic: CreateTopicsRequest.CreatableTopic, validate_only: bool
) -> None:
    request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
    response = pair.compare(ApiKey.CREATE_TOPICS, 7, request)
    if not validate_only and response.topics[0].error_code == 0:
        wait_for_leaders(pair, topic.name)
        pair.compare(ApiKey.CREATE_TOPICS, 7, request)  # already there
        pair.compare(
            ApiKey.METADATA,
            12,
            MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic.name)]),
        )


def test_create_topics_colliding_and_doubled_names(pair: Pair) -> None:
    new_topic(pair, "col.lide")
    pair.compare(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[creatable("col_lide")]))
    doubled = [creatable("double"), creatable("double")]
    pair.compare(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=doubled))


@pytest.mark.parametrize("version", range(14))
def test_metadata(pair: Pair, version: int) -> None:
    name = f"metadata-{version}"
    new_topic(pair, name, 2)
    wanted = [MetadataRequest.MetadataRequestTopic(name=name)]
    if version >= 4:
        for missing in ("not-there", "bad/name"):
            wanted.append(MetadataRequest.MetadataRequestTopic(name=missing))
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=version < 4)
    if version >= 8:
        request.include_topic_authorized_operations = True
    if 8 <= version <= 10:
        request.include_cluster_authorized_operations = True
    pair.compare(ApiKey.METADATA, version, request)


@pytest.mark.parametrize("version", [1, 4, 9, 12])
def test_a_topic_that_metadata_creates_is_unknown_at_first(pair: Pair, version: int) -> None:
    name = f"created-by-metadata-{version}"
    wanted = [MetadataRequest.MetadataRequestTopic(name=name)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
    response = pair.compare(ApiKey.METADATA, version, request)
    assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wait_for_leaders(pair, name)
    pair.compare(ApiKey.METADATA, version, request)


def test_a_deleted_topic_is_seen_to_be_gone(pair: Pair) -> None:
    """Also by a client whose question creates it again."""
    new_topic(pair, "deleted")
    deletion = DeleteTopicsRequest(topic_names=["deleted"], timeout_ms=30_000)
    pair.compare(ApiKey.DELETE_TOPICS, 5, deletion)
    wanted = [MetadataRequest.MetadataRequestTopic(name="deleted")]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
    assert not pair.ours.call(ApiKey.METADATA, 9, request).topics[0].partitions


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster(pair: Pair, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    pair.compare(ApiKey.DESCRIBE_CLUSTER, version, request)
    if version >= 1:
        for endpoint_type in (2, 3):
            request = DescribeClusterRequest(endpoint_type=endpoint_type)
            response = pair.compare(ApiKey.DESCRIBE_CLUSTER, version, request)
            assert response.error_code


def test_describe_topic_partitions(pair: Pair) -> None:
    for name in ("paged-a", "paged-b", "paged-c"):
        new_topic(pair, name, 3)
    wanted = [
        DescribeTopicPartitionsRequest.TopicRequest(name=name)
        for name in ("paged-c", "paged-a", "paged-b", "paged-missing")
    ]
    cursor = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(
            topics=wanted, response_partition_limit=2, cursor=cursor
        )
        response = pair.compare(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        if response.next_cursor is None:
            break
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=response.next_cursor.topic_name,
            partition_index=response.next_cursor.partition_index,
        )
    else:
        raise AssertionError("the pages never end")


@pytest.mark.parametrize(
    ("topics", "cursor"),
    [
        pytest.param(["odd-a", "odd-c"], ("odd-b", 0), id="topic that is not in the list"),
        pytest.param(["odd-a", "odd-b"], ("odd-c", 0), id="topic after the whole list"),
        pytest.param(["odd-a", "not-there"], ("other", 0), id="topic that does not exist"),
        pytest.param(["odd-a", "odd-b"], ("odd-a", -2), id="negative partition"),
        pytest.param([], ("odd-b", -2), id="negative partition, all topics"),
        pytest.param(["odd-a", "odd-b"], ("odd-a", 7), id="partition that does not exist"),
    ],
)
def test_describe_topic_partitions_with_odd_cursors(
    pair: Pair, topics: list[str], cursor: tuple[str, int]
) -> None:
    for name in ("odd-a", "odd-b", "odd-c"):
        ensure_topic(pair, name)
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in topics],
        response_partition_limit=10,
        cursor=DescribeTopicPartitionsRequest.Cursor(
            topic_name=cursor[0], partition_index=cursor[1]
        ),
    )
    pair.compare(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "levels",
    [
        pytest.param({"transaction.version": 2}, id="the level it has"),
        pytest.param({"transaction.version": 99}, id="unknown level"),
        pytest.param({"no.such.feature": 1}, id="unknown feature"),
        pytest.param({"transaction.version": 2, "no.such.feature": 1}, id="one of two"),
        pytest.param({"transaction.version": 1}, id="lower level"),
        pytest.param({}, id="nothing"),
    ],
)
def test_update_features(pair: Pair, levels: dict[str, int], version: int) -> None:
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level)
        for name, level in levels.items()
    ]
    pair.compare(ApiKey.UPDATE_FEATURES, version, UpdateFeaturesRequest(feature_updates=updates))


def describe(kind: int, name: str, keys: list[str] | None = None) -> DescribeConfigsRequest:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True)


TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def by_name(response: Any) -> dict[str, Any]:
    return {entry.name: comparable(entry) for entry in response.results[0].configs}


@pytest.mark.parametrize("version", [1, 4])
def test_describe_topic_configs(pair: Pair, version: int) -> None:
    name = f"described-{version}"
    new_topic(pair, name, config={"retention.ms": "1234", "cleanup.policy": "compact,delete"})
    request = describe(TOPIC, name)
    ours = pair.ours.call(ApiKey.DESCRIBE_CONFIGS, version, request)
    kafkas = pair.kafkas.call(ApiKey.DESCRIBE_CONFIGS, version, request)
    assert differences(by_name(ours), by_name(kafkas)) == {}


# Values that hold paths and ports, and what `moldau start` sets by itself.
DIFFERENT_BY_NATURE = {
    "log.dirs", "log.dir", "listeners", "advertised.listeners", "controller.quorum.voters",
    "controller.quorum.bootstrap.servers", "node.id", "broker.id",
    "listener.security.protocol.map", "controller.listener.names", "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
}  # fmt: skip


def test_describe_broker_configs(pair: Pair) -> None:
    request = describe(BROKER, "1")
    ours = by_name(pair.ours.call(ApiKey.DESCRIBE_CONFIGS, 4, request))
    kafkas = by_name(pair.kafkas.call(ApiKey.DESCRIBE_CONFIGS, 4, request))
    assert ours.keys() == kafkas.keys()
    different = {
        name: (ours[name], kafkas[name])
        for name in kafkas
        if ours[name] != kafkas[name] and name not in DIFFERENT_BY_NATURE
    }
    assert different == {}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TOPIC, "not-there"), (TOPIC, "bad/name"), (TOPIC, ""), (BROKER, "77"), (BROKER, "x"),
     (99, "x"), (GROUP, "some-group"), (GROUP, ""), (CLIENT_METRICS, "none"), (BROKER, "")],
)  # fmt: skip
def test_describe_configs_of_odd_resources(pair: Pair, kind: int, name: str) -> None:
    ours = pair.ours.call(ApiKey.DESCRIBE_CONFIGS, 4, describe(kind, name))
    kafkas = pair.kafkas.call(ApiKey.DESCRIBE_CONFIGS, 4, describe(kind, name))
    assert ours.results[0].error_code == kafkas.results[0].error_code
    assert differences(by_name(ours), by_name(kafkas)) == {}


Alter = IncrementalAlterConfigsRequest
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def incremental(
    kind: int, name: str, *changes: tuple[str, int, str | None]
) -> IncrementalAlterConfigsRequest:
    configs = [
        Alter.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = Alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return Alter(resources=[resource])


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param((("retention.ms", SET, "5000"),), id="set"),
        pytest.param((("retention.ms", DELETE, None),), id="delete"),
        pytest.param((("cleanup.policy", APPEND, "compact"),), id="append"),
        pytest.param((("cleanup.policy", SUBTRACT, "delete"),), id="subtract"),
        pytest.param((("retention.ms", APPEND, "5"),), id="append to a number"),
        pytest.param((("no.such", SET, "5"),), id="unknown key"),
        pytest.param((("retention.ms", SET, "x"),), id="not a number"),
        pytest.param((("retention.ms", SET, None),), id="set to null"),
        pytest.param((("retention.ms", SET, "1"), ("retention.ms", SET, "2")), id="twice"),
        pytest.param((), id="nothing"),
    ],
)
def test_incremental_alter_configs(
    pair: Pair, changes: tuple[tuple[str, int, str | None], ...], request: Any
) -> None:
    name = "alter-" + request.node.callspec.id.replace(" ", "-")
    new_topic(pair, name, config={"retention.ms": "99"})
    pair.compare(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, incremental(TOPIC, name, *changes))
    check_configs_of(pair, name)


def check_configs_of(pair: Pair, topic: str) -> None:
    """In the end: Kafka's broker hears of a change a little later than its controller."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        ours = by_name(pair.ours.call(ApiKey.DESCRIBE_CONFIGS, 4, describe(TOPIC, topic)))
        kafkas = by_name(pair.kafkas.call(ApiKey.DESCRIBE_CONFIGS, 4, describe(TOPIC, topic)))
        if ours == kafkas or time.monotonic() > deadline:
            break
    assert differences(ours, kafkas) == {}


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        (TOPIC, "not-there", "retention.ms", "1"), (TOPIC, "bad/name", "retention.ms", "1"),
        (BROKER, "77", "log.cleaner.threads", "2"), (BROKER, "1", "node.id", "5"),
        (BROKER, "x", "log.cleaner.threads", "2"), (BROKER, "", "log.retention.ms", "x"),
        (BROKER, "", "listeners", "PLAINTEXT://:1"), (99, "x", "a", "b"),
        (GROUP, "g1", "consumer.session.timeout.ms", "50000"),
        (GROUP, "g1", "consumer.session.timeout.ms", "1"),
        (GROUP, "g1", "no.such.key", "1"), (GROUP, "", "consumer.session.timeout.ms", "50000"),
        (CLIENT_METRICS, "m1", "interval.ms", "1000"), (CLIENT_METRICS, "m1", "interval.ms", "1"),
        (CLIENT_METRICS, "m1", "no.such", "1"),
        (BROKER, "", "log.retention.ms", "7200000"), (BROKER, "1", "log.retention.ms", "7300000"),
    ],
)  # fmt: skip
def test_alter_configs_of_other_resources(
    pair: Pair, kind: int, name: str, key: str, value: str
) -> None:
    pair.compare(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, incremental(kind, name, (key, SET, value)))


def test_alter_configs_replaces_all(pair: Pair) -> None:
    name = "alter-all"
    new_topic(pair, name, config={"retention.ms": "99", "retention.bytes": "5"})
    config = AlterConfigsRequest.AlterableConfig(name="segment.ms", value="777777")
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC, resource_name=name, configs=[config]
    )
    pair.compare(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest(resources=[resource]))
    check_configs_of(pair, name)


def test_list_config_resources(pair: Pair) -> None:
    change = incremental(CLIENT_METRICS, "listed", ("interval.ms", SET, "2000"))
    pair.compare(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, change)
    deadline = time.monotonic() + SECONDS_MAX
    for version, types in ((0, []), (1, [CLIENT_METRICS]), (1, [BROKER]), (1, [77])):
        request = ListConfigResourcesRequest(resource_types=types)

        def listed(connection: RawConnection) -> tuple[int, set[tuple[int, str]]]:
            response = connection.call(ApiKey.LIST_CONFIG_RESOURCES, version, request)  # noqa: B023
            found = response.config_resources
            return response.error_code, {(item.resource_type, item.resource_name) for item in found}

        # Other tests of this module leave client-metrics resources behind on both sides, and
        # Kafka's broker hears of a new one a little later than its controller.
        while (ours := listed(pair.ours)) != (kafkas := listed(pair.kafkas)):
            assert time.monotonic() < deadline, (ours, kafkas)


@pytest.mark.parametrize(
    ("count", "manual"),
    [(3, None), (1, None), (0, None), (2, [[1]]), (2, [[9]]), (4, [[1]]), (-1, None)],
)
def test_create_partitions(
    pair: Pair, count: int, manual: list[list[int]] | None, request: Any
) -> None:
    name = f"grow-{count}-{'manual' if manual else 'auto'}-{manual == [[9]]}"
    new_topic(pair, name)
    grow = CreatePartitionsRequest.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=manual
        and [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=ids) for ids in manual],
    )
    pair.compare(
        ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[grow], timeout_ms=30_000)
    )
    missing = CreatePartitionsRequest.CreatePartitionsTopic(name="not-there", count=3)
    pair.compare(
        ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[missing], timeout_ms=30_000)
    )


def test_delete_topics(pair: Pair) -> None:
    new_topic(pair, "to-delete")
    for name in ("to-delete", "to-delete", "bad/name", ""):
        state = DeleteTopicsRequest.DeleteTopicState(name=name)
        request = DeleteTopicsRequest(topics=[state], timeout_ms=30_000)
        pair.compare(ApiKey.DELETE_TOPICS, 6, request)
    unknown = DeleteTopicsRequest.DeleteTopicState(topic_id=UUID(int=12345678901234567890123))
    request = DeleteTopicsRequest(topics=[unknown], timeout_ms=30_000)
    pair.compare(ApiKey.DELETE_TOPICS, 6, request)


def damaged(batch: bytes, position: int) -> bytes:
    return batch[:position] + bytes([batch[position] ^ 1]) + batch[position + 1 :]


def rows(*timestamps: int, key: bytes | None = b"k") -> list[Any]:
    return [(key, b"value", timestamp, ()) for timestamp in timestamps]


GOOD = encode_batch(rows(NOW, NOW + 1))


@pytest.mark.parametrize("version", range(3, 13))
def test_produce_versions(pair: Pair, version: int) -> None:
    name = f"produce-{version}"
    new_topic(pair, name)
    for acks in (1, -1):
        assert produce(pair, name, GOOD, version=version, acks=acks).responses


@pytest.mark.parametrize(
    ("batch", "config"),
    [
        pytest.param(damaged(GOOD, 70), {}, id="bytes under the CRC"),
        pytest.param(damaged(GOOD, 17), {}, id="the CRC itself"),
        pytest.param(GOOD + GOOD, {}, id="two batches"),
        pytest.param(b"", {}, id="no bytes"),
        pytest.param(GOOD[:40], {}, id="cut off in the header"),
        pytest.param(GOOD[:-3], {}, id="cut off in the records"),
        pytest.param(GOOD[:16] + b"\x01" + GOOD[17:], {}, id="magic 1"),
        pytest.param(encode_batch(rows(NOW, key=None)), {"cleanup.policy": "compact"}, id="no key"),
        pytest.param(encode_batch(rows(NOW + 10**8)), {}, id="from the future"),
        pytest.param(
            encode_batch(rows(1000)), {"message.timestamp.before.max.ms": "60000"}, id="too old"),
        pytest.param(encode_batch(rows(NOW)), {"max.message.bytes": "50"}, id="too large"),
        pytest.param(
            encode_batch(rows(NOW), is_control=True, is_transactional=True, producer_id=5,
                         producer_epoch=0), {}, id="control batch"),
        pytest.param(
            encode_batch(rows(NOW), producer_id=5, producer_epoch=0, base_sequence=-1), {},
            id="no sequence"),
    ],
)  # fmt: skip
def test_bad_batches(pair: Pair, batch: bytes, config: dict[str, str], request: Any) -> None:
    name = "bad-" + request.node.callspec.id.replace(" ", "-")
    new_topic(pair, name, config=config)
    produce(pair, name, batch)
    if not config:
        assert produce(pair, name, GOOD).responses[0].partition_responses[0].base_offset == 0


def sequenced(sequence: int, epoch: int = 0, count: int = 2) -> bytes:
    batch = rows(*range(NOW, NOW + count))
    return encode_batch(batch, producer_id=4711, producer_epoch=epoch, base_sequence=sequence)


def test_idempotent_producer(pair: Pair) -> None:
    """Duplicates within five batches, gaps, old epochs and new ones."""
    new_topic(pair, "sequences")
    steps = [(0, 0), (2, 0), (2, 0), (4, 0), (6, 0), (8, 0), (10, 0), (2, 0), (0, 0), (4, 0),
             (14, 0), (12, 0), (3, 1), (0, 1), (14, 0), (2, 1), (0, 3), (2, 2)]  # fmt: skip
    for sequence, epoch in steps:
        produce(pair, "sequences", sequenced(sequence, epoch))


def test_produce_to_odd_places(pair: Pair) -> None:
    new_topic(pair, "odd")
    for topic, acks in (("not-there", -1), ("odd", 2), ("odd", -3), ("__consumer_offsets", 1)):
        produce(pair, topic, GOOD, acks=acks)


def fetch_request(topic: str, **partition: Any) -> FetchRequest:
    values = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20} | partition
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=10,
        min_bytes=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(
            topic=topic, partitions=[FetchRequest.FetchPartition(**values)])],
    )  # fmt: skip


def filled(pair: Pair, name: str, batches: int = 5) -> None:
    new_topic(pair, name)
    for number in range(batches):
        produce(pair, name, encode_batch(rows(NOW + 10 * number, NOW + 10 * number + 1)))


@pytest.mark.parametrize("version", range(4, 13))
def test_fetch_versions(pair: Pair, version: int) -> None:
    name = f"fetch-{version}"
    filled(pair, name)
    request = fetch_request(name)
    if version < 7:
        request.session_epoch = FetchRequest().session_epoch
    for isolation_level in (0, 1):
        request.isolation_level = isolation_level
        response = pair.compare(ApiKey.FETCH, version, request)
        assert response.responses[0].partitions[0].records


@pytest.mark.parametrize(
    "partition",
    [
        {"fetch_offset": 3}, {"fetch_offset": 10}, {"fetch_offset": 11}, {"fetch_offset": -1},
        {"partition": 7}, {"partition_max_bytes": 1}, {"partition_max_bytes": 100},
        {"current_leader_epoch": 0}, {"current_leader_epoch": 9},
        {"last_fetched_epoch": 0, "fetch_offset": 4}, {"last_fetched_epoch": 5, "fetch_offset": 4},
    ],
)  # fmt: skip
def test_fetch_positions(pair: Pair, partition: dict[str, int], request: Any) -> None:
    name = f"positions-{request.node.callspec.indices['partition']}"
    filled(pair, name)
    pair.compare(ApiKey.FETCH, 12, fetch_request(name, **partition))


def test_fetch_odd_requests(pair: Pair) -> None:
    new_topic(pair, "fetch-odd")
    pair.compare(ApiKey.FETCH, 12, fetch_request("not-there"))
    wrong_session = fetch_request("fetch-odd")
    wrong_session.session_id, wrong_session.session_epoch = 12345, 3
    pair.compare(ApiKey.FETCH, 12, wrong_session)


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets(pair: Pair, version: int) -> None:
    name = f"offsets-{version}"
    filled(pair, name)
    timestamps = [-1, -2, NOW, NOW + 11, NOW + 10_000]
    timestamps += [-3] if version >= 7 else []
    timestamps += [-4] if version >= 8 else []
    timestamps += [-5] if version >= 9 else []
    timestamps += [-6] if version >= 11 else []
    for timestamp in timestamps:
        for topic, partition in ((name, 0), (name, 5), ("not-there", 0)):
            asked = ListOffsetsRequest.ListOffsetsPartition(
                partition_index=partition, timestamp=timestamp
            )
            request = ListOffsetsRequest(
                replica_id=-1,
                topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])],
            )
            pair.compare(ApiKey.LIST_OFFSETS, version, request)


@pytest.mark.parametrize("offset", [3, 0, -1, 10, 11, -5])
def test_delete_records(pair: Pair, offset: int) -> None:
    name = f"delete-records-{offset}"
    filled(pair, name)
    compacted = f"compacted-{offset}"
    new_topic(pair, compacted, config={"cleanup.policy": "compact"})
    for topic, partition in ((name, 0), (name, 4), ("not-there", 0), (compacted, 0)):
        asked = DeleteRecordsRequest.DeleteRecordsPartition(
            partition_index=partition, offset=offset
        )
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])],
            timeout_ms=30_000,
        )
        pair.compare(ApiKey.DELETE_RECORDS, 2, request)
    pair.compare(ApiKey.FETCH, 12, fetch_request(name, fetch_offset=2))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch(pair: Pair, version: int) -> None:
    name = f"epochs-{version}"
    filled(pair, name)
    for epoch in (-1, 0, 5):
        for partition in (0, 3):
            asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                partition=partition, leader_epoch=epoch
            )
            topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name, partitions=[asked])
            request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
            pair.compare(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request)


def test_describe_producers(pair: Pair) -> None:
    new_topic(pair, "producers")
    produce(pair, "producers", sequenced(0))
    topics = [
        DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0, 8])
        for name in ("producers", "not-there")
    ]
    pair.compare(ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=topics))


def test_log_dirs(pair: Pair) -> None:
    filled(pair, "dirs")
    topic = DescribeLogDirsRequest.DescribableLogDirTopic(topic="dirs", partitions=[0])
    for version in range(1, 6):
        request = DescribeLogDirsRequest(topics=[topic])
        pair.compare(ApiKey.DESCRIBE_LOG_DIRS, version, request)
    moved = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="dirs", partitions=[0, 5])
    folder = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path="/not/there", topics=[moved])
    pair.compare(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, AlterReplicaLogDirsRequest(dirs=[folder]))


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(pair: Pair, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    deadline = time.monotonic() + SECONDS_MAX
    while pair.kafkas.call(ApiKey.INIT_PRODUCER_ID, version, request).error_code:
        assert time.monotonic() < deadline, "Kafka gives no producer ids"
    assert pair.compare(ApiKey.INIT_PRODUCER_ID, version, request).error_code == 0


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator(pair: Pair, version: int) -> None:
    if version < 4:
        request = FindCoordinatorRequest(key="group", key_type=0)
    else:
        request = FindCoordinatorRequest(coordinator_keys=["group", "other"], key_type=0)

    def answered(connection: RawConnection) -> Callable[[], bool]:
        def probe() -> bool:
            response = connection.call(ApiKey.FIND_COORDINATOR, version, request)
            codes = [item.error_code for item in response.coordinators] or [response.error_code]
            return codes.count(0) == len(codes)

        return probe

    for connection in (pair.ours, pair.kafkas):
        deadline = time.monotonic() + SECONDS_MAX
        while not answered(connection)():
            assert time.monotonic() < deadline, "no group coordinator"
    pair.compare(ApiKey.FIND_COORDINATOR, version, request)


def test_advertised_versions_are_kafkas(pair: Pair) -> None:
    """Whatever we offer, we offer in Kafka's range.

    Moldau offers telemetry while a subscription exists, as other tests here create them; Kafka only
    with a plug-in that receives it (test_client_telemetry.py has both cases).
    """
    from moldau.wire.messages import ApiVersionsRequest

    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    ours = pair.ours.call(ApiKey.API_VERSIONS, 4, request)
    kafkas = pair.kafkas.call(ApiKey.API_VERSIONS, 4, request)
    theirs = {api.api_key: (api.min_version, api.max_version) for api in kafkas.api_keys}
    telemetry = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    for api in ours.api_keys:
        if api.api_key in telemetry:
            continue
        name = API_BY_KEY[api.api_key].name
        assert (name, api.min_version, api.max_version) == (name, *theirs[api.api_key])
