"""Code of the user's that sees records on their way: what it implements, and how it is called.

Invariants: an interceptor that raises is logged and passed over; the record goes on as the
one before it left it, and the others are still called.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from moldau.client.errors import ConfigError

__all__ = [
    "ConsumerInterceptor",
    "Interceptors",
    "ProducerInterceptor",
    "resolve_interceptors",
]

_log = logging.getLogger(__name__)


class ProducerInterceptor(Protocol):
    """All methods are optional, and so are `configure(config)` and `close()`."""

    def on_send(self, record: Any) -> Any:
        """The record to send, before it is serialized; in the thread that sends."""
        ...

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """A record was acknowledged or has failed; in the client's own thread."""
        ...


class ConsumerInterceptor(Protocol):
    """All methods are optional, and so are `configure(config)` and `close()`."""

    def on_consume(self, records: Any) -> Any:
        """The records to hand out, before `poll` returns them."""
        ...

    def on_commit(self, offsets: Any) -> None:
        """Offsets have been committed."""
        ...


class Interceptors:
    """Those of one client, in the order of `interceptor.classes`."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def passed(self, method: str, subject: Any) -> Any:
        """What is left of a subject after all have seen it (`on_send`, `on_consume`)."""
        for each in self._interceptors:
            function = getattr(each, method, None)
            if function is None:
                continue
            try:
                subject = function(subject)
            except Exception:
                _log.warning("Interceptor %r failed in %s", each, method, exc_info=True)
        return subject

    def tell(self, method: str, *arguments: Any) -> None:
        """Tell all of something (`on_acknowledgement`, `on_commit`)."""
        for each in self._interceptors:
            function = getattr(each, method, None)
            if function is None:
                continue
            try:
                function(*arguments)
            except Exception:
                _log.warning("Interceptor %r failed in %s", each, method, exc_info=True)

    def close(self) -> None:
        self.tell("close")


def resolve_interceptors(
    setting: Iterable[Any] | None, config: Mapping[str, Any] | None = None
) -> Interceptors:
    """Objects, classes or dotted paths of classes, as `interceptor.classes` takes them."""
    found = []
    for each in setting or ():
        interceptor = _imported(each) if isinstance(each, str) else each
        if isinstance(interceptor, type):
            interceptor = interceptor()
        if hasattr(interceptor, "configure"):
            interceptor.configure(dict(config or {}))
        found.append(interceptor)
    return Interceptors(found)


def _imported(path: str) -> Any:
    module, _, name = path.strip().replace(":", ".").rpartition(".")
    try:
        if not module:
            raise ImportError("no module is named")
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError.invalid(
            "interceptor.classes", path, f"must be the path of a Python class: {error}"
        ) from error
