"""A controller with one live broker, and short ways to ask it things."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import pytest

from moldau.broker.metadata.formatting import default_bootstrap_records
from moldau.broker.metadata.machine.activation import activate
from moldau.broker.metadata.machine.brokers import register_broker
from moldau.broker.metadata.machine.controller import Controller
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import SUPPORTED_FEATURES
from moldau.broker.metadata.machine.topics import create_topics
from moldau.broker.metadata.machine.view import ControllerConfig
from moldau.config import ConfigError
from moldau.wire.messages import BrokerRegistrationRequest, CreateTopicsRequest
from support.broker_decisions import unfence_broker

R = TypeVar("R")
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Entry(NamedTuple):
    name: str
    value: str | None
    read_only: bool = False
    source: int = 5
    is_sensitive: bool = False


class PlainRules:
    """Knows three topic keys, so that these tests do not depend on the real table."""

    def validate_topic(self, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            if name == "cleanup.policy":
                continue
            if name not in (
                "retention.ms",
                "min.insync.replicas",
                "unclean.leader.election.enable",
            ):
                raise ConfigError(f"Unknown topic config name: {name}")
            if name != "unclean.leader.election.enable" and not value.lstrip("-").isdigit():
                raise ConfigError(f"Invalid value {value} for configuration {name}")

    def validate_broker(self, values: Mapping[str, str], *, per_broker: bool) -> None:
        if "node.id" in values:
            raise ConfigError("Cannot update these configs dynamically: node.id")

    def validate_group(self, values: Mapping[str, str]) -> None:
        pass

    def validate_client_metrics(self, values: Mapping[str, str]) -> None:
        pass

    def is_list(self, resource_type: int, key: str) -> bool:
        return key == "cleanup.policy"

    def default_value(self, resource_type: int, key: str) -> str | None:
        return "delete" if key == "cleanup.policy" else None

    def effective_topic(
        self, topic: Mapping[str, str], cluster: Mapping[str, str], broker: Mapping[str, str]
    ) -> Sequence[Entry]:
        return [Entry("retention.ms", topic.get("retention.ms", "604800000"))]


class World:
    """A controller whose decisions are replayed at once."""

    def __init__(self, **config: Any) -> None:
        settings = ControllerConfig(node_id=1, cluster_id=CLUSTER_ID, **config)
        self.controller = Controller(settings, PlainRules(), random.Random(7))
        self.records: list[Any] = []
        self.apply(activate(self.controller, default_bootstrap_records()))

    @property
    def image(self) -> Any:
        return self.controller.image

    def apply(self, decision: Decision[R]) -> R:
        self.records = list(decision.records)
        self.controller.replay(decision.records, base_offset=self.controller.next_offset)
        return decision.response

    def add_broker(self, broker_id: int, rack: str | None = None, *, fenced: bool = False) -> int:
        request = registration(broker_id, rack=rack, incarnation=broker_id * 1000)
        epoch = self.apply(register_broker(self.controller, request)).broker_epoch
        if not fenced:
            self.apply(unfence_broker(self.controller, broker_id=broker_id, broker_epoch=epoch))
        return epoch

    @staticmethod
    def topic(name: str, *args: Any, **kwargs: Any) -> CreateTopicsRequest.CreatableTopic:
        return new_topic(name, *args, **kwargs)

    @staticmethod
    def registration(broker_id: int, **kwargs: Any) -> BrokerRegistrationRequest:
        return registration(broker_id, **kwargs)

    def create(self, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> Any:
        request = CreateTopicsRequest(topics=[new_topic(name, partitions, factor, configs)])
        return self.apply(create_topics(self.controller, request)).topics[0]


def new_topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, Sequence[int]] | None = None,
) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("__", "."), value=value)
            for key, value in (configs or {}).items()
        ],
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(
                partition_index=index, broker_ids=list(brokers)
            )
            for index, brokers in (assignments or {}).items()
        ],
    )


def registration(
    broker_id: int,
    *,
    rack: str | None = None,
    incarnation: int = 1,
    log_dirs: Sequence[int] | None = None,
    cluster_id: str = CLUSTER_ID,
    previous_epoch: int = -1,
    port: int = 9092,
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=UUID(int=incarnation),
        listeners=[
            BrokerRegistrationRequest.Listener(
                name="PLAINTEXT", host=f"host{broker_id}", port=port, security_protocol=0
            )
        ],
        features=[
            BrokerRegistrationRequest.Feature(
                name=name,
                min_supported_version=levels.min_version,
                max_supported_version=levels.max_version,
            )
            for name, levels in SUPPORTED_FEATURES.items()
        ],
        rack=rack,
        log_dirs=[UUID(int=number) for number in log_dirs or [broker_id * 1000]],
        previous_broker_epoch=previous_epoch,
    )


@pytest.fixture
def world() -> World:
    """One broker, id 1, alive."""
    made = World()
    made.add_broker(1)
    return made


@pytest.fixture
def new_world() -> type[World]:
    """For tests that need other settings or no broker."""
    return World
