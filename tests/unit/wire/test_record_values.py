"""Messages inside records of internal topics and the metadata log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire.errors import WireError
from moldau.wire.message import Message
from moldau.wire.messages import (
    ConsumerProtocolSubscription,
    FeatureLevelRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
    RemotePartitionDeleteMetadataRecord,
    ShareSnapshotKey,
    ShareSnapshotValue,
    TopicRecord,
    TransactionLogKey,
    TransactionLogValue,
)
from moldau.wire.record_values import (
    UnknownRecordTypeError,
    decode_coordinator_record,
    decode_metadata_record,
    decode_remote_log_record,
    decode_versioned,
    encode_coordinator_key,
    encode_coordinator_value,
    encode_metadata_record,
    encode_versioned,
)
from moldau.wire.uuids import ZERO_UUID
from support.remote_log import encode_remote_log_record


class TestMetadataRecords:
    def test_known_bytes(self) -> None:
        record = FeatureLevelRecord(name="metadata.version", feature_level=30)
        data = bytes.fromhex("01 0c 00 11") + b"metadata.version" + bytes.fromhex("001e 00")
        assert encode_metadata_record(record, 0) == data
        for buffer in (data, memoryview(data)):
            assert decode_metadata_record(buffer) == (record, 0)

    def test_version_is_given_back(self) -> None:
        from moldau.wire.messages import PartitionRecord

        record = PartitionRecord(partition_id=1, directories=[ZERO_UUID])
        assert decode_metadata_record(encode_metadata_record(record, 2)) == (record, 2)

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            ("", "cut off"),
            ("01 02", "cut off"),
            ("02 02 00", "frame version 2"),
            ("01 02 00", "TopicRecord v0"),
            ("01 02 09" + "00" * 20, "no version 9"),
            ("01 02 00 02 74" + "00" * 16 + "00 ff", "followed by 1 bytes"),
        ],
    )
    def test_malformed(self, data: str, reason: str) -> None:
        with pytest.raises(WireError, match=reason):
            decode_metadata_record(bytes.fromhex(data))

    def test_unknown_type(self) -> None:
        with pytest.raises(UnknownRecordTypeError) as caught:
            decode_metadata_record(bytes.fromhex("01 e807 00"))
        assert caught.value.record_type == 1000

    def test_only_metadata_records(self) -> None:
        with pytest.raises(WireError, match="no metadata record"):
            encode_metadata_record(OffsetCommitKey(), 0)
        with pytest.raises(WireError, match="no metadata record"):
            encode_metadata_record(RemotePartitionDeleteMetadataRecord(), 0)

    def test_remote_log_records_have_types_of_their_own(self) -> None:
        record = RemotePartitionDeleteMetadataRecord(remote_partition_delete_state=1)
        data = encode_remote_log_record(record, 0)
        assert data[:3].hex() == "010200"
        assert decode_remote_log_record(data) == (record, 0)

    @given(st.binary(max_size=64))
    def test_noise_raises_nothing_but_wire_error(self, noise: bytes) -> None:
        try:
            message, version = decode_metadata_record(b"\x01" + noise)
        except WireError:
            return
        assert decode_metadata_record(encode_metadata_record(message, version))[0] == message


class TestCoordinatorRecords:
    def test_known_bytes(self) -> None:
        key = OffsetCommitKey(group="g", topic="t", partition=3)
        value = OffsetCommitValue(offset=5, leader_epoch=1, metadata="", commit_timestamp=9)
        key_data = bytes.fromhex("0001 0001 67 0001 74 00000003")
        value_data = bytes.fromhex("0003 0000000000000005 00000001 0000 0000000000000009")
        assert encode_coordinator_key(key) == key_data
        assert encode_coordinator_value(value, 3) == value_data
        assert decode_coordinator_record("group", key_data, value_data) == (key, value)

    @pytest.mark.parametrize(
        ("family", "key", "value", "version"),
        [
            ("group", GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="p"), 4),
            ("group", LegacyOffsetCommitKey(group="g"), None, 0),
            ("transaction", TransactionLogKey(transactional_id="t"), TransactionLogValue(), 1),
            ("share", ShareSnapshotKey(group_id="g"), ShareSnapshotValue(state_epoch=2), 0),
        ],
    )
    def test_round_trip(
        self, family: Any, key: Message, value: Message | None, version: int
    ) -> None:
        value_data = None if value is None else encode_coordinator_value(value, version)
        key_data = encode_coordinator_key(key)
        assert decode_coordinator_record(family, key_data, value_data) == (key, value)
        if value_data is not None:
            views = memoryview(key_data), memoryview(value_data)
            assert decode_coordinator_record(family, *views) == (key, value)

    def test_type_numbers_are_per_family(self) -> None:
        data = encode_coordinator_key(TransactionLogKey(transactional_id="x"))
        key, _ = decode_coordinator_record("transaction", data, None)
        assert isinstance(key, TransactionLogKey)
        with pytest.raises(WireError):
            decode_coordinator_record("share", data, None)

    def test_unknown_type(self) -> None:
        with pytest.raises(UnknownRecordTypeError, match="group-key record has type 99"):
            decode_coordinator_record("group", bytes.fromhex("0063 00"), None)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("", None),
            ("00", None),
            ("0002 0005", None),
            ("0002 0001 67", "00"),
            ("0002 0001 67", "0063 00"),
        ],
    )
    def test_malformed(self, key: str, value: str | None) -> None:
        value_data = None if value is None else bytes.fromhex(value)
        with pytest.raises(WireError):
            decode_coordinator_record("group", bytes.fromhex(key), value_data)

    def test_keys_and_values_are_not_confused(self) -> None:
        with pytest.raises(WireError, match="no key"):
            encode_coordinator_key(OffsetCommitValue())
        with pytest.raises(WireError, match="no value"):
            encode_coordinator_value(OffsetCommitKey(), 0)
        with pytest.raises(WireError, match="no key"):
            encode_coordinator_key(TopicRecord())


def test_versioned_data() -> None:
    message = ConsumerProtocolSubscription(topics=["t"], user_data=None)
    data = bytes.fromhex("0000 00000001 0001 74 ffffffff")
    assert encode_versioned(message, 0) == data
    assert decode_versioned(ConsumerProtocolSubscription, data) == message
    with pytest.raises(WireError, match="cut off"):
        decode_versioned(ConsumerProtocolSubscription, b"\0")
