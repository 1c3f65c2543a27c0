"""`kafka-consumer-perf-test`: measures a consumer."""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from moldau.cli.perf.machine.statistics import (
    CONSUMER_DETAIL_HEADER,
    CONSUMER_HEADER,
    ConsumerWindow,
    consumed_summary,
    consumer_detail_line,
    consumer_total_line,
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
    from moldau.client.consumer import Consumer, ConsumerRebalanceListener, ConsumerRecords
    from moldau.client.topics import TopicPartition

__all__ = ["add_arguments", "run"]

_POLL_SECONDS = 0.1

_EXAMPLES = """\
examples:
  moldau consumer-perf-test --topic t --num-records 1000000
  moldau consumer-perf-test --include 'orders-.*' \\
    --num-records 100000 --show-detailed-stats --reporting-interval 1000
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_consumer_options(parser, group="perf-consumer-N, a new one")
    parser.add_argument(
        "--include", metavar="REGEX", help="topics to read, as a regular expression"
    )
    parser.add_argument(
        "--from-latest",
        action="store_true",
        help="start at the latest offsets (default: at the earliest)",
    )


def run(arguments: argparse.Namespace) -> int:
    dates = check_consumer_options(arguments)
    arguments.parser.require_one(arguments, ("--topic", "--include"))
    group = f"perf-consumer-{random.randrange(100_000)}"
    settings = perf_settings(arguments, group=group, client_id="perf-consumer-client")
    settings["max.partition.fetch.bytes"] = arguments.fetch_size
    settings["auto.offset.reset"] = "latest" if arguments.from_latest else "earliest"
    wait_until_reachable(settings)
    from moldau.client.consumer import Consumer

    if not arguments.hide_header and not arguments.json:
        print(CONSUMER_DETAIL_HEADER if arguments.show_detailed_stats else CONSUMER_HEADER)
    with Consumer(settings) as consumer:
        start_ms = _now_ms()
        measured = _Run(consumer, arguments, dates, start_ms)
        with progress("Reading", total=arguments.num_records, unit="records") as bar:
            measured.consume(bar)
        end_ms = _now_ms()
        if arguments.json:
            print_json(
                consumed_summary(
                    size=measured.size,
                    records=measured.records,
                    elapsed_ms=end_ms - start_ms,
                    join_ms=measured.join_ms,
                )
            )
        elif not arguments.show_detailed_stats:
            print(
                consumer_total_line(
                    dates.format(start_ms),
                    dates.format(end_ms),
                    size=measured.size,
                    records=measured.records,
                    elapsed_ms=end_ms - start_ms,
                    join_ms=measured.join_ms,
                )
            )
        if arguments.print_metrics:
            for line in metric_lines(consumer.metrics()):
                print(line)
    return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Run:
    """Reads, and listens for rebalances: the time without partitions is counted separately."""

    def __init__(
        self,
        consumer: Consumer[bytes | None, bytes | None],
        arguments: argparse.Namespace,
        dates: DateFormat,
        start_ms: int,
    ) -> None:
        self._consumer = consumer
        self._arguments = arguments
        self._dates = dates
        self._assigned: set[TopicPartition] = set()
        self._join_start_ms = start_ms
        self._round_join_ms = 0
        self._window = ConsumerWindow(reported_ms=start_ms)
        self.join_ms = 0
        self.records = 0
        self.size = 0

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._assigned.difference_update(partitions)
        if not self._assigned:
            self._join_start_ms = _now_ms()

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.on_partitions_revoked(partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        if not self._assigned:
            elapsed_ms = _now_ms() - self._join_start_ms
            self.join_ms += elapsed_ms
            self._round_join_ms += elapsed_ms
        self._assigned.update(partitions)

    def consume(self, bar: Progress) -> None:
        arguments = self._arguments
        topics: list[str] | re.Pattern[str] = (
            [arguments.topic] if arguments.topic else re.compile(arguments.include)
        )
        self._consumer.subscribe(topics, listener=cast("ConsumerRebalanceListener", self))
        now_ms = consumed_ms = self._window.reported_ms = _now_ms()
        while self.records < arguments.num_records and now_ms - consumed_ms <= arguments.timeout:
            records = self._consumer.poll(_POLL_SECONDS)
            now_ms = _now_ms()
            if records:
                consumed_ms = now_ms
                self._count(records)
                bar.update(self.records)
                if now_ms - self._window.reported_ms >= arguments.reporting_interval:
                    self._report(now_ms)
        if self.records < arguments.num_records:
            output = sys.stderr if arguments.json else sys.stdout
            print(timeout_warning(arguments.timeout), file=output)

    def _count(self, records: ConsumerRecords[bytes | None, bytes | None]) -> None:
        size = count = 0
        for record in records:
            count += 1
            if record.key is not None:
                size += len(record.key)
            if record.value is not None:
                size += len(record.value)
        self.records += count
        self.size += size

    def _report(self, now_ms: int) -> None:
        if self._arguments.show_detailed_stats and not self._arguments.json:
            print(
                consumer_detail_line(
                    self._dates.format(now_ms),
                    size=self.size,
                    records=self.records,
                    last=self._window,
                    now_ms=now_ms,
                    join_ms=self._round_join_ms,
                )
            )
        self._round_join_ms = 0
        self._window = ConsumerWindow(self.size, self.records, now_ms)
