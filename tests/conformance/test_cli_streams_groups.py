"""`moldau streams-groups` and `streams-application-reset` beside Apache Kafka's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client.admin import Admin, NewTopic
from moldau.client.producer import Producer
from moldau.client.topics import OffsetAndMetadata, TopicPartition
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import StreamsGroupHeartbeatRequest
from support.cli import Tools, same_lines, same_refusal
from support.either import either_broker
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing
from support.raw import RawConnection
from support.streams_stage import SETTINGS, subtopology, task_ids, topology
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
TOPOLOGY = {
    group: topology(
        subtopology("0", sources=("words",), sinks=(f"{group}-counts-repartition",)),
        subtopology(
            "1",
            repartition=(f"{group}-counts-repartition",),
            changelogs=(f"{group}-counts-changelog",),
        ),
    )
    for group in ("busy", "idle", "doomed", "doomed-by-kafka")
}


@pytest.fixture(scope="module")
def streams_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    settings = {"group.initial.rebalance.delay.ms": "0", **SETTINGS}
    with either_broker(request, folder, settings) as process:
        yield process


@pytest.fixture(scope="module")
def admin(streams_broker: BrokerProcess) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": streams_broker.bootstrap}) as admin:
        yield admin


@pytest.fixture(scope="module")
def tools(streams_broker: BrokerProcess, admin: Admin) -> Iterator[Tools]:
    """A group with a member, and three that a member has left."""
    admin.create_topics([NewTopic("words", 2)])
    with Producer({"bootstrap.servers": streams_broker.bootstrap}) as producer:
        for number in range(10):
            producer.send("words", b"v", partition=number % 2)
    # The topic of the groups is made when the first coordinator is asked for.
    admin.alter_consumer_group_offsets("first", {TopicPartition("words", 0): OffsetAndMetadata(0)})
    for group in ("idle", "doomed", "doomed-by-kafka"):
        with RawConnection(streams_broker.port) as connection:
            Member(connection, group).join().leave()
        offsets = {TopicPartition("words", 0): OffsetAndMetadata(2)}
        admin.alter_streams_group_offsets(group, offsets)
    with (
        RawConnection(streams_broker.port) as connection,
        KafkaTools(streams_broker.bootstrap) as kafka,
    ):
        Member(connection, "busy").join()
        yield Tools(streams_broker.bootstrap, kafka)


class Member:
    """The one member of a streams group, as far as heartbeats go."""

    def __init__(self, connection: RawConnection, group: str) -> None:
        self.connection = connection
        self.group = group
        self.epoch = 0
        self.tasks: dict[str, list[int]] = {}

    def join(self) -> Member:
        def is_settled() -> bool:
            answer = self.beat()
            if answer is None:
                return False
            if answer.active_tasks is not None:
                self.tasks = {each.subtopology_id: each.partitions for each in answer.active_tasks}
            return bool(self.tasks) and answer.active_tasks is None

        eventually(is_settled, what=f"the member of {self.group} has its tasks")
        return self

    def leave(self) -> None:
        self.epoch = -1
        self.beat()

    def beat(self) -> Any:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=f"member-of-{self.group}",
            member_epoch=self.epoch,
            active_tasks=task_ids(self.tasks),
            standby_tasks=[],
            warmup_tasks=[],
        )
        if self.epoch == 0:
            request.topology = TOPOLOGY[self.group]
            request.process_id = "process"
            request.rebalance_timeout_ms = 60_000
        answer = self.connection.call(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)
        if answer.error_code in NOT_YET:
            return None
        assert answer.error_code == ErrorCode.NONE, answer
        self.epoch = answer.member_epoch
        return answer


@pytest.mark.parametrize(
    "words",
    [
        "--list",
        "--list --state",
        "--list --state empty",
        "--describe --group busy",
        "--describe --group busy --verbose",
        "--describe --group busy --members",
        "--describe --group busy --members --verbose",
        "--describe --group busy --state",
        "--describe --group busy --state --verbose",
        "--describe --group idle",
        "--describe --group idle --state",
        "--describe --group nobody",
        "--reset-offsets --dry-run --group idle --all-input-topics --to-latest",
        "--reset-offsets --dry-run --group idle --input-topic words:0 --shift-by 1",
        "--reset-offsets --dry-run --group idle --all-input-topics --to-current --export",
        "--reset-offsets --dry-run --group idle --input-topic words:1 --to-latest",
        "--reset-offsets --dry-run --group busy --all-input-topics --to-latest",
        "--delete --group busy",
        "--delete --group nobody",
        "--delete-offsets --group busy --input-topic words:0",
    ],
)
def test_both_tools_print_the_same(tools: Tools, words: str) -> None:
    same_lines(tools, "streams-groups", words)


@pytest.mark.parametrize(
    "words",
    [
        "--list --describe --all-groups",
        "--describe",
        "--delete --group a --input-topic b",
        "--delete-offsets --group a",
        "--delete-offsets --group a --group b --all-input-topics",
        "--reset-offsets --group a --to-latest --all-input-topics",
        "--list --execute",
        "--list --delete-all-internal-topics",
        "--reset-offsets --dry-run --group a --to-latest --all-input-topics "
        "--delete-internal-topic t",
    ],
)
def test_both_refuse_in_the_same_words(tools: Tools, words: str) -> None:
    same_refusal(tools, "streams-groups", words)


def test_a_reset_moves_offsets_and_deletes_internal_topics(tools: Tools, admin: Admin) -> None:
    made = {"idle-counts-repartition", "idle-counts-changelog"}
    assert made <= admin.list_topics().keys()
    words = (
        "--reset-offsets --group idle --all-input-topics --to-earliest --execute "
        "--delete-all-internal-topics"
    )
    out = tools.run("streams-groups", *words.split())
    assert out.splitlines()[2].split() == ["idle", "words", "0", "0"]
    eventually(lambda: not made & admin.list_topics().keys(), what="the topics are gone")
    offsets = admin.list_streams_group_offsets("idle")["idle"]
    assert {p: each and each.offset for p, each in offsets.items()} == {
        TopicPartition("words", 0): 0
    }


def test_groups_are_deleted_with_their_topics(tools: Tools) -> None:
    delete = ("--delete", "--delete-all-internal-topics", "--group")
    out = tools.run("streams-groups", *delete, "doomed")
    theirs = tools.ask_kafka("streams-groups", *delete, "doomed-by-kafka").output
    assert out == theirs.replace("doomed-by-kafka", "doomed")
    assert "doomed" not in tools.run("streams-groups", "--list").split()


def test_an_application_is_reset(tools: Tools, admin: Admin, tmp_path: Path) -> None:
    names = ("app-store-changelog", "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-1-topic", "app-out")
    admin.create_topics([NewTopic(name, 1) for name in names])
    app = "--application-id app --input-topics words"
    plan = tmp_path / "plan.csv"
    plan.write_text("words,0,3\nwords,1,99\n")
    for how in (
        "",
        "--to-latest",
        "--to-offset 3",
        "--shift-by -2",
        f"--from-file {plan}",
        "--by-duration PT0S",
        "--input-topics nothing",
        "--internal-topics app-out",
    ):
        reset_alike(tools, f"{app} --dry-run {how}".strip())
    out = tools.run("streams-application-reset", *app.split(), "--to-offset", "3")
    assert "Topic: words Partition: 1 Offset: 3" in out.splitlines()
    offsets = admin.list_consumer_group_offsets("app")["app"]
    assert [each.offset for _, each in sorted(offsets.items()) if each] == [3, 3]
    eventually(
        lambda: [name for name in names if name in admin.list_topics()] == ["app-out"],
        what="only the internal topics are deleted",
    )


def reset_alike(tools: Tools, words: str) -> None:
    ours, theirs = tools.both("streams-application-reset", *words.split())
    assert ours.status == theirs.status, (ours, theirs)
    if "ERROR: " in ours.output:
        # Java's tool puts the class of the exception and a stack around its words.
        assert ours.output.splitlines()[-1].removeprefix("ERROR: ") in theirs.output
        return
    # The names in brackets come in any order.
    kafkas = [line for line in theirs.output.splitlines() if not line.startswith("\t")]
    assert sorted(sorted(line) for line in ours.output.splitlines()) == sorted(
        sorted(line) for line in kafkas
    ), (ours.output, theirs.output)
