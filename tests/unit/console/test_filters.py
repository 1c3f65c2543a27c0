"""Filters of records, by table."""

from __future__ import annotations

import pytest

from moldau.services.console.machine.filters import FilterError, compile_filter

RECORD = {
    "key": "ada",
    "value": {"amount": 120, "state": "new", "items": [{"sku": "A-1"}], "gone": None, "ok": True,
              "text": "7", "odd name": 1},
    "header": {"region": "eu"},
    "partition": 3,
    "offset": 10,
    "timestamp": 1700,
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        'key = "ada"',
        "key = 'ada'",
        "value.amount > 100",
        "amount >= 120 and amount <= 120",
        "$.amount == 120",
        '$.items[0].sku like "A-%"',
        '$.items[-1].sku like "A__"',
        'header.region in ["eu", "us"]',
        'value contains "A-1"',
        'state startswith "n" and state endswith "w"',
        'state matches "^n.w$"',
        "gone is null and missing is null and not missing exists and gone exists",
        "amount is not null",
        'not state = "old" and not not state = "new"',
        "(partition = 1 or partition = 3) and offset < 11",
        "ok",
        "ok = true",
        "text = 7 and text < 10",
        'value["odd name"] = 1',
        'state not in ["old"]',
        'state != "old" and state <> "older"',
    ],
)
def test_what_is_found(text: str) -> None:
    assert compile_filter(text)(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        'key = "bob"',
        "value.amount < 100",
        'amount = "many"',
        "missing > 1",
        "missing = null",
        "ok = 1",
        'state like "n"',
        "items[5].sku exists",
        'state.deeper = "x"',
    ],
)
def test_what_is_not_found(text: str) -> None:
    assert not compile_filter(text)(RECORD)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Expected a name or a value, but found the end of the filter."),
        ("amount >", "Expected a name or a value, but found the end of the filter."),
        ("amount 5", "Expected an operator, but found '5' at character 8."),
        ("(amount = 1", "Expected ), but found the end of the filter."),
        ("a = 1 b = 2", "Expected and, or, or the end, but found 'b' at character 7."),
        ('a matches "("', "is not a regular expression"),
        ("a = #", "Cannot read the filter at '#'."),
        ("(" * 100, "too many parentheses"),
        ("a" * 20_000, "more than 10000 characters"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert message in str(caught.value)
