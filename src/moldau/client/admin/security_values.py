"""Principals, delegation tokens, SCRAM credentials and client quotas."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.client.admin.enums import NumberedEnum

__all__ = [
    "ClientQuotaAlteration",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ClientQuotaOp",
    "DelegationToken",
    "KafkaPrincipal",
    "ScramCredentialInfo",
    "ScramMechanism",
    "TokenInformation",
    "UserScramCredentialAlteration",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "UserScramCredentialsDescription",
]

_EXACT, _DEFAULT, _ANY = 0, 1, 2
_SALT_BYTES = 20


class KafkaPrincipal(NamedTuple):
    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """From `User:alice`; raises ValueError."""
        kind, colon, name = text.partition(":")
        if not colon or not kind:
            raise ValueError(
                f"expected a string in format principalType:principalName but got {text}"
            )
        return cls(kind, name)


class TokenInformation(NamedTuple):
    """A delegation token without its secret; times are milliseconds."""

    token_id: str
    owner: KafkaPrincipal
    token_requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int


class DelegationToken(NamedTuple):
    token_info: TokenInformation
    hmac: bytes

    @property
    def hmac_as_base64_string(self) -> str:
        return b64encode(self.hmac).decode("ascii")


class ScramMechanism(NumberedEnum):
    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        return self.name.replace("_", "-")

    @classmethod
    def from_mechanism_name(cls, name: str) -> ScramMechanism:
        found = cls.__members__.get(name.replace("-", "_"))
        return cls.UNKNOWN if found is None else found


class ScramCredentialInfo(NamedTuple):
    mechanism: ScramMechanism
    iterations: int


class UserScramCredentialsDescription(NamedTuple):
    name: str
    credential_infos: tuple[ScramCredentialInfo, ...]


@dataclass(frozen=True, slots=True)
class UserScramCredentialUpsertion:
    """A password to set. The broker gets only what is derived from it."""

    user: str
    credential_info: ScramCredentialInfo
    password: str | bytes = field(repr=False)
    salt: bytes = field(default_factory=lambda: secrets.token_bytes(_SALT_BYTES), repr=False)


@dataclass(frozen=True, slots=True)
class UserScramCredentialDeletion:
    user: str
    mechanism: ScramMechanism


UserScramCredentialAlteration = UserScramCredentialUpsertion | UserScramCredentialDeletion


class ClientQuotaEntity(NamedTuple):
    """Whom a quota is for: names by type (user, client-id, ip), None for the default."""

    entries: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, entries: Mapping[str, str | None]) -> ClientQuotaEntity:
        return cls(tuple(sorted(entries.items())))

    @property
    def names(self) -> dict[str, str | None]:
        return dict(self.entries)


class ClientQuotaFilterComponent(NamedTuple):
    entity_type: str
    match_type: int = _ANY
    match: str | None = None

    @classmethod
    def of_entity(cls, entity_type: str, name: str) -> ClientQuotaFilterComponent:
        return cls(entity_type, _EXACT, name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> ClientQuotaFilterComponent:
        return cls(entity_type, _DEFAULT)

    @classmethod
    def of_entity_type(cls, entity_type: str) -> ClientQuotaFilterComponent:
        """Every name of the type, and its default."""
        return cls(entity_type)


class ClientQuotaFilter(NamedTuple):
    """Which quotas are meant; a strict one takes no entity of further types."""

    components: tuple[ClientQuotaFilterComponent, ...] = ()
    strict: bool = False

    @classmethod
    def contains(cls, components: Iterable[ClientQuotaFilterComponent]) -> ClientQuotaFilter:
        return cls(tuple(components))

    @classmethod
    def contains_only(cls, components: Iterable[ClientQuotaFilterComponent]) -> ClientQuotaFilter:
        return cls(tuple(components), strict=True)

    @classmethod
    def all(cls) -> ClientQuotaFilter:
        return cls()


class ClientQuotaOp(NamedTuple):
    """A value for a quota's key, None to take it away."""

    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class ClientQuotaAlteration:
    entity: ClientQuotaEntity
    ops: tuple[ClientQuotaOp, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", tuple(self.ops))
