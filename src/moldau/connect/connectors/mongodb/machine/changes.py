"""Where a change of the source goes, what its key is, and forms of JSON."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Mapping
from typing import Any, Final

from moldau.data import json_text

FORMATTERS: Final = ("DefaultJson", "ExtendedJson", "SimplifiedJson")


def namespace_map(text: str) -> dict[str, str]:
    """`{"db": "topic", "db.coll": "other", "*": "rest"}`; ValueError if it is none."""
    if not text:
        return {}
    found = json_text.parse(text)
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError("must be a JSON object of texts")
    for name, topic in found.items():
        if name.startswith("/") or not name or not topic:
            raise ValueError("must have DATABASE, DATABASE.COLLECTION or *, not patterns")
    return found


def topic_name(
    database: str | None,
    collection: str | None,
    *,
    prefix: str,
    suffix: str,
    separator: str,
    mapped: Mapping[str, str],
) -> str:
    """The more exact name of a namespace counts; prefix and suffix are added in any case."""
    parts = [each for each in (database, collection) if each]
    namespace = ".".join(parts)
    if namespace in mapped:
        parts = [mapped[namespace]]
    elif database in mapped:
        parts = [mapped[database or ""], *parts[1:]]
    elif "*" in mapped:
        parts = [mapped["*"]]
    return separator.join(each for each in (prefix, *parts, suffix) if each)


def pipeline_stages(text: str, stages: Any) -> list[dict[str, Any]]:
    """The stages that were read from a text; ValueError if they are none."""
    if not isinstance(stages, list) or not all(isinstance(each, dict) for each in stages):
        raise ValueError(f"must be a JSON array of stages, not {text}")
    return stages


def simplified(value: Any) -> Any:
    """BSON by the types that JSON has: ids, decimals, dates and bytes become texts."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {key: simplified(each) for key, each in value.items()}
        case list() | tuple():
            return [simplified(each) for each in value]
        case datetime.datetime():
            text = value.astimezone(datetime.UTC).isoformat(timespec="milliseconds")
            text = text.replace("+00:00", "Z")
            return text.replace(".000Z", "Z")
        case bytes():
            return base64.b64encode(value).decode()
    return str(value)
