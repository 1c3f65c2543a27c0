"""Reading over v3: long poll and server-sent events, with no state in the proxy."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from moldau.testing import wait_until
from support.http_service import running
from support.processes import BrokerProcess
from support.rest import Proxy, proxy_of


def records_path(proxy: Proxy, name: str, partition: object = "-") -> str:
    return f"{proxy.cluster}/topics/{name}/partitions/{partition}/records"


def produce(proxy: Proxy, name: str, *values: Any, partition: int = 0, **more: Any) -> None:
    records = [
        {"value": {"type": "JSON", "data": each}, "partition_id": partition, **more}
        for each in values
    ]
    path = f"{proxy.cluster}/topics/{name}/records"
    answer = proxy.send("POST", path, "".join(map(json.dumps, records)))
    assert '"error_code":200' in answer.text


def values(answer: Any) -> list[Any]:
    return [each["value"]["data"] for each in answer["data"]]


def test_pages_of_records_by_cursor(proxy: Proxy) -> None:
    name = proxy.topic(2)
    produce(proxy, name, 0, 1, 2)
    produce(proxy, name, 10, 11, partition=1)
    found: list[Any] = []
    url = f"{records_path(proxy, name)}?value_format=JSON&max_records=2"
    for _ in range(10):
        page = proxy.ask("GET", url)
        assert len(page["data"]) <= 2
        found += values(page)
        url = page["metadata"]["next"]
    assert sorted(found) == [0, 1, 2, 10, 11]
    assert url.endswith("cursor=0:3,1:2")


def test_what_a_record_shows(proxy: Proxy) -> None:
    name = proxy.topic()
    headers = [{"name": "h", "value": "aGk="}]
    key = {"type": "STRING", "data": "k"}
    produce(proxy, name, {"a": 1}, headers=headers, key=key, timestamp="2021-02-05T19:14:42Z")
    query = "key_format=STRING&value_format=JSON"
    (record,) = proxy.ask("GET", f"{records_path(proxy, name, 0)}?{query}")["data"]
    assert record == {
        "kind": "KafkaRecord",
        "cluster_id": proxy.cluster.rpartition("/")[2],
        "topic_name": name,
        "partition_id": 0,
        "offset": 0,
        "timestamp": "2021-02-05T19:14:42Z",
        "headers": headers,
        "key": key,
        "value": {"type": "JSON", "data": {"a": 1}},
    }
    # What does not have the format is shown as it is.
    body = {"value": {"type": "BINARY", "data": "/w=="}}
    proxy.ask("POST", f"{proxy.cluster}/topics/{name}/records", body)
    found = proxy.ask("GET", f"{records_path(proxy, name, 0)}?{query}&offset=1")["data"]
    assert [each["value"] for each in found] == [{"type": "BINARY", "data": "/w=="}]
    assert found[0]["key"] is None


def test_beginning_at_an_offset_or_a_time(proxy: Proxy) -> None:
    name = proxy.topic()
    for second in range(5):
        produce(proxy, name, second, timestamp=f"2021-02-05T00:00:0{second}Z")
    path = f"{records_path(proxy, name, 0)}?value_format=JSON"
    assert values(proxy.ask("GET", f"{path}&offset=3")) == [3, 4]
    assert values(proxy.ask("GET", f"{path}&offset=latest")) == []
    assert values(proxy.ask("GET", f"{path}&offset=5")) == []
    assert values(proxy.ask("GET", f"{path}&timestamp=2021-02-05T00:00:02Z")) == [2, 3, 4]
    assert values(proxy.ask("GET", f"{path}&timestamp=1612483201500")) == [2, 3, 4]
    assert values(proxy.ask("GET", f"{path}&timestamp=2031-01-01T00:00:00Z")) == []
    beyond = proxy.ask("GET", f"{path}&offset=6", status=400)
    assert beyond["error_code"] == 40002


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("offset=x", 400),
        ("offset=-1", 400),
        ("timestamp=x", 400),
        ("cursor=x", 400),
        ("max_records=-1", 400),
        ("max_records=x", 404),
        ("value_format=xml", 400),
        ("value_format=AVRO", 422),
        ("isolation_level=none", 400),
    ],
)
def test_questions_that_are_refused(proxy: Proxy, query: str, status: int) -> None:
    name = proxy.topic()
    produce(proxy, name, 1)
    proxy.ask("GET", f"{records_path(proxy, name)}?{query}", status=status)


def test_what_is_not_there(proxy: Proxy) -> None:
    assert proxy.ask("GET", records_path(proxy, "none"), status=404)["error_code"] == 40403
    path = records_path(proxy, proxy.topic(), 9)
    assert proxy.ask("GET", path, status=404)["error_code"] == 40402


def test_a_long_poll_returns_as_soon_as_there_is_something(proxy: Proxy) -> None:
    name = proxy.topic()
    url = f"{records_path(proxy, name)}?value_format=JSON&timeout_ms=40000"
    answers: list[Any] = []
    began = time.monotonic()
    thread = threading.Thread(target=lambda: answers.append(httpx.get(proxy.url + url, timeout=60)))
    thread.start()
    wait_until(lambda: proxy.service.service.application.in_flight == 1)
    produce(proxy, name, "now")
    thread.join(60)
    assert values(answers[0].json()) == ["now"]
    assert time.monotonic() - began < 30


@contextmanager
def events(proxy: Proxy, path: str, **headers: str) -> Iterator[Iterator[dict[str, str]]]:
    accept = {"Accept": "text/event-stream", **headers}
    with httpx.stream("GET", proxy.url + path, headers=accept, timeout=60) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        yield parsed(answer.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        else:
            yield event
            event = {}


def test_events_follow_and_resume(proxy: Proxy) -> None:
    name = proxy.topic()
    produce(proxy, name, 1)
    path = f"{records_path(proxy, name)}?value_format=JSON"
    with events(proxy, path) as stream:
        assert next(stream) == {"retry": "1000", "id": "0:0"}
        event = next(stream)
        assert (event["event"], event["id"]) == ("record", "0:1")
        assert json.loads(event["data"])["value"]["data"] == 1
        produce(proxy, name, 2)
        last = next(stream)
        assert json.loads(last["data"])["value"]["data"] == 2
    produce(proxy, name, 3)
    # A browser's EventSource sends the last id when it connects again.
    with events(proxy, path, **{"Last-Event-ID": last["id"]}) as stream:
        next(stream)
        assert json.loads(next(stream)["data"])["value"]["data"] == 3
    # A client that went is noticed, and its consumer is free again.
    wait_until(lambda: proxy.service.service.application.in_flight == 0, timeout=30)
    refused = httpx.get(
        proxy.url + records_path(proxy, "none"), headers={"Accept": "text/event-stream"}
    )
    assert (refused.status_code, refused.json()["error_code"]) == (404, 40403)


def test_readers_are_bounded_and_a_stop_ends_them(broker: BrokerProcess) -> None:
    make = lambda: proxy_of(  # noqa: E731
        broker.bootstrap, simpleconsumer_pool_size_max="1", simpleconsumer_pool_timeout_ms="50"
    )
    with running(make) as service:
        proxy = Proxy(service, broker)
        name = proxy.topic()
        with events(proxy, records_path(proxy, name)) as stream:
            next(stream)
            busy = proxy.ask("GET", records_path(proxy, name), status=503)
            assert busy["error_code"] == 50301
            began = time.monotonic()
            service.call(service.service.stop)
            assert list(stream) == []
            assert time.monotonic() - began < 20
