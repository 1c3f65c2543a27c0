"""SCRAM users and delegation tokens, as the active controller decides about them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.metadata.machine.delegation_tokens import (
    TokenRules,
    create_delegation_token,
    describe_delegation_tokens,
    expire_delegation_token,
    remove_expired_tokens,
    renew_delegation_token,
    token_hmac,
)
from moldau.broker.metadata.machine.scram_credentials import (
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from moldau.security.machine.scram import ScramMechanism, make_credential, salted_password
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

World = Any
SHA_256 = ScramMechanism.SCRAM_SHA_256
ALICE, BOB, EVE = "User:alice", "User:bob", "User:eve"
RULES = TokenRules(b"key", max_lifetime_ms=1_000, expiry_time_ms=500)


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> Any:
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=salted_password(SHA_256, b"secret", b"salt", 4096),
    )


def deletion(name: str, mechanism: int = 1) -> Any:
    return AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(world: World, *, deletions: Any = (), upsertions: Any = ()) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=list(deletions), upsertions=list(upsertions)
    )
    response = world.apply(alter_user_scram_credentials(world.controller, request))
    return {each.user: each.error_code for each in response.results}


def describe(world: World, *users: str) -> dict[str, Any]:
    name = DescribeUserScramCredentialsRequest.UserName
    request = DescribeUserScramCredentialsRequest(users=[name(name=user) for user in users])
    response = describe_user_scram_credentials(world.image, request)
    return {
        each.user: each.error_code
        or [(info.mechanism, info.iterations) for info in each.credential_infos]
        for each in response.results
    }


def test_a_credential_is_stored_as_what_checks_it(world: World) -> None:
    assert alter(world, upsertions=[upsertion("alice")]) == {"alice": 0}
    record = world.image.scram[1, "alice"]
    expected = make_credential(SHA_256, b"secret", b"salt", 4096)
    assert (record.stored_key, record.server_key) == (expected.stored_key, expected.server_key)
    assert describe(world) == {"alice": [(1, 4096)]}
    assert alter(world, deletions=[deletion("alice")]) == {"alice": 0}
    assert describe(world) == {}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"upsertions": [upsertion("")]}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"upsertions": [upsertion("a", 3)]}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"upsertions": [upsertion("a", 0)]}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"upsertions": [upsertion("a", 1, 4095)]}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"upsertions": [upsertion("a", 1, 16385)]}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"upsertions": [upsertion("a")] * 2}, ErrorCode.DUPLICATE_RESOURCE),
        ({"deletions": [deletion("a")]}, ErrorCode.RESOURCE_NOT_FOUND),
        ({"deletions": [deletion("")]}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_alterations_that_are_refused(world: World, change: Any, code: ErrorCode) -> None:
    assert list(alter(world, **change).values()) == [code]
    assert world.image.scram == {}


def test_one_user_does_not_spoil_another(world: World) -> None:
    found = alter(world, upsertions=[upsertion("a", 1, 1), upsertion("b"), upsertion("a", 2)])
    assert found == {"a": ErrorCode.UNACCEPTABLE_CREDENTIAL, "b": 0}
    assert list(world.image.scram) == [(1, "b")]


def test_who_is_described_twice_or_unknown(world: World) -> None:
    alter(world, upsertions=[upsertion("a")])
    assert describe(world, "a", "a", "x") == {
        "a": ErrorCode.DUPLICATE_RESOURCE,
        "x": ErrorCode.RESOURCE_NOT_FOUND,
    }


# Delegation tokens.


def create(world: World, requester: str = ALICE, rules: TokenRules = RULES, **more: Any) -> Any:
    renewer = CreateDelegationTokenRequest.CreatableRenewers
    renewers = [renewer(principal_type="User", principal_name="bob")]
    request = CreateDelegationTokenRequest(
        **{"owner_principal_name": None, "renewers": renewers, "max_lifetime_ms": -1, **more}
    )
    return world.apply(
        create_delegation_token(
            world.controller, request, requester=requester, token_id="id", rules=rules, now_ms=0
        )
    )


def test_a_new_token(world: World) -> None:
    token = create(world)
    assert token.error_code == 0
    assert (token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms) == (
        0, 500, 1_000,
    )  # fmt: skip
    assert token.hmac == token_hmac(b"key", "id")
    assert world.image.tokens["id"].owner == ALICE
    assert create(world, max_lifetime_ms=300).expiry_timestamp_ms == 300
    assert create(world, max_lifetime_ms=5_000).max_timestamp_ms == 1_000


def test_a_token_for_somebody_else(world: World) -> None:
    token = create(world, owner_principal_type="User", owner_principal_name="eve")
    assert (token.principal_name, token.token_requester_principal_name) == ("eve", "alice")


def test_tokens_that_are_not_created(world: World) -> None:
    disabled = RULES._replace(secret_key=None)
    assert create(world, rules=disabled).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    group = CreateDelegationTokenRequest.CreatableRenewers(principal_type="Group")
    assert create(world, renewers=[group]).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert world.image.tokens == {}


def renew(world: World, requester: str, period_ms: int = -1, now_ms: int = 100) -> Any:
    request = RenewDelegationTokenRequest(hmac=token_hmac(b"key", "id"), renew_period_ms=period_ms)
    response = world.apply(
        renew_delegation_token(
            world.controller, request, requester=requester, rules=RULES, now_ms=now_ms
        )
    )
    return response.error_code or response.expiry_timestamp_ms


def expire(world: World, requester: str, period_ms: int = -1, now_ms: int = 100) -> Any:
    request = ExpireDelegationTokenRequest(
        hmac=token_hmac(b"key", "id"), expiry_time_period_ms=period_ms
    )
    response = world.apply(
        expire_delegation_token(
            world.controller, request, requester=requester, rules=RULES, now_ms=now_ms
        )
    )
    return response.error_code or response.expiry_timestamp_ms


def test_owner_and_renewers_renew(world: World) -> None:
    assert renew(world, ALICE) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    create(world)
    assert renew(world, ALICE) == 600
    assert renew(world, BOB, 50) == 150
    assert renew(world, BOB, 5_000) == 1_000
    assert renew(world, EVE) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(world, ALICE, now_ms=1_001) == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_tokens_end(world: World) -> None:
    create(world)
    assert expire(world, EVE) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire(world, BOB, 50) == 150
    assert expire(world, ALICE, 50, now_ms=151) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    world.apply(remove_expired_tokens(world.controller, now_ms=150))
    assert "id" in world.image.tokens
    world.apply(remove_expired_tokens(world.controller, now_ms=151))
    assert world.image.tokens == {}
    create(world)
    assert expire(world, ALICE) == 100
    assert world.image.tokens == {}


@pytest.mark.parametrize(
    ("requester", "owners", "may", "seen"),
    [
        (ALICE, None, False, True),
        (BOB, None, False, True),
        (EVE, None, False, False),
        (EVE, None, True, True),
        (ALICE, ["alice"], False, True),
        (ALICE, ["eve"], True, False),
        (ALICE, [], True, False),
    ],
)
def test_who_sees_a_token(
    world: World, requester: str, owners: list[str] | None, may: bool, seen: bool
) -> None:
    create(world)
    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    request = DescribeDelegationTokenRequest(
        owners=None
        if owners is None
        else [owner(principal_type="User", principal_name=each) for each in owners]
    )
    response = describe_delegation_tokens(
        world.image, request, requester=requester, rules=RULES, may_describe=lambda token: may
    )
    assert [each.token_id for each in response.tokens] == (["id"] if seen else [])
