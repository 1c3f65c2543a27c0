"""API v2: topics, producing, and consumer instances with their lifetime."""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import Any

import pytest

from moldau.testing import wait_until
from support.http_service import running
from support.processes import BrokerProcess
from support.rest import BINARY_V2, JSON_V2, V2, Proxy, proxy_of


def test_topics_partitions_and_brokers(proxy: Proxy) -> None:
    name = proxy.topic(2, retention_ms="12345")
    assert name in proxy.ask("GET", "/topics")
    topic = proxy.ask("GET", f"/topics/{name}")
    assert (topic["name"], topic["configs"]["retention.ms"]) == (name, "12345")
    (broker,) = proxy.ask("GET", "/brokers")["brokers"]
    replica = {"broker": broker, "leader": True, "in_sync": True}
    partitions = [{"partition": n, "leader": broker, "replicas": [replica]} for n in (0, 1)]
    assert topic["partitions"] == partitions
    assert proxy.ask("GET", f"/topics/{name}/partitions") == partitions
    assert proxy.ask("GET", f"/topics/{name}/partitions/1") == partitions[1]
    offsets = proxy.ask("GET", f"/topics/{name}/partitions/1/offsets")
    assert offsets == {"beginning_offset": 0, "end_offset": 0}
    assert proxy.ask("GET", "/") == {}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/topics/none", 40401),
        ("/topics/none/partitions", 40401),
        ("/topics/none/partitions/0", 40401),
        ("/topics/TOPIC/partitions/9", 40402),
        ("/topics/TOPIC/partitions/9/offsets", 40402),
        ("/topics/TOPIC/partitions/x", 404),
        ("/nothing", 404),
    ],
)
def test_what_is_not_there(proxy: Proxy, path: str, code: int) -> None:
    if "TOPIC" in path:
        path = path.replace("TOPIC", proxy.topic())
    assert proxy.ask("GET", path, status=404)["error_code"] == code


def test_producing_json_and_binary(proxy: Proxy) -> None:
    name = proxy.topic(2)
    records: list[dict[str, Any]] = [
        {"key": "k", "value": {"a": [1, None, "ü"]}, "partition": 1},
        {"value": None, "partition": 1},
        {"value": 5, "partition": 0},
    ]
    answer = proxy.ask("POST", f"/topics/{name}", {"records": records}, content_type=JSON_V2)
    stored = [{"partition": p, "offset": o, "error_code": None, "error": None}
              for p, o in ((1, 0), (1, 1), (0, 0))]  # fmt: skip
    assert answer == {"offsets": stored, "key_schema_id": None, "value_schema_id": None}
    raw = base64.b64encode(b"\x00\xff").decode()
    body = {"records": [{"key": raw, "value": raw}]}
    path = f"/topics/{name}/partitions/0"
    for kind in (BINARY_V2, "application/vnd.kafka.binary.v1+json", V2):
        answer = proxy.ask("POST", path, body, content_type=kind)
        assert answer["offsets"][0]["partition"] == 0
    assert proxy.ask("GET", f"{path}/offsets")["end_offset"] == 4


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        pytest.param(JSON_V2, {"records": []}, 422, 422, id="no records"),
        pytest.param(JSON_V2, {}, 422, 422, id="nothing"),
        pytest.param(JSON_V2, {"records": [1]}, 400, 400, id="not an object"),
        pytest.param(JSON_V2, "{", 400, 400, id="no JSON"),
        pytest.param(BINARY_V2, {"records": [{"value": "!"}]}, 400, 400, id="no base64"),
        pytest.param(JSON_V2, {"records": [{"value": 1, "partition": 7}]}, 404, 40402,
                     id="no such partition"),
        pytest.param(JSON_V2, {"records": [{"value": 1, "partition": "x"}]}, 400, 400,
                     id="a partition that is no number"),
        pytest.param("application/json", {"records": []}, 415, 415, id="no format"),
        pytest.param("application/vnd.kafka.avro.v2+json", {"records": [{"value": 1}]}, 422, 42202,
                     id="no value schema"),
        pytest.param("application/vnd.kafka.avro.v1+json", {"records": [{"key": 1}]}, 422, 42201,
                     id="no key schema"),
        pytest.param("application/vnd.kafka.avro.v2+json",
                     {"value_schema": "{}", "records": [{"value": 1}]}, 422, 42206,
                     id="no registry"),
    ],
)  # fmt: skip
def test_what_cannot_be_produced(
    proxy: Proxy, kind: str, body: Any, status: int, code: int
) -> None:
    name = proxy.topic()
    answer = proxy.ask("POST", f"/topics/{name}", body, content_type=kind, status=status)
    assert answer["error_code"] == code
    assert proxy.ask("GET", f"/topics/{name}/partitions/0/offsets")["end_offset"] == 0


