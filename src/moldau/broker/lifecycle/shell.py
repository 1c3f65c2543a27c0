"""Runs a `BrokerLifecycle`: sends its requests to the active controller and runs its timers.

Invariants: there is at most one task, for the request in flight; nothing is sent after `close` or
after the machine has stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from moldau.broker.lifecycle.machine.events import (
    BecameReadyToUnfence,
    BrokerState,
    CallFailed,
    CaughtUp,
    ControlledShutdownBegun,
    ControllerChanged,
    DirectoriesCordoned,
    DirectoryFailed,
    Effect,
    Event,
    HeartbeatAnswered,
    RegistrationAnswered,
    RegistrationOutdated,
    Report,
    SendHeartbeat,
    SendRegistration,
    SetTimer,
    ShutdownBegun,
    Started,
    Stopped,
    Timer,
    TimerFired,
    Unfenced,
)
from moldau.broker.lifecycle.machine.lifecycle import BrokerLifecycle
from moldau.clock import Alarm, Clock
from moldau.peers.channel import ChannelError
from moldau.wire.apis import ApiKey
from moldau.wire.errors import ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import BrokerHeartbeatResponse, BrokerRegistrationResponse

#: As long as Kafka's broker waits for the controller to let it go.
CONTROLLED_SHUTDOWN_TIMEOUT_MS: Final = 300_000

logger = logging.getLogger(__name__)


class Controller(Protocol):
    """The way to the active one: `controller_channel.ControllerChannel`."""

    async def call(self, key: ApiKey, request: Message, *, timeout_ms: int) -> Message: ...


class LifecycleFailed(Exception):
    """This broker cannot be, or stay, a part of the cluster; the message says why."""


class BrokerLifecycleManager:
    """See the module. All methods run on the loop's thread and wait for nothing."""

    def __init__(
        self,
        machine: BrokerLifecycle,
        controller: Controller,
        clock: Clock,
        *,
        session_timeout_ms: int,
        metadata_offset: Callable[[], int],
        cordoning_supported: Callable[[], bool] = lambda: False,
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`metadata_offset` is that of the last image which all components have applied.
        `on_failure` is called if the broker must stop because of an error."""
        loop = asyncio.get_running_loop()
        self._machine = machine
        self._controller = controller
        self._clock = clock
        # Two tries fit into a session.
        self._call_timeout_ms = max(1, session_timeout_ms // 2)
        self._metadata_offset = metadata_offset
        self._cordoning_supported = cordoning_supported
        self._on_failure = on_failure
        self._alarms: dict[Timer, Alarm] = {}
        self._call: asyncio.Task[None] | None = None
        #: When the request in flight times out.
        self.call_ends_at_ms: int | None = None
        #: Done when the metadata include the registration; cancelled if the broker stops before.
        self.caught_up: asyncio.Future[None] = loop.create_future()
        #: Done when the broker is unfenced; cancelled if the broker stops before.
        self.unfenced: asyncio.Future[None] = loop.create_future()
        #: Done when this broker has left the cluster: it gets no clients and sends no requests.
        self.stopped: asyncio.Future[None] = loop.create_future()

    @property
    def state(self) -> BrokerState:
        return self._machine.state

    @property
    def broker_epoch(self) -> int:
        """-1 before the first registration."""
        return self._machine.broker_epoch

    def start(self) -> None:
        """Register, and send heartbeats from then on."""
        self._step(Started())

    def set_ready_to_unfence(self) -> None:
        """Everything that the metadata put here can be served."""
        self._step(BecameReadyToUnfence())

    def propagate_directory_failure(self, directory_id: UUID, *, timeout_ms: int) -> None:
        self._step(DirectoryFailed(directory_id, timeout_ms))

    def propagate_directories_cordoned(self, directory_ids: frozenset[UUID]) -> None:
        """All that are cordoned now."""
        self._step(DirectoriesCordoned(directory_ids))

    def resend_registration(self) -> None:
        """The cluster should know more of this broker than it did: a higher metadata version."""
        self._step(RegistrationOutdated())

    def on_controller_changed(self) -> None:
        """Send a heartbeat to the new controller at once."""
        self._step(ControllerChanged())

    def begin_controlled_shutdown(self, timeout_ms: int = CONTROLLED_SHUTDOWN_TIMEOUT_MS) -> None:
        """Have leaderships moved away; `stopped` is done when they are, or time is over."""
        self._step(ControlledShutdownBegun(timeout_ms))

    def close(self) -> None:
        """Stop now, without asking."""
        self._step(ShutdownBegun())

    # Inside.

    def _step(self, event: Event) -> None:
        for effect in self._machine.step(event):
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendRegistration(request):
                self._send(partial(self._register, request))
            case SendHeartbeat(request):
                self._send(partial(self._beat, request))
            case SetTimer(timer, delay_ms):
                self._set_timer(timer, delay_ms)
            case CaughtUp():
                _done(self.caught_up)
            case Unfenced():
                _done(self.unfenced)
            case Report(message, is_problem):
                logger.log(logging.WARNING if is_problem else logging.INFO, "%s", message)
            case Stopped(failure):
                self._on_stopped(failure)

    def _set_timer(self, timer: Timer, delay_ms: int) -> None:
        former = self._alarms.pop(timer, None)
        if former is not None:
            former.cancel()
        self._alarms[timer] = self._clock.call_later(delay_ms, partial(self._on_alarm, timer))

    def _on_alarm(self, timer: Timer) -> None:
        self._alarms.pop(timer, None)
        self._step(TimerFired(timer, self._metadata_offset(), self._cordoning_supported()))

    def _on_stopped(self, failure: str | None) -> None:
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        if self._call is not None:
            self._call.cancel()
        self.caught_up.cancel()
        self.unfenced.cancel()
        _done(self.stopped)
        if failure is not None:
            self._on_failure(LifecycleFailed(failure))

    # Calls.

    def _send(self, call: Callable[[], Awaitable[Event]]) -> None:
        task = asyncio.get_running_loop().create_task(self._run(call))
        self._call = task
        self.call_ends_at_ms = self._clock.elapsed_ms() + self._call_timeout_ms

    async def _run(self, call: Callable[[], Awaitable[Event]]) -> None:
        try:
            try:
                event = await call()
            except ChannelError as error:
                event = CallFailed(str(error))
            self._call = self.call_ends_at_ms = None
            self._step(event)
        except Exception as error:
            # A bug: without heartbeats the broker is not part of the cluster, so it must stop.
            self._on_failure(error)

    async def _register(self, request: Message) -> Event:
        response = await self._controller.call(
            ApiKey.BROKER_REGISTRATION, request, timeout_ms=self._call_timeout_ms
        )
        if not isinstance(response, BrokerRegistrationResponse):
            return CallFailed(f"unexpected response {type(response).__name__}")
        return RegistrationAnswered(_error(response.error_code), response.broker_epoch)

    async def _beat(self, request: Message) -> Event:
        response = await self._controller.call(
            ApiKey.BROKER_HEARTBEAT, request, timeout_ms=self._call_timeout_ms
        )
        if not isinstance(response, BrokerHeartbeatResponse):
            return CallFailed(f"unexpected response {type(response).__name__}")
        return HeartbeatAnswered(
            _error(response.error_code),
            is_caught_up=response.is_caught_up,
            is_fenced=response.is_fenced,
            should_shut_down=response.should_shut_down,
        )


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # of a newer controller


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
