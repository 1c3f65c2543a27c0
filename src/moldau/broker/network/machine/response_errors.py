"""Which error codes a response has, wherever they are in it."""

from __future__ import annotations

from typing import Final, TypeAlias

from moldau.wire.message import Message

__all__ = ["error_codes"]

#: Whether a struct has a code itself, and in which lists there are structs with codes.
_Plan: TypeAlias = tuple[bool, tuple[tuple[str, "_Plan"], ...]]

#: Kafka counts the topics of a Metadata response; it may have very many partitions.
_NOT_SEARCHED: Final = frozenset({"MetadataResponsePartition"})

#: Made with the first response of a kind.
_plans: dict[tuple[str, str], _Plan] = {}


def error_codes(response: Message) -> list[int]:
    """All codes except NONE, one for each place."""
    kind = type(response)
    found: list[int] = []
    _find(response, _plan_of(kind, kind), found)
    return found


def _find(message: Message, plan: _Plan, found: list[int]) -> None:
    has_code, lists = plan
    if has_code:
        code: int = message.error_code  # type: ignore[attr-defined]
        if code:
            found.append(code)
    for name, inner in lists:
        for each in getattr(message, name) or ():
            _find(each, inner, found)


def _plan_of(top: type[Message], kind: type[Message]) -> _Plan:
    known = _plans.get((top.__name__, kind.__name__))
    if known is None:
        known = _plans[top.__name__, kind.__name__] = _made_plan(top, kind)
    return known


def _made_plan(top: type[Message], kind: type[Message]) -> _Plan:
    has_code = False
    lists: list[tuple[str, _Plan]] = []
    for name, field_type, *_ in kind.FIELDS:
        if name == "error_code":
            has_code = True
        elif field_type.startswith("[]") and field_type[2:] not in _NOT_SEARCHED:
            inner = getattr(top, field_type[2:], None)
            if inner is not None:
                plan = _plan_of(top, inner)
                if plan[0] or plan[1]:
                    lists.append((name, plan))
    return has_code, tuple(lists)
