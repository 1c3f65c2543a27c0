"""`kafka-replica-verification`: compares the replicas of partitions, continuously.

Every replica is asked for the same offsets; what each shows below its high watermark must agree.
Runs until it is ended by a signal, or until replicas cannot be compared any more (exit code 1).
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from moldau.cli.replicas.machine.replica_verification_marks import (
    Fetched,
    PartitionCheck,
    batch_marks,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import read_client_config
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.java_dates import DateFormat
from moldau.client.errors import KafkaError
from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from moldau.client.admin import TopicDescription
    from moldau.client.cluster import ClusterClient

__all__ = ["add_arguments", "run"]

_LATEST, _EARLIEST = -1, -2
_NO_SESSION = -1
# Between rounds in which a broker did not answer.
_PAUSE_SECONDS = 0.2
_DATES = DateFormat("yyyy-MM-dd HH:mm:ss,SSS")

_EXAMPLES = """\
examples:
  moldau replica-verification --topics-include 'orders.*' --time -2
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--broker-list",
        "--bootstrap-server",
        required=True,
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster",
    )
    # Kafka's tool has no such option, and so none for secured clusters.
    parser.add_argument(
        "--command-config", metavar="FILE", help="properties file with settings of the client"
    )
    parser.add_argument(
        "--topics-include", default=".*", metavar="REGEX", help="topics to check (default: all)"
    )
    parser.add_argument(
        "--time",
        type=int,
        default=_LATEST,
        metavar="MS",
        help="start: a timestamp, -1 for the latest or -2 for the earliest offsets (default: -1)",
    )
    parser.add_argument(
        "--fetch-size",
        type=int,
        default=1024 * 1024,
        metavar="BYTES",
        help="bytes to fetch per partition (default: 1048576)",
    )
    parser.add_argument(
        "--max-wait-ms",
        type=int,
        default=1000,
        metavar="MS",
        help="how long a fetch waits for records (default: 1000)",
    )
    parser.add_argument(
        "--report-interval-ms",
        type=int,
        default=30_000,
        metavar="MS",
        help="how often to report (default: 30000)",
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        wanted = re.compile(arguments.topics_include)
    except re.error as error:
        arguments.parser.error(f"{arguments.topics_include} is an invalid regex: {error}")
    config: dict[str, object] = {}
    if arguments.command_config:
        config.update(read_client_config(arguments.command_config))
    config["bootstrap.servers"] = arguments.broker_list
    wait_until_reachable(config)
    topics, offsets = _find(config, wanted, arguments.time)
    if not topics:
        raise ToolError(
            "No topics found. --topics-include if specified, is either filtering out all topics "
            "or there is no topic."
        )
    return asyncio.run(_verify(config, arguments, topics, offsets))


def _find(
    config: Mapping[str, object], wanted: re.Pattern[str], moment: int
) -> tuple[list[TopicDescription], dict[TopicPartition, int]]:
    """The topics, and the first offset of each of their partitions."""
    from moldau.client.admin import Admin, OffsetSpec

    with Admin(config) as admin:
        names = [name for name in admin.list_topics(list_internal=True) if wanted.fullmatch(name)]
        if not names:
            return [], {}
        described = admin.describe_topics(names)
        topics = [described[name] for name in names]
        partitions = [
            TopicPartition(topic.name, each.partition)
            for topic in topics
            for each in topic.partitions
        ]
        spec = {_LATEST: OffsetSpec.latest(), _EARLIEST: OffsetSpec.earliest()}.get(
            moment, OffsetSpec.for_timestamp(max(moment, 0))
        )
        found = admin.list_offsets(dict.fromkeys(partitions, spec))
        ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest()))
        return topics, {
            p: found[p].offset if found[p].offset >= 0 else ends[p].offset for p in partitions
        }


