"""Links, times, cursors, formats, bodies, errors: what the proxy decides without a broker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client import errors
from moldau.http.machine.errors import HttpError
from moldau.services.rest.config import RestConfig
from moldau.services.rest.machine import bodies
from moldau.services.rest.machine.cursors import format_cursor, parse_cursor
from moldau.services.rest.machine.errors import produce_error_code, rest_error
from moldau.services.rest.machine.formats import decode_plain, encode_plain
from moldau.services.rest.machine.instants import format_instant, parse_instant
from moldau.services.rest.machine.links import Links
from moldau.services.rest.v2.media import PRODUCED, RECORDS, format_of


def test_links_can_be_followed_whatever_the_name() -> None:
    links = Links("http://h:1/v3")
    assert links.url("clusters", "c", "topics", "a/b ü%") == (
        "http://h:1/v3/clusters/c/topics/a%2Fb%20%C3%BC%25"
    )
    assert links.url("clusters", "c", "brokers", 1) == "http://h:1/v3/clusters/c/brokers/1"
    assert links.crn("kafka", "c", "topic", "t", "partition", 1, "reassignment") == (
        "crn:///kafka=c/topic=t/partition=1/reassignment"
    )
    assert Links("", "example.org").crn("kafka", "c") == "crn://example.org/kafka=c"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1612552482000, "2021-02-05T19:14:42Z"),
        (1612552482007, "2021-02-05T19:14:42.007Z"),
        (0, "1970-01-01T00:00:00Z"),
    ],
)
def test_times_are_written_as_java_writes_them(ms: int, text: str) -> None:
    assert format_instant(ms) == text
    assert parse_instant(text) == ms
    assert parse_instant(str(ms)) == ms


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2021-02-05T19:14:42", "-5", "9" * 30, "2021-13-01T00:00:00Z", "١"]
)
def test_what_is_no_time(text: str) -> None:
    assert parse_instant(text) is None


def test_a_record_without_a_time_has_none() -> None:
    assert format_instant(-1) is None


@given(st.dictionaries(st.integers(0, 9999), st.integers(0, 2**59), min_size=1))
def test_cursors_round_trip(positions: dict[int, int]) -> None:
    assert parse_cursor(format_cursor(positions)) == positions


@pytest.mark.parametrize("text", ["", "0", "0:", ":1", "0:1,0:2", "a:b", "0:-1", "0:1;1:2"])
def test_what_is_no_cursor(text: str) -> None:
    with pytest.raises(HttpError) as caught:
        parse_cursor(text)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("format", "value", "data"),
    [
        ("BINARY", "Zm9v", b"foo"),
        ("BINARY", "", b""),
        ("JSON", {"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'.encode()),
        ("JSON", 10**30, b"1" + b"0" * 30),
        ("JSON", "x", b'"x"'),
        ("STRING", "ü", "ü".encode()),
        ("BINARY", None, None),
    ],
)
def test_formats_round_trip(format: str, value: Any, data: bytes | None) -> None:
    assert encode_plain(format, value) == data
    assert decode_plain(format, data) == value


@given(st.recursive(st.none() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_json_is_what_the_standard_library_writes(value: Any) -> None:
    written = encode_plain("JSON", [value])
    assert written == json.dumps([value], ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("format", "value", "message"),
    [
        ("BINARY", 1, "Bad Request: data=1 is not a base64 string."),
        ("BINARY", "a", 'Bad Request: data="a" is not a valid base64 string.'),
        ("BINARY", "Zm9v!", 'Bad Request: data="Zm9v!" is not a valid base64 string.'),
        ("BINARY", "ü", 'Bad Request: data="ü" is not a valid base64 string.'),
        ("STRING", {}, "Bad Request: data={} is not a string."),
    ],
)
def test_what_does_not_have_the_format(format: str, value: Any, message: str) -> None:
    with pytest.raises(HttpError) as caught:
        encode_plain(format, value)
    assert caught.value.body == {"error_code": 400, "message": message}


def test_bytes_that_are_not_json_have_confluents_code() -> None:
    with pytest.raises(HttpError) as caught:
        decode_plain("JSON", b"\xff")
    assert (caught.value.status, caught.value.error_code) == (408, 40801)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (errors.TopicAuthorizationFailedError(), 403, 40301),
        (errors.SaslAuthenticationFailedError(), 401, 40101),
        (errors.UnknownTopicOrPartitionError("t"), 404, 40403),
        (errors.TopicExistsError("it is there"), 400, 40002),
        (errors.InvalidReplicationFactorError(), 400, 40002),
        (errors.RecordTooLargeError(), 413, 413),
        (errors.ThrottlingQuotaExceededError(), 429, 42901),
        (errors.KafkaTimeoutError("Topic t not present in metadata after 9 ms"), 404, 40401),
        (errors.KafkaTimeoutError("no answer"), 500, 50003),
        (errors.NotEnoughReplicasError(), 500, 50003),
        (errors.IllegalStateError("not assigned"), 409, 40903),
        (errors.KafkaError("odd"), 500, 50002),
    ],
)
def test_errors_of_kafka_have_confluents_codes(error: Any, status: int, code: int) -> None:
    found = rest_error(error)
    assert found is not None
    assert (found.status, found.error_code) == (status, code)
    assert found.message


def test_an_error_that_is_not_kafkas_is_left_alone() -> None:
    assert rest_error(RuntimeError("a bug")) is None


def test_codes_of_records_that_were_not_stored() -> None:
    assert produce_error_code(errors.TopicAuthorizationFailedError()) == 40301
    assert produce_error_code(errors.NotEnoughReplicasError()) == 50003
    assert produce_error_code(errors.RecordTooLargeError()) == 50002


@pytest.mark.parametrize(
    ("body", "status"),
    [({"n": True}, 400), ({"n": "1"}, 400), ({"n": 1.5}, 400), ({"n": 2**31}, 400)],
)
def test_a_number_that_is_none(body: dict[str, Any], status: int) -> None:
    with pytest.raises(HttpError) as caught:
        bodies.integer(body, "n")
    assert caught.value.status == status


def test_a_missing_field_is_a_violated_constraint() -> None:
    with pytest.raises(HttpError) as caught:
        bodies.required({"n": None}, "n")
    assert caught.value.body == {"error_code": 422, "message": "n must not be null (was null)"}


def test_formats_of_media_types() -> None:
    assert format_of("application/vnd.kafka.avro.v1+json") == "AVRO"
    assert format_of("application/vnd.kafka.v2+json") is None
    assert len(set(PRODUCED)) == len(PRODUCED)
    assert len(set(RECORDS)) == len(RECORDS)


def test_settings_of_clients_come_from_their_prefixes() -> None:
    config = RestConfig.of(
        {
            "bootstrap.servers": "a:1,b:2",
            "client.security.protocol": "SSL",
            "producer.acks": "1",
            "consumer.fetch.max.bytes": "5",
            "consumer.request.timeout.ms": "7",
        }
    )
    producer, consumer = config.client_settings("producer"), config.client_settings("consumer")
    assert producer["bootstrap.servers"] == "a:1,b:2"
    assert (producer["security.protocol"], producer["acks"]) == ("SSL", "1")
    assert consumer["fetch.max.bytes"] == "5"
    # A key of the proxy is not one of the consumer.
    assert "request.timeout.ms" not in consumer


def test_a_proxy_without_brokers_says_what_is_missing() -> None:
    with pytest.raises(Exception, match=r"bootstrap.servers=localhost:9092"):
        RestConfig.of({})
