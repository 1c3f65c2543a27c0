"""Decides when the Spark server is to be started, and when a failed start is retried."""

from __future__ import annotations

from moldau.peers.machine.backoff import ExponentialBackoff, RandomSource
from moldau.pipelines.control.machine.events import ServerSeen, ServerStartFailed
from moldau.pipelines.machine.records import ErrorRecord

__all__ = ["ServerReconciler"]


class ServerReconciler:
    """The state of the deployment's server.

    Invariants: nothing is decided before the server has been looked at; one start is under way at
    a time; failures in a row are retried ever later, a server that ran well starts with short
    pauses again.
    """

    def __init__(
        self, random: RandomSource, backoff: ExponentialBackoff, *, well_after_ms: int
    ) -> None:
        self._random = random
        self._backoff = backoff
        self._well_after_ms = well_after_ms
        self.is_known = False
        #: None while no server runs.
        self.id: str | None = None
        #: It has run since the loop started, so it is to be kept running.
        self.has_run = False
        self.error: ErrorRecord | None = None
        self._is_starting = False
        self._attempts = 0
        self._retry_at_ms = 0
        self._since_ms = 0

    def on_seen(self, event: ServerSeen, now_ms: int) -> bool:
        """True if another server runs than before, or none any more."""
        self.is_known = True
        if event.server_id is not None:
            self._is_starting = False
            self.has_run = True
            self.error = None
        if event.server_id == self.id:
            return False
        if self.id is not None and event.server_id is None:
            self._on_failure(now_ms)
        self.id = event.server_id
        self._since_ms = now_ms
        return True

    def on_start_failed(self, event: ServerStartFailed, now_ms: int) -> None:
        self._is_starting = False
        self._on_failure(now_ms)
        self.error = event.error

    def on_tick(self, now_ms: int) -> None:
        if self.id is not None and now_ms - self._since_ms >= self._well_after_ms:
            self._attempts = 0

    def start(self, now_ms: int, *, wanted: bool) -> bool:
        """Whether to start it now."""
        if self._is_starting or not self.is_known or self.id is not None:
            return False
        self._is_starting = wanted and now_ms >= self._retry_at_ms
        return self._is_starting

    def _on_failure(self, now_ms: int) -> None:
        self._attempts += 1
        self._retry_at_ms = now_ms + self._backoff.delay_ms(self._attempts, self._random)
