"""`moldau transactions`: show transactions, abort hanging ones, as kafka-transactions does."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.progress import progress
from moldau.cli.support.reporting import message_of
from moldau.cli.support.tables import Table, print_json
from moldau.client.admin import (
    AbortTransactionSpec,
    Admin,
    ProducerState,
    TransactionDescription,
)
from moldau.client.errors import KafkaError, TransactionalIdNotFoundError
from moldau.client.topics import TopicPartition

__all__ = ["OpenTransaction", "add_arguments", "hanging", "run"]

T = TypeVar("T")

_BATCH_SIZE = 500
_TIMEOUT_MINUTES = 15
_LIST = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
_DESCRIBE = (
    "CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState",
    "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs",
    "TopicPartitions",
)  # fmt: skip
_PRODUCERS = (
    "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
    "CurrentTransactionStartOffset",
)  # fmt: skip
_HANGING = (
    "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
    "LastTimestamp", "Duration(min)",
)  # fmt: skip


class OpenTransaction(NamedTuple):
    """A transaction that is still open in a partition."""

    topic_partition: TopicPartition
    state: ProducerState


_EXAMPLES = """\
examples:
  moldau transactions list
  moldau transactions describe --transactional-id orders-writer
  moldau transactions find-hanging --broker-id 1
  moldau transactions abort --topic orders --partition 0 --start-offset 1234
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser)
    commands = parser.add_commands()
    list_ = commands.add("list", "list transactions")
    list_.add_argument(
        "--duration-filter",
        type=int,
        metavar="MS",
        help="only transactions open for longer than this; all if negative",
    )
    list_.add_argument(
        "--transactional-id-pattern", metavar="REGEX", help="only transactional IDs that match"
    )
    describe = commands.add("describe", "show the state of a transactional ID")
    describe.add_argument(
        "--transactional-id", required=True, metavar="ID", help="transactional ID"
    )
    producers = commands.add("describe-producers", "show the producers that write to a partition")
    _add_partition(producers)
    producers.add_argument(
        "--broker-id",
        type=int,
        metavar="N",
        help="broker of the replica to query (default: the leader)",
    )
    _add_abort(commands.add("abort", "abort a hanging transaction"))
    hanging_ = commands.add("find-hanging", "find transactions that will not end by themselves")
    _add_partition(hanging_, required=False)
    hanging_.add_argument(
        "--broker-id", type=int, metavar="N", help="check only replicas of this broker"
    )
    hanging_.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=_TIMEOUT_MINUTES,
        metavar="MINUTES",
        help="only transactions open for longer than this (default: %(default)s)",
    )
    force = commands.add(
        "forceTerminateTransaction", "abort the open transaction of a transactional ID"
    )
    force.add_argument("--transactionalId", required=True, metavar="ID", help="transactional ID")
    for command in (list_, describe, producers, hanging_):
        add_json(command)


def _add_partition(parser: Parser, *, required: bool = True) -> None:
    parser.add_argument("--topic", required=required, metavar="NAME", help="topic")
    parser.add_argument("--partition", type=int, required=required, metavar="N", help="partition")


