"""`kafka-e2e-latency`: measures the time from a producer to a consumer."""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import TYPE_CHECKING

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json, client_config
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.progress import progress
from moldau.cli.support.reporting import message_of
from moldau.cli.support.tables import print_json
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition

if TYPE_CHECKING:
    from moldau.client.consumer import Consumer
    from moldau.client.consumer_record import ConsumerRecord
    from moldau.client.producer import Producer

__all__ = ["add_arguments", "run"]

_POLL_MS = 60_000
# Names of positional arguments in the old form of the command.
_POSITIONAL = ("bootstrap_server", "topic", "num_records", "producer_acks", "record_size")
_NUMBERS = ("num_records", "record_size")
# Java's largest long: no limit.
_FOR_EVER_MS = 2**63 - 1

Headers = list[tuple[str, bytes | None]]

_EXAMPLES = """\
examples:
  moldau e2e-latency --topic t --num-records 10000 \\
    --producer-acks all --record-size 100
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("words", nargs="*", metavar="WORD", help=argparse.SUPPRESS)
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster",
    )
    parser.add_argument("--topic", metavar="NAME", help="topic; created if it does not exist")
    parser.add_argument("--num-records", type=int, metavar="N", help="number of records to send")
    parser.add_argument("--producer-acks", metavar="ACKS", help="acks of the producer: 1 or all")
    parser.add_argument("--record-size", type=int, metavar="BYTES", help="size of values")
    for option, text in (
        ("--record-key-size", "size of keys"),
        ("--record-header-key-size", "size of header keys"),
        ("--record-header-size", "size of header values; -1 for null"),
        ("--num-headers", "headers per record"),
    ):
        parser.add_argument(
            option,
            type=int,
            nargs="?",
            const=0,
            default=0,
            metavar="N",
            help=f"{text} (default: 0)",
        )
    parser.add_argument(
        "--command-config", metavar="FILE", help="properties file with settings of all clients"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.words:
        _take_positional(arguments)
    _check(arguments)
    config = client_config(arguments)
    wait_until_reachable(config)
    from moldau.client.consumer import Consumer
    from moldau.client.producer import Producer

    with (
        Consumer(_consumer_settings(config)) as consumer,
        Producer(_producer_settings(config, arguments.producer_acks)) as producer,
    ):
        if arguments.topic not in consumer.list_topics():
            _create_topic(config, arguments)
        _go_to_end(consumer, arguments.topic)
        try:
            _measure(arguments, producer, consumer)
        finally:
            consumer.commit_sync()
    return 0


def _take_positional(arguments: argparse.Namespace) -> None:
    words = arguments.words
    if len(words) not in (5, 6):
        arguments.parser.error(
            f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got "
            f"{len(words)}. Usage: bootstrap-server topic num-records producer-acks record-size "
            "[optional] command-config"
        )
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. "
        "Please use named arguments instead: --bootstrap-server, --topic, --num-records, "
        "--producer-acks, --record-size, --command-config"
    )
    for name, word in zip((*_POSITIONAL, "command_config"), words, strict=False):
        value: int | str = word
        if name in _NUMBERS:
            if not word.lstrip("-").isdigit():
                arguments.parser.error(f"Cannot parse argument '{word}' of option {name}")
            value = int(word)
        setattr(arguments, name, value)


def _check(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    for name in _POSITIONAL:
        if getattr(arguments, name) is None:
            parser.error(f'Missing required argument "[{name.replace("_", "-")}]"')
    if arguments.producer_acks not in ("1", "all"):
        parser.error(
            "Invalid value for --producer-acks. Latency testing requires synchronous "
            "acknowledgement. Please use '1' or 'all'."
        )
    if arguments.num_records <= 0:
        parser.error("Value for --num-records must be a positive integer.")
    for option in ("record_size", "record_key_size", "record_header_key_size", "num_headers"):
        if getattr(arguments, option) < 0:
            name = option.replace("_", "-")
            parser.error(f"Value for --{name} must be a non-negative integer.")
    if arguments.record_header_size < -1:
        parser.error(
            "Value for --record-header-size must be a non-negative integer or -1 for null header "
            "value."
        )


def _consumer_settings(config: dict[str, object]) -> dict[str, object]:
    return config | {
        "group.id": f"test-group-{time.time_ns() // 1_000_000}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "latest",
        # A response as soon as there is a record.
        "fetch.max.wait.ms": "0",
    }


def _producer_settings(config: dict[str, object], acks: str) -> dict[str, object]:
    return config | {"linger.ms": "0", "max.block.ms": _FOR_EVER_MS, "acks": acks}


def _create_topic(config: dict[str, object], arguments: argparse.Namespace) -> None:
    from moldau.client.admin import Admin, NewTopic

    topic = arguments.topic
    print(
        f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication '
        "factor = 1",
        file=sys.stderr if arguments.json else sys.stdout,
    )
    with Admin(config) as admin:
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])
        except KafkaError as error:
            print(f"Creation of topic {topic} failed")
            raise ToolError(message_of(error)) from None


def _go_to_end(consumer: Consumer[bytes | None, bytes | None], topic: str) -> None:
    partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
    consumer.assign(partitions)
    consumer.seek_to_end(partitions)
    for partition in partitions:
        consumer.position(partition)


def _measure(
    arguments: argparse.Namespace,
    producer: Producer,
    consumer: Consumer[bytes | None, bytes | None],
) -> None:
    source = random.Random(0)
    latencies_ms = []
    total_ns = 0
    with progress("Measuring", total=arguments.num_records, unit="records") as bar:
        for number in range(arguments.num_records):
            key = _letters(source, arguments.record_key_size)
            value = _letters(source, arguments.record_size)
            headers = _headers(source, arguments)
            began_ns = time.perf_counter_ns()
            producer.send(arguments.topic, value, key=key, headers=headers).result()
            records = list(consumer.poll(_POLL_MS / 1000))
            elapsed_ns = time.perf_counter_ns() - began_ns
            _validate(records, key, value, headers)
            if number % 1000 == 0 and not arguments.json:
                print(f"{number}\t{elapsed_ns / 1000.0 / 1000.0}")
            total_ns += elapsed_ns
            latencies_ms.append(elapsed_ns // 1_000_000)
            bar.advance()
    _print_results(latencies_ms, total_ns, as_json=arguments.json)


def _letters(source: random.Random, size: int) -> bytes:
    return bytes([source.randrange(26) + 65]) * size


def _headers(source: random.Random, arguments: argparse.Namespace) -> Headers:
    size = arguments.record_header_size
    return [
        (
            _letters(source, arguments.record_header_key_size).decode(),
            None if size == -1 else _letters(source, size),
        )
        for _ in range(arguments.num_headers)
    ]


def _validate(
    records: list[ConsumerRecord[bytes | None, bytes | None]],
    key: bytes,
    value: bytes,
    headers: Headers,
) -> None:
    """Checks that exactly the sent record was read."""
    if not records:
        raise ToolError(f"poll() timed out before finding a result (timeout:[{_POLL_MS}ms])")
    record = records[0]
    for what, sent, read in (("value", value, record.value), ("key", key, record.key)):
        if read != sent:
            raise ToolError(
                f"The message {what} read [{_text(read)}] did not match the message {what} sent "
                f"[{_text(sent)}]"
            )
    if list(record.headers) != headers:
        raise ToolError("The message headers read did not match the message headers sent")
    if len(records) != 1:
        raise ToolError(f"Only one result was expected during this test. We found [{len(records)}]")


def _text(data: bytes | None) -> str:
    return "null" if data is None else data.decode(errors="replace")


def _print_results(latencies_ms: list[int], total_ns: int, *, as_json: bool) -> None:
    count = len(latencies_ms)
    latencies_ms.sort()
    p50, p99, p999 = (latencies_ms[int(count * share)] for share in (0.5, 0.99, 0.999))
    average_ms = total_ns / count / 1000.0 / 1000.0
    if as_json:
        figures = {"latency_ms_p50": p50, "latency_ms_p99": p99, "latency_ms_p999": p999}
        print_json({"records": count, "latency_ms_avg": average_ms} | figures)
        return
    print(f"Avg latency: {average_ms:.4f} ms")
    print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")
