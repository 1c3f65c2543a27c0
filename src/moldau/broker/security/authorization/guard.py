"""Puts the rules of the APIs in front of their handlers.

Without an authorizer nothing is put anywhere, so it costs nothing. Raw handlers (Produce, Fetch)
know their topics only once they have decoded the frame, and ask for each one themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.broker.network.context import RequestContext
from moldau.broker.network.routes import Route
from moldau.broker.security.authorization.authorization import Authorization
from moldau.broker.security.authorization.permissions import Permissions, Rule, TopicNames
from moldau.invariant import invariant, present
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.message import Message


def guarded(
    routes: Mapping[ApiKey, Route],
    rules: Mapping[ApiKey, Rule | None],
    authorization: Authorization | None,
    topics: TopicNames,
) -> dict[ApiKey, Route]:
    """The same routes, with their rules asked first. A rule that is None needs no permission, or is
    applied elsewhere."""
    if authorization is None:
        return dict(routes)
    found: dict[ApiKey, Route] = {}
    for key, route in routes.items():
        if key not in rules:
            present(None, f"no rule says who may send {API_BY_KEY[key].name}")
        rule = rules[key]
        invariant(
            rule is None or not route.raw,
            f"{API_BY_KEY[key].name} is handled raw, so its rule would never be asked: its handler "
            "has to ask, and its rule has to be IN_HANDLER",
        )
        if rule is None:
            found[key] = route
        else:
            guard = _Guard(route.handle, rule, authorization, topics)
            found[key] = Route(
                guard.handle,
                min_version=route.min_version,
                max_version=route.max_version,
                pipelined=route.pipelined,
                prompt=route.prompt,
            )
    return found


class _Guard:
    """One handler behind its rule."""

    __slots__ = ("_authorization", "_handle", "_rule", "_topics")

    def __init__(
        self, handle: Any, rule: Rule, authorization: Authorization, topics: TopicNames
    ) -> None:
        self._handle = handle
        self._rule = rule
        self._authorization = authorization
        self._topics = topics

    def handle(self, context: RequestContext, request: Message) -> Any:
        permissions = Permissions(self._authorization, context, self._topics)
        return self._rule(permissions, request, lambda left: self._handle(context, left))
