"""The Grafana dashboards that are shipped, described in a few lines each."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

__all__ = ["DASHBOARDS", "Dashboard", "Panel", "as_grafana"]

_COLUMNS: Final = 3
_WIDTH: Final = 24 // _COLUMNS
_HEIGHT: Final = 8


class Panel(NamedTuple):
    title: str
    unit: str
    """Grafana's name: short, Bps, ms, percentunit, bytes, s."""
    queries: tuple[tuple[str, str], ...]
    """Expressions and the legend of each."""
    kind: str = "timeseries"


class Dashboard(NamedTuple):
    uid: str
    title: str
    panels: tuple[Panel, ...]


def _rate(name: str, by: str = "instance", where: str = "") -> str:
    return f"sum by ({by}) (rate({name}{where}[$__rate_interval]))"


_TOPICS: Final = "kafka_server_brokertopicmetrics"
_TIMES: Final = "kafka_network_requestmetrics"
_CONTROLLER: Final = "max(kafka_controller_kafkacontroller"
_ALL: Final = '{topic=""}'

BROKERS: Final = Dashboard(
    "moldau-brokers",
    "Moldau: brokers",
    (
        Panel("Brokers", "short", ((f"{_CONTROLLER}_activebrokercount)", "active"),
                                   (f"{_CONTROLLER}_fencedbrokercount)", "fenced")), "stat"),
        Panel("Active controllers", "short",
              (("sum(kafka_controller_kafkacontroller_activecontrollercount)", ""),), "stat"),
        Panel("Offline partitions", "short",
              ((f"{_CONTROLLER}_offlinepartitionscount)", ""),), "stat"),
        Panel("Bytes in", "Bps", ((_rate(f"{_TOPICS}_bytesin_total", where=_ALL),
                                   "{{instance}}"),)),
        Panel("Bytes out", "Bps", ((_rate(f"{_TOPICS}_bytesout_total", where=_ALL),
                                    "{{instance}}"),)),
        Panel("Records in", "short", ((_rate(f"{_TOPICS}_messagesin_total", where=_ALL),
                                       "{{instance}}"),)),
        Panel("Under-replicated partitions", "short",
              (("kafka_server_replicamanager_underreplicatedpartitions", "{{instance}}"),)),
        Panel("In-sync replicas lost and regained", "short",
              ((_rate("kafka_server_replicamanager_isrshrinks_total"), "lost {{instance}}"),
               (_rate("kafka_server_replicamanager_isrexpands_total"), "regained {{instance}}"))),
        Panel("Partitions led", "short",
              (("kafka_server_replicamanager_leadercount", "{{instance}}"),)),
        Panel("Idle share of the event loop", "percentunit",
              (("process_event_loop_idle_ratio", "{{instance}}"),)),
        Panel("Event loop delay, p99", "ms",
              (('process_event_loop_delay_ms{quantile="0.99"}', "{{instance}}"),)),
        Panel("CPU", "percentunit",
              ((_rate("process_cpu_seconds_total"), "{{instance}}"),)),
        Panel("Memory", "bytes", (("process_resident_memory_bytes", "{{instance}}"),)),
        Panel("Free disk space", "bytes",
              (("moldau_log_logmanager_logdirectoryfreebytes", "{{instance}} {{logDirectory}}"),)),
        Panel("Connections", "short",
              (("sum by (instance, listener) (kafka_server_socket_server_metrics_connection_count)",
                "{{instance}} {{listener}}"),)),
    ),
)  # fmt: skip

