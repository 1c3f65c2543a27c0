"""Sessions: who is connected here, and the sessions topic that all proxies share.

A client that connects is claimed in the topic, which ends its connection at any other proxy. The
claim is read back before the session goes on, so everything that the previous owner had stored is
known by then. `machine/session_book.py` says what counts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from moldau.client import AsyncAdmin, KafkaError
from moldau.clock import Clock
from moldau.services.mqtt.clients import ClientSet
from moldau.services.mqtt.config import MqttConfig
from moldau.services.mqtt.machine.flow import Flow, read_flow
from moldau.services.mqtt.machine.packets import Will
from moldau.services.mqtt.machine.reasons import MqttError, Reason
from moldau.services.mqtt.machine.session_book import (
    SessionBook,
    StoredSession,
    Version,
    proxy_key,
    session_key,
)
from moldau.services.mqtt.session import Session
from moldau.services.mqtt.state_topic import Record, StateTopic

__all__ = ["Sessions"]

logger = logging.getLogger(__name__)

_CLAIMS_MAX: Final = 5
_SWEEP_S: Final = 5.0
#: Sessions that are stored at the same time.
_COMMITS_MAX: Final = 200

PublishWill = Callable[[str, Will, ClientSet | None], Awaitable[None]]


class Sessions:
    def __init__(self, config: MqttConfig, clock: Clock, publish_will: PublishWill) -> None:
        self._config = config
        self._clock = clock
        self._publish_will = publish_will
        self.proxy_id = uuid.uuid4().hex
        self.book = SessionBook()
        self.topic = StateTopic(config, config["sessions.topic"], self._apply)
        self.here: dict[str, Session] = {}
        self._locks: dict[str, tuple[asyncio.Lock, list[int]]] = {}
        self._wills: dict[str, asyncio.Task[None]] = {}
        #: Sessions that ended with their connection, until that is read from the log.
        self._over: dict[str, Version] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._leaving: set[asyncio.Task[None]] = set()

    async def start(self, admin: AsyncAdmin) -> None:
        await self.topic.start(admin)
        await self._beat()
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._commit_often()),
            loop.create_task(self._beat_often()),
            loop.create_task(self._sweep_often()),
        ]

    async def close_all(self) -> None:
        """Disconnect all clients and store their sessions."""
        for task in (*self._tasks, *self._wills.values()):
            task.cancel()
        sessions = list(self.here.values())
        for session in sessions:
            if session.wire is not None:
                session.wire.close(Reason.SERVER_SHUTTING_DOWN, "the proxy is stopped")
        ends = (self.end(session, with_will=True) for session in sessions)
        await asyncio.gather(*ends, return_exceptions=True)

    async def stop(self) -> None:
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=5)
        with suppress(KafkaError, TimeoutError):
            await self.topic.append(proxy_key(self.proxy_id), None)
        await self.topic.stop()

    # Clients that come and go.

    async def open(
        self,
        client_id: str,
        clients: ClientSet,
        *,
        user: str,
        clean: bool,
        receive_max: int,
        is_abandoned: Callable[[], bool],
    ) -> tuple[Session, Flow | None]:
        """The session of a client that connects, and its stored flow if it had a session.

        Raises MqttError, KafkaError.
        """
        lock, users = self._locks.setdefault(client_id, (asyncio.Lock(), [0]))
        users[0] += 1
        try:
            async with lock:
                if is_abandoned():
                    raise MqttError(Reason.UNSPECIFIED_ERROR, "the client has hung up")
                return await self._open(client_id, clients, user, clean, receive_max)
        finally:
            users[0] -= 1
            if not users[0]:
                del self._locks[client_id]

    async def _open(
        self, client_id: str, clients: ClientSet, user: str, clean: bool, receive_max: int
    ) -> tuple[Session, Flow | None]:
        old = self.here.get(client_id)
        stored = self.book.get(client_id)
        owner = old.user if old is not None else (stored.user if stored is not None else user)
        if owner != user:
            raise MqttError(
                Reason.CLIENT_IDENTIFIER_NOT_VALID, "another user has a session of this name"
            )
        if old is not None:
            if old.wire is not None:
                old.wire.close(Reason.SESSION_TAKEN_OVER, "the client has connected again")
            await self.end(old, with_will=True, session_goes_on=not clean)
            stored = self.book.get(client_id)
        if stored is None or self._is_over(stored):
            clean = True
        will = self._wills.pop(client_id, None)
        if will is not None and not clean:
            # It came back before the delay was over.
            will.cancel()
        version, found = await self._claim(client_id, user, clean)
        session = Session(
            client_id, version, self._config, clients, self.topic, self._clock,
            user=user, receive_max=receive_max,
        )  # fmt: skip
        flow: Flow | None = None
        if not clean:
            flow = read_flow(found.flow)
            session.inbound.pending = flow.pending
            session.unrestored = flow
        self.here[client_id] = session
        return session, flow

    async def _claim(self, client_id: str, user: str, clean: bool) -> tuple[Version, StoredSession]:
        for _ in range(_CLAIMS_MAX):
            known = self.book.get(client_id)
            epoch = max(self._clock.now_ms(), known.version.epoch + 1 if known else 0)
            version = Version(epoch, self.proxy_id)
            claim = {"claim": True, "clean": clean, "user": user}
            key = session_key("s", client_id, version)
            await self.topic.append(key, json.dumps(claim).encode(), read_back=True)
            found = self.book.get(client_id)
            if found is not None and found.version == version:
                return version, found
        raise MqttError(Reason.SERVER_BUSY, "the client connects to several proxies at once")

    async def restore(self, session: Session, flow: Flow | None) -> None:
        """Subscribe to what a stored session had. Raises KafkaError."""
        stored = self.book.get(session.client_id)
        if stored is not None and flow is not None:
            for request, number in stored.subscriptions:
                try:
                    await session.restore(request, number)
                except MqttError as error:
                    logger.warning(
                        "%r is not subscribed to %r any more: %s",
                        session.client_id, request.filter, error,
                    )  # fmt: skip

    def resume(self, session: Session, flow: Flow | None) -> None:
        """The client can be sent messages now."""
        session.attach()
        if flow is None:
            return
        positions = session.hub_positions()
        # A topic that the stored session does not know was created since: from its beginning.
        behind = {key: flow.positions.get((key.topic, key.partition), 0) for key in positions}
        session.fall_behind(behind, flow)

    async def store_new(self, session: Session) -> None:
        """After a claim: the session as it is now, and an end to what it has replaced."""
        if session.persistent or session.will is not None:
            await session.store(connected=True)
        if session.persistent:
            await session.store_flow()
        stored = self.book.get(session.client_id)
        if stored is not None and stored.version == session.version:
            for version in list(stored.old):
                await self._delete(session.client_id, version)

    async def end(self, session: Session, *, with_will: bool, session_goes_on: bool = True) -> None:
        """The client is gone. Raises KafkaError if that cannot be stored."""
        if self.here.get(session.client_id) is not session:
            return
        del self.here[session.client_id]
        positions_known = session.persistent
        session.detach()
        try:
            if with_will and session.will is not None:
                goes_on = session.persistent and session_goes_on
                delay_s = min(session.will_delay_s, session.expiry_s) if goes_on else 0
                self._will_after(session, delay_s)
            session.will = None
            if positions_known:
                await session.store_flow()
                await session.store(connected=False)
            else:
                self._over[session.client_id] = session.version
                await self._delete(session.client_id, session.version)
        finally:
            session.leave_hub()

    def _will_after(self, session: Session, delay_s: int) -> None:
        will, clients, client_id = session.will, session.clients, session.client_id

        async def publish() -> None:
            await asyncio.sleep(delay_s)
            if will is not None:
                await self._publish_will(client_id, will, clients)

        task = asyncio.get_running_loop().create_task(publish())
        if delay_s:
            self._wills[client_id] = task
            task.add_done_callback(lambda _: self._forget_will(client_id, task))
        else:
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    def _forget_will(self, client_id: str, task: asyncio.Task[None]) -> None:
        if self._wills.get(client_id) is task:
            del self._wills[client_id]

    def _apply(self, record: Record) -> None:
        change = self.book.replay(record.key, record.value)
        if change is None:
            return
        self._over.pop(change.client_id, None)
        session = self.here.get(change.client_id)
        if (
            session is not None
            and change.version is not None
            and (change.version > session.version)
        ):
            # Another proxy has it now, with everything that was stored.
            del self.here[change.client_id]
            if session.wire is not None:
                session.wire.close(Reason.SESSION_TAKEN_OVER, "the client is connected elsewhere")
            if session.will is not None and not session.will_delay_s:
                self._will_after(session, 0)
            session.detach()
            session.leave_hub()

    async def _delete(self, client_id: str, version: Version) -> None:
        keys = [session_key(kind, client_id, version) for kind in ("f", "s")]
        await asyncio.gather(*(self.topic.append(key, None) for key in keys))

    # By the clock.

    async def _commit_often(self) -> None:
        while True:
            await asyncio.sleep(self._config["session.commit.interval.ms"] / 1000)
            changed = [
                each
                for each in self.here.values()
                if each.changed and each.persistent and not each.ended
            ]
            for start in range(0, len(changed), _COMMITS_MAX):
                part = changed[start : start + _COMMITS_MAX]
                try:
                    await asyncio.gather(*(each.store_flow() for each in part))
                except (KafkaError, TimeoutError) as error:
                    for each in part:
                        each.changed = True
                    logger.warning("sessions cannot be stored now: %s", error)
                    break

    async def _beat(self) -> None:
        value = json.dumps({"at": self._clock.now_ms()}).encode()
        await self.topic.append(proxy_key(self.proxy_id), value)

    async def _beat_often(self) -> None:
        while True:
            await asyncio.sleep(self._config["proxy.heartbeat.interval.ms"] / 1000)
            try:
                await self._beat()
            except KafkaError as error:
                logger.warning("the heartbeat of the proxy was not written: %s", error)

    async def _sweep_often(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            try:
                await self._sweep()
            except (KafkaError, TimeoutError) as error:
                logger.warning("old sessions were not removed and are tried again: %s", error)

    def _dead_proxies(self) -> set[str]:
        limit_ms = self._clock.now_ms() - self._config["proxy.timeout.ms"]
        return {owner for owner, at_ms in self.book.proxies.items() if at_ms < limit_ms}

    async def _sweep(self) -> None:
        """End sessions that are over. Of several proxies the first one does it."""
        dead = self._dead_proxies()
        alive = self.book.proxies.keys() - dead
        if alive and min(alive) != self.proxy_id:
            return
        for stored in list(self.book):
            owner = stored.version.owner
            if not stored.connected and self._is_over(stored):
                await self._delete(stored.client_id, stored.version)
                for version in list(stored.old):
                    await self._delete(stored.client_id, version)
            elif stored.connected and owner not in alive and owner != self.proxy_id:
                await self._adopt(stored)
        for owner in dead:
            await self.topic.append(proxy_key(owner), None)

    async def _adopt(self, stored: StoredSession) -> None:
        """The proxy of a connected client is gone: do what it would have done."""
        will, clean = stored.will, stored.expiry_s == 0
        expiry_s, will_delay_s = stored.expiry_s, stored.will_delay_s
        version, found = await self._claim(stored.client_id, stored.user, clean)
        for old in list(found.old):
            await self._delete(stored.client_id, old)
        if will is not None and self._config.authenticates:
            # Only the user may publish it, and nobody here has the user's password.
            logger.warning("the will of %r is lost with its proxy", stored.client_id)
        elif will is not None:
            delay_s = min(will_delay_s, expiry_s)
            task = asyncio.get_running_loop().create_task(
                self._adopted_will(stored.client_id, will, delay_s)
            )
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        if clean:
            await self._delete(stored.client_id, version)
            return
        content = {
            "user": stored.user, "connected": False, "expiry": expiry_s,
            "at": self._clock.now_ms(), "will": None,
            "subs": [
                [each.filter, each.qos, each.no_local, each.retain_as_published,
                 each.retain_handling, number]
                for each, number in found.subscriptions
            ],
        }  # fmt: skip
        key = session_key("s", stored.client_id, version)
        await self.topic.append(key, json.dumps(content).encode())
        flow = json.dumps(found.flow).encode()
        await self.topic.append(session_key("f", stored.client_id, version), flow)

    async def _adopted_will(self, client_id: str, will: Will, delay_s: int) -> None:
        await asyncio.sleep(delay_s)
        await self._publish_will(client_id, will, None)

    def _is_over(self, stored: StoredSession) -> bool:
        if stored.expiry_s == 0 or self._over.get(stored.client_id) == stored.version:
            return True
        if stored.connected or stored.expiry_s >= 0xFFFFFFFF:
            return False
        return self._clock.now_ms() >= stored.at_ms + stored.expiry_s * 1000
