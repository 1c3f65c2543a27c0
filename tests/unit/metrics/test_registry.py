"""Declaring, collecting, and the texts that come out."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from moldau.metrics import Kind, Registry, Spec, jolokia, prometheus
from moldau.metrics.endpoint import MetricsEndpoint
from moldau.metrics.names import declared, mbean_pattern, parse_mbean
from moldau.metrics.otlp import Point, decode_metrics, encode_metrics
from moldau.metrics.settings import MetricsSettings, SettingsError, metrics_settings
from moldau.metrics.turns import collected

BYTES_IN = declared(
    Kind.METER, "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", "bytes", "topic"
)
LEADERS = declared(Kind.GAUGE, "kafka.server:type=ReplicaManager,name=LeaderCount", "leaders")
TIMES = declared(
    Kind.HISTOGRAM, "kafka.network:type=RequestMetrics,name=TotalTimeMs", "ms", "request"
)
IDLE = declared(
    Kind.METER,
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
    "idle",
)


def a_registry() -> Registry:
    now_s = iter(range(1_000))
    registry = Registry(lambda: float(next(now_s)))
    registry.meter(BYTES_IN, "orders").mark(10)
    registry.histogram(TIMES, "Produce").update(8.0)
    registry.gauge(LEADERS, lambda: 3)
    return registry


@pytest.mark.parametrize(
    ("spec", "name", "kind"),
    [
        (BYTES_IN, "kafka_server_brokertopicmetrics_bytesin_total", "counter"),
        (LEADERS, "kafka_server_replicamanager_leadercount", "gauge"),
        (TIMES, "kafka_network_requestmetrics_totaltimems", "summary"),
        (IDLE, "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "gauge"),
        (
            declared(Kind.GAUGE, "kafka.server:type=raft-metrics", "", attribute="current-leader"),
            "kafka_server_raftmetrics_current_leader",
            "gauge",
        ),
        (
            declared(
                Kind.GAUGE,
                "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups",
                "",
            ),
            "kafka_coordinator_group_groupmetadatamanager_numgroups",
            "gauge",
        ),
        (Spec("process", "", "open_fds", Kind.GAUGE, ""), "process_open_fds", "gauge"),
    ],
)
def test_names_are_those_of_the_jmx_exporters_rules(spec: Spec, name: str, kind: str) -> None:
    assert prometheus.name_of(spec)[:2] == (name, kind)


def test_text_for_prometheus() -> None:
    text = "".join(prometheus.lines(a_registry().collect()))
    assert "# TYPE kafka_server_brokertopicmetrics_bytesin_total counter\n" in text
    assert 'kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 10\n' in text
    assert 'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 8.0' in text
    assert 'kafka_network_requestmetrics_totaltimems_count{request="Produce"} 1\n' in text
    assert "kafka_server_replicamanager_leadercount 3\n" in text


def test_label_values_are_escaped() -> None:
    registry = Registry(lambda: 0.0)
    registry.meter(BYTES_IN, 'a"b\\c\nd').mark(1)
    assert '{topic="a\\"b\\\\c\\nd"} 1' in "".join(prometheus.lines(registry.collect()))


def test_a_gauge_that_fails_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    registry = a_registry()
    registry.gauge(IDLE._replace(kind=Kind.GAUGE, name="Broken"), lambda: 1 / 0)

    def broken() -> Any:
        yield LEADERS._replace(name="Before"), (), 1
        raise RuntimeError("gone")

    registry.collector(broken)
    names = {sample.spec.name for sample in registry.collect()}
    assert names == {"BytesInPerSec", "TotalTimeMs", "LeaderCount", "Before"}


def test_a_name_is_declared_once() -> None:
    registry = a_registry()
    with pytest.raises(ValueError, match="declared twice"):
        registry.gauge(LEADERS._replace(help="another"), lambda: 0)
    with pytest.raises(ValueError, match="tags"):
        registry.meter(BYTES_IN)


@pytest.mark.parametrize(
    ("text", "values", "mbean"),
    [
        ("orders", ("orders",), "topic=orders"),
        ("quoted", ("a,b=c*",), 'topic="a,b=c\\*"'),
    ],
)
def test_mbean_names(text: str, values: tuple[str, ...], mbean: str) -> None:
    name = BYTES_IN.mbean(values)
    assert name.endswith(mbean)
    assert parse_mbean(name).properties["topic"] == values[0]


def test_wrong_mbean_names_are_explained() -> None:
    with pytest.raises(ValueError, match="write domain:type=TYPE"):
        mbean_pattern("nonsense")


def read(path: str) -> dict[str, Any]:
    registry = a_registry()
    return jolokia.answer_path(path, registry.collect, 1)


def test_jolokia_reads_an_mbean() -> None:
    bean = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=orders"
    assert read(f"read/{bean}")["value"]["Count"] == 10
    assert read(f"read/{bean}/Count")["value"] == 10
    assert read(f"read/{bean}/Nothing")["status"] == 404
    assert read("read/kafka.server:type=Nothing")["status"] == 404
    assert read("read/nonsense")["status"] == 400
    assert read("write/x/y/z")["status"] == 403
    assert read("version")["value"]["product"] == "moldau"


def test_jolokia_searches_by_pattern() -> None:
    assert read("search/kafka.server:type=*,*")["value"] == [
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=orders",
        "kafka.server:type=ReplicaManager,name=LeaderCount",
    ]
    found = read("read/kafka.*:type=*,name=LeaderCount")["value"]
    assert found == {"kafka.server:type=ReplicaManager,name=LeaderCount": {"Value": 3}}
    assert "type=ReplicaManager,name=LeaderCount" in read("list")["value"]["kafka.server"]


def test_otlp_survives_a_round_trip() -> None:
    points = [
        Point("org.apache.kafka.producer.batch", {"topic": "orders"}, 1.5, 1_000),
        Point("org.apache.kafka.producer.count", {}, -7, 1_000, start_ms=1),
    ]
    found = decode_metrics(encode_metrics(points, {"group_id": "g"}))
    assert [(each.name, each.value) for each in found] == [
        ("org.apache.kafka.producer.batch", 1.5),
        ("org.apache.kafka.producer.count", -7),
    ]
    assert found[0].tags == {"group_id": "g", "topic": "orders"}


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x7f", b"\x0a\x02\x0b\x0c"])
def test_what_is_not_otlp_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not the bytes of OTLP"):
        decode_metrics(data)


def test_settings() -> None:
    assert metrics_settings({}) == MetricsSettings()
    given = {"moldau.metrics.port": "0", "moldau.metrics.otlp.interval.ms": "1000"}
    assert metrics_settings(given) == MetricsSettings(port=0, otlp_interval_ms=1000)


def test_a_login_for_otlp_is_a_header() -> None:
    def headers(**given: str) -> dict[str, str]:
        settings = {f"moldau.metrics.otlp.{key.replace('_', '.')}": v for key, v in given.items()}
        return dict(metrics_settings(settings).otlp_headers)

    assert headers(headers="X-Tenant=a%20b,x-other=1") == {"X-Tenant": "a b", "x-other": "1"}
    assert headers(bearer_token="t0ken") == {"Authorization": "Bearer t0ken"}
    assert headers(username="u", password="p") == {"Authorization": "Basic dTpw"}
    with pytest.raises(SettingsError, match="two logins"):
        headers(username="u", bearer_token="t")
    assert "t0ken" not in repr(metrics_settings({"moldau.metrics.otlp.bearer.token": "t0ken"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "x"),
        ("port", "70000"),
        ("prot", "1"),
        ("otlp.endpoint", "collector:4318"),
        ("otlp.interval.ms", "1"),
        ("otlp.headers", "no header"),
        ("otlp.headers", "a b=c"),
        ("otlp.ssl.ca.location", "/nothing/there.pem"),
        ("history.slots", "0"),
    ],
)
def test_wrong_settings_name_their_key(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        metrics_settings({f"moldau.metrics.{name}": value})
    assert raised.value.key == f"moldau.metrics.{name}"


def get(port: int, path: str, data: bytes | None = None) -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_over_http() -> None:
    asyncio.run(over_http())


async def over_http() -> None:
    endpoint = MetricsEndpoint(a_registry(), port=0, clients=lambda: [{"client_id": "a"}])
    await endpoint.start()
    try:

        async def ask(path: str, data: bytes | None = None) -> tuple[int, str]:
            return await asyncio.to_thread(get, endpoint.port, path, data)

        status, text = await ask("/metrics")
        assert status == 200
        assert "kafka_server_replicamanager_leadercount 3" in text
        bean = "kafka.server:type=ReplicaManager,name=LeaderCount"
        assert json.loads((await ask(f"/jolokia/read/{bean}/Value"))[1])["value"] == 3
        asked = json.dumps([{"type": "read", "mbean": bean}, {"type": "version"}]).encode()
        both = json.loads((await ask("/jolokia", asked))[1])
        assert [each["status"] for each in both] == [200, 200]
        assert json.loads((await ask("/clients"))[1]) == [{"client_id": "a"}]
        assert (await ask("/jolokia", b"{"))[0] == 400
        assert (await ask("/nothing"))[0] == 404
        assert (await ask("/health"))[0] == 200
    finally:
        await endpoint.stop()


async def turns_of_a_large_page() -> int:
    """How often the loop did something else while a page with very many values was made."""
    registry = a_registry()
    spec = LEADERS._replace(name="Many", tags=("topic",))
    registry.collector(lambda: ((spec, (f"topic-{number}",), number) for number in range(50_000)))
    endpoint = MetricsEndpoint(registry, port=0)
    await endpoint.start()
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1

    async for sample in collected(registry):
        if sample.values == ("topic-0",) or (turns and sample.values[0].endswith("00")):
            asyncio.get_running_loop().call_soon(turn)
    status, text = await asyncio.to_thread(get, endpoint.port, "/metrics")
    await endpoint.stop()
    assert status == 200
    assert text.count("\n") > 50_000
    return turns


def test_a_large_page_lets_the_loop_run() -> None:
    assert asyncio.run(turns_of_a_large_page()) > 100