def test_a_topic_that_there_is_not_fails_each_record(proxy: Proxy) -> None:
    body = {"records": [{"value": 1}, {"value": 2}]}
    answer = proxy.ask("POST", "/topics/never-created", body, content_type=JSON_V2)
    assert [each["error_code"] for each in answer["offsets"]] == [50003, 50003]
    assert all("never-created" in each["error"] for each in answer["offsets"])


def consumer(proxy: Proxy, group: str, **options: str) -> str:
    """The path of a new instance."""
    body = {"format": "json", "auto.offset.reset": "earliest", **options}
    made = proxy.v2("POST", f"/consumers/{group}", body)
    path = f"/consumers/{group}/instances/{made['instance_id']}"
    assert made["base_uri"] == proxy.url + path
    return path


def read(proxy: Proxy, path: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    until = time.monotonic() + 60
    while len(found) < count and time.monotonic() < until:
        found += proxy.ask("GET", f"{path}/records?timeout=300", accept=JSON_V2)
    return found


def produce(proxy: Proxy, name: str, *values: Any, partition: int = 0) -> None:
    body = {"records": [{"value": each, "partition": partition} for each in values]}
    proxy.ask("POST", f"/topics/{name}", body, content_type=JSON_V2)


def test_a_subscription_reads_and_commits(proxy: Proxy) -> None:
    name = proxy.topic()
    produce(proxy, name, "a", "b")
    path = consumer(proxy, "group-1", **{"auto.commit.enable": "false"})
    proxy.v2("POST", f"{path}/subscription", {"topics": [name]}, status=204)
    assert proxy.ask("GET", f"{path}/subscription") == {"topics": [name]}
    assert read(proxy, path, 2) == [
        {"topic": name, "key": None, "value": value, "partition": 0, "offset": offset}
        for offset, value in enumerate("ab")
    ]
    place = {"topic": name, "partition": 0}
    assert proxy.ask("GET", f"{path}/assignments") == {"partitions": [place]}
    asked = {"partitions": [place]}
    assert proxy.v2("GET", f"{path}/offsets", asked) == {"offsets": []}
    assert proxy.ask("POST", f"{path}/offsets") == []
    committed = {"offsets": [{**place, "offset": 2, "metadata": ""}]}
    assert proxy.v2("GET", f"{path}/offsets", asked) == committed
    # With offsets: that of the last record that was processed.
    body = {"offsets": [{**place, "offset": 0, "metadata": "why"}]}
    proxy.v2("POST", f"{path}/offsets", body)
    assert proxy.v2("GET", f"{path}/offsets", asked)["offsets"][0] == {
        **place, "offset": 1, "metadata": "why",
    }  # fmt: skip
    proxy.v2("DELETE", path, status=204)
    gone = proxy.ask("GET", f"{path}/records", status=404)
    assert gone == {"error_code": 40403, "message": "Consumer instance not found."}
    # Another member goes on where it stopped.
    path = consumer(proxy, "group-1")
    proxy.v2("POST", f"{path}/subscription", {"topic_pattern": f"{name}.*"}, status=204)
    assert [each["value"] for each in read(proxy, path, 1)] == ["b"]
    proxy.v2("DELETE", f"{path}/subscription", status=204)
    assert proxy.ask("GET", f"{path}/subscription") == {"topics": []}
    proxy.v2("DELETE", path, status=204)


def test_an_assignment_moves_where_it_is_told(proxy: Proxy) -> None:
    name = proxy.topic(2)
    produce(proxy, name, 0, 1, 2, 3)
    path = consumer(proxy, "group-2")
    place = {"topic": name, "partition": 0}
    proxy.v2("POST", f"{path}/assignments", {"partitions": [place]}, status=204)
    assert [each["value"] for each in read(proxy, path, 4)] == [0, 1, 2, 3]
    proxy.v2("POST", f"{path}/positions", {"offsets": [{**place, "offset": 2}]}, status=204)
    assert [each["value"] for each in read(proxy, path, 2)] == [2, 3]
    proxy.v2("POST", f"{path}/positions/beginning", {"partitions": [place]}, status=204)
    assert [each["value"] for each in read(proxy, path, 4)] == [0, 1, 2, 3]
    proxy.v2("POST", f"{path}/positions/beginning", {"partitions": [place]}, status=204)
    proxy.v2("POST", f"{path}/positions/end", {"partitions": [place]}, status=204)
    assert proxy.ask("GET", f"{path}/records?timeout=200", accept=JSON_V2) == []
    produce(proxy, name, 4)
    assert [each["value"] for each in read(proxy, path, 1)] == [4]
    other = {"topic": name, "partition": 1}
    refused = proxy.v2(
        "POST", f"{path}/positions", {"offsets": [{**other, "offset": 0}]}, status=409
    )
    assert refused["error_code"] == 40903
    subscribed = proxy.v2("POST", f"{path}/subscription", {"topics": [name]}, status=409)
    assert subscribed["error_code"] == 40903
    proxy.v2("DELETE", path, status=204)


def test_a_response_is_limited_and_the_next_one_continues(proxy: Proxy) -> None:
    name = proxy.topic()
    produce(proxy, name, *("x" * 1000 for _ in range(5)))
    path = consumer(proxy, "group-3", **{"auto.commit.enable": "false"})
    place = {"topic": name, "partition": 0}
    proxy.v2("POST", f"{path}/assignments", {"partitions": [place]}, status=204)
    sizes = []
    until = time.monotonic() + 60
    while sum(sizes) < 5 and time.monotonic() < until:
        found = proxy.ask("GET", f"{path}/records?max_bytes=2500&timeout=300", accept=JSON_V2)
        sizes += [len(found)] if found else []
        if len(sizes) == 1:
            # What is committed is what was returned, not what was read ahead.
            proxy.ask("POST", f"{path}/offsets")
            asked = {"partitions": [place]}
            assert proxy.v2("GET", f"{path}/offsets", asked)["offsets"][0]["offset"] == 2
    assert sizes == [2, 2, 1]
    # One that is larger than the limit comes alone rather than never.
    proxy.v2("POST", f"{path}/positions/beginning", {"partitions": [place]}, status=204)
    assert len(proxy.ask("GET", f"{path}/records?max_bytes=10", accept=JSON_V2)) == 1
    proxy.v2("DELETE", path, status=204)


def test_the_format_of_an_instance_is_kept_to(proxy: Proxy) -> None:
    name = proxy.topic()
    raw = base64.b64encode(b"\xff").decode()
    proxy.ask("POST", f"/topics/{name}", {"records": [{"value": raw}]}, content_type=BINARY_V2)
    path = consumer(proxy, "group-4", format="binary")
    place = {"partitions": [{"topic": name, "partition": 0}]}
    proxy.v2("POST", f"{path}/assignments", place, status=204)
    refused = proxy.ask("GET", f"{path}/records", accept=JSON_V2, status=406)
    assert refused["error_code"] == 40601
    answer = proxy.send("GET", f"{path}/records", accept=V2)
    assert answer.headers["content-type"] == BINARY_V2
    assert answer.json()[0]["value"] == raw
    proxy.v2("DELETE", path, status=204)
    path = consumer(proxy, "group-4b", format="json")
    proxy.v2("POST", f"{path}/assignments", place, status=204)
    assert proxy.ask("GET", f"{path}/records", status=408)["error_code"] == 40801
    proxy.v2("DELETE", path, status=204)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"format": "xml"}, 422, 422),
        ({"format": "avro"}, 422, 42206),
        ({"fetch.min.bytes": -2}, 422, 40001),
        ({"auto.offset.reset": "sometimes"}, 422, 42204),
        ({"auto.commit.enable": "perhaps"}, 422, 42204),
        ({"name": 5}, 400, 400),
        ([], 400, 400),
    ],
)
def test_instances_that_cannot_be_made(proxy: Proxy, body: Any, status: int, code: int) -> None:
    assert proxy.v2("POST", "/consumers/bad", body, status=status)["error_code"] == code


