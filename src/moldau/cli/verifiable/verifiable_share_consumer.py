"""`kafka-verifiable-share-consumer`: consumes in a share group and reports every event as JSON."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from moldau.cli.console.loop import POLL_SECONDS_MAX
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import read_client_config
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.reporting import message_of
from moldau.cli.support.signals import Signals
from moldau.cli.verifiable.events import Events
from moldau.cli.verifiable.verifiable_consumer import report_record
from moldau.client.errors import KafkaError, WakeupError
from moldau.client.topics import TopicPartition

if TYPE_CHECKING:
    from moldau.client.consumer_record import ConsumerRecord
    from moldau.client.share import ShareConsumer

__all__ = ["add_arguments", "run"]

_CONFIG_SECONDS = 60.0

_EXAMPLES = """\
examples:
  moldau verifiable-share-consumer --topic numbers --group-id check --verbose
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--bootstrap-server",
        required=True,
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster",
    )
    parser.add_argument("--topic", required=True, metavar="NAME", help="topic to read")
    parser.add_argument("--group-id", required=True, metavar="ID", help="share group ID")
    parser.add_argument(
        "--max-messages",
        type=int,
        default=-1,
        metavar="N",
        help="exit after this number of acknowledged records; -1 for no limit (default: -1)",
    )
    parser.add_argument("--verbose", action="store_true", help="also report every record")
    parser.add_argument(
        "--acknowledgement-mode",
        default="auto",
        type=str.lower,
        choices=("auto", "sync", "async"),
        help="how to acknowledge records; auto is with the next poll (default: auto)",
    )
    parser.add_argument(
        "--offset-reset-strategy",
        default="",
        type=str.lower,
        choices=("", "earliest", "latest"),
        help="set share.auto.offset.reset of the group before reading",
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="properties file with settings of the share consumer",
    )


def run(arguments: argparse.Namespace) -> int:
    config: dict[str, object] = {}
    if arguments.command_config:
        config.update(read_client_config(arguments.command_config))
    config["bootstrap.servers"] = arguments.bootstrap_server
    wait_until_reachable(config)
    from moldau.client.share import ShareConsumer

    settings = config | {
        "group.id": arguments.group_id,
        "key.deserializer": "string",
        "value.deserializer": "string",
    }
    consumer = ShareConsumer(settings)
    reader = _Reader(consumer, arguments)
    with Signals(consumer.wakeup) as signals:
        try:
            reader.events.report("startup_complete")
            if arguments.offset_reset_strategy:
                _set_reset_strategy(config, arguments)
                reader.events.report(
                    "offset_reset_strategy_set",
                    offsetResetStrategy=arguments.offset_reset_strategy,
                )
            reader.run(signals)
        except WakeupError:
            pass
        except KafkaError as error:
            print(
                f"Error during processing, terminating share consumer process: {message_of(error)}",
                file=sys.stderr,
            )
        finally:
            consumer.close()
            reader.events.report("shutdown_complete")
    return signals.exit_code


def _set_reset_strategy(config: dict[str, object], arguments: argparse.Namespace) -> None:
    from moldau.client.admin import Admin, AlterConfigOp, ConfigResource, ConfigResourceType

    group = ConfigResource(ConfigResourceType.GROUP, arguments.group_id)
    change = AlterConfigOp.set("share.auto.offset.reset", arguments.offset_reset_strategy)
    with Admin(config) as admin:
        admin.incremental_alter_configs({group: [change]}, timeout=_CONFIG_SECONDS)


class _Reader:
    def __init__(self, consumer: ShareConsumer[str, str], arguments: argparse.Namespace) -> None:
        self._consumer = consumer
        self._arguments = arguments
        self._acknowledged = 0
        self.events = Events(sys.stdout)

    def run(self, signals: Signals) -> None:
        self._consumer.subscribe([self._arguments.topic])
        self._consumer.set_acknowledgement_commit_callback(self._on_acknowledged)
        while not 0 <= self._arguments.max_messages <= self._acknowledged:
            if signals.received:
                return
            records = list(self._consumer.poll(POLL_SECONDS_MAX))
            if records:
                self._received(records)
                self._acknowledge()

    def _received(self, records: list[ConsumerRecord[str, str]]) -> None:
        by_partition: dict[TopicPartition, list[ConsumerRecord[str, str]]] = {}
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            by_partition.setdefault(partition, []).append(record)
        summaries = []
        for partition, found in by_partition.items():
            summaries.append(_offsets(partition, {record.offset for record in found}))
            if self._arguments.verbose:
                for record in found:
                    report_record(self.events, record)
        self.events.report("records_consumed", count=len(records), partitions=summaries)

    def _acknowledge(self) -> None:
        if self._arguments.acknowledgement_mode == "async":
            self._consumer.commit_async()
        elif self._arguments.acknowledgement_mode == "sync":
            for partition, error in self._consumer.commit_sync().items():
                if error is not None:
                    print(
                        "Failed to commit offset synchronously for topic partition: "
                        f"{partition}: {message_of(error)}",
                        file=sys.stderr,
                    )

    def _on_acknowledged(self, offsets: Any, error: Exception | None) -> None:
        reported = [
            _offsets(TopicPartition(partition.topic, partition.partition), found)
            for partition, found in offsets.items()
        ]
        count = sum(len(found) for found in offsets.values())
        problem = {} if error is None else {"error": message_of(error)}
        self.events.report(
            "offsets_acknowledged",
            count=count,
            partitions=reported,
            success=error is None,
            **problem,
        )
        if error is None:
            self._acknowledged += count


def _offsets(partition: TopicPartition, offsets: Any) -> dict[str, object]:
    return partition._asdict() | {"count": len(offsets), "offsets": sorted(offsets)}
