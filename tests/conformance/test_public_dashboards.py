"""Public dashboards for Kafka find their metrics: a real Prometheus evaluates what they ask for.

The lists are the names (and the labels that are selected) in dashboards that many people use, for
metrics of a broker. What such a dashboard asks and a broker here does not have is listed with the
reason, and is checked to be absent, so that the reasons stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from moldau.client import Admin, Consumer, Producer
from support.ports import free_port
from support.processes import moldau
from support.prometheus import Prometheus, prometheus_missing
from support.waiting import eventually

pytestmark = pytest.mark.skipif(prometheus_missing() is not None, reason=str(prometheus_missing()))

#: Strimzi's "Kafka" (strimzi-kafka.json).
STRIMZI_KAFKA = [
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_underminisr",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    'kafka_log_log_size{topic=~".+",partition=~".+"}',
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    'kafka_server_socket_server_metrics_connection_count{listener=~".+"}',
    "process_open_fds",
    'kafka_server_brokertopicmetrics_messagesin_total{topic!=""}',
    'kafka_server_brokertopicmetrics_bytesin_total{topic!=""}',
    'kafka_server_brokertopicmetrics_bytesout_total{topic!=""}',
    'kafka_server_brokertopicmetrics_totalproducerequests_total{topic!=""}',
    'kafka_server_brokertopicmetrics_totalfetchrequests_total{topic!=""}',
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
]

#: Strimzi's "KRaft" (strimzi-kraft.json).
STRIMZI_KRAFT = [
    'kafka_server_raftmetrics_current_state{current_state="leader"}',
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_current_vote",
    "kafka_server_raftmetrics_high_watermark",
    "kafka_server_raftmetrics_log_end_offset",
    "kafka_server_raftmetrics_append_records_rate",
    "kafka_server_raftmetrics_fetch_records_rate",
    "kafka_server_raftmetrics_commit_latency_avg",
    "process_open_fds",
]

#: Confluent's "Kafka cluster" for KRaft (kafka-cluster-kraft.json of jmx-monitoring-stacks). Its
#: exporter has other rules: without `_total`, which RELABELLED undoes.
CONFLUENT_CLUSTER = [
    "kafka_server_kafkaserver_brokerstate",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_isrshrinkspersec",
    "kafka_server_replicamanager_isrexpandspersec",
    "kafka_cluster_partition_underminisr",
    "kafka_log_log_size",
    "process_cpu_seconds_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec",
    "kafka_coordinator_group_groupmetadatamanager_numgroups",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsempty",
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead",
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance",
    "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance",
    "kafka_network_requestchannel_requestqueuesize",
    "kafka_network_requestchannel_responsequeuesize",
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictionspersec",
    "kafka_server_replicafetchermanager_maxlag",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    'kafka_server_socketservermetrics_connection_count{listener=~".+"}',
    "kafka_server_socketservermetrics_connections",
    'kafka_network_requestmetrics_errorspersec{error="NONE"}',
    'kafka_network_requestmetrics_requestspersec{request="Fetch"}',
    'kafka_network_requestmetrics_requestspersec{request="FetchConsumer"}',
    'kafka_network_requestmetrics_requestspersec{request="Metadata"}',
    'kafka_network_requestmetrics_requestspersec{request="OffsetCommit"}',
    'kafka_network_requestmetrics_requestspersec{request="Produce"}',
    'kafka_server_brokertopicmetrics_bytesinpersec{topic!=""}',
    'kafka_server_brokertopicmetrics_bytesoutpersec{topic!=""}',
    'kafka_server_brokertopicmetrics_messagesinpersec{topic!=""}',
] + [
    f'kafka_network_requestmetrics_{phase}timems{{quantile="0.99",request="{api}"}}'
    for phase in ("requestqueue", "local", "remote", "responsequeue", "responsesend", "total")
    for api in ("Produce", "Fetch")
]

NO_JVM = "there is no JVM: process_* and python_* are of the process"
NOT_OF_KAFKA = "Confluent Server's, not Apache Kafka's"
OF_THE_CLUSTER = "Kubernetes' own: it comes from there, not from a broker"
ABSENT = {
    "jvm_memory_used_bytes": NO_JVM,
    "jvm_memory_bytes_max": NO_JVM,
    "jvm_threads_current": NO_JVM,
    "jvm_gc_collection_seconds_sum": NO_JVM,
    "jvm_gc_collection_seconds_count": NO_JVM,
    "container_cpu_usage_seconds_total": OF_THE_CLUSTER,
    "container_memory_usage_bytes": OF_THE_CLUSTER,
    "kubelet_volume_stats_available_bytes": OF_THE_CLUSTER,
    "kafka_server_raftchannelmetrics_request_total": "counters of a Java network selector",
    "kafka_server_raftchannelmetrics_incoming_byte_total": "counters of a Java network selector",
    "kafka_network_acceptor_acceptorblockedpercent": "the event loop accepts: no such thread",
    "kafka_server_replicafetchermanager_minfetchrate": "not measured",
    "kafka_server_socketservermetrics_connection_creation_rate": "rate() of ..._creation_total",
    "kafka_server_socketservermetrics_connection_close_rate": "rate() of ..._close_total",
    "kafka_server_brokertopicmetrics_producemessageconversionspersec": "nothing is converted",
    "kafka_server_brokertopicmetrics_fetchmessageconversionspersec": "nothing is converted",
    "kafka_server_replicamanager_straypartitionscount": NOT_OF_KAFKA,
    "kafka_log_log_tiersize": NOT_OF_KAFKA,
    "kafka_tier_tasks_archive_tierarchiver_totallag": NOT_OF_KAFKA,
}

#: What docs/metrics.md tells to write for Confluent's names.
RELABELLED = [
    {"source_labels": ["__name__"], "regex": "(kafka_.+)_total", "target_label": "__name__",
     "replacement": "${1}persec"},
    {"source_labels": ["__name__"], "regex": "(kafka_.+)_percent", "target_label": "__name__",
     "replacement": "${1}percent"},
    {"source_labels": ["__name__"], "regex": "kafka_server_socket_server_metrics_(.+)",
     "target_label": "__name__", "replacement": "kafka_server_socketservermetrics_${1}"},
]  # fmt: skip


def expression(wanted: str) -> str:
    """As dashboards ask for it: the rate of what is counted, a sum of the rest."""
    name = wanted.partition("{")[0]
    counted = name.endswith(("_total", "persec", "_bytes")) and not name.startswith("process_open")
    return f"sum(irate({wanted}[5m]))" if counted else f"sum({wanted})"


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Prometheus, Prometheus]]:
    """Prometheus as it is, and one with Confluent's names, of a broker with clients."""
    port = free_port()
    settings = [f"moldau.metrics.port={port}"]
    plain = Prometheus(tmp_path_factory.mktemp("plain"))
    renamed = Prometheus(tmp_path_factory.mktemp("renamed"), relabelled=RELABELLED)
    with moldau(tmp_path_factory.mktemp("broker"), settings) as broker, plain, renamed:
        plain.watch(port)
        renamed.watch(port)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.describe_cluster()
        with (
            Producer(bootstrap_servers=broker.bootstrap) as producer,
            Consumer(
                bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
            ) as consumer,
        ):
            producer.send("orders", b"value").result(30)
            consumer.subscribe(["orders"])
            eventually(lambda: list(consumer.poll(1)), what="a record")
            consumer.commit_sync()
            yield plain, renamed


