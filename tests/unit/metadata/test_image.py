"""The image is what its records say, whole, and its deltas say what changed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import DIRECTORY_MIGRATING, LeaderRecoveryState
from moldau.broker.metadata.machine.writer import image_to_records
from moldau.broker.raft.machine.errors import MetadataError
from moldau.broker.raft.machine.record_versions import record_version
from moldau.wire.messages import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from moldau.wire.record_values import decode_metadata_record, encode_metadata_record
from support.examples import examples

T1, T2 = UUID(int=0xA1), UUID(int=0xA2)
D1, D2 = UUID(int=0xD1), UUID(int=0xD2)


def partition(topic_id: UUID = T1, index: int = 0, **fields: Any) -> PartitionRecord:
    given_fields: dict[str, Any] = {
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 3,
        "partition_epoch": 5,
        "directories": [D1, D2],
    }
    return PartitionRecord(partition_id=index, topic_id=topic_id, **(given_fields | fields))


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=T1, **fields)


def replayed(*records: Any) -> tuple[MetadataImage, MetadataDelta]:
    image, delta = MetadataImage(), MetadataDelta()
    image.replay_all(records, delta)
    return image, delta


BASE = (TopicRecord(name="t", topic_id=T1), partition())


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(change(isr=[1]), {"isr": (1,), "leader_epoch": 3}, id="isr shrinks"),
        pytest.param(
            change(leader=2), {"leader": 2, "leader_epoch": 4}, id="a new leader is a new epoch"
        ),
        pytest.param(
            change(leader=1),
            {"leader": 1, "leader_epoch": 4},
            id="as is the same one again",
        ),
        pytest.param(
            change(leader=-1, isr=[], eligible_leader_replicas=[2], last_known_elr=[1]),
            {"leader": -1, "leader_epoch": 4, "isr": (), "elr": (2,), "last_known_elr": (1,)},
            id="nobody leads",
        ),
        pytest.param(
            change(replicas=[3], directories=[D2], adding_replicas=[3], removing_replicas=[1]),
            {
                "replicas": (3,),
                "directories": (D2,),
                "adding_replicas": (3,),
                "removing_replicas": (1,),
            },
            id="reassigned",
        ),
        pytest.param(
            change(leader_recovery_state=1),
            {"leader_recovery_state": LeaderRecoveryState.RECOVERING},
            id="recovering",
        ),
    ],
)
def test_a_partition_change_keeps_what_it_does_not_name(
    record: PartitionChangeRecord, expected: dict[str, Any]
) -> None:
    before = replayed(*BASE)[0].partition(T1, 0)
    after = replayed(*BASE, record)[0].partition(T1, 0)
    assert before is not None
    assert after is not None
    for name in type(after).__slots__:
        wanted = expected.get(name, getattr(before, name))
        assert getattr(after, name) == (6 if name == "partition_epoch" else wanted), name


def test_old_partition_records_have_no_directories() -> None:
    image, _ = replayed(TopicRecord(name="t", topic_id=T1), partition(directories=[]))
    found = image.partition(T1, 0)
    assert found is not None
    assert found.directories == (DIRECTORY_MIGRATING, DIRECTORY_MIGRATING)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param((partition(),), id="partition of an unknown topic"),
        pytest.param((*BASE, TopicRecord(name="t", topic_id=T2)), id="topic name twice"),
        pytest.param((*BASE, TopicRecord(name="u", topic_id=T1)), id="topic id twice"),
        pytest.param((BASE[0], change(isr=[1])), id="change of an unknown partition"),
        pytest.param((RemoveTopicRecord(topic_id=T1),), id="removal of an unknown topic"),
        pytest.param((*BASE, change(directories=[D1])), id="directories unlike replicas"),
        pytest.param((FenceBrokerRecord(id=1, epoch=1),), id="fencing an unknown broker"),
        pytest.param(
            (RegisterBrokerRecord(broker_id=1, broker_epoch=5), UnfenceBrokerRecord(id=1, epoch=4)),
            id="another broker epoch",
        ),
        pytest.param((RemoveAccessControlEntryRecord(id=T1),), id="unknown acl"),
        pytest.param((EndTransactionRecord(),), id="end without begin"),
        pytest.param((BeginTransactionRecord(), BeginTransactionRecord()), id="begin twice"),
    ],
)
def test_contradictions_are_refused(records: tuple[Any, ...]) -> None:
    with pytest.raises(MetadataError):
        replayed(*records)


def test_brokers_register_fence_and_leave() -> None:
    register = RegisterBrokerRecord(
        broker_id=4,
        broker_epoch=9,
        incarnation_id=T1,
        end_points=[RegisterBrokerRecord.BrokerEndpoint(name="A", host="h", port=1)],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name="metadata.version", min_supported_version=7, max_supported_version=30
            )
        ],
        rack="r",
        log_dirs=[D1],
    )
    image, delta = replayed(register)
    assert image.brokers[4].fenced
    assert delta.brokers == {4: None}

    unfence = BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=9, fenced=-1)
    image.replay(unfence, delta)
    assert image.brokers[4].active
    leave = BrokerRegistrationChangeRecord(broker_id=4, broker_epoch=9, in_controlled_shutdown=1)
    image.replay(leave, delta)
    assert not image.brokers[4].active
    assert not image.brokers[4].fenced
    moved = BrokerRegistrationChangeRecord(
        broker_id=4, broker_epoch=9, log_dirs=[D2], cordoned_log_dirs=[D2]
    )
    image.replay(moved, delta)
    assert image.brokers[4].log_dirs == image.brokers[4].cordoned_log_dirs == (D2,)
    image.replay(FenceBrokerRecord(id=4, epoch=9), delta)
    assert image.brokers[4].fenced
    image.replay(UnregisterBrokerRecord(broker_id=4, broker_epoch=9), delta)
    assert image.brokers == {}


def test_configs_go_with_their_topic_and_when_set_to_nothing() -> None:
    keep = ConfigRecord(resource_type=4, resource_name="", name="k", value="v")
    image, _ = replayed(
        *BASE,
        ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"),
        keep,
        ConfigRecord(resource_type=4, resource_name="1", name="b", value="2"),
        ConfigRecord(resource_type=4, resource_name="1", name="b", value=None),
        RemoveTopicRecord(topic_id=T1),
    )
    assert image.configs == {(4, ""): {"k": "v"}}
    assert image.topics_by_name == {}


def test_security_and_quota_records_are_kept_and_removed() -> None:
    acl = AccessControlEntryRecord(id=T1, resource_name="x", principal="User:a", host="*")
    scram = UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", iterations=4096)
    token = DelegationTokenRecord(owner="o", requester="r", token_id="tok")
    entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)]
    quota = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1.5)
    image, delta = replayed(acl, scram, token, quota, ProducerIdsRecord(next_producer_id=1000))
    assert image.acls == {T1: acl}
    assert image.scram == {(1, "a"): scram}
    assert image.tokens == {"tok": token}
    assert image.quotas == {frozenset({("user", None)}): {"producer_byte_rate": 1.5}}
    assert image.next_producer_id == 1000
    assert delta.acls_changed
    assert delta.scram_changed
    assert delta.tokens_changed
    assert delta.quotas_changed
    assert delta.producer_ids_changed
    image.replay_all(
        [
            RemoveAccessControlEntryRecord(id=T1),
            RemoveUserScramCredentialRecord(name="a", mechanism=1),
            RemoveDelegationTokenRecord(token_id="tok"),
            ClientQuotaRecord(entity=entity, key="producer_byte_rate", remove=True),
        ]
    )
    assert (image.acls, image.scram, image.tokens, image.quotas) == ({}, {}, {}, {})


def test_clearing_eligible_replicas_of_one_topic_leaves_the_others() -> None:
    records = (
        TopicRecord(name="t", topic_id=T1),
        partition(eligible_leader_replicas=[2], last_known_elr=[1]),
        TopicRecord(name="u", topic_id=T2),
        partition(T2, eligible_leader_replicas=[2]),
    )
    image, _ = replayed(*records, ClearElrRecord(topic_name="t"))
    assert [image.partition(t, 0).elr for t in (T1, T2)] == [(), (2,)]  # type: ignore[union-attr]
    image, _ = replayed(*records, ClearElrRecord(topic_name=""))
    assert [image.partition(t, 0).elr for t in (T1, T2)] == [(), ()]  # type: ignore[union-attr]


def test_a_transaction_shows_nothing_before_its_end() -> None:
    image, delta = replayed(BeginTransactionRecord(name="x"), *BASE, NoOpRecord())
    assert image.topics_by_name == {}
    assert not delta
    image.replay(EndTransactionRecord(), delta)
    assert list(image.topics_by_name) == ["t"]
    assert list(delta.topics) == [T1]


def test_an_aborted_transaction_never_happened() -> None:
    image, delta = replayed(BeginTransactionRecord(), *BASE, AbortTransactionRecord())
    assert image == MetadataImage()
    assert not delta


def test_a_level_of_zero_removes_a_feature() -> None:
    image, delta = replayed(
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="group.version", feature_level=0),
    )
    assert image.features == {"metadata.version": 30}
    assert delta.features == {"metadata.version", "group.version"}


def test_a_delta_remembers_what_was_published_before_the_first_change() -> None:
    image, _ = replayed(*BASE)
    before = image.partition(T1, 0)
    delta = MetadataDelta()
    image.replay_all([change(isr=[1]), change(isr=[2], leader=2)], delta)
    assert delta.topics[T1].changed_partitions == {0: (before, image.partition(T1, 0))}
    assert not delta.topics[T1].created


def test_a_topic_made_and_removed_between_publications_is_no_news() -> None:
    image, delta = replayed(
        *BASE,
        ConfigRecord(resource_type=2, resource_name="t", name="a", value="1"),
        RemoveTopicRecord(topic_id=T1),
    )
    assert not delta
    assert image == MetadataImage()


def test_a_removed_topic_is_in_the_delta_as_it_was() -> None:
    image, _ = replayed(*BASE)
    delta = MetadataDelta()
    image.replay_all([change(isr=[1]), RemoveTopicRecord(topic_id=T1)], delta)
    assert delta.topics == {}
    assert delta.deleted_topics[T1].name == "t"
    assert delta.deleted_topics[T1].partitions[0].isr == (1,)


def test_a_copy_is_independent() -> None:
    image, _ = replayed(*BASE, ConfigRecord(resource_type=4, resource_name="", name="k", value="v"))
    copy = image.copy()
    assert copy == image
    copy.replay_all(
        [change(isr=[1]), ConfigRecord(resource_type=4, resource_name="", name="k", value="w")]
    )
    assert image.partition(T1, 0).isr == (1, 2)  # type: ignore[union-attr]
    assert image.cluster_configs() == {"k": "v"}
    assert copy != image


names = st.text("abc.-_", min_size=1, max_size=6)
ids = st.integers(0, 5)
id_lists = st.lists(ids, max_size=3, unique=True)
uuids = st.integers(200, 2**128 - 1).map(lambda number: UUID(int=number))


@st.composite
def topics(draw: st.DrawFn, taken: set[Any]) -> list[Any]:
    topic_id, name = draw(uuids), draw(names)
    if topic_id in taken or name in taken:
        return []
    taken |= {topic_id, name}
    records: list[Any] = [TopicRecord(name=name, topic_id=topic_id)]
    for index in range(draw(st.integers(1, 3))):
        replicas = draw(st.lists(ids, min_size=1, max_size=3, unique=True))
        records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=draw(id_lists),
                removing_replicas=draw(id_lists),
                adding_replicas=draw(id_lists),
                leader=draw(st.integers(-1, 5)),
                leader_recovery_state=draw(st.integers(0, 1)),
                leader_epoch=draw(st.integers(0, 99)),
                partition_epoch=draw(st.integers(0, 99)),
                directories=draw(st.lists(uuids, min_size=len(replicas), max_size=len(replicas))),
                eligible_leader_replicas=draw(st.none() | id_lists),
                last_known_elr=draw(st.none() | id_lists),
            )
        )
    return records


def feature_lists(cls: Any) -> Any:
    return st.dictionaries(names, st.tuples(ids, ids), max_size=3).map(
        lambda found: [
            cls(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in found.items()
        ]
    )


def endpoint_lists(cls: Any) -> Any:
    return st.lists(
        st.builds(cls, name=names, host=names, port=st.integers(0, 65535), security_protocol=ids),
        max_size=2,
    )


simple_records = st.one_of(
    st.builds(
        RegisterBrokerRecord,
        broker_id=ids,
        broker_epoch=st.integers(0, 99),
        incarnation_id=uuids,
        end_points=endpoint_lists(RegisterBrokerRecord.BrokerEndpoint),
        features=feature_lists(RegisterBrokerRecord.BrokerFeature),
        rack=st.none() | names,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=st.lists(uuids, max_size=2),
        cordoned_log_dirs=st.none() | st.lists(uuids, max_size=2),
    ),
    st.builds(
        RegisterControllerRecord,
        controller_id=ids,
        incarnation_id=uuids,
        end_points=endpoint_lists(RegisterControllerRecord.ControllerEndpoint),
        features=feature_lists(RegisterControllerRecord.ControllerFeature),
    ),
    st.builds(
        ConfigRecord,
        resource_type=st.sampled_from([2, 4, 16, 32]),
        resource_name=names,
        name=names,
        value=names,
    ),
    st.builds(FeatureLevelRecord, name=names, feature_level=st.integers(0, 9)),
    st.builds(ProducerIdsRecord, next_producer_id=st.integers(0, 10**6)),
    st.builds(
        ClientQuotaRecord,
        entity=st.dictionaries(names, st.none() | names, min_size=1, max_size=2).map(
            lambda found: [
                ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
                for kind, name in found.items()
            ]
        ),
        key=names,
        value=st.floats(0, 1e9),
    ),
    st.builds(AccessControlEntryRecord, id=uuids, resource_name=names, principal=names, host=names),
    st.builds(UserScramCredentialRecord, name=names, mechanism=st.integers(1, 2), salt=st.binary()),
    st.builds(DelegationTokenRecord, owner=names, requester=names, token_id=names),
)


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    records: list[Any] = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
    taken: set[Any] = set()
    for _ in range(draw(st.integers(0, 4))):
        records += draw(topics(taken))
    records += draw(st.lists(simple_records, max_size=12))
    return replayed(*records)[0]


@settings(max_examples=examples(150), deadline=None)
@given(images())
def test_an_image_survives_its_own_records_through_their_bytes(image: MetadataImage) -> None:
    encoded = [
        encode_metadata_record(record, record_version(record, image.metadata_version))
        for record in image_to_records(image)
    ]
    again = replayed(*(decode_metadata_record(value)[0] for value in encoded))[0]
    assert again == image


def test_an_old_metadata_version_writes_records_that_old_nodes_read() -> None:
    image, _ = replayed(
        FeatureLevelRecord(name="metadata.version", feature_level=7),
        RegisterBrokerRecord(broker_id=1, broker_epoch=2, log_dirs=[D1]),
        *BASE,
    )
    versions = {type(r).__name__: record_version(r, 7) for r in image_to_records(image)}
    assert versions["PartitionRecord"] == 0
    assert versions["RegisterBrokerRecord"] == 1
    for record in image_to_records(image):
        encode_metadata_record(record, record_version(record, 7))
