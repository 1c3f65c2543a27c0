"""`moldau topics`: create, delete, describe, list and change topics, as kafka-topics does."""

from __future__ import annotations

import argparse
import re
import sys
from uuid import UUID

from moldau.cli.support.arguments import Parser, int32
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import on_terminal, print_json
from moldau.cli.topics.machine.topic_filter import TopicFilter
from moldau.cli.topics.topic_descriptions import Filters, describe
from moldau.client.admin import Admin, NewPartitions, NewTopic
from moldau.client.errors import TopicExistsError
from moldau.wire.uuids import ZERO_UUID, uuid_from_text, uuid_to_text

__all__ = ["add_arguments", "parse_replica_assignment", "run"]

_ACTIONS = {
    "--list": "list topics",
    "--describe": "show topics and their partitions",
    "--create": "create a topic",
    "--alter": "increase the number of partitions",
    "--delete": "delete topics",
}
_FILTERS = (
    "--under-replicated-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
    "--unavailable-partitions",
)
_USE_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"
_REPLICATION_FACTOR_MAX = 32767

_EXAMPLES = """\
examples:
  moldau topics --list
  moldau topics --create --topic orders --partitions 3
  moldau topics --describe --topic 'orders|payments'
  moldau topics --describe --under-replicated-partitions
  moldau topics --alter --topic orders --partitions 6
  moldau topics --delete --topic orders --if-exists
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, required=False)
    parser.add_actions(_ACTIONS)
    parser.add_argument(
        "--topic",
        metavar="NAME",
        help="name of the topic; except with --create, a regular expression",
    )
    parser.add_argument(
        "--topic-id", metavar="ID", help="ID of the topic, instead of its name (describe)"
    )
    parser.add_argument(
        "--partitions", type=int32, metavar="N", help="number of partitions (create, alter)"
    )
    parser.add_argument(
        "--replication-factor",
        type=int32,
        metavar="N",
        help="number of replicas of each partition (create)",
    )
    parser.add_argument(
        "--replica-assignment",
        metavar="B1:B2,B3:B4,...",
        help="broker IDs of each partition's replicas (create, alter)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="configuration of the new topic; may be repeated (create)",
    )
    parser.add_argument(
        "--delete-config", metavar="NAME", help="not supported any more: use `moldau configs`"
    )
    _add_describe_arguments(parser)
    parser.add_argument(
        "--if-exists",
        action="store_true",
        help="do not fail if the topic does not exist (describe, alter, delete)",
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="do not fail if the topic exists (create)"
    )
    add_json(parser)


def _add_describe_arguments(parser: Parser) -> None:
    group = parser.add_argument_group("filters of --describe")
    for option, text in (
        ("--under-replicated-partitions", "only partitions with replicas that are not in sync"),
        ("--unavailable-partitions", "only partitions without an available leader"),
        (
            "--under-min-isr-partitions",
            "only partitions with fewer in-sync replicas than min.insync.replicas",
        ),
        (
            "--at-min-isr-partitions",
            "only partitions with exactly min.insync.replicas in-sync replicas",
        ),
        ("--topics-with-overrides", "only topics with configuration of their own"),
        ("--exclude-internal", "leave out internal topics (also with --list)"),
    ):
        group.add_argument(option, action="store_true", help=text)
    group.add_argument(
        "--partition-size-limit-per-response",
        type=int32,
        default=2000,
        metavar="N",
        help="maximum number of partitions per response (default: 2000)",
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    # Kafka prints these on stdout.
    with (
        reporting_as("Error while executing topic command : ", to_stdout=True),
        open_admin(arguments) as admin,
    ):
        if arguments.create:
            _create(admin, arguments)
        elif arguments.alter:
            _alter(admin, arguments)
        elif arguments.list:
            _list(admin, arguments)
        elif arguments.describe:
            _describe(admin, arguments)
        else:
            _delete(admin, arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    parser: Parser = arguments.parser
    given = [option for option in _ACTIONS if parser.is_given(arguments, option)]
    if len(given) != 1:
        parser.error(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    if arguments.delete_config is not None:
        print(
            "delete-config option is no longer supported and deprecated since version 4.0. "
            "The config will be fully removed in future releases.",
            file=sys.stderr,
        )
    if arguments.bootstrap_server is None:
        raise ToolError("--bootstrap-server must be specified")
    if arguments.describe and arguments.if_exists:
        if arguments.topic is None and arguments.topic_id is None:
            parser.error("--topic or --topic-id is required to describe a topic")
        if arguments.topic is not None and arguments.topic_id is not None:
            print(
                "Only topic id will be used when both --topic and --topic-id are specified and "
                "topicId is not Uuid.ZERO_UUID"
            )
    if not arguments.list and not arguments.describe:
        parser.require(arguments, "--topic")
    if arguments.alter:
        if arguments.config:
            parser.error(
                'Option combination "[bootstrap-server], [config]" can\'t be used with option '
                f'"[alter]"{_USE_CONFIGS}'
            )
        parser.require(arguments, "--partitions")
    _check_combinations(arguments)


def _check_combinations(arguments: argparse.Namespace) -> None:
    parser: Parser = arguments.parser

    def only_with(option: str, *actions: str, refused: tuple[str, ...] = ()) -> None:
        others = [action for action in _ACTIONS if action not in actions]
        parser.refuse(arguments, option, [*others, *refused])

    only_with("--config", "--alter", "--create")
    only_with("--partitions", "--alter", "--create")
    only_with("--replication-factor", "--create")
    only_with("--replica-assignment", "--alter", "--create")
    if arguments.create:
        parser.refuse(arguments, "--replica-assignment", ["--partitions", "--replication-factor"])
    for option in _FILTERS:
        only_with(option, "--describe", refused=("--topics-with-overrides",))
    only_with("--topics-with-overrides", "--describe", refused=_FILTERS)
    only_with("--if-exists", "--alter", "--delete", "--describe")
    only_with("--if-not-exists", "--create")
    only_with("--exclude-internal", "--list", "--describe")


# Actions.


def _create(admin: Admin, arguments: argparse.Namespace) -> None:
    configs = _parse_configs(arguments.config)
    assignment = parse_replica_assignment(arguments.replica_assignment)
    name: str = arguments.topic
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or "
            "underscore ('_') could collide. To avoid issues it is best to use either, but not "
            "both.",
            file=sys.stderr if arguments.json else sys.stdout,
        )
    replicas = arguments.replication_factor
    if replicas is not None and not 1 <= replicas <= _REPLICATION_FACTOR_MAX:
        raise Refused(
            f"The replication factor must be between 1 and {_REPLICATION_FACTOR_MAX} inclusive"
        )
    if arguments.partitions is not None and arguments.partitions < 1:
        raise Refused("The partitions must be greater than 0")
    topic = NewTopic(
        name,
        num_partitions=arguments.partitions,
        replication_factor=replicas,
        configs=configs,
        replicas_assignments=assignment or None,
    )
    try:
        results = admin.create_topics([topic], retry_on_quota_violation=False)
    except TopicExistsError:
        if not arguments.if_not_exists:
            raise
        return
    if arguments.json:
        created = results[name]
        print_json(
            {
                "topic": name,
                "topicId": uuid_to_text(created.topic_id),
                "partitions": created.num_partitions,
                "replicationFactor": created.replication_factor,
            }
        )
    else:
        print(f"Created topic {name}.")


def _parse_configs(entries: list[str]) -> dict[str, str]:
    configs = {}
    for entry in entries:
        parts = re.split(r"\s*=\s*", entry)
        while parts and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise Refused(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                f'format "key=val", not {entry!r}'
            )
        configs[parts[0].strip()] = parts[1].strip()
    return configs


def parse_replica_assignment(text: str | None) -> dict[int, list[int]]:
    """`1:2,2:3` as the brokers of partition 0, of partition 1, ..."""
    assignment: dict[int, list[int]] = {}
    for partition, part in enumerate(text.split(",") if text else ()):
        try:
            brokers = [int32(broker.strip()) for broker in part.split(":")]
        except argparse.ArgumentTypeError:
            raise Refused(
                f"--replica-assignment {text}: broker ids are numbers, {part!r} is not made of them"
            ) from None
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            raise Refused(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, twice))
            )
        assignment[partition] = brokers
        if len(brokers) != len(assignment[0]):
            raise Refused(f"Partition {partition} has different replication factor: {brokers}")
    return assignment


def _alter(admin: Admin, arguments: argparse.Namespace) -> None:
    assignment = parse_replica_assignment(arguments.replica_assignment)
    names = _existing(admin, arguments)
    if not names:
        return
    wanted = {}
    described = admin.describe_topics(names) if assignment else {}
    for name in names:
        new = None
        if assignment:
            present = len(described[name].partitions)
            new = [assignment[number] for number in sorted(assignment) if number >= present]
        wanted[name] = NewPartitions(arguments.partitions, new)
    admin.create_partitions(wanted, retry_on_quota_violation=False)


def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    names = _names(admin, arguments)
    if arguments.json:
        print_json(names)
    elif names or not on_terminal():
        print("\n".join(names))
    else:
        # On a terminal an empty output would look like a failure.
        none = "There are no topics." if arguments.topic is None else "No topic matches."
        print(none, file=sys.stderr)


def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    names = _existing(admin, arguments)
    admin.delete_topics(names, retry_on_quota_violation=False)
    if arguments.json:
        print_json({"deleted": names})


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    keys: list[str | UUID]
    topic_id = _topic_id(arguments)
    if topic_id is not None:
        listed = admin.list_topics(list_internal=not arguments.exclude_internal)
        keys = [topic_id] if any(each.topic_id == topic_id for each in listed.values()) else []
        if not keys and not arguments.if_exists:
            raise Refused(f"TopicId '{uuid_to_text(topic_id)}' does not exist as expected")
    else:
        keys = list(_existing(admin, arguments))
    filters = Filters(
        under_replicated=arguments.under_replicated_partitions,
        unavailable=arguments.unavailable_partitions,
        under_min_isr=arguments.under_min_isr_partitions,
        at_min_isr=arguments.at_min_isr_partitions,
        with_overrides=arguments.topics_with_overrides,
    )
    limit = arguments.partition_size_limit_per_response
    describe(admin, keys, filters, limit=limit, as_json=arguments.json)


def _topic_id(arguments: argparse.Namespace) -> UUID | None:
    if arguments.topic_id is None:
        return None
    try:
        topic_id = uuid_from_text(arguments.topic_id)
    except ValueError as error:
        raise Refused(f"--topic-id: {error}") from None
    return None if topic_id == ZERO_UUID else topic_id


def _names(admin: Admin, arguments: argparse.Namespace) -> list[str]:
    hidden = arguments.exclude_internal
    names = sorted(admin.list_topics(list_internal=not hidden))
    pattern = TopicFilter(".*" if arguments.topic is None else arguments.topic)
    return pattern.of(names, exclude_internal=hidden)


def _existing(admin: Admin, arguments: argparse.Namespace) -> list[str]:
    names = _names(admin, arguments)
    if not names and arguments.topic and not arguments.if_exists:
        raise Refused(f"Topic '{arguments.topic}' does not exist as expected")
    return names