def _add_abort(parser: Parser) -> None:
    _add_partition(parser)
    parser.add_argument(
        "--start-offset",
        type=int,
        metavar="N",
        help="first offset of the transaction (brokers of release 3.0 or later)",
    )
    old = parser.add_argument_group(
        "instead of --start-offset, all of them (brokers before release 3.0)"
    )
    old.add_argument("--producer-id", type=int, metavar="N", help="producer ID of the transaction")
    old.add_argument("--producer-epoch", type=int, metavar="N", help="epoch of the producer")
    old.add_argument("--coordinator-epoch", type=int, metavar="N", help="epoch of the coordinator")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    with open_admin(arguments) as admin:
        _WORK[arguments.command](admin, arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Kafka's tool checks these after it has connected; the result is the same."""
    if arguments.command == "abort" and arguments.start_offset is None:
        if arguments.producer_id is None:
            raise ToolError(
                "The transaction to abort must be identified either with --start-offset (for "
                "brokers on 3.0 or above) or with --producer-id, --producer-epoch, and "
                "--coordinator-epoch (for older brokers)"
            )
        for field in ("producer_epoch", "coordinator_epoch"):
            if getattr(arguments, field) is None:
                raise ToolError(f"Missing required argument --{field.replace('_', '-')}")
    if arguments.command == "find-hanging":
        if arguments.topic is None and arguments.broker_id is None:
            raise ToolError(
                "The `find-hanging` command requires either --topic or --broker-id to limit the "
                "scope of the search"
            )
        if arguments.partition is not None and arguments.topic is None:
            raise ToolError("The --partition argument requires --topic to be provided")


@contextmanager
def _failing_as(words: str) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        code = "" if error.code is None else f"{error.code.name}: "
        raise ToolError(f"{words}: {code}{message_of(error).rstrip('.')}.") from None


def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    duration = arguments.duration_filter
    with _failing_as("Failed to list transactions"):
        found = admin.list_transactions(
            filtered_duration=-1 if duration is None else duration,
            filtered_transactional_id_pattern=arguments.transactional_id_pattern,
        )
    rows = [(each.transactional_id, each.coordinator_id, each.producer_id, each.state)
            for each in sorted(found, key=lambda each: each.coordinator_id)]  # fmt: skip
    _show(arguments, _LIST, rows)


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    key = arguments.transactional_id
    with _failing_as(f"Failed to describe transaction state of transactional-id `{key}`"):
        found = admin.describe_transactions([key])[key]
    started = found.transaction_start_time_ms
    partitions = ",".join(str(each) for each in sorted(found.topic_partitions))
    row = (
        found.coordinator_id, key, found.producer_id, found.producer_epoch, found.state,
        found.transaction_timeout_ms, started,
        None if started is None else _now_ms() - started, partitions,
    )  # fmt: skip
    _show(arguments, _DESCRIBE, [row])


def _describe_producers(admin: Admin, arguments: argparse.Namespace) -> None:
    key = TopicPartition(arguments.topic, arguments.partition)
    broker_id = arguments.broker_id
    where = "leader" if broker_id is None else f"broker {broker_id}"
    with _failing_as(f"Failed to describe producers for partition {key} on {where}"):
        found = admin.describe_producers([key], broker_id=broker_id)[key]
    rows = [
        (
            each.producer_id, each.producer_epoch, _or_minus_one(each.coordinator_epoch),
            each.last_sequence, each.last_timestamp, each.current_transaction_start_offset,
        )
        for each in found.active_producers
    ]  # fmt: skip
    _show(arguments, _PRODUCERS, rows)


def _abort(admin: Admin, arguments: argparse.Namespace) -> None:
    key = TopicPartition(arguments.topic, arguments.partition)
    if arguments.start_offset is None:
        spec = AbortTransactionSpec(
            key,
            arguments.producer_id,
            arguments.producer_epoch,
            # Without a marker of an earlier transaction there is no coordinator epoch in the log.
            max(0, arguments.coordinator_epoch),
        )
    else:
        spec = _open_at(admin, key, arguments.start_offset)
    shown = (
        f"AbortTransactionSpec(topicPartition={key}, producerId={spec.producer_id}, "
        f"producerEpoch={spec.producer_epoch}, coordinatorEpoch={spec.coordinator_epoch})"
    )
    with _failing_as(f"Failed to abort transaction {shown}"):
        admin.abort_transaction(spec)


def _open_at(admin: Admin, key: TopicPartition, offset: int) -> AbortTransactionSpec:
    with _failing_as(f"Failed to validate producer state for partition {key}"):
        producers = admin.describe_producers([key])[key].active_producers
    for each in producers:
        if each.current_transaction_start_offset == offset:
            return AbortTransactionSpec(
                key, each.producer_id, each.producer_epoch, each.coordinator_epoch or 0
            )
    raise ToolError(
        f"Could not find any open transactions starting at offset {offset} on partition {key}"
    )


def _force_terminate(admin: Admin, arguments: argparse.Namespace) -> None:
    key = arguments.transactionalId
    with _failing_as(f"Failed to force terminate transactionalId `{key}`"):
        admin.force_terminate_transaction(key)


# Transactions that hang.


def _find_hanging(admin: Admin, arguments: argparse.Namespace) -> None:
    timeout_ms = arguments.max_transaction_timeout * 60_000
    found = _open_transactions(admin, arguments, timeout_ms)
    if found:
        ids = _transactional_ids(admin, {each.state.producer_id for each in found})
        found = hanging(found, ids, _descriptions(admin, set(ids.values())))
    now_ms = _now_ms()
    rows = [
        (
            key.topic, key.partition, state.producer_id, state.producer_epoch,
            _or_minus_one(state.coordinator_epoch),
            _or_minus_one(state.current_transaction_start_offset), state.last_timestamp,
            (now_ms - state.last_timestamp) // 60_000,
        )
        for key, state in found
    ]  # fmt: skip
    _show(arguments, _HANGING, rows)


def hanging(
    opened: Sequence[OpenTransaction],
    transactional_ids: dict[int, str],
    descriptions: dict[str, TransactionDescription],
) -> list[OpenTransaction]:
    """Those that no coordinator is going to end: it knows nothing of the producer, or its
    transaction is not, or no longer, about the partition."""
    found = []
    for each in opened:
        transactional_id = transactional_ids.get(each.state.producer_id)
        described = descriptions.get(transactional_id) if transactional_id is not None else None
        if described is None or each.topic_partition not in described.topic_partitions:
            found.append(each)
    return found


def _open_transactions(
    admin: Admin, arguments: argparse.Namespace, timeout_ms: int
) -> list[OpenTransaction]:
    partitions = _partitions_to_search(admin, arguments)
    broker_id = arguments.broker_id
    found: list[OpenTransaction] = []
    with progress("Searching", total=len(partitions), unit="partitions") as bar:
        for batch in _batches(partitions):
            where = "leaders" if broker_id is None else f"broker {broker_id}"
            with _failing_as(
                f"Failed to describe producers for {len(batch)} partitions on {where}"
            ):
                results = admin.describe_producers(batch, broker_id=broker_id)
            now_ms = _now_ms()
            found += [
                OpenTransaction(key, state)
                for key, partition in results.items()
                for state in partition.active_producers
                if state.current_transaction_start_offset is not None
                and now_ms - state.last_timestamp > timeout_ms
            ]
            bar.advance(len(batch))
    return found


def _partitions_to_search(admin: Admin, arguments: argparse.Namespace) -> list[TopicPartition]:
    if arguments.topic is not None and arguments.partition is not None:
        return [TopicPartition(arguments.topic, arguments.partition)]
    if arguments.topic is not None:
        topics = [arguments.topic]
    else:
        with _failing_as("Failed to list topics"):
            topics = list(admin.list_topics(list_internal=True))
    broker_id = arguments.broker_id
    found = []
    for batch in _batches(topics):
        with _failing_as(f"Failed to describe {len(batch)} topics"):
            described = admin.describe_topics(batch)
        for topic in described.values():
            for partition in topic.partitions:
                if broker_id is None or broker_id in {each.id for each in partition.replicas}:
                    found.append(TopicPartition(topic.name, partition.partition))
    return found


def _transactional_ids(admin: Admin, producer_ids: set[int]) -> dict[int, str]:
    with _failing_as(f"Failed to list transactions for {len(producer_ids)} producers"):
        listed = admin.list_transactions(filtered_producer_ids=producer_ids)
    return {each.producer_id: each.transactional_id for each in listed}


def _descriptions(admin: Admin, ids: set[str]) -> dict[str, TransactionDescription]:
    with _failing_as(f"Failed to describe {len(ids)} transactions"):
        results = admin.describe_transactions(ids, check=False)
        for error in results.errors.values():
            if not isinstance(error, TransactionalIdNotFoundError):
                raise error
    return results.values_by_key


def _batches(whole: Sequence[T]) -> Iterator[Sequence[T]]:
    """One request for all partitions could overload a broker."""
    for start in range(0, len(whole), _BATCH_SIZE):
        yield whole[start : start + _BATCH_SIZE]


# Output.


def _show(
    arguments: argparse.Namespace, headers: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    if arguments.json:
        names = [header[0].lower() + header[1:].replace("(min)", "Minutes") for header in headers]
        print_json([dict(zip(names, (_plain(cell) for cell in row), strict=True)) for row in rows])
        return
    table = Table(*headers)
    for row in rows:
        table.add(*row)
    table.show()


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, int) else str(cell)


def _or_minus_one(value: int | None) -> int:
    return -1 if value is None else value


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_WORK = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _force_terminate,
}
