"""Explains failures of Spark and of Python in the terms of the user's own definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Protocol

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.machine.packages import missing_package

__all__ = ["BAD_RECORD", "ROW_STEP", "explain", "is_not_the_users", "short"]

BAD_RECORD = "moldau: bad record: "
ROW_STEP = "moldau: row step: "
"""The prefixes of our own messages inside Spark's."""

_MESSAGE_SIZE_MAX = 600


class Place(Protocol):
    """A line of the user's file, which `str` shows."""

    def below(self, lines: int) -> Place: ...


class Placed(Protocol):
    """A source, or a step; SQL steps have a `query`, Python steps a `function` too."""

    @property
    def place(self) -> Place | None: ...


class Step(Placed, Protocol):
    @property
    def name(self) -> str | None: ...


class Pipeline(Placed, Protocol):
    """What an explanation reads of a definition."""

    @property
    def sources(self) -> Mapping[str, Placed]: ...
    @property
    def steps(self) -> Sequence[Step]: ...


def explain(
    failure: BaseException | str, pipeline: Pipeline | None = None, *, step: Step | None = None
) -> PipelineError:
    """What the failure means, in one sentence with the line of the user's file.

    `failure` is an exception of Spark, of a user's function or of ours, or the text of one that
    came from the server. `step` is the step that was being built, if that is known.
    """
    if isinstance(failure, PipelineError):
        return failure
    text = failure if isinstance(failure, str) else _text_of(failure)
    if not isinstance(failure, str) and (own := _raised_here(failure)) is not None:
        return _user_code(own, text)
    if (found := _found_by_us(text, pipeline) or _missing_topic(text, pipeline)) is not None:
        return found
    if (own := _raised_in_worker(_head(text)) or _raised_in_worker(text)) is not None:
        return _user_code(own, text)
    places = _Places(pipeline, step, None if isinstance(failure, str) else _call_site(failure))
    return _raised_by_data_source(text, places) or _spark(text, places)


def short(failure: BaseException | str) -> str:
    """The failure's own sentence, without Spark's names, plans and stacks."""
    return _sentence(failure if isinstance(failure, str) else _text_of(failure))


# Python


@dataclass(frozen=True, slots=True)
class _Raised:
    """An exception of the user's code: `KeyError: 'amount'` in steps.py, line 34."""

    file: str
    line: int
    function: str
    reported: str


_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+?)\s*$')
_REPORTED = re.compile(
    r"^(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|[A-Za-z_]\w*))"
    r"(?:: (?P<text>.*))?$"
)
_TRACEBACK = "Traceback (most recent call last):"
_NOT_THE_USERS = re.compile(
    r"(^<)|(/(site|dist)-packages/)|(/pyspark(\.zip)?/)|(/lib/python3\.\d+/)"
    r"|(/moldau/(pipelines|spark|client|peers|wire|config)/)"
)
# Failures of the environment: another attempt may succeed.
_PASSING = re.compile(
    r"(Timeout|Connection|Unavailable|BrokenPipe|Network|OSError|IOError|Retriable|RetryError"
    r"|TooManyRequests|socket\.|ssl\.)"
)


def is_not_the_users(file: str) -> bool:
    """Whether a file of a traceback is Python's, Spark's or ours."""
    return _NOT_THE_USERS.search(file) is not None


def _user_code(raised: _Raised, text: str) -> PipelineError:
    return PipelineError(
        _cut(f"in {raised.function}: {raised.reported}"),
        where=f"{PurePath(raised.file).name}:{raised.line}",
        detail=text,
        retriable=_PASSING.search(raised.reported.partition(":")[0]) is not None,
    )


