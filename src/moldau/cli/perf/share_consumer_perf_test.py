"""`kafka-share-consumer-perf-test`: measures share consumers."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from moldau.cli.perf.machine.statistics import (
    SHARE_HEADER,
    ConsumerWindow,
    consumed_summary,
    share_progress_line,
    share_total_line,
)
from moldau.cli.perf.metrics import metric_lines
from moldau.cli.perf.options import (
    add_consumer_options,
    check_consumer_options,
    perf_settings,
    timeout_warning,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.machine.java_dates import DateFormat
from moldau.cli.support.progress import Progress, progress
from moldau.cli.support.tables import print_json

if TYPE_CHECKING:
    from moldau.client.consumer import ConsumerRecords
    from moldau.client.share import ShareConsumer

__all__ = ["add_arguments", "run"]

_POLL_SECONDS = 0.1
_CLOSE_SECONDS = 0.5

_EXAMPLES = """\
examples:
  moldau share-consumer-perf-test --topic jobs \\
    --num-records 100000 --threads 4 --show-consumer-stats
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_consumer_options(parser, group="perf-share-consumer")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="number of consumers (default: 1)"
    )
    parser.add_argument(
        "--show-consumer-stats", action="store_true", help="also report results of each consumer"
    )


def run(arguments: argparse.Namespace) -> int:
    dates = check_consumer_options(arguments)
    arguments.parser.require(arguments, "--topic")
    if arguments.threads <= 0:
        arguments.parser.error("--threads must be greater than 0.")
    settings = perf_settings(
        arguments, group="perf-share-consumer", client_id="perf-share-consumer-client"
    )
    settings["fetch.max.bytes"] = arguments.fetch_size
    wait_until_reachable(settings)
    from moldau.client.share import ShareConsumer

    if not arguments.hide_header and not arguments.json:
        print(SHARE_HEADER)
    client_ids = [str(settings["client.id"])]
    if arguments.threads > 1:
        client_ids = [f"{client_ids[0]}-{number + 1}" for number in range(arguments.threads)]
    consumers = [ShareConsumer({**settings, "client.id": each}) for each in client_ids]
    try:
        _measure(arguments, dates, consumers, client_ids)
    finally:
        for consumer in consumers:
            consumer.close(timeout=_CLOSE_SECONDS)
    return 0


def _measure(
    arguments: argparse.Namespace,
    dates: DateFormat,
    consumers: Sequence[ShareConsumer[bytes | None, bytes | None]],
    client_ids: list[str],
) -> None:
    start_ms = _now_ms()
    for consumer in consumers:
        consumer.subscribe([arguments.topic])
    with progress("Reading", total=arguments.num_records, unit="records") as bar:
        total = _Total(arguments.num_records, bar)
        workers = [
            _Worker(consumer, arguments, dates, total, index)
            for index, consumer in enumerate(consumers, 1)
        ]
        with ThreadPoolExecutor(len(workers)) as pool:
            try:
                for done in [pool.submit(worker.consume) for worker in workers]:
                    done.result()
            finally:
                # After an interrupt, or an error in one thread, the pool waits for the others.
                total.stop()
    end_ms = _now_ms()
    elapsed_ms = end_ms - start_ms
    times = dates.format(start_ms), dates.format(end_ms)
    if arguments.show_consumer_stats and not arguments.json:
        for worker, client_id in zip(workers, client_ids, strict=True):
            figures = share_total_line(
                *times, size=worker.size, records=worker.records, elapsed_ms=elapsed_ms
            )
            print(
                f"Share consumer {worker.index} having client id {client_id} consumption "
                f"metrics- {figures}"
            )
    if total.records < arguments.num_records:
        output = sys.stderr if arguments.json else sys.stdout
        print(timeout_warning(arguments.timeout), file=output)
    metrics = [consumer.metrics() for consumer in consumers] if arguments.print_metrics else []
    for consumer in consumers:
        consumer.commit_sync()
    size = sum(worker.size for worker in workers)
    if arguments.json:
        print_json(
            consumed_summary(size=size, records=total.records, elapsed_ms=elapsed_ms)
            | {
                "consumers": [
                    {"client_id": client_id, "records": worker.records, "bytes": worker.size}
                    for worker, client_id in zip(workers, client_ids, strict=True)
                ]
            }
        )
    else:
        print(share_total_line(*times, size=size, records=total.records, elapsed_ms=elapsed_ms))
    for each in metrics:
        for line in metric_lines(each):
            print(line)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Total:
    """What all consumers have read; they share it."""

    def __init__(self, wanted: int, bar: Progress) -> None:
        self._lock = threading.Lock()
        self._wanted = wanted
        self._bar = bar
        self._stopped = False
        self.records = 0

    def stop(self) -> None:
        self._stopped = True

    def add(self, count: int) -> None:
        with self._lock:
            self.records += count
            self._bar.update(self.records)

    @property
    def is_finished(self) -> bool:
        return self._stopped or self.records >= self._wanted


class _Worker:
    """One consumer in its thread."""

    def __init__(
        self,
        consumer: ShareConsumer[bytes | None, bytes | None],
        arguments: argparse.Namespace,
        dates: DateFormat,
        total: _Total,
        index: int,
    ) -> None:
        self._consumer = consumer
        self._arguments = arguments
        self._dates = dates
        self._total = total
        self.index = index
        self.records = 0
        self.size = 0

    def consume(self) -> None:
        arguments = self._arguments
        now_ms = consumed_ms = _now_ms()
        window = ConsumerWindow(reported_ms=now_ms)
        while not self._total.is_finished and now_ms - consumed_ms <= arguments.timeout:
            records = self._consumer.poll(_POLL_SECONDS)
            now_ms = _now_ms()
            if not records:
                continue
            consumed_ms = now_ms
            self._count(records)
            if now_ms - window.reported_ms >= arguments.reporting_interval:
                if arguments.show_detailed_stats and not arguments.json:
                    self._report(window, now_ms)
                window = ConsumerWindow(self.size, self.records, now_ms)

    def _count(self, records: ConsumerRecords[bytes | None, bytes | None]) -> None:
        count = 0
        for record in records:
            count += 1
            if record.key is not None:
                self.size += len(record.key)
            if record.value is not None:
                self.size += len(record.value)
        self.records += count
        self._total.add(count)

    def _report(self, window: ConsumerWindow, now_ms: int) -> None:
        print(
            share_progress_line(
                self._dates.format(window.reported_ms),
                self._dates.format(now_ms),
                size=self.size,
                records=self.records,
                last=window,
                now_ms=now_ms,
                index=self.index,
            )
        )
