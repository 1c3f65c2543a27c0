"""Altering configs: each resource as a whole, judged as it would be afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.metadata.machine.configs import (
    alter_configs,
    incremental_alter_configs,
    list_config_resources,
)
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterConfigsRequest,
    ClearElrRecord,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)

World = Any
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def incremental(world: World, *resources: tuple[int, str, list[Any]], **options: Any) -> list[Any]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=options.pop("validate_only", False),
    )
    response = world.apply(incremental_alter_configs(world.controller, request, **options))
    return [(ErrorCode(r.error_code).name, r.error_message) for r in response.responses]


def replace(world: World, kind: int, name: str, values: dict[str, str | None]) -> Any:
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterConfigsRequest.AlterableConfig(name=key, value=value)
            for key, value in values.items()
        ],
    )
    request = AlterConfigsRequest(resources=[resource])
    response = world.apply(alter_configs(world.controller, request)).responses[0]
    return ErrorCode(response.error_code).name, response.error_message


@pytest.fixture
def topical(world: World) -> World:
    world.create("t", retention__ms="5")
    return world


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ([("retention.ms", SET, "7")], {"retention.ms": "7"}),
        ([("retention.ms", DELETE, None)], {}),
        ([("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "delete,compact"}),
        ([("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "delete"}),
        ([("cleanup.policy", SUBTRACT, "delete")], {"cleanup.policy": ""}),
    ],
)
def test_operations(topical: World, changes: list[Any], after: dict[str, str]) -> None:
    assert incremental(topical, (TOPIC, "t", changes)) == [("NONE", None)]
    expected = {"retention.ms": "5"} | after
    if changes[0][1] == DELETE:
        expected = {}
    assert topical.image.topic_configs("t") == expected


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code", "message"),
    [
        (TOPIC, "t", [("retention.ms", SET, "x")], "INVALID_CONFIG", "Invalid value x"),
        (TOPIC, "t", [("nope", SET, "1")], "INVALID_CONFIG", "Unknown topic config name"),
        (TOPIC, "t", [("retention.ms", APPEND, "1")], "INVALID_CONFIG", "its type is not LIST"),
        (TOPIC, "t", [("retention.ms", SET, None)], "INVALID_REQUEST", "Null value not supported"),
        (TOPIC, "t", [("retention.ms", 9, "1")], "INVALID_REQUEST", "Unknown operations type 9"),
        (
            TOPIC,
            "t",
            [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            "INVALID_REQUEST",
            "duplicate config keys",
        ),
        (TOPIC, "none", [("retention.ms", SET, "1")], "UNKNOWN_TOPIC_OR_PARTITION", "not exist"),
        (TOPIC, "", [("retention.ms", SET, "1")], "INVALID_REQUEST", "Default topic resources"),
        (BROKER, "x", [("a", SET, "1")], "INVALID_REQUEST", "Node id must be an integer"),
        (BROKER, "-1", [("a", SET, "1")], "INVALID_REQUEST", "negative"),
        (BROKER, "8", [("a", SET, "1")], "BROKER_ID_NOT_REGISTERED", "No node with id 8 found."),
        (BROKER, "1", [("node.id", SET, "1")], "INVALID_REQUEST", "Cannot update"),
        (GROUP, "", [("a", SET, "1")], "INVALID_REQUEST", "Default group resources"),
        (CLIENT_METRICS, "", [("a", SET, "1")], "INVALID_REQUEST", "can't be empty"),
        (8, "1", [("root", SET, "INFO")], "INVALID_REQUEST", "Unknown resource type 8"),
        (77, "1", [("a", SET, "1")], "INVALID_REQUEST", "Unknown resource type 77"),
        (TOPIC, "t", [("retention.ms", SET, "1" * 32768)], "INVALID_CONFIG", "maximum value size"),
    ],
)
def test_refused_alterations(
    topical: World, kind: int, name: str, changes: list[Any], code: str, message: str
) -> None:
    before = topical.image.copy()
    [(got, text)] = incremental(topical, (kind, name, changes))
    assert got == code
    assert message in text
    assert topical.image == before


def test_a_resource_given_twice_is_refused_both_times(topical: World) -> None:
    change = (TOPIC, "t", [("retention.ms", SET, "1")])
    answers = incremental(topical, change, change)
    assert [code for code, _ in answers] == ["INVALID_REQUEST", "INVALID_REQUEST"]


def test_one_bad_resource_does_not_hold_back_another(topical: World) -> None:
    answers = incremental(
        topical,
        (TOPIC, "none", [("retention.ms", SET, "1")]),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
    )
    assert [code for code, _ in answers] == ["UNKNOWN_TOPIC_OR_PARTITION", "NONE"]
    assert topical.image.configs[(GROUP, "g")] == {"consumer.session.timeout.ms": "50000"}


def test_validate_only_changes_nothing(topical: World) -> None:
    change = (TOPIC, "t", [("retention.ms", SET, "9")])
    assert incremental(topical, change, validate_only=True) == [("NONE", None)]
    assert topical.records == []


def test_an_unchanged_topic_value_is_not_written_but_a_brokers_is(topical: World) -> None:
    incremental(topical, (TOPIC, "t", [("retention.ms", SET, "5")]))
    assert topical.records == []
    for _ in range(2):
        incremental(topical, (BROKER, "1", [("log.retention.ms", SET, "5")]))
        assert len(topical.records) == 1


def test_a_broker_answers_only_for_itself(topical: World) -> None:
    change = (BROKER, "2", [("log.retention.ms", SET, "5")])
    [(code, message)] = incremental(topical, change, receiver_id=1)
    assert (code, message) == (
        "INVALID_REQUEST",
        "Unexpected broker id, expected 1, but received 2",
    )


def test_the_old_request_replaces_everything(topical: World) -> None:
    incremental(topical, (TOPIC, "t", [("cleanup.policy", SET, "compact")]))
    assert replace(topical, TOPIC, "t", {"min.insync.replicas": "1"}) == ("NONE", None)
    assert topical.image.topic_configs("t") == {"min.insync.replicas": "1"}
    assert replace(topical, TOPIC, "t", {"retention.ms": None})[0] == "INVALID_REQUEST"
    assert replace(topical, TOPIC, "t", {"retention.ms": "x"})[0] == "INVALID_CONFIG"


def test_min_isr_is_the_clusters_while_eligible_replicas_depend_on_it(topical: World) -> None:
    key = "min.insync.replicas"
    assert topical.image.cluster_configs() == {key: "1"}
    [(code, message)] = incremental(topical, (BROKER, "1", [(key, SET, "2")]))
    assert (code, message) == (
        "INVALID_CONFIG",
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    )
    [(code, message)] = incremental(topical, (BROKER, "", [(key, DELETE, None)]))
    assert message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    incremental(topical, (TOPIC, "t", [(key, SET, "2")]))
    assert topical.records[-1] == ClearElrRecord(topic_name="t")
    incremental(topical, (BROKER, "", [(key, SET, "2")]))
    assert topical.records[-1] == ClearElrRecord(topic_name="")


def test_listing_what_can_be_configured(topical: World) -> None:
    incremental(topical, (CLIENT_METRICS, "m", [("interval.ms", SET, "5000")]))
    incremental(topical, (GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]))
    everything = list_config_resources(
        topical.controller.image, ListConfigResourcesRequest(), groups=["g", "h"]
    )
    assert [(r.resource_type, r.resource_name) for r in everything.config_resources] == [
        (2, "t"),
        (4, "1"),
        (8, "1"),
        (16, "m"),
        (32, "g"),
        (32, "h"),
    ]
    some = list_config_resources(
        topical.controller.image, ListConfigResourcesRequest(resource_types=[16])
    )
    assert [r.resource_name for r in some.config_resources] == ["m"]
    wrong = list_config_resources(
        topical.controller.image, ListConfigResourcesRequest(resource_types=[99])
    )
    assert wrong.error_code == ErrorCode.UNSUPPORTED_VERSION
