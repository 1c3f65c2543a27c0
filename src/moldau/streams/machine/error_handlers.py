"""What is done about records that cannot be read, processed or written, and their dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple

from moldau.streams.errors import StreamsError
from moldau.streams.records import Produced, Record, RecordContext

Verdict = Literal["continue", "fail"]
#: Of records that are not delivered: "retry" lets the task start over from its last commit.
ProductionVerdict = Literal["continue", "fail", "retry"]

_HEADER: Final = "__streams.errors."


class ErrorResponse(NamedTuple):
    """A verdict with dead letters of the handler's own, instead of the one for the input record.

    ErrorResponse("continue", [DeadLetter("errors", record.key, record.value)])
    """

    verdict: ProductionVerdict
    dead_letters: tuple[DeadLetter, ...] | list[DeadLetter] = ()


class DeadLetter(NamedTuple):
    """A record that a handler wants to have written; without a timestamp that of the input."""

    topic: str
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    partition: int | None = None


class ErrorContext(RecordContext):
    """Where something failed: the input record's topic, partition and offset, the bytes that it
    was read as, the task and the node. A punctuation has no record: its topic is empty."""

    raw_key: bytes | None
    raw_value: bytes | None
    task_id: str
    node: str

    @classmethod
    def of(
        cls,
        where: RecordContext,
        raw: tuple[bytes | None, bytes | None],
        *,
        task_id: str,
        node: str,
    ) -> ErrorContext:
        made = cls(where.topic, where.partition, where.offset, where.timestamp, where.headers)
        made.raw_key, made.raw_value = raw
        made.task_id, made.node = task_id, node
        return made


class UnwrittenRecord(Record[Any, Any]):
    """A record that could not be written. `where` is the input record that it was made from: by
    the time that a delivery fails, later ones may have been processed."""

    where: ErrorContext

    @classmethod
    def of(cls, record: Record[Any, Any], where: ErrorContext) -> UnwrittenRecord:
        made = cls(record.key, record.value, record.timestamp, record.headers)
        made.where = where
        return made


Answer = Verdict | ErrorResponse
ProductionAnswer = ProductionVerdict | ErrorResponse
#: Decides about a record that cannot be read, processed or written.
DeserializationHandler = Callable[[ErrorContext, Exception], Answer]
#: There is no record where a punctuation failed.
ProcessingHandler = Callable[[ErrorContext, Record[Any, Any] | None, str, Exception], Answer]
ProductionHandler = Callable[[str, UnwrittenRecord, Exception], ProductionAnswer]


def fail_on_error(*_: object) -> Verdict:
    """The default of deserialization and processing: the application stops."""
    return "fail"


def retry_if_retriable(*given: object) -> ProductionVerdict:
    """The default of production: the task starts over from its last commit if the error may pass,
    such as a broker that is away for long; otherwise the application stops."""
    return "retry" if given and is_retriable(given[-1]) else "fail"


def is_retriable(error: object) -> bool:
    """Whether an error of a delivery may pass: as clients say of their errors."""
    return getattr(error, "retriable", False) is True


def skip_on_error(*_: object) -> Verdict:
    """Skip the record and count it as dropped."""
    return "continue"


class Handlers(NamedTuple):
    """What is done about records that fail."""

    deserialization: DeserializationHandler = fail_on_error
    processing: ProcessingHandler = fail_on_error
    production: ProductionHandler = retry_if_retriable
    #: Where input records go that failed in one of these ways, with the reason (KIP-1034).
    dead_letter_topic: str | None = None

    def letters(
        self,
        answer: ProductionAnswer,
        where: RecordContext,
        raw: tuple[bytes | None, bytes | None],
        error: Exception,
    ) -> Iterable[Produced]:
        """What is written about an input record with this raw key and value."""
        if isinstance(answer, ErrorResponse):
            return [_own_letter(each, where) for each in answer.dead_letters]
        topic = self.dead_letter_topic
        return () if topic is None else (_letter(topic, where, raw, error),)


def goes_on(answer: Answer) -> bool:
    """Whether the application skips the record; raises StreamsError for what is no answer."""
    return _verdict(answer, ("continue", "fail")) == "continue"


def without_retry(answer: ProductionAnswer) -> Answer:
    """What a production handler says where there is nothing to try again, such as of a value that
    cannot be serialized: "retry" means "fail"."""
    match answer:
        case ErrorResponse(verdict="retry"):
            return answer._replace(verdict="fail")
        case "retry":
            return "fail"
        case _:
            return answer


def delivery_verdict(answer: ProductionAnswer, error: object) -> ProductionVerdict:
    """What follows for a record that was not delivered; raises StreamsError for what is no answer.

    "retry" holds for errors that may pass: any other would come again without end.
    """
    if not is_retriable(error):
        answer = without_retry(answer)
    return _verdict(answer, ("continue", "fail", "retry"))


def _verdict(answer: ProductionAnswer, allowed: tuple[str, ...]) -> ProductionVerdict:
    verdict = answer.verdict if isinstance(answer, ErrorResponse) else answer
    if verdict not in allowed:
        choice = ", ".join(f'"{each}"' for each in allowed)
        raise StreamsError(
            f"an error handler returned {answer!r}: return {choice} or an ErrorResponse"
        )
    return verdict


def _letter(
    topic: str, where: RecordContext, raw: tuple[bytes | None, bytes | None], error: Exception
) -> Produced:
    """The input record as it was read, with what went wrong."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    name = f"{module}{kind.__qualname__}"
    why: dict[str, str | None] = {
        "exception": name,
        "message": str(error),
        "stacktrace": "\n".join([*_places(error), f"{name}: {error}\n"]),
        # Punctuations belong to no topic.
        "topic": where.topic or None,
        "partition": str(where.partition),
        "offset": str(where.offset),
    }
    added = tuple(
        (_HEADER + name, None if text is None else text.encode()) for name, text in why.items()
    )
    return Produced(topic, *raw, max(0, where.timestamp), tuple(where.headers) + added)


def _places(error: Exception) -> Iterable[str]:
    """Where an error was raised, as Python prints it, without the lines of the sources."""
    yield "Traceback (most recent call last):"
    at = error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        yield f'  File "{code.co_filename}", line {at.tb_lineno}, in {code.co_name}'
        at = at.tb_next


def _own_letter(letter: DeadLetter, where: RecordContext) -> Produced:
    timestamp = max(0, where.timestamp) if letter.timestamp is None else letter.timestamp
    headers, partition = tuple(letter.headers), letter.partition
    return Produced(letter.topic, letter.key, letter.value, timestamp, headers, partition)
