"""`kafka-verifiable-consumer`: consumes and reports every event as JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, cast

from moldau.cli.console.loop import POLL_SECONDS_MAX
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import read_client_config
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.reporting import message_of
from moldau.cli.support.signals import Signals
from moldau.cli.verifiable.events import Events
from moldau.client.errors import FencedInstanceIdError, KafkaError, WakeupError
from moldau.client.topics import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from moldau.client.consumer import Consumer, ConsumerRebalanceListener
    from moldau.client.consumer_record import ConsumerRecord

__all__ = ["add_arguments", "run"]

_RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"

_EXAMPLES = """\
examples:
  moldau verifiable-consumer --topic numbers --group-id check --verbose
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
    parser.add_argument("--group-id", required=True, metavar="ID", help="group ID")
    parser.add_argument(
        "--group-protocol",
        default="classic",
        type=str.lower,
        choices=("classic", "consumer"),
        help="group protocol (default: classic)",
    )
    parser.add_argument(
        "--group-remote-assignor", metavar="NAME", help="assignor of the protocol consumer"
    )
    parser.add_argument(
        "--group-instance-id", metavar="ID", help="instance ID, for a static member"
    )
    parser.add_argument(
        "--max-messages",
        type=int,
        default=-1,
        metavar="N",
        help="exit after this number of records; -1 for no limit (default: -1)",
    )
    parser.add_argument("--session-timeout", type=int, metavar="MS", help="session.timeout.ms")
    parser.add_argument("--verbose", action="store_true", help="also report every record")
    parser.add_argument("--enable-autocommit", action="store_true", help="enable.auto.commit")
    parser.add_argument(
        "--reset-policy",
        default="earliest",
        metavar="POLICY",
        help="auto.offset.reset: earliest, latest or none (default: earliest)",
    )
    parser.add_argument(
        "--assignment-strategy",
        default=_RANGE,
        metavar="CLASS",
        help="assignor of the protocol classic (default: range)",
    )
    parser.add_argument(
        "--command-config", metavar="FILE", help="properties file with settings of the consumer"
    )
    parser.add_deprecated("--consumer.config", instead="--command-config")


def run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    wait_until_reachable(settings)
    from moldau.client.consumer import Consumer

    consumer = Consumer(settings)
    reader = _Reader(consumer, arguments)
    with Signals(reader.stop) as signals:
        try:
            reader.run()
        except WakeupError:
            pass
        except KafkaError as error:
            print(
                f"Error during processing, terminating consumer process: {message_of(error)}",
                file=sys.stderr,
            )
        finally:
            consumer.close()
            reader.events.report("shutdown_complete")
    return signals.exit_code


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    settings: dict[str, object] = {}
    if arguments.command_config:
        settings.update(read_client_config(arguments.command_config))
    settings["group.protocol"] = arguments.group_protocol
    if arguments.group_protocol == "consumer":
        if arguments.group_remote_assignor is not None:
            settings["group.remote.assignor"] = arguments.group_remote_assignor
    else:
        settings["partition.assignment.strategy"] = arguments.assignment_strategy
    if arguments.session_timeout is not None:
        settings["session.timeout.ms"] = arguments.session_timeout
    if arguments.group_instance_id is not None:
        settings["group.instance.id"] = arguments.group_instance_id
    settings |= {
        "group.id": arguments.group_id,
        "bootstrap.servers": arguments.bootstrap_server,
        "enable.auto.commit": arguments.enable_autocommit,
        "auto.offset.reset": arguments.reset_policy,
        "key.deserializer": "string",
        "value.deserializer": "string",
    }
    return settings


class _Reader:
    """The consumer's loop; also its rebalance listener."""

    def __init__(self, consumer: Consumer[str, str], arguments: argparse.Namespace) -> None:
        self._consumer = consumer
        self._arguments = arguments
        self._count = 0
        self._count_max = arguments.max_messages
        self.events = Events(sys.stdout)

    def stop(self) -> None:
        self.events.report("shutdown_requested")
        self._consumer.wakeup()

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.events.report("partitions_assigned", partitions=_named(partitions))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.events.report("partitions_revoked", partitions=_named(partitions))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.on_partitions_revoked(partitions)

    def run(self) -> None:
        self.events.report("startup_complete")
        self._consumer.subscribe(
            [self._arguments.topic], listener=cast("ConsumerRebalanceListener", self)
        )
        while not self._is_finished():
            records = list(self._consumer.poll(POLL_SECONDS_MAX))
            offsets = self._received(records) if records else {}
            if offsets and not self._arguments.enable_autocommit:
                self._commit(offsets)

    def _is_finished(self) -> bool:
        return bool(0 <= self._count_max <= self._count)

    def _received(
        self, records: list[ConsumerRecord[str, str]]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        by_partition: dict[TopicPartition, list[ConsumerRecord[str, str]]] = {}
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            by_partition.setdefault(partition, []).append(record)
        offsets = {}
        summaries = []
        for partition, found in by_partition.items():
            if self._count_max >= 0:
                found = found[: self._count_max - self._count]
            if not found:
                continue
            offsets[partition] = OffsetAndMetadata(found[-1].offset + 1)
            summaries.append(
                partition._asdict()
                | {
                    "count": len(found),
                    "minOffset": found[0].offset,
                    "maxOffset": found[-1].offset,
                }
            )
            if self._arguments.verbose:
                for record in found:
                    report_record(self.events, record)
            self._count += len(found)
            if self._is_finished():
                break
        self.events.report("records_consumed", count=len(records), partitions=summaries)
        return offsets

    def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            self._consumer.commit_sync(offsets)
        except WakeupError:
            # A signal ends the loop, but what was read is committed first.
            self._commit(offsets)
            raise
        except FencedInstanceIdError:
            raise
        except KafkaError as error:
            self._committed(offsets, message_of(error))
        else:
            self._committed(offsets, None)

    def _committed(
        self, offsets: dict[TopicPartition, OffsetAndMetadata], error: str | None
    ) -> None:
        reported = [
            partition._asdict() | {"offset": found.offset} for partition, found in offsets.items()
        ]
        problem = {} if error is None else {"error": error}
        self.events.report("offsets_committed", offsets=reported, **problem, success=error is None)


def report_record(events: Events, record: ConsumerRecord[str, str]) -> None:
    """One record as an event."""
    events.report(
        "record_data",
        key=record.key,
        value=record.value,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
    )


def _named(partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    return [TopicPartition(*partition)._asdict() for partition in sorted(partitions)]
