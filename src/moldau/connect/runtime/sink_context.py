"""What a sink task may ask of its worker, and where it reports records that the target refuses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from moldau.client import Consumer, TopicPartition
from moldau.connect.api import ConnectError, IllegalWorkerStateError, PluginMetrics, SinkRecord
from moldau.connect.runtime.failures import Failures

_SETTLE_S = 30.0


class Reporter:
    """The errant record reporter. Offsets are committed only after `settle`."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._pending: deque[Any] = deque()

    def report(self, record: SinkRecord, error: BaseException) -> Any:
        found = self._failures.report(record, error)
        if found is None:
            found = Future[None]()
            found.set_result(None)
        else:
            self._pending.append(found)
        return found

    def wait_for(self, pending: Any) -> None:
        if pending is not None:
            self._pending.append(pending)

    def settle(self) -> None:
        """Wait until all reported records are in the dead-letter topic; ConnectError if not."""
        while self._pending:
            try:
                self._pending[0].result(_SETTLE_S)
            except Exception as error:
                self._failures.counts.dead_letter_failures += 1
                raise ConnectError(
                    f"A record could not be written to the dead-letter topic: {error}"
                ) from error
            self._pending.popleft()


class SinkContext:
    def __init__(self, config: Mapping[str, str], reporter: Reporter | None) -> None:
        self._config = dict(config)
        self.errant_record_reporter = reporter
        self.plugin_metrics = PluginMetrics()
        self.consumer: Consumer[bytes, bytes] | None = None
        self.paused: set[TopicPartition] = set()
        self.is_held: Callable[[], bool] = lambda: False
        self._offsets: dict[TopicPartition, int] = {}
        self._timeout_ms: int | None = None
        self._commit_requested = False

    def configs(self) -> dict[str, str]:
        return dict(self._config)

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._offsets.update({TopicPartition(*each): value for each, value in offsets.items()})

    def timeout(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms

    def assignment(self) -> set[TopicPartition]:
        return set(self._reading().assignment())

    def pause(self, *partitions: TopicPartition) -> None:
        found = [TopicPartition(*each) for each in partitions]
        self._reading().pause(found)
        self.paused.update(found)

    def resume(self, *partitions: TopicPartition) -> None:
        found = [TopicPartition(*each) for each in partitions]
        self.paused.difference_update(found)
        # While the whole task is held its runner resumes what is not in `paused`, later.
        if not self.is_held():
            self._reading().resume(found)

    def request_commit(self) -> None:
        self._commit_requested = True

    def _reading(self) -> Consumer[bytes, bytes]:
        if self.consumer is None:
            raise IllegalWorkerStateError("the task has not been started")
        return self.consumer

    def take_offsets(self) -> dict[TopicPartition, int]:
        found, self._offsets = self._offsets, {}
        return found

    def take_timeout(self) -> int | None:
        found, self._timeout_ms = self._timeout_ms, None
        return found

    def take_commit_request(self) -> bool:
        found, self._commit_requested = self._commit_requested, False
        return found
