"""Topics that appear by themselves: those clients name in Metadata, and the coordinators' own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from moldau.broker.config import BrokerConfig
from moldau.broker.metadata.shell import MetadataShell
from moldau.broker.topics import (
    GROUP_OFFSETS_TOPIC,
    INTERNAL_TOPICS,
    TRANSACTION_STATE_TOPIC,
    topic_name_problem,
)
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse

logger = logging.getLogger(__name__)

Creatable = CreateTopicsRequest.CreatableTopic
BROKER_DEFAULT = -1


class TopicCreation:
    def __init__(self, metadata: MetadataShell, config: Callable[[], BrokerConfig]) -> None:
        self._metadata = metadata
        self._config = config

    async def create_missing(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Create topics that clients asked about; what could not be created and why."""
        errors: dict[str, ErrorCode] = {}
        wanted = []
        for name in names:
            if topic_name_problem(name) is not None:
                errors[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
            else:
                wanted.append(self._topic(name))
        if wanted:
            errors |= await self._create(wanted)
        return errors

    async def ensure_internal_topic(self, name: str) -> None:
        """Create a coordinator's topic; ApiError where that cannot be done now."""
        if self._metadata.image.topic(name) is not None:
            return
        error = (await self._create([self._topic(name)])).get(name)
        if error is not None:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} cannot be created: {error.name}"
            )

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Have the controller create them; errors are in the response."""
        return await self._metadata.run(lambda controller: controller.create_topics(request))

    async def _create(self, topics: list[Creatable]) -> dict[str, ErrorCode]:
        response = await self.create_topics(CreateTopicsRequest(topics=topics))
        errors = {}
        for result in response.topics:
            # Somebody else was faster: just as good.
            if result.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                continue
            logger.warning(
                "topic %s was not created by itself: %s", result.name, result.error_message
            )
            errors[result.name] = ErrorCode(result.error_code)
        return errors

    def _topic(self, name: str) -> Creatable:
        if name in INTERNAL_TOPICS:
            return _internal_topic(name, self._config())
        return Creatable(
            name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT
        )


def _internal_topic(name: str, config: BrokerConfig) -> Creatable:
    if name == GROUP_OFFSETS_TOPIC:
        keys = "offsets.topic"
        configs = {"cleanup.policy": "compact", "compression.type": "producer"}
    elif name == TRANSACTION_STATE_TOPIC:
        keys = "transaction.state.log"
        configs = {
            # A transaction that was decided must never be undecided again.
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(config[f"{keys}.min.isr"]),
        }
    else:
        keys = "share.coordinator.state.topic"
        configs = {
            # The coordinator deletes what its snapshots have made superfluous.
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "compression.type": "producer",
            "min.insync.replicas": str(config[f"{keys}.min.isr"]),
        }
    return Creatable(
        name=name,
        num_partitions=config[f"{keys}.num.partitions"],
        replication_factor=config[f"{keys}.replication.factor"],
        configs=_configs(configs | {"segment.bytes": str(config[f"{keys}.segment.bytes"])}),
    )


def _configs(values: dict[str, str]) -> list[CreateTopicsRequest.CreatableTopicConfig]:
    return [
        CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
        for name, value in values.items()
    ]
