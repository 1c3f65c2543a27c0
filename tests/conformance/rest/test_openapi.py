"""The OpenAPI document: it has all of Confluent's paths, and no request ends in a 500."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error

from moldau.http.application import Application
from support.processes import BrokerProcess
from support.rest import Proxy, proxy_of

VECTORS = Path(__file__).parents[3].parent / "shared" / "vectors" / "openapi"
METHODS = ("get", "post", "put", "patch", "delete")
V2_PATHS = """
GET /topics
GET /topics/{}
POST /topics/{}
GET /topics/{}/partitions
GET /topics/{}/partitions/{}
POST /topics/{}/partitions/{}
GET /topics/{}/partitions/{}/offsets
POST /consumers/{}
DELETE /consumers/{}/instances/{}
POST /consumers/{}/instances/{}/subscription
GET /consumers/{}/instances/{}/subscription
DELETE /consumers/{}/instances/{}/subscription
POST /consumers/{}/instances/{}/assignments
GET /consumers/{}/instances/{}/assignments
GET /consumers/{}/instances/{}/records
POST /consumers/{}/instances/{}/offsets
GET /consumers/{}/instances/{}/offsets
POST /consumers/{}/instances/{}/positions
POST /consumers/{}/instances/{}/positions/beginning
POST /consumers/{}/instances/{}/positions/end
GET /brokers
GET /
POST /
"""
#: What a generated request must not do to the broker that all of them share.
LEFT_OUT = r"/brokers/\{broker_id\}/configs|/broker-configs"


def operations(document: Any, prefix: str = "") -> set[str]:
    return {
        f"{method.upper()} {prefix}{re.sub(r'{[^}]*}', '{}', path)}"
        for path, found in document["paths"].items()
        for method in found
        if method in METHODS
    }


@pytest.fixture(scope="module")
def document(proxy: Proxy) -> Any:
    return proxy.ask("GET", "/openapi.json")


def test_every_path_of_confluents_document_is_there(document: Any) -> None:
    path = VECTORS / "kafka-rest-v3.yaml"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    theirs = operations(yaml.safe_load(path.read_text()), "/v3")
    assert len(theirs) == 50
    assert theirs - operations(document) == set()


def test_every_path_of_v2_is_there(document: Any) -> None:
    assert set(V2_PATHS.split("\n")) - {""} - operations(document) == set()


def test_the_document_has_what_is_served_and_nothing_else(proxy: Proxy, document: Any) -> None:
    application: Application = proxy.service.service.application
    served = {
        f"{each.method} {re.sub(r'{[^}]*}', '{}', each.path)}"
        for each in application._table.routes
        if not each.hidden
    }
    assert served == operations(document)


def test_the_pages_are_there(proxy: Proxy) -> None:
    page = proxy.send("GET", "/", accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "EventSource" in page.text
    assert proxy.send("GET", "/docs").status_code == 200
    metrics = proxy.send("GET", "/metrics").text
    assert "moldau_rest_consumer_instances 0" in metrics
    assert proxy.ask("GET", "/health") == {"status": "ok"}


@pytest.mark.parametrize(
    ("examples", "part", "parts"),
    [
        pytest.param(1, 0, 1, marks=pytest.mark.slow("asks some hundred generated requests")),
        *(
            pytest.param(25, part, 6, marks=pytest.mark.long("the same with more requests"))
            for part in range(6)
        ),
    ],
)
def test_no_generated_request_ends_in_a_500(
    broker: BrokerProcess, proxy: Proxy, examples: int, part: int, parts: int
) -> None:
    """Each operation of the document, with valid and invalid values that schemathesis makes up."""
    document = proxy.ask("GET", "/openapi.json")
    cluster_id = proxy.cluster.rpartition("/")[2]
    name = proxy.topic(2)
    known = {
        "cluster_id": st.sampled_from([cluster_id, cluster_id, "none"]),
        "topic_name": st.sampled_from([name, name, "none", "a/b"]),
        "topic": st.sampled_from([name, name, "none"]),
        "broker_id": st.sampled_from([0, 1, -1, 2**31]),
    }
    asked = 0
    schema = schemathesis.openapi.from_dict(document)
    for result in list(schema.get_all_operations())[part::parts]:
        operation = result.ok()
        if re.search(LEFT_OUT, operation.path) and operation.method.upper() != "GET":
            continue

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), data=st.data())
        def ask(case: Any, data: Any) -> None:
            nonlocal asked
            for parameter, values in known.items():
                if parameter in (case.path_parameters or {}):
                    case.path_parameters[parameter] = data.draw(values)
            if case.query and "timeout_ms" in case.query:
                case.query["timeout_ms"] = 1
            if case.query and "timeout" in case.query:
                case.query["timeout"] = 1
            case.headers = {**(case.headers or {}), "Accept": "*/*"}
            answer = case.call(base_url=proxy.url, session=None, timeout=60)
            case.validate_response(answer, checks=[not_a_server_error])
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error_code", "message"}
            asked += 1

        ask()
    assert asked > 60 * examples // parts // 2
    assert proxy.ask("GET", "/health") == {"status": "ok"}


RUBBISH = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"null",
    b"[]",
    b'"\\ud800"',
    b'{"records": {"a": 1}}',
    b'{"records": [{"value": "' + b"x" * 100_000 + b'"}]',
    b"[" * 50_000,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    b'{"partitions_count": 1e999}',
    b"9" * 10_000,
]


@pytest.mark.parametrize("body", RUBBISH, ids=map(str, range(len(RUBBISH))))
def test_rubbish_is_a_clear_4xx(proxy: Proxy, document: Any, body: bytes) -> None:
    values = {"cluster_id": proxy.cluster.rpartition("/")[2], "partition": "0", "partition_id": "0"}
    for path, found in document["paths"].items():
        for method, operation in found.items():
            if "requestBody" not in operation or re.search(LEFT_OUT, path):
                continue
            filled = re.sub(r"{([^}]*)}", lambda each: values.get(each[1], "1"), path)
            for kind in operation["requestBody"]["content"]:
                answer = proxy.send(method.upper(), filled, body, content_type=kind)
                assert answer.status_code < 500, (method, path, kind, answer.text)
                if answer.status_code >= 400:
                    assert answer.json()["message"]


def test_a_proxy_without_a_cluster_answers_in_time() -> None:
    from support.http_service import running
    from support.ports import free_port

    make = lambda: proxy_of(  # noqa: E731
        f"127.0.0.1:{free_port()}",
        admin_default_api_timeout_ms="1500",
        admin_request_timeout_ms="1000",
        producer_max_block_ms="1000",
    )
    with running(make) as service:
        answer = httpx.get(service.url + "/topics", timeout=30)
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50003)
        assert httpx.get(service.url + "/health").status_code == 200
