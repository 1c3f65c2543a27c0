"""What the language needs of functions, formats and a schema registry.

`moldau.sql.functions.registry` and `moldau.sql.formats` provide these; the analyser and the
topology builder use nothing else of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from moldau.data.schema_language import ResolvedReference
from moldau.sql.types import Column, SqlType

FunctionKind = Literal["scalar", "table", "aggregate"]
#: A serde feature: "WRAP_SINGLES", "UNWRAP_SINGLES" or "SCHEMA_INFERENCE".
Feature = str


@dataclass(frozen=True, slots=True)
class LambdaArgument:
    """A lambda before its types are known: only the number of its inputs is."""

    input_count: int


@dataclass(frozen=True, slots=True)
class IntervalUnitArgument:
    """A keyword such as SECONDS. Functions receive its name ("SECONDS") as the value."""

    name: str


#: The type of an argument; None is the type of a bare NULL.
Argument = SqlType | LambdaArgument | IntervalUnitArgument | None
#: Resolves the body of the lambda at an index, given the types of its inputs, to a result type.
LambdaResolver = Callable[[int, tuple[SqlType, ...]], SqlType]


class ScalarCall(Protocol):
    """A scalar function whose signature is chosen. Also used for table functions.

    `evaluate(*arguments)` returns the value (a table function: the list of rows' values);
    `parameters` says to which type each argument is cast before the call (None: as it is).
    Lambda arguments are Python callables. Errors are raised; the caller turns them into NULL.
    """

    @property
    def result(self) -> SqlType: ...

    @property
    def parameters(self) -> Sequence[SqlType | None]: ...

    @property
    def evaluate(self) -> Callable[..., Any]: ...


class AggregateCall(Protocol):
    """An aggregate function whose signature is chosen and whose initial arguments are known.

    `add(value, aggregate)` returns the new aggregate; `value` is the only column argument, or a
    tuple of them where there are several. `undo` is None where the function cannot be used on
    tables.
    """

    @property
    def result(self) -> SqlType: ...

    @property
    def aggregate_type(self) -> SqlType: ...

    @property
    def initialize(self) -> Callable[[], Any]: ...

    @property
    def add(self) -> Callable[[Any, Any], Any]: ...

    @property
    def merge(self) -> Callable[[Any, Any], Any]: ...

    @property
    def map_result(self) -> Callable[[Any], Any]: ...

    @property
    def undo(self) -> Callable[[Any, Any], Any] | None: ...


class Functions(Protocol):
    """The functions that statements may call. Names are in capitals."""

    def kind(self, name: str) -> FunctionKind | None:
        """What the name stands for; None if no function has it."""

    def names(self) -> list[str]:
        """Of all functions."""

    def scalar(
        self, name: str, arguments: Sequence[Argument], resolve_lambda: LambdaResolver
    ) -> ScalarCall:
        """The signature that fits, or a `KsqlException` with ksqlDB's text."""

    def table(self, name: str, arguments: Sequence[Argument]) -> ScalarCall: ...

    def init_argument_count(self, name: str, arguments: Sequence[Argument]) -> int:
        """How many of an aggregate's last arguments must be literals."""

    def aggregate(
        self, name: str, arguments: Sequence[Argument], init_arguments: Sequence[Any]
    ) -> AggregateCall: ...


class RowSerde(Protocol):
    """Bytes of a key or a value to the tuple of its columns, and back."""

    def serialize(self, topic: str, value: tuple[Any, ...] | None) -> bytes | None: ...

    def deserialize(self, topic: str, data: bytes | None) -> tuple[Any, ...] | None: ...


class SchemaText(str):
    """The text of a schema that refers to others: a text that brings theirs along.

    `sources` say where the registry has them, in the registry's own form.
    """

    references: tuple[ResolvedReference, ...]
    sources: tuple[Any, ...]

    def __new__(
        cls, text: str, references: Sequence[ResolvedReference], sources: Sequence[Any] = ()
    ) -> SchemaText:
        made = super().__new__(cls, text)
        made.references = tuple(references)
        made.sources = tuple(sources)
        return made


def references_of(text: str) -> tuple[ResolvedReference, ...]:
    return text.references if isinstance(text, SchemaText) else ()


class SchemaRegistry(Protocol):
    """The few calls that formats and schema inference make. Errors are `LookupError`s.

    Texts of schemas with references are `SchemaText`s.
    """

    def latest(self, subject: str) -> tuple[int, str, str]:
        """Id, type (AVRO, JSON, PROTOBUF) and text of the latest schema."""

    def by_id(self, schema_id: int) -> tuple[str, str]:
        """Type and text."""

    def register(self, subject: str, schema_type: str, text: str) -> int: ...

    def delete(self, subject: str) -> None:
        """Delete all versions of a subject; one that is not there is no error."""


class Format(Protocol):
    """A format with its properties."""

    @property
    def name(self) -> str: ...

    def supports(self, feature: Feature) -> bool: ...

    def supports_key_type(self, sql_type: SqlType) -> bool: ...

    def inheritable_properties(self) -> frozenset[str]:
        """What CREATE ... AS takes over from the source when both have this format."""

    def serde(
        self,
        columns: Sequence[Column],
        features: frozenset[Feature],
        registry: SchemaRegistry | None,
        *,
        is_key: bool,
    ) -> RowSerde:
        """The serde of these columns, or a `KsqlException` where the format cannot hold them."""

    def schema_text(
        self, columns: Sequence[Column], features: frozenset[Feature]
    ) -> tuple[str, str]:
        """Type and text of the schema to register; only where inference is supported."""

    def columns_of(
        self, schema_type: str, text: str, features: frozenset[Feature], *, is_key: bool
    ) -> list[tuple[str, SqlType]]:
        """The columns of a registered schema."""


FormatFactory = Callable[[str, Mapping[str, str]], Format]
