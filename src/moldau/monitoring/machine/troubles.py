"""The troubles that operators are warned of: one description for alert rules and the runbook.

An expression is Prometheus's; its windows (`[5m]`) and the time for which it must hold are for a
cluster in production. Tests make the same troubles faster, with the same rules at another pace.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

__all__ = ["TROUBLES", "Severity", "Trouble", "at_pace", "rules"]

_WINDOW: Final = re.compile(r"\[(\d+)([smh])\]")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


class Severity(Enum):
    #: Somebody gets up at night.
    CRITICAL = "critical"
    #: Somebody looks at it today.
    WARNING = "warning"


class Trouble(NamedTuple):
    """`name` is the alert, `anchor` the section of docs/runbook.md."""

    name: str
    anchor: str
    severity: Severity
    summary: str
    expression: str
    holds: str
    """How long it must be true before the alert fires."""


_UNDER_REPLICATED: Final = "kafka_server_replicamanager_underreplicatedpartitions"
_IDLE: Final = "process_event_loop_idle_ratio"
_BYTES_IN: Final = "moldau_server_partitionmetrics_bytesin_total"
_FREE: Final = "moldau_log_logmanager_logdirectoryfreebytes"
_TOTAL: Final = "moldau_log_logmanager_logdirectorytotalbytes"
_LAG: Final = "kafka_consumergroup_lag"

TROUBLES: Final = (
    Trouble(
        "UnderReplicatedPartitionsSteady",
        "under-replicated-steady",
        Severity.CRITICAL,
        "{{ $value }} partitions led by {{ $labels.instance }} lack replicas, steadily: "
        "a broker is down or a disk has failed",
        f"{_UNDER_REPLICATED} > 0 and changes({_UNDER_REPLICATED}[5m]) == 0",
        "2m",
    ),
    Trouble(
        "UnderReplicatedPartitionsChanging",
        "under-replicated-changing",
        Severity.WARNING,
        "replicas led by {{ $labels.instance }} fall out of sync and come back: "
        "followers are too slow",
        "increase(kafka_server_replicamanager_isrshrinks_total[5m]) > 1 "
        "and increase(kafka_server_replicamanager_isrexpands_total[5m]) > 1",
        "0s",
    ),
    Trouble(
        "UnderMinIsrPartitions",
        "under-min-isr",
        Severity.CRITICAL,
        "{{ $value }} partitions led by {{ $labels.instance }} refuse acks=all: "
        "fewer than min.insync.replicas are in sync",
        "kafka_server_replicamanager_underminisrpartitioncount > 0",
        "1m",
    ),
    Trouble(
        "OfflinePartitions",
        "offline-partitions",
        Severity.CRITICAL,
        "{{ $value }} partitions have no leader: nobody can read or write them",
        "max(kafka_controller_kafkacontroller_offlinepartitionscount) > 0",
        "1m",
    ),
    Trouble(
        "NoActiveController",
        "no-active-controller",
        Severity.CRITICAL,
        "no controller is active: topics, leaders and configs cannot change",
        "sum(kafka_controller_kafkacontroller_activecontrollercount) < 1",
        "1m",
    ),
    Trouble(
        "SeveralActiveControllers",
        "several-active-controllers",
        Severity.CRITICAL,
        "{{ $value }} controllers are active: nodes of different clusters, or a split",
        "sum(kafka_controller_kafkacontroller_activecontrollercount) > 1",
        "1m",
    ),
    Trouble(
        "UncleanLeaderElections",
        "unclean-elections",
        Severity.CRITICAL,
        "a replica that was not in sync was elected leader: committed records are lost",
        "increase(kafka_controller_controllerstats_uncleanleaderelections_total[15m]) > 0",
        "0s",
    ),
    Trouble(
        "HotPartition",
        "hot-partition",
        Severity.WARNING,
        "partition {{ $labels.partition }} of {{ $labels.topic }} gets more than half of the "
        "topic's bytes",
        f"sum by (topic, partition) (rate({_BYTES_IN}[5m])) "
        f"> on (topic) group_left () (0.5 * sum by (topic) (rate({_BYTES_IN}[5m]))) "
        f"and on (topic) count by (topic) ({_BYTES_IN}) > 2 "
        f"and on (topic) sum by (topic) (rate({_BYTES_IN}[5m])) > 10000",
        "2m",
    ),
    Trouble(
        "LeadersImbalanced",
        "imbalance",
        Severity.WARNING,
        "{{ $value }} partitions are not led by their first replica",
        "max(kafka_controller_kafkacontroller_preferredreplicaimbalancecount) "
        "> 0.2 * max(kafka_controller_kafkacontroller_globalpartitioncount)",
        "10m",
    ),
    Trouble(
        "DiskFilling",
        "disk-filling",
        Severity.CRITICAL,
        "{{ $labels.logDirectory }} of {{ $labels.instance }} is nearly full, or will be soon",
        f"{_FREE} < 0.1 * {_TOTAL} or predict_linear({_FREE}[1h], 14400) < 0",
        "5m",
    ),
    Trouble(
        "LogDirectoryOffline",
        "log-directory-offline",
        Severity.CRITICAL,
        "a log directory of {{ $labels.instance }} has failed",
        "kafka_log_logmanager_offlinelogdirectorycount > 0",
        "0s",
    ),
    Trouble(
        "HandlersExhausted",
        "handlers-exhausted",
        Severity.CRITICAL,
        "the event loop of {{ $labels.instance }} has no time left: requests are slow",
        f"avg_over_time({_IDLE}[5m]) < 0.2",
        "5m",
    ),
    Trouble(
        "ConsumerTooSlow",
        "slow-consumer",
        Severity.WARNING,
        "group {{ $labels.consumergroup }} falls behind in {{ $labels.topic }}",
        f"sum by (consumergroup, topic) ({_LAG}) > 100 "
        f"and sum by (consumergroup, topic) (deriv({_LAG}[5m])) > 0",
        "5m",
    ),
    Trouble(
        "ConsumerStuck",
        "stuck-consumer",
        Severity.CRITICAL,
        "group {{ $labels.consumergroup }} does not advance in partition {{ $labels.partition }} "
        "of {{ $labels.topic }}, although there are records",
        "kafka_consumergroup_stuck > 0",
        "1m",
    ),
    Trouble(
        "GroupFlapping",
        "flapping-group",
        Severity.WARNING,
        "group {{ $labels.consumergroup }} rebalances again and again",
        "increase(kafka_consumergroup_rebalances_total[5m]) > 3",
        "0s",
    ),
    Trouble(
        "PipelineFailed",
        "failed-pipeline",
        Severity.CRITICAL,
        "pipeline {{ $labels.pipeline }} has failed",
        'moldau_pipeline_state{state="failed"} > 0',
        "0s",
    ),
    Trouble(
        "CanaryFailing",
        "canary-failing",
        Severity.CRITICAL,
        "records that the canary writes do not come back",
        "rate(moldau_canary_failures_total[5m]) > 0.1 * rate(moldau_canary_probes_total[5m])",
        "1m",
    ),
    Trouble(
        "ErrorBudgetBurning",
        "error-budget",
        Severity.CRITICAL,
        "objective {{ $labels.objective }} burns its error budget {{ $value }} times too fast",
        'moldau_slo_burnrate{window="short"} > 14.4 '
        'and ignoring (window) moldau_slo_burnrate{window="long"} > 14.4',
        "0s",
    ),
    Trouble(
        "BrokerDown",
        "broker-down",
        Severity.CRITICAL,
        "{{ $labels.instance }} does not answer",
        'up{job="moldau"} == 0',
        "1m",
    ),
)


def at_pace(text: str, pace: float) -> str:
    """An expression or a duration with its windows so many times shorter."""
    if pace == 1:
        return text
    if text[-1:] in _SECONDS and text[:-1].isdigit():
        return f"{_shorter(int(text[:-1]), text[-1], pace, at_least=0)}s"
    return _WINDOW.sub(lambda found: f"[{_shorter(int(found[1]), found[2], pace)}s]", text)


def _shorter(count: int, unit: str, pace: float, at_least: int = 4) -> int:
    return max(at_least, round(count * _SECONDS[unit] / pace))


def rules(*, pace: float = 1) -> dict[str, object]:
    """Prometheus's rule file, as plain data."""
    return {
        "groups": [
            {
                "name": "moldau",
                "rules": [
                    {
                        "alert": trouble.name,
                        "expr": at_pace(trouble.expression, pace),
                        "for": at_pace(trouble.holds, pace),
                        "labels": {"severity": trouble.severity.value},
                        "annotations": {
                            "summary": trouble.summary,
                            "runbook": f"docs/runbook.md#{trouble.anchor}",
                        },
                    }
                    for trouble in TROUBLES
                ],
            }
        ]
    }
