"""`kafka-verifiable-producer`: produces numbers and reports the result of each as JSON."""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import threading
import time
from typing import TYPE_CHECKING

from moldau.cli.perf.machine.statistics import Throttle
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import read_client_config
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.reporting import message_of
from moldau.cli.support.signals import Signals
from moldau.cli.verifiable.events import Events, java_class
from moldau.invariant import present

if TYPE_CHECKING:
    from moldau.client.producer import Producer, RecordMetadata

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau verifiable-producer --topic numbers --max-messages 1000
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--topic", required=True, metavar="NAME", help="topic to send to")
    parser.add_argument(
        "--bootstrap-server",
        required=True,
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster",
    )
    parser.add_argument(
        "--max-messages",
        type=int,
        default=-1,
        metavar="N",
        help="exit after this number of records; -1 for no limit (default: -1)",
    )
    parser.add_argument(
        "--throughput",
        type=int,
        default=-1,
        metavar="N",
        help="maximum records per second; -1 for no limit (default: -1)",
    )
    parser.add_argument(
        "--acks",
        type=int,
        default=-1,
        choices=(0, 1, -1),
        help="acks of the producer (default: -1)",
    )
    parser.add_argument(
        "--message-create-time",
        type=int,
        default=-1,
        metavar="MS",
        help="timestamp of the first record (default: now)",
    )
    parser.add_argument(
        "--value-prefix", type=int, metavar="N", help="send N.0, N.1, ... instead of 0, 1, ..."
    )
    parser.add_argument(
        "--repeating-keys",
        type=int,
        metavar="N",
        help="use the keys 0 to N-1 repeatedly (default: no keys)",
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help="properties file with settings of the producer"
    )
    parser.add_deprecated("--producer.config", instead="--command-config")


def run(arguments: argparse.Namespace) -> int:
    settings: dict[str, object] = {
        "bootstrap.servers": arguments.bootstrap_server,
        "acks": str(arguments.acks),
        # Failures must be reported, not retried.
        "retries": "0",
    }
    if arguments.command_config:
        settings.update(read_client_config(arguments.command_config))
    wait_until_reachable(settings)
    from moldau.client.producer import Producer

    stop = threading.Event()
    with Signals(stop.set) as signals:
        start_ms = _now_ms()
        producer = Producer(settings)
        sender = _Sender(producer, arguments)
        try:
            sender.run(stop, start_ms)
        finally:
            producer.close()
            sender.events.report("shutdown_complete")
            elapsed_ms = max(_now_ms() - start_ms, 1)
            sender.events.report(
                "tool_data",
                sent=sender.sent,
                acked=sender.acked,
                target_throughput=arguments.throughput,
                avg_throughput=1000 * (sender.acked / elapsed_ms),
            )
    return signals.exit_code


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Sender:
    def __init__(self, producer: Producer, arguments: argparse.Namespace) -> None:
        self._producer = producer
        self._topic = arguments.topic
        self._arguments = arguments
        self._create_time = (
            None if arguments.message_create_time < 0 else (arguments.message_create_time)
        )
        self.events = Events(sys.stdout)
        self.sent = 0
        self.acked = 0

    def run(self, stop: threading.Event, start_ms: int) -> None:
        arguments = self._arguments
        self.events.report("startup_complete")
        throttle = Throttle(arguments.throughput, start_ms)
        numbers = itertools.count() if arguments.max_messages < 0 else range(arguments.max_messages)
        for number in numbers:
            if stop.is_set():
                return
            now_ms = _now_ms()
            self._send(number, now_ms - start_ms)
            pause = throttle.pause(number, now_ms)
            if pause and stop.wait(None if math.isinf(pause) else pause):
                return

    def _send(self, number: int, age_ms: int) -> None:
        keys = self._arguments.repeating_keys
        prefix = self._arguments.value_prefix
        key = None if not keys else str(number % keys)
        value = str(number) if prefix is None else f"{prefix}.{number}"
        self.sent += 1

        def on_delivery(metadata: RecordMetadata | None, error: Exception | None) -> None:
            if error is not None:
                self._failed(key, value, error)
                return
            written = present(metadata, "a delivered record has metadata")
            self.acked += 1
            self.events.report(
                "producer_send_success",
                key=key,
                value=value,
                topic=written.topic,
                partition=written.partition,
                offset=written.offset,
            )

        timestamp = self._create_time
        if timestamp is not None:
            self._create_time = timestamp + age_ms
        try:
            self._producer.send(
                self._topic, value, key=key, timestamp=timestamp, on_delivery=on_delivery
            )
        except Exception as error:  # Any error is the event of this message.
            self._failed(key, value, error)

    def _failed(self, key: str | None, value: str, error: Exception) -> None:
        self.events.report(
            "producer_send_error",
            key=key,
            value=value,
            topic=self._topic,
            exception=f"class {java_class(error)}",
            message=message_of(error),
        )
