"""Partitions follow the metadata image."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.replication.machine.names import NodeEndpoint
from moldau.broker.replication.partition import Partition
from moldau.invariant import invariant
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import PartitionChangeRecord, RemoveTopicRecord
from support.hosting import NODE_ID, OTHER_NODE_ID, Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def _code(host: Host, key: str | bytes, index: int = 0) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        host.replicas.get(key, index).check_online()
    return caught.value.code


def test_a_created_topic_is_found_by_name_and_by_id(host: Host) -> None:
    topic_id = host.create_topic("a", 2)
    partition = host.replicas.find("a", 1)
    assert partition is not None
    assert host.replicas.find(topic_id.bytes, 1) is partition
    assert (partition.topic, partition.index, partition.topic_id) == ("a", 1, topic_id)
    assert partition.error is None
    assert host.replicas.find("a", 2) is None
    directory_id = host.logs.dirs[0].directory_id
    assert host.reported == [(topic_id, 0, directory_id), (topic_id, 1, directory_id)]


def test_a_directory_the_metadata_knows_is_not_reported_again(host: Host, tmp_path: Path) -> None:
    topic_id = host.create_topic("a")
    ((_, _, directory_id),) = host.reported
    host.change_partition(topic_id, directories=[directory_id])
    assert host.restarted(tmp_path).reported == []


def test_a_deleted_topic_is_gone_with_its_logs(host: Host) -> None:
    topic_id = host.create_topic("a", 2)
    partition = host.partition("a")
    host.delete_topic(topic_id)
    assert partition.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert _code(host, "a") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert _code(host, topic_id.bytes) is ErrorCode.UNKNOWN_TOPIC_ID
    assert len(host.logs) == 0
    assert list(host.replicas.partitions()) == []


def test_a_topic_made_anew_under_the_same_name_starts_empty(host: Host) -> None:
    host.create_topic("a", topic_id=UUID(int=500))
    host.append("a", b"old")
    host.delete_topic(UUID(int=500))
    host.create_topic("a", topic_id=UUID(int=501))
    assert host.partition("a").high_watermark == 0
    assert host.partition("a").topic_id == UUID(int=501)
    assert host.replicas.find(UUID(int=500).bytes, 0) is None


def test_a_log_left_behind_by_a_former_topic_is_put_aside(host: Host, tmp_path: Path) -> None:
    host.create_topic("a", topic_id=UUID(int=500))
    host.append("a", b"old")
    host.image.topics_by_id.clear()
    host.image.topics_by_name.clear()
    restarted = host.restarted(tmp_path)
    restarted.create_topic("a", topic_id=UUID(int=501))
    assert restarted.partition("a").high_watermark == 0
    assert [path.name for path in (tmp_path / "logs").glob("a-0.*-stray")]


def test_a_restart_finds_the_log_again_and_commits_what_it_holds(
    host: Host, tmp_path: Path
) -> None:
    host.create_topic("a")
    host.append("a", b"x")
    host.partition("a").log.high_watermark = 0
    again = host.restarted(tmp_path)
    assert again.partition("a").high_watermark == 1
    assert again.append("a", b"y") == 1


def test_strays_are_put_aside_and_nothing_else(host: Host, tmp_path: Path) -> None:
    stray = host.create_topic("stray")
    host.create_topic("kept")
    host.image.topics_by_name.pop("stray")
    host.image.topics_by_id.pop(stray)
    again = host.restarted(tmp_path)
    again.replicas.set_strays_aside()
    assert [log.topic for log in again.logs.logs()] == ["kept"]
    assert [path.name for path in (tmp_path / "logs").glob("stray-0.*-stray")]


def test_new_partitions_go_where_the_fewest_are_or_where_they_are_assigned(tmp_path: Path) -> None:
    host = Host(tmp_path, directories=("one", "two"))
    host.create_topic("a", 4)
    first, second = (directory.directory_id for directory in host.logs.dirs)
    assert [directory for _, _, directory in host.reported] == [first, second, first, second]
    assert second is not None
    host.reported.clear()
    host.create_topic("b", 3, directory_id=second)
    assert {log.dir_state for log in host.logs.logs() if log.topic == "b"} == {host.logs.dirs[1]}
    assert host.reported == []


def test_partitions_of_other_nodes(host: Host) -> None:
    host.create_topic("b", replicas=(OTHER_NODE_ID,), leader=OTHER_NODE_ID)
    assert host.replicas.find("b", 0) is None
    assert _code(host, "b") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert _code(host, "b", 7) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert host.replicas.current_leader("b", 0, "PLAINTEXT") == (
        OTHER_NODE_ID,
        0,
        NodeEndpoint(OTHER_NODE_ID, "host2", 9002, None),
    )
    assert host.replicas.current_leader("b", 0, "OTHER") == (OTHER_NODE_ID, 0, None)
    assert host.replicas.current_leader("nope", 0, "PLAINTEXT") is None


def test_leadership_comes_and_goes_with_the_epoch(host: Host) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    partition = host.partition("a")
    host.change_partition(topic_id, leader=OTHER_NODE_ID)
    assert partition.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    host.change_partition(topic_id, leader=NODE_ID)
    assert (partition.error, partition.leader_epoch) == (None, 2)
    host.change_partition(
        topic_id, replicas=[OTHER_NODE_ID], directories=[UUID(int=1)], leader=OTHER_NODE_ID
    )
    assert host.replicas.find("a", 0) is None
    assert len(host.logs) == 0


def test_an_isr_change_keeps_the_epoch_and_may_commit(host: Host) -> None:
    topic_id = host.create_topic("a", replicas=(NODE_ID, OTHER_NODE_ID))
    host.append("a", b"x")
    partition = host.partition("a")
    assert partition.high_watermark == 0
    host.change_partition(topic_id, isr=[NODE_ID])
    assert (partition.high_watermark, partition.leader_epoch) == (1, 0)
    assert partition.partition_epoch == 1


def test_config_changes_reach_the_log(host: Host) -> None:
    host.create_topic("a", config={"retention.ms": "5"})
    assert host.partition("a").log.config.retention_ms == 5
    host.set_config("a", "retention.ms", "6")
    assert host.partition("a").log.config.retention_ms == 6


def test_a_failed_directory_answers_storage_errors(tmp_path: Path) -> None:
    host = Host(tmp_path, directories=("one", "two"))
    host.create_topic("a", 2)
    failed, usable = (directory.directory_id for directory in host.logs.dirs)
    host.logs.dirs[0].fail("writing", OSError("no space"))
    assert _code(host, "a") is ErrorCode.KAFKA_STORAGE_ERROR
    assert host.append("a", b"x", index=1) == 0
    host.create_topic("b", directory_id=failed)
    assert _code(host, "b") is ErrorCode.KAFKA_STORAGE_ERROR
    host.create_topic("c", directory_id=usable)
    assert host.append("c", b"x") == 0


def test_a_snapshot_replaces_everything(host: Host) -> None:
    gone = host.create_topic("gone")
    host.create_topic("stays")
    host.append("stays", b"x")
    image = host.image.copy()
    image.topics_by_id.pop(gone)
    image.topics_by_name.pop("gone")
    host.replicas.apply(MetadataDelta(from_snapshot=True), image)
    assert host.replicas.find("gone", 0) is None
    assert host.partition("stays").high_watermark == 1


def test_a_partition_whose_change_fails_goes_offline_and_the_others_get_theirs(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    replicas = (NODE_ID, OTHER_NODE_ID)
    topic_id = host.create_topic("a", 3, replicas=replicas, leader=OTHER_NODE_ID)
    # Its epoch would go back, which the partition's invariants do not allow.
    host.partition("a", 1).role.leader_epoch = 100
    host.apply(
        *(
            PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=NODE_ID)
            for index in range(3)
        )
    )
    assert [host.partition("a", index).error for index in range(3)] == [
        None,
        ErrorCode.KAFKA_STORAGE_ERROR,
        None,
    ]
    assert "applying metadata to partition a-1 failed" in caplog.text
    assert "a-1 is offline because of the failure above; restart the broker" in caplog.text
    host.delete_topic(topic_id)
    assert list(host.replicas.partitions()) == []


def test_a_fetcher_that_cannot_stop_does_not_keep_a_deleted_topic(
    host: Host, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, kept = host.create_topic("gone", 2), host.create_topic("kept")
    bad = host.partition("gone", 0)

    def leave(partition: Partition) -> None:
        invariant(partition is not bad, "planted")

    monkeypatch.setattr(host.replicas._fetchers, "leave", leave)
    host.apply(
        RemoveTopicRecord(topic_id=gone),
        PartitionChangeRecord(topic_id=kept, partition_id=0, leader=NODE_ID),
    )
    assert [each.topic for each in host.replicas.partitions()] == ["kept"]
    assert "removing partition gone-0 failed" in caplog.text
