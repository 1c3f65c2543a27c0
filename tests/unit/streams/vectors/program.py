"""Turns the operations of a case into calls of the language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams import (
    EmitStrategy,
    JoinWindows,
    KGroupedStream,
    KTable,
    Materialized,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    key_value_store,
)

Op = dict[str, Any]


def predicate(text: str) -> Callable[[Any, Any], bool]:
    name, _, argument = text.partition(":")
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "value_gt": lambda key, value: value is not None and int(value) > int(argument),
        "value_even": lambda key, value: value is not None and int(value) % 2 == 0,
        "value_startswith": lambda key, value: value is not None and value.startswith(argument),
        "value_not_null": lambda key, value: value is not None,
        "key_eq": lambda key, value: key == argument,
        "true": lambda key, value: True,
        "false": lambda key, value: False,
    }
    return tests[name]


def _before(value: str | None, separator: str) -> str | None:
    return None if value is None else value.split(separator, 1)[0]


def _after(value: str | None, separator: str) -> str | None:
    if value is None or separator not in value:
        return None
    return value.split(separator, 1)[1]


def value_function(text: str) -> Callable[[Any], Any]:
    name, _, argument = text.partition(":")
    functions: dict[str, Callable[[Any], Any]] = {
        "upper": lambda value: None if value is None else value.upper(),
        "append": lambda value: ("null" if value is None else str(value)) + argument,
        "int_add": lambda value: None if value is None else str(int(value) + int(argument)),
        "null_if": lambda value: None if value == argument else value,
        "identity": lambda value: value,
        "value": lambda value: value,
        "before": lambda value: _before(value, argument),
        "after": lambda value: _after(value, argument),
        "to_null": lambda value: None,
        "const": lambda value: argument,
    }
    return functions[name]


def key_function(text: str) -> Callable[[Any, Any], Any]:
    name, _, argument = text.partition(":")
    if name == "key":
        return lambda key, value: key
    if name == "key_append":
        return lambda key, value: ("null" if key is None else str(key)) + argument
    function = value_function(text)

    def select(key: Any, value: Any) -> Any:
        found = function(value)
        return str(found) if isinstance(found, int) else found

    return select


def text_of(value: Any) -> str:
    return "null" if value is None else str(value)


def joiner(text: str | None) -> Callable[[Any, Any], Any]:
    name, _, argument = (text or "concat:-").partition(":")
    if name == "null_if_right":
        return lambda a, b: None if b == argument else f"{text_of(a)}-{text_of(b)}"
    return lambda a, b: f"{text_of(a)}{argument}{text_of(b)}"


def combiner(text: str) -> Callable[[Any, Any], Any]:
    """The aggregate so far, the new value."""
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "concat+": lambda a, b: f"{text_of(a)}+{text_of(b)}",
        "concat-": lambda a, b: f"{text_of(a)}-{text_of(b)}",
        "sum": lambda a, b: str(int(a) + int(b)),
        "sub": lambda a, b: str(int(a) - int(b)),
        "latest": lambda a, b: b,
        "null_if_drop": lambda a, b: None if b == "drop" else f"{text_of(a)}+{text_of(b)}",
    }
    return functions[text]


def windows_of(spec: Op) -> Any:
    kind, grace = spec["type"], spec.get("grace", 0)
    if kind in ("tumbling", "hopping"):
        return TimeWindows(size=spec["size"], advance=spec.get("advance"), grace=grace)
    if kind == "sliding":
        return SlidingWindows(time_difference=spec["diff"], grace=grace)
    if kind == "session":
        return SessionWindows(inactivity_gap=spec["gap"], grace=grace)
    return UnlimitedWindows(start=spec.get("start", 0))


class Step(Processor):
    """The `process` of the cases: punctuates, shifts timestamps, or counts."""

    def __init__(self, op: Op) -> None:
        self._op = op

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        kinds = {
            "stream_time": PunctuationType.STREAM_TIME,
            "wall_clock": PunctuationType.WALL_CLOCK_TIME,
        }
        if "punctuate" in self._op:
            kind = kinds[self._op["punctuate"]]
            context.schedule(self._op["interval"], kind, self._on_time)
        if "state" in self._op:
            self._store = context.state_store(self._op["state"])

    def _on_time(self, now_ms: int) -> None:
        self.context.forward(Record("punct", str(now_ms), now_ms))

    def process(self, record: Record[Any, Any]) -> None:
        if "shift_ts" in self._op:
            record = record.with_timestamp(record.timestamp + self._op["shift_ts"])
        if "state" in self._op:
            count = (self._store.get(record.key) or 0) + 1
            self._store.put(record.key, count)
            record = record.with_value(count)
        self.context.forward(record)


class StampStreamTime(Processor):
    def process(self, record: Record[Any, Any]) -> None:
        time = self.context.current_stream_time_ms()
        self.context.forward(record.with_value(f"{text_of(record.value)}@{time}"))


#: Operations whose values are text, whatever they were before; and functions that keep them.
MAKES_TEXT = (
    "flatMap",
    "flatMapValues",
    "join",
    "leftJoin",
    "outerJoin",
    "aggregate",
    "processValues",
)
KEEPS = ("identity", "to_null", "null_if")


class Program:
    """Builds the topology of a case."""

    def __init__(self, case: Op) -> None:
        self._builder = StreamsBuilder()
        self._made: dict[str, Any] = {}
        self._value_serdes: dict[str, str] = {}
        self.split_names: list[tuple[list[str], list[str]]] = []
        optimization = (case.get("config") or {}).get("topology.optimization", "none")
        for op in case["topology"]:
            self._add(op)
        self.topology: Topology = self._builder.build(optimization=optimization)

    def _add(self, op: Op) -> None:
        made = getattr(self, f"_{op['op']}")(op)
        if "id" in op:
            self._made[op["id"]] = made
            source = op.get("in")
            counts = op["op"] == "count" or "state" in op
            function = op.get("value" if op["op"] == "map" else "fn", "").partition(":")[0]
            maps = op["op"] in ("mapValues", "map") and function not in KEEPS
            kept = op["op"] not in MAKES_TEXT and not maps
            if counts or (kept and self._value_serdes.get(source or "") == "long"):
                self._value_serdes[op["id"]] = "long"

    def _input(self, op: Op) -> Any:
        return self._made[op["in"]]

    @staticmethod
    def _store(op: Op) -> Materialized | None:
        if not {"store", "retention", "versioned"} & op.keys():
            return None
        return Materialized(
            name=op.get("store"), retention=op.get("retention"), history=op.get("versioned")
        )

    @staticmethod
    def _name(op: Op) -> dict[str, Any]:
        return {"name": op.get("name")}

    def _stream(self, op: Op) -> Any:
        return self._builder.stream(op["topic"], **self._name(op))

    def _table(self, op: Op) -> Any:
        return self._builder.table(op["topic"], store=self._store(op), **self._name(op))

    def _global_table(self, op: Op) -> Any:
        return self._builder.global_table(op["topic"], store=self._store(op), **self._name(op))

    def _materialized(self, op: Op) -> dict[str, Any]:
        options = self._name(op)
        if isinstance(self._input(op), KTable):
            options["store"] = self._store(op)
        return options

    def _filter(self, op: Op) -> Any:
        return self._input(op).filter(predicate(op["fn"]), **self._materialized(op))

    def _filterNot(self, op: Op) -> Any:
        return self._input(op).filter_not(predicate(op["fn"]), **self._materialized(op))

    def _mapValues(self, op: Op) -> Any:
        return self._input(op).map_values(value_function(op["fn"]), **self._materialized(op))

    def _selectKey(self, op: Op) -> Any:
        return self._input(op).select_key(key_function(op["fn"]), **self._name(op))

    def _map(self, op: Op) -> Any:
        key, value = key_function(op["key"]), value_function(op["value"])
        return self._input(op).map(lambda k, v: (key(k, v), value(v)), **self._name(op))

    def _flatMapValues(self, op: Op) -> Any:
        return self._input(op).flat_map_values(
            lambda value: [part for part in (value or "").split(op["split"]) if part],
            **self._name(op),
        )

    def _flatMap(self, op: Op) -> Any:
        return self._input(op).flat_map(
            lambda key, value: [(p, key) for p in (value or "").split(op["split"]) if p],
            **self._name(op),
        )

    def _merge(self, op: Op) -> Any:
        return self._input(op).merge(self._made[op["with"]], **self._name(op))

    def _peek(self, op: Op) -> Any:
        return self._input(op).peek(lambda key, value: None, **self._name(op))

    def _foreach(self, op: Op) -> None:
        self._input(op).foreach(lambda key, value: None, **self._name(op))

    def _repartition(self, op: Op) -> Any:
        return self._input(op).repartition(partitions=op.get("partitions"), **self._name(op))

    def _toTable(self, op: Op) -> Any:
        return self._input(op).to_table(store=self._store(op), **self._name(op))

    def _toStream(self, op: Op) -> Any:
        stream = self._input(op).to_stream(**self._name(op))
        return stream.select_key(key_function(op["fn"])) if "fn" in op else stream

    def _split(self, op: Op) -> None:
        split = self._input(op).split(**self._name(op))
        for branch in op["branches"]:
            split = split.branch(predicate(branch["fn"]), name=branch.get("name"))
        if "default" in op:
            default = op["default"]
            made = split.default_branch(name=None if default is True else default)
        else:
            made = split.no_default_branch()
        for name, stream in made.items():
            self._made[f"{op['id']}/{name}"] = stream
        self.split_names.append((sorted(made), op.get("result_names", sorted(made))))

    def _groupByKey(self, op: Op) -> Any:
        return self._input(op).group_by_key(**self._name(op))

    def _groupBy(self, op: Op) -> Any:
        key = key_function(op["fn"])
        if not isinstance(self._input(op), KTable):
            return self._input(op).group_by(key, **self._name(op))
        value = value_function(op.get("value", "identity"))
        return self._input(op).group_by(lambda k, v: (key(k, v), value(v)), **self._name(op))

    def _windowedBy(self, op: Op) -> Any:
        windowed = self._input(op).windowed_by(windows_of(op["window"]))
        if op.get("emit") == "on_window_close":
            windowed = windowed.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
        return windowed

    def _count(self, op: Op) -> Any:
        # The cases were made with a Materialized for the serdes, which takes a number of its own.
        store = self._store(op) or Materialized()
        return self._input(op).count(store=store, **self._name(op))

    def _reduce(self, op: Op) -> Any:
        functions = [combiner(op[each]) for each in ("adder", "subtractor") if each in op]
        return self._input(op).reduce(*functions, store=self._store(op), **self._name(op))

    def _aggregate(self, op: Op) -> Any:
        source, options = self._input(op), {"store": self._store(op), **self._name(op)}
        functions: list[Any] = []
        for each in ("adder", "subtractor"):
            if each in op:
                combine = combiner(op[each])
                functions.append(lambda key, value, total, c=combine: c(total, value))
        if "merger" in op:
            merge = combiner(op["merger"])
            options["merger"] = lambda key, one, two: merge(one, two)
        return source.aggregate(lambda: op["init"], *functions, **options)

    def _cogroup(self, op: Op) -> Any:
        combine, source = combiner(op["adder"]), self._input(op)
        add = lambda key, value, total: combine(total, value)  # noqa: E731
        if isinstance(source, KGroupedStream):
            return source.cogroup(add)
        return source.cogroup(self._made[op["with"]], add)

    def _suppress(self, op: Op) -> Any:
        options: dict[str, Any] = {"name": op.get("name")}
        if "max_records" in op:
            options["records_max"] = op["max_records"]
        if op["until"] == "window_closes":
            return self._input(op).suppress(Suppressed.until_window_closes(**options))
        return self._input(op).suppress(Suppressed.until_time_limit(op["limit"], **options))

    def _joined(self, op: Op, method: str) -> Any:
        left, right = self._input(op), self._made[op["with"]]
        options: dict[str, Any] = {**self._name(op)}
        if "window" in op:
            spec = op["window"]
            options["windows"] = JoinWindows(
                time_difference=spec.get("diff", 0),
                before=spec.get("before"),
                after=spec.get("after"),
                grace=spec.get("grace", 0),
            )
            options["store"] = op.get("store")
        elif isinstance(left, KTable):
            options["store"] = self._store(op)
        if "grace" in op:
            options["grace"] = op["grace"]
        if "key" in op:
            options["key"] = key_function(op["key"])
        if "fk" in op:
            options["foreign_key"] = value_function(op["fk"])
        return getattr(left, method)(right, joiner(op.get("joiner")), **options)

    def _join(self, op: Op) -> Any:
        return self._joined(op, "join")

    def _leftJoin(self, op: Op) -> Any:
        return self._joined(op, "left_join")

    def _outerJoin(self, op: Op) -> Any:
        return self._joined(op, "outer_join")

    def _process(self, op: Op) -> Any:
        stores = []
        if "state" in op:
            self._builder.add_state_store(
                key_value_store(op["state"], key_serde="string", value_serde="long")
            )
            stores = [op["state"]]
        return self._input(op).process(lambda: Step(op), *stores, **self._name(op))

    def _processValues(self, op: Op) -> Any:
        return self._input(op).process_values(StampStreamTime, **self._name(op))

    def _to(self, op: Op) -> None:
        serde = self._value_serdes.get(op["in"].split("/")[0])
        self._input(op).to(op["topic"], value_serde=serde, **self._name(op))
