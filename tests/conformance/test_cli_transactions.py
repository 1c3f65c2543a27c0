"""`moldau transactions` beside Kafka's own tool, on the same broker."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from moldau.client.admin import Admin, NewTopic, TransactionState
from moldau.client.topics import TopicPartition
from support.cli import CLASSES, TOOLS, Tools, moldau_cli
from support.hanging import hang, leave_unverified
from support.java import KafkaTools
from support.processes import BrokerProcess, kafka_missing
from support.transactional import ConfluentProducer
from support.waiting import eventually

pytestmark = pytest.mark.skipif(kafka_missing() is not None, reason=str(kafka_missing()))

TOOL = "transactions"
CLASSES[TOOL] = TOOLS + "TransactionsCommand"


@pytest.fixture(scope="module")
def tools(broker: BrokerProcess) -> Iterator[Tools]:
    with KafkaTools(broker.bootstrap) as kafka:
        yield Tools(broker.bootstrap, kafka)


@pytest.fixture(scope="module")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("open", 1, 1), NewTopic("hung", 1, 1)])
        yield admin


def same_but_time(tools: Tools, *words: str) -> str:
    """What both print but for how long a transaction has been open."""
    ours, theirs = tools.both(TOOL, *words)
    assert ours.status == theirs.status == 0, (ours, theirs)
    hidden = [re.sub(r"\t\d+ *\t(\S+-\d+) *\t", r"\tMS\t\1\t", each.output)
              for each in (ours, theirs)]  # fmt: skip
    assert hidden[0] == hidden[1]
    return ours.output


def test_open_transaction(broker: BrokerProcess, admin: Admin, tools: Tools) -> None:
    producer = ConfluentProducer(broker.bootstrap, "shop", timeout_ms=600_000)
    producer.init()
    producer.begin()
    producer.send("open", b"v")
    listed = tools.same(TOOL, "list")
    assert "shop" in listed
    assert "Ongoing" in listed
    assert tools.same(TOOL, "list", "--transactional-id-pattern", "sh.*") == listed
    assert "shop" not in tools.same(TOOL, "list", "--transactional-id-pattern", "x.*")
    assert "shop" not in tools.same(TOOL, "list", "--duration-filter", "3600000")
    assert tools.ask(TOOL, "list", "--json").json[0]["transactionalId"] == "shop"
    assert "open-0" in same_but_time(tools, "describe", "--transactional-id", "shop")
    one = ("--topic", "open", "--partition", "0")
    assert re.search(r"\t0 +\t$", tools.same(TOOL, "describe-producers", *one).rstrip("\n"))
    node = admin.describe_cluster().nodes[0].id
    by_broker = tools.same(TOOL, "describe-producers", *one, "--broker-id", str(node))
    assert by_broker == tools.run(TOOL, "describe-producers", *one)
    # Its coordinator is going to end it: it does not hang.
    hanging = ("find-hanging", "--max-transaction-timeout", "0")
    assert tools.same(TOOL, *hanging, "--topic", "open").count("\n") == 1
    assert tools.run(TOOL, "forceTerminateTransaction", "--transactionalId", "shop") == ""
    eventually(
        lambda: (
            admin.describe_transactions(["shop"])["shop"].state
            in (TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)
        ),
        what="it is aborted",
    )
    described = tools.same(TOOL, "describe", "--transactional-id", "shop")
    assert "None" in described


@pytest.fixture(scope="module")
def unverified(admin: Admin) -> None:
    leave_unverified(admin)


@pytest.mark.usefixtures("unverified")
def test_hanging_transaction(broker: BrokerProcess, admin: Admin, tools: Tools) -> None:
    hang(broker.port, "hung")
    found = tools.same(TOOL, "find-hanging", "--topic", "hung")
    assert found.splitlines()[0].split("\t")[0].strip() == "Topic"
    row = [cell.strip() for cell in found.splitlines()[1].split("\t")]
    assert (row[0], row[1], row[5], row[7]) == ("hung", "0", "0", "60")
    node = admin.describe_cluster().nodes[0].id
    assert tools.run(TOOL, "find-hanging", "--broker-id", str(node)) == found
    as_json = tools.ask(TOOL, "find-hanging", "--topic", "hung", "--partition", "0", "--json").json
    assert as_json[0]["startOffset"] == 0
    one = ("--topic", "hung", "--partition", "0")
    missing = tools.same_failure(TOOL, "abort", *one, "--start-offset", "7")
    assert "Could not find any open transactions starting at offset 7" in missing
    assert tools.run(TOOL, "abort", *one, "--start-offset", "0") == ""
    key = TopicPartition("hung", 0)
    (state,) = admin.describe_producers([key])[key].active_producers
    assert state.current_transaction_start_offset is None
    hang(broker.port, "hung")
    states = admin.describe_producers([key])[key].active_producers
    (opened,) = [each for each in states if each.current_transaction_start_offset is not None]
    tools.run(
        TOOL, "abort", *one, "--producer-id", str(opened.producer_id),
        "--producer-epoch", str(opened.producer_epoch), "--coordinator-epoch", "-1",
    )  # fmt: skip
    assert tools.same(TOOL, "find-hanging", "--topic", "hung").count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["abort", "--topic", "t", "--partition", "0"],
        ["abort", "--topic", "t", "--partition", "0", "--producer-id", "1"],
        ["find-hanging"],
        ["find-hanging", "--broker-id", "1", "--partition", "0"],
    ],
)
def test_refusals(tools: Tools, words: list[str]) -> None:
    tools.same_failure(TOOL, *words)


def test_own_refusals(tools: Tools) -> None:
    unknown = tools.ask(TOOL, "describe", "--transactional-id", "nobody")
    assert unknown.status == 1
    assert unknown.err.startswith(
        "Failed to describe transaction state of transactional-id `nobody`: "
        "TRANSACTIONAL_ID_NOT_FOUND: "
    )
    assert unknown.err.count("\n") == 1
    ended = moldau_cli(TOOL, "--bootstrap-server", tools.bootstrap, "lst")
    assert ended.status == 1
    assert "did you mean list" in ended.err.lower()