@pytest.mark.parametrize(
    ("dashboard", "which"),
    [
        pytest.param(STRIMZI_KAFKA, 0, id="Strimzi, Kafka"),
        pytest.param(STRIMZI_KRAFT, 0, id="Strimzi, KRaft"),
        pytest.param(CONFLUENT_CLUSTER, 1, id="Confluent, Kafka cluster"),
    ],
)
def test_nothing_that_a_public_dashboard_asks_for_is_empty(
    servers: tuple[Prometheus, Prometheus], dashboard: list[str], which: int
) -> None:
    prometheus = servers[which]

    def empty() -> list[str]:
        return [each for each in dashboard if not prometheus.query(expression(each))]

    try:
        eventually(lambda: not empty(), what="every expression has a value", seconds_max=60)
    except AssertionError:
        raise AssertionError(f"no value for {empty()}") from None
    asked = {each.partition("{")[0] for each in dashboard}
    assert not asked & ABSENT.keys()


def test_what_is_absent_is_absent(servers: tuple[Prometheus, Prometheus]) -> None:
    found = [name for name in ABSENT if any(each.query(name) for each in servers)]
    assert not found, "it is there by now: move it to the lists"


def test_the_rules_of_the_page_are_those_that_were_tried() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/metrics.md").read_text()
    blocks = re.findall(r"```yaml\n(metric_relabel_configs:.*?)```", page, re.DOTALL)
    (found,) = [yaml.safe_load(block)["metric_relabel_configs"] for block in blocks]
    assert found == RELABELLED
