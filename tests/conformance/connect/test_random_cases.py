"""Values, JSON, converters and transforms beside Kafka's own classes: every type with every option,
and random cases."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from support.connect_answers import comparable, our_answer
from support.connect_random import RandomCases
from support.connect_tables import all_cases
from support.java import run_program
from support.processes import kafka_missing

COUNT = 1500
SEEDS = [1, pytest.param(2, marks=pytest.mark.long("more of the same"))]
#: Python's times end there, so that we refuse what Kafka takes.
NO_SUCH_TIME = "the years 1 to 9999"
#: Before it, Java counts days by the Julian calendar.
FIRST_GREGORIAN_MS = -12_219_292_800_000
#: After it, Python has no times.
LAST_MS = 253_402_300_799_999
#: Errors of Java's that say nothing of what was wrong.
ACCIDENTS = {
    "ArrayIndexOutOfBoundsException",
    "ClassCastException",
    "IllegalArgumentException",
    "IndexOutOfBoundsException",
    "NullPointerException",
}


@pytest.mark.skipif(kafka_missing() is not None, reason="Apache Kafka's classes are not here")
@pytest.mark.parametrize("seed", SEEDS)
def test_random_cases_are_answered_as_kafka_answers_them(tmp_path: Path, seed: int) -> None:
    cases = RandomCases(seed)
    given = [cases.next() for _ in range(COUNT)]
    file = tmp_path / "cases"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in given))
    lines = run_program("ConnectAnswers.java", str(file)).split("\n")[:-1]
    assert len(lines) == COUNT
    wrong = []
    for case, line in zip(given, lines, strict=True):
        theirs, ours = json.loads(line), our_answer(case)
        is_known = NO_SUCH_TIME in ours.get("message", "")
        if comparable(theirs) != comparable(ours) and not is_known:
            wrong.append({"case": case, "Kafka": theirs, "Moldau": ours})
    assert not wrong, "\n".join(json.dumps(each) for each in wrong[:5])


@pytest.mark.skipif(kafka_missing() is not None, reason="Apache Kafka's classes are not here")
def test_every_type_with_every_option_is_answered_as_kafka_answers_it(tmp_path: Path) -> None:
    """Errors are of the same kind, too."""
    given = list(all_cases())
    file = tmp_path / "cases"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in given))
    lines = run_program("ConnectAnswers.java", str(file)).split("\n")[:-1]
    wrong = []
    for case, line in zip(given, lines, strict=True):
        theirs, ours = json.loads(line), our_answer(case)
        if known_difference(case, theirs, ours) is not None:
            continue
        kind, own = theirs.get("error"), ours.get("error")
        same_kind = kind == own or kind in ACCIDENTS
        if comparable(theirs) != comparable(ours) or not same_kind:
            wrong.append({"case": case, "Kafka": theirs, "Moldau": ours})
    assert not wrong, "\n".join([str(len(wrong)), *(json.dumps(each) for each in wrong[:5])])


def known_difference(
    case: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]
) -> str | None:
    """Why our answer is another one, or None if it must not be."""
    config = case.get("config", {})
    if NO_SUCH_TIME in ours.get("message", ""):
        return "Python has no such time"
    if "blacklist" in config or "whitelist" in config:
        return "Kafka 4 does not know the old names any more"
    if case.get("converter", "").endswith("StringConverter") and "[B@" in printed(theirs):
        return "Java prints bytes as an address"
    if case.get("smt") == "TimestampRouter" and ours.get("error") == "ConfigException":
        return "a wrong format is refused at the start, not with the first record"
    if (
        case.get("smt", "").startswith("ReplaceField")
        and theirs.get("error") == "ClassCastException"
    ):
        return "keys of maps need not be texts"
    found = theirs.get("value")
    value = found.get("value") if isinstance(found, dict) else None
    if isinstance(value, str) and value.startswith("t:"):
        if int(value[2:]) < FIRST_GREGORIAN_MS:
            return "Java counts old days by the Julian calendar"
        if int(value[2:]) > LAST_MS:
            return "Python has no such time"
    if untyped_number(case):
        return "Python has one type for whole numbers, and one for the others"
    return None


def printed(answer: dict[str, Any]) -> str:
    data = answer.get("bytes") or "b:"
    return base64.b64decode(data[2:]).decode("utf-8", "replace")


def untyped_number(case: dict[str, Any]) -> bool:
    data = case.get("input")
    is_plain = isinstance(data, dict) and data.get("schema", "") is None
    return "Converter" in case.get("converter", "") and is_plain
