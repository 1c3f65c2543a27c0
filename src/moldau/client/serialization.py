"""How keys and values become bytes, and bytes keys and values again.

A serializer is a callable, or an object with a method `serialize`, of (topic, data, headers) that
gives bytes or None; a deserializer likewise, with `deserialize`. A function of the data alone does
as well. Settings take such objects, their
classes, a short name (`string`, `json`, `int`, ...), the name of one of Kafka's Java classes, or
the dotted path of something in Python. Invariants: the bytes are those of Kafka's classes
of the same name, and what cannot be converted raises `SerializationError`.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, Final, Protocol, cast
from uuid import UUID

from moldau.client.errors import ConfigError, KafkaError, SerializationError
from moldau.config.suggestions import did_you_mean

__all__ = [
    "Deserialize",
    "Deserializer",
    "Serialize",
    "Serializer",
    "close_function",
    "resolve_deserializer",
    "resolve_serializer",
]

#: What the clients call: (topic, data, headers).
Serialize = Callable[[str, Any, Any], bytes | None]
Deserialize = Callable[[str, bytes | None, Any], Any]


class Serializer(Protocol):
    def serialize(self, topic: str, data: Any, headers: Any) -> bytes | None: ...


class Deserializer(Protocol):
    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any: ...


class PlainSerializer:
    """The default: bytes of any kind as they are, text in UTF-8, None."""

    #: The clients pass bytes and None on without a call.
    plain: Final = True

    def __init__(self, side: str = "value") -> None:
        self._side = side

    def __call__(self, topic: str, data: Any, headers: Any) -> bytes | None:
        if data is None or type(data) is bytes:
            return data
        if isinstance(data, str):
            return data.encode()
        if isinstance(data, (bytes, bytearray, memoryview)):
            return bytes(data)
        raise SerializationError(
            f"cannot serialize the {self._side} ({type(data).__name__}) for topic {topic}",
            advice=f"use bytes, str or None, or set {self._side}.serializer, for example to 'json'",
        )


class BytesSerializer:
    """Bytes of any kind, nothing else."""

    plain: Final = True

    def __call__(self, topic: str, data: Any, headers: Any) -> bytes | None:
        if data is None or type(data) is bytes:
            return data
        if isinstance(data, (bytes, bytearray, memoryview)):
            return bytes(data)
        raise _refused(data, topic, "bytes")


class StringSerializer:
    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding

    def __call__(self, topic: str, data: Any, headers: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, str):
            raise _refused(data, topic, "text")
        try:
            return data.encode(self._encoding)
        except UnicodeEncodeError as error:
            raise SerializationError(
                f"text for topic {topic} cannot be written in {self._encoding}: {error}"
            ) from error


class StringDeserializer:
    null_is_null: Final = True

    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = encoding
        #: Whoever decodes many records may do this without calling.
        self.utf8_text = encoding.lower().replace("-", "") == "utf8"

    def __call__(self, topic: str, data: bytes | None, headers: Any) -> str | None:
        if data is None:
            return None
        try:
            return data.decode(self._encoding)
        except UnicodeDecodeError as error:
            raise SerializationError(f"not {self._encoding}: {error}") from error


class _Struct:
    """Numbers of a fixed size, big-endian, as Java writes them."""

    null_is_null: Final = True

    def __init__(self, layout: str, what: str, kinds: tuple[type, ...]) -> None:
        self._struct = struct.Struct(layout)
        self._what = what
        self._kinds = kinds

    @property
    def size(self) -> int:
        return self._struct.size

    def serialize(self, topic: str, data: Any, headers: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, self._kinds) or (
            isinstance(data, bool) and bool not in self._kinds
        ):
            raise _refused(data, topic, self._what)
        try:
            return self._struct.pack(data)
        except (struct.error, OverflowError) as error:
            raise SerializationError(
                f"{data!r} for topic {topic} is no {self._what}: {error}"
            ) from (error)

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any:
        if data is None:
            return None
        if len(data) != self._struct.size:
            raise SerializationError(
                f"{self._what} has {self._struct.size} bytes, but there are {len(data)}"
            )
        return self._struct.unpack(data)[0]

    __call__ = deserialize


class _Boolean(_Struct):
    def __init__(self) -> None:
        super().__init__(">b", "boolean", (bool,))

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any:
        number = super().deserialize(topic, data, headers)
        if number not in (None, 0, 1):
            raise SerializationError(f"a boolean is 0 or 1, not {number}")
        return None if number is None else bool(number)

    __call__ = deserialize


class _Uuid:
    """As text, as Java's does."""

    null_is_null: Final = True

    def serialize(self, topic: str, data: Any, headers: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, UUID):
            raise _refused(data, topic, "UUID")
        return str(data).encode()

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> UUID | None:
        if data is None:
            return None
        try:
            return UUID(data.decode())
        except ValueError as error:
            raise SerializationError(f"no UUID: {error}") from error

    __call__ = deserialize


