"""The answer to any request that says nothing but an error, as a broker would word it.

Most APIs have one place for it. Those that answer topic by topic or partition by partition name in
the answer what was named in the request: the two messages have the same shape, and the error goes
to the outermost place that there is for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from moldau.broker.network.interface import InvalidRequest, Reply
from moldau.broker.network.machine.error_responses import error_response
from moldau.broker.network.machine.refusals import refusal
from moldau.wire.apis import API_BY_KEY, Api, ApiKey
from moldau.wire.codec import decode
from moldau.wire.errors import ErrorCode
from moldau.wire.framing import decode_request_header, decode_response, encode_response_frame
from moldau.wire.message import Message

_ERRORS: Final = ("error_code", "partition_error_code")
#: What a request names by a bare number or text stands in one of these in the answer.
_KEYS: Final = ("partition_index", "partition", "index", "key", "group_id", "transactional_id")
#: These have a place for an error of the whole request, which means something else there.
_BY_PARTITION: Final = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})

_SIZE_BYTES: Final = 4


def error_answer(frame: memoryview, error: int) -> Reply:
    """A whole response frame; None to a Produce that wants no answer.

    InvalidRequest, which closes the connection, where the API has no place for an error.
    """
    header = decode_request_header(frame)
    api, version = API_BY_KEY[header.api_key], header.api_version
    request = decode(api.request, version, frame, header.body_position)
    if api.key == ApiKey.PRODUCE and getattr(request, "acks", -1) == 0:
        return None
    response = _response(api, version, request, ErrorCode(error))
    if response is None:
        raise InvalidRequest(f"{api.name} v{version} cannot be answered with an error")
    return encode_response_frame(api, version, header.correlation_id, response)


def with_topic_errors(frame: memoryview, reply: bytes, error: int) -> bytes:
    """An answer to Metadata with this error in the place of every topic's partitions.

    The brokers stay: a cluster without any is none that a client could ask again.
    """
    header = decode_request_header(frame)
    api, version = API_BY_KEY[header.api_key], header.api_version
    _, response = decode_response(api, version, memoryview(reply), _SIZE_BYTES)
    for topic in getattr(response, "topics", ()) or ():
        topic.error_code, topic.partitions = error, []
    return encode_response_frame(api, version, header.correlation_id, response)


def _response(api: Api, version: int, request: Message, error: ErrorCode) -> Message | None:
    if api.key not in _BY_PARTITION:
        message = f"{error.name}, set by a fault"
        refused = refusal(api, version, request, error, message)
        if refused is not None:
            return refused
    mirrored = api.response()
    if _mirror(request, mirrored, version, int(error), api.response):
        if api.key == ApiKey.FETCH:
            mirrored.session_id = request.session_id  # type: ignore[attr-defined]
        return mirrored
    if api.key == ApiKey.FETCH and version >= 7:
        # It names nothing because its session does: the client has to name all again.
        return error_response(api, version, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return None


def _mirror(request: Any, response: Any, version: int, error: int, family: type[Message]) -> bool:
    """Whether the response could name what the request names, each with the error."""
    found = _array(type(request), version)
    place = _array(type(response), version, family)
    if found is None or place is None:
        return False
    (source, _), (target, kind) = found, place
    element = getattr(family, kind)
    named = getattr(request, source) or ()
    setattr(response, target, [_named(each, element, version, error, family) for each in named])
    return bool(named)


def _named(asked: Any, element: type[Any], version: int, error: int, family: type[Message]) -> Any:
    answer = element()
    names = _names(element, version)
    if isinstance(asked, Message):
        for name in names & _names(type(asked), version):
            value = getattr(asked, name)
            if not isinstance(value, list):
                setattr(answer, name, value)
        key = next((name for name in _KEYS if name in names), None)
        if key == "partition_index" and hasattr(asked, "partition"):
            answer.partition_index = asked.partition
    else:
        setattr(answer, next(name for name in _KEYS if name in names), asked)
    place = next((name for name in _ERRORS if name in names), None)
    if place is not None:
        setattr(answer, place, error)
    else:
        _mirror(asked, answer, version, error, family)
    return answer


def _array(
    cls: type[Any], version: int, family: type[Message] | None = None
) -> tuple[str, str] | None:
    """The first list in a message, and of what; with `family` the first of named parts."""
    for name, kind, first, last, *_ in cls.FIELDS:
        if not first <= version <= last or not kind.startswith("[]"):
            continue
        if family is None or hasattr(family, kind[2:]):
            return name, kind[2:]
    return None


def _names(cls: type[Any], version: int) -> set[str]:
    fields: Iterable[Any] = cls.FIELDS
    return {name for name, _, first, last, *_ in fields if first <= version <= last}
