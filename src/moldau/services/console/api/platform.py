"""What the platform itself did: the services that `moldau up` runs, its messages and their logs."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any, Final

from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Request
from moldau.services.console.api.routing import CLUSTER, api, number, text
from moldau.services.console.backend import Backend
from moldau.services.console.machine.errors import missing
from moldau.services.console.remote import require_management

__all__ = ["PlatformHandlers"]

_BYTES_MAX: Final = 512 * 1024
_LINES_MAX: Final = 2_000
_NAME: Final = re.compile(r"[a-z]{1,30}")


class PlatformHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "platform"
        return [
            api("GET", f"{CLUSTER}/platform", self.status, "Services of `moldau up`", tag=tag),
            api("GET", f"{CLUSTER}/platform/logs/{{service}}", self.log, "The end of a log",
                tag=tag, parameters=(number("lines", "how many"), text("search", "part of a line")),
            ),
        ]  # fmt: skip

    async def status(self, request: Request) -> dict[str, Any]:
        with self._backend.call(request):
            folder = self._folder()
            if folder is None:
                return {"running": False, "services": [], "messages": [], "logs": []}
            found = await asyncio.to_thread(_read_status, folder)
            logs = sorted(path.stem for path in (folder / "logs").glob("*.log"))
            return {"running": bool(found), "services": [], "messages": [], **found, "logs": logs}

    async def log(self, request: Request) -> dict[str, Any]:
        """Logs may hold what ACLs hide, so they need ALTER on the cluster."""
        service = request.path["service"]
        with self._backend.call(request) as call:
            await require_management(call)
            folder = self._folder()
            if folder is None or not _NAME.fullmatch(service):
                raise missing("log of", service)
            path = folder / "logs" / f"{service}.log"
            lines = await asyncio.to_thread(_tail, path)
            search = (request.text("search") or "").lower()
            if search:
                lines = [line for line in lines if search in line.lower()]
            count = min(_LINES_MAX, request.number("lines") or 300)
            return {"data": lines[-count:]}

    def _folder(self) -> Path | None:
        data = self._backend.config["platform.data"]
        return Path(data) if data else None


def _read_status(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "status.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _BYTES_MAX))
            return file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        raise missing("log of", path.stem) from None
    except OSError as error:
        raise HttpError(502, f"The log cannot be read: {error.strerror}.") from None
