# cython: boundscheck=False, wraparound=False, annotation_typing=False
"""Which schemas the records of a batch name: the ids in front of keys and values, in one pass.

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


class SchemaIds:
    """Ids with the index of the first record that has each; the indexes of records without one.

    A null has none and needs none.
    """

    def __init__(self) -> None:
        self.key_ids: dict[int, int] = {}
        self.value_ids: dict[int, int] = {}
        self.bad_keys: list[int] = []
        self.bad_values: list[int] = []
        self.sound = False


def _id_at(data: Buffer, position: int) -> int:
    """The four bytes after the magic byte."""
    high = data[position + 1]
    return (
        (high << 24) | (data[position + 2] << 16) | (data[position + 3] << 8) | data[position + 4]
    )


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
        length = varint(data, position, size)
        position += size
        if length > record_end - position:
            return False
        if length >= 0:
            if keys:
                if length < 5 or data[position] != 0:
                    if len(found.bad_keys) < BAD_MAX:
                        found.bad_keys.append(index)
                else:
                    schema_id = _id_at(data, position)
                    if schema_id != last_key:
                        last_key = schema_id
                        if schema_id not in found.key_ids and len(found.key_ids) < IDS_MAX:
                            found.key_ids[schema_id] = index
            position += length

        if values:
            size = varint_size(data, position, record_end, 5)
            if size == 0:
                return False
            length = varint(data, position, size)
            position += size
            if length > record_end - position:
                return False
            if length >= 0:
                if length < 5 or data[position] != 0:
                    if len(found.bad_values) < BAD_MAX:
                        found.bad_values.append(index)
                else:
                    schema_id = _id_at(data, position)
                    if schema_id != last_value:
                        last_value = schema_id
                        if schema_id not in found.value_ids and len(found.value_ids) < IDS_MAX:
                            found.value_ids[schema_id] = index
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
