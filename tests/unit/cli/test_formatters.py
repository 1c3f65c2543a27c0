"""How records are printed."""

from __future__ import annotations

import io
import json
import struct
from typing import Any
from uuid import UUID

import pytest

from moldau.cli.console.formatters import FORMATTERS, make_formatter
from moldau.cli.console.formatters_lines import JsonLinesFormatter
from moldau.cli.support.machine.java_text import Float32, java_text
from moldau.client._records import ConsumerRecord
from moldau.wire.message_json import message_to_json
from moldau.wire.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from moldau.wire.record_values import encode_coordinator_key, encode_coordinator_value


def record(**fields: Any) -> ConsumerRecord:
    given = {"topic": "t", "partition": 2, "offset": 7, "timestamp": 11, "key": b"k", "value": b"v"}
    return ConsumerRecord(**(given | fields))


def printed(name: str, settings: dict[str, str], *records: ConsumerRecord) -> bytes:
    out = io.BytesIO()
    formatter = make_formatter(name, settings)
    for each in records:
        formatter.write_to(each, out)
    formatter.close()
    return out.getvalue()


DEFAULT = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
ALL = {
    f"print.{part}": "true"
    for part in (
        "timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value",
    )
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "fields", "line"),
    [
        pytest.param({}, {}, b"v\n", id="only the value"),
        pytest.param({}, {"value": None}, b"null\n", id="null"),
        pytest.param({"null.literal": "-"}, {"value": None}, b"-\n", id="null literal"),
        pytest.param({"print.key": "TRUE "}, {}, b"k\tv\n", id="flags in any case"),
        pytest.param(
            {"print.key": "true", "key.separator": "=", "line.separator": ";"},
            {},
            b"k=v;",
            id="separators",
        ),
        pytest.param({"print.value": "false"}, {}, b"", id="nothing at all"),
        pytest.param({"print.value": "false", "print.key": "true"}, {}, b"k\n", id="only keys"),
        pytest.param(
            ALL,
            {"headers": (("a", b"1"), ("b", None)), "leader_epoch": 3, "delivery_count": 2},
            b"CreateTime:11\tPartition:2\tOffset:7\tDelivery:2\tEpoch:3\ta:1,b:null\tk\tv\n",
            id="everything",
        ),
        pytest.param(
            ALL,
            {"timestamp_type": 1},
            b"LogAppendTime:11\tPartition:2\tOffset:7\tDelivery:NOT_PRESENT\t"
            b"Epoch:NOT_PRESENT\tNO_HEADERS\tk\tv\n",
            id="everything that is absent",
        ),
        pytest.param(
            {"print.headers": "true", "headers.separator": "|"},
            {"headers": (("a", b"1"), ("b", b"2"))},
            b"a:1|b:2\tv\n",
            id="headers separator",
        ),
        pytest.param(
            {"print.timestamp": "true"}, {"timestamp_type": -1}, b"NO_TIMESTAMP\tv\n", id="no time"
        ),
    ],
)
def test_default_formatter(settings: dict[str, str], fields: dict[str, Any], line: bytes) -> None:
    assert printed(DEFAULT, settings, record(**fields)) == line


@pytest.mark.parametrize(
    ("deserializer", "data", "text"),
    [
        ("org.apache.kafka.common.serialization.IntegerDeserializer", struct.pack(">i", -5), b"-5"),
        ("org.apache.kafka.common.serialization.LongDeserializer", struct.pack(">q", 5), b"5"),
        ("org.apache.kafka.common.serialization.DoubleDeserializer", struct.pack(">d", 2), b"2.0"),
        ("org.apache.kafka.common.serialization.FloatDeserializer", struct.pack(">f", 0.1), b"0.1"),
        ("org.apache.kafka.common.serialization.StringDeserializer", b"x", b"x"),
        ("long", struct.pack(">q", 6), b"6"),
    ],
)
def test_deserializers_print_as_java_does(deserializer: str, data: bytes, text: bytes) -> None:
    settings = {"value.deserializer": deserializer}
    assert printed(DEFAULT, settings, record(value=data)) == text + b"\n"


def test_an_unknown_deserializer_is_told_and_the_bytes_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(DEFAULT, {"value.deserializer": "com.example.Nope"}, record()) == b"v\n"
    assert "Unable to instantiate a deserializer from com.example.Nope" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, b"1.0"),
        (1e7, b"1.0E7"),
        (1.5e-5, b"1.5E-5"),
        (123456.789, b"123456.789"),
        (float("inf"), b"Infinity"),
        (float("nan"), b"NaN"),
        (-0.001, b"-0.001"),
        (9999999.9, b"9999999.9"),
        (Float32(9999999), b"9999999.0"),
        (Float32(0.1), b"0.1"),
        (True, b"true"),
        (None, b"null"),
        (["a", 1], b"[a, 1]"),
        (UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
    ],
)
def test_java_text(value: object, text: bytes) -> None:
    assert java_text(value) == text


