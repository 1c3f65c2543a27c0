"""Serializers write what Kafka's write; deserializers read it; what they cannot take is named."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from moldau.client.errors import ConfigError, SerializationError
from moldau.client.serialization import resolve_deserializer, resolve_serializer, serialized

ID = UUID("12345678-1234-5678-1234-567812345678")
JAVA = "org.apache.kafka.common.serialization."


@pytest.mark.parametrize(
    ("name", "java", "value", "data"),
    [
        ("string", "String", "číslo", "číslo".encode()),
        ("bytes", "ByteArray", b"\x00\xff", b"\x00\xff"),
        ("short", "Short", -2, b"\xff\xfe"),
        ("int", "Integer", 258, b"\x00\x00\x01\x02"),
        ("long", "Long", -1, b"\xff" * 8),
        ("float", "Float", 1.5, b"\x3f\xc0\x00\x00"),
        ("double", "Double", 1.5, b"\x3f\xf8" + bytes(6)),
        ("boolean", "Boolean", True, b"\x01"),
        ("uuid", "UUID", ID, str(ID).encode()),
    ],
)
def test_built_in_types_are_kafkas(name: str, java: str, value: Any, data: bytes) -> None:
    for spelling in (name, f"{JAVA}{java}Serializer"):
        write = resolve_serializer(spelling, is_key=True)
        assert write("t", value, []) == data
        assert write("t", None, []) is None
    for spelling in (name, f"{JAVA}{java}Deserializer"):
        read = resolve_deserializer(spelling, is_key=False)
        if read is None:
            assert name == "bytes"
            continue
        assert read("t", data, ()) == value
        assert read("t", None, ()) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", b"bytes"),
        ("bytes", "text"),
        ("short", 2**15),
        ("int", "1"),
        ("int", True),
        ("long", 1.5),
        ("float", "1"),
        ("boolean", 1),
        ("uuid", str(ID)),
        ("void", b""),
        ("json", {1, 2}),
        (None, 5),
    ],
)
def test_what_does_not_fit_is_refused(name: str | None, value: Any) -> None:
    with pytest.raises(SerializationError, match="t"):
        serialized(resolve_serializer(name, is_key=False), "t", value, [], "value")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("int", b"123"),
        ("boolean", b"\x02"),
        ("uuid", b"no id"),
        ("json", b"{"),
        ("string", b"\xff"),
        ("void", b"x"),
    ],
)
def test_bytes_that_make_no_sense_are_refused(name: str, data: bytes) -> None:
    read = resolve_deserializer(name, is_key=False)
    assert read is not None
    with pytest.raises(SerializationError):
        read("t", data, ())


def test_without_a_setting_bytes_text_and_none_are_taken() -> None:
    write = resolve_serializer(None, is_key=False)
    given = (b"a", bytearray(b"a"), memoryview(b"a"), "a", None)
    assert [write("t", each, []) for each in given] == [b"a", b"a", b"a", b"a", None]
    assert resolve_deserializer(None, is_key=False) is None


def test_json_goes_both_ways() -> None:
    write, read = resolve_serializer("json", False), resolve_deserializer("json", False)
    assert read is not None
    data = write("t", {"ä": [1, None, "x"]}, [])
    assert data == '{"ä":[1,null,"x"]}'.encode()
    assert read("t", data, ()) == {"ä": [1, None, "x"]}


def test_text_may_have_another_encoding() -> None:
    config = {"key.serializer.encoding": "utf-16-be", "deserializer.encoding": "latin-1"}
    assert resolve_serializer("string", True, config)("t", "a", []) == b"\x00a"
    assert resolve_serializer("string", False, config)("t", "a", []) == b"a"
    read = resolve_deserializer("string", False, config)
    assert read is not None
    assert read("t", b"\xe4", ()) == "ä"
    with pytest.raises(ConfigError, match="no-such"):
        resolve_serializer("string", True, {"key.serializer.encoding": "no-such"})


@pytest.mark.parametrize(
    ("inner", "value", "data"),
    [
        (
            "int",
            [1, None, 3],
            # constant size, one null at index 1, three entries
            b"\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x03",
        ),
        (
            "boolean",
            [True],
            b"\x01\x00\x00\x00\x01\x00\x00\x00\x01\x01",
        ),
        (
            "string",
            ["ab", None],
            # variable size, two entries, lengths before each
            b"\x01\x00\x00\x00\x02\x00\x00\x00\x02ab\xff\xff\xff\xff",
        ),
    ],
)
def test_lists_have_kafkas_layout(inner: str, value: list[Any], data: bytes) -> None:
    write = resolve_serializer("list", True, {"list.key.serializer.inner": inner})
    read = resolve_deserializer("list", False, {"list.value.deserializer.inner": inner})
    assert read is not None
    assert write("t", value, []) == data
    assert read("t", data, ()) == value
    with pytest.raises(SerializationError):
        read("t", data[:-1], ())
    with pytest.raises(ConfigError, match=r"list\.key\.serializer\.inner"):
        resolve_serializer("list", True, {})


class Reverse:
    """An object with methods, as Java's are."""

    def configure(self, config: dict[str, Any], is_key: bool) -> None:
        self.configured = (config, is_key)

    def serialize(self, topic: str, data: str, headers: Any) -> bytes:
        headers.append(("reversed", b"1"))
        return data[::-1].encode()

    def deserialize(self, topic: str, data: bytes, headers: Any) -> str:
        return data.decode()[::-1]


def test_own_classes_objects_paths_and_functions() -> None:
    own = Reverse()
    headers: list[Any] = []
    assert resolve_serializer(own, True, {"a": 1})("t", "abc", headers) == b"cba"
    assert headers == [("reversed", b"1")]
    assert own.configured == ({"a": 1}, True)
    assert resolve_serializer(Reverse, False)("t", "abc", []) == b"cba"
    read = resolve_deserializer(f"{__name__}.Reverse", False)
    assert read is not None
    assert read("t", b"cba", ()) == "abc"
    assert resolve_serializer(lambda topic, data, headers: b"fixed", False)("t", 1, []) == b"fixed"


def test_functions_of_the_data_alone() -> None:
    assert resolve_serializer(str.encode, False)("t", "abc", []) == b"abc"
    assert resolve_serializer(lambda data: json.dumps(data).encode(), False)("t", 1, []) == b"1"
    read = resolve_deserializer(json.loads, False)
    assert read is not None
    assert read("t", b"[1]", ()) == [1]
    any_number = resolve_deserializer(lambda *arguments: len(arguments), False)
    assert any_number is not None
    assert any_number("t", b"", ()) == 3


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("strnig", "string"),
        ("no.such.module.Thing", "no.such"),
        (f"{JAVA}StrongSerializer", "no such serializer"),
        (42, "must be callable"),
    ],
)
def test_settings_that_stand_for_nothing(setting: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        resolve_serializer(setting, is_key=False)


def test_whatever_a_serializer_raises_or_gives_is_a_serialization_error() -> None:
    def broken(topic: str, data: Any, headers: Any) -> Any:
        raise KeyError("field")

    with pytest.raises(SerializationError, match=r"value of class dict for topic t: 'field'"):
        serialized(broken, "t", {}, [], "value")
    with pytest.raises(SerializationError, match="gave a int"):
        serialized(lambda topic, data, headers: 5, "t", {}, [], "value")  # type: ignore[arg-type, return-value]