class _Void:
    def serialize(self, topic: str, data: Any, headers: Any) -> None:
        if data is not None:
            raise _refused(data, topic, "None")

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> None:
        if data is not None:
            raise SerializationError(f"void has no bytes, but there are {len(data)} bytes")

    __call__ = deserialize


class _Json:
    null_is_null: Final = True

    def serialize(self, topic: str, data: Any, headers: Any) -> bytes | None:
        if data is None:
            return None
        try:
            return json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise SerializationError(f"no JSON for topic {topic}: {error}") from error

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> Any:
        if data is None:
            return None
        try:
            return json.loads(data)
        except ValueError as error:
            raise SerializationError(f"no JSON: {error}") from error

    __call__ = deserialize


_INT32: Final = struct.Struct(">i")
_CONSTANT_SIZE, _VARIABLE_SIZE = 0, 1
_NULL_ENTRY: Final = -1


class ListSerde:
    """Lists of one inner type, in the layout of Kafka's ListSerializer."""

    null_is_null: Final = True

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._write = serialize_function(inner)
        self._read = deserialize_function(inner)
        # Kafka writes no lengths where they are all the same, but for booleans.
        is_number = isinstance(inner, _Struct) and not isinstance(inner, _Boolean)
        self._size: int | None = inner.size if is_number else None
        if isinstance(inner, _Uuid):
            self._size = 36

    def serialize(self, topic: str, data: Any, headers: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, (list, tuple)):
            raise _refused(data, topic, "list")
        constant = self._size is not None
        out = bytearray([_CONSTANT_SIZE if constant else _VARIABLE_SIZE])
        if constant:
            nulls = [index for index, each in enumerate(data) if each is None]
            out += _INT32.pack(len(nulls)) + b"".join(map(_INT32.pack, nulls))
        out += _INT32.pack(len(data))
        for each in data:
            entry = None if each is None else self._write(topic, each, headers)
            if not constant:
                out += _INT32.pack(_NULL_ENTRY if entry is None else len(entry))
            out += entry or b""
        return bytes(out)

    def deserialize(self, topic: str, data: bytes | None, headers: Any) -> list[Any] | None:
        if data is None:
            return None
        try:
            return self._parse(topic, data, headers)
        except (struct.error, IndexError) as error:
            raise SerializationError(f"a list is cut off: {error}") from error

    def _parse(self, topic: str, data: bytes, headers: Any) -> list[Any]:
        position = 1
        nulls: set[int] = set()
        constant = data[0] == _CONSTANT_SIZE
        if constant:
            (count,) = _INT32.unpack_from(data, position)
            nulls = {
                _INT32.unpack_from(data, position + 4 + 4 * index)[0] for index in range(count)
            }
            position += 4 + 4 * count
        (count,) = _INT32.unpack_from(data, position)
        position += 4
        found: list[Any] = []
        for index in range(count):
            if index in nulls:
                found.append(None)
                continue
            size = self._size if constant else _INT32.unpack_from(data, position)[0]
            position += 0 if constant else 4
            if size is None or size > len(data) - position:
                raise SerializationError("a list's entries run past its end")
            if size == _NULL_ENTRY:
                found.append(None)
                continue
            found.append(self._read(topic, data[position : position + size], headers))
            position += size
        return found

    __call__ = deserialize


def _refused(data: Any, topic: str, wanted: str) -> SerializationError:
    return SerializationError(
        f"a {type(data).__name__} for topic {topic} where the serializer takes {wanted}"
    )


_JAVA_PREFIX: Final = "org.apache.kafka.common.serialization."
# Short names; Kafka's class is the second with Serializer or Deserializer behind it.
_BUILT_IN: Final[dict[str, tuple[str, Callable[[], Any]]]] = {
    "bytes": ("ByteArray", BytesSerializer),
    "bytebuffer": ("ByteBuffer", BytesSerializer),
    "string": ("String", StringSerializer),
    "short": ("Short", lambda: _Struct(">h", "short", (int,))),
    "int": ("Integer", lambda: _Struct(">i", "int", (int,))),
    "integer": ("Integer", lambda: _Struct(">i", "int", (int,))),
    "long": ("Long", lambda: _Struct(">q", "long", (int,))),
    "float": ("Float", lambda: _Struct(">f", "float", (float, int))),
    "double": ("Double", lambda: _Struct(">d", "double", (float, int))),
    "boolean": ("Boolean", _Boolean),
    "bool": ("Boolean", _Boolean),
    "uuid": ("UUID", _Uuid),
    "void": ("Void", _Void),
    "json": ("Json", _Json),
}
_SHORT_BY_JAVA: Final = {
    **{java: short for short, (java, _) in _BUILT_IN.items() if java != "Json"},
    "Bytes": "bytes",
    "List": "list",
}


def resolve_serializer(
    setting: Any, is_key: bool, config: Mapping[str, Any] | None = None
) -> Serialize:
    """The callable that a setting stands for; its attribute `plain` is true if bytes and None
    stay what they are."""
    if setting is None:
        return PlainSerializer("key" if is_key else "value")
    found = _resolve(setting, "Serializer", is_key, config or {})
    return found if isinstance(found, BytesSerializer) else serialize_function(found)


