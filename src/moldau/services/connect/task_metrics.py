"""Counters of the tasks of this worker, by Connect's metric names, for Prometheus."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

from moldau.connect.api import PluginMetrics
from moldau.connect.runtime.worker import Worker

logger = logging.getLogger(__name__)

_PREFIX = "kafka_connect"
_NOT_OF_NAMES = re.compile(r"[^a-zA-Z0-9_]")
#: Attribute of the counts, metric, whether it only grows, meaning.
_SOURCE = (
    ("polled", "source_task_source_record_poll_total", "counter", "Records that poll returned."),
    ("written", "source_task_source_record_write_total", "counter", "Records in Kafka."),
)
_SINK = (
    ("read", "sink_task_sink_record_read_total", "counter", "Records read from Kafka."),
    ("sent", "sink_task_sink_record_send_total", "counter", "Records put to the task."),
    ("lag", "sink_task_lag", "gauge", "Records in Kafka that are not put yet."),
)
_BOTH = (
    ("commits", "connector_task_offset_commit_success_total", "counter", "Offset commits."),
    ("commit_failures", "connector_task_offset_commit_failure_total", "counter", "Failed ones."),
)
_ERRORS = (
    ("failures", "task_error_total_record_failures", "counter", "Records that failed."),
    ("skipped", "task_error_total_records_skipped", "counter", "Records that were skipped."),
    ("retries", "task_error_total_retries", "counter", "Steps that were tried again."),
    ("dead_letter_requests", "task_error_deadletterqueue_produce_requests", "counter",
     "Records sent to the dead-letter topic."),
    ("dead_letter_failures", "task_error_deadletterqueue_produce_failures", "counter",
     "Those that could not be written there."),
)  # fmt: skip


def render(worker: Worker) -> str:
    lines: list[str] = []
    running = sorted(worker.tasks.items())
    for where, table in (
        ("counts", (*_SOURCE, *_SINK, *_BOTH)),
        ("errors", _ERRORS),
    ):
        for attribute, name, kind, meaning in table:
            found = list(_values(running, where, attribute))
            if found:
                full = f"{_PREFIX}_{name}"
                lines += [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
                lines += [f"{full}{labels} {value}" for labels, value in found]
    lines += [
        f"# HELP {_PREFIX}_worker_connector_count Connectors of this worker.",
        f"# TYPE {_PREFIX}_worker_connector_count gauge",
        f"{_PREFIX}_worker_connector_count {len(worker.connectors)}",
        f"# HELP {_PREFIX}_worker_task_count Tasks of this worker.",
        f"# TYPE {_PREFIX}_worker_task_count gauge",
        f"{_PREFIX}_worker_task_count {len(worker.tasks)}",
    ]
    lines += _of_plugins(worker)
    return "\n".join(lines) + "\n"


def _of_plugins(worker: Worker) -> Iterator[str]:
    """What connectors and tasks measure themselves, without what cannot be measured now."""
    contexts: list[tuple[dict[str, str], Any]] = [
        ({"connector": name}, getattr(each.connector, "_context", None))
        for name, each in sorted(worker.connectors.items())
    ]
    contexts += [
        ({"connector": id.connector, "task": str(id.task)}, getattr(each.runner, "context", None))
        for id, each in sorted(worker.tasks.items())
    ]
    found: dict[str, list[str]] = {}
    for labels, context in contexts:
        metrics: PluginMetrics | None = getattr(context, "plugin_metrics", None)
        for each in metrics.all() if metrics is not None else ():
            try:
                value = float(each.measure())
            except Exception as error:
                logger.warning("metric %s of %s: %s", each.name, labels, error)
                continue
            name = f"{_PREFIX}_plugin_{_NOT_OF_NAMES.sub('_', each.name)}"
            shown = {_NOT_OF_NAMES.sub("_", key): text for key, text in each.tags.items()}
            listed = ",".join(f'{key}="{_text(text)}"' for key, text in (labels | shown).items())
            if name not in found:
                help_text = each.description.replace("\n", " ")
                found[name] = [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]
            found[name].append(f"{name}{{{listed}}} {value:g}")
    for lines in found.values():
        yield from lines


def _text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _values(running: list[Any], where: str, attribute: str) -> Iterator[tuple[str, int]]:
    for id, task in running:
        counts = task.runner.counts if where == "counts" else task.runner.failures.counts
        value = getattr(counts, attribute, None)
        if value is not None:
            yield f'{{connector="{_text(id.connector)}",task="{id.task}"}}', value
