"""Requests made of records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.support.documents import json_bytes, text_of
from moldau.data.errors import DataError
from moldau.data.primitive_bytes import java_text
from moldau.data.struct import Struct


@dataclass(frozen=True, slots=True)
class BodyRules:
    url_path: str
    """With ${topic} and ${key}."""
    batch_max: int
    as_array: bool
    prefix: str
    suffix: str
    separator: str
    as_json: bool


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: bytes
    records: tuple[SinkRecord, ...]


def requests(rules: BodyRules, records: Sequence[SinkRecord]) -> Iterator[Request]:
    """Consecutive records of one address go into one request, up to the size of a batch."""
    group: list[SinkRecord] = []
    path = ""
    for record in records:
        its_path = address(rules.url_path, record)
        if group and (its_path != path or len(group) >= rules.batch_max):
            yield _request(rules, path, group)
            group = []
        path = its_path
        group.append(record)
    if group:
        yield _request(rules, path, group)


def _request(rules: BodyRules, path: str, records: Sequence[SinkRecord]) -> Request:
    bodies = [_body(rules, record) for record in records]
    if rules.as_array:
        body = b"[" + b",".join(bodies) + b"]"
    else:
        separator = rules.separator.encode()
        body = rules.prefix.encode() + separator.join(bodies) + rules.suffix.encode()
    return Request(path, body, tuple(records))


def address(template: str, record: SinkRecord) -> str:
    """The template with the record's topic and key."""
    path = template.replace("${topic}", quote(record.topic, safe=""))
    if "${key}" not in path:
        return path
    if record.key is None:
        raise DataError(
            f"record {record.topic}-{record.partition}@{record.offset} has no key, which the "
            "address needs"
        )
    return path.replace("${key}", quote(text_of(record.key, record.key_schema, "a key"), safe=""))


def _body(rules: BodyRules, record: SinkRecord) -> bytes:
    value = record.value
    if rules.as_json or isinstance(value, (Struct, dict, list)):
        return json_bytes(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return (value if isinstance(value, str) else java_text(value)).encode()


def pointed(document: Any, pointer: str) -> Any:
    """The part of a JSON document that a JSON pointer names; None if there is none."""
    for part in filter(None, pointer.split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, Mapping):
            document = document.get(name)
        elif isinstance(document, list) and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def linked(header: str, relation: str) -> str | None:
    """The target of a relation in a Link header (RFC 8288); None if there is none."""
    for match in re.finditer(r"<([^>]*)>([^<]*)", header):
        for name in re.findall(r'rel\s*=\s*"?([^";,]*)', match[2]):
            if relation in name.split():
                return match[1]
    return None
