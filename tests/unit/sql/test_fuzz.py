"""Statements that are changed at random fail with an error of SQL's, or not at all."""

from __future__ import annotations

import contextlib
import random

import pytest

from moldau.sql.errors import KsqlException
from moldau.sql.syntax.lexer import tokens
from support.ksql.cases import FOLDER, Case, cases
from support.ksql.runner import new_world

_CASES = [each for each in cases() if len(each.script) < 1500] if FOLDER.exists() else []


def _changed(case: Case, chance: random.Random, words: list[str]) -> str:
    found = [each.text for each in tokens(case.script)[:-1]]
    for _ in range(chance.choice([1, 1, 2, 3])):
        place = chance.randrange(len(found))
        match chance.randrange(4):
            case 0 if len(found) > 1:
                del found[place]
            case 1:
                found[place] = chance.choice(words)
            case 2:
                found.insert(place, chance.choice(words))
            case _:
                other = chance.randrange(len(found))
                found[place], found[other] = found[other], found[place]
    return " ".join(found)


@pytest.mark.skipif(not _CASES, reason="the shared vectors are not there")
@pytest.mark.parametrize("seed", range(4))
def test_changed_statements_fail_in_words(seed: int) -> None:
    chance = random.Random(seed)
    words = [token.text for case in chance.sample(_CASES, 50) for token in tokens(case.script)[:-1]]
    for _ in range(60):
        case = chance.choice(_CASES)
        engine = new_world(case).engine
        sql = _changed(case, chance, words)
        with contextlib.suppress(KsqlException):
            for parsed in engine.parse(sql):
                engine.execute(engine.prepare(parsed), parsed.text)
