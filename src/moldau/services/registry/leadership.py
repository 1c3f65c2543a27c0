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
from moldau.services.registry.log import SchemaLog
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.election import Identity
from moldau.services.registry.machine.fencing import Fence, repair
from moldau.services.registry.machine.records import Noop, Record
from moldau.services.registry.machine.registry import Registry
from moldau.services.registry.topic import StoreError

__all__ = ["Leadership", "NotPrimary"]

logger = logging.getLogger(__name__)

R = TypeVar("R")
_RETRY_S: Final = 0.2
_REPAIRS_MAX: Final = 1_000


class NotPrimary(Exception):
    """Another instance writes, if any."""


class Leadership:
    def __init__(self, config: RegistryConfig, registry: Registry) -> None:
        self._config = config
        self._registry = registry
        self._fence = Fence()
        self.log = SchemaLog(config, self._apply)
        #: This instance, once it is known where it listens.
        self.identity: Identity | None = None
        self.primary: Identity | None = None
        self._epoch: int | None = None
        self._lock = asyncio.Lock()
        self._taking: asyncio.Task[None] | None = None
        self._to_repair: list[Record] = []
        self._settled = asyncio.Event()

    @property
    def is_primary(self) -> bool:
        """Whether it writes itself."""
        return self._epoch is not None and self._epoch == self._fence.epoch

    def _apply(self, record: Record, epoch: int | None) -> bool:
        if self._fence.accepts(record, epoch):
            self._registry.replay(record)
            return True
        if len(self._to_repair) < _REPAIRS_MAX:
            self._to_repair.append(record)
        return False

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
                    await self.log.settle()
                    epoch = self._fence.epoch + 1
                    opening = Noop(dict(self._registry.state.id_maxima), opens_term=True)
                    if await self.log.write([opening], epoch):
                        self._epoch = epoch
                        await self._repair()
                        self._settled.set()
                        logger.info("this instance is the primary, in term %d", epoch)
                        return
            except (KafkaError, StoreError) as error:
                logger.warning("becoming the primary failed and is retried: %s", error)
            await asyncio.sleep(_RETRY_S)

    async def _repair(self) -> None:
        """Write again what a former primary has hidden."""
        count = len(self._to_repair)
        records = [repair(self._registry.state, each) for each in self._to_repair]
        found = [each for each in records if each is not None]
        if found and self._epoch is not None:
            await self.log.write(found, self._epoch)
        del self._to_repair[:count]

    async def wait_settled(self, timeout_ms: int) -> None:
        """Return when a primary is known, or after a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._settled.wait()

    async def stop(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
        self._epoch = None
        await self.log.stop()

    # Writing.

    async def write(self, decide: Callable[[], Decision[R]]) -> R:
        """Raises NotPrimary, RegistryError, StoreError or KafkaError."""
        async with self._lock:
            if not self.is_primary or self._epoch is None:
                raise NotPrimary
            if self._to_repair:
                await self._repair()
            if self.log.uncertain:
                await self.log.settle()
            decision = decide()
            if decision.records and not await self.log.write(decision.records, self._epoch):
                self._epoch = None
                raise NotPrimary
            return decision.response
