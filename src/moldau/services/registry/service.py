"""RegistryService: one instance of the registry, from its topic to its listeners.

Start: the topic is read to its end, the listeners open, then the instance joins the group that
elects the primary. Stop: in reverse, so that another instance takes over at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from moldau.client import AsyncAdmin, KafkaError
from moldau.client.errors import RecordTooLargeError
from moldau.http.machine.errors import HttpError
from moldau.http.request import Answer, Request
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.forwarding import FORWARD_HEADER, OFFSET_HEADER, Forwarding
from moldau.services.registry.leadership import Leadership, NotPrimary
from moldau.services.registry.log import StoreTimeout, TopicLog
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.errors import RegistryError, schema_too_large
from moldau.services.registry.machine.journals import KeysJournal, SchemasJournal
from moldau.services.registry.machine.keys import KeyRegistry
from moldau.services.registry.machine.parsing import Languages
from moldau.services.registry.machine.registry import Registry
from moldau.services.registry.topic import StoreError, ensure_topic

__all__ = ["RegistryService", "as_http_error"]

logger = logging.getLogger(__name__)

R = TypeVar("R")
_ELECTION_MS: Final = 5_000


class RegistryService:
    """What the handlers use: the registry to read, and `write`."""

    def __init__(self, config: RegistryConfig, languages: Languages) -> None:
        self.config = config
        self.registry = Registry(languages, config.defaults, cache_size=config.cache_size)
        self.keys = KeyRegistry(config.keys_max)
        self.leadership = Leadership(
            config,
            SchemasJournal(config.topic, self.registry),
            KeysJournal(config.keys_topic, self.keys),
        )
        self.kafka_cluster_id = ""
        self._forwarding = Forwarding(config)

    async def open(self) -> None:
        """Read the topic. Raises StoreError or KafkaError."""
        admin = AsyncAdmin(dict(self.config.clients))
        try:
            async with asyncio.timeout(self.config.init_timeout_ms / 1000):
                self.kafka_cluster_id = (await admin.describe_cluster()).cluster_id or ""
                for topic in (self.config.topic, self.config.keys_topic):
                    await ensure_topic(admin, self.config, topic)
        except TimeoutError:
            raise StoreTimeout(
                f"no broker of {self.config.clients['bootstrap.servers']} answered within "
                f"kafkastore.init.timeout.ms ({self.config.init_timeout_ms} ms)"
            ) from None
        finally:
            await admin.close(timeout=5)
        await self.leadership.start()

    async def close(self) -> None:
        await self.leadership.stop()

    def health(self) -> dict[str, Any]:
        self.leadership.log.check()
        self.leadership.keys_log.check()
        primary = self.leadership.primary
        return {
            "primary": None if primary is None else primary.url,
            "is_primary": self.leadership.is_primary,
            "position": self.leadership.log.position,
        }

    async def write(
        self,
        request: Request,
        decide: Callable[[], Decision[R]],
        render: Callable[[R], Any],
        *,
        log: TopicLog | None = None,
    ) -> Answer:
        """Decide and write here, or have the primary do it. `log`: not that of schemas."""
        leadership = self.leadership
        if leadership.primary is None or (
            not leadership.is_primary and self._is_own(leadership.primary)
        ):
            await leadership.wait_settled(_ELECTION_MS)
        try:
            response = await leadership.write(decide, log)
        except NotPrimary:
            return await self._forward(request, log or leadership.log)
        except RecordTooLargeError:
            raise schema_too_large() from None
        headers = {}
        if FORWARD_HEADER in request.headers:
            headers[OFFSET_HEADER] = str((log or leadership.log).position)
        return Answer(body=render(response), headers=headers)

    def _is_own(self, primary: Any) -> bool:
        identity = self.leadership.identity
        return identity is not None and identity.same_instance(primary)

    async def _forward(self, request: Request, log: TopicLog) -> Answer:
        primary = self.leadership.primary
        if primary is None or self._is_own(primary) or FORWARD_HEADER in request.headers:
            raise RegistryError(500, 50004, "Leader not known.")
        answer, position = await self._forwarding.send(request, primary)
        # So that whoever asks this instance next sees what was written.
        with suppress(StoreTimeout):
            await log.reach(position)
        return answer


def as_http_error(error: Exception) -> HttpError | None:
    """What the handlers raise, for the HTTP side."""
    match error:
        case RegistryError():
            return HttpError(error.status, error.message, error_code=error.code)
        case StoreTimeout():
            return HttpError(500, f"Operation timed out: {error}", error_code=50002)
        case StoreError() | KafkaError():
            logger.error("the store failed: %s", error)
            return HttpError(500, f"Error in the backend data store: {error}", error_code=50001)
        case _:
            return None
