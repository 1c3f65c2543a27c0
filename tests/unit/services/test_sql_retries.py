"""What is said about a query that failed."""

from __future__ import annotations

from moldau.services.sql.machine.retries import classified, explained
from moldau.sql.errors import QueryFailed
from moldau.streams.errors import StreamsError


def _raised(*errors: Exception) -> Exception:
    """The last of these, each caused by the one before it."""
    found: Exception | None = None
    for each in errors:
        each.__cause__ = found
        found = each
    assert found is not None
    return found


def test_an_error_is_explained_by_its_causes() -> None:
    failed = _raised(QueryFailed("The function took longer than 5 ms"), StreamsError("in task 0_0"))
    assert explained(failed) == (
        "StreamsError: in task 0_0\nCaused by: QueryFailed: The function took longer than 5 ms"
    )
    assert classified(failed) == "USER"


def test_what_was_said_is_not_said_again() -> None:
    failed = _raised(ValueError("never"), StreamsError("no date: never"))
    assert explained(failed) == "StreamsError: no date: never"
    assert classified(failed) == "UNKNOWN"


def test_an_explanation_has_an_end() -> None:
    one = ValueError("one")
    two = _raised(one, ValueError("two"))
    one.__cause__ = two
    assert explained(two).count("Caused by") == 1
    assert len(explained(ValueError("x" * 100_000))) == 10_000
