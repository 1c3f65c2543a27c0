"""Avro schemas are read, printed and compared as Apache Avro's own library does it.

The library is the one that comes with Spark.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from moldau.data.avro.canonical import fingerprint, parsing_canonical_form
from moldau.data.avro.compatibility import incompatibilities
from moldau.data.avro.language import AvroLanguage
from moldau.data.errors import DataError
from moldau.data.schema_language import ResolvedReference, SchemaError
from support.avro_schemas import Schemas

PROGRAM = Path(__file__).parents[1] / "java" / "AvroSchemas.java"
SEED = 17
QUESTIONS = 6000


def ask_avro(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None or shutil.which("java") is None:
        pytest.skip("no Java, or no Spark and so no Avro library")
    jars = Path(spark.origin).parent / "jars"
    paths = [
        str(path)
        for pattern in ("avro-1*.jar", "jackson-*.jar", "slf4j-api-*.jar", "commons-*.jar")
        for path in jars.glob(pattern)
    ]
    ended = subprocess.run(
        ["java", "-cp", ":".join(paths), str(PROGRAM)],
        input="".join(json.dumps(each) + "\n" for each in questions),
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


def our_answer(asked: dict[str, Any]) -> dict[str, Any]:
    references = [
        ResolvedReference(str(index), text) for index, text in enumerate(asked["references"])
    ]
    try:
        schema = AvroLanguage().parse(asked["text"], references)
        answer: dict[str, Any] = {
            "canonical": schema.canonical_text,
            "resolved": schema.formatted("resolved"),
            "parsing": parsing_canonical_form(schema.root),
            "fingerprint": fingerprint(schema.root),
        }
        if "writer" in asked:
            writer = AvroLanguage().parse(asked["writer"])
            found = incompatibilities(schema.root, writer.root)
            answer["incompatibilities"] = [
                [each.type, each.location, each.message] for each in found
            ]
    except (SchemaError, DataError):
        return {"error": True}
    normalized = schema.normalized()
    assert normalized.normalized().canonical_text == normalized.canonical_text
    return answer


def test_schemas_are_what_they_are_to_apache_avro() -> None:
    schemas = Schemas(SEED)
    questions = [schemas.question() for _ in range(QUESTIONS)]
    answers = ask_avro(questions)
    assert len(answers) == QUESTIONS
    valid = differing = 0
    for asked, answer in zip(questions, answers, strict=True):
        expected = {"error": True} if "error" in answer else answer
        assert our_answer(asked) == expected, asked
        valid += "error" not in answer
        differing += bool(answer.get("incompatibilities"))
    # Neither side of the comparison is empty.
    assert min(valid, QUESTIONS - valid, differing * 10) > QUESTIONS / 10
