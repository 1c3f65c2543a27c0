"""Our bytes against two independent implementations: kio and kafka-python.

Each reads what we wrote, finds the values we meant where the names agree, and writes the same
bytes again.
"""

from __future__ import annotations

import datetime
import enum
import io
import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.api_data import ApiData
from kafka.protocol.api_message import ApiMessage
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from moldau.wire import messages
from moldau.wire.codec import encode
from moldau.wire.message import Message
from moldau.wire.record_values import encode_versioned
from moldau.wire.uuids import ZERO_UUID
from support.examples import IN_CI
from support.message_samples import Samples, all_versions

SAMPLES = 4 if IN_CI else 12
KIO_ERROR_CODES = [int(code) for code in KioErrorCode]


def kio_name(cls: type[Message]) -> str:
    name = cls.__name__
    if cls.KIND in ("request", "response"):
        name = name.removesuffix("Request").removesuffix("Response")
    text = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    return text.lstrip("_")


def kio_cases() -> Iterator[Any]:
    for cls, version in all_versions():
        kind = getattr(EntityType, cls.KIND, None)
        if kind in schema_name_map.get(kio_name(cls), {}).get(version, {}):
            yield pytest.param(cls, version, kind, id=f"{cls.__name__}-v{version}")


def tame(source: random.Random, name: str, kind: str) -> Any:
    """Values for fields that kio turns into enums and dates."""
    if kind == "int16" and "error_code" in name:
        return source.choice(KIO_ERROR_CODES)
    if kind == "int64" and ("time" in name or "period" in name):
        return source.choice((0, 1, 1_700_000_000_123))
    return None


def test_kio_knows_most_of_the_protocol() -> None:
    assert len(list(kio_cases())) > 600


@pytest.mark.parametrize(("cls", "version", "kind"), list(kio_cases()))
def test_kio_agrees(cls: type[Message], version: int, kind: Any) -> None:
    schema = load_entity_schema(kio_name(cls), version, kind)
    read, write = entity_reader(schema), entity_writer(schema)
    source = random.Random(f"{cls.__name__}{version}")
    for _ in range(SAMPLES):
        message = Samples(source, unknown_tags=False, choose=tame).message(cls, version)
        data = encode(message, version)
        theirs, size = read(data, 0)
        assert size == len(data)
        assert_same_values(message, theirs)
        buffer = io.BytesIO()
        write(buffer, theirs)
        assert buffer.getvalue().hex() == data.hex(), message


def assert_same_values(ours: Any, theirs: Any) -> None:
    """Compare what has the same name; durations and dates lose their unit's suffix in kio."""
    if isinstance(ours, Message):
        for row in ours.FIELDS:
            name = row[0] if hasattr(theirs, row[0]) else row[0].removesuffix("_ms")
            if hasattr(theirs, name):
                assert_same_values(getattr(ours, row[0]), getattr(theirs, name))
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same_values(one, other)
    else:
        assert plain(theirs) == plain(ours)


def plain(value: Any) -> Any:
    match value:
        case enum.Enum():
            return value.value
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            return round(value.timestamp() * 1000)
        case UUID():
            return None if value == ZERO_UUID else value
        case _:
            return value


def kafka_python_classes() -> dict[str, Any]:
    for name in ("admin", "consumer", "metadata", "producer", "sasl"):
        import_module(f"kafka.protocol.{name}")
    found = [*ApiMessage.__subclasses__(), *ApiData.__subclasses__()]
    return {cls.__name__: cls for cls in found if cls.__name__ in messages.MODULES}


def kafka_python_cases() -> Iterator[Any]:
    theirs = kafka_python_classes()
    for cls, version in all_versions():
        if cls.__name__ in theirs and version <= theirs[cls.__name__].max_version:
            yield pytest.param(cls, version, theirs[cls.__name__], id=f"{cls.__name__}-v{version}")


def test_kafka_python_knows_the_client_side() -> None:
    assert len(list(kafka_python_cases())) > 350


def without_error(source: random.Random, name: str, kind: str) -> Any:
    """With an error kafka-python takes any ApiVersions response for version 0 (KIP-511)."""
    return 0 if name == "error_code" else None


@pytest.mark.parametrize(("cls", "version", "other"), list(kafka_python_cases()))
def test_kafka_python_agrees(cls: type[Message], version: int, other: Any) -> None:
    source = random.Random(f"{cls.__name__}{version}")
    choose = without_error if cls is messages.ApiVersionsResponse else None
    for _ in range(SAMPLES):
        message = Samples(source, unknown_tags=False, choose=choose).message(cls, version)
        if issubclass(other, ApiData):
            # It keeps the version with the body.
            data = encode_versioned(message, version)
            again = bytes(other.decode(data).encode(version=version))
        else:
            data = encode(message, version)
            theirs = other.decode(data, version=version)
            # Unset after reading, and asked for in writing.
            theirs._header = None
            again = bytes(theirs.encode(version=version))
        assert again.hex() == data.hex(), message
