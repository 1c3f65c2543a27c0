"""Login, logout, and what the pages need to know before anything else."""

from __future__ import annotations

from typing import Any

from moldau.http.machine.errors import HttpError
from moldau.http.machine.routes import Route
from moldau.http.request import Answer, Request
from moldau.services.console.api.bodies import body_of
from moldau.services.console.api.routing import api, fields
from moldau.services.console.backend import Backend
from moldau.services.console.login import COOKIE
from moldau.services.console.pages import page_table

__all__ = ["SessionHandlers"]


class SessionHandlers:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def routes(self) -> list[Route]:
        tag = "session"
        return [
            api("GET", "/session", self.show, "Who is logged in, and which pages there are",
                tag=tag, public=True),
            api("POST", "/session", self.login, "Log in with a user and password of the broker",
                tag=tag, public=True,
                body=fields("user", "password", user="string", password="string")),
            api("DELETE", "/session", self.logout, "Log out", tag=tag, public=True),
        ]  # fmt: skip

    async def show(self, request: Request) -> dict[str, Any]:
        config = self._backend.config
        found: dict[str, Any] = {
            "login": config.login,
            "user": None,
            "version": self._backend.version,
        }
        session = self._backend.login.session_of(request)
        if config.login != "NONE" and session is None:
            return found
        return {
            **found,
            "user": None if session is None else session.user,
            "read_only": config["read.only"],
            "clusters": [
                {"name": each.name, "services": each.services} for each in config.clusters.values()
            ],
            "pages": page_table(),
        }

    async def login(self, request: Request) -> Answer:
        if self._backend.config.login != "PASSWORD":
            raise HttpError(400, "This console has no login with a password.")
        # The route is public, so the origin has not been checked.
        self._backend.login.check_origin(request)
        body = await body_of(request)
        principal = await self._backend.login.check_password(
            body.text("user"), body.text("password")
        )
        session_id = self._backend.login.begin(principal)
        return Answer(
            body={"user": principal.name},
            headers={"Set-Cookie": session_cookie(request, session_id)},
        )

    async def logout(self, request: Request) -> Answer:
        self._backend.login.check_origin(request)
        self._backend.login.end(request)
        return Answer(body={}, headers={"Set-Cookie": session_cookie(request, "") + "; Max-Age=0"})


def session_cookie(request: Request, value: str) -> str:
    secure = "; Secure" if request.base_url.startswith("https:") else ""
    return f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"
