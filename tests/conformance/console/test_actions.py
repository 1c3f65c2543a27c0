"""What the other files leave out: every button, filter and choice of the pages is used once, in a
browser. tests/unit/console/test_actions_done.py holds the list."""

from __future__ import annotations

import re
import time

import pytest

from moldau.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from moldau.client.admin import ConfigResource
from support.console import Console, Tab
from support.processes import BrokerProcess
from support.waiting import eventually

MANY = 60
TOPIC = "letters"


@pytest.fixture(scope="module")
def letters(broker: BrokerProcess, admin: Admin) -> str:
    """Twenty records of two partitions, and sixty topics more."""
    admin.create_topics(
        [NewTopic(TOPIC, 2, 1), *(NewTopic(f"many-{number:02}", 1, 1) for number in range(MANY))]
    )
    with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
        for number in range(20):
            producer.send(TOPIC, b"%d" % number, b"k%d" % number, partition=number % 2)
    # With the first group comes the topic of offsets.
    admin.alter_consumer_group_offsets("first", {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)})
    return TOPIC


def test_lists_are_turned_sorted_and_narrowed(tab: Tab, console: Console, letters: str) -> None:
    page = tab.open("/topics?search=many")
    page.get_by_text(f"{MANY} in all").wait_for()
    page.get_by_role("button", name="Next").click()
    page.get_by_text("page 2 of 2").wait_for()
    page.get_by_role("link", name="many-59").wait_for()
    page.get_by_role("button", name="Previous").click()
    page.get_by_role("link", name="many-00").wait_for()
    page.get_by_role("button", name="Topic", exact=True).click()
    page.get_by_role("button", name=re.compile("^Topic [↑↓]")).click()
    eventually(
        lambda: page.locator("main tbody tr").first.inner_text().startswith("many-59"),
        what="the last one first",
    )
    page.get_by_label("Search topics").fill("__consumer_offsets")
    page.get_by_text("No topics.").wait_for()
    page.get_by_label("internal topics").check()
    page.get_by_role("link", name="__consumer_offsets").wait_for()


def test_light_and_dark_are_chosen_and_kept(tab: Tab) -> None:
    page = tab.open("/brokers")
    for theme in ("dark", "light"):
        page.get_by_role("button", name=f"Use {theme} colours").click()
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        page = tab.open("/brokers")
        assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.get_by_role("link", name="Broker 1", exact=True).click()
    page.get_by_role("heading", name="Broker 1").wait_for()
    page.get_by_text("Largest replicas").first.wait_for()
    page.get_by_role("link", name="API", exact=True).click()
    page.get_by_text("/api/clusters/{cluster}/topics").first.wait_for()


def test_a_topic_is_created_with_settings_of_its_own(tab: Tab, admin: Admin, letters: str) -> None:
    page = tab.open("/topics")
    page.get_by_role("button", name="Create topic").click()
    box = page.get_by_role("dialog")
    box.get_by_label("Name").fill("own.settings")
    box.get_by_label("Cleanup policy").select_option("compact")
    box.get_by_label("Retention (ms)").fill("3600000")
    box.get_by_text("All settings").click()
    box.get_by_label("segment.bytes", exact=True).fill("2097152")
    box.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", name="own.settings").wait_for()
    resource = ConfigResource.topic("own.settings")
    found = admin.describe_configs([resource])[resource]
    assert [found[name].value for name in ("cleanup.policy", "retention.ms", "segment.bytes")] == [
        "compact",
        "3600000",
        "2097152",
    ]
    page = tab.open("/topics/own.settings?view=settings")
    page.get_by_label("only what differs from the default").check()
    eventually(
        lambda: page.get_by_text("max.message.bytes", exact=True).count() == 0, what="only those"
    )
    page.get_by_text("segment.bytes", exact=True).wait_for()


