"""What KnownSchemas decides about a batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from moldau.broker.log.machine.validation import RecordValidationError, SchemaRules
from moldau.broker.schemas.machine.known import IDS_MAX, Found, KnownSchemas
from moldau.times import ElapsedMs
from moldau.wire.errors import ErrorCode

BOTH = SchemaRules(True, True, "TopicNameStrategy", "TopicNameStrategy")


@dataclass
class Named:
    key_ids: dict[int, int] = field(default_factory=dict)
    value_ids: dict[int, int] = field(default_factory=dict)
    bad_keys: list[int] = field(default_factory=list)
    bad_values: list[int] = field(default_factory=list)


def known(**found: Found | None) -> KnownSchemas:
    made = KnownSchemas(missing_ms=60_000)
    for name, each in found.items():
        made.learn(int(name[1:]), each, ElapsedMs(0))
    return made


@pytest.mark.parametrize(
    ("strategy", "found", "fits"),
    [
        ("TopicNameStrategy", Found(frozenset({"t-value"})), True),
        ("TopicNameStrategy", Found(frozenset({"t-key", "u-value"})), False),
        ("RecordNameStrategy", Found(frozenset({"a.R"}), "a.R"), True),
        ("RecordNameStrategy", Found(frozenset({"t-value"}), "a.R"), False),
        ("RecordNameStrategy", Found(frozenset({"t-value"}), None), False),
        ("TopicRecordNameStrategy", Found(frozenset({"t-a.R"}), "a.R"), True),
        ("TopicRecordNameStrategy", Found(frozenset({"a.R"}), "a.R"), False),
    ],
)
def test_a_schema_must_be_one_of_the_topics_subject(
    strategy: str, found: Found, fits: bool
) -> None:
    rules = SchemaRules(False, True, "TopicNameStrategy", strategy)
    schemas, named = known(_5=found), Named(value_ids={5: 2})
    if fits:
        schemas.check("t", rules, named)
    else:
        with pytest.raises(RecordValidationError) as refused:
            schemas.check("t", rules, named)
        assert refused.value.code is ErrorCode.INVALID_RECORD
        assert [index for index, _ in refused.value.record_errors] == [2]


def test_all_that_is_wrong_is_named_in_the_order_of_records() -> None:
    good = Found(frozenset({"t-value", "t-key"}))
    schemas = known(_1=good, _2=None)
    with pytest.raises(RecordValidationError, match="record 0 of the batch: the key") as refused:
        schemas.check("t", BOTH, Named({1: 0}, {1: 1, 2: 4}, [0], [3]))
    assert [index for index, _ in refused.value.record_errors] == [0, 3, 4]


def test_what_is_asked_again_and_when() -> None:
    schemas = known(_1=Found(frozenset({"t-value"})), _2=None, _3=Found(frozenset({"u-value"})))
    rules = SchemaRules(False, True, "TopicNameStrategy", "TopicNameStrategy")
    named = Named(value_ids={1: 0, 2: 1, 3: 2, 4: 3})
    assert schemas.unknown("t", rules, named, ElapsedMs(0)) == {3, 4}
    assert schemas.unknown("t", rules, named, ElapsedMs(60_000)) == {2, 3, 4}


def test_what_is_remembered_is_bounded() -> None:
    schemas = known()
    for each in range(IDS_MAX + 10):
        schemas.learn(each, Found(), ElapsedMs(0))
    assert len(schemas._answers) == IDS_MAX