def resolve_deserializer(
    setting: Any, is_key: bool, config: Mapping[str, Any] | None = None
) -> Deserialize | None:
    """The callable that a setting stands for; None if bytes stay as they are."""
    if setting is None:
        return None
    found = _resolve(setting, "Deserializer", is_key, config or {})
    return None if isinstance(found, BytesSerializer) else deserialize_function(found)


def serialize_function(serializer: Any) -> Serialize:
    method = getattr(serializer, "serialize", None)
    return cast(Serialize, method or _with_three_arguments(serializer))


def deserialize_function(deserializer: Any) -> Deserialize:
    # Built-in ones are called themselves: they carry `null_is_null` and `utf8_text`.
    if isinstance(deserializer, BytesSerializer):
        return lambda topic, data, headers: data
    if callable(deserializer):
        return cast(Deserialize, _with_three_arguments(deserializer))
    return cast(Deserialize, deserializer.deserialize)


def _with_three_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Functions of the data alone are taken too (`json.loads`, `str.encode`): it is how other
    Python clients want them."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    if any(each.kind is Parameter.VAR_POSITIONAL for each in parameters):
        return function
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [each for each in parameters if each.kind in positional and each.default is each.empty]
    if len(needed) != 1:
        return function
    return lambda topic, data, headers: function(data)


def close_function(function: Serialize | Deserialize | None) -> None:
    """Close what a serializer or deserializer belongs to, if that wants to be closed."""
    close = getattr(getattr(function, "__self__", function), "close", None)
    if close is not None:
        close()


def _resolve(setting: Any, role: str, is_key: bool, config: Mapping[str, Any]) -> Any:
    side = "key" if is_key else "value"
    key = f"{side}.{role.lower()}"
    method = "serialize" if role == "Serializer" else "deserialize"
    if isinstance(setting, str):
        built_in = _built_in(setting, role, side, config)
        if built_in is not None:
            return built_in
        setting = _imported(key, setting)
    if isinstance(setting, type):
        try:
            setting = setting()
        except TypeError as error:
            raise ConfigError.invalid(
                key, setting.__name__, f"could not be made without arguments: {error}"
            ) from error
    if hasattr(setting, "configure"):
        setting.configure(dict(config), is_key)
    if not callable(setting) and not hasattr(setting, method):
        raise ConfigError.invalid(
            key, setting, f"must be callable or have a method {method}(topic, data, headers)"
        )
    return setting


def _built_in(name: str, role: str, side: str, config: Mapping[str, Any]) -> Any:
    short = name.strip()
    if short.startswith(_JAVA_PREFIX):
        java = short.removeprefix(_JAVA_PREFIX)
        known = _SHORT_BY_JAVA.get(java.removesuffix(role))
        if not java.endswith(role) or known is None:
            raise ConfigError.invalid(f"{side}.{role.lower()}", name, f"no such {role.lower()}")
        short = known
    short = short.lower()
    if short == "list":
        inner = config.get(f"list.{side}.{role.lower()}.inner") or config.get(
            f"default.list.{side}.serde.inner"
        )
        if inner is None:
            raise ConfigError.invalid(
                f"list.{side}.{role.lower()}.inner", None, "is needed for a list"
            )
        return ListSerde(_resolve(inner, role, side == "key", config))
    if short == "string":
        encoding = config.get(f"{side}.{role.lower()}.encoding") or config.get(
            f"{role.lower()}.encoding", "utf-8"
        )
        try:
            "".encode(encoding)
        except LookupError:
            raise ConfigError.invalid(
                f"{side}.{role.lower()}.encoding", encoding, "is no encoding"
            ) from None
        return StringSerializer(encoding) if role == "Serializer" else StringDeserializer(encoding)
    entry = _BUILT_IN.get(short)
    return None if entry is None else entry[1]()


def _imported(key: str, path: str) -> Any:
    module, _, name = path.strip().replace(":", ".").rpartition(".")
    try:
        if not module:
            raise ImportError(f"no such name{did_you_mean(path, _BUILT_IN)}")
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError.invalid(
            key,
            path,
            f"must be one of {', '.join(sorted({*_BUILT_IN, 'list'}))}, a Kafka class or the "
            f"path of a Python one: {error}",
        ) from error


def checked_bytes(data: Any, topic: str, what: str) -> bytes | None:
    """What a serializer gave, which must be bytes or None."""
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, (bytearray, memoryview, bytes)):
        return bytes(data)
    raise SerializationError(
        f"the {what} serializer gave a {type(data).__name__} for topic {topic}, not bytes"
    )


def serialized(
    serialize: Serialize, topic: str, data: Any, headers: Any, what: str
) -> bytes | None:
    """Run a serializer; whatever it raises becomes a SerializationError."""
    try:
        return checked_bytes(serialize(topic, data, headers), topic, what)
    except KafkaError:
        raise
    except Exception as error:
        raise SerializationError(
            f"can't convert {what} of class {type(data).__name__} for topic {topic}: {error}"
        ) from error