def test_who_reads_a_topic_and_groups_by_kind(
    tab: Tab, console: Console, admin: Admin, letters: str
) -> None:
    offsets = {TopicPartition(letters, each): OffsetAndMetadata(4) for each in range(2)}
    admin.alter_consumer_group_offsets("post", offsets)
    eventually(
        lambda: "post" in str(console.ask("GET", f"/topics/{letters}/groups")), what="its group"
    )
    page = tab.open(f"/topics/{letters}")
    page.get_by_role("link", name="Consumers").click()
    page.get_by_role("link", name="post", exact=True).click()
    page.get_by_role("heading", name="post").wait_for()
    page.get_by_role("link", name="Members").click()
    page.get_by_text("The group has no members.").wait_for()
    page = tab.open("/groups")
    page.get_by_label("Kind").select_option("share")
    page.get_by_text("No groups.").wait_for()
    page.get_by_label("Kind").select_option("classic")
    page.get_by_role("link", name="post", exact=True).wait_for()


@pytest.mark.parametrize(
    ("to", "value", "offset"), [("an offset", "7", 7), ("shift by", "-3", 4), ("a time", "", 10)]
)
def test_offsets_are_reset_in_every_way(
    tab: Tab, admin: Admin, letters: str, to: str, value: str, offset: int
) -> None:
    place = TopicPartition(letters, 0)
    admin.alter_consumer_group_offsets("ways", {place: OffsetAndMetadata(7)})
    page = tab.open("/groups/ways")
    page.get_by_role("button", name="Reset offsets").click()
    page.get_by_label("To", exact=True).select_option(to)
    if to == "a time":
        page.get_by_label("Time", exact=True).fill("2099-01-01T00:00:00")
    else:
        page.get_by_label("Offset or number of records").fill(value)
    page.get_by_label("Topics", exact=True).fill(letters)
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("region", name="What would change").get_by_text(letters).first.wait_for()
    page.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_text(re.compile(r"Reset \d offsets?\.")).wait_for()
    found = admin.list_consumer_group_offsets("ways")["ways"][place]
    assert found is not None
    assert found.offset == offset


def test_a_setting_of_a_group(tab: Tab, admin: Admin, letters: str) -> None:
    admin.alter_consumer_group_offsets("set", {TopicPartition(letters, 0): OffsetAndMetadata(0)})
    page = tab.open("/groups/set?view=settings")
    page.get_by_role("button", name="Change consumer.session.timeout.ms", exact=True).click()
    page.get_by_label("Value").fill("50000")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("consumer.session.timeout.ms is changed.").wait_for()
    resource = ConfigResource.group("set")
    eventually(
        lambda: (
            admin.describe_configs([resource])[resource]["consumer.session.timeout.ms"].value
            == "50000"
        ),
        what="the setting",
    )


def test_what_the_page_of_messages_offers_besides(
    tab: Tab, console: Console, admin: Admin, letters: str
) -> None:
    admin.create_topics([NewTopic("twins", 2, 1)])
    page = tab.open(f"/topics/{letters}/messages?start=beginning")
    page.get_by_role("status").filter(has_text="20 match").wait_for()
    page.get_by_role("button", name="Filter help").click()
    page.get_by_role("dialog").get_by_text("a regular expression (RE2)").wait_for()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Re-send chosen").click()
    page.get_by_text("Choose records first.").wait_for()
    page.get_by_label("Value as").select_option("hex")
    page.get_by_label("only committed transactions").check()
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_text("31 39", exact=True).wait_for()
    page.get_by_label("Contains").fill("k1")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("status").filter(has_text="11 match").wait_for()
    page.get_by_role("button", name="Copy to a topic").click()
    page.get_by_label("To topic").fill("twins")
    page.get_by_label("keep partition numbers").check()
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_text("Copied 11 records to twins.").wait_for()
    ends = [each["end"] for each in console.ask("GET", "/topics/twins")["partitions"]]
    # Those of the keys k1 and k10 to k19: six of them odd.
    assert ends == [5, 6]
    page = tab.open("/topics/twins/messages")
    page.get_by_role("button", name="Send a record").click()
    page.get_by_label("Key", exact=True).fill("k1")
    page.get_by_label("no value (tombstone)").check()
    page.get_by_label("Partition", exact=True).fill("1")
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("Stored in partition 1 at offset 6.").wait_for()
    page.get_by_label("latest value per key").check()
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_text("10 keys.").wait_for()


