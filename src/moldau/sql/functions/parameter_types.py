"""The types that functions declare: SQL's, type variables, DECIMALs of any size, lambdas.

Signatures are declared as texts, in the words that error messages use:

    (ARRAY<T> array, LAMBDA(T)=>R function) -> ARRAY<R>
    (INT val, INT... vals) -> INT
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from moldau.sql.errors import KsqlException
from moldau.sql.types import (
    BYTES,
    DATE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    BaseType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.sql.values.arithmetic import base_name
from moldau.sql.values.decimals import to_decimal_type

_SHOWN = {STRING: "VARCHAR", INTEGER: "INT"}
_BASE = {
    **{each.value: each for each in BaseType},
    "INT": INTEGER,
    "VARCHAR": STRING,
}


@dataclass(frozen=True, slots=True)
class Base:
    """One of SQL's types without parts."""

    type: BaseType

    def __str__(self) -> str:
        return _SHOWN.get(self.type, self.type.value)


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A DECIMAL of any precision and scale."""

    def __str__(self) -> str:
        return "DECIMAL"


@dataclass(frozen=True, slots=True)
class AnyValue:
    """Whatever there is; only variadic parameters have it."""

    def __str__(self) -> str:
        return "ANY"


@dataclass(frozen=True, slots=True)
class IntervalUnit:
    def __str__(self) -> str:
        return "INTERVAL UNIT"


@dataclass(frozen=True, slots=True)
class Generic:
    """A type variable."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Array:
    item: ParamType

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class Map:
    key: ParamType
    value: ParamType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[tuple[str, ParamType], ...]

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {each}" for name, each in self.fields)
        return f"STRUCT<{shown}>"


@dataclass(frozen=True, slots=True)
class Lambda:
    inputs: tuple[ParamType, ...]
    result: ParamType

    def __str__(self) -> str:
        return f"LAMBDA ({', '.join(map(str, self.inputs))}) => {self.result}"


