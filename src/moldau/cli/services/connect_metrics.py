"""`moldau connect metrics`: counters of tasks, from all workers that run some, as a table."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from moldau.cli.services.connect_client import STYLES, WorkerClient
from moldau.cli.support.failures import Failure
from moldau.cli.support.output import print_now
from moldau.cli.support.tables import Table, aligned, print_json

__all__ = ["run"]

_LINE = re.compile(
    r'kafka_connect_(?P<name>\w+)\{connector="(?P<connector>(?:[^"\\]|\\.)*)",task="(?P<task>\d+)"\}'
    r" (?P<value>[\d.e+-]+)"
)
_READ = ("source_task_source_record_poll_total", "sink_task_sink_record_read_total")
_DONE = ("source_task_source_record_write_total", "sink_task_sink_record_send_total")


@dataclass
class _Task:
    state: str
    worker: str
    counts: dict[str, float] = field(default_factory=dict)

    def first(self, names: tuple[str, ...]) -> int | None:
        found = [self.counts[name] for name in names if name in self.counts]
        return int(found[0]) if found else None

    @property
    def lag(self) -> int | None:
        """Of a sink, records in Kafka that are not put; of a source, those Kafka does not have."""
        if "sink_task_lag" in self.counts:
            return int(self.counts["sink_task_lag"])
        read, done = self.first(_READ), self.first(_DONE)
        return None if read is None or done is None else max(read - done, 0)


_Seen = dict[tuple[str, int], _Task]


def run(arguments: argparse.Namespace) -> int:
    worker = WorkerClient(arguments.url)
    interval_s = max(arguments.interval, 0.1)
    before = _look(worker, arguments)
    if arguments.connector is not None and not any(
        name == arguments.connector for name, _ in before
    ):
        # The worker says it if there is no such connector at all.
        worker.call("GET", f"/connectors/{arguments.connector}/status")
    while True:
        time.sleep(interval_s)
        now = _look(worker, arguments)
        rows = list(_rows(before, now, interval_s))
        if arguments.json:
            print_json(rows)
        else:
            _show(rows)
        if not arguments.follow:
            return 0
        print_now("")
        before = now


def _look(worker: WorkerClient, arguments: argparse.Namespace) -> _Seen:
    found: _Seen = {}
    for name, each in sorted(worker.call("GET", "/connectors?expand=status").items()):
        if arguments.connector in (None, name):
            for task in each["status"]["tasks"]:
                found[name, task["id"]] = _Task(task["state"], task["worker_id"])
    scheme = arguments.url.partition("://")[0]
    for address in sorted({each.worker for each in found.values()}):
        try:
            text = WorkerClient(f"{scheme}://{address}").call("GET", "/metrics")
        except Failure:
            # It may just have ended: its tasks are shown without numbers.
            continue
        for match in _LINE.finditer(text):
            name = re.sub(r"\\(.)", lambda each: each[1], match["connector"])
            at = found.get((name, int(match["task"])))
            if at is not None and at.worker == address:
                at.counts[match["name"]] = float(match["value"])
    return found


def _rows(before: _Seen, now: _Seen, interval_s: float) -> Iterator[dict[str, Any]]:
    for (name, number), task in sorted(now.items()):
        old = before.get((name, number))
        done, was = task.first(_DONE), old.first(_DONE) if old is not None else None
        same = old is not None and old.worker == task.worker
        yield {
            "connector": name,
            "task": number,
            "state": task.state,
            "worker_id": task.worker,
            "records": done,
            "records_per_second": round(max(done - was, 0) / interval_s, 1)
            if same and done is not None and was is not None
            else None,
            "lag": task.lag,
            "failures": _whole(task.counts.get("task_error_total_record_failures")),
            "retries": _whole(task.counts.get("task_error_total_retries")),
            "commits": _whole(task.counts.get("connector_task_offset_commit_success_total")),
        }


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table(
        "TASK", "STATE", "WORKER", "RECORDS", "PER SECOND", "LAG", "FAILURES", "RETRIES",
        "COMMITS", plain=aligned,
    )  # fmt: skip
    for row in rows:
        numbers = ("records", "records_per_second", "lag", "failures", "retries", "commits")
        table.add(
            f"{row['connector']}-{row['task']}",
            row["state"],
            row["worker_id"],
            *("" if row[key] is None else f"{row[key]:,}" for key in numbers),
            style=STYLES.get(row["state"]),
        )
    table.show()
