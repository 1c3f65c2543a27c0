"""Fencing of older task generations of exactly-once sources, and the key that signs requests."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from moldau.client import Admin
from moldau.connect.api import NotFoundError
from moldau.connect.built_in import PluginKind
from moldau.connect.machine.config_state import (
    ConfigState,
    SessionKey,
    fencing_record,
    session_key_record,
)
from moldau.connect.machine.ids import TaskId
from moldau.connect.plugins import named_plugin
from moldau.connect.runtime.clients import connector_client
from moldau.connect.runtime.worker import Worker, transactional_id
from moldau.services.connect.forwarding import send_internal
from moldau.services.connect.membership import Membership
from moldau.services.connect.stores import ConfigStore

logger = logging.getLogger(__name__)

_KEY_BYTES = 32


class Privileges:
    """What the leader does for all: fencing and session keys."""

    def __init__(self, worker: Worker, configs: ConfigStore) -> None:
        self._worker = worker
        self._configs = configs
        self._lock = asyncio.Lock()
        self.membership: Membership | None = None

    @property
    def _state(self) -> ConfigState:
        return self._configs.state

    async def fence(self, name: str) -> None:
        """Before tasks of a source start: those of earlier configurations can no longer write."""
        config = self._state.connectors.get(name)
        if config is None or not self._worker.config.exactly_once:
            return
        if self._worker.plugins.kind_of(*named_plugin(config)) is not PluginKind.SOURCE:
            return
        if name not in self._state.pending_fencing:
            return
        member = self.membership
        if member is None or member.is_leader:
            await self.fence_here(name)
            return
        await self.call_leader("PUT", f"/connectors/{name}/fence", None)
        await asyncio.to_thread(self._configs.refresh)

    async def fence_here(self, name: str) -> None:
        """On the leader."""
        async with self._lock:
            config = self._state.connectors.get(name)
            if config is None:
                raise NotFoundError(f"Connector {name} not found")
            if name not in self._state.pending_fencing:
                return
            count = self._state.task_counts.get(name, 0)
            earlier = self._state.fenced_counts.get(name)
            # A single task before and after fences itself, by its transactional id.
            if earlier is not None and not (earlier == 1 and count == 1):
                await asyncio.to_thread(self._fence_producers, name, earlier)
            await asyncio.to_thread(self._configs.write, [fencing_record(name, count)])

    def _fence_producers(self, name: str, count: int) -> None:
        config = self._worker.config
        resolved = config.resolved(self._state.connectors[name])
        ids = [transactional_id(config.values["group.id"], TaskId(name, i)) for i in range(count)]
        if not ids:
            return
        with Admin(connector_client(config.settings, "admin", resolved, defaults={})) as admin:
            admin.fence_producers(ids)
        logger.info("connector %s: %d tasks of an earlier configuration are fenced", name, count)

    async def call_leader(self, method: str, path: str, body: object) -> None:
        values = self._worker.config.values
        member = self.membership
        key = self._state.session_key or SessionKey(b"-", "HmacSHA256", 0)
        await send_internal(
            None if member is None else member.leader_url,
            method,
            path,
            body,
            key,
            values["inter.worker.signature.algorithm"],
        )

    async def renew_key(self) -> None:
        """On the leader: write a session key if there is none, or if it is too old."""
        values = self._worker.config.values
        if values["connect.protocol"].lower() != "sessioned":
            return
        now_ms = int(time.time() * 1000)
        found = self._state.session_key
        ttl_ms = values["inter.worker.key.ttl.ms"]
        if found is not None and (ttl_ms == 0 or now_ms - found.created_ms < ttl_ms):
            return
        size = values["inter.worker.key.size"]
        key = SessionKey(
            secrets.token_bytes(_KEY_BYTES if size is None else max(size // 8, 1)),
            values["inter.worker.key.generation.algorithm"],
            now_ms,
        )
        await asyncio.to_thread(self._configs.write, [session_key_record(key)])
