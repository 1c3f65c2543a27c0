"""Groups of all four kinds: shown with lag, offsets reset and deleted with a preview."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer, ShareConsumer
from moldau.client.topics import TopicPartition
from moldau.streams import KafkaStreams, State, StreamsBuilder
from support.console import Console, Tab, console_of
from support.processes import BrokerProcess
from support.waiting import eventually

TOPIC = "events"


@pytest.fixture(scope="module")
def groups(
    broker: BrokerProcess, admin: Admin, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """A group of each kind with a member, and `old`, which has offsets and no member."""
    admin.create_topics([NewTopic(TOPIC, 2, 1)])
    servers = {"bootstrap.servers": broker.bootstrap}
    with Producer(servers) as producer:
        for number in range(100):
            producer.send(TOPIC, b"x", str(number).encode())
    with Consumer({**servers, "group.id": "old", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([TOPIC])
        read = 0
        while read < 100:
            read += len(list(consumer.poll(1.0)))
        consumer.commit_sync()
    with ExitStack() as stack:
        for name, protocol in (("classics", "classic"), ("consumers", "consumer")):
            consumer = stack.enter_context(
                Consumer({**servers, "group.id": name, "group.protocol": protocol})
            )
            consumer.subscribe([TOPIC])
            eventually(
                lambda consumer=consumer: consumer.poll(0.2) is not None and consumer.assignment(),
                what=f"partitions of {name}",
            )
            # It commits positions that it knows; that of the end is asked for first.
            for each in consumer.assignment():
                consumer.position(each)
            consumer.commit_sync()
        sharing = stack.enter_context(ShareConsumer({**servers, "group.id": "sharers"}))
        sharing.subscribe([TOPIC])
        sharing.poll(0.5)
        application = stack.enter_context(echo(broker.bootstrap, tmp_path_factory.mktemp("state")))
        assert application.wait_for(State.RUNNING, 60)
        yield {
            "classics": "classic",
            "consumers": "consumer",
            "sharers": "share",
            "echoes": "streams",
        }


def echo(bootstrap: str, state: Path) -> KafkaStreams:
    builder = StreamsBuilder()
    builder.stream(TOPIC, key_serde="bytes", value_serde="bytes").foreach(lambda _key, _value: None)
    return KafkaStreams(
        builder.build(),
        application_id="echoes",
        bootstrap_servers=bootstrap,
        state_dir=str(state),
        group_protocol="streams",
    )


def test_every_kind_is_listed_and_described(console: Console, groups: dict[str, str]) -> None:
    found = {each["group"]: each for each in console.ask("GET", "/groups")["data"]}
    assert {name: found[name]["kind"] for name in groups} == groups
    for name, kind in groups.items():
        shown = console.ask("GET", f"/groups/{name}")
        assert shown["kind"] == kind
        assert len(shown["members"]) == 1, name
    assert [each["group"] for each in console.ask("GET", "/groups?kind=share")["data"]] == [
        "sharers"
    ]


def test_lag_in_records_and_seconds(console: Console, groups: dict[str, str]) -> None:
    # Back by a preview first, which changes nothing.
    preview = console.ask(
        "POST", "/groups/old/offsets", {"to": "earliest", "dry_run": True, "topics": [TOPIC]}
    )
    assert sum(each["current"] - each["new"] for each in preview["data"]) == 100
    assert console.ask("GET", "/groups/old")["lag"] == 0
    console.ask("POST", "/groups/old/offsets", {"to": "shift", "value": -10})
    assert console.ask("GET", "/groups/old")["lag"] == 20

    def known() -> Any:
        row = console.ask("GET", "/groups?search=old")["data"][0]
        return row["lag"] == 20 and row["lag_seconds"]

    assert eventually(known, what="lag in seconds") > 0


def test_a_new_console_knows_the_age_of_old_records(broker: BrokerProcess, admin: Admin) -> None:
    admin.create_topics([NewTopic("old-news", 1, 1)])
    place = TopicPartition("old-news", 0)
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for hours in (3, 2):
            written = int(time.time() * 1000) - hours * 3_600_000
            producer.send("old-news", b"x", partition=0, timestamp=written)
    admin.alter_consumer_group_offsets("late", {place: OffsetAndMetadata(1)})
    with console_of(broker.bootstrap) as fresh:

        def known() -> Any:
            return fresh.ask("GET", "/groups?search=late")["data"][0]["lag_seconds"]

        assert 7_200 <= eventually(known, what="lag in seconds") < 7_800


def test_a_group_with_members_is_not_reset(console: Console, groups: dict[str, str]) -> None:
    answer = console.ask("POST", "/groups/consumers/offsets", {"to": "earliest"}, status=409)
    assert "message" in answer


def test_offsets_are_deleted_after_a_preview(console: Console, admin: Admin) -> None:
    admin.create_topics([NewTopic("left", 2, 1)])
    offsets = {TopicPartition("left", each): OffsetAndMetadata(0) for each in range(2)}
    admin.alter_consumer_group_offsets("leavers", offsets)
    path = "/groups/leavers/offsets/delete"
    preview = console.ask("POST", path, {"topic": "left", "dry_run": True})
    assert [each["partition"] for each in preview["data"]] == [0, 1]
    assert len(admin.list_consumer_group_offsets("leavers")["leavers"]) == 2
    console.ask("POST", path, {"topic": "left", "partitions": [1]})
    assert list(admin.list_consumer_group_offsets("leavers")["leavers"]) == [
        TopicPartition("left", 0)
    ]
    console.ask("POST", path, {"topic": "nowhere"}, status=400)


def test_offsets_are_deleted_in_a_browser(tab: Tab, admin: Admin) -> None:
    admin.create_topics([NewTopic("forgotten", 2, 1)])
    offsets = {TopicPartition("forgotten", each): OffsetAndMetadata(0) for each in range(2)}
    admin.alter_consumer_group_offsets("forgetful", offsets)
    page = tab.open("/groups/forgetful")
    page.get_by_role("button", name="Delete offsets").click()
    shown = page.get_by_role("region", name="What would be deleted")
    eventually(lambda: shown.get_by_role("row").count() == 3, what="a head and two rows")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("Deleted 2 offsets.").wait_for()
    assert not admin.list_consumer_group_offsets("forgetful")["forgetful"]


def test_a_share_group_is_sent_to_the_end(
    tab: Tab, console: Console, admin: Admin, broker: BrokerProcess
) -> None:
    admin.create_topics([NewTopic("jobs", 1, 1)])
    servers = {"bootstrap.servers": broker.bootstrap}
    with Producer(servers) as producer:
        for _ in range(10):
            producer.send("jobs", b"x")
    settings = {"set": {"share.auto.offset.reset": "earliest"}}
    console.ask("PATCH", "/groups/workers/settings", settings)
    with ShareConsumer({**servers, "group.id": "workers"}) as workers:
        workers.subscribe(["jobs"])
        read = 0
        while read < 10:
            read += len(list(workers.poll(1.0)))
        workers.commit_sync()
    eventually(lambda: not console.ask("GET", "/groups/workers")["members"], what="no member")
    page = tab.open("/groups/workers")
    page.get_by_role("button", name="Reset offsets").click()
    page.get_by_label("To", exact=True).select_option("latest")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("What would change").wait_for()
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_text("Reset 1 offset.").wait_for()
    assert _start(console, "workers") == 10


def _start(console: Console, group: str) -> int | None:
    partitions = console.ask("GET", f"/groups/{group}")["partitions"]
    return next((each["offset"] for each in partitions), None)


def test_groups_in_a_browser(tab: Tab, console: Console, groups: dict[str, str]) -> None:
    page = tab.open("/groups")
    page.get_by_label("Search groups").fill("ol")
    page.get_by_role("link", name="old", exact=True).click()
    page.get_by_role("heading", name="old").wait_for()
    page.get_by_role("button", name="Reset offsets").click()
    page.get_by_label("To", exact=True).select_option("latest")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("What would change").wait_for()
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_text("Reset 2 offsets.").wait_for()
    assert console.ask("GET", "/groups/old")["lag"] == 0
    page.get_by_role("button", name="Delete group").click()
    page.get_by_label("Type old to confirm").fill("old")
    page.get_by_role("dialog").get_by_role("button", name="Delete group").click()
    page.get_by_text("Group old is deleted.").wait_for()
    assert console.ask("GET", "/groups?search=old")["total"] == 0
