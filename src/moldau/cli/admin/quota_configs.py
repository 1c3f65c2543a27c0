"""Quotas of users, clients and addresses, and the SCRAM credentials of users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from moldau.cli.admin.config_entities import CLIENTS, IPS, USERS, Entities
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.machine.java_text import java_double
from moldau.cli.support.reporting import message_of
from moldau.cli.support.tables import Table, on_terminal, print_json
from moldau.client.admin import (
    Admin,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaOp,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from moldau.client.errors import KafkaError, ResourceNotFoundError

__all__ = ["alter", "describe"]

_ENTITY_TYPES = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
_SHOWN_TYPES = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_QUOTAS = frozenset(
    {
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
    }
)
_IP_QUOTAS = frozenset({"connection_creation_rate"})
_SCRAM = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
_ITERATIONS_DEFAULT = _ITERATIONS_MIN = 4096
_CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")


def alter(
    admin: Admin, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    keys = {*added, *deleted}
    if entities.types[0] == IPS:
        unknown = [key for key in (*added, *deleted) if key not in _IP_QUOTAS]
        if unknown:
            raise Refused(
                f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server. "
                f"Unexpected config names: {','.join(unknown)}"
            )
        _alter_quotas(admin, entities, added, deleted)
        return
    _check(entities, added, deleted)
    if keys & _QUOTAS:
        _alter_quotas(admin, entities, added, deleted)
    else:
        _alter_credentials(admin, entities.names[0], added, deleted)


def _check(entities: Entities, added: Iterable[str], deleted: Iterable[str]) -> None:
    """Users have quotas or credentials, other entities only quotas."""
    only_user = tuple(entities.types) == (USERS,)
    allowed = _QUOTAS | _SCRAM if only_user else _QUOTAS
    what = "quota and SCRAM credential" if only_user else "quota"
    for keys, verb in ((added, "added"), (deleted, "deleted")):
        unknown = [key for key in keys if key not in allowed]
        if unknown:
            raise Refused(
                f"Only {what} configs can be {verb} for '{USERS if only_user else CLIENTS}' using "
                f"--bootstrap-server. Unexpected config names: Set({', '.join(unknown)})"
            )
    keys = {*added, *deleted}
    if keys & _SCRAM:
        if "" in entities.names:
            raise Refused(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
                "Credentials using --bootstrap-server."
            )
        if keys & _QUOTAS:
            raise Refused(
                f"Cannot alter both quota and SCRAM credential configs simultaneously for "
                f"'{USERS}' using --bootstrap-server."
            )


def _alter_quotas(
    admin: Admin, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    present = next(iter(_quotas(admin, entities).values()), {})
    absent = [key for key in deleted if key not in present]
    if absent:
        raise Refused(f"Invalid config(s): {','.join(absent)}")
    entity = ClientQuotaEntity.of(
        {
            _ENTITY_TYPES[kind]: name or None
            for kind, name in zip(entities.types, entities.names, strict=True)
        }
    )
    operations = [
        *(ClientQuotaOp(key, _number(key, value)) for key, value in added.items()),
        *(ClientQuotaOp(key, None) for key in deleted),
    ]
    admin.alter_client_quotas([ClientQuotaAlteration(entity, tuple(operations))])


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise Refused(f"Cannot parse quota configuration value for {key}: {value}") from None


def _alter_credentials(
    admin: Admin, user: str, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    alterations: list[UserScramCredentialAlteration] = [
        UserScramCredentialDeletion(user, ScramMechanism.from_mechanism_name(name))
        for name in deleted
    ]
    for name, text in added.items():
        iterations, password = _credential(name, text)
        info = ScramCredentialInfo(ScramMechanism.from_mechanism_name(name), iterations)
        alterations.append(UserScramCredentialUpsertion(user, info, password))
    admin.alter_user_scram_credentials(alterations)


def _credential(mechanism: str, text: str) -> tuple[int, str]:
    match = _CREDENTIAL.fullmatch(text)
    if match is None or match[1] in ("", "-"):
        # The text holds a password, so it is not shown.
        raise Refused(
            f"Invalid credential property {mechanism}: expected "
            f"{mechanism}=[iterations=N,password=...]"
        )
    iterations = _ITERATIONS_DEFAULT if match[1] in (None, "-1") else int(match[1])
    if iterations < _ITERATIONS_MIN:
        raise Refused(
            f"Iterations {iterations} is less than the minimum {_ITERATIONS_MIN} required for "
            f"{mechanism}"
        )
    return iterations, match[2]


# Describe.


def describe(admin: Admin, entities: Entities, *, as_json: bool) -> None:
    quotas = _quotas(admin, entities)
    credentials: list[tuple[str, str]] = []
    if tuple(entities.types) == (USERS,) and "" not in entities.names:
        # None for all users, as no names ask for all.
        found = admin.describe_user_scram_credentials(entities.names or None, check=False)
        for user in found:
            error = found.errors.get(user)
            if isinstance(error, ResourceNotFoundError):
                # A user without credentials, named in the request, is not an error.
                continue
            if error is not None:
                _report(user, error, as_json=as_json)
                continue
            infos = found[user].credential_infos
            credentials.append(
                (
                    user,
                    ", ".join(
                        f"{each.mechanism.mechanism_name}=iterations={each.iterations}"
                        for each in infos
                    ),
                )
            )
    if as_json:
        _print_json(quotas, credentials)
    elif on_terminal():
        _show_tables(quotas, credentials)
    else:
        for entity, values in quotas.items():
            texts = (f"{key}={java_double(values[key])}" for key in sorted(values))
            print(f"Quota configs for {_entity_text(entity)} are {', '.join(texts)}")
        for user, text in credentials:
            print(f"SCRAM credential configs for user-principal '{user}' are {text}")


def _report(user: str, error: KafkaError, *, as_json: bool) -> None:
    if not as_json:
        name = type(error).__name__.removesuffix("Error") + "Exception"
        print(
            f"Error retrieving SCRAM credential configs for user-principal '{user}': {name}: "
            f"{message_of(error)}"
        )


def _quotas(admin: Admin, entities: Entities) -> dict[ClientQuotaEntity, dict[str, float]]:
    if len(entities.names) > len(entities.types):
        raise Refused("More entity names specified than entity types")
    components = []
    for kind, name in zip_longest(entities.types, entities.names):
        entity_type = _ENTITY_TYPES[kind]
        if name is None:
            components.append(ClientQuotaFilterComponent.of_entity_type(entity_type))
        elif name:
            components.append(ClientQuotaFilterComponent.of_entity(entity_type, name))
        else:
            components.append(ClientQuotaFilterComponent.of_default_entity(entity_type))
    return admin.describe_client_quotas(ClientQuotaFilter.contains_only(components))


def _entity_text(entity: ClientQuotaEntity) -> str:
    names = entity.names
    return ", ".join(
        f"the default {shown}" if names[kind] is None else f"{shown} '{names[kind]}'"
        for kind, shown in _SHOWN_TYPES.items()
        if kind in names
    )


def _print_json(
    quotas: Mapping[ClientQuotaEntity, Mapping[str, float]],
    credentials: Iterable[tuple[str, str]],
) -> None:
    document: dict[str, object] = {
        "quotas": [
            {"entity": entity.names, "values": dict(values)} for entity, values in quotas.items()
        ],
        "scramCredentials": dict(credentials),
    }
    print_json(document)


def _show_tables(
    quotas: Mapping[ClientQuotaEntity, Mapping[str, float]],
    credentials: Sequence[tuple[str, str]],
) -> None:
    table = Table("Entity", "Quota", "Value", title="Quotas")
    for entity, values in quotas.items():
        for key in sorted(values):
            table.add(_entity_text(entity), key, f"{values[key]:,g}")
    if len(table):
        table.show()
    table = Table("User", "Credentials", title="SCRAM credentials")
    for user, text in credentials:
        table.add(user, text)
    if len(table):
        table.show()
    if not quotas and not credentials:
        print("Nothing is configured.")
