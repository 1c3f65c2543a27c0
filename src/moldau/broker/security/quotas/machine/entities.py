"""Which quota applies to a client: Kafka's eight levels, and own rules by a callback class.

    1  user and client id            5  default user and default client id
    2  user and default client id    6  default user
    3  user                          7  client id
    4  default user and client id    8  default client id

The first level that has a quota decides, and also what is counted together: at a level without
client ids all clients of a user share the quota, at 7 and 8 all users of a client id do.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from ipaddress import ip_address
from typing import Final, Protocol

from moldau.broker.metadata.machine.quotas import is_address

#: Type to name, None for the default of the type; the image's quota entities.
QuotaEntity = frozenset[tuple[str, str | None]]
#: The user and the client id that are counted together; either may be empty.
Tags = tuple[str, str]


class QuotaType(Enum):
    """What is limited; the value is the key of its quotas."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    CONTROLLER_MUTATION = "controller_mutation_rate"


class ClientQuotaCallback(Protocol):
    """Own rules (`client.quota.callback.class`), as Kafka's interface of the same name.

    It is created without arguments. Quotas that are set by tools are passed to it, and it may use
    them or not. Limits are asked for with every request, on the broker's event loop: it must be
    quick and must not wait.
    """

    def configure(self, configs: Mapping[str, object]) -> None: ...

    def quota_metric_tags(
        self, quota_type: QuotaType, principal: str, client_id: str
    ) -> Mapping[str, str]:
        """What identifies the quota: requests with equal tags are counted together. Without tags
        the request is not limited."""
        ...

    def quota_limit(self, quota_type: QuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The limit per second for these tags; None for no limit."""
        ...

    def update_quota(self, quota_type: QuotaType, entity: QuotaEntity, value: float) -> None: ...

    def remove_quota(self, quota_type: QuotaType, entity: QuotaEntity) -> None: ...


_DEFAULT: Final = None


class QuotaLevels:
    """The quotas of one type."""

    __slots__ = ("_limits",)

    def __init__(self, limits: Mapping[QuotaEntity, float] | None = None) -> None:
        self._limits = dict(limits or {})

    def __bool__(self) -> bool:
        return bool(self._limits)

    @classmethod
    def of(
        cls, quotas: Mapping[QuotaEntity, Mapping[str, float]], quota_type: QuotaType
    ) -> QuotaLevels:
        key = quota_type.value
        return cls({entity: values[key] for entity, values in quotas.items() if key in values})

    def tags(self, user: str, client_id: str) -> Tags:
        """What is counted together for this client."""
        has = self._limits.__contains__
        if has(_both(user, client_id)) or has(_both(user, _DEFAULT)):
            return user, client_id
        if has(_user(user)):
            return user, ""
        if has(_both(_DEFAULT, client_id)) or has(_both(_DEFAULT, _DEFAULT)):
            return user, client_id
        if has(_user(_DEFAULT)):
            return user, ""
        return "", client_id

    def limit(self, tags: Tags) -> float | None:
        """As in Kafka an empty client id has no quota of its own, not even the default one."""
        user, client_id = tags
        if user and client_id:
            candidates = [
                _both(user, client_id),
                _both(user, _DEFAULT),
                _both(_DEFAULT, client_id),
                _both(_DEFAULT, _DEFAULT),
            ]
        elif user:
            candidates = [_user(user), _user(_DEFAULT)]
        elif client_id:
            candidates = [_client(client_id), _client(_DEFAULT)]
        else:
            candidates = []
        for entity in candidates:
            found = self._limits.get(entity)
            if found is not None:
                return found
        return None


def _both(user: str | None, client_id: str | None) -> QuotaEntity:
    return frozenset((("user", user), ("client-id", client_id)))


def _user(user: str | None) -> QuotaEntity:
    return frozenset((("user", user),))


def _client(client_id: str | None) -> QuotaEntity:
    return frozenset((("client-id", client_id),))


def user_of(principal: str) -> str:
    """The name in `User:name`."""
    return principal.partition(":")[2]


def address_rates(
    quotas: Mapping[QuotaEntity, Mapping[str, float]],
) -> tuple[float | None, dict[str, float]]:
    """New connections per second: of any address, and of single ones or hosts."""
    limits: dict[str, float] = {}
    default = None
    for entity, values in quotas.items():
        rate = values.get("connection_creation_rate")
        for kind, name in entity:
            if kind != "ip" or rate is None:
                continue
            if name is None:
                default = rate
            else:
                # Addresses as sockets spell them.
                limits[str(ip_address(name)) if is_address(name) else name] = rate
    return default, limits
