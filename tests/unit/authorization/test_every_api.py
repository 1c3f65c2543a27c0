"""Every API that is served and every permission that it may lack.

The rules run before a handler that allows everything, so this also holds for requests that no
client of ours sends. `support/denials.py` has the requests; `test_same_denials.py` sends them to
Apache Kafka, too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from moldau.broker import api_table, controller_table
from moldau.broker.network.context import RequestContext
from moldau.broker.network.machine.refusals import refusal
from moldau.broker.network.routes import Route
from moldau.broker.security.authorization.apis.table import BROKER_RULES, CONTROLLER_RULES
from moldau.broker.security.authorization.authorization import Authorization
from moldau.broker.security.authorization.guard import guarded
from moldau.wire.acls import AclOperation, ResourceType
from moldau.wire.apis import API_BY_KEY, ApiKey
from moldau.wire.codec import decode, encode
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.message import Message
from moldau.wire.messages import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from support.denials import (
    BROKER_ROWS,
    CONTROLLER_ROWS,
    FORWARDED,
    FORWARDED_SECURITY,
    HIDDEN,
    NAMES,
    TOPIC,
    Permission,
    Row,
)

TOPIC_ID = UUID(int=7)
#: They ask in their handlers: see test_raw_handlers.py.
RAW = {ApiKey.PRODUCE, ApiKey.FETCH}


class Denying:
    """Allows everything but some permissions; implements `Authorizer`."""

    def __init__(self, denied: Collection[Permission]) -> None:
        self._denied = denied
        self.asked: set[Permission] = set()

    def configure(self, settings: object) -> None:
        pass

    def authorize(
        self, request: RequestContext, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        permission = Permission(operation, kind)
        self.asked.add(permission)
        assert name in (NAMES.get(kind), "ghost", "hardcode"), name
        return permission not in self._denied


class Topics:
    auto_created = False

    def name_of(self, topic_id: UUID) -> str | None:
        return TOPIC if topic_id == TOPIC_ID else None

    def id_of(self, name: str) -> UUID:
        return TOPIC_ID

    def names(self) -> list[str]:
        return [TOPIC]

    def __contains__(self, name: object) -> bool:
        return name == TOPIC


def ask(row: Row, rules: Any, denied: Collection[Permission]) -> tuple[Message, Message | None]:
    """The answer behind the rule, and what was left of the request; None if nothing."""
    handled: list[Message] = []
    api = API_BY_KEY[row.key]

    async def handle(context: RequestContext, request: Message) -> Message:
        handled.append(request)
        return _allowing(request, api.response())

    route = guarded({row.key: Route(handle)}, rules, Authorization(Denying(denied)), Topics())
    context = RequestContext(row.key, row.version, principal="User:alice")
    sent = decode(api.request, row.version, encode(row.make(TOPIC_ID), row.version), 0)

    async def run() -> Any:
        answer = route[row.key].handle(context, sent)  # type: ignore[call-arg, arg-type]
        return answer if isinstance(answer, Message) else await answer  # type: ignore[misc]

    try:
        answer = asyncio.run(run())
    except ApiError as error:
        answer = refusal(api, row.version, sent, error.code, error.message)
    assert answer is not None, "the error has no place in the response"
    # The version of the request can carry it.
    encode(answer, row.version)
    return answer, handled[0] if handled else None


def _allowing(request: Any, response: Any) -> Message:
    """An answer that finds no fault. Some have a group for each that was asked for."""
    if isinstance(request, OffsetFetchRequest):
        group = OffsetFetchResponse.OffsetFetchResponseGroup
        response.groups = [group(group_id=each.group_id) for each in request.groups]
    elif isinstance(request, DescribeShareGroupOffsetsRequest):
        described = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
        response.groups = [described(group_id=each.group_id) for each in request.groups]
    answer: Message = response
    return answer


def codes_in(message: Message) -> set[int]:
    found: set[int] = set()
    for name, *_ in message.FIELDS:
        value = getattr(message, name)
        if name.endswith("error_code"):
            found.add(value)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                found |= codes_in(each)
    return found


def denials(rows: Collection[Row], rules: Any) -> list[Any]:
    return [
        pytest.param(row, rules, permission, code, id=f"{row} without {permission}")
        for row in rows
        if row.key not in RAW or rules is CONTROLLER_RULES
        for permission, code in row.needs
        if rules[row.key] is not None
    ]


@pytest.mark.parametrize(
    ("row", "rules", "permission", "code"),
    [
        *denials(
            [row for row in BROKER_ROWS if row not in (*FORWARDED, *FORWARDED_SECURITY)],
            BROKER_RULES,
        ),
        *denials([*FORWARDED, *CONTROLLER_ROWS], CONTROLLER_RULES),
    ],
)
def test_denied_without_the_permission(
    row: Row, rules: Any, permission: Permission, code: ErrorCode
) -> None:
    denied = _with_wider(row, permission)
    answer, left = ask(row, rules, denied)
    if code != HIDDEN:
        assert code in codes_in(answer), answer
    answer, left = ask(row, rules, ())
    assert codes_in(answer) <= {0}, answer
    assert left is not None


def _with_wider(row: Row, permission: Permission) -> set[Permission]:
    """The permission, and those that stand for it."""
    denied = {permission}
    if row.key in (ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.WRITE_TXN_MARKERS):
        denied |= {
            Permission(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),
            Permission(AclOperation.ALTER, ResourceType.CLUSTER),
        }
    if row.key in (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.LIST_GROUPS):
        denied |= {Permission(each, ResourceType.CLUSTER) for each in AclOperation}
    return denied


def test_every_api_of_a_broker_has_a_row() -> None:
    served = _served(api_table)
    assert served - BROKER_RULES.keys() == set(), "no rule says who may send these"
    assert served - {row.key for row in BROKER_ROWS} == set(), "add a row to support/denials.py"


def test_every_api_of_a_controller_has_a_row() -> None:
    served = _served(controller_table) | {ApiKey.ENVELOPE}
    assert served - CONTROLLER_RULES.keys() == set(), "no rule says who may send these"
    rows = {row.key for row in [*FORWARDED, *CONTROLLER_ROWS]}
    assert served - rows == set(), "add a row to support/denials.py"


def _served(table: Any) -> set[ApiKey]:
    """The APIs that a table of routes names."""
    return {
        ApiKey[name] for name in re.findall(r"ApiKey\.([A-Z_]+)", Path(table.__file__).read_text())
    }


def test_rules_that_ask_nothing_are_known() -> None:
    """Whoever adds an API without a check must say here why nobody needs a permission."""
    free = {key for key, rule in BROKER_RULES.items() if rule is None}
    forwarded = {key for key in free if API_BY_KEY[key].forwarded}
    assert forwarded <= {key for key, rule in CONTROLLER_RULES.items() if rule is not None} | {
        ApiKey.RENEW_DELEGATION_TOKEN,  # The token's owner and renewers may.
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
    assert free - forwarded == {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.PRODUCE,
        ApiKey.FETCH,
    }
