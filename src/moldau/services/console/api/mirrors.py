"""Mirrors: what MirrorMaker's naming shows of other clusters, and the connectors that copy."""

from __future__ import annotations

import re
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.routing import CLUSTER, api
from moldau.services.console.backend import Backend, Call
from moldau.services.console.lists import topic_names
from moldau.services.console.remote import Remote

__all__ = ["MirrorHandlers"]

_CHECKPOINTS: Final = re.compile(r"(.+)\.checkpoints\.internal")
_SYNCS: Final = re.compile(r"mm2-offset-syncs\.(.+)\.internal")


class MirrorHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        return [api("GET", f"{CLUSTER}/mirrors", self.list, "Mirrors", tag="mirrors")]

    async def list(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request) as call:
            names = await topic_names(call)
            facts = call.watcher.snapshot.topics
            sources = {found[1] for name in names if (found := _CHECKPOINTS.fullmatch(name))}
            targets = sorted(found[1] for name in names if (found := _SYNCS.fullmatch(name)))
            rows = []
            for source in sorted(sources):
                copies = sorted(name for name in names if _is_copy(name, source))
                rates = [facts[name].rate or 0.0 for name in copies if name in facts]
                rows.append(
                    {
                        "source": source,
                        "topics": copies,
                        "rate": sum(rates),
                        "records": sum(facts[name].records for name in copies if name in facts),
                    }
                )
            return {"data": rows, "targets": targets, "connectors": await _connectors(call)}


def _is_copy(name: str, source: str) -> bool:
    return name.startswith(f"{source}.") and not name.endswith(".internal")


async def _connectors(call: Call) -> list[dict[str, Any]]:
    """Those of Connect that mirror; none if there is no Connect."""
    try:
        found = await Remote(call, "connect.url").ask(
            "GET", "/connectors?expand=status&expand=info"
        )
    except HttpError:
        return []
    return [
        {
            "name": name,
            "class": each["info"]["config"].get("connector.class", ""),
            "state": each["status"]["connector"]["state"],
            "source": each["info"]["config"].get("source.cluster.alias"),
            "target": each["info"]["config"].get("target.cluster.alias"),
        }
        for name, each in sorted(found.items())
        if "Mirror" in each["info"]["config"].get("connector.class", "")
    ]
