"""`moldau acls` and the admin client's access control, beside Kafka's tool, on both brokers.

What users of a broker without an authorizer see is tested too.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import errors
from moldau.client.admin import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    Admin,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from support.cli import CLASSES, TOOLS, Tools, moldau_cli
from support.java import KafkaTools
from support.processes import apache_kafka, kafka_missing, moldau
from support.repeats import mostly_long
from support.waiting import eventually

TOOL = "acls"
CLASSES[TOOL] = TOOLS + "AclCommand"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(
    scope="module",
    params=mostly_long(["Moldau", "Apache Kafka"], "the same commands on Apache Kafka"),
)
def tools(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tools]:
    if reason := kafka_missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "Moldau":
        made = moldau(folder, [f"{key}={value}" for key, value in SETTINGS.items()])
    else:
        made = apache_kafka(folder, SETTINGS)
    with made as broker, KafkaTools(broker.bootstrap) as kafka:
        yield Tools(broker.bootstrap, kafka)


def lines(text: str) -> list[str]:
    """Kafka puts a blank before whichever entry its sets give first."""
    return sorted(line.strip() for line in text.splitlines())


def same(tools: Tools, *words: str) -> list[str]:
    ours, theirs = tools.both(TOOL, *words)
    assert ours.status == theirs.status, (ours, theirs)
    assert lines(ours.output) == lines(theirs.output)
    return lines(ours.output)


def shown(tools: Tools, count: int) -> list[str]:
    """What both list, as soon as there are so many entries."""

    eventually(
        lambda: tools.run(TOOL, "--list").count("(principal=") == count, what=f"{count} entries"
    )
    return same(tools, "--list")


def test_added_listed_and_removed(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = ("--allow-principal", "User:alice")
    added = tools.run(TOOL, "--add", *alice, "--operation", "Read", "--topic", "orders")
    assert added == (
        "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, "
        "patternType=LITERAL)`: \n"
        " \t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)\n\n"
    )
    assert any("already exists" in line for line in eventually(
        lambda: _if_exists(same(tools, "--add", *alice, "--operation", "read", "--topic",
                                "orders")), what="it is there"))  # fmt: skip
    tools.run(TOOL, "--add", *alice, "--producer", "--idempotent", "--consumer",
              "--topic", "orders", "--group", "g", "--transactional-id", "tx")  # fmt: skip
    # Read stays, Write, Describe and Create come; Read on the group; two on the id; the cluster's.
    everything = shown(tools, 8)
    assert "(principal=User:alice, host=*, operation=IDEMPOTENT_WRITE, permissionType=ALLOW)" in (
        everything
    )
    tools.run(TOOL, "--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1",
              "--operation", "All", "--topic", "ord", "--resource-pattern-type",
              "prefixed")  # fmt: skip
    shown(tools, 9)
    matching = same(tools, "--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert any("name=ord," in line for line in matching)
    bobs = same(tools, "--list", "--principal", "User:bob")
    assert "ACLs for principal `User:bob`" in bobs
    as_json = tools.ask(TOOL, "--list", "--principal", "User:bob", "--json").json
    assert [(each["host"], each["permissionType"]) for each in as_json] == [("10.0.0.1", "DENY")]
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = tools.run(TOOL, "--remove", "--group", "g")
    assert "Are you sure you want to delete all ACLs for resource filter" in asked
    shown(tools, 9)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    asked = tools.run(TOOL, "--remove", "--group", "g", *alice, "--operation", "Read")
    assert " from resource filter `ResourcePattern(resourceType=GROUP, name=g" in asked
    shown(tools, 8)
    tools.run(TOOL, "--remove", "--topic", "orders", "--resource-pattern-type", "match", "--force")
    shown(tools, 3)
    tools.run(TOOL, "--remove", "--transactional-id", "tx", "--cluster", "--force")
    shown(tools, 0)


def _if_exists(found: list[str]) -> list[str] | None:
    return found if any("already exists" in line for line in found) else None


def test_admin_client(tools: Tools) -> None:
    binding = AclBinding(
        ResourcePattern(ResourceType.TOPIC, "mine", PatternType.LITERAL),
        AccessControlEntry("User:c", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    vague = AclBinding(binding.pattern, binding.entry._replace(operation=AclOperation.ANY))
    with Admin(bootstrap_servers=tools.bootstrap) as admin:
        results = admin.create_acls([binding, vague], check=False)
        assert list(results.values_by_key) == [binding]
        assert isinstance(results.errors[vague], errors.InvalidRequestError)
        chosen = AclBindingFilter(ResourcePatternFilter(ResourceType.TOPIC, "mine"))
        eventually(lambda: admin.describe_acls(chosen) == [binding], what="it is there")
        missing = AclBindingFilter(ResourcePatternFilter(ResourceType.GROUP, "none"))
        deleted = admin.delete_acls([binding.to_filter(), missing])
        assert [each.binding for each in deleted[binding.to_filter()]] == [binding]
        assert deleted[missing] == ()
        unknown = AclBindingFilter(ResourcePatternFilter(ResourceType.UNKNOWN))
        with pytest.raises(errors.InvalidRequestError):
            admin.describe_acls(unknown)


@pytest.mark.parametrize(
    "words",
    [
        ["--add"],
        ["--add", "--list"],
        ["--add", "--topic", "t"],
        ["--list", "--producer"],
        ["--add", "--producer"],
        ["--add", "--consumer", "--topic", "t"],
        ["--add", "--idempotent", "--topic", "t"],
        ["--add", "--principal", "User:a", "--topic", "t"],
        ["--add", "--topic", "t", "--allow-principal", "User:a", "--resource-pattern-type", "any"],
    ],
)
def test_refusals(tools: Tools, words: list[str]) -> None:
    tools.same_failure(TOOL, *words)


def test_own_refusals(tools: Tools) -> None:
    wrong = tools.ask(
        TOOL, "--add", "--group", "g", "--operation", "Write", "--allow-principal", "User:a"
    )
    assert wrong.status == 1
    assert "ResourceType GROUP only supports operations [READ, DESCRIBE" in wrong.err
    nobody = tools.ask(TOOL, "--add", "--topic", "t", "--allow-principal", "alice")
    assert nobody.status == 1
    assert nobody.out == (
        "Error while executing ACL command: expected a string in format "
        "principalType:principalName but got alice\n"
    )


def test_broker_without_an_authorizer(tmp_path: Path) -> None:
    with moldau(tmp_path) as broker:
        ended = moldau_cli(TOOL, "--bootstrap-server", broker.bootstrap, "--list")
        assert ended.status == 1
        assert ended.out == (
            "Error while executing ACL command: No Authorizer is configured on the broker\n"
        )
