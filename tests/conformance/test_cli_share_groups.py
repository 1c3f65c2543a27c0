"""`moldau share-groups` beside Apache Kafka's kafka-share-groups on the same broker."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from moldau.client.admin import Admin, NewTopic
from moldau.client.producer import Producer
from moldau.client.topics import TopicPartition
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import ShareGroupHeartbeatRequest
from moldau.wire.uuids import uuid_to_text
from support.cli import Tools, same_lines, same_refusal
from support.either import either_broker
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing
from support.raw import RawConnection
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

START_MS = 1_700_000_000_000
SETTINGS = {
    "log.retention.ms": "-1",
    "group.share.assignment.interval.ms": "0",
    # The member sends no heartbeats while the tools are run.
    "group.share.max.session.timeout.ms": "3600000",
    "group.share.session.timeout.ms": "3600000",
}


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    with either_broker(request, tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.create_topics([NewTopic("jobs", 2), NewTopic("others", 1)])
        with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            for number in range(10):
                producer.send("jobs", b"v", partition=number % 2, timestamp=START_MS + number)
        for group in ("idle", "doomed", "doomed-by-kafka"):
            offsets = {TopicPartition("jobs", 0): 2, TopicPartition("jobs", 1): 5}
            admin.alter_share_group_offsets(group, offsets)
        with KafkaTools(broker.bootstrap) as kafka:
            yield Tools(broker.bootstrap, kafka)


@pytest.fixture(scope="module")
def member(broker: BrokerProcess, tools: Tools) -> Iterator[str]:
    """A member of the group `busy` that has both partitions of jobs."""
    member_id = uuid_to_text(uuid4())
    epoch = 0
    with RawConnection(broker.port) as connection:

        def beat() -> bool:
            nonlocal epoch
            request = ShareGroupHeartbeatRequest(
                group_id="busy",
                member_id=member_id,
                member_epoch=epoch,
                subscribed_topic_names=["jobs"],
            )
            answer = connection.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
            assert answer.error_code == ErrorCode.NONE, answer
            epoch = answer.member_epoch
            return answer.assignment is not None and bool(answer.assignment.topic_partitions)

        eventually(beat, what="the member has partitions")
        yield member_id


@pytest.mark.parametrize(
    "words",
    [
        "--list",
        "--list --state",
        "--list --state stable",
        "--describe --group idle",
        "--describe --group idle --verbose",
        "--describe --group idle --members",
        "--describe --group idle --state",
        "--describe --group busy --members",
        "--describe --group busy --members --verbose",
        "--describe --group busy --state --verbose",
        "--describe --all-groups --state",
        "--describe --group nobody",
        "--reset-offsets --dry-run --group idle --topic jobs --to-earliest",
        "--reset-offsets --dry-run --group idle --all-topics --to-latest",
        "--reset-offsets --dry-run --group unborn --topic jobs --to-latest",
        "--reset-offsets --dry-run --group idle --topic jobs --to-datetime 2023-11-14T22:13:20.004",
        "--delete --group busy",
        "--delete --group nobody",
        "--delete-offsets --group nobody --topic jobs",
        "--delete-offsets --group busy --topic jobs",
        "--delete-offsets --group idle --topic missing",
    ],
)
@pytest.mark.usefixtures("member")
def test_both_tools_print_the_same(tools: Tools, words: str) -> None:
    assert same_lines(tools, "share-groups", words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--list --describe --all-groups",
        "--describe",
        "--list --state Empty,Reconciling",
        "--delete --group a --topic b",
        "--delete-offsets --group a",
        "--reset-offsets --group idle --topic jobs --to-latest",
        "--reset-offsets --group idle --topic jobs --execute",
        "--reset-offsets --group idle --execute --to-latest",
        "--reset-offsets --group idle --topic jobs --execute --to-latest --to-earliest",
        "--reset-offsets --group busy --topic jobs --execute --to-latest",
    ],
)
@pytest.mark.usefixtures("member")
def test_both_refuse_in_the_same_words(tools: Tools, words: str) -> None:
    same_refusal(tools, "share-groups", words)


def test_offsets_move_and_go(tools: Tools) -> None:
    reset = "--reset-offsets --group idle --topic jobs --to-earliest --execute"
    tools.run("share-groups", *reset.split())
    shown = same_lines(tools, "share-groups", "--describe --group idle")
    rows = [line.split() for line in shown if line.startswith("idle")]
    assert [row[2:4] for row in rows] == [["0", "0"], ["1", "0"]]
    (group,) = tools.ask("share-groups", "--describe", "--group", "idle", "--json").json
    assert [each["start_offset"] for each in group["offsets"]] == [0, 0]
    out = tools.run("share-groups", "--delete-offsets", "--group", "idle", "--topic", "jobs")
    assert out == "\nTOPIC           STATUS\njobs            Successful\n"
    out = tools.run("share-groups", "--describe", "--group", "idle")
    assert out == "\nShare group 'idle' has no offset information.\n"


def test_groups_are_deleted(tools: Tools) -> None:
    out = tools.run("share-groups", "--delete", "--group", "doomed")
    theirs = tools.ask_kafka("share-groups", "--delete", "--group", "doomed-by-kafka").output
    assert out == theirs.replace("doomed-by-kafka", "doomed")
    assert "doomed" not in tools.run("share-groups", "--list").split()


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("consumer-groups", "--describe --group busy"),
        ("consumer-groups", "--delete --group busy"),
        ("consumer-groups", "--list"),
        ("consumer-groups", "--delete-offsets --group busy --topic jobs:0"),
        ("streams-groups", "--describe --group busy"),
        ("streams-groups", "--list"),
    ],
)
@pytest.mark.usefixtures("member")
def test_tools_for_other_groups_say_the_same_of_a_share_group(
    tools: Tools, tool: str, words: str
) -> None:
    same_lines(tools, tool, words)
