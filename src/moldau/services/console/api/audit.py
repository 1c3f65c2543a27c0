"""What was changed through this console."""

from __future__ import annotations

import contextlib
from typing import Any

from moldau.client.errors import KafkaError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.routing import CLUSTER, api, number
from moldau.services.console.backend import Backend
from moldau.services.console.scanning import Scan, ScanRequest

__all__ = ["AuditHandlers"]

SHOWN_MAX = 5000


class AuditHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        return [
            api("GET", f"{CLUSTER}/audit", self.list, "The last changes, latest first",
                tag="audit", parameters=(number("limit", "entries, 200"),)),
        ]  # fmt: skip

    async def list(self, request: Request) -> dict[str, Any]:
        """From the topic, as the user may read it; from memory where there is no login."""
        limit = min(SHOWN_MAX, request.number("limit", 200) or 200)
        audit = self._backend.audit
        with self._backend.call(request) as call:
            entries: list[Any] = []
            source = "topic"
            try:
                if not audit.topic:
                    raise KafkaError("no topic")
                wanted = ScanRequest(start="newest", limit=limit, value_format="json")
                scan = Scan(call, audit.topic, wanted, cut=None)
                async with contextlib.aclosing(scan.run()) as rounds:
                    async for batch in rounds:
                        found = [each.shown["value"]["value"] for each in batch]
                        # Others may write to the topic, too.
                        entries += [each for each in found if isinstance(each, dict)]
                entries.reverse()
            except KafkaError:
                if request.principal.secret is not None:
                    raise
                source = "memory"
                entries = audit.recent(call.cluster.name)[:limit]
            return {"data": entries, "topic": audit.topic, "source": source}
