"""The hand-written part of the blocking admin client; tools/generate_twins.py generates the rest.

By hand: the constructor and the end, which differ by the thread. Each operation runs on the
client's own event loop thread, and the caller waits for its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from moldau.client.admin.asynchronous import AsyncAdmin
from moldau.client.environment import ENVIRONMENT
from moldau.client.other_clients import ADMIN_NAMES, point_from

if TYPE_CHECKING:
    from moldau.client.config.keywords import AdminKeywords

__all__ = ["BlockingAdmin"]


@point_from(ADMIN_NAMES)
class BlockingAdmin:
    """Administers a cluster.

    Operations on several things give `Results`, by thing. They raise the first error (its
    `results` holds what became of the others), or with `check=False` leave that to the caller.
    Each retries what passes until its `timeout` (seconds), `default.api.timeout.ms` if None.
    """

    def __init__(
        self, config: Mapping[str, Any] | None = None, **settings: Unpack[AdminKeywords]
    ) -> None:
        self._admin = AsyncAdmin(config, **settings)
        self._thread = ENVIRONMENT.get().thread("moldau-admin")
        try:
            self._thread.call(self._admin.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        self._closed = False
        self._thread.ended_with(self, "Admin", self._admin.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._admin._described()}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Close all connections. Operations under way in other threads fail.

        >>> admin.close()
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._thread.call(self._admin.close(timeout))
        finally:
            self._thread.stop()
