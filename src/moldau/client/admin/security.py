"""Delegation tokens, SCRAM credentials and client quotas."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence

from moldau.client.admin.base import AdminBase
from moldau.client.admin.driver import Answer, Call
from moldau.client.admin.routes import AnyRoute, ControllerRoute
from moldau.client.admin.security_values import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    DelegationToken,
    KafkaPrincipal,
    ScramCredentialInfo,
    ScramMechanism,
    TokenInformation,
    UserScramCredentialAlteration,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from moldau.client.errors import (
    KafkaError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
    error_for,
)
from moldau.client.results import Results
from moldau.wire.errors import ErrorCode
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

__all__ = ["SecurityOperations"]

_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


class SecurityOperations(AdminBase):
    """Delegation tokens, SCRAM credentials and client quotas."""

    async def create_delegation_token(
        self,
        *,
        owner: KafkaPrincipal | None = None,
        renewers: Collection[KafkaPrincipal] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> DelegationToken:
        """A token to log in with, for oneself or another owner; -1: the broker's lifetime.

        >>> token = await admin.create_delegation_token(max_lifetime_ms=86_400_000)
        """

        async def ask(call: Call) -> DelegationToken:
            request = CreateDelegationTokenRequest
            response: CreateDelegationTokenResponse = await call(
                request(
                    owner_principal_type=None if owner is None else owner.principal_type,
                    owner_principal_name=None if owner is None else owner.name,
                    renewers=[
                        request.CreatableRenewers(
                            principal_type=each.principal_type, principal_name=each.name
                        )
                        for each in renewers
                    ],
                    max_lifetime_ms=max_lifetime_ms,
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "CreateDelegationToken")
            info = TokenInformation(
                response.token_id,
                KafkaPrincipal(response.principal_type, response.principal_name),
                KafkaPrincipal(
                    response.token_requester_principal_type,
                    response.token_requester_principal_name,
                ),
                tuple(renewers),
                response.issue_timestamp_ms,
                response.max_timestamp_ms,
                response.expiry_timestamp_ms,
            )
            return DelegationToken(info, bytes(response.hmac))

        return await self._run_one("CreateDelegationToken", AnyRoute(), ask, timeout=timeout)

    async def renew_delegation_token(
        self, hmac: bytes, *, renew_time_period_ms: int = -1, timeout: float | None = None
    ) -> int:
        """Let a token live on; gives the time, in milliseconds, when it expires.

        >>> await admin.renew_delegation_token(token.hmac)
        """

        async def ask(call: Call) -> int:
            response: RenewDelegationTokenResponse = await call(
                RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_time_period_ms)
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "RenewDelegationToken")
            return response.expiry_timestamp_ms

        return await self._run_one("RenewDelegationToken", AnyRoute(), ask, timeout=timeout)

    async def expire_delegation_token(
        self, hmac: bytes, *, expiry_time_period_ms: int = -1, timeout: float | None = None
    ) -> int:
        """Let a token end after a time, at once if negative; gives the time when it expires.

        >>> await admin.expire_delegation_token(token.hmac)
        """

        async def ask(call: Call) -> int:
            response: ExpireDelegationTokenResponse = await call(
                ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_time_period_ms)
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "ExpireDelegationToken")
            return response.expiry_timestamp_ms

        return await self._run_one("ExpireDelegationToken", AnyRoute(), ask, timeout=timeout)

    async def describe_delegation_token(
        self,
        owners: Collection[KafkaPrincipal] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[DelegationToken]:
        """The tokens of some owners, or all that one may see.

        >>> print(await admin.describe_delegation_token())
        """

        async def ask(call: Call) -> list[DelegationToken]:
            request = DescribeDelegationTokenRequest
            wanted = None
            if owners is not None:
                wanted = [
                    request.DescribeDelegationTokenOwner(
                        principal_type=each.principal_type, principal_name=each.name
                    )
                    for each in owners
                ]
            response: DescribeDelegationTokenResponse = await call(request(owners=wanted))
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, "DescribeDelegationToken")
            return [_token(each) for each in response.tokens]

        return await self._run_one("DescribeDelegationToken", AnyRoute(), ask, timeout=timeout)

    async def describe_client_quotas(
        self, filter: ClientQuotaFilter | None = None, *, timeout: float | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Quotas by whom they are for, all of them without a filter.

        >>> print(await admin.describe_client_quotas())
        """
        wanted = filter or ClientQuotaFilter.all()

        async def ask(call: Call) -> dict[ClientQuotaEntity, dict[str, float]]:
            request = DescribeClientQuotasRequest
            response: DescribeClientQuotasResponse = await call(
                request(
                    components=[
                        request.ComponentData(
                            entity_type=each.entity_type,
                            match_type=each.match_type,
                            match=each.match,
                        )
                        for each in wanted.components
                    ],
                    strict=wanted.strict,
                )
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)
            return {
                ClientQuotaEntity.of(
                    {each.entity_type: each.entity_name for each in entry.entity}
                ): {each.key: each.value for each in entry.values}
                for entry in response.entries or ()
            }

        return await self._run_one("DescribeClientQuotas", AnyRoute(), ask, timeout=timeout)

    async def alter_client_quotas(
        self,
        entries: Iterable[ClientQuotaAlteration],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[ClientQuotaEntity, None]:
        """Set and take away quotas.

        >>> alice = ClientQuotaEntity({"user": "alice"})
        >>> limit = ClientQuotaAlteration(alice, {"producer_byte_rate": 1_000_000.0})
        >>> await admin.alter_client_quotas([limit])
        """
        wanted = {each.entity: each for each in entries}

        async def ask(
            call: Call, keys: Sequence[ClientQuotaEntity]
        ) -> Answer[ClientQuotaEntity, None]:
            response: AlterClientQuotasResponse = await call(
                AlterClientQuotasRequest(
                    entries=[_quota_entry(wanted[key]) for key in keys],
                    validate_only=validate_only,
                )
            )
            answer: Answer[ClientQuotaEntity, None] = Answer()
            for found in response.entries:
                key = ClientQuotaEntity.of(
                    {each.entity_type: each.entity_name for each in found.entity}
                )
                answer.settle(key, found.error_code, found.error_message, None)
            return answer

        return await self._run(
            "AlterClientQuotas", wanted, AnyRoute(), ask, timeout=timeout, check=check
        )

    async def describe_user_scram_credentials(
        self,
        users: Collection[str] | None = None,
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, UserScramCredentialsDescription]:
        """Which SCRAM credentials users have, all users if none are named.

        >>> print((await admin.describe_user_scram_credentials(["alice"]))["alice"])
        """

        async def ask(call: Call) -> Results[str, UserScramCredentialsDescription]:
            request = DescribeUserScramCredentialsRequest
            response: DescribeUserScramCredentialsResponse = await call(
                request(users=[request.UserName(name=user) for user in users] if users else None)
            )
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message)
            answer: Answer[str, UserScramCredentialsDescription] = Answer()
            for found in response.results:
                if found.error_code != ErrorCode.NONE:
                    answer.fail(found.user, found.error_code, found.error_message)
                    continue
                infos = tuple(
                    ScramCredentialInfo(ScramMechanism(each.mechanism), each.iterations)
                    for each in found.credential_infos
                )
                answer.put(found.user, UserScramCredentialsDescription(found.user, infos))
            return Results(answer.values, answer.errors)

        results = await self._run_one(
            "DescribeUserScramCredentials", AnyRoute(), ask, timeout=timeout
        )
        return results.check() if check else results

    async def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialAlteration],
        *,
        timeout: float | None = None,
        check: bool = True,
    ) -> Results[str, None]:
        """Set and delete the SCRAM credentials of users; passwords do not leave this process.

        >>> info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        >>> change = UserScramCredentialUpsertion("alice", info, b"secret")
        >>> await admin.alter_user_scram_credentials([change])
        """
        by_user: dict[str, list[UserScramCredentialAlteration]] = {}
        refused: dict[str, KafkaError] = {}
        for each in alterations:
            by_user.setdefault(each.user, []).append(each)
            problem = _credential_problem(each)
            if problem is not None:
                refused[each.user] = problem

        async def ask(call: Call, keys: Sequence[str]) -> Answer[str, None]:
            response: AlterUserScramCredentialsResponse = await call(
                _scram_request([each for key in keys for each in by_user[key]])
            )
            answer: Answer[str, None] = Answer()
            for found in response.results:
                answer.settle(found.user, found.error_code, found.error_message, None)
            return answer

        return await self._run(
            "AlterUserScramCredentials",
            by_user,
            ControllerRoute(),
            ask,
            timeout=timeout,
            check=check,
            refused=refused,
        )


