"""Uuids in Kafka's text form."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire.uuids import (
    METADATA_TOPIC_ID,
    ZERO_UUID,
    random_uuid,
    uuid_from_text,
    uuid_to_text,
)


def test_reserved_uuids_read_as_in_kafka() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_url_safe_alphabet() -> None:
    value = UUID("fbefbeff-ffff-ffff-ffff-ffffffffffff")
    assert uuid_to_text(value) == "----" + "_" * 17 + "w"
    assert uuid_from_text(uuid_to_text(value)) == value


def test_padding_is_read() -> None:
    assert uuid_from_text("AAAAAAAAAAAAAAAAAAAAAQ==") == METADATA_TOPIC_ID


@given(st.uuids())
def test_text_round_trip(value: UUID) -> None:
    assert uuid_from_text(uuid_to_text(value)) == value


@pytest.mark.parametrize(
    "text",
    ["", "short", "AAAAAAAAAAAAAAAAAAAAA", "A" * 23, "A" * 40, "+" * 22, "ä" * 22, "A" * 22 + "="],
)
def test_bad_text_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        uuid_from_text(text)


@given(st.binary(min_size=16, max_size=16))
def test_random_uuids_are_version_4_and_no_option(raw: bytes) -> None:
    value = random_uuid(raw)
    assert value.version == 4
    assert not uuid_to_text(value).startswith("-")


def test_a_leading_dash_is_avoided() -> None:
    raw = b"\xf8" + bytes(15)
    assert uuid_to_text(UUID(bytes=raw, version=4)).startswith("-")
    assert not uuid_to_text(random_uuid(raw)).startswith("-")
