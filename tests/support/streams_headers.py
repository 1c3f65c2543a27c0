"""A processor with stores that keep headers; its twin is tests/java/StreamsHeaders.java."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.streams import (
    AggregationWithHeaders,
    Processor,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    ValueTimestampHeaders,
    Window,
    Windowed,
    session_store,
    timestamped_key_value_store,
    window_store,
)
from moldau.streams.records import Headers, Produced

LONG_TIME = 1_000_000
#: A record: key, value, time, headers.
Step = tuple[str, str | None, int, Headers]


class Keeper(Processor):
    """Writes to stores of all kinds with the record's headers, and forwards what they then have."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.timed = context.state_store("timed")
        self.windows = context.state_store("windows")
        self.sessions = context.state_store("sessions")

    def process(self, record: Any) -> None:
        key, value, time, headers = record.key, record.value, record.timestamp, record.headers
        session = Windowed(key, Window(time, time + 5))
        if value is None:
            self._say(record, shown(self.timed.delete(key)))
            self.windows.put(key, None, time // 50 * 50)
            self.sessions.remove(session)
        else:
            if value.startswith("a"):
                self._say(record, shown(self.timed.put_if_absent(key, value, time, headers)))
            else:
                made = (value, time, headers)
                self.timed.put_all([("other", made), (key, made)])
            self.windows.put(key, value, time // 50 * 50, time, headers)
            self.sessions.put(session, value, headers)
        self._say(record, shown(self.timed.get(key)))
        self._say_all(record, self.timed.all())
        self._say_all(record, self.windows.fetch(key, 0, 1000))
        self._say_all(record, self.sessions.find_sessions(key, 0, 1000))

    def _say(self, record: Any, text: str) -> None:
        self.context.forward(record.with_value(text))

    def _say_all(self, record: Any, found: Iterable[tuple[Any, Any]]) -> None:
        words = []
        for key, value in found:
            name = f"{key.key}/{key.window.start}" if isinstance(key, Windowed) else key
            words.append(f"{name}={shown(value)} ")
        self._say(record, "".join(words))


def shown(found: Any) -> str:
    """A value of a store as text."""
    if isinstance(found, ValueTimestampHeaders):
        return f"{found.value}@{found.timestamp}{_headers(found.headers)}"
    if isinstance(found, AggregationWithHeaders):
        return f"{found.aggregation}{_headers(found.headers)}"
    return "null"


def build(prefix: str = "", *, caching: bool = False, headers: bool = True) -> Topology:
    """The topology; `headers=False` is the version before, whose stores have none."""
    builder = StreamsBuilder()
    options: dict[str, Any] = {
        "key_serde": "string",
        "value_serde": "string",
        "caching": caching,
        "headers": headers,
    }
    builder.add_state_store(timestamped_key_value_store("timed", **options))
    builder.add_state_store(
        window_store("windows", window_size=50, retention=LONG_TIME, **options)
    )
    builder.add_state_store(session_store("sessions", retention=LONG_TIME, **options))
    kept = builder.stream(f"{prefix}in", key_serde="string", value_serde="string").process(
        Keeper, "timed", "windows", "sessions"
    )
    kept.to(f"{prefix}out", key_serde="string", value_serde="string")
    return builder.build()


def _hex(data: bytes | None) -> str:
    return "-" if data is None else f"x{data.hex()}"


def _headers(headers: Headers) -> str:
    return f"[{','.join(f'{name}={_hex(value)}' for name, value in headers)}]"


def _line(record: Produced) -> str:
    key, value = _hex(record.key), _hex(record.value)
    return f"{record.topic} {key} {value} {record.timestamp} {_headers(record.headers)}"


@dataclass(frozen=True)
class Run:
    """One run: where the stores are, whether they are cached and how much fits, the records."""

    place: str
    caching: bool
    cache_bytes: int
    steps: Sequence[Step]

    def commands(self) -> list[str]:
        """The run, as the Java program reads it."""
        text = lambda value: _hex(None if value is None else value.encode())  # noqa: E731
        return [
            f"stores {self.place} {str(self.caching).lower()} {self.cache_bytes}",
            *(
                f"in {text(key)} {text(value)} {time} {_headers(headers)}"
                for key, value, time, headers in self.steps
            ),
        ]

    def ours(self, **options: Any) -> list[list[str]]:
        """What our driver writes at each step."""
        with TopologyTestDriver(
            build(caching=self.caching),
            application_id="app",
            config={"statestore.cache.max.bytes": self.cache_bytes},
            **options,
        ) as driver:
            found = []
            for key, value, time, headers in self.steps:
                driver.input_topic("in").pipe_input(key, value, timestamp=time, headers=headers)
                found.append(
                    [
                        _line(record)
                        for topic in driver.output_topics
                        for record in iter(lambda topic=topic: driver.take(topic), None)  # type: ignore[misc]
                    ]
                )
            return found


def java_runs(output: str, runs: Sequence[Run]) -> Iterator[list[list[str]]]:
    """What the Java program printed, run by run, at each step."""
    lines: list[str] = []
    written: list[list[str]] = []
    for line in output.splitlines():
        if line == "done":
            written.append(lines)
            lines = []
        else:
            lines.append(line.removeprefix("out "))
    for run in runs:
        # The first is that of the start, which writes nothing.
        assert written[0] == []
        yield written[1 : len(run.steps) + 1]
        written = written[len(run.steps) + 1 :]
