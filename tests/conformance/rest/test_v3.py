"""API v3: resources with their links, changes, producing."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Consumer, OffsetAndMetadata, TopicPartition
from moldau.testing import wait_until
from support.rest import JSON_V2, Proxy


def followed(proxy: Proxy, resource: Any) -> list[str]:
    """All links of a resource; each must lead somewhere."""
    found = []
    for value in resource.values():
        if isinstance(value, dict) and "related" in value:
            found.append(value["related"])
            answer = proxy.send("GET", value["related"])
            assert answer.status_code in (200, 404), answer.text
            if answer.status_code == 404:
                # There is no reassignment to show.
                assert value["related"].endswith("/reassignment")
    assert proxy.ask("GET", resource["metadata"]["self"]) == resource
    return found


def test_the_cluster_and_its_brokers(proxy: Proxy) -> None:
    found = proxy.ask("GET", "/v3/clusters")
    assert (found["kind"], found["metadata"]["next"]) == ("KafkaClusterList", None)
    (cluster,) = found["data"]
    name = cluster["cluster_id"]
    base = f"{proxy.url}/v3/clusters/{name}"
    assert cluster["kind"] == "KafkaCluster"
    assert cluster["metadata"] == {"self": base, "resource_name": f"crn:///kafka={name}"}
    assert cluster["topics"] == {"related": f"{base}/topics"}
    assert len(followed(proxy, cluster)) == 7
    (broker,) = proxy.ask("GET", f"{proxy.cluster}/brokers")["data"]
    number = broker["broker_id"]
    assert broker["metadata"]["resource_name"] == f"crn:///kafka={name}/broker={number}"
    assert len(followed(proxy, broker)) == 2
    # Clients of Confluent Cloud's paths get links of their kind.
    other = proxy.ask("GET", f"/kafka{proxy.cluster}/brokers/{number}")
    assert other["metadata"]["self"] == f"{proxy.url}/kafka/v3/clusters/{name}/brokers/{number}"
    wrong = proxy.ask("GET", "/v3/clusters/none/topics", status=404)
    assert wrong == {"error_code": 404, "message": "Cluster none cannot be found."}
    assert proxy.ask("GET", f"{proxy.cluster}/brokers/99", status=404)["error_code"] == 404
    none = proxy.ask("GET", f"{proxy.cluster}/brokers/99/partition-replicas", status=404)
    assert none["message"] == "Broker 99 cannot be found."


def test_a_topic_from_creation_to_deletion(proxy: Proxy) -> None:
    path = f"{proxy.cluster}/topics"
    body = {
        "topic_name": "created",
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    dry = proxy.send("POST", path, {**body, "validate_only": True})
    assert dry.status_code == 200
    answer = proxy.send("POST", path, body)
    assert answer.status_code == 201
    topic = answer.json()
    assert answer.headers["location"] == topic["metadata"]["self"]
    assert (topic["partitions_count"], topic["replication_factor"]) == (2, 1)
    assert "created" in [each["topic_name"] for each in proxy.ask("GET", path)["data"]]
    assert len(followed(proxy, topic)) == 3
    again = proxy.ask("POST", path, body, status=400)
    assert again == {"error_code": 40002, "message": "Topic 'created' already exists."}
    larger = proxy.ask("PATCH", f"{path}/created", {"partitions_count": 3})
    assert larger["partitions_count"] == 3
    fewer = proxy.ask("PATCH", f"{path}/created", {"partitions_count": 1}, status=400)
    assert fewer["error_code"] == 40002
    allowed = proxy.ask("GET", f"{path}/created?include_authorized_operations=true")
    assert "WRITE" in allowed["authorized_operations"]
    for query, shown in (("", False), ("?includeAuthorizedOperations=true", True)):
        (found,) = [
            each
            for each in proxy.ask("GET", f"{path}{query}")["data"]
            if each["topic_name"] == "created"
        ]
        assert ("WRITE" in found["authorized_operations"]) == shown
    proxy.ask("DELETE", f"{path}/created", status=204)
    # Kafka's answer comes before its metadata forgets the topic.
    wait_until(lambda: proxy.send("GET", f"{path}/created").status_code == 404, timeout=30)
    gone = proxy.ask("GET", f"{path}/created", status=404)
    text = "This server does not host this topic-partition."
    assert gone == {"error_code": 40403, "message": text}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"topic_name": "a b"}, 422, 42206),
        ({"topic_name": ".."}, 422, 42206),
        ({"topic_name": "a" * 250}, 422, 42206),
        ({"topic_name": "x", "replication_factor": 99}, 400, 40002),
        ({"topic_name": "x", "partitions_count": 0}, 400, 40002),
        ({"topic_name": "x", "partitions_count": "A"}, 400, 400),
        ({"topic_name": "x", "configs": [{"name": "no.such"}]}, 400, 40002),
        ({"topic_name": "x", "replicas_assignments": {"0": [77]}}, 400, 40002),
        ({"topic_name": "x", "replicas_assignments": {"a": [1]}}, 422, 422),
        ({}, 422, 422),
        ([], 400, 400),
    ],
)
def test_topics_that_cannot_be_created(proxy: Proxy, body: Any, status: int, code: int) -> None:
    answer = proxy.ask("POST", f"{proxy.cluster}/topics", body, status=status)
    assert answer["error_code"] == code


@pytest.mark.parametrize(
    ("method", "path", "detail"),
    [
        ("POST", "/topics", "Request body is empty. Data is required."),
        ("PATCH", "/topics/x", "Request body is empty. Partitions_count is required."),
        ("POST", "/topics/x/configs:alter", "Null input provided. Data is required."),
        ("POST", "/topics/-/configs:alter", "Null input provided. Data is required."),
        ("POST", "/broker-configs:alter", "Null input provided. Data is required."),
        ("POST", "/acls", "Null input provided. Data is required."),
        ("POST", "/acls:batch", "Null input provided. Data is required."),
    ],
)
def test_a_missing_body_is_named(proxy: Proxy, method: str, path: str, detail: str) -> None:
    for body in (b"", b"null"):
        answer = proxy.send(method, proxy.cluster + path, body)
        assert answer.status_code == 422
        assert answer.json() == {"error_code": 42206, "message": f"Payload error. {detail}"}


def test_partitions_and_replicas(proxy: Proxy) -> None:
    name = proxy.topic(2)
    path = f"{proxy.cluster}/topics/{name}/partitions"
    partitions = proxy.ask("GET", path)["data"]
    assert [each["partition_id"] for each in partitions] == [0, 1]
    assert len(followed(proxy, partitions[1])) == 3
    (replica,) = proxy.ask("GET", f"{path}/1/replicas")["data"]
    assert (replica["is_leader"], replica["is_in_sync"]) == (True, True)
    assert len(followed(proxy, replica)) == 1
    on_broker = proxy.ask("GET", replica["broker"]["related"] + "/partition-replicas")["data"]
    assert replica in on_broker
    offsets = proxy.ask("GET", f"{path}/1/offset")
    assert (offsets["earliest_offset"], offsets["latest_offset"]) == (0, 0)
    assert offsets["metadata"]["resource_name"].endswith("/offset_type=earliest_and_latest")
    wrong = proxy.ask("GET", f"{path}/1/offset?offset_type=x", status=400)
    assert wrong["message"] == "Bad Request: offset_type:x is invalid"
    assert proxy.ask("GET", f"{path}/9/offset", status=404)["error_code"] == 40402
    assert proxy.ask("GET", f"{path}/9", status=404)["error_code"] == 404
    assert proxy.ask("GET", f"{path}/0/replicas/99", status=404)["error_code"] == 404
    assert proxy.ask("GET", f"{path}/0/reassignment", status=404)["error_code"] == 404
    assert proxy.ask("GET", f"{path}/-/reassignment")["data"] == []


def test_configurations_of_topics(proxy: Proxy) -> None:
    name = proxy.topic()
    path = f"{proxy.cluster}/topics/{name}/configs"
    one = f"{path}/retention.ms"
    before = proxy.ask("GET", one)
    proxy.ask("PUT", one, {"value": "1000"}, status=204)
    config = proxy.ask("GET", one)
    assert (config["kind"], config["value"], config["source"]) == (
        "KafkaTopicConfig", "1000", "DYNAMIC_TOPIC_CONFIG",
    )  # fmt: skip
    assert config["synonyms"][0] == {
        "name": "retention.ms", "value": "1000", "source": "DYNAMIC_TOPIC_CONFIG",
    }  # fmt: skip
    assert config in proxy.ask("GET", path)["data"]
    assert config in proxy.ask("GET", f"{proxy.cluster}/topics/-/configs")["data"]
    proxy.ask("DELETE", one, status=204)
    assert proxy.ask("GET", one) == before
    changes = [
        {"name": "cleanup.policy", "value": "compact"},
        {"name": "retention.ms", "value": "7"},
    ]
    proxy.ask("POST", f"{path}:alter", {"data": changes, "validate_only": True}, status=204)
    assert proxy.ask("GET", one) == before
    proxy.ask("POST", f"{path}:alter", {"data": changes}, status=204)
    assert proxy.ask("GET", f"{path}/cleanup.policy")["value"] == "compact"
    reset = [{"name": "cleanup.policy", "operation": "DELETE"}]
    proxy.ask("POST", f"{path}:alter", {"data": reset}, status=204)
    assert proxy.ask("GET", f"{path}/cleanup.policy")["is_default"] is True
    several = {"data": [{"topic_name": name, "name": "retention.ms", "value": "9"}]}
    proxy.ask("POST", f"{proxy.cluster}/topics/-/configs:alter", several, status=204)
    assert proxy.ask("GET", one)["value"] == "9"
    none = proxy.ask("GET", f"{path}/no.such", status=404)
    cluster_id = proxy.cluster.rpartition("/")[2]
    assert none["message"] == (
        f"Config no.such cannot be found for TOPIC {name} in cluster {cluster_id}."
    )
    bad = proxy.ask("PUT", one, {"value": "much"}, status=400)
    assert bad["error_code"] == 40002


def test_configurations_of_brokers(proxy: Proxy) -> None:
    (broker,) = proxy.ask("GET", f"{proxy.cluster}/brokers")["data"]
    path = f"{proxy.cluster}/brokers/{broker['broker_id']}/configs"
    proxy.ask("PUT", f"{path}/log.cleaner.threads", {"value": "2"}, status=204)
    wait_until(lambda: proxy.ask("GET", f"{path}/log.cleaner.threads")["value"] == "2", timeout=30)
    proxy.ask("DELETE", f"{path}/log.cleaner.threads", status=204)
    names = [each["name"] for each in proxy.ask("GET", path)["data"]]
    assert "log.retention.ms" in names
    everywhere = proxy.ask("GET", f"{proxy.cluster}/brokers/-/configs")["data"]
    assert len(everywhere) == len(names)
    default = f"{proxy.cluster}/broker-configs"
    proxy.ask("PUT", f"{default}/message.max.bytes", {"value": "2000000"}, status=204)

    def is_set() -> Any:
        found = proxy.ask("GET", default)["data"]
        return next((each for each in found if each["name"] == "message.max.bytes"), None)

    config = wait_until(is_set, timeout=30)
    assert (config["kind"], config["config_type"]) == ("KafkaClusterConfig", "BROKER")
    assert config["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert proxy.ask("GET", f"{default}/message.max.bytes")["value"] == "2000000"
    change = {"data": [{"name": "message.max.bytes", "operation": "DELETE"}]}
    proxy.ask("POST", f"{default}:alter", change, status=204)
    wait_until(lambda: is_set() is None, timeout=30)
    missing = proxy.ask("GET", f"{default}/message.max.bytes", status=404)
    assert missing["error_code"] == 404
    none = proxy.ask("GET", f"{proxy.cluster}/brokers/99/configs", status=404)
    assert none["message"] == "Broker 99 cannot be found."


@pytest.fixture
def group(proxy: Proxy) -> Iterator[tuple[str, str, Any]]:
    """A group of one member that has read 3 of 5 records: its id, the topic, the consumer."""
    name = proxy.topic(2)
    values = [{"value": {"type": "STRING", "data": str(n)}, "partition_id": 0} for n in range(5)]
    proxy.send("POST", f"{proxy.cluster}/topics/{name}/records", "".join(map(json.dumps, values)))
    with Consumer(
        {
            "bootstrap.servers": proxy.bootstrap,
            "group.id": f"group-of-{name}",
            "client.id": "reader",
            "enable.auto.commit": "false",
        }
    ) as consumer:
        consumer.subscribe([name])
        for _ in range(300):
            consumer.poll(0.1)
            if len(consumer.assignment()) == 2:
                break
        consumer.commit_sync({TopicPartition(name, 0): OffsetAndMetadata(3)})
        yield f"group-of-{name}", name, consumer


def test_groups_members_and_lag(proxy: Proxy, group: tuple[str, str, Any]) -> None:
    group_id, topic, _ = group
    path = f"{proxy.cluster}/consumer-groups/{group_id}"
    found = proxy.ask("GET", path)
    assert (found["kind"], found["state"], found["type"]) == (
        "KafkaConsumerGroup", "STABLE", "CLASSIC",
    )  # fmt: skip
    assert len(followed(proxy, found)) == 3
    assert found in proxy.ask("GET", f"{proxy.cluster}/consumer-groups")["data"]
    (member,) = proxy.ask("GET", f"{path}/consumers")["data"]
    assert (member["client_id"], member["instance_id"]) == ("reader", None)
    assert len(followed(proxy, member)) == 1
    assignments = proxy.ask("GET", member["assignments"]["related"])["data"]
    assert [each["partition_id"] for each in assignments] == [0, 1]
    assert proxy.ask("GET", assignments[0]["metadata"]["self"]) == assignments[0]
    (lag,) = proxy.ask("GET", f"{path}/lags")["data"]
    facts = {key: lag[key] for key in ("current_offset", "log_end_offset", "lag", "client_id")}
    assert facts == {"current_offset": 3, "log_end_offset": 5, "lag": 2, "client_id": "reader"}
    assert proxy.ask("GET", f"{path}/lags/{topic}/partitions/0") == lag
    assert proxy.ask("GET", assignments[0]["lag"]["related"]) == lag
    summary = proxy.ask("GET", f"{path}/lag-summary")
    assert (summary["max_lag"], summary["total_lag"]) == (2, 2)
    assert summary["max_lag_topic_name"] == topic
    assert len(followed(proxy, summary)) == 2
    for missing in (f"{path}/lags/{topic}/partitions/9", f"{path}/consumers/x", f"{path}-none"):
        assert proxy.ask("GET", missing, status=404)["error_code"] == 404


def test_acls(proxy: Proxy) -> None:
    path = f"{proxy.cluster}/acls"
    acl = {
        "resource_type": "TOPIC",
        "resource_name": "orders-",
        "pattern_type": "PREFIXED",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }
    made = proxy.send("POST", path, acl)
    assert (made.status_code, made.content) == (201, b"")
    (found,) = proxy.ask("GET", f"{path}?principal=User%3Aalice")["data"]
    assert {key: found[key] for key in acl} == acl
    assert made.headers["location"] == found["metadata"]["self"]
    assert proxy.ask("GET", found["metadata"]["self"])["data"] == [found]
    batch = {"data": [{**acl, "operation": "WRITE"}, {**acl, "operation": "DESCRIBE"}]}
    proxy.ask("POST", f"{path}:batch", batch, status=201)
    assert len(proxy.ask("GET", f"{path}?resource_name=orders-")["data"]) == 3
    vague = proxy.ask("DELETE", f"{path}?principal=User%3Aalice", status=400)
    assert vague["message"] == "Bad Request: resource_type cannot be unspecified or UNKNOWN"
    query = "resource_type=TOPIC&pattern_type=ANY&operation=ANY&permission=ANY"
    deleted = proxy.ask("DELETE", f"{path}?{query}&principal=User%3Aalice")
    assert len(deleted["data"]) == 3
    assert proxy.ask("GET", path)["data"] == []
    bad = proxy.ask("POST", path, {**acl, "resource_type": "CLUSTER"}, status=400)
    assert bad["error_code"] == 40002


def stored(answer: Any) -> list[Any]:
    return [json.loads(line) for line in answer.text.splitlines() if line]


def test_records_one_many_and_streamed(proxy: Proxy) -> None:
    name = proxy.topic()
    path = f"{proxy.cluster}/topics/{name}/records"
    record = {
        "partition_id": 0,
        "headers": [{"name": "h", "value": "aGk="}, {"name": "null"}],
        "key": {"type": "BINARY", "data": "Zm9vYmFy"},
        "value": {"type": "JSON", "data": {"foo": "bar"}},
        "timestamp": "2021-02-05T19:14:42Z",
    }
    answer = proxy.ask("POST", path, record)
    assert answer == {
        "error_code": 200,
        "cluster_id": proxy.cluster.rpartition("/")[2],
        "topic_name": name,
        "partition_id": 0,
        "offset": 0,
        "timestamp": "2021-02-05T19:14:42Z",
        "key": {"type": "BINARY", "size": 6},
        "value": {"type": "JSON", "size": 13},
    }
    bad = {"value": {"type": "BINARY", "data": 1}}
    text = json.dumps(record) + "\n" + json.dumps(bad) + json.dumps(record)
    good, wrong, last = stored(proxy.send("POST", path, text))
    assert (good["offset"], last["offset"]) == (1, 2)
    assert wrong == {
        "error_code": 400, "message": "Bad Request: data=1 is not a base64 string.",
    }  # fmt: skip

    def pieces() -> Iterator[bytes]:
        data = "".join(json.dumps({"value": {"type": "STRING", "data": str(n)}}) for n in range(99))
        for at in range(0, len(data), 7):
            yield data[at : at + 7].encode()
        yield b'{"value": 5}'

    streamed = proxy._client.post(
        path, content=pieces(), headers={"Content-Type": "application/json"}
    )
    answers = stored(streamed)
    assert [each.get("offset") for each in answers[:99]] == list(range(3, 102))
    assert answers[99]["error_code"] == 400
    with Consumer({"bootstrap.servers": proxy.bootstrap, "auto.offset.reset": "earliest"}) as found:
        found.assign([TopicPartition(name, 0)])
        first = next(iter(found))
        assert (first.key, first.value, first.timestamp) == (
            b"foobar", b'{"foo":"bar"}', 1612552482000,
        )  # fmt: skip
        assert first.headers == (("h", b"hi"), ("null", None))


def test_a_streamed_record_is_answered_before_the_next_is_sent(proxy: Proxy) -> None:
    path = f"{proxy.cluster}/topics/{proxy.topic()}/records"
    host, port = proxy.url.removeprefix("http://").split(":")
    record = b'{"value": {"type": "STRING", "data": "x"}}'
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        raw.sendall(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Accept-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        received = b""
        for offset in range(3):
            raw.sendall(b"%x\r\n%s\r\n" % (len(record), record))
            while f'"offset":{offset},'.encode() not in received:
                received += raw.recv(65536)
        raw.sendall(b"0\r\n\r\n")
        while not received.endswith(b"\r\n0\r\n\r\n"):
            received += raw.recv(65536)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param("", 422, 42206, id="empty"),
        pytest.param("{", 400, 400, id="cut"),
        pytest.param("nonsense", 400, 400, id="no JSON"),
    ],
)
def test_bodies_that_are_refused_as_a_whole(
    proxy: Proxy, body: str, status: int, code: int
) -> None:
    path = f"{proxy.cluster}/topics/{proxy.topic()}/records"
    assert proxy.ask("POST", path, body, status=status)["error_code"] == code


@pytest.mark.parametrize(
    ("record", "code"),
    [
        pytest.param({"partition_id": 7, "value": None}, 40402, id="no such partition"),
        pytest.param({"partition_id": -1}, 40402, id="a negative partition"),
        pytest.param({"value": {"type": "STRING", "data": 1}}, 400, id="no string"),
        pytest.param({"value": {"type": "XML", "data": 1}}, 400, id="no format"),
        pytest.param({"value": {"type": "AVRO", "data": 1}}, 42206, id="no registry"),
        pytest.param({"value": {"data": 1}}, 42206, id="a schema by default"),
        pytest.param({"headers": [{"name": "h", "value": "!"}]}, 400, id="a header"),
        pytest.param({"timestamp": "soon"}, 400, id="no time"),
        pytest.param({"value": {"type": "STRING", "data": "x" * 2_000_000}}, 413, id="too large"),
        pytest.param(5, 400, id="no object"),
    ],
)
def test_records_that_are_refused(proxy: Proxy, record: Any, code: int) -> None:
    path = f"{proxy.cluster}/topics/{proxy.topic()}/records"
    (answer,) = stored(proxy.send("POST", path, json.dumps(record)))
    assert answer["error_code"] == code, answer


@pytest.mark.parametrize("body", [b"[]" * 200_000, b"1 " * 200_000, b"[%s{}]" % (b"{}," * 200_000)])
def test_a_small_body_of_many_records_does_not_become_a_large_answer(
    proxy: Proxy, body: bytes
) -> None:
    name = proxy.topic()
    path = f"{proxy.cluster}/topics/{name}/records"
    refused = proxy.ask("POST", path, body, status=413)
    assert refused["message"] == "The request has more than 100000 records."
    v2 = b'{"records": [%s{}]}' % (b"{}," * 200_000)
    proxy.ask("POST", f"/topics/{name}", v2, content_type=JSON_V2, status=413)
    many = {"data": [{"name": "a"}] * 20_000}
    path = f"{proxy.cluster}/topics/{name}/configs:alter"
    assert proxy.ask("POST", path, many, status=422)["error_code"] == 422


def test_a_batch_says_what_became_of_each(proxy: Proxy) -> None:
    name = proxy.topic()
    path = f"{proxy.cluster}/topics/{name}/records:batch"
    entries = [
        {"id": "a", "value": {"type": "STRING", "data": "x"}},
        {"id": "b", "value": {"type": "STRING", "data": 1}},
    ]
    answer = proxy.ask("POST", path, {"entries": entries}, status=207)
    (success,) = answer["successes"]
    assert (success["id"], success["offset"]) == ("a", 0)
    assert answer["failures"] == [
        {"id": "b", "error_code": 400, "message": "Bad Request: data=1 is not a string."}
    ]
    for body, message in (
        ({"entries": []}, "Empty batch."),
        ({"entries": [entries[0]] * 2}, "Batch entry IDs are not distinct."),
        ({"entries": [{"value": None}]}, "Batch entry identifier is not a valid string."),
        ({"entries": [{"id": str(n)} for n in range(1001)]}, "Too many entries in batch."),
        ("", "Request body is empty. Data is required."),
    ):
        refused = proxy.ask("POST", path, body, status=422)
        assert refused == {"error_code": 42208, "message": message}


def test_a_topic_that_is_deleted_meanwhile_is_not_found(proxy: Proxy) -> None:
    name = proxy.topic()
    with Admin({"bootstrap.servers": proxy.bootstrap}) as admin:
        admin.delete_topics([name])
    path = f"{proxy.cluster}/topics/{name}/partitions"
    wait_until(lambda: proxy.send("GET", path).status_code == 404, timeout=30)
    assert proxy.ask("GET", path, status=404)["error_code"] == 40403