def test_any_topic_is_opened_as_dead_letters(tab: Tab, letters: str) -> None:
    page = tab.open("/dead-letters")
    page.get_by_label("Another topic").fill(letters)
    page.get_by_role("button", name="Open", exact=True).click()
    page.get_by_text("no error headers").wait_for()
    page.get_by_role("button", name="Send chosen back").click()
    page.get_by_text("Choose records first.").wait_for()


def test_lineage_around_a_group_and_all_again(
    tab: Tab, console: Console, admin: Admin, letters: str
) -> None:
    admin.alter_consumer_group_offsets("seen", {TopicPartition(letters, 0): OffsetAndMetadata(0)})
    eventually(
        lambda: "group:seen" in {each["id"] for each in console.ask("GET", "/lineage")["nodes"]},
        what="the group",
    )
    page = tab.open("/lineage?around=group:seen")
    page.get_by_text("around seen").wait_for()
    page.get_by_role("button", name="Show all").click()
    page.get_by_text("around seen").wait_for(state="detached")
    page.get_by_text("As text").click()
    page.get_by_text(f"{letters} to seen").wait_for()
    for _ in range(2):
        # When the second is here, the first has been drawn.
        page.wait_for_event("response", lambda response: "/lineage" in response.url)
    assert page.get_by_text(f"{letters} to seen").is_visible()
    page.get_by_label("internal topics").check()


def test_acls_and_quotas_of_other_kinds(tab: Tab, console: Console, admin: Admin) -> None:
    page = tab.open("/acls")
    page.get_by_role("button", name="Add ACL").click()
    page.get_by_label("Principal").fill("User:bob")
    page.get_by_label("Name", exact=True).fill("pay")
    page.get_by_label("Applies to").select_option("PREFIXED")
    page.get_by_label("Permission").select_option("DENY")
    page.get_by_label("Operation").select_option("WRITE")
    page.get_by_label("Host").fill("10.0.0.1")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("The ACL is added.").wait_for()

    def rows() -> list[str]:
        page.get_by_label("Search ACLs").fill("")
        page.get_by_label("Search ACLs").fill("bob")
        return [str(each) for each in page.locator("main tbody tr").all_inner_texts()]

    eventually(lambda: any("deny" in row and "pay*" in row for row in rows()), what="the ACL")
    page.get_by_role("button", name="Add ACL").click()
    page.get_by_label("Principal").fill("User:bob")
    page.get_by_label("Resource").select_option("CLUSTER")
    page.get_by_label("Operation").select_option("ALTER")
    page.get_by_role("button", name="Add", exact=True).click()
    eventually(lambda: len(admin.describe_acls()) == 2, what="both")
    for each in console.ask("GET", "/acls")["data"]:
        console.ask("POST", "/acls/delete", each)

    page = tab.open("/quotas")
    for label, name in (("User", "*"), ("IP address", "127.0.0.9")):
        page.get_by_role("button", name="Add quota").click()
        page.get_by_label(label, exact=True).fill(name)
        kind = "New connections per second" if label != "User" else "Percent of request threads"
        page.get_by_label(kind).fill("50")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_text("user (default)").wait_for()
    page.get_by_text("ip 127.0.0.9").wait_for()
    for each in console.ask("GET", "/quotas")["data"]:
        nothing = dict.fromkeys(each["values"])
        console.ask("POST", "/quotas", {"entity": each["entity"], "values": nothing})


def test_the_balancer_shows_its_page_before_its_plan(tab: Tab) -> None:
    """A plan of 10,000 topics takes more than a second."""
    page = tab.page
    held = []
    page.route("**/balancer/plan*", lambda route: held.append(route))
    began = time.monotonic()
    page = tab.open("/balancer")
    page.get_by_text("Reading the cluster").wait_for()
    print(f"the page was there after {time.monotonic() - began:.2f} s, the plan was not")
    assert page.get_by_role("button", name="Carry out").is_disabled()
    eventually(lambda: held and not held.pop().continue_(), what="the request for the plan")
    page.get_by_text("Nothing has to move").wait_for()