def test_a_name_is_taken_once_and_may_be_anything(proxy: Proxy) -> None:
    made = proxy.v2("POST", "/consumers/a%2Fb", {"name": "ü/1"})
    assert made["base_uri"].endswith("/consumers/a%2Fb/instances/%C3%BC%2F1")
    taken = proxy.v2("POST", "/consumers/a%2Fb", {"name": "ü/1"}, status=409)
    assert taken["error_code"] == 40902
    proxy.v2("DELETE", made["base_uri"].removeprefix(proxy.url), status=204)


def test_an_instance_that_nobody_uses_ends(broker: BrokerProcess) -> None:
    make = lambda: proxy_of(broker.bootstrap, consumer_instance_timeout_ms="500")  # noqa: E731
    with running(make) as service:
        proxy = Proxy(service, broker)
        path = consumer(proxy, "group-5")
        wait_until(lambda: service.service.instances.count == 0, timeout=30)
        assert proxy.ask("GET", f"{path}/records", status=404)["error_code"] == 40403


def test_instances_are_bounded(broker: BrokerProcess) -> None:
    with running(lambda: proxy_of(broker.bootstrap, consumer_instances_max="2")) as service:
        proxy = Proxy(service, broker)
        for _ in range(2):
            consumer(proxy, "group-6")
        answer = proxy.send("POST", "/consumers/group-6", {}, content_type=V2)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


def test_a_stop_ends_a_long_poll_with_what_there_is(broker: BrokerProcess) -> None:
    with running(lambda: proxy_of(broker.bootstrap)) as service:
        proxy = Proxy(service, broker)
        name = proxy.topic()
        path = consumer(proxy, "group-7", **{"consumer.request.timeout.ms": 40_000})  # type: ignore[arg-type]
        place = {"partitions": [{"topic": name, "partition": 0}]}
        proxy.v2("POST", f"{path}/assignments", place, status=204)
        answers: list[Any] = []
        thread = threading.Thread(
            target=lambda: answers.append(proxy.ask("GET", f"{path}/records"))
        )
        thread.start()
        wait_until(lambda: service.service.application.in_flight == 1)
        began = time.monotonic()
        service.call(service.service.stop)
        thread.join(30)
        assert answers == [[]]
        assert time.monotonic() - began < 20


def test_answers_are_what_json_says(proxy: Proxy) -> None:
    answer = proxy.send("GET", "/topics", accept="application/vnd.kafka.v1+json")
    assert answer.headers["content-type"] == "application/vnd.kafka.v1+json"
    assert isinstance(json.loads(answer.content), list)
    assert proxy.send("GET", "/topics", accept="text/plain").status_code == 406
