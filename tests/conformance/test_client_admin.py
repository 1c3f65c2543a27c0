"""The admin client: topics, configurations, records and the cluster, on one broker.

Runs against Moldau, and with --against-kafka against Apache Kafka.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from moldau.client import errors
from moldau.client.admin import (
    Admin,
    AlterConfigOp,
    AsyncAdmin,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaOp,
    ConfigEntryType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ElectionType,
    FeatureUpdate,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    RecordsToDelete,
    ScramCredentialInfo,
    ScramMechanism,
    TopicPartitionReplica,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.message import Message
from moldau.wire.messages import PushTelemetryRequest
from moldau.wire.records import Record, encode_batch
from support import asking
from support.processes import BrokerProcess
from support.raw import RawConnection
from support.waiting import eventually

UNSERVED = (errors.UnsupportedVersionError, errors.SecurityDisabledError)


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


@pytest.fixture
def of_kafka(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--against-kafka"))


def create(admin: Admin, *topics: NewTopic) -> None:
    """Kafka answers before its broker has heard of the topic."""
    admin.create_topics(topics)
    names = [each.name for each in topics]
    eventually(lambda: set(names) <= set(admin.list_topics()), what=f"{names} are known")


def fill(broker: BrokerProcess, topic: str, *timestamps: int) -> None:
    with RawConnection(broker.port) as to:
        for timestamp in timestamps:
            batch = encode_batch([Record(0, timestamp, None, b"v", ())])
            eventually(
                lambda batch=batch: asking.produce(to, topic, 0, bytes(batch)).error_code == 0,
                what="produced",
            )


def test_topics_live_from_creation_to_deletion(admin: Admin) -> None:
    made = admin.create_topics(
        [NewTopic("born", 3, 1, {"retention.ms": "1234"}), "by-default"], timeout=60
    )
    born = made["born"]
    assert (born.num_partitions, born.replication_factor) == (3, 1)
    assert born.config is not None
    assert born.config["retention.ms"].value == "1234"
    assert born.config["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert made["by-default"].num_partitions == 1
    listed = eventually(
        lambda: admin.list_topics() if "by-default" in admin.list_topics() else None,
        what="topics are listed",
    )
    assert listed["born"].topic_id == born.topic_id
    assert admin.delete_topics(["born", made["by-default"].topic_id])
    eventually(lambda: "born" not in admin.list_topics(), what="it is gone")


def test_topic_with_assignments(admin: Admin) -> None:
    node = admin.describe_cluster().nodes[0].id
    create(admin, NewTopic("placed", replicas_assignments={0: [node], 1: [node]}))
    described = admin.describe_topics(["placed"])["placed"]
    assert [partition.replicas[0].id for partition in described.partitions] == [node, node]
    with pytest.raises(ValueError, match="not both"):
        NewTopic("placed", 1, replicas_assignments={0: [node]})


def test_errors_are_by_topic_and_the_first_is_raised(admin: Admin) -> None:
    create(admin, NewTopic("there", 1, 1))
    results = admin.create_topics(["there", "", NewTopic("new", -5, 1)], check=False)
    assert isinstance(results.errors["there"], errors.TopicExistsError)
    assert isinstance(results.errors[""], errors.InvalidTopicError)
    assert isinstance(results.errors["new"], errors.InvalidPartitionsError)
    with pytest.raises(errors.TopicExistsError) as caught:
        admin.create_topics(["there", NewTopic("also-new", 1, 1)])
    assert caught.value.results["also-new"].num_partitions == 1
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics(["nowhere"])
    with pytest.raises(errors.InvalidTopicError):
        admin.delete_topics([UUID(int=0)])


def test_validation_creates_nothing(admin: Admin) -> None:
    checked = admin.create_topics([NewTopic("checked", 2, 1)], validate_only=True)
    assert checked["checked"].num_partitions == 2
    assert "checked" not in admin.list_topics()
    with pytest.raises(errors.InvalidConfigurationError):
        admin.create_topics([NewTopic("x", 1, 1, {"no.such.key": "1"})], validate_only=True)


def test_description_by_name_comes_in_pages(admin: Admin) -> None:
    create(admin, NewTopic("page-a", 5, 1), NewTopic("page-b", 4, 1), NewTopic("page-c", 1, 1))
    names = ["page-c", "page-a", "nowhere", "page-b"]
    paged = admin.describe_topics(names, partition_size_limit_per_response=2, check=False)
    counts = {name: len(each.partitions) for name, each in paged.values_by_key.items()}
    assert counts == {"page-a": 5, "page-b": 4, "page-c": 1}
    assert [each.partition for each in paged["page-a"].partitions] == [0, 1, 2, 3, 4]
    assert isinstance(paged.errors["nowhere"], errors.UnknownTopicOrPartitionError)
    whole = admin.describe_topics(["page-a"])["page-a"]
    assert whole == paged["page-a"]
    leader = whole.partitions[0].leader
    assert leader is not None
    assert leader.port == admin.describe_cluster().nodes[0].port
    assert whole.partitions[0].isr == whole.partitions[0].replicas == (leader,)
    assert whole.partitions[0].elr == ()


def test_description_by_id_and_authorized_operations(admin: Admin) -> None:
    create(admin, NewTopic("known", 1, 1))
    by_name = admin.describe_topics(["known"], include_authorized_operations=True)["known"]
    assert by_name.authorized_operations is not None
    assert {each.name for each in by_name.authorized_operations} >= {"READ", "WRITE", "DELETE"}
    by_id = admin.describe_topics([by_name.topic_id])[by_name.topic_id]
    assert (by_id.name, by_id.authorized_operations) == ("known", None)
    unknown = UUID(int=2**80)
    with pytest.raises(errors.UnknownTopicIdError):
        admin.describe_topics([unknown])


def test_partitions_are_added(admin: Admin) -> None:
    create(admin, NewTopic("growing", 1, 1), NewTopic("also-growing", 1, 1))
    node = admin.describe_cluster().nodes[0].id
    admin.create_partitions({"growing": 3, "also-growing": NewPartitions(2, [[node]])})
    eventually(
        lambda: len(admin.describe_topics(["growing"])["growing"].partitions) == 3, what="three"
    )
    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_partitions({"growing": 2})


def test_configs_of_topics(admin: Admin) -> None:
    create(admin, NewTopic("configured", 1, 1))
    topic = ConfigResource.topic("configured")
    admin.incremental_alter_configs(
        {topic: [AlterConfigOp.set("retention.ms", "77"), AlterConfigOp.append(
            "cleanup.policy", "compact")]}
    )  # fmt: skip

    def described() -> bool:
        return admin.describe_configs([topic])[topic]["retention.ms"].value == "77"

    eventually(described, what="the change is in effect")
    entries = admin.describe_configs([topic], include_synonyms=True, include_documentation=True)
    retention = entries[topic]["retention.ms"]
    assert retention.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert retention.type is ConfigEntryType.LONG
    assert retention.documentation
    assert retention.synonyms[0].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entries[topic]["cleanup.policy"].value == "delete,compact"
    admin.incremental_alter_configs(
        {topic: [AlterConfigOp.subtract("cleanup.policy", "delete"), AlterConfigOp.delete(
            "retention.ms")]}
    )  # fmt: skip
    eventually(
        lambda: admin.describe_configs([topic])[topic]["cleanup.policy"].value == "compact",
        what="it is back",
    )
    with pytest.raises(errors.InvalidConfigurationError):
        admin.incremental_alter_configs({topic: [AlterConfigOp.set("retention.ms", "x")]})


def test_configs_of_brokers_and_others(admin: Admin) -> None:
    node = admin.describe_cluster().nodes[0].id
    broker, default = ConfigResource.broker(node), ConfigResource.broker()
    missing = ConfigResource.topic("nowhere")
    admin.incremental_alter_configs({default: [AlterConfigOp.set("log.cleaner.threads", "2")]})
    results = eventually(
        lambda: _if(
            admin.describe_configs([broker, default, missing], check=False),
            lambda found: "log.cleaner.threads" in found[default],
        ),
        what="the default is known",
    )
    assert results[broker]["node.id"].value == str(node)
    assert results[broker]["node.id"].is_read_only
    assert isinstance(results.errors[missing], errors.UnknownTopicOrPartitionError)
    admin.incremental_alter_configs({default: [AlterConfigOp.delete("log.cleaner.threads")]})
    metrics = ConfigResource.client_metrics("all-of-them")
    admin.incremental_alter_configs({metrics: [AlterConfigOp.set("interval.ms", "1000")]})
    eventually(lambda: admin.list_client_metrics_resources() == ["all-of-them"], what="listed")
    assert metrics in admin.list_config_resources([ConfigResourceType.CLIENT_METRICS])
    assert broker in admin.list_config_resources()
    with pytest.raises(errors.InvalidRequestError, match="number"):
        admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "one")])


def _if(value, condition):  # type: ignore[no-untyped-def]
    return value if condition(value) else None


def test_cluster_and_quorum(admin: Admin) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True)
    assert len(cluster.nodes) == 1
    assert cluster.controller == cluster.nodes[0]
    assert len(cluster.cluster_id) == 22
    assert cluster.authorized_operations
    assert admin.describe_cluster(include_fenced_brokers=True).nodes[0].is_fenced is False
    assert admin.describe_cluster().authorized_operations is None
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader_id == cluster.nodes[0].id
    assert [voter.replica_id for voter in quorum.voters] == [quorum.leader_id]
    assert quorum.nodes[quorum.leader_id].endpoints[0].listener == "CONTROLLER"
    with pytest.raises(errors.BrokerIdNotRegisteredError):
        admin.unregister_broker(99)
    with pytest.raises(errors.KafkaError):
        admin.remove_raft_voter(99, UUID(int=7), timeout=60)


def test_features(admin: Admin) -> None:
    features = admin.describe_features()
    level = features.finalized_features["metadata.version"].max_version_level
    assert features.finalized_features_epoch is not None
    assert features.supported_features["metadata.version"].max_version >= level
    node = admin.describe_cluster().nodes[0].id
    assert admin.describe_features(node_id=node).finalized_features == features.finalized_features
    admin.update_features({"metadata.version": FeatureUpdate(level)}, validate_only=True)
    with pytest.raises(errors.KafkaError) as caught:
        admin.update_features({"no.such.feature": FeatureUpdate(1)})
    assert caught.value.code is not None
    with pytest.raises(errors.InvalidRequestError):
        admin.update_features({})


def test_offsets_and_deleted_records(broker: BrokerProcess, admin: Admin) -> None:
    now = int(time.time() * 1000)
    create(admin, NewTopic("offsets", 2, 1))
    first, second = TopicPartition("offsets", 0), TopicPartition("offsets", 1)
    fill(broker, "offsets", now - 3000, now, now - 2000)

    def offset(spec: OffsetSpec) -> int:
        return admin.list_offsets({first: spec})[first].offset

    assert (offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())) == (0, 3)
    assert offset(OffsetSpec.max_timestamp()) == 1
    assert offset(OffsetSpec.for_timestamp(now - 2500)) == 1
    assert offset(OffsetSpec.for_timestamp(now + 1000)) == -1
    assert offset(OffsetSpec.earliest_local()) == 0
    assert offset(OffsetSpec.latest_tiered()) == -1
    both = admin.list_offsets(
        {first: OffsetSpec.latest(), second: OffsetSpec.latest()}, isolation_level="read_committed"
    )
    assert (both[first].offset, both[second].offset) == (3, 0)
    assert both[first].leader_epoch == 0
    assert admin.delete_records({first: RecordsToDelete(2)})[first].low_watermark == 2
    assert offset(OffsetSpec.earliest()) == 2
    with pytest.raises(errors.OffsetOutOfRangeError):
        admin.delete_records({first: RecordsToDelete(9)})
    with pytest.raises(errors.InvalidRequestError, match="isolation"):
        admin.list_offsets({first: OffsetSpec.latest()}, isolation_level="serializable")


def test_plain_pairs_name_partitions_too(admin: Admin) -> None:
    create(admin, NewTopic("pairs", 1, 1))
    pair = ("pairs", 0)
    assert admin.list_offsets({pair: OffsetSpec.latest()})[pair].offset == 0
    assert admin.delete_records({pair: RecordsToDelete(0)})[pair].low_watermark == 0
    admin.alter_partition_reassignments({pair: None}, check=False)
    admin.alter_consumer_group_offsets("pairs-group", {pair: OffsetAndMetadata(0)})
    found = admin.list_consumer_group_offsets({"pairs-group": None})["pairs-group"]
    assert found[TopicPartition("pairs", 0)].offset == 0


def test_partition_that_is_not_there_is_waited_for(admin: Admin) -> None:
    missing = TopicPartition("nowhere", 0)
    with pytest.raises(errors.KafkaTimeoutError, match="UNKNOWN_TOPIC_OR_PARTITION") as caught:
        admin.list_offsets({missing: OffsetSpec.latest()}, timeout=3.0)
    assert isinstance(caught.value.__cause__, errors.UnknownTopicOrPartitionError)


def test_elections_and_reassignments_of_one_replica(admin: Admin) -> None:
    create(admin, NewTopic("led", 1, 1))
    key = TopicPartition("led", 0)
    node = admin.describe_cluster().nodes[0].id
    results = admin.elect_leaders(ElectionType.PREFERRED, [key], check=False)
    assert isinstance(results.errors[key], errors.ElectionNotNeededError)
    assert not admin.elect_leaders(ElectionType.PREFERRED)
    with pytest.raises(errors.NoReassignmentInProgressError):
        admin.alter_partition_reassignments({key: None})
    admin.alter_partition_reassignments({key: [node]})
    assert admin.list_partition_reassignments() == {}
    with pytest.raises(errors.InvalidReplicaAssignmentError):
        admin.alter_partition_reassignments({key: [99]})
    with pytest.raises(errors.InvalidTopicError):
        admin.list_partition_reassignments([TopicPartition("", 0)])


def test_log_directories(broker: BrokerProcess, admin: Admin) -> None:
    create(admin, NewTopic("stored", 1, 1))
    fill(broker, "stored", 1)
    node = admin.describe_cluster().nodes[0].id
    (path, directory), = admin.describe_log_dirs([node])[node].items()  # fmt: skip
    replica = directory.replica_infos[TopicPartition("stored", 0)]
    assert directory.error is None
    assert (replica.size > 0, replica.offset_lag, replica.is_future) == (True, 0, False)
    assert directory.usable_bytes is not None
    assert directory.total_bytes is not None
    assert 0 < directory.usable_bytes <= directory.total_bytes
    key = TopicPartitionReplica("stored", 0, node)
    where = admin.describe_replica_log_dirs([key])[key]
    assert (where.current_replica_log_dir, where.future_replica_log_dir) == (path, None)
    admin.alter_replica_log_dirs({key: path})
    with pytest.raises(errors.LogDirNotFoundError):
        admin.alter_replica_log_dirs({key: "/no/such/folder"})


def test_unknown_broker_is_waited_for(admin: Admin) -> None:
    with pytest.raises(errors.KafkaTimeoutError, match="node 99 is not in the cluster"):
        admin.describe_log_dirs([99], timeout=1.0)


def test_client_quotas(admin: Admin) -> None:
    alice = ClientQuotaEntity.of({"user": "alice", "client-id": None})
    setting = ClientQuotaAlteration(alice, (ClientQuotaOp("producer_byte_rate", 1024.0),))
    admin.alter_client_quotas([setting], validate_only=True)
    assert admin.describe_client_quotas() == {}
    admin.alter_client_quotas([setting])
    eventually(
        lambda: admin.describe_client_quotas() == {alice: {"producer_byte_rate": 1024.0}},
        what="the quota is there",
    )
    of_user = ClientQuotaFilter.contains([ClientQuotaFilterComponent.of_entity("user", "alice")])
    assert list(admin.describe_client_quotas(of_user)) == [alice]
    strict = ClientQuotaFilter.contains_only(of_user.components)
    assert admin.describe_client_quotas(strict) == {}
    removing = ClientQuotaAlteration(alice, (ClientQuotaOp("producer_byte_rate", None),))
    admin.alter_client_quotas([removing])
    eventually(lambda: admin.describe_client_quotas() == {}, what="it is gone")


def test_scram_credentials(admin: Admin) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    adding = UserScramCredentialUpsertion("bob", info, "secret")
    with pytest.raises(errors.UnacceptableCredentialError):
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", info, "")])
    admin.alter_user_scram_credentials([adding])
    described = eventually(
        lambda: admin.describe_user_scram_credentials(["bob"], check=False).values_by_key,
        what="bob is there",
    )
    assert described["bob"].credential_infos == (info,)
    assert list(admin.describe_user_scram_credentials()) == ["bob"]
    deleting = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([deleting])
    with pytest.raises(errors.ResourceNotFoundError):
        eventually(lambda: not admin.describe_user_scram_credentials(["bob"]), what="bob is gone")


def test_acls_and_tokens_without_an_authorizer(admin: Admin) -> None:
    with pytest.raises(errors.SecurityDisabledError):
        admin.describe_acls()
    refused = (*UNSERVED, errors.DelegationTokenRequestNotAllowedError,
               errors.DelegationTokenAuthDisabledError)  # fmt: skip
    with pytest.raises(refused):
        admin.create_delegation_token()
    with pytest.raises(refused):
        admin.describe_delegation_token()
    with pytest.raises(refused):
        admin.renew_delegation_token(b"hmac")
    with pytest.raises(refused):
        admin.expire_delegation_token(b"hmac")


def test_asyncio_face_and_many_at_once(broker: BrokerProcess) -> None:
    async def use() -> list[int]:
        async with AsyncAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
            await admin.create_topics([NewTopic(f"many-{n}", 1, 1) for n in range(5)])
            found = await asyncio.gather(*(admin.describe_cluster() for _ in range(5)))
            await admin.delete_topics([f"many-{n}" for n in range(5)])
            return [each.nodes[0].id for each in found]

    assert len(set(asyncio.run(use()))) == 1


def test_metrics_and_instance_id(broker: BrokerProcess, admin: Admin, of_kafka: bool) -> None:
    admin.describe_cluster()
    counted = {name.name: each.metric_value() for name, each in admin.metrics().items()}
    assert counted["request-total"] > 0
    with pytest.raises(errors.IllegalStateError, match=r"enable\.metrics\.push"):
        admin.client_instance_id()
    subscription = ConfigResource.client_metrics("of-instances")
    admin.incremental_alter_configs({subscription: [AlterConfigOp.set("interval.ms", "1000")]})
    eventually(lambda: "of-instances" in admin.list_client_metrics_resources(), what="subscribed")
    with Admin(bootstrap_servers=broker.bootstrap, enable_metrics_push=True) as pushing:
        if of_kafka:
            # Apache Kafka accepts clients' metrics only with a plug-in that wants them.
            with pytest.raises(errors.UnsupportedVersionError, match="GetTelemetrySubscriptions"):
                pushing.client_instance_id()
            return
        given = pushing.client_instance_id(timeout=60)
        assert given != UUID(int=0)
        assert pushing.client_instance_id() == given


def test_metrics_that_the_cluster_wants_are_pushed(
    broker: BrokerProcess, admin: Admin, of_kafka: bool
) -> None:
    if of_kafka:
        with Admin(bootstrap_servers=broker.bootstrap, enable_metrics_push=True) as other:
            assert other.list_topics() is not None
        return
    wanted = ConfigResource.client_metrics("of-admins")
    operations = [AlterConfigOp.set("interval.ms", "100"), AlterConfigOp.set("metrics", "*")]
    admin.incremental_alter_configs({wanted: operations})
    eventually(lambda: "of-admins" in admin.list_client_metrics_resources(), what="subscribed")

    async def use() -> list[int]:
        codes: asyncio.Queue[int] = asyncio.Queue()
        async with AsyncAdmin(
            bootstrap_servers=broker.bootstrap, enable_metrics_push=True
        ) as pushing:
            call_any = pushing._connection.cluster.call_any

            async def seen(request: Message, **options: Any) -> Any:
                response = await call_any(request, **options)
                if isinstance(request, PushTelemetryRequest):
                    codes.put_nowait(response.error_code)
                return response

            pushing._connection.cluster.call_any = seen  # type: ignore[method-assign]
            await pushing.describe_cluster()
            async with asyncio.timeout(60):
                taken = [await codes.get(), await codes.get()]
        # The last one comes when the client is closed.
        return [*taken, codes.get_nowait()]

    codes = asyncio.run(use())
    admin.incremental_alter_configs(
        {wanted: [AlterConfigOp.delete("interval.ms"), AlterConfigOp.delete("metrics")]}
    )
    assert codes == [0, 0, 0]


def test_nobody_there_and_bad_settings() -> None:
    with (
        Admin(bootstrap_servers="127.0.0.1:1") as admin,
        pytest.raises(errors.KafkaTimeoutError, match="no broker can be reached at"),
    ):
        admin.list_topics(timeout=1.0)
    with pytest.raises(errors.ConfigError, match=r"[Dd]id you mean"):
        Admin(bootstrap_server="127.0.0.1:1")
    with pytest.raises(errors.ConfigError, match="bootstrap"):
        Admin()
    with pytest.raises(errors.ConfigError, match=r"default\.api\.timeout\.ms"):
        Admin(bootstrap_servers="a:1", default_api_timeout_ms=10)
    closed = Admin(bootstrap_servers="127.0.0.1:1")
    closed.close()
    closed.close()
    with pytest.raises(errors.ClosedError):
        closed.list_topics()
