"""Requests made of records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from moldau.connect.api.records import SinkRecord
from moldau.connect.connectors.support.documents import json_bytes, text_of
from moldau.connect.transforms.java_patterns import compiled, expand
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
    batch_key: str
    """With ${topic} and ${key}: records of a request have the same."""
    replacements: tuple[tuple[re.Pattern[str], str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: bytes
    records: tuple[SinkRecord, ...]


def requests(rules: BodyRules, records: Sequence[SinkRecord]) -> Iterator[Request]:
    """Records of one address and one batch key go into one request, up to the size of a batch.
    Those of one key stay in order."""
    groups: dict[tuple[str, str], list[SinkRecord]] = {}
    for record in records:
        path = address(rules.url_path, record)
        key = path, _filled(rules.batch_key, record)
        group = groups.setdefault(key, [])
        group.append(record)
        if len(group) >= rules.batch_max:
            yield _request(rules, path, groups.pop(key))
    for (path, _), group in groups.items():
        yield _request(rules, path, group)


def statuses(text: str) -> frozenset[int]:
    """`400,404,500-502,510-` as the statuses it names."""
    found: set[int] = set()
    for each in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = each.partition("-")
        if not first.isdigit() or not (last.isdigit() or not last):
            raise ValueError(f"must be statuses such as 404,500-502,510-, and {each} is none")
        found.update(range(int(first), int(last or 599) + 1) if dash else (int(first),))
    return frozenset(found)


def replacements(
    patterns: str, texts: str, separator: str
) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns with what they are replaced with; ValueError if one is missing."""
    if not patterns:
        return ()
    left, right = patterns.split(separator), texts.split(separator)
    if len(left) != len(right):
        raise ValueError(f"must have as many as regex.patterns: {len(left)}, not {len(right)}")
    found = [compiled("regex.patterns", each) for each in left]
    return tuple(zip(found, right, strict=True))


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


def _filled(template: str, record: SinkRecord) -> str:
    """The template with topic and key as texts; a key that is none is empty."""
    found = template.replace("${topic}", record.topic)
    if "${key}" not in found:
        return found
    key = record.key
    if isinstance(key, (Struct, dict, list)):
        text = json_bytes(key).decode()
    else:
        text = "" if key is None else text_of(key, record.key_schema, "a key")
    return found.replace("${key}", text)


def _body(rules: BodyRules, record: SinkRecord) -> bytes:
    data = _plain_body(rules, record)
    if not rules.replacements:
        return data
    text = data.decode("utf-8", "surrogateescape")
    for pattern, replacement in rules.replacements:
        if "${topic}" in replacement or "${key}" in replacement:
            replacement = _literal(replacement, record)
        text = pattern.sub(partial(expand, replacement=replacement), text)
    return text.encode("utf-8", "surrogateescape")


def _literal(replacement: str, record: SinkRecord) -> str:
    """With topic and key, whose dollars and backslashes stand for themselves."""
    for name in ("${topic}", "${key}"):
        if name in replacement:
            text = re.sub(r"([\\$])", r"\\\1", _filled(name, record))
            replacement = replacement.replace(name, text)
    return replacement


def _plain_body(rules: BodyRules, record: SinkRecord) -> bytes:
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
