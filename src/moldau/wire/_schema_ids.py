# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""Which schemas the records of a batch name, before keys and values or in headers, in one pass.

Plain Python, and with `_schema_ids.pxd` the source of a compiled module, as `_record_codec.py` is.
Invariant: nothing is read that was not found inside the given bounds. A batch that is not sound is
for the log's own validation to refuse.
"""

from __future__ import annotations

from types import SimpleNamespace

from moldau.wire.constants import Buffer

try:
    import cython
except ImportError:
    globals()["cython"] = SimpleNamespace(compiled=False)

COMPILED: bool = cython.compiled

if not cython.compiled:
    from moldau.wire.varint import varint, varint_size

#: A batch rarely has more than one schema. More than these are not told apart.
IDS_MAX = 1000
BAD_MAX = 1000

#: Confluent's headers, which name a schema in place of the first bytes.
KEY_HEADER = b"__key_schema_id"
VALUE_HEADER = b"__value_schema_id"
KEY_HEADER_LENGTH = 15
VALUE_HEADER_LENGTH = 17


class SchemaIds:
    """Schemas with the index of the first record that has each; the indexes of records without one.

    A schema is named by its id, an int, or by its guid, 16 bytes. A null has none and needs none.
    """

    def __init__(self) -> None:
        self.key_ids: dict[int | bytes, int] = {}
        self.value_ids: dict[int | bytes, int] = {}
        self.bad_keys: list[int] = []
        self.bad_values: list[int] = []
        self.sound = False
        #: Of the record at hand: where the values of the two headers begin, and their lengths.
        self.key_header = self.key_header_length = -1
        self.value_header = self.value_header_length = -1


def _id_at(data: Buffer, position: int) -> int:
    """The four bytes after the magic byte."""
    high = data[position + 1]
    return (
        (high << 24) | (data[position + 2] << 16) | (data[position + 3] << 8) | data[position + 4]
    )


def _is_text(data: Buffer, position: int, length: int, text: Buffer, text_length: int) -> bool:
    at = 0
    while at < length and at < text_length and data[position + at] == text[at]:
        at += 1
    return at == length and at == text_length


def _find_headers(found: SchemaIds, data: Buffer, position: int, end: int) -> bool:
    """Where the headers of a record name schemas; of several of one name the last counts."""
    found.key_header = found.value_header = -1
    size = varint_size(data, position, end, 5)
    if size == 0:
        return False
    count = varint(data, position, size)
    position += size
    for _ in range(count):
        size = varint_size(data, position, end, 5)
        if size == 0:
            return False
        name_length = varint(data, position, size)
        name = position + size
        if name_length < 0 or name_length > end - name:
            return False
        position = name + name_length
        size = varint_size(data, position, end, 5)
        if size == 0:
            return False
        length = varint(data, position, size)
        position += size
        if length > end - position:
            return False
        # A header without a value, or an empty one, names nothing.
        if length > 0:
            if _is_text(data, name, name_length, VALUE_HEADER, VALUE_HEADER_LENGTH):
                found.value_header = position
                found.value_header_length = length
            elif _is_text(data, name, name_length, KEY_HEADER, KEY_HEADER_LENGTH):
                found.key_header = position
                found.key_header_length = length
            position += length
    return True


def _note(ids: dict[int | bytes, int], name: int | bytes, index: int) -> None:
    if name not in ids and len(ids) < IDS_MAX:
        ids[name] = index


def _note_side(
    found: SchemaIds, is_key: bool, data: Buffer, position: int, length: int, index: int, last: int
) -> int:
    """What a key or a value names, by its header if there is one. `last` is the id of the record
    before, which is noted already; what is returned is that for the next one."""
    if is_key:
        ids, bad = found.key_ids, found.bad_keys
        header, header_length = found.key_header, found.key_header_length
    else:
        ids, bad = found.value_ids, found.bad_values
        header, header_length = found.value_header, found.value_header_length
    if header >= 0:
        # A one and the guid, or a zero and the id; which message of a schema it is may follow.
        if data[header] == 1 and header_length >= 17:
            _note(ids, bytes(data[header + 1 : header + 17]), index)
            return last
        position, length = header, header_length
    if length < 5 or data[position] != 0:
        if len(bad) < BAD_MAX:
            bad.append(index)
        return last
    schema_id = _id_at(data, position)
    if schema_id != last:
        _note(ids, schema_id, index)
    return schema_id


def _collect(
    found: SchemaIds,
    data: Buffer,
    position: int,
    end: int,
    record_count: int,
    keys: bool,
    values: bool,
) -> bool:
    """Walk the records; whether they are sound as far as they matter here."""
    last_key = last_value = -1
    for index in range(record_count):
        size = varint_size(data, position, end, 5)
        if size == 0:
            return False
        length = varint(data, position, size)
        position += size
        if length < 1 or length > end - position:
            return False
        record_end = position + length
        position += 1
        size = varint_size(data, position, record_end, 10)
        if size == 0:
            return False
        position += size
        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return False
        position += size

        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return False
        key_length = varint(data, position, size)
        position += size
        if key_length > record_end - position:
            return False
        key = position
        if key_length > 0:
            position += key_length
        size = varint_size(data, position, record_end, 5)
        if size == 0:
            return False
        value_length = varint(data, position, size)
        position += size
        if value_length > record_end - position:
            return False
        value = position
        if value_length > 0:
            position += value_length
        # Most records have no headers: a zero, their number.
        if position < record_end and data[position] == 0:
            found.key_header = found.value_header = -1
        elif not _find_headers(found, data, position, record_end):
            return False

        if keys and key_length >= 0:
            last_key = _note_side(found, True, data, key, key_length, index, last_key)
        if values and value_length >= 0:
            last_value = _note_side(found, False, data, value, value_length, index, last_value)
        position = record_end
    return True


def schema_ids(
    buffer: Buffer, position: int, end: int, record_count: int, keys: bool, values: bool
) -> SchemaIds:
    """Of the uncompressed records between `position` and `end`."""
    found = SchemaIds()
    if position < 0 or position > end or end > len(buffer):
        raise ValueError(f"bytes {position} to {end} do not lie within {len(buffer)} bytes")
    if position == end:
        return found
    if cython.compiled:
        view = buffer
        found.sound = _collect(
            found, cython.address(view[0]), position, end, record_count, keys, values
        )
    else:
        found.sound = _collect(found, buffer, position, end, record_count, keys, values)
    return found
