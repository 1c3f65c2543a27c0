"""Data that would take more memory or stack to decode than it has bytes, found before decoding.

Two kinds of schemas allow it: a recursive one, whose data may nest once per byte (the decoder's
stack overflows then, and with it the process), and an array of items that take no bytes at all,
such as nulls, of which a few bytes can announce billions. For all others a decoder reads at least a
byte for each value it makes, and nothing is checked.
"""

from __future__ import annotations

from moldau.data.avro.model import (
    Array,
    AvroType,
    Fixed,
    Map,
    Name,
    Primitive,
    Record,
    RecordField,
    Union,
    parts,
)
from moldau.data.errors import DataError

#: Values inside of one another. The decoder survives thousands on a stack of 8 MB.
DEPTH_MAX = 500
#: Items without bytes in one message.
EMPTY_ITEMS_MAX = 100_000


def is_recursive(schema: AvroType) -> bool:
    """Whether a type holds itself, by whatever way."""
    done: set[int] = set()
    open_: set[int] = {id(schema)}
    path = [(schema, parts(schema))]
    while path:
        current, rest = path[-1]
        inner = next(rest, None)
        if inner is None:
            path.pop()
            open_.discard(id(current))
            done.add(id(current))
        elif id(inner) in open_:
            return True
        elif id(inner) not in done:
            open_.add(id(inner))
            path.append((inner, parts(inner)))
    return False


def _reachable(schema: AvroType) -> list[AvroType]:
    found, waiting = {id(schema): schema}, [schema]
    while waiting:
        for inner in parts(waiting.pop()):
            if id(inner) not in found:
                found[id(inner)] = inner
                waiting.append(inner)
    return list(found.values())


def has_empty_items(schema: AvroType) -> bool:
    """Whether there is an array whose items may take no bytes."""
    arrays = [each for each in _reachable(schema) if isinstance(each, Array)]
    return any(_may_be_empty(each.items, frozenset()) for each in arrays)


def _may_be_empty(schema: AvroType, within: frozenset[int]) -> bool:
    """Whether a value of the type may take no bytes."""
    match schema:
        case Primitive():
            return schema.kind == "null"
        case Fixed():
            return schema.size == 0
        case Record():
            if id(schema) in within:
                return False  # it would have to hold itself without end
            inside = within | {id(schema)}
            return all(_may_be_empty(each.type, inside) for each in schema.fields)
        case _:
            return False


def check_data(schema: AvroType, data: bytes) -> None:
    """Raise DataError for data that nests too deeply or announces too many empty items.

    Values are skipped one after another, with a list in place of a stack.
    """
    skipper = _Skipper(data)
    entries: dict[int, Record] = {}
    waiting: list[tuple[AvroType, int, int]] = [(schema, 1, 1)]  # type, how many, how deep
    while waiting:
        current, count, depth = waiting.pop()
        if depth > DEPTH_MAX:
            raise DataError(f"Avro data is nested more than {DEPTH_MAX} levels deep")
        if count > 1:
            waiting.append((current, count - 1, depth))
        match current:
            case Record():
                for field in reversed(current.fields):
                    waiting.append((field.type, 1, depth + 1))
            case Union():
                index = skipper.number()
                if not 0 <= index < len(current.branches):
                    raise DataError(f"Avro data has no branch {index} in a union")
                waiting.append((current.branches[index], 1, depth + 1))
            case Array() | Map():
                number = skipper.block()
                if number:
                    waiting.append((current, 1, depth))  # the block after this one
                    waiting.append((_item(current, entries), number, depth + 1))
            case _:
                skipper.value(current)


def _item(schema: Array | Map, entries: dict[int, Record]) -> AvroType:
    """What a block repeats; a map's entry is a key and a value, like a record."""
    if isinstance(schema, Array):
        return schema.items
    entry = entries.get(id(schema))
    if entry is None:
        key = RecordField("key", Primitive("string"))
        entry = Record(Name("Entry"), [key, RecordField("value", schema.values)])
        entries[id(schema)] = entry
    return entry


class _Skipper:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._items = 0

    def number(self) -> int:
        """A zigzag number of variable length."""
        shift, number = 0, 0
        while True:
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > 63:
                raise DataError("Avro data has a number of more than 64 bits")

    def block(self) -> int:
        """How many items a block of an array or map has; its size in bytes is not needed."""
        count = self.number()
        if count < 0:
            self.number()
            count = -count
        self._items += count
        if self._items > len(self._data) + EMPTY_ITEMS_MAX:
            raise DataError(f"Avro data of {len(self._data)} bytes announces {self._items} items")
        return count

    def value(self, schema: AvroType) -> None:
        match schema.kind:
            case "null":
                pass
            case "boolean":
                self._take(1)
            case "int" | "long" | "enum":
                self.number()
            case "float":
                self._take(4)
            case "double":
                self._take(8)
            case "bytes" | "string":
                self._take(self.number())
            case _ if isinstance(schema, Fixed):
                self._take(schema.size)

    def _take(self, size: int) -> bytes:
        start = self._position
        if not 0 <= size <= len(self._data) - start:
            raise DataError(f"Avro data ends early: {size} bytes wanted at {start}")
        self._position = start + size
        return self._data[start : self._position]