REQUESTS: Final = Dashboard(
    "moldau-requests",
    "Moldau: requests",
    (
        Panel("Requests", "short",
              ((_rate(f"{_TIMES}_requests_total", "request"), "{{request}}"),)),
        Panel("Errors", "short",
              ((_rate(f"{_TIMES}_errors_total", "request, error", '{error!="NONE"}'),
                "{{request}} {{error}}"),)),
        Panel("Throttled, p99", "ms",
              ((f'max by (request) ({_TIMES}_throttletimems{{quantile="0.99"}})',
                "{{request}}"),)),
        *(
            Panel(f"{request}: time, p99", "ms", tuple(
                (f'max({_TIMES}_{phase}timems{{request="{request}",quantile="0.99"}})', phase)
                for phase in ("total", "local", "remote")
            ))
            for request in ("Produce", "FetchConsumer", "FetchFollower", "Metadata",
                            "OffsetCommit", "JoinGroup")
        ),
        Panel("Waiting requests", "short",
              (("sum by (delayedOperation) "
                "(kafka_server_delayedoperationpurgatory_purgatorysize)",
                "{{delayedOperation}}"),)),
        Panel("Fetch sessions", "short",
              (("kafka_server_fetchsessioncache_numincrementalfetchsessions", "{{instance}}"),)),
    ),
)  # fmt: skip

TOPICS: Final = Dashboard(
    "moldau-topics",
    "Moldau: topics",
    (
        Panel("Bytes in", "Bps", ((_rate(f"{_TOPICS}_bytesin_total", "topic", '{topic!=""}'),
                                   "{{topic}}"),)),
        Panel("Bytes out", "Bps", ((_rate(f"{_TOPICS}_bytesout_total", "topic", '{topic!=""}'),
                                    "{{topic}}"),)),
        Panel("Records in", "short", ((_rate(f"{_TOPICS}_messagesin_total", "topic",
                                             '{topic!=""}'), "{{topic}}"),)),
        Panel("Size", "bytes", (("sum by (topic) (kafka_log_log_size)", "{{topic}}"),)),
        Panel("Busiest partitions", "Bps",
              (("topk(10, sum by (topic, partition) "
                "(rate(moldau_server_partitionmetrics_bytesin_total[$__rate_interval])))",
                "{{topic}}-{{partition}}"),)),
        Panel("Failed requests", "short",
              ((_rate(f"{_TOPICS}_failedproducerequests_total", "topic"), "produce {{topic}}"),
               (_rate(f"{_TOPICS}_failedfetchrequests_total", "topic"), "fetch {{topic}}"))),
    ),
)  # fmt: skip

GROUPS: Final = Dashboard(
    "moldau-groups",
    "Moldau: groups",
    (
        Panel("Lag", "short",
              (("sum by (consumergroup, topic) (kafka_consumergroup_lag)",
                "{{consumergroup}} {{topic}}"),)),
        Panel("Lag in time", "s",
              (("max by (consumergroup, topic) (kafka_consumergroup_lag_seconds)",
                "{{consumergroup}} {{topic}}"),)),
        Panel("Stuck partitions", "short",
              (("sum by (consumergroup) (kafka_consumergroup_stuck)", "{{consumergroup}}"),)),
        Panel("Rebalances", "short",
              ((_rate("kafka_consumergroup_rebalances_total", "consumergroup"),
                "{{consumergroup}}"),)),
        Panel("Members", "short", (("kafka_consumergroup_members", "{{consumergroup}}"),)),
        Panel("Groups by state", "short",
              (("sum by (state) (kafka_server_group_coordinator_metrics_consumer_group_count)",
                "consumer {{state}}"),)),
        Panel("Canary latency, p99", "ms",
              (('moldau_canary_latency_ms{quantile="0.99"}', "end to end"),)),
        Panel("Error budget left", "percentunit",
              (("moldau_slo_budget", "{{objective}}"),)),
        Panel("Burn rate", "short", (("moldau_slo_burnrate", "{{objective}} {{window}}"),)),
    ),
)  # fmt: skip

DASHBOARDS: Final = (BROKERS, REQUESTS, TOPICS, GROUPS)


def as_grafana(dashboard: Dashboard) -> dict[str, Any]:
    """Grafana's JSON, to be imported or provisioned as a file."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "tags": ["moldau", "kafka"],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "type": "datasource",
                    "query": "prometheus",
                    "label": "Prometheus",
                }
            ]
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(dashboard.panels)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": source,
        "gridPos": {
            "h": _HEIGHT,
            "w": _WIDTH,
            "x": number % _COLUMNS * _WIDTH,
            "y": number // _COLUMNS * _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "expr": expression,
                "legendFormat": legend,
                "datasource": source,
            }
            for place, (expression, legend) in enumerate(panel.queries)
        ],
    }
