"""No route is left without its rule."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.network.context import RequestContext
from moldau.broker.network.routes import Route
from moldau.broker.security.authorization.apis.cluster import on_cluster
from moldau.broker.security.authorization.authorization import Authorization
from moldau.broker.security.authorization.guard import guarded
from moldau.invariant import InvariantError
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.apis import ApiKey

KEY = ApiKey.FETCH


class Everybody:
    def configure(self, settings: object) -> None:
        pass

    def authorize(
        self, request: RequestContext, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        return True


def handle(*_: Any) -> Any:
    raise NotImplementedError


def guard(route: Route, rule: Any) -> Route:
    topics: Any = None
    return guarded({KEY: route}, {KEY: rule}, Authorization(Everybody()), topics)[KEY]


def test_a_raw_route_cannot_have_a_rule() -> None:
    with pytest.raises(InvariantError, match="Fetch is handled raw"):
        guard(Route(handle, raw=True), on_cluster(AclOperation.CLUSTER_ACTION))


def test_a_raw_route_asks_by_itself() -> None:
    route = Route(handle, raw=True)
    assert guard(route, None) is route


def test_a_route_without_an_entry_in_the_table_is_refused() -> None:
    topics: Any = None
    with pytest.raises(InvariantError, match="no rule says who may send Fetch"):
        guarded({KEY: Route(handle)}, {}, Authorization(Everybody()), topics)
