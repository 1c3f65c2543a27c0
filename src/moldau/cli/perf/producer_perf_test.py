"""`kafka-producer-perf-test`: measures throughput and latency of a producer."""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.console.options import use_bytes
from moldau.cli.perf.machine.statistics import ProducerStats, Throttle
from moldau.cli.perf.metrics import metric_lines
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.progress import Progress, progress
from moldau.cli.support.reporting import message_of
from moldau.cli.support.tables import print_json
from moldau.wire.uuids import uuid_to_text

if TYPE_CHECKING:
    from moldau.client.producer import Producer

__all__ = ["add_arguments", "run"]

_TRANSACTION_MS = 3000
# Random bytes become letters A to Z.
_LETTERS = bytes(65 + number % 26 for number in range(256))
_POOL_SIZE = 1 << 20
# A prime, so that pieces start at every position before one is repeated.
_POOL_STEP = 7919
# Drawing the progress bar more often would slow down what is measured.
_BAR_INTERVAL_MS = 200

_EXAMPLES = """\
examples:
  moldau producer-perf-test --topic t --num-records 1000000 \\
    --record-size 100 --throughput -1
  moldau producer-perf-test --topic t --num-records 10000 \\
    --payload-file lines.txt --throughput 500 --command-property acks=1
"""


def add_arguments(parser: Parser) -> None:
    parser.description = (
        "measure the throughput and latency of a producer, transactional with --transactional-id, "
        "--transaction-duration-ms or the setting transactional.id"
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster",
    )
    parser.add_argument("--topic", required=True, metavar="NAME", help="topic to send to")
    parser.add_argument(
        "--num-records", type=int, required=True, metavar="N", help="number of records to send"
    )
    parser.add_argument(
        "--throughput",
        type=float,
        required=True,
        metavar="N",
        help="maximum records per second; -1 for no limit",
    )
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument(
        "--record-size", type=int, metavar="BYTES", help="send random letters of this size"
    )
    payload.add_argument("--payload-file", metavar="FILE", help="send random lines of a file")
    payload.add_argument(
        "--payload-monotonic", action="store_true", help="send the numbers 0, 1, 2, ..."
    )
    parser.add_argument(
        "--payload-delimiter",
        default="\\n",
        metavar="REGEX",
        help="separator of payloads in the file (default: \\n)",
    )
    _add_client_options(parser)
    parser.add_argument(
        "--print-metrics", action="store_true", help="print the producer's metrics at the end"
    )
    add_json(parser)
    parser.add_argument(
        "--transactional-id", metavar="ID", help="use transactions, with this transactional ID"
    )
    parser.add_argument(
        "--transaction-duration-ms",
        type=int,
        metavar="MS",
        help="use transactions, each of this duration (default: 3000)",
    )
    parser.add_argument(
        "--warmup-records",
        type=int,
        default=0,
        metavar="N",
        help="also report results without the first N records (default: 0)",
    )
    parser.add_argument(
        "--reporting-interval",
        type=int,
        default=5000,
        metavar="MS",
        help="how often to report (default: 5000)",
    )


def _add_client_options(parser: Parser) -> None:
    parser.add_argument(
        "--command-property",
        nargs="+",
        metavar="KEY=VALUE",
        help="settings of the producer, take precedence over the file",
    )
    parser.add_deprecated("--producer-props", instead="--command-property")
    parser.add_argument(
        "--command-config", metavar="FILE", help="properties file with settings of the producer"
    )
    parser.add_deprecated("--producer.config", instead="--command-config")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    payloads = _payloads(arguments)
    settings = _settings(arguments)
    transactional = arguments.transaction_duration_ms is not None or "transactional.id" in settings
    if transactional:
        settings.setdefault(
            "transactional.id", f"performance-producer-{uuid_to_text(uuid.uuid4())}"
        )
    wait_until_reachable(settings)
    from moldau.client.producer import Producer

    with Producer(settings) as producer:
        if transactional:
            producer.init_transactions()
        measured = _Run(producer, arguments, payloads, transactional=transactional)
        measured.send_all()
        if not arguments.print_metrics:
            producer.close()
        else:
            producer.flush()
        measured.print_totals()
        if arguments.print_metrics:
            for line in metric_lines(producer.metrics()):
                print(line)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    arguments.warmup_records = max(arguments.warmup_records, 0)
    if arguments.num_records <= 0:
        parser.error("--num-records should be greater than zero.")
    if arguments.warmup_records >= arguments.num_records:
        parser.error(
            "The value for --warmup-records must be strictly fewer than the number of records in "
            "the test, --num-records."
        )
    if arguments.record_size is not None and arguments.record_size <= 0:
        parser.error("--record-size should be greater than zero.")
    if not (arguments.bootstrap_server or arguments.command_property or arguments.command_config):
        parser.error(
            "At least one of --bootstrap-server, --command-property, --producer-props, "
            "--producer.config or --command-config must be specified."
        )
    if arguments.transaction_duration_ms is not None and arguments.transaction_duration_ms <= 0:
        parser.error("--transaction-duration-ms should be greater than zero.")
    if arguments.reporting_interval <= 0:
        parser.error("--reporting-interval should be greater than zero.")


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    from moldau.client.config import known_keys

    settings: dict[str, object] = {}
    if arguments.command_config:
        settings.update(read_config_file(arguments.command_config))
    for entry in arguments.command_property or ():
        key, found, value = entry.partition("=")
        if not found or "=" in value or not key or not value:
            arguments.parser.error(f"Invalid property: {entry}")
        settings[key] = value
    settings = known_keys(settings)
    use_bytes(settings, "serializer")
    settings.setdefault("client.id", "perf-producer-client")
    if arguments.bootstrap_server:
        settings["bootstrap.servers"] = arguments.bootstrap_server
    if arguments.transactional_id is not None:
        settings["transactional.id"] = arguments.transactional_id
    return settings


