"""Topics that are created automatically: those that Metadata requests name, and the internal ones.

Invariants: at most one request per topic is in flight, however many clients ask for it. A Metadata
request never waits for the creation; a coordinator waits for `ANSWER_MS_MAX` at most. A topic
counts as created once this broker has it in its metadata, so the next request finds it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, Protocol

from moldau.broker.config import BrokerConfig
from moldau.broker.controller_channel import ControllerUnavailable
from moldau.broker.machine.topics import (
    AUDIT_TOPIC,
    GROUP_OFFSETS_TOPIC,
    INTERNAL_TOPICS,
    METRICS_TOPIC,
    TRANSACTION_STATE_TOPIC,
    topic_name_problem,
)
from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.security.audit.machine.settings import audit_settings
from moldau.clock import Clock
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import CreateTopicsRequest, CreateTopicsResponse

logger = logging.getLogger(__name__)

Creatable = CreateTopicsRequest.CreatableTopic
CONTROLLER_DEFAULT: Final = -1
#: How long a coordinator waits for its topic.
ANSWER_MS_MAX: Final = 1_000
#: How long a topic that exists may take to be known here before others may ask for it again.
KNOWN_MS_MAX: Final = 2_000
#: Topics whose last rejection is remembered.
REJECTIONS_MAX: Final = 1_000


class Controller(Protocol):
    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message: ...


_METRICS_REPLICAS_MAX = 3


class TopicCreation:
    def __init__(
        self,
        controller: Controller,
        image: Callable[[], MetadataImage],
        config: Callable[[], BrokerConfig],
        *,
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._image = image
        self._config = config
        self._clock = clock
        self._in_flight: dict[str, asyncio.Future[ErrorCode]] = {}
        self._awaited: dict[str, asyncio.Future[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._rejections: dict[str, ErrorCode] = {}

    def start(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Have topics created without waiting for them. Returns why a name is invalid, or why the
        controller rejected the topic the last time: clients ask again, and get the reason then."""
        errors: dict[str, ErrorCode] = {}
        wanted = []
        for name in names:
            if topic_name_problem(name) is not None:
                errors[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
                continue
            wanted.append(name)
            if (rejected := self._rejections.get(name)) is not None:
                errors[name] = rejected
        self._request(wanted)
        return errors

    async def ensure_internal_topic(self, name: str) -> None:
        """Create a topic of the brokers' own; ApiError where that cannot be done now."""
        if self._image().topic(name) is not None:
            return
        error = (await self._ensure([name])).get(name)
        if error is not None:
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} cannot be created: {error.name}"
            )

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        """Have the controller create them; errors are in the response, or ApiError if there is
        none."""
        try:
            response = await self._controller.call(
                ApiKey.CREATE_TOPICS, request, timeout_ms=self._timeout_ms()
            )
        except ControllerUnavailable as error:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        except ChannelError as error:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        if not isinstance(response, CreateTopicsResponse):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unexpected {type(response).__name__}")
        await self._known(result.name for result in response.topics if not result.error_code)
        return response

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Wake callers whose topics exist now; all other components have applied the metadata."""
        for name in [name for name in self._awaited if name in image.topics_by_name]:
            future = self._awaited.pop(name)
            if not future.done():
                future.set_result(None)

    async def stop(self) -> None:
        """End all waits; the callers get the error that the topic does not exist."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ensure(self, names: list[str]) -> dict[str, ErrorCode]:
        """The topics that do not exist in time, and why."""
        self._request(names)
        waiting = {name: self._in_flight[name] for name in names}
        await self._within(ANSWER_MS_MAX, waiting.values())
        errors: dict[str, ErrorCode] = {}
        for name, future in waiting.items():
            code = future.result() if future.done() else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if code is not ErrorCode.NONE:
                errors[name] = code
        return errors

    def _request(self, names: Iterable[str]) -> None:
        new = [name for name in names if name not in self._in_flight]
        if new:
            loop = asyncio.get_running_loop()
            self._in_flight.update((name, loop.create_future()) for name in new)
            self._spawn(self._create(new))

    async def _create(self, names: list[str]) -> None:
        results = dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        try:
            results |= await self._ask(names)
        except ApiError as error:
            logger.warning(
                "Topics %s were not created automatically: %s", ", ".join(names), error.message
            )
        finally:
            for name, code in results.items():
                self._in_flight.pop(name).set_result(code)

    async def _ask(self, names: list[str]) -> dict[str, ErrorCode]:
        topics = [self._topic(name) for name in names]
        response = await self.create_topics(
            CreateTopicsRequest(topics=topics, timeout_ms=self._timeout_ms())
        )
        results = {}
        existing = []
        for result in response.topics:
            code = ErrorCode(result.error_code)
            if code is ErrorCode.TOPIC_ALREADY_EXISTS:
                # Another broker was faster.
                existing.append(result.name)
                code = ErrorCode.NONE
            elif code is not ErrorCode.NONE:
                logger.warning(
                    "Topic %s was not created automatically: %s", result.name, result.error_message
                )
            if result.name in names:
                results[result.name] = code
                self._remember(result.name, code)
        await self._known(existing)
        return results

    def _remember(self, name: str, code: ErrorCode) -> None:
        self._rejections.pop(name, None)
        if code is not ErrorCode.NONE:
            self._rejections[name] = code
            if len(self._rejections) > REJECTIONS_MAX:
                del self._rejections[next(iter(self._rejections))]

    async def _known(self, names: Iterable[str]) -> None:
        """Wait for a short time until this broker has topics that exist in its metadata."""
        topics = self._image().topics_by_name
        missing = [name for name in names if name not in topics]
        if missing:
            loop = asyncio.get_running_loop()
            futures = [self._awaited.setdefault(name, loop.create_future()) for name in missing]
            await self._within(KNOWN_MS_MAX, futures)
            unknown = [name for name in missing if self._awaited.pop(name, None) is not None]
            if unknown:
                logger.info("topics are not in this broker's metadata yet: %s", ", ".join(unknown))

    async def _within(self, limit_ms: int, futures: Iterable[asyncio.Future[Any]]) -> None:
        """Wait for all of them, but no longer than that; they continue in the background."""
        over = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(limit_ms, lambda: over.set_result(None))
        try:
            for future in futures:
                await asyncio.wait([future, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # Not part of a request: its client may go away while others wait for the same topic.
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _timeout_ms(self) -> int:
        timeout_ms: int = self._config()["request.timeout.ms"]
        return timeout_ms

    def _topic(self, name: str) -> Creatable:
        if name in INTERNAL_TOPICS:
            return _internal_topic(name, self._config())
        if name == AUDIT_TOPIC and (audit := _audit_topic(self._config())) is not None:
            return audit
        if name == METRICS_TOPIC:
            active = sum(broker.active for broker in self._image().brokers.values())
            return _metrics_topic(max(1, min(active, _METRICS_REPLICAS_MAX)))
        return Creatable(
            name=name,
            num_partitions=self._own("num.partitions"),
            replication_factor=self._own("default.replication.factor"),
        )

    def _own(self, key: str) -> int:
        """The value in this broker's configuration, otherwise the controller's default."""
        config = self._config()
        value: int = config[key] if key in config.originals else CONTROLLER_DEFAULT
        return value


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


def _audit_topic(config: BrokerConfig) -> Creatable | None:
    """None if this broker does not write to it."""
    settings = audit_settings(config.originals)
    if settings is None or settings.topic is None:
        return None
    factor = settings.topic.replication_factor or config["offsets.topic.replication.factor"]
    return Creatable(
        name=AUDIT_TOPIC,
        num_partitions=settings.topic.partitions,
        replication_factor=factor,
        configs=_configs(
            {
                "cleanup.policy": "delete",
                "retention.ms": str(settings.topic.retention_ms),
                "compression.type": "producer",
                # An event that was committed must not be lost.
                "unclean.leader.election.enable": "false",
            }
        ),
    )


def _metrics_topic(replication_factor: int) -> Creatable:
    """One partition: readers want all nodes, and there is one record per node and interval."""
    return Creatable(
        name=METRICS_TOPIC,
        num_partitions=1,
        replication_factor=replication_factor,
        configs=_configs({"cleanup.policy": "compact", "compression.type": "zstd"}),
    )


def _configs(values: dict[str, str]) -> list[CreateTopicsRequest.CreatableTopicConfig]:
    return [
        CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
        for name, value in values.items()
    ]
