"""Leadership: whether this instance is the primary, and the only way to write.

Invariants: a write is decided on a state that holds everything written before it; one write is
under way at a time; it is answered only if no newer primary has made it void
(`machine/fencing.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from moldau.client import KafkaError
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.log import TopicLog
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.election import Identity
from moldau.services.registry.machine.journals import Journal, KeysJournal, SchemasJournal
from moldau.services.registry.topic import StoreError

__all__ = ["Leadership", "NotPrimary"]

logger = logging.getLogger(__name__)

R = TypeVar("R")
_RETRY_S: Final = 0.2


class NotPrimary(Exception):
    """Another instance writes, if any."""


class Leadership:
    def __init__(self, config: RegistryConfig, schemas: SchemasJournal, keys: KeysJournal) -> None:
        self._schemas = schemas
        self.log = TopicLog(config, schemas)
        self.keys_log = TopicLog(config, keys)
        self._logs: list[tuple[TopicLog, Journal]] = [(self.log, schemas), (self.keys_log, keys)]
        #: This instance, once it is known where it listens.
        self.identity: Identity | None = None
        self.primary: Identity | None = None
        self._epoch: int | None = None
        self._lock = asyncio.Lock()
        self._taking: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()

    @property
    def is_primary(self) -> bool:
        """Whether it writes itself."""
        return self._epoch is not None and self._epoch == self._schemas.epoch

    async def start(self) -> None:
        """Read the topics. Raises StoreError."""
        for log, _ in self._logs:
            await log.start()

    # Terms.

    def on_primary(self, primary: Identity | None) -> None:
        """What the group has decided."""
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None
        if primary != self.primary:
            logger.info("the primary is %s", "not known" if primary is None else primary.url)
        self.primary = primary
        self._settled.clear()
        if self.identity is not None and self.identity.same_instance(primary):
            if self.is_primary:
                self._settled.set()
            else:
                loop = asyncio.get_running_loop()
                self._taking = loop.create_task(self._take_office())
        else:
            self._epoch = None
            if primary is not None:
                self._settled.set()

    async def _take_office(self) -> None:
        while True:
            try:
                async with self._lock:
                    if await self._open_term():
                        self._settled.set()
                        logger.info("this instance is the primary, in term %d", self._epoch)
                        return
            except (KafkaError, StoreError) as error:
                logger.warning("becoming the primary failed and is retried: %s", error)
            await asyncio.sleep(_RETRY_S)

    async def _open_term(self) -> bool:
        """False if another instance was quicker."""
        for log, _ in self._logs:
            await log.settle()
        epoch = self._schemas.epoch + 1
        for log, journal in self._logs:
            opening = journal.opening()
            if opening and not await log.write(opening, epoch):
                return False
        self._epoch = epoch
        await self._repair()
        return True

    async def _repair(self) -> None:
        """Write again what a former primary has hidden."""
        for log, journal in self._logs:
            records = journal.repairs()
            if records and self._epoch is not None:
                await log.write(records, self._epoch)
            journal.repaired()

    async def wait_settled(self, timeout_ms: int) -> None:
        """Return when a primary is known, or after a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._settled.wait()

    async def stop(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
        self._epoch = None
        for log, _ in self._logs:
            await log.stop()

    # Writing.

    async def write(self, decide: Callable[[], Decision[R]], log: TopicLog | None = None) -> R:
        """Raises NotPrimary, RegistryError, StoreError or KafkaError."""
        target = self.log if log is None else log
        async with self._lock:
            if not self.is_primary or self._epoch is None:
                raise NotPrimary
            for each, _ in self._logs:
                if each.uncertain:
                    await each.settle()
            await self._repair()
            decision = decide()
            if decision.records and not await target.write(decision.records, self._epoch):
                self._epoch = None
                raise NotPrimary
            return decision.response
