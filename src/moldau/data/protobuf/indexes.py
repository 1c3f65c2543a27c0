"""Which message of its file a record holds, as Confluent's wire format says it.

The path to the message, each number being that of a message among its siblings: `[0]` is the first
one of the file, `[1, 0]` the first one inside the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.data.protobuf.model import Message, ProtoFile

#: Deeper paths are refused: no file that was parsed has them.
PATH_LENGTH_MAX = 100
_FIRST = (0,)


class MessageIndexError(ValueError):
    """A path that leads to no message, or bytes that are no path."""


def index_path(file: ProtoFile, full_name: str) -> tuple[int, ...]:
    """The path to a message by its full name, with or without a dot in front."""
    name = full_name.removeprefix(".")
    if file.package:
        if not name.startswith(f"{file.package}."):
            raise MessageIndexError(f"{full_name} is not in package {file.package}")
        name = name.removeprefix(f"{file.package}.")
    path: list[int] = []
    messages = file.messages()
    for part in name.split("."):
        for index, message in enumerate(messages):
            if message.name == part:
                path.append(index)
                messages = message.messages()
                break
        else:
            raise MessageIndexError(f"The schema has no message {full_name}")
    return tuple(path)


def message_at(file: ProtoFile, path: Sequence[int]) -> str:
    """The full name of the message at a path. An empty path leads to the first message."""
    names = [file.package] if file.package else []
    messages: Iterator[Message] = file.messages()
    for index in path or _FIRST:
        message = next((each for i, each in enumerate(messages) if i == index), None)
        if message is None:
            raise MessageIndexError(f"Invalid message indexes: {list(path)}")
        names.append(message.name)
        messages = message.messages()
    return ".".join(names)


def encode_path(path: Sequence[int]) -> bytes:
    """The path as it stands in front of a record: numbers in zigzag, with their count.

    The first message, by far the most frequent one, has a form of its own: one zero.
    """
    if tuple(path) == _FIRST:
        return b"\0"
    return b"".join(_zigzag(number) for number in (len(path), *path))


def decode_path(data: bytes | memoryview, at: int = 0) -> tuple[tuple[int, ...], int]:
    """The path that begins at a place, and the place behind it."""
    count, at = _number(data, at)
    if count == 0:
        return _FIRST, at
    if not 0 < count <= PATH_LENGTH_MAX:
        raise MessageIndexError(f"Invalid message indexes: a path of {count} messages")
    path: list[int] = []
    for _ in range(count):
        number, at = _number(data, at)
        if number < 0:
            raise MessageIndexError(f"Invalid message indexes: {number}")
        path.append(number)
    return tuple(path), at


def _zigzag(number: int) -> bytes:
    left = number << 1 if number >= 0 else (-number << 1) - 1
    data = bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    data.append(left)
    return bytes(data)


def _number(data: bytes | memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise MessageIndexError("Invalid message indexes: the bytes are no path")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