ParamType: TypeAlias = (
    Base | AnyDecimal | AnyValue | IntervalUnit | Generic | Array | Map | Struct | Lambda
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; the type of a variadic one is that of each of its values."""

    name: str
    type: ParamType
    variadic: bool = False

    def __str__(self) -> str:
        shown = f"{self.type}..." if self.variadic else str(self.type)
        return f"{shown} {self.name}" if self.name else shown


@dataclass(frozen=True, slots=True)
class Signature:
    parameters: tuple[Parameter, ...]
    result: ParamType

    @property
    def is_variadic(self) -> bool:
        return any(each.variadic for each in self.parameters)


def generics_of(declared: ParamType) -> frozenset[str]:
    match declared:
        case Generic():
            return frozenset({declared.name})
        case Array():
            return generics_of(declared.item)
        case Map():
            return generics_of(declared.key) | generics_of(declared.value)
        case Struct():
            return frozenset().union(*(generics_of(each) for _, each in declared.fields))
        case Lambda():
            inner = (generics_of(each) for each in (*declared.inputs, declared.result))
            return frozenset().union(*inner)
        case _:
            return frozenset()


def resolved(declared: ParamType, known: Mapping[str, SqlType]) -> SqlType:
    """The type with its variables put in."""
    match declared:
        case Base():
            return declared.type
        case Generic():
            found = known.get(declared.name)
            if found is None:
                raise KsqlException(f"Could not find mapping for generic type: {declared}")
            return found
        case Array():
            return ArrayType(resolved(declared.item, known))
        case Map():
            return MapType(resolved(declared.key, known), resolved(declared.value, known))
        case Struct():
            return StructType(
                tuple((name, resolved(each, known)) for name, each in declared.fields)
            )
        case _:
            raise KsqlException(f"{declared} is not the type of a value")


def cast_target(declared: ParamType, argument: SqlType) -> SqlType | None:
    """The type that an argument is cast to before the call; None if it stays as it is."""
    if generics_of(declared) or isinstance(declared, AnyValue | Lambda | IntervalUnit):
        return None
    if matches_exactly(argument, declared):
        return None
    if isinstance(declared, AnyDecimal):
        return to_decimal_type(argument)
    return resolved(declared, {})


def matches_exactly(argument: SqlType, declared: ParamType) -> bool:
    """Whether the type is the declared one, with no variables in it."""
    match declared, argument:
        case Base(), BaseType():
            return declared.type is argument
        case AnyDecimal(), DecimalType():
            return True
        case Array(), ArrayType():
            return matches_exactly(argument.item, declared.item)
        case Map(), MapType():
            return matches_exactly(argument.key, declared.key) and matches_exactly(
                argument.value, declared.value
            )
        case Struct(), StructType():
            return len(declared.fields) == len(argument.fields) and all(
                ours[0] == theirs[0] and matches_exactly(theirs[1], ours[1])
                for ours, theirs in zip(declared.fields, argument.fields, strict=True)
            )
        case _:
            return False


_ORDER = ("INTEGER", "BIGINT", "DECIMAL", "DOUBLE")
_FROM_TEXT = frozenset({TIME, DATE, TIMESTAMP, BYTES})


def can_cast(argument: SqlType, declared: ParamType) -> bool:
    """Whether an argument of another type is converted without being asked to."""
    if isinstance(declared, AnyDecimal):
        wanted = "DECIMAL"
    elif isinstance(declared, Base):
        if argument is STRING and declared.type in _FROM_TEXT:
            return True
        wanted = declared.type.value
    else:
        # A nested argument of the same kind passes here; its parts are compared elsewhere.
        return type(declared).__name__.upper() == base_name(argument)
    given = base_name(argument)
    if given in _ORDER and wanted in _ORDER:
        return _ORDER.index(given) <= _ORDER.index(wanted)
    return given == wanted


def accepts(argument: SqlType, declared: ParamType, *, allow_cast: bool) -> bool:
    """Whether a parameter without type variables takes the argument."""
    match declared, argument:
        case AnyValue(), _:
            return True
        case ((IntervalUnit() | Lambda()), _):
            return False
        case Array(), ArrayType():
            return accepts(argument.item, declared.item, allow_cast=allow_cast)
        case Map(), MapType():
            return accepts(argument.key, declared.key, allow_cast=allow_cast) and accepts(
                argument.value, declared.value, allow_cast=allow_cast
            )
        case Struct(), StructType():
            return _accepts_struct(argument, declared)
    return matches_exactly(argument, declared) or (allow_cast and can_cast(argument, declared))


def _accepts_struct(argument: StructType, declared: Struct) -> bool:
    if not argument.fields or not declared.fields:
        return True
    given = dict(argument.fields)
    return len(argument.fields) == len(declared.fields) and all(
        name in given and accepts(given[name], each, allow_cast=False)
        for name, each in declared.fields
    )


def signature(text: str) -> Signature:
    """Read `(TYPE name, TYPE... name) -> TYPE`."""
    return _Reader(text).signature()


_TOKEN = re.compile(r"\s*(->|=>|\.\.\.|[A-Za-z_][A-Za-z0-9_]*|[<>(),])")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = _TOKEN.findall(text)
        if "".join(self._tokens) != re.sub(r"\s", "", text):
            raise ValueError(f"Cannot read the signature {text!r}")
        self._position = 0

    def signature(self) -> Signature:
        self._expect("(")
        parameters: list[Parameter] = []
        while self._peek() != ")":
            if parameters:
                self._expect(",")
            declared = self.type()
            variadic = self._peek() == "..."
            if variadic:
                self._next()
            name = "" if self._peek() in (",", ")") else self._next()
            parameters.append(Parameter(name, declared, variadic))
        self._expect(")")
        self._expect("->")
        result = self.type()
        if self._position != len(self._tokens):
            raise ValueError(f"Cannot read the end of the signature {self._text!r}")
        if sum(each.variadic for each in parameters) > 1:
            raise ValueError(f"Only one parameter may be variadic: {self._text!r}")
        return Signature(tuple(parameters), result)

    def type(self) -> ParamType:
        word = self._next().upper()
        match word:
            case "ARRAY":
                self._expect("<")
                item = self.type()
                self._expect(">")
                return Array(item)
            case "MAP":
                self._expect("<")
                key = self.type()
                self._expect(",")
                value = self.type()
                self._expect(">")
                return Map(key, value)
            case "STRUCT":
                return self._struct()
            case "LAMBDA":
                return self._lambda()
            case "DECIMAL":
                return AnyDecimal()
            case "ANY":
                return AnyValue()
            case "INTERVAL":
                self._expect("UNIT")
                return IntervalUnit()
        found = _BASE.get(word)
        if found is not None:
            return Base(found)
        if len(word) > 2:
            raise ValueError(f"Unknown type {word} in the signature {self._text!r}")
        return Generic(word)

    def _struct(self) -> Struct:
        self._expect("<")
        fields: list[tuple[str, ParamType]] = []
        while self._peek() != ">":
            if fields:
                self._expect(",")
            name = self._next().upper()
            fields.append((name, self.type()))
        self._expect(">")
        return Struct(tuple(fields))

    def _lambda(self) -> Lambda:
        self._expect("(")
        inputs: list[ParamType] = []
        while self._peek() != ")":
            if inputs:
                self._expect(",")
            inputs.append(self.type())
        self._expect(")")
        self._expect("=>")
        return Lambda(tuple(inputs), self.type())

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise ValueError(f"The signature {self._text!r} ends too early")
        self._position += 1
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token.upper() != wanted:
            raise ValueError(
                f"Cannot read the signature {self._text!r}: {token!r} instead of {wanted!r}"
            )
