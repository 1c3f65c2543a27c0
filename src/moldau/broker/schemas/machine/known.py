"""KnownSchemas: what the registry has said about ids and guids, and what follows for a batch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol
from uuid import UUID

from moldau.broker.log.machine.validation import RecordValidationError, SchemaRules
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode

__all__ = ["Found", "KnownSchemas", "NamedSchemas", "SchemaName"]

#: An id, or the 16 bytes of a guid.
SchemaName = int | bytes

IDS_MAX: Final = 10_000
_RECORD_ERRORS_MAX: Final = 1000


class NamedSchemas(Protocol):
    """`moldau.wire._schema_ids.SchemaIds`."""

    key_ids: dict[int | bytes, int]
    value_ids: dict[int | bytes, int]
    bad_keys: list[int]
    bad_values: list[int]


@dataclass(frozen=True, slots=True)
class Found:
    """What the registry has under an id: the subjects, and the name of the record."""

    subjects: frozenset[str] = frozenset()
    record_name: str | None = None
    """Asked for by two strategies only."""


@dataclass(frozen=True, slots=True)
class _Answer:
    found: Found | None
    at_ms: ElapsedMs


class KnownSchemas:
    """Bounded; the ids that were looked up least recently go first."""

    def __init__(self, *, missing_ms: int) -> None:
        self._missing_ms = missing_ms
        self._answers: OrderedDict[SchemaName, _Answer] = OrderedDict()

    def learn(self, schema: SchemaName, found: Found | None, now_ms: ElapsedMs) -> None:
        """None: the registry has no such id."""
        before = self._answers.get(schema)
        if found is not None and found.record_name is None and before and before.found:
            # A name never changes; this time nobody asked for it.
            found = replace(found, record_name=before.found.record_name)
        self._answers[schema] = _Answer(found, now_ms)
        self._answers.move_to_end(schema)
        if len(self._answers) > IDS_MAX:
            self._answers.popitem(last=False)

    def unknown(
        self, topic: str, rules: SchemaRules, named: NamedSchemas, now_ms: ElapsedMs
    ) -> set[SchemaName]:
        """What must be looked up before the batch can be judged."""
        return {
            schema
            for is_key, ids in ((True, named.key_ids), (False, named.value_ids))
            for schema in ids
            if self._is_unknown(topic, rules, schema, is_key, now_ms)
        }

    def _is_unknown(
        self, topic: str, rules: SchemaRules, schema: SchemaName, is_key: bool, now_ms: ElapsedMs
    ) -> bool:
        answer = self._answers.get(schema)
        if answer is None:
            return True
        if answer.found is None:
            return now_ms - answer.at_ms >= self._missing_ms
        # A schema may be registered under a further subject at any time, so that it lacks one is
        # never remembered: its producer may have registered it a moment ago.
        return not _fits(topic, rules, answer.found, is_key)

    def check(self, topic: str, rules: SchemaRules, named: NamedSchemas) -> None:
        """Raises RecordValidationError unless every record names a schema of the topic."""
        errors = [
            *self._errors(topic, rules, named.key_ids, named.bad_keys, is_key=True),
            *self._errors(topic, rules, named.value_ids, named.bad_values, is_key=False),
        ]
        if not errors:
            return
        errors.sort()
        index, reason = errors[0]
        raise RecordValidationError(
            ErrorCode.INVALID_RECORD,
            f"Log record is rejected by schema validation of topic {topic}, record {index} of the "
            f"batch: {reason}",
            errors[:_RECORD_ERRORS_MAX],
        )

    def _errors(
        self,
        topic: str,
        rules: SchemaRules,
        ids: Mapping[SchemaName, int],
        bad: Iterable[int],
        *,
        is_key: bool,
    ) -> list[tuple[int, str]]:
        side = "key" if is_key else "value"
        errors = [
            (index, f"the {side} does not begin with the id of a schema, nor does a header have it")
            for index in bad
        ]
        for schema, index in ids.items():
            answer = self._answers.get(schema)
            shown = schema if isinstance(schema, int) else UUID(bytes=schema)
            if answer is None or answer.found is None:
                errors.append((index, f"the registry has no schema {shown}, of its {side}"))
            elif not _fits(topic, rules, answer.found, is_key):
                subject = _subject(topic, rules, answer.found, is_key)
                errors.append(
                    (index, f"schema {shown}, of its {side}, is not one of subject {subject}")
                )
        return errors


def _fits(topic: str, rules: SchemaRules, found: Found, is_key: bool) -> bool:
    return _subject(topic, rules, found, is_key) in found.subjects


def _subject(topic: str, rules: SchemaRules, found: Found, is_key: bool) -> str | None:
    """By Confluent's strategies; None for a schema that has no name and would need one."""
    match rules.key_strategy if is_key else rules.value_strategy:
        case "RecordNameStrategy":
            return found.record_name
        case "TopicRecordNameStrategy":
            return None if found.record_name is None else f"{topic}-{found.record_name}"
        case _:
            return f"{topic}-{'key' if is_key else 'value'}"