def _token(found: DescribeDelegationTokenResponse.DescribedDelegationToken) -> DelegationToken:
    info = TokenInformation(
        found.token_id,
        KafkaPrincipal(found.principal_type, found.principal_name),
        KafkaPrincipal(found.token_requester_principal_type, found.token_requester_principal_name),
        tuple(KafkaPrincipal(each.principal_type, each.principal_name) for each in found.renewers),
        found.issue_timestamp,
        found.max_timestamp,
        found.expiry_timestamp,
    )
    return DelegationToken(info, bytes(found.hmac))


def _quota_entry(alteration: ClientQuotaAlteration) -> AlterClientQuotasRequest.EntryData:
    request = AlterClientQuotasRequest
    return request.EntryData(
        entity=[
            request.EntityData(entity_type=kind, entity_name=name)
            for kind, name in alteration.entity.entries
        ],
        ops=[
            request.OpData(
                key=each.key,
                value=0.0 if each.value is None else float(each.value),
                remove=each.value is None,
            )
            for each in alteration.ops
        ],
    )


def _credential_problem(alteration: UserScramCredentialAlteration) -> KafkaError | None:
    """What is wrong with a change before anybody is asked."""
    if not alteration.user:
        return UnacceptableCredentialError("Username must not be empty")
    if isinstance(alteration, UserScramCredentialUpsertion):
        if not alteration.password:
            return UnacceptableCredentialError("Password must not be empty")
        mechanism = alteration.credential_info.mechanism
    else:
        mechanism = alteration.mechanism
    if mechanism not in _HASHES:
        return UnsupportedSaslMechanismError("Unknown SCRAM mechanism")
    return None


def _scram_request(
    alterations: Iterable[UserScramCredentialAlteration],
) -> AlterUserScramCredentialsRequest:
    request = AlterUserScramCredentialsRequest
    whole = request()
    for each in alterations:
        if not isinstance(each, UserScramCredentialUpsertion):
            whole.deletions.append(
                request.ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
            )
            continue
        mechanism, iterations = each.credential_info
        password = each.password
        if isinstance(password, str):
            password = password.encode()
        salted = hashlib.pbkdf2_hmac(_HASHES[mechanism], password, each.salt, max(1, iterations))
        whole.upsertions.append(
            request.ScramCredentialUpsertion(
                name=each.user,
                mechanism=mechanism,
                iterations=iterations,
                salt=each.salt,
                salted_password=salted,
            )
        )
    return whole
