"""Altering and describing client quotas (KIP-546).

Each entity succeeds or fails as a whole, and only what changes is written. Entities are users,
client ids, both together, or IP addresses; a name of None is the default of its type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from ipaddress import ip_address
from typing import Any, Final

from moldau.broker.config.resource_keys import CONNECTION_QUOTA_NAMES, USER_QUOTA_NAMES
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.image import MetadataImage, QuotaEntity
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ClientQuotaRecord,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = frozenset({USER, CLIENT_ID, IP})

#: The keys whose values have no fraction, with Java's name for their type.
_INTEGRAL: Final = {
    "producer_byte_rate": "a LONG",
    "consumer_byte_rate": "a LONG",
    "connection_creation_rate": "an INT",
}
_FRACTION_MAX: Final = 1e-6


class MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


def alter_client_quotas(
    controller: ControllerView,
    request: AlterClientQuotasRequest,
    *,
    resolvable: Collection[str] = (),
) -> Decision[AlterClientQuotasResponse]:
    """`resolvable` are the host names in the request that have an address."""
    records: list[ClientQuotaRecord] = []
    results: dict[QuotaEntity, ApiError | None] = {}
    for entry in request.entries:
        names = {each.entity_type: each.entity_name for each in entry.entity}
        entity = frozenset(names.items())
        keys = [each.key for each in entry.ops]
        if entity in results or len(set(keys)) != len(keys):
            results[entity] = _invalid(f"Ignoring duplicate entity {_text(names)}")
            continue
        values = {each.key: None if each.remove else each.value for each in entry.ops}
        try:
            check_entity(names, resolvable)
            records += _records(names, values, controller.image.quotas.get(entity, {}))
            results[entity] = None
        except ApiError as error:
            results[entity] = error
    response = AlterClientQuotasResponse(
        entries=[_result(entity, error) for entity, error in results.items()]
    )
    return Decision(() if request.validate_only else tuple(records), response)


def addresses_named(request: AlterClientQuotasRequest) -> set[str]:
    """The IP entities that are not addresses: host names, to be resolved."""
    return {
        each.entity_name
        for entry in request.entries
        for each in entry.entity
        if each.entity_type == IP and each.entity_name and not is_address(each.entity_name)
    }


def check_entity(names: Mapping[str, str | None], resolvable: Collection[str]) -> None:
    """Raises ApiError unless quotas can be set for the entity."""
    if not names:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in names.items():
        if kind not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in names:
        return
    if len(names) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should"
            "not be combined with User or ClientId"
        )
    address = names[IP]
    if address is not None and not is_address(address) and address not in resolvable:
        raise _invalid(f"{address} is not a valid IP or resolvable host.")


def is_address(text: str) -> bool:
    """Whether it is an IP address rather than a host name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _records(
    names: Mapping[str, str | None],
    values: Mapping[str, float | None],
    current: Mapping[str, float],
) -> list[ClientQuotaRecord]:
    records = []
    allowed: Mapping[str, float] = CONNECTION_QUOTA_NAMES if IP in names else USER_QUOTA_NAMES
    for key, value in values.items():
        if value is None:
            if key in current:
                records.append(_record(names, key=key, remove=True))
            continue
        _check_value(key, value, allowed)
        if current.get(key) != value:
            records.append(_record(names, key=key, value=value))
    return records


def _check_value(key: str, value: float, allowed: Mapping[str, float]) -> None:
    if key not in allowed:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0.0:
        raise _invalid(f"Quota {key} must be greater than 0")
    java_type = _INTEGRAL.get(key)
    if java_type is None:
        return
    if value > allowed[key]:
        raise _invalid(f"Proposed value for {key} is too large for {java_type}.")
    if value % 1.0 > _FRACTION_MAX:
        raise _invalid(f"{key} cannot be a fractional value.")


def _record(names: Mapping[str, str | None], **fields: Any) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=[
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in sorted(names.items())
        ],
        **fields,
    )


def _result(entity: QuotaEntity, error: ApiError | None) -> AlterClientQuotasResponse.EntryData:
    return AlterClientQuotasResponse.EntryData(
        error_code=0 if error is None else error.code,
        error_message=None if error is None else error.message,
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
            for kind, name in sorted(entity, key=_kind)
        ],
    )


def describe_client_quotas(
    image: MetadataImage, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Raises ApiError if the filter is invalid."""
    exact, present = _filter_of(request)
    size = len(exact) + len(present)
    return DescribeClientQuotasResponse(
        entries=[
            _description(entity, values)
            for entity, values in image.quotas.items()
            if (not request.strict or len(entity) == size)
            and exact <= entity
            and present <= {kind for kind, _ in entity}
        ],
    )


def _filter_of(
    request: DescribeClientQuotasRequest,
) -> tuple[set[tuple[str, str | None]], set[str]]:
    """Which names, and which types with any name, an entity must have."""
    exact: set[tuple[str, str | None]] = set()
    present: set[str] = set()
    seen: set[str] = set()
    for component in request.components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in seen:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        seen.add(kind)
        if component.match_type == MatchType.EXACT:
            if match is None:
                raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            exact.add((kind, match))
            continue
        if component.match_type not in (MatchType.DEFAULT, MatchType.SPECIFIED):
            raise _invalid(f"Unknown match type {component.match_type}")
        if match is not None:
            name = MatchType(component.match_type).name
            raise _invalid(
                f"Request specified MATCH_TYPE_{name}, but also specified a match string."
            )
        if component.match_type == MatchType.DEFAULT:
            exact.add((kind, None))
        else:
            present.add(kind)
    if IP in seen and len(seen) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return exact, present


def _description(
    entity: QuotaEntity, values: Mapping[str, float]
) -> DescribeClientQuotasResponse.EntryData:
    return DescribeClientQuotasResponse.EntryData(
        entity=[
            DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
            for kind, name in sorted(entity, key=_kind)
        ],
        values=[
            DescribeClientQuotasResponse.ValueData(key=key, value=value)
            for key, value in values.items()
        ],
    )


def _kind(part: tuple[str, str | None]) -> str:
    return part[0]


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _text(names: Mapping[str, str | None]) -> str:
    """The entity as Kafka spells it in messages."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in names.items())
    return f"ClientQuotaEntity(entries={{{parts}}})"