def _payloads(arguments: argparse.Namespace) -> Callable[[int], bytes]:
    """The value of each record, by its number."""
    # Always the same sequence, so that runs can be compared.
    source = random.Random(0)
    if arguments.payload_file is not None:
        choices = _file_payloads(arguments)
        return lambda _: source.choice(choices)
    if arguments.record_size is not None:
        return _random_letters(source, arguments.record_size)
    return lambda number: str(number).encode()


def _random_letters(source: random.Random, size: int) -> Callable[[int], bytes]:
    """Pieces of one long random text: random letters for each record would take too long."""
    span = max(_POOL_SIZE, size)
    pool = source.randbytes(span + size).translate(_LETTERS)

    def piece(number: int) -> bytes:
        start = number * _POOL_STEP % span
        return pool[start : start + size]

    return piece


def _file_payloads(arguments: argparse.Namespace) -> list[bytes]:
    name, delimiter = arguments.payload_file, arguments.payload_delimiter
    if not arguments.json:
        print(f"Reading payloads from: {os.path.abspath(name)}")
    try:
        text = Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read {name}: {error}") from None
    if not text:
        raise ToolError(f"{name}: File does not exist or empty file provided.")
    pattern = "\n" if delimiter == "\\n" else delimiter
    try:
        pieces = re.split(pattern, text)
    except re.error as error:
        raise ToolError(f"--payload-delimiter {delimiter}: {error}") from None
    if pieces[-1] == "":
        pieces.pop()
    if not arguments.json:
        print(f"Number of records read: {len(pieces)}")
    return [piece.encode() for piece in pieces]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _rest(pause: float) -> None:
    if math.isinf(pause):
        raise ToolError("--throughput 0 sends nothing more. Use -1 for no limit")
    if pause:
        time.sleep(pause)


class _Run:
    """Sends the records and keeps count of those that arrived."""

    def __init__(
        self,
        producer: Producer,
        arguments: argparse.Namespace,
        payloads: Callable[[int], bytes],
        *,
        transactional: bool,
    ) -> None:
        self._producer = producer
        self._arguments = arguments
        self._payloads = payloads
        self._transactional = transactional
        self._transaction_ms = arguments.transaction_duration_ms or _TRANSACTION_MS
        self._interval_ms = arguments.reporting_interval
        self._began_ms: int | None = None
        self._stats = ProducerStats(arguments.num_records, self._interval_ms, _now_ms())
        self._steady: ProducerStats | None = None
        if arguments.warmup_records > 0 and not arguments.json:
            print(
                f"Warmup first {arguments.warmup_records} records. Steady state results will "
                "print after the complete test summary."
            )

    def send_all(self) -> None:
        count = self._arguments.num_records
        with progress("Sending", total=count, unit="records") as bar:
            self._send(count, bar)

    def _send(self, count: int, bar: Progress) -> None:
        send, topic, payloads = self._producer.send, self._arguments.topic, self._payloads
        throttle = Throttle(self._arguments.throughput, _now_ms())
        is_throttled = throttle.per_second >= 0
        warmup = self._arguments.warmup_records or -1
        shown_at_ms = 0
        for number in range(count):
            payload = payloads(number)
            if self._transactional:
                self._begin_if_none()
            now_ms = time.time_ns() // 1_000_000
            if number == warmup:
                self._begin_steady(count, now_ms)
            on_delivery = partial(self._delivered, now_ms, len(payload), self._steady)
            send(topic, payload, on_delivery=on_delivery)
            if self._began_ms is not None and now_ms - self._began_ms >= self._transaction_ms:
                self._commit()
            if is_throttled:
                _rest(throttle.pause(number, now_ms))
            if now_ms >= shown_at_ms:
                bar.update(number)
                shown_at_ms = now_ms + _BAR_INTERVAL_MS
        if self._began_ms is not None:
            self._commit()

    def _begin_if_none(self) -> None:
        if self._began_ms is None:
            self._producer.begin_transaction()
            self._began_ms = _now_ms()

    def _commit(self) -> None:
        self._producer.commit_transaction()
        self._began_ms = None

    def _begin_steady(self, count: int, now_ms: int) -> None:
        rest = count - self._arguments.warmup_records
        self._steady = ProducerStats(rest, self._interval_ms, now_ms, steady=True)
        self._stats.quiet = True

    def _delivered(
        self,
        sent_ms: int,
        size: int,
        steady: ProducerStats | None,
        _metadata: object,
        error: Exception | None,
    ) -> None:
        if error is not None:
            print(message_of(error), file=sys.stderr)
            return
        now_ms = time.time_ns() // 1_000_000
        lines = self._stats.record(now_ms - sent_ms, size, now_ms)
        self._tell(lines)
        if steady is not None:
            lines = steady.record(now_ms - sent_ms, size, now_ms)
            self._tell(lines)

    def _tell(self, lines: list[str] | None) -> None:
        if lines and not self._arguments.json:
            print("\n".join(lines))

    def print_totals(self) -> None:
        if self._arguments.json:
            stats = [self._stats] if self._steady is None else [self._stats, self._steady]
            print_json([each.summary(_now_ms()) for each in stats])
            return
        print(self._stats.total_line(_now_ms()))
        if self._steady is not None:
            print(self._steady.total_line(_now_ms()))
