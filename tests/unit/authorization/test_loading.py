"""Which authorizer authorizer.class.name selects."""

from __future__ import annotations

import pytest

from moldau.broker.network.context import RequestContext
from moldau.broker.security.authorization.authorization import STANDARD, load_authorization
from moldau.config.errors import ConfigError
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.apis import ApiKey


class OwnTopics:
    """Everybody may use topics that begin with `prefix`."""

    def configure(self, settings: dict[str, str]) -> None:
        self._prefix = settings["prefix"]

    def authorize(
        self, request: RequestContext, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        return kind == ResourceType.TOPIC and name.startswith(self._prefix)


class Useless:
    pass


def request(principal: str) -> RequestContext:
    return RequestContext(ApiKey.METADATA, 9, principal=principal)


TOPIC_READ = (AclOperation.READ, ResourceType.TOPIC)


def test_none() -> None:
    assert load_authorization("", {}, caught_up=lambda: True) is None


def test_kafkas_own() -> None:
    ready = False
    settings = {"super.users": "User:root; User:CN=a,O=b", "allow.everyone.if.no.acl.found": "True"}
    found = load_authorization(STANDARD, settings, caught_up=lambda: ready)
    assert found is not None
    assert found.uses_acls
    assert found.allows(request("User:root"), *TOPIC_READ, "t")
    assert found.allows(request("User:CN=a,O=b"), *TOPIC_READ, "t")
    assert not found.allows(request("User:alice"), *TOPIC_READ, "t")
    ready = True
    assert found.allows(request("User:alice"), *TOPIC_READ, "t")


def test_one_of_the_users_own() -> None:
    name = f"{OwnTopics.__module__}.OwnTopics"
    found = load_authorization(name, {"prefix": "my-"}, caught_up=lambda: True)
    assert found is not None
    assert not found.uses_acls
    assert found.allows(request("User:alice"), *TOPIC_READ, "my-topic")
    assert not found.allows(request("User:alice"), *TOPIC_READ, "topic")
    assert not found.allows_any(request("User:alice"), *TOPIC_READ)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("some.java.Authorizer", "cannot be imported"),
        ("Authorizer", "package.module.Class"),
        (f"{Useless.__module__}.Useless", "no method configure"),
    ],
)
def test_what_cannot_be_loaded_is_refused(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        load_authorization(name, {}, caught_up=lambda: True)
    assert "authorizer.class.name" in str(refused.value)


def test_super_users_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"super\.users"):
        load_authorization(STANDARD, {"super.users": "admin"}, caught_up=lambda: True)