def _raised_here(failure: BaseException) -> _Raised | None:
    """An exception that passed a function of the user's in this process."""
    found = None
    trace = failure.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_not_the_users(code.co_filename):
            found = (code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    if found is None or not _inside_step(failure):
        return None
    reported = type(failure).__name__
    if text := _sentence(_text_of(failure)):
        reported += f": {text}"
    return _Raised(*found, reported)


def _inside_step(failure: BaseException) -> bool:
    """Whether the user's frame is below ours: above it is only the script that called us."""
    seen = False
    trace = failure.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "/moldau/pipelines/build/" in name:
            seen = True
        elif seen and not is_not_the_users(name):
            return True
        trace = trace.tb_next
    return False


def _raised_in_worker(text: str) -> _Raised | None:
    """The last line of the user's in the first traceback that has one.

    Of chained exceptions the first is the cause; the others were raised while it was handled.
    """
    for block in _tracebacks(text):
        frames = [found for line in block if (found := _FRAME.match(line))]
        users = [frame for frame in frames if not is_not_the_users(frame["file"])]
        reported = _last_words(block)
        if users and reported:
            last = users[-1]
            return _Raised(last["file"], int(last["line"]), last["function"], reported)
    return None


def _tracebacks(text: str) -> Iterator[list[str]]:
    lines = text.splitlines()
    starts = [index for index, line in enumerate(lines) if _TRACEBACK in line]
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        yield lines[start + 1 : end]


def _last_words(block: Sequence[str]) -> str | None:
    """The line that names the exception: the first after the frames that is not indented."""
    after = False
    for line in block:
        if _FRAME.match(line):
            after = True
        elif after and line and not line[0].isspace():
            return line.strip() if _REPORTED.match(line.strip()) else None
    return None


_RECORD = re.compile(
    re.escape(BAD_RECORD) + r"(?P<reported>(?:record \S+ at offset \d+|a record): .*)"
)
_ROW = re.compile(re.escape(ROW_STEP) + r"(?P<where>[^:\n]+:\d+): (?P<reported>.*)")
_TO_DEAD_LETTERS = "dead_letter: TOPIC sends such records there, errors: ignore leaves them out"


def _found_by_us(text: str, pipeline: Pipeline | None) -> PipelineError | None:
    """A record that no option handles: Spark found it bad, or a row step failed for it."""
    if row := _ROW.search(text):
        reported = _without_state(row["reported"])
        return PipelineError(
            _cut(reported),
            where=row["where"],
            hint=_TO_DEAD_LETTERS,
            detail=text,
            retriable=_PASSING.search(reported) is not None,
        )
    if record := _RECORD.search(text):
        sources = pipeline.sources.values() if pipeline else ()
        place = next((source.place for source in sources if source.place), None)
        return PipelineError(
            _cut(f"bad {_without_state(record['reported'])}"),
            where=str(place) if place else None,
            hint=_TO_DEAD_LETTERS,
            detail=text,
        )
    return None


_NO_TOPIC = re.compile(r"topic (?P<topics>\S+(?:, \S+)*) does not exist at (?P<servers>\S+)")


def _missing_topic(text: str, pipeline: Pipeline | None) -> PipelineError | None:
    """In the words of the definition; retried, because the topic may still be made."""
    found = _NO_TOPIC.search(_head(text))
    if found is None or pipeline is None:
        return None
    topics = found["topics"].split(", ")
    for name, source in pipeline.sources.items():
        named = {getattr(source, "topic", None), *getattr(source, "topics", ())}
        missing = [topic for topic in topics if topic in named]
        if not missing:
            continue
        where = "source" if name == "input" else f"sources.{name}"
        shown = ", ".join(repr(topic) for topic in missing)
        create = f"moldau topics --create --topic {missing[0]} --bootstrap-server"
        return PipelineError(
            f"{where}: topic {shown} does not exist at {found['servers']}",
            where=str(source.place) if source.place else None,
            hint=f"correct its name, or create it: {create} {found['servers']}",
            detail=text,
            retriable=True,
        )
    return None


# Exceptions of our sources and sinks that say what is wrong with the definition or the data.
_FINAL = re.compile(
    r"(OptionError|TableError|SchemaMismatchError|RejectedRowError|ChangedRowsError|DataLossError"
    r"|RowError|ColumnsError|PipelineError)$"
)


def _raised_by_data_source(text: str, places: _Places) -> PipelineError | None:
    """A source or sink written in Python failed: the last line of its traceback says why."""
    reported = None
    for block in _tracebacks(_head(text)):
        reported = _last_words(block) or reported
    if reported is None:
        return None
    kind, _, message = reported.partition(": ")
    final = _FINAL.search(kind) is not None
    place = places.of(None, None)
    shown = message if kind.startswith("moldau.") and message else reported
    return PipelineError(
        _cut(_without_state(shown)),
        where=str(place) if place else None,
        detail=text,
        retriable=not final,
    )


def _without_state(text: str) -> str:
    return re.sub(r"(\s*SQLSTATE: \w+)+\s*$", "", text)


def _head(text: str) -> str:
    """The text before the plan and the stack."""
    return re.split(r"\n=== Streaming Query ===|\n\s*JVM stacktrace:", text, maxsplit=1)[0]


# Spark


_CONDITION = re.compile(r"^\[(?P<condition>[A-Z][A-Z0-9_.]+)\]\s*(?P<text>.*)", re.DOTALL)
_POSITION = re.compile(r"\(?line (?P<line>\d+),? pos(?:ition)? (?P<position>\d+)\)?")
_QUERY = re.compile(
    r"^[\[(]STREAM_FAILED[\])]\s*(?:Query \[id = [^\]]*\] terminated with exception:\s*)?"
)
_CAUSE = re.compile(r"^Caused by: (?P<kind>[\w.$]+): (?P<text>.+)$", re.MULTILINE)
_JAVA = re.compile(r"^(?:[a-z][\w$]*\.)+(?P<kind>[A-Z][\w$]*): ")
_STACK = re.compile(
    r"\n\s*(?:JVM stacktrace:|at [\w.$]+\(|== SQL|=== Streaming Query)|\nDriver stacktrace"
)
# Advice that Spark adds to its sentences and that does not fit a pipeline.
_ADVICE = re.compile(
    r"\s*(?:Verify the spelling|Please restart your job|If you did not|To tolerate"
    r"|Correct the value|Search path:).*",
    re.DOTALL,
)
_EMPTY = re.compile(
    r"^(Job aborted|Writing job aborted|Task failed|Exception thrown in awaitResult"
    r"|Failed to execute|Boxed Error|null$)"
)
_CONTEXT = re.compile(
    r"== SQL[^\n]*\(line (?P<line>\d+), position (?P<position>\d+)\) ==\n(?P<query>.*?)\n\s*\^",
    re.DOTALL,
)
# Conditions about a statement or a value: another attempt fails in the same way.
_LASTING = re.compile(
    r"^(UNRESOLVED|PARSE|DATATYPE_MISMATCH|MISSING|INVALID|UNSUPPORTED|CAST|DIVIDE|ARITHMETIC"
    r"|STREAMING_OUTPUT_MODE|TABLE_OR_VIEW|AMBIGUOUS|GROUP|NUMERIC|AVRO|PROTOBUF|COLUMN|ROUTINE"
    r"|WRONG_NUM_ARGS|INCOMPATIBLE|NOT_|STATE_STORE_.*SCHEMA|USER_RAISED|NON_|NESTED|EXPRESSION)"
)


def _call_site(failure: BaseException) -> str | None:
    """The user's line that made the part of a DataFrame which Spark finds wrong."""
    contexts = getattr(failure, "getQueryContext", lambda: None)() or []
    for context in contexts:
        if context.contextType().name != "DataFrame":
            continue
        for site in (context.callSite() or "").splitlines():
            file, _, line = site.rpartition(":")
            if file and line.isdecimal() and not is_not_the_users(file):
                return f"{PurePath(file).name}:{line}"
    return None


class _Places:
    """Which line of the definition a statement's position is."""

    def __init__(self, pipeline: Pipeline | None, step: Step | None, call_site: str | None) -> None:
        self._pipeline = pipeline
        self._step = step
        self._call_site = call_site

    def views(self) -> list[str]:
        """The views that a statement can read."""
        if self._pipeline is None:
            return []
        steps = [step.name for step in self._pipeline.steps if step.name is not None]
        return list(dict.fromkeys(["input", *self._pipeline.sources, *steps]))

    def of(self, line: int | None, query: str | None) -> Place | str | None:
        if self._call_site is not None:
            return self._call_site
        place = None
        step = self._step
        if step is None and query is not None and self._pipeline is not None:
            step = next(
                (
                    one
                    for one in self._pipeline.steps
                    if query.strip() and query.strip() in getattr(one, "query", "")
                ),
                None,
            )
        if step is None and query is None and self._pipeline is not None:
            return self._pipeline.place
        if step is not None and step.place is not None:
            function = getattr(step, "function", None)
            place = (function.place if function else None) or step.place
            if line is not None and hasattr(step, "query"):
                place = place.below(line - 1)
        return place


def _spark(text: str, places: _Places) -> PipelineError:
    condition = None
    cause = _root(text)
    if found := _CONDITION.match(cause):
        condition = found["condition"]
    sentence = _sentence(cause)
    position = _POSITION.search(_head(cause).partition("== SQL")[0])
    context = _CONTEXT.search(cause)
    line = int(position["line"]) if position else int(context["line"]) if context else None
    place = places.of(line, context["query"] if context else None)
    if (at := position or context) is not None and place is not None:
        sentence += f" (position {at['position']})"
    return PipelineError(
        sentence,
        where=str(place) if place else None,
        hint=_hint(condition or "", places) or missing_package(text),
        detail=text,
        retriable=missing_package(text) is None
        and (condition is None or _LASTING.match(condition) is None),
    )


def _hint(condition: str, places: _Places) -> str | None:
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        return f"there are {', '.join(places.views())}" if places.views() else None
    if condition.startswith("STREAMING_OUTPUT_MODE"):
        return "outputMode: update, or a watermark step before the grouping"
    if "AVRO" in condition or "PROTOBUF" in condition:
        kind = "avro" if "AVRO" in condition else "protobuf"
        package = f"org.apache.spark:spark-{kind}_2.13:VERSION"
        return f"if Spark has no {kind} functions: moldau spark start --packages {package}"
    return None


def _root(text: str) -> str:
    """The innermost message that says something."""
    body = _QUERY.sub("", text.strip())
    if not _EMPTY.match(_stripped(body)):
        return body
    causes = [f"{found['text']}" for found in _CAUSE.finditer(text)]
    reported = [cause for cause in causes if not _EMPTY.match(_stripped(cause))]
    return reported[-1] if reported else body


def _stripped(text: str) -> str:
    found = _CONDITION.match(text)
    return _JAVA.sub("", found["text"] if found else text).strip()


def _sentence(text: str) -> str:
    text = _QUERY.sub("", text.strip())
    text = _STACK.split(text, maxsplit=1)[0]
    text = _ADVICE.sub("", _stripped(text))
    text = re.split(r"\s*SQLSTATE: \w+", text, maxsplit=1)[0]
    # An analysed plan follows the sentence, line by line.
    text = re.split(r";?\n['+:!]|;\n", text, maxsplit=1)[0]
    return _cut(" ".join(text.split()).rstrip(";"))


def _text_of(failure: BaseException) -> str:
    return str(failure) or type(failure).__name__


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_SIZE_MAX else text[: _MESSAGE_SIZE_MAX - 3] + "..."
