"""Expressions as text, the way ksqlDB's messages and generated statements show them."""

from __future__ import annotations

from moldau.sql.errors import KsqlException
from moldau.sql.syntax.cursor import needs_quotes
from moldau.sql.syntax.expressions import (
    Arithmetic,
    Between,
    BooleanLiteral,
    BytesLiteral,
    Cast,
    ColumnRef,
    Comparison,
    DecimalLiteral,
    Dereference,
    DoubleLiteral,
    Expression,
    FunctionCall,
    InList,
    IntegerLiteral,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Logical,
    LongLiteral,
    MakeArray,
    MakeMap,
    MakeStruct,
    Not,
    NullLiteral,
    SearchedCase,
    Signed,
    SimpleCase,
    StringLiteral,
    Subscript,
    TypedLiteral,
    When,
)


def name_text(name: str) -> str:
    """A name, with quotes where it needs them."""
    return "`" + name.replace("`", "``") + "`" if needs_quotes(name) else name


def text(expression: Expression) -> str:
    """The expression as ksqlDB shows it: operators in brackets, names without quotes."""
    return _Formatter(quotes=False).text(expression)


def statement_text(expression: Expression) -> str:
    """The same as part of a statement: names are quoted where they must be."""
    return _Formatter(quotes=True).text(expression)


def string_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class _Formatter:
    def __init__(self, *, quotes: bool) -> None:
        self._quotes = quotes

    def _name(self, name: str) -> str:
        return name_text(name) if self._quotes else name

    def _list(self, expressions: tuple[Expression, ...]) -> str:
        return ", ".join(self.text(each) for each in expressions)

    def text(self, node: Expression) -> str:
        match node:
            case ColumnRef(name, source):
                prefix = "" if source is None else f"{self._name(source)}."
                return prefix + self._name(name)
            case Dereference(base, field):
                return f"{self.text(base)}->{self._name(field)}"
            case Arithmetic(op, left, right) | Comparison(op, left, right):
                return f"({self.text(left)} {op} {self.text(right)})"
            case Logical(op, left, right):
                return f"({self.text(left)} {op} {self.text(right)})"
            case FunctionCall(name, arguments):
                shown = "*" if not arguments and name == "COUNT" else self._list(arguments)
                return f"{self._name(name)}({shown})"
            case LambdaVariable(name) | IntervalUnit(name):
                return name
            case Lambda(arguments, body):
                return f"({', '.join(arguments)}) => {self.text(body)}"
            case Signed(sign, value):
                shown = self.text(value)
                space = " " if sign == "-" and shown.startswith("-") else ""
                return sign + space + shown
            case Subscript(base, index):
                return f"{self.text(base)}[{self.text(index)}]"
            case Cast(value, kind):
                return f"CAST({self.text(value)} AS {kind})"
        literal = _literal(node)
        return self._predicate(node) if literal is None else literal

    def _predicate(self, node: Expression) -> str:
        match node:
            case Not(value):
                return f"(NOT {self.text(value)})"
            case IsNull(value, negated):
                return f"({self.text(value)} IS {'NOT ' if negated else ''}NULL)"
            case Between(value, low, high):
                return f"({self.text(value)} BETWEEN {self.text(low)} AND {self.text(high)})"
            case InList(value, items):
                return f"({self.text(value)} IN ({self._list(items)}))"
            case Like(value, pattern, escape):
                end = "" if escape is None else f" ESCAPE '{escape}'"
                return f"({self.text(value)} LIKE {self.text(pattern)}{end})"
            case When(condition, result):
                return f"WHEN {self.text(condition)} THEN {self.text(result)}"
            case SearchedCase(whens, default):
                return self._case([], whens, default)
            case SimpleCase(operand, whens, default):
                return self._case([self.text(operand)], whens, default)
        return self._constructor(node)

    def _case(self, start: list[str], whens: tuple[When, ...], default: Expression | None) -> str:
        parts = ["CASE", *start, *(self.text(each) for each in whens)]
        if default is not None:
            parts += ["ELSE", self.text(default)]
        return f"({' '.join([*parts, 'END'])})"

    def _constructor(self, node: Expression) -> str:
        match node:
            case MakeArray(items):
                return f"ARRAY[{self._list(items)}]"
            case MakeMap(keys, values):
                pairs = zip(keys, values, strict=True)
                shown = ", ".join(f"{self.text(key)}:={self.text(each)}" for key, each in pairs)
                return f"MAP({shown})"
            case MakeStruct(names, values):
                fields = zip(names, values, strict=True)
                shown = ", ".join(f"{self._name(name)}:={self.text(each)}" for name, each in fields)
                return f"STRUCT({shown})"
        raise KsqlException(f"Unknown expression: {node!r}")


def _literal(node: Expression) -> str | None:
    match node:
        case NullLiteral():
            return "null"
        case BooleanLiteral(value):
            return "true" if value else "false"
        case StringLiteral(value):
            return string_text(value)
        case IntegerLiteral(value) | LongLiteral(value) | TypedLiteral(value):
            return str(value)
        case DecimalLiteral(value):
            return str(value)
        case DoubleLiteral(value):
            return double_text(value)
        case BytesLiteral(value):
            shown = ",".join(str(each if each < 128 else each - 256) for each in value)
            return f"ByteBuffer.wrap(new byte[]{{{shown}}})"
    return None


def double_text(value: float) -> str:
    """Scientific notation with all digits: 1.5 is 1.5E0."""
    digits, _, exponent = repr(float(value)).lower().partition("e")
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.lstrip("-").partition(".")
    power = int(exponent or 0) + len(whole) - 1
    all_digits = whole + fraction
    stripped = all_digits.lstrip("0")
    if not stripped:
        return f"{sign}0E0"
    power -= len(all_digits) - len(stripped)
    stripped = stripped.rstrip("0")
    rest = f".{stripped[1:]}" if len(stripped) > 1 else ""
    return f"{sign}{stripped[0]}{rest}E{power}"
