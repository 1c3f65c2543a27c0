"""`moldau reassign-partitions`: move replicas between brokers and log directories.

As kafka-reassign-partitions does: generate a plan, execute, verify and cancel it.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from moldau.balance.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    clear_throttles,
    set_rate,
    set_throttles,
)
from moldau.broker.metadata.machine.model import Broker
from moldau.broker.metadata.machine.placement import place_replicas
from moldau.cli.replicas.machine import reassign_partitions_plans as plans
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json, read_text
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.java_errors import as_java
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import message_of, reporting_as
from moldau.cli.support.tables import on_terminal, print_json
from moldau.client.admin import (
    Admin,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from moldau.client.errors import (
    KafkaError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
)
from moldau.client.topics import Node, TopicPartition
from moldau.wire.errors import ApiError

__all__ = ["add_arguments", "run"]

_FORMAT = """\
format of the plan (log_dirs is optional):
  {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2],
                   "log_dirs": ["any", "/data/2"]}], "version": 1}

format of the topics to move:
  {"topics": [{"topic": "orders"}], "version": 1}

examples:
  moldau reassign-partitions --generate --topics-to-move-json-file topics.json \\
    --broker-list 1,2,3
  moldau reassign-partitions --execute --reassignment-json-file plan.json
  moldau reassign-partitions --verify --reassignment-json-file plan.json
