"""A query that failed: when it is started again, and whose fault it was.

Waits double from the first to the longest, and begin again after a query has run for as long as the
longest wait. The last errors are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Failures", "QueryFailure", "classified", "explained"]

#: By the names of errors in the chain of causes; what is not listed is nobody's fault for certain.
_USER = (
    "MissingSourceTopicError",
    "TopicAuthorizationFailedError",
    "GroupAuthorizationFailedError",
    "ClusterAuthorizationFailedError",
    "TransactionalIdAuthorizationFailedError",
    "UnknownTopicOrPartitionError",
    "FunctionError",
    "QueryFailed",
    "SerdeError",
    "DeserializationError",
)
_MESSAGE_MAX = 10_000
_SYSTEM = ("TaskMigratedError", "TimeoutError", "StoreError", "OSError", "InvariantError")


@dataclass(frozen=True, slots=True)
class QueryFailure:
    timestamp_ms: int
    message: str
    #: USER, SYSTEM or UNKNOWN.
    kind: str

    @property
    def entity(self) -> dict[str, Any]:
        return {
            "timestamp": self.timestamp_ms,
            "errorMessage": self.message,
            "type": self.kind,
        }


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def explained(error: BaseException) -> str:
    """What went wrong, and why: Streams says only where it happened."""
    texts: list[str] = []
    for each in _chain(error):
        text = f"{type(each).__name__}: {each}"
        # Some errors repeat the one that caused them.
        if not any(str(each) and str(each) in before for before in texts):
            texts.append(text)
    return "\nCaused by: ".join(texts)[:_MESSAGE_MAX]


def classified(error: BaseException) -> str:
    """USER for what a user can put right, SYSTEM for what the cluster can, else UNKNOWN."""
    for each in _chain(error):
        names = {kind.__name__ for kind in type(each).__mro__}
        if names.intersection(_USER) or "Authorization" in type(each).__name__:
            return "USER"
        if names.intersection(_SYSTEM):
            return "SYSTEM"
    return "UNKNOWN"


@dataclass(slots=True)
class Failures:
    """Of one query. Times are in milliseconds of a clock that only goes forward."""

    initial_ms: int
    max_ms: int
    kept_max: int
    errors: deque[QueryFailure] = field(init=False)
    _wait_ms: int = field(init=False, default=0)
    _failed_ms: int = field(init=False, default=0)
    #: When to start again; None while it runs.
    due_ms: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.errors = deque(maxlen=self.kept_max)

    def failed(self, failure: QueryFailure, now_ms: int) -> None:
        """Once for each failure."""
        ran_ms = now_ms - self._failed_ms - self._wait_ms
        if self._wait_ms == 0 or ran_ms >= self.max_ms:
            self._wait_ms = self.initial_ms
        else:
            self._wait_ms = min(self.max_ms, self._wait_ms * 2)
        self._failed_ms = now_ms
        self.due_ms = now_ms + self._wait_ms
        self.errors.append(failure)

    def is_due(self, now_ms: int) -> bool:
        return self.due_ms is not None and now_ms >= self.due_ms

    def restarted(self) -> None:
        self.due_ms = None
