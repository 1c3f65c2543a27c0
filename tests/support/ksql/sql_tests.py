"""ksqlDB's scripts of statements and ASSERTs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from moldau.sql.errors import KsqlException, KsqlStatementException
from moldau.sql.formats import format_for
from moldau.sql.functions.registry import built_in
from moldau.sql.testing.registry import MemoryRegistry
from moldau.sql.testing.script import ScriptTester
from support.shared_vectors import FOLDER as VECTORS

FOLDER = VECTORS / "ksql" / "sql-tests"


@dataclass(frozen=True, slots=True)
class Script:
    id: str
    text: str
    error: str | None
    message: str | None


def scripts() -> Iterator[Script]:
    """All of them, named by file and test."""
    for path in sorted(FOLDER.rglob("*.sql")):
        parts = path.read_text().split("--@test:")[1:]
        for index, part in enumerate(parts):
            name, _, body = part.partition("\n")
            lines = body.splitlines()
            marks = {
                key: line.partition(":")[2].strip()
                for line in lines
                for key in ("--@expected.error", "--@expected.message")
                if line.startswith(key)
            }
            yield Script(
                f"{path.relative_to(FOLDER).with_suffix('')}/{index}/{name.strip()}",
                body,
                marks.get("--@expected.error"),
                marks.get("--@expected.message"),
            )


def run_script(script: Script) -> None:
    """Raises whatever went wrong."""
    tester = ScriptTester(functions=built_in(), formats=format_for, registry=MemoryRegistry())
    try:
        tester.run(script.text)
    except KsqlException as error:
        if script.error is None:
            raise
        texts = [str(error)]
        if isinstance(error, KsqlStatementException):
            texts.append(error.unlogged)
        if not any((script.message or "") in each for each in texts):
            raise AssertionError(f"{texts} instead of {script.message!r}") from error
        return
    finally:
        tester.close()
    if script.error is not None:
        raise AssertionError(f"expected {script.error}: {script.message}")