"""
_ACTIONS = ("--generate", "--execute", "--verify", "--cancel", "--list")
_REQUIRED: dict[str, tuple[str, ...]] = {
    "--generate": ("--topics-to-move-json-file", "--broker-list"),
    "--execute": ("--reassignment-json-file",),
    "--verify": ("--reassignment-json-file",),
    "--cancel": ("--reassignment-json-file",),
    "--list": (),
}
_PERMITTED: dict[str, tuple[str, ...]] = {
    "--generate": ("--disable-rack-aware", "--json"),
    "--execute": (
        "--additional", "--throttle", "--replica-alter-log-dirs-throttle", "--timeout",
        "--disallow-replication-factor-change",
    ),
    "--verify": ("--preserve-throttles", "--json"),
    "--cancel": ("--bootstrap-controller", "--preserve-throttles", "--timeout"),
    "--list": ("--bootstrap-controller", "--json"),
}  # fmt: skip
_OPTIONS = (
    "--bootstrap-controller", "--reassignment-json-file", "--topics-to-move-json-file",
    "--broker-list", "--disable-rack-aware", "--throttle", "--replica-alter-log-dirs-throttle",
    "--timeout", "--additional", "--preserve-throttles", "--disallow-replication-factor-change",
    "--json",
)  # fmt: skip
_LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
_RETRY_SECONDS = 0.1
_EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
_RUN_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)


def add_arguments(parser: Parser) -> None:
    parser.epilog = _FORMAT
    add_common(parser, controllers=True)
    parser.add_actions(
        {
            "--generate": "print a plan that moves topics to brokers",
            "--execute": "start the moves of a plan",
            "--verify": "show whether the moves are complete; if so, remove throttles",
            "--cancel": "cancel the moves of a plan that are not complete",
            "--list": "list all moves in progress",
        }
    )
    parser.add_argument(
        "--reassignment-json-file", metavar="FILE", help="the plan (execute, verify, cancel)"
    )
    parser.add_argument(
        "--topics-to-move-json-file", metavar="FILE", help="topics to move (generate)"
    )
    parser.add_argument("--broker-list", metavar="ID,...", help="target brokers (generate)")
    parser.add_argument("--disable-rack-aware", action="store_true", help="ignore racks (generate)")
    for option, text in (
        ("--throttle", "limit for copies between brokers"),
        ("--replica-alter-log-dirs-throttle", "limit for copies between log directories"),
    ):
        parser.add_argument(
            option,
            type=int,
            default=-1,
            metavar="BYTES/S",
            help=f"{text} (execute; default: no limit)",
        )
    parser.add_argument(
        "--timeout",
        type=int,
        default=10_000,
        metavar="MS",
        help="how long to wait until moves between log directories start (default: %(default)s)",
    )
    parser.add_argument(
        "--additional",
        action="store_true",
        help="add moves, or change throttles, while other moves are in progress (execute)",
    )
    parser.add_argument(
        "--preserve-throttles", action="store_true", help="do not change throttles (verify, cancel)"
    )
    parser.add_argument(
        "--disallow-replication-factor-change",
        action="store_true",
        help="reject a plan that changes replication factors (execute)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    action = _action(arguments)
    reporting = reporting_as("Error: ", to_stdout=True)
    with reporting, open_admin(arguments, client_id="reassign-partitions-tool") as admin:
        _WORK[action](admin, arguments)
    return 0


def _action(arguments: argparse.Namespace) -> str:
    parser: Parser = arguments.parser
    given = [option for option in _ACTIONS if parser.is_given(arguments, option)]
    if len(given) != 1:
        parser.error(f"Command must include exactly one action: {', '.join(_ACTIONS)}")
    (action,) = given
    parser.require(arguments, *_REQUIRED[action])
    allowed = _REQUIRED[action] + _PERMITTED[action]
    for option in _OPTIONS:
        if option not in allowed and parser.is_given(arguments, option):
            parser.error(
                f'Option "[{option.lstrip("-")}]" can\'t be used with action '
                f'"[{action.lstrip("-")}]"'
            )
    return action


# The current state.


def _assignments(admin: Admin, topics: Collection[str]) -> dict[TopicPartition, tuple[Node, ...]]:
    results = admin.describe_topics(topics, check=False)
    for name, error in results.errors.items():
        if isinstance(error, UnknownTopicOrPartitionError):
            raise Refused(as_java(UnknownTopicOrPartitionError(f"Topic {name} not found.")))
        raise error
    return {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in results.values()
        for each in topic.partitions
    }


def _log_dirs(
    admin: Admin, current: Mapping[TopicPartition, Iterable[Node]]
) -> dict[TopicPartitionReplica, str]:
    """The log directories of the replicas on brokers that are up."""
    replicas = [
        TopicPartitionReplica(*key, node.id)
        for key, nodes in current.items()
        for node in nodes
        if node.host
    ]
    return {
        replica: where.current_replica_log_dir
        for replica, where in admin.describe_replica_log_dirs(replicas).items()
        if where.current_replica_log_dir is not None
    }


def _ids(
    current: Mapping[TopicPartition, Iterable[Node]],
) -> dict[TopicPartition, tuple[int, ...]]:
    return {key: tuple(node.id for node in nodes) for key, nodes in current.items()}


# Generate.


def _generate(admin: Admin, arguments: argparse.Namespace) -> None:
    brokers = plans.parse_brokers(arguments.broker_list)
    topics = plans.parse_topics(read_text(arguments.topics_to_move_json_file))
    nodes = _assignments(admin, topics)
    current = plans.plan_json(_ids(nodes), _log_dirs(admin, nodes))
    usable = _usable_brokers(admin, brokers, racks=not arguments.disable_rack_aware)
    proposed = plans.plan_json(_proposed(_ids(nodes), usable), {})
    if arguments.json:
        print(f'{{"current":{current},"proposed":{proposed}}}')
        return
    print(f"Current partition replica assignment\n{current}\n")
    print(f"Proposed partition reassignment configuration\n{proposed}")


def _usable_brokers(admin: Admin, brokers: Collection[int], *, racks: bool) -> list[Broker]:
    nodes = [node for node in admin.describe_cluster().nodes if node.id in brokers]
    with_rack = sum(node.rack is not None for node in nodes)
    if racks and with_rack not in (0, len(nodes)):
        raise Refused(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    return [
        Broker(
            id=node.id,
            epoch=0,
            incarnation_id=UUID(int=0),
            rack=node.rack if racks else None,
            fenced=False,
        )
        for node in nodes
    ]


def _proposed(
    current: Mapping[TopicPartition, tuple[int, ...]], brokers: list[Broker]
) -> dict[TopicPartition, tuple[int, ...]]:
    by_topic: dict[str, list[TopicPartition]] = {}
    for key in sorted(current):
        by_topic.setdefault(key.topic, []).append(key)
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for keys in by_topic.values():
        try:
            placed = place_replicas(
                brokers,
                partition_count=len(keys),
                replication_factor=len(current[keys[0]]),
                random=random.SystemRandom(),
            )
        except ApiError as error:
            raise Refused(str(error.message)) from None
        proposed.update(zip(keys, placed, strict=True))
    return proposed


# Execute.


def _execute(admin: Admin, arguments: argparse.Namespace) -> None:
    plan = plans.parse_executable(read_text(arguments.reassignment_json_file))
    ongoing = admin.list_partition_reassignments()
    if ongoing and not arguments.additional:
        raise ToolError(_EXISTING, to_stdout=True)
    proposed = plan.replicas
    alive = {node.id for node in admin.describe_cluster().nodes}
    for broker_id in sorted({each for replicas in proposed.values() for each in replicas}):
        if broker_id not in alive:
            raise Refused(f"Unknown broker id {broker_id}")
    nodes = _assignments(admin, {key.topic for key in proposed})
    missing = [str(key) for key in sorted(proposed) if key not in nodes]
    if missing:
        words = f"Unable to find partition: {', '.join(missing)}"
        raise Refused(as_java(UnknownTopicOrPartitionError(words)))
    nodes = {key: nodes[key] for key in proposed}
    print(
        "Current partition replica assignment\n\n"
        f"{plans.plan_json(_ids(nodes), _log_dirs(admin, nodes))}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    _set_throttles(admin, arguments, plan, plans.moves(ongoing, proposed, _ids(nodes)))
    results = admin.alter_partition_reassignments(
        proposed,
        allow_replication_factor_change=not arguments.disallow_replication_factor_change,
        check=False,
    )
    if results.errors:
        raise ToolError(
            f"Error reassigning partition(s):\n{_errors_text(results.errors)}", to_stdout=True
        )
    print(
        f"Successfully started partition reassignment{_plural(proposed)} for "
        f"{','.join(map(str, sorted(proposed)))}"
    )
    if plan.log_dirs:
        _move(admin, plan.log_dirs, arguments.timeout)


def _set_throttles(
    admin: Admin,
    arguments: argparse.Namespace,
    plan: plans.Plan,
    moving: Mapping[TopicPartition, plans.Move],
) -> None:
    rate, log_dir_rate = arguments.throttle, arguments.replica_alter_log_dirs_throttle
    if rate < 0 and log_dir_rate < 0:
        return
    print(_RUN_VERIFY)
    if rate >= 0:
        set_throttles(admin, moving, rate)
        print(f"The inter-broker throttle limit was set to {rate} B/s")
    if log_dir_rate >= 0:
        brokers = {replica.broker_id for replica in plan.log_dirs}
        set_rate(admin, brokers, (_LOG_DIR_RATE,), log_dir_rate)
        print(f"The replica-alter-dir throttle limit was set to {log_dir_rate} B/s")


def _move(admin: Admin, log_dirs: Mapping[TopicPartitionReplica, str], timeout_ms: int) -> None:
    """Start moves; waits for replicas that are not on their broker yet."""
    deadline = time.monotonic() + timeout_ms / 1000
    pending = dict(log_dirs)
    while True:
        results = admin.alter_replica_log_dirs(pending, check=False)
        for replica, error in results.errors.items():
            if not isinstance(error, ReplicaNotAvailableError):
                raise Refused(f"Failed to alter dir for {replica}: {message_of(error)}")
        for replica in sorted(results.values_by_key, key=_by_broker):
            print(
                f"Successfully started moving log directory to {pending.pop(replica)} for replica "
                f"{replica.topic}-{replica.partition} with broker {replica.broker_id} "
            )
        if not pending:
            return
        if time.monotonic() >= deadline:
            shown = ",".join(str(each) for each in sorted(pending, key=_by_broker))
            raise ToolError(
                f"Timed out before log directory move{_plural(pending)} could be started for: "
                f"{shown}",
                to_stdout=True,
            )
        time.sleep(_RETRY_SECONDS)


# Verify.


def _verify(admin: Admin, arguments: argparse.Namespace) -> None:
    plan = plans.parse_plan(read_text(arguments.reassignment_json_file))
    ongoing = admin.list_partition_reassignments()
    states = _states(admin, plan, {key: each.replicas for key, each in ongoing.items()})
    where = _places(admin, plan)
    moved = {
        replica: plans.move_text(replica, plan.log_dirs[replica], where.get(replica))
        for replica in sorted(plan.log_dirs, key=_by_broker)
    }
    if arguments.json:
        print_json(_verified(states, moved))
    else:
        print("Status of partition reassignment:")
        for key in sorted(states):
            print(plans.state_text(key, states[key]))
        # Kafka's tool ends this part with a line of its own, also if there are no moves.
        print("\n".join(text for text, _ in moved.values()))
    if not ongoing and all(done for _, done in moved.values()) and not arguments.preserve_throttles:
        _clear_throttles(admin, plan, quiet=arguments.json)


def _states(
    admin: Admin, plan: plans.Plan, ongoing: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, plans.PartitionState]:
    wanted = plan.replicas
    results = admin.describe_topics(
        {key.topic for key in wanted if key not in ongoing}, check=False
    )
    for error in results.errors.values():
        if not isinstance(error, UnknownTopicOrPartitionError):
            raise error
    current = {
        TopicPartition(topic.name, each.partition): tuple(node.id for node in each.replicas)
        for topic in results.values_by_key.values()
        for each in topic.partitions
    }
    return {
        key: plans.PartitionState(
            ongoing[key] if key in ongoing else current.get(key, ()), target, key not in ongoing
        )
        for key, target in wanted.items()
    }


def _places(admin: Admin, plan: plans.Plan) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
    return dict(admin.describe_replica_log_dirs(list(plan.log_dirs)))


def _verified(
    states: Mapping[TopicPartition, plans.PartitionState],
    moved: Mapping[TopicPartitionReplica, tuple[str, bool]],
) -> dict[str, object]:
    return {
        "partitions": [
            {
                "topic": key.topic,
                "partition": key.partition,
                "currentReplicas": list(state.current),
                "targetReplicas": list(state.target),
                "done": state.done,
            }
            for key, state in sorted(states.items())
        ],
        "moves": [
            {
                "topic": replica.topic,
                "partition": replica.partition,
                "broker": replica.broker_id,
                "status": text,
                "done": done,
            }
            for replica, (text, done) in moved.items()
        ],
    }


def _clear_throttles(admin: Admin, plan: plans.Plan, *, quiet: bool = False) -> None:
    """On all brokers: it is not recorded which ones took part."""
    brokers = {node.id for node in admin.describe_cluster().nodes}
    brokers.update(each for replicas in plan.replicas.values() for each in replicas)
    topics = sorted({key.topic for key in plan.replicas})
    if not quiet:
        shown = ",".join(map(str, sorted(brokers)))
        print(f"Clearing broker-level throttles on broker{_plural(brokers)} {shown}")
    rates = (LEADER_RATE, FOLLOWER_RATE, _LOG_DIR_RATE)
    clear_throttles(admin, brokers, (), rates=rates)
    if not quiet:
        print(f"Clearing topic-level throttles on topic{_plural(topics)} {','.join(topics)}")
    clear_throttles(admin, (), topics)


# Cancel and list.


def _cancel(admin: Admin, arguments: argparse.Namespace) -> None:
    plan = plans.parse_plan(read_text(arguments.reassignment_json_file))
    ongoing = admin.list_partition_reassignments(list(plan.replicas))
    active = sorted(
        key for key, each in ongoing.items() if each.adding_replicas or each.removing_replicas
    )
    if active:
        results = admin.alter_partition_reassignments(dict.fromkeys(active), check=False)
        if results.errors:
            raise ToolError(
                f"Error cancelling partition reassignment{_plural(results.errors)} for:\n"
                f"{_errors_text(results.errors)}",
                to_stdout=True,
            )
        print(
            f"Successfully cancelled partition reassignment{_plural(active)} for: "
            f"{','.join(map(str, active))}"
        )
    else:
        print("None of the specified partition reassignments are active.")
    # A move is cancelled by moving the replica to where it is.
    back = {
        replica: where.current_replica_log_dir
        for replica, where in _places(admin, plan).items()
        if where.current_replica_log_dir is not None and where.future_replica_log_dir is not None
    }
    if back:
        _move(admin, back, arguments.timeout)
    else:
        # Kafka's tool does not end this line.
        print(
            "None of the specified partition moves are active.", end="\n" if on_terminal() else ""
        )
    if not arguments.preserve_throttles:
        _clear_throttles(admin, plan)


def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    ongoing = admin.list_partition_reassignments()
    if arguments.json:
        print_json(
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    "replicas": list(each.replicas),
                    "addingReplicas": list(each.adding_replicas),
                    "removingReplicas": list(each.removing_replicas),
                }
                for key, each in sorted(ongoing.items())
            ]
        )
        return
    if not ongoing:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for key in sorted(ongoing):
        print(plans.reassignment_text(key, ongoing[key]))


_WORK = {
    "--generate": _generate,
    "--execute": _execute,
    "--verify": _verify,
    "--cancel": _cancel,
    "--list": _list,
}


def _by_broker(replica: TopicPartitionReplica) -> tuple[int, str, int]:
    return replica.broker_id, replica.topic, replica.partition


def _plural(things: Collection[object]) -> str:
    return "" if len(things) == 1 else "s"


def _errors_text(errors: Mapping[TopicPartition, KafkaError]) -> str:
    return "\n".join(f"{key}: {message_of(errors[key])}" for key in sorted(errors))
