"""ACLs, users, quotas, tokens, transactions and the audit, in a browser."""

from __future__ import annotations

import pytest

from moldau.client import Admin, NewTopic, Producer, TopicPartition
from support.console import Console, Tab, console_of
from support.hanging import hang, leave_unverified
from support.processes import BrokerProcess
from support.waiting import eventually


def test_acls(tab: Tab, admin: Admin) -> None:
    page = tab.open("/acls")
    page.get_by_role("button", name="Add ACL").click()
    page.get_by_label("Principal").fill("User:alice")
    page.get_by_label("Name", exact=True).fill("payments")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("The ACL is added.").wait_for()
    eventually(lambda: len(admin.describe_acls()) == 1, what="the ACL")
    page.get_by_role("button", name="Delete ACL of User:alice").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("The ACL is deleted.").wait_for()
    eventually(lambda: not admin.describe_acls(), what="no ACL")


def test_users(tab: Tab, admin: Admin) -> None:
    page = tab.open("/users")
    page.get_by_role("button", name="Add user").click()
    page.get_by_label("User", exact=True).fill("bob")
    page.get_by_label("Password").fill("secret of bob")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("User bob is saved.").wait_for()
    eventually(lambda: "bob" in admin.describe_user_scram_credentials(), what="bob")
    eventually(lambda: tab.open("/users").get_by_text("SCRAM-SHA-512").count(), what="bob's row")
    page.get_by_role("button", name="Set password of bob").click()
    page.get_by_label("Password", exact=True).fill("another of bob")
    page.get_by_label("Mechanism").select_option("SCRAM-SHA-256")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("SCRAM-SHA-256, 4096 iterations").wait_for()
    page.get_by_role("button", name="Delete bob").click()
    page.get_by_label("Type bob to confirm").fill("bob")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("User bob is deleted.").wait_for()


def test_quotas(tab: Tab, admin: Admin) -> None:
    page = tab.open("/quotas")
    page.get_by_role("button", name="Add quota").click()
    page.get_by_label("User", exact=True).fill("carol")
    page.get_by_label("Bytes per second sent").fill("1048576")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("The quota is saved.").wait_for()
    eventually(lambda: admin.describe_client_quotas(), what="the quota")
    eventually(lambda: tab.open("/quotas").get_by_text("1.0 MiB").count(), what="the row")
    page.get_by_role("button", name="Change the quota of user carol").click()
    page.get_by_label("Bytes per second read").fill("2097152")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Bytes per second read: 2.0 MiB/s").wait_for()
    page.get_by_role("button", name="Delete the quota of user carol").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("The quota is deleted.").wait_for()
    eventually(lambda: not admin.describe_client_quotas(), what="no quota")


def test_an_open_transaction_is_terminated(
    tab: Tab, admin: Admin, broker: BrokerProcess, console: Console
) -> None:
    admin.create_topics([NewTopic("ledger", 1, 1)])
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "books"}
    with Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("ledger", b"5")
        producer.flush()
        page = tab.open("/transactions")
        page.get_by_role("button", name="Terminate books").click()
        page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
        page.get_by_text("The transaction is terminated.").wait_for()
    rows = console.ask("GET", "/transactions")["data"]
    assert [each["id"] for each in rows] == ["books"]
    page.get_by_role("button", name="Find hanging transactions").click()
    page.get_by_text("No hanging transactions.").wait_for()


def test_a_hanging_transaction_is_found_and_aborted(
    tab: Tab, admin: Admin, broker: BrokerProcess
) -> None:
    admin.create_topics([NewTopic("hung", 1, 1)])
    leave_unverified(admin)
    hang(broker.port, "hung")
    page = tab.open("/transactions")
    page.get_by_role("button", name="Find hanging transactions").click()
    page.get_by_role("row", name="hung").get_by_role("button", name="Abort").click()
    page.get_by_role("dialog").get_by_role("button", name="Abort").click()
    page.get_by_text("No hanging transactions.").wait_for()
    place = TopicPartition("hung", 0)
    (state,) = admin.describe_producers([place])[place].active_producers
    assert state.current_transaction_start_offset is None


def test_what_was_changed_is_in_the_audit(tab: Tab, console: Console) -> None:
    console.ask("DELETE", "/topics/not-there", status=404)

    def entries() -> dict[str, str]:
        found = console.ask("GET", "/audit")
        assert found["source"] == "topic"
        return {each["action"]: each["result"] for each in found["data"]}

    wanted = {"add-acl": "ok", "set-user": "ok", "set-quota": "ok", "delete-topic": "failed"}
    eventually(lambda: wanted.items() <= entries().items(), what="the changes of the tests above")
    assert "secret of bob" not in str(console.ask("GET", "/audit"))
    page = tab.open("/audit")
    page.get_by_text("terminate-transaction").first.wait_for()


def test_a_read_only_console_changes_nothing(broker: BrokerProcess) -> None:
    with console_of(broker.bootstrap, read_only="true") as reading:
        answer = reading.ask("POST", "/topics", {"name": "x"}, status=403)
        assert "read-only" in answer["message"]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Origin": "https://elsewhere.example"}, id="another site"),
        pytest.param({"Host": "rebound.example"}, id="another name"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="as the browser says"),
    ],
)
def test_other_sites_change_nothing(console: Console, headers: dict[str, str]) -> None:
    console.ask("POST", "/topics", {"name": "theirs"}, status=403, headers=headers)