def test_short_names_work_and_misspelled_ones_are_guessed() -> None:
    assert printed("NoOpMessageFormatter", {}, record()) == b""
    with pytest.raises(ValueError, match="OffsetsMessageFormatter"):
        make_formatter("OfsetsMessageFormatter", {})


class Shouting:
    """A formatter of a user's own."""

    def configure(self, settings: dict[str, str]) -> None:
        self.end = settings["end"]

    def write_to(self, record: ConsumerRecord, output: io.BytesIO) -> None:
        output.write(record.value.upper() + self.end.encode())

    def close(self) -> None:
        pass


def test_own_formatter_by_dotted_path() -> None:
    assert printed(f"{__name__}.Shouting", {"end": "!"}, record()) == b"V!"


OFFSET = record(
    key=encode_coordinator_key(OffsetCommitKey(group="g", topic="t", partition=1)),
    value=encode_coordinator_value(
        OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9), 3
    ),
)
GROUP = record(
    key=encode_coordinator_key(GroupMetadataKey(group="g")),
    value=encode_coordinator_value(
        GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol="range",
            leader="m-1",
            current_state_timestamp=7,
            members=[
                GroupMetadataValue.MemberMetadata(
                    member_id="m-1",
                    client_id="c",
                    client_host="/127.0.0.1",
                    rebalance_timeout=1,
                    session_timeout=2,
                    subscription=b"\x00\x01",
                    assignment=b"",
                )
            ],
        ),
        3,
    ),
)


def test_offsets_formatter_prints_kafkas_json_without_line_ends() -> None:
    name = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    text = (
        b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":1}},'
        b'"value":{"version":3,"data":{"offset":5,"leaderEpoch":2,"metadata":"m",'
        b'"commitTimestamp":9}}}'
    )
    assert printed(name, {}, OFFSET, GROUP, OFFSET) == text * 2


def test_group_metadata_formatter_and_a_tombstone() -> None:
    tombstone = record(key=GROUP.key, value=None)
    text = printed("GroupMetadataMessageFormatter", {}, OFFSET, GROUP, tombstone)
    first, second = json.loads(b"[" + text.replace(b"}{", b"},{") + b"]")
    member = first["value"]["data"]["members"][0]
    assert member["subscription"] == "AAE="
    assert member["groupInstanceId"] is None
    assert second == {"key": {"type": 2, "data": {"group": "g"}}, "value": None}


def test_records_of_later_releases_and_without_a_key_are_passed_over() -> None:
    later = record(key=b"\x7f\x00", value=None)
    for name in FORMATTERS:
        if "Default" not in name and "Logging" not in name:
            assert printed(name, {}, later, record(key=None)) == b""


def test_a_broken_record_names_its_offset() -> None:
    with pytest.raises(ValueError, match="Could not read record at offset 7"):
        printed("OffsetsMessageFormatter", {}, record(key=OFFSET.key, value=b"\x00"))


def test_json_leaves_out_tagged_fields_at_their_default() -> None:
    value = OffsetCommitValue(offset=5, topic_id=UUID(int=0))
    assert "topicId" not in message_to_json(value, 4)
    value.topic_id = UUID(int=1)
    assert message_to_json(value, 4)["topicId"] == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert "leaderEpoch" not in message_to_json(value, 1)
    assert "expireTimestamp" in message_to_json(value, 1)


def as_json(settings: dict[str, str], each: ConsumerRecord) -> Any:
    out = io.BytesIO()
    formatter = JsonLinesFormatter()
    formatter.configure(settings)
    formatter.write_to(each, out)
    formatter.close()
    assert out.getvalue().count(b"\n") == 1
    return json.loads(out.getvalue())


def test_records_as_json_lines() -> None:
    shown = as_json({}, record(headers=(("a", b"1"), ("b", None)), leader_epoch=3))
    assert shown == {
        "topic": "t",
        "partition": 2,
        "offset": 7,
        "timestamp": 11,
        "timestamp_type": "CreateTime",
        "leader_epoch": 3,
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
        "key": "k",
        "value": "v",
    }
    shown = as_json({}, record(key=None, value=b"\xff", delivery_count=2))
    assert (shown["key"], shown["value_base64"], shown["delivery_count"]) == (None, "/w==", 2)
    assert "value" not in shown


def test_json_lines_keep_what_deserializers_give() -> None:
    settings = {"value.deserializer": "long", "key.deserializer": "uuid"}
    shown = as_json(settings, record(key=str(UUID(int=1)).encode(), value=struct.pack(">q", 5)))
    assert shown["value"] == 5
    assert shown["key"] == "00000000-0000-0000-0000-000000000001"
    assert as_json(settings, record(key=None, value=None))["value"] is None
