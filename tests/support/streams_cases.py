"""Random cases in the form of the semantic vectors, run here and by tests/java/StreamsCases.java.

A case has operations and inputs. All that a topology writes is compared, as bytes: outputs,
changelogs and internal topics.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from dataclasses import dataclass, field
from typing import Any

from moldau.streams import StreamsError, TopologyTestDriver
from support.java import program
from unit.streams.vectors.program import Program

Case = dict[str, Any]
CONFIG = {
    "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
}
CACHE = "statestore.cache.max.bytes"
FORMAT = "dsl.store.format"
#: The settings of a case that our driver reads; others are for the builder.
OURS = (CACHE, FORMAT)
#: The changelogs of buffers: their records have the wall clock of the producer, in any order.
BUFFERS = re.compile(r"app-(.*SUPPRESS-STATE-STORE.*|(sup\d+|x*)-store|.*-Buffer)-changelog ")
#: Caches show windows after their retention, so nothing expires in most cases.
LONG_TIME = 86_400_000

STATELESS = (
    *("filter", "filterNot", "mapValues", "selectKey", "map", "flatMapValues", "flatMap"),
    *("merge", "peek", "repartition", "selectKey", "processValues"),
)


class RandomCase:
    """Of a seed: one to three sources, some operations on them, and a sink for each result."""

    def __init__(self, seed: str) -> None:
        self.chance = chance = random.Random(seed)
        self.ops: list[dict[str, Any]] = []
        self.streams: list[str] = []
        self.tables: list[str] = []
        self.globals: list[str] = []
        self.versioned: set[str] = set()
        self.windowed: list[str] = []
        self.windowed_streams: list[str] = []
        self.counts: set[str] = set()
        #: Windowed tables that a suppression may follow.
        self.final: list[str] = []
        self.topics: list[str] = []
        self._sources()
        for _ in range(chance.randint(1, 5)):
            self._operate()
        self._sinks()

    def case(self) -> Case:
        config: dict[str, Any] = {}
        if self.chance.random() < 0.4:
            config["topology.optimization"] = "all"
        config[CACHE] = self.chance.choice((0, 0, 10 * 1024 * 1024))
        return {"topology": self.ops, "config": config, "inputs": self._inputs()}

    def _inputs(self) -> list[dict[str, Any]]:
        chance, time = self.chance, self.chance.randrange(60)
        found: list[dict[str, Any]] = []
        for _ in range(40):
            if chance.random() < 0.04:
                found.append({"advance_wall_ms": chance.choice((1, 10, 1000))})
                continue
            time = max(0, time + chance.choice((0, 0, 1, 2, 3, 5, 8, 12, 25, -4, -9, -15, -40)))
            found.append(
                {
                    "topic": chance.choice(self.topics),
                    "key": chance.choice(("a", "b", "c", "")) if chance.random() < 0.94 else None,
                    "value": chance.choice(("a", "b", "c:a", "d:b", "x", "drop", "a,b", ":", ""))
                    if chance.random() < 0.8
                    else None,
                    "ts": time,
                }
            )
        return found

    # Parts.

    def _add(self, op: str, **given: Any) -> str:
        made = f"n{len(self.ops)}"
        found = {"op": op, "id": made} | {k: v for k, v in given.items() if v is not None}
        self.ops.append(found)
        return made

    def _name(self, share: float = 0.25, prefix: str = "name") -> str | None:
        return f"{prefix}{len(self.ops)}" if self.chance.random() < share else None

    def _store(self, share: float = 0.5) -> str | None:
        return f"st{len(self.ops)}" if self.chance.random() < share else None

    def _sources(self) -> None:
        for topic in ("left", "right", "third")[: self.chance.choice((1, 2, 2, 2, 3))]:
            self.topics.append(topic)
            kind = self.chance.choice(("stream", "stream", "table", "table", "versioned", "global"))
            if kind == "stream" or (kind == "global" and not (self.streams or self.tables)):
                self.streams.append(self._add("stream", topic=topic, name=self._name(0.1)))
            elif kind == "global":
                self.globals.append(self._add("global_table", topic=topic, store=self._store()))
            elif kind == "versioned":
                history = self.chance.choice((5, 30, 1000))
                made = self._add("table", topic=topic, store=f"v{len(self.ops)}", versioned=history)
                self.tables.append(made)
                self.versioned.add(made)
            else:
                made = self._add("table", topic=topic, store=self._store(), name=self._name(0.1))
                self.tables.append(made)

    def _operate(self) -> None:
        choices: list[Any] = []
        if self.streams:
            choices += [self._stateless] * 3 + [self._aggregate] * 4 + [self._to_table]
            choices += [self._stream_join] * 3 + [self._split, self._cogroup, self._cogroup]
            choices += [self._process]
            if self.tables:
                choices += [self._stream_table] * 3
            if self.globals:
                choices += [self._stream_global] * 3
        if self.tables:
            choices += [self._of_table] * 2 + [self._group_table] * 2 + [self._time_limit]
            choices += [self._table_join] * 3 + [self._foreign_key] * 3
        if self.windowed:
            choices += [self._of_windows]
        if self.final:
            choices += [self._until_closed] * 3
        self.chance.choice(choices)()

    def _predicate(self) -> str:
        tests = ("value_startswith:a", "value_not_null", "key_eq:a", "true", "false")
        return self.chance.choice(tests)

    def _value(self) -> str:
        functions = ("append:!", "null_if:x", "before::", "after::", "const:k", "identity", "upper")
        return self.chance.choice(functions)

    def _key(self) -> str:
        return self.chance.choice(("before::", "after::", "value", "key", "const:k", "null_if:x"))

    def _stateless(self) -> None:
        chance, source = self.chance, self.chance.choice(self.streams)
        kind = chance.choice(STATELESS)
        given: dict[str, Any] = {"in": source, "name": self._name()}
        if kind in ("filter", "filterNot"):
            given["fn"] = self._predicate()
        elif kind == "mapValues":
            given["fn"] = self._value()
        elif kind == "selectKey":
            given["fn"] = self._key()
        elif kind == "map":
            given |= {"key": self._key(), "value": self._value()}
        elif kind in ("flatMapValues", "flatMap"):
            given["split"] = ","
        elif kind == "merge":
            given["with"] = chance.choice(self.streams)
        elif kind == "repartition":
            given["partitions"] = chance.choice((None, 1))
        self.streams.append(self._add(kind, **given))

    def _process(self) -> None:
        given: dict[str, Any] = {"in": self.chance.choice(self.streams), "name": self._name()}
        kind = self.chance.choice(("stream_time", "wall_clock", "shift"))
        if kind == "shift":
            given["shift_ts"] = self.chance.choice((-3, 5, 30))
        else:
            given |= {"punctuate": kind, "interval": self.chance.choice((5, 10))}
        self.streams.append(self._add("process", **given))

    def _split(self) -> None:
        chance = self.chance
        name = self._name(1.0) + "-"  # type: ignore[operator]
        branches = [{"fn": self._predicate(), "name": f"b{n}"} for n in range(chance.randint(1, 3))]
        default = chance.choice((None, True, "rest"))
        given: dict[str, Any] = {"in": chance.choice(self.streams), "name": name}
        made = self._add("split", **given, branches=branches, default=default)
        names = [str(each["name"]) for each in branches]
        if default is not None:
            names.append("0" if default is True else "rest")
        self.streams += [f"{made}/{name}{each}" for each in names]

    def _to_table(self) -> None:
        given = {"in": self.chance.choice(self.streams)}
        self.tables.append(self._add("toTable", **given, store=self._store(), name=self._name()))

    def _grouped(self) -> str:
        given = {"in": self.chance.choice(self.streams), "name": self._name()}
        if self.chance.random() < 0.5:
            return self._add("groupByKey", **given)
        return self._add("groupBy", **given, fn=self._key())

    def _windows(self) -> dict[str, Any]:
        chance = self.chance
        grace = chance.choice((0, 0, 5, 20, 100))
        return chance.choice(
            (
                {"type": "tumbling", "size": chance.choice((5, 10, 20)), "grace": grace},
                {"type": "hopping", "size": 10, "advance": chance.choice((3, 5)), "grace": grace},
                {"type": "sliding", "diff": chance.choice((3, 10)), "grace": grace},
                {"type": "session", "gap": chance.choice((2, 5, 10)), "grace": grace},
                {"type": "session", "gap": chance.choice((2, 5, 10)), "grace": grace},
            )
        )

    def _aggregate(self) -> None:
        chance, source = self.chance, self._grouped()
        windows = self._windows() if chance.random() < 0.7 else None
        on_close = False
        if windows is not None:
            on_close = chance.random() < 0.3
            emit = "on_window_close" if on_close else None
            source = self._add("windowedBy", **{"in": source}, window=windows, emit=emit)
        self._finish(source, windows, chance.choice(("count", "reduce", "aggregate")), on_close)

    def _finish(
        self, source: str, windows: dict[str, Any] | None, kind: str, on_close: bool
    ) -> None:
        chance = self.chance
        given: dict[str, Any] = {"in": source, "name": self._name(), "store": self._store()}
        if windows is not None:
            given["retention"] = LONG_TIME
        adders = ("concat+", "latest", "null_if_drop")
        cogroups = self.ops[-1]["op"] == "cogroup" or "cogroup" in self.ops[-1].get("of", "")
        if kind == "reduce":
            given["adder"] = chance.choice(adders)
        elif kind == "aggregate":
            given["init"] = "0"
            if not cogroups:
                given["adder"] = chance.choice(adders)
            if windows is not None and windows["type"] == "session":
                given["merger"] = "concat+"
        made = self._add(kind, **given)
        if kind == "count":
            self.counts.add(made)
        if windows is None:
            if kind == "count":
                made = self._add("mapValues", **{"in": made}, fn="append:!")
            self.tables.append(made)
        else:
            self.windowed.append(made)
            if not on_close:
                self.final.append(made)

    def _cogroup(self) -> None:
        chance = self.chance
        first, second = self._grouped(), self._grouped()
        made = self._add("cogroup", **{"in": first}, adder=chance.choice(("concat+", "latest")))
        for _ in range(chance.randint(0, 2)):
            given = {"in": made, "with": chance.choice((first, second))}
            made = self._add("cogroup", **given, adder=chance.choice(("concat-", "null_if_drop")))
        windows = self._windows() if chance.random() < 0.6 else None
        if windows is not None:
            made = self._add("windowedBy", **{"in": made}, window=windows, of="cogroup")
        self._finish(made, windows, "aggregate", False)

    def _until_closed(self) -> None:
        source = self.chance.choice(self.final)
        given = {"in": source, "name": self._name(0.5, "sup")}
        made = self._add("suppress", **given, until="window_closes")
        self.windowed.append(made)
        if source in self.counts:
            self.counts.add(made)

    def _time_limit(self) -> None:
        given: dict[str, Any] = {"in": self.chance.choice(self.tables)}
        given |= {"name": self._name(0.5, "sup"), "max_records": self.chance.choice((None, 1, 2))}
        limit = self.chance.choice((0, 2, 10, 50))
        self.tables.append(self._add("suppress", **given, until="time_limit", limit=limit))

    def _of_table(self) -> None:
        source = self.chance.choice(self.tables)
        kind = self.chance.choice(("filter", "filterNot", "mapValues"))
        function = self._value() if kind == "mapValues" else self._predicate()
        given = {"in": source, "fn": function, "store": self._store(), "name": self._name()}
        self.tables.append(self._add(kind, **given))

    def _of_windows(self) -> None:
        source = self.chance.choice(self.windowed)
        kind = self.chance.choice(("filter", "mapValues", "toStream"))
        given: dict[str, Any] = {"in": source, "name": self._name()}
        if kind == "toStream":
            given["fn"] = self.chance.choice(("const:k", "value"))
            made = self._add("toStream", **given)
            if source in self.counts:
                made = self._add("mapValues", **{"in": made}, fn="append:!")
            self.streams.append(made)
            return
        given["fn"] = "append:!" if kind == "mapValues" else "value_not_null"
        made = self._add(kind, **given)
        self.windowed.append(made)
        if kind == "filter" and source in self.counts:
            self.counts.add(made)

    def _group_table(self) -> None:
        chance, source = self.chance, self.chance.choice(self.tables)
        given: dict[str, Any] = {"in": source, "name": self._name(), "fn": self._key()}
        made = self._add("groupBy", **given, value=self._value())
        kind = chance.choice(("count", "reduce", "aggregate"))
        given = {"in": made, "name": self._name(), "store": self._store()}
        if kind != "count":
            given |= {"adder": chance.choice(("concat+", "latest")), "subtractor": "concat-"}
        if kind == "aggregate":
            given["init"] = "0"
        made = self._add(kind, **given)
        if kind == "count":
            made = self._add("mapValues", **{"in": made}, fn="append:!")
        self.tables.append(made)

    def _joining(self) -> dict[str, Any]:
        return {"joiner": self.chance.choice((None, None, "null_if_right:x")), "name": self._name()}

    def _stream_join(self) -> None:
        chance = self.chance
        window = {"diff": chance.choice((0, 5, 10)), "grace": chance.choice((0, 10))}
        if chance.random() < 0.3:
            window["before" if chance.random() < 0.5 else "after"] = chance.choice((0, 3, 30))
        given: dict[str, Any] = {"in": chance.choice(self.streams)}
        given["with"] = chance.choice(self.streams)
        kind = chance.choice(("join", "leftJoin", "outerJoin"))
        given |= {"window": window, "store": self._store(0.3)}
        self.streams.append(self._add(kind, **given, **self._joining()))

    def _stream_table(self) -> None:
        table = self.chance.choice(self.tables)
        given: dict[str, Any] = {"in": self.chance.choice(self.streams), "with": table}
        if table in self.versioned and self.chance.random() < 0.6:
            given["grace"] = self.chance.choice((3, 10))
        kind = self.chance.choice(("join", "leftJoin"))
        self.streams.append(self._add(kind, **given, **self._joining()))

    def _stream_global(self) -> None:
        given: dict[str, Any] = {"in": self.chance.choice(self.streams), "key": self._key()}
        given["with"] = self.chance.choice(self.globals)
        kind = self.chance.choice(("join", "leftJoin"))
        self.streams.append(self._add(kind, **given, **self._joining()))

    def _table_join(self) -> None:
        given: dict[str, Any] = {"in": self.chance.choice(self.tables)}
        given["with"] = self.chance.choice(self.tables)
        kind = self.chance.choice(("join", "leftJoin", "outerJoin"))
        given |= {"store": self._store()}
        self.tables.append(self._add(kind, **given, **self._joining()))

    def _foreign_key(self) -> None:
        given: dict[str, Any] = {"in": self.chance.choice(self.tables)}
        given["with"] = self.chance.choice(self.tables)
        kind = self.chance.choice(("join", "leftJoin"))
        given["fk"] = self.chance.choice(("after::", "before::", "value"))
        given["store"] = self._store()
        self.tables.append(self._add(kind, **given, **self._joining()))

    def _sinks(self) -> None:
        used = {op.get(each) for op in self.ops for each in ("in", "with")}
        ends = [each for each in self.streams if each not in used]
        for table in [*self.tables, *self.windowed]:
            if table not in used:
                ends.append(self._add("toStream", **{"in": table}))
        for number, end in enumerate(ends):
            self.ops.append({"op": "to", "in": end, "topic": f"out{number}"})


OPTIMIZATIONS = (
    "merge.repartition.topics",
    "reuse.ktable.source.topics",
    "single.store.self.join",
)


class OddCase(RandomCase):
    """With what the others have not: headers, state of processors, windows without an end, buffers
    that are too small, names that are taken or not allowed, topics that are read twice."""

    #: Which of two wrong names is found first depends on who writes the program.
    _has_wrong_name = False

    def case(self) -> Case:
        found = super().case()
        if "topology.optimization" in found["config"]:
            kinds = self.chance.sample(OPTIMIZATIONS, k=self.chance.randint(1, 2))
            found["config"]["topology.optimization"] = ",".join(kinds)
        return found

    def _name(self, share: float = 0.25, prefix: str = "name") -> str | None:
        if not self._has_wrong_name and self.chance.random() < 0.02:
            self._has_wrong_name = True
            return self.chance.choice(("bad name", "name1", "", ".", "x" * 250))
        return super()._name(share, prefix)

    def _store(self, share: float = 0.5) -> str | None:
        if not self._has_wrong_name and self.chance.random() < 0.015:
            self._has_wrong_name = True
            return self.chance.choice(("st1", "st2", "bad store"))
        return super()._store(share)

    def _inputs(self) -> list[dict[str, Any]]:
        found = super()._inputs()
        for step in found:
            if "topic" in step and self.chance.random() < 0.5:
                names = self.chance.choices(("h", "trace", "h"), k=self.chance.randint(1, 3))
                step["headers"] = [[name, f"{number}"] for number, name in enumerate(names)]
        return found

    def _sources(self) -> None:
        super()._sources()
        if self.streams and self.chance.random() < 0.15:
            topic = next(op["topic"] for op in self.ops if op["op"] == "stream")
            kind = self.chance.choice(("stream", "stream", "table", "global_table"))
            made = self._add(kind, topic=topic)
            if kind == "stream":
                self.streams.append(made)
            elif kind == "table":
                self.tables.append(made)
            else:
                self.globals.append(made)

    def _windows(self) -> dict[str, Any]:
        if self.chance.random() < 0.15:
            return {"type": "unlimited", "start": self.chance.choice((0, 20))}
        return super()._windows()

    def _process(self) -> None:
        chance = self.chance
        if chance.random() < 0.5:
            super()._process()
            return
        given: dict[str, Any] = {"in": chance.choice(self.streams), "name": self._name()}
        state = f"state{len(self.ops)}"
        made = self._add("process", **given, state=state)
        self.streams.append(self._add("mapValues", **{"in": made}, fn="append:#"))

    def _split(self) -> None:
        chance = self.chance
        if chance.random() < 0.5:
            super()._split()
            return
        source = chance.choice(self.streams)
        branches = [{"fn": self._predicate()} for _ in range(chance.randint(1, 3))]
        self._add("split", **{"in": source}, branches=branches, default=True)
        self._add("foreach", **{"in": source}, name=self._name())

    def _until_closed(self) -> None:
        if self.chance.random() < 0.5:
            super()._until_closed()
            return
        source = self.chance.choice(self.final)
        given = {"in": source, "name": self._name(0.5, "sup")}
        records_max = self.chance.choice((1, 2, 4))
        made = self._add("suppress", **given, until="window_closes", max_records=records_max)
        self.windowed.append(made)
        if source in self.counts:
            self.counts.add(made)


class HeadersCase(OddCase):
    """With stores that keep headers."""

    def case(self) -> Case:
        found = super().case()
        found["config"][FORMAT] = "HEADERS"
        return found


@dataclass
class CaseOutcome:
    """What a topology wrote, step by step, and how it ended."""

    describe: str | None = None
    error: str | None = None
    steps: list[list[str]] = field(default_factory=list)
    dropped: int | None = None


def _hex(data: bytes | None) -> str:
    return "-" if data is None else f"x{data.hex()}"


def _compared(lines: list[str], case: Case) -> list[str]:
    """Lines without what differs from run to run there, and in one order where it has none."""
    found, buffered = [], []
    for line in lines:
        if BUFFERS.match(line):
            words = line.split(" ")
            buffered.append(" ".join([*words[:3], *words[4:]]))
        else:
            found.append(line)
    windows = [op["window"]["type"] for op in case["topology"] if op["op"] == "windowedBy"]
    return sorted(buffered) + (sorted(found) if "sliding" in windows else found)


def java_case_outcomes(cases: list[Case]) -> list[CaseOutcome]:
    """What Kafka Streams does."""
    ended = subprocess.run(
        program("StreamsCases.java"),
        input="".join(json.dumps(case) + "\n" for case in cases),
        capture_output=True,
        text=True,
        timeout=240 + len(cases),
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    found = [CaseOutcome(**json.loads(line)) for line in ended.stdout.splitlines()]
    for case, outcome in zip(cases, found, strict=True):
        outcome.steps = [_compared(lines, case) for lines in outcome.steps]
    return found


def our_case_outcome(case: Case) -> CaseOutcome:
    """What our driver does."""
    try:
        topology = Program(case).topology
    except (StreamsError, ValueError) as error:
        return CaseOutcome(error=str(error))
    outcome = CaseOutcome(topology.describe())
    with TopologyTestDriver(
        topology,
        application_id="app",
        default_key_serde="string",
        default_value_serde="string",
        config=CONFIG | {name: case["config"][name] for name in OURS if name in case["config"]},
    ) as driver:
        try:
            for step in case["inputs"]:
                if "advance_wall_ms" in step:
                    driver.advance_wall_clock_time(step["advance_wall_ms"])
                else:
                    topic = driver.input_topic(step["topic"])
                    headers = [(name, text.encode()) for name, text in step.get("headers", ())]
                    topic.pipe_input(
                        step["key"], step["value"], timestamp=step["ts"], headers=headers
                    )
                outcome.steps.append(_compared(_written(driver), case))
            outcome.dropped = driver.dropped_records
        except StreamsError as error:
            outcome.error = str(error)
    return outcome


def _written(driver: TopologyTestDriver) -> list[str]:
    lines = []
    for topic in sorted(driver.output_topics):
        while (record := driver.take(topic)) is not None:
            headers = ",".join(f"{name}={_hex(value)}" for name, value in record.headers)
            key, value = _hex(record.key), _hex(record.value)
            lines.append(f"{topic} {key} {value} {record.timestamp} [{headers}]")
    return lines