async def _verify(
    config: Mapping[str, object],
    arguments: argparse.Namespace,
    topics: Iterable[TopicDescription],
    offsets: Mapping[TopicPartition, int],
) -> int:
    from moldau.client.cluster import ClusterClient
    from moldau.client.config import ADMIN_KEYS, parse_settings
    from moldau.client.network_settings import NetworkSettings

    received: list[int] = []
    stopping = asyncio.Event()

    def stop(number: int) -> None:
        received.append(number)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    client = ClusterClient(NetworkSettings.of(parse_settings(ADMIN_KEYS, dict(config))))
    try:
        await client.refresh()
        verification = _Verification(client, arguments, topics, offsets)
        print(f"{_now()}: verification process is started", flush=True)
        while not stopping.is_set():
            if not await verification.round():
                return 1
        return 128 + received[0]
    finally:
        await client.close()


def _now() -> str:
    return _DATES.format(time.time_ns() // 1_000_000)


class _Verification:
    def __init__(
        self,
        client: ClusterClient,
        arguments: argparse.Namespace,
        topics: Iterable[TopicDescription],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        self._client = client
        self._arguments = arguments
        self._ids: dict[str, UUID] = {}
        self._names: dict[UUID, str] = {}
        self._by_broker: dict[int, list[TopicPartition]] = {}
        self._checks: dict[TopicPartition, PartitionCheck] = {}
        self._reported_at = time.monotonic()
        for topic in topics:
            self._ids[topic.name] = topic.topic_id
            self._names[topic.topic_id] = topic.name
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition)
                self._checks[partition] = PartitionCheck(
                    str(partition), len(each.replicas), offsets[partition]
                )
                for node in each.replicas:
                    self._by_broker.setdefault(node.id, []).append(partition)

    async def round(self) -> bool:
        """Ask every replica once and compare; False if something cannot be compared any more."""
        answers = await asyncio.gather(*(self._ask(broker) for broker in self._by_broker))
        fetched: dict[TopicPartition, dict[int, Fetched]] = {each: {} for each in self._checks}
        for broker, answer in zip(self._by_broker, answers, strict=True):
            for partition, found in answer.items():
                fetched[partition][broker] = found
        for partition, check in self._checks.items():
            for problem in check.compare(fetched[partition]):
                print(f"{_now()}: {problem}", flush=True)
            if check.is_broken:
                return False
        self._report()
        if not all(answers):
            await asyncio.sleep(_PAUSE_SECONDS)
        return True

    async def _ask(self, broker: int) -> dict[TopicPartition, Fetched]:
        """What a broker's replicas show; nothing while it is down."""
        arguments = self._arguments
        by_topic: dict[str, list[FetchRequest.FetchPartition]] = {}
        for partition in self._by_broker[broker]:
            by_topic.setdefault(partition.topic, []).append(
                FetchRequest.FetchPartition(
                    partition=partition.partition,
                    fetch_offset=self._checks[partition].offset,
                    partition_max_bytes=arguments.fetch_size,
                )
            )
        request = FetchRequest(
            max_wait_ms=arguments.max_wait_ms,
            min_bytes=1,
            max_bytes=2**31 - 1,
            session_epoch=_NO_SESSION,
            topics=[
                FetchRequest.FetchTopic(topic=name, topic_id=self._ids[name], partitions=each)
                for name, each in by_topic.items()
            ],
        )
        try:
            response: FetchResponse = await self._client.call(broker, request)
        except KafkaError:
            self._client.request_refresh()
            return {}
        return self._read(response)

    def _read(self, response: Any) -> dict[TopicPartition, Fetched]:
        found = {}
        for topic in response.responses:
            name = topic.topic or self._names[topic.topic_id]
            for each in topic.partitions:
                if each.error_code == ErrorCode.NONE:
                    marks = list(batch_marks(each.records))
                    partition = TopicPartition(name, each.partition_index)
                    found[partition] = Fetched(each.high_watermark, marks)
        return found

    def _report(self) -> None:
        if (time.monotonic() - self._reported_at) * 1000 <= self._arguments.report_interval_ms:
            return
        self._reported_at = time.monotonic()
        worst = max(self._checks.values(), key=lambda check: check.lag)
        print(
            f"{_now()}: max lag is {worst.lag} for partition {worst.name} at offset "
            f"{worst.offset} among {len(self._checks)} partitions",
            flush=True,
        )
