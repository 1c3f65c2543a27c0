"""Converters without registry: JSON, texts, bytes and numbers. The work is in `moldau.data`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moldau.connect.api import (
    ConfigDef,
    ConfigError,
    Converter,
    DataError,
    HeaderConverter,
    Importance,
    Kind,
    OneOf,
    Width,
)
from moldau.data.builders import OPTIONAL_STRING
from moldau.data.connect_json import JsonConverter as JsonMessages
from moldau.data.connect_json import JsonOptions
from moldau.data.errors import OptionError
from moldau.data.primitive_bytes import BytesConverter, converter
from moldau.data.schema import Schema, SchemaAndValue
from moldau.data.value_text import parse_string
from moldau.data.values import to_text

Headers = list[tuple[str, bytes | None]] | None
_NO_TEXT = SchemaAndValue(OPTIONAL_STRING, None)


def _shown(group: str, order: int, name: str) -> dict[str, Any]:
    """Where a form shows a setting."""
    return {"group": group, "order": order, "display_name": name, "width": Width.MEDIUM}


class JsonConverter(Converter, HeaderConverter):
    """JSON, with the schema in every message or without schemas."""

    CONFIG: ClassVar[ConfigDef] = (
        ConfigDef()
        .define(
            "schemas.enable",
            Kind.BOOLEAN,
            True,
            **_shown("Schemas", 0, "Enable Schemas"),
            importance=Importance.HIGH,
            doc="Whether every message has its schema in it.",
        )
        .define(
            "schemas.cache.size",
            Kind.INT,
            1000,
            **_shown("Schemas", 1, "Schema Cache Size"),
            importance=Importance.HIGH,
            doc="How many schemas the converter remembers.",
        )
        .define(
            "schema.content",
            Kind.STRING,
            None,
            **_shown("Schemas", 2, "Schema Content"),
            importance=Importance.HIGH,
            doc="The schema of messages that have none in them, as JSON (KIP-1054).",
        )
        .define(
            "decimal.format",
            Kind.STRING,
            "BASE64",
            **_shown("Serialization", 0, "Decimal Format"),
            validator=OneOf(("NUMERIC", "BASE64"), ignore_case=True),
            importance=Importance.LOW,
            doc="How decimals are written: as base64 text of their bytes, or as numbers.",
        )
        .define(
            "replace.null.with.default",
            Kind.BOOLEAN,
            True,
            **_shown("Serialization", 1, "Replace null with default"),
            importance=Importance.LOW,
            doc="Whether a null in a field that has a default is replaced by the default.",
        )
    )

    def __init__(self) -> None:
        self._messages = JsonMessages()
        self._schema: Schema | None = None

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any], *, is_key: bool = False) -> None:
        settings = self.CONFIG.parse(configs)
        try:
            options = JsonOptions.from_config(
                {key: str(value) for key, value in configs.items() if value is not None}
            )
        except OptionError as error:
            raise ConfigError(str(error)) from None
        content = settings["schema.content"]
        if content:
            self._messages = _WithSchema(options, content)
        else:
            self._messages = JsonMessages(options)

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = None
    ) -> bytes | None:
        return self._messages.to_json(schema, value)

    def to_connect_data(
        self, topic: str, data: bytes | None, headers: Headers = None
    ) -> SchemaAndValue:
        return self._messages.from_json(data)

    def from_connect_header(
        self, topic: str, key: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        return self._messages.to_json(schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self._messages.from_json(data)

    def close(self) -> None: ...


class _WithSchema(JsonMessages):
    """Messages without schema, whose schema the configuration has."""

    def __init__(self, options: JsonOptions, content: str) -> None:
        super().__init__(
            JsonOptions(
                schemas_enable=True,
                decimal_format=options.decimal_format,
                replace_null_with_default=options.replace_null_with_default,
            )
        )
        self._prefix = b'{"schema":' + content.encode() + b',"payload":'
        self._writes = JsonMessages(options)
        # Finds a schema that is none when the converter is configured.
        try:
            super().from_json(self._prefix + b"null}")
        except DataError as error:
            if "null" not in str(error):
                raise ConfigError.invalid("schema.content", content, str(error)) from None

    def to_json(self, schema: Schema | None, value: Any) -> bytes | None:
        return self._writes.to_json(schema, value)

    def from_json(self, data: bytes | None) -> SchemaAndValue:
        return super().from_json(None if data is None else self._prefix + data + b"}")


class _BytesBased(Converter, HeaderConverter):
    """A converter of `moldau.data.primitive_bytes`, under Connect's interface."""

    NAME: ClassVar[str]
    CONFIG: ClassVar[ConfigDef] = ConfigDef()

    def __init__(self) -> None:
        self._bytes: BytesConverter = converter(self.NAME)

    @classmethod
    def config(cls) -> ConfigDef:
        return cls.CONFIG

    def configure(self, configs: Mapping[str, Any], *, is_key: bool = False) -> None: ...

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = None
    ) -> bytes | None:
        return self._bytes.to_bytes(schema, value)

    def to_connect_data(
        self, topic: str, data: bytes | None, headers: Headers = None
    ) -> SchemaAndValue:
        return self._bytes.from_bytes(data)

    def from_connect_header(
        self, topic: str, key: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        return self._bytes.to_bytes(schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self._bytes.from_bytes(data)

    def close(self) -> None: ...


class StringConverter(_BytesBased):
    NAME = "StringConverter"
    CONFIG = ConfigDef().define(
        "converter.encoding",
        Kind.STRING,
        "UTF-8",
        importance=Importance.HIGH,
        width=Width.MEDIUM,
        display_name="Encoding",
        doc="The character encoding of the texts.",
    )

    def configure(self, configs: Mapping[str, Any], *, is_key: bool = False) -> None:
        encoding = self.CONFIG.parse(configs)["converter.encoding"]
        try:
            self._bytes = converter(self.NAME, encoding=encoding)
        except OptionError as error:
            raise ConfigError.invalid("converter.encoding", encoding, str(error)) from None
        self._utf8 = encoding.upper() in ("UTF-8", "UTF8")

    _utf8 = False

    def from_connect_data(
        self, topic: str, schema: Schema | None, value: Any, headers: Headers = None
    ) -> bytes | None:
        # Nearly all values are texts or null, and nearly all texts can be encoded.
        if value is None:
            return None
        if type(value) is str and self._utf8:
            try:
                return value.encode()
            except UnicodeEncodeError:
                pass
        return self._bytes.to_bytes(schema, value)

    def to_connect_data(
        self, topic: str, data: bytes | None, headers: Headers = None
    ) -> SchemaAndValue:
        if data is None:
            return _NO_TEXT
        if self._utf8:
            return SchemaAndValue(OPTIONAL_STRING, str(data, "utf-8", "replace"))
        return self._bytes.from_bytes(data)


class ByteArrayConverter(_BytesBased):
    NAME = "ByteArrayConverter"


class ShortConverter(_BytesBased):
    NAME = "ShortConverter"


class IntegerConverter(_BytesBased):
    NAME = "IntegerConverter"


class LongConverter(_BytesBased):
    NAME = "LongConverter"


class FloatConverter(_BytesBased):
    NAME = "FloatConverter"


class DoubleConverter(_BytesBased):
    NAME = "DoubleConverter"


class BooleanConverter(_BytesBased):
    NAME = "BooleanConverter"


class SimpleHeaderConverter(HeaderConverter):
    """Values of headers as texts; their types are inferred when they are read."""

    def from_connect_header(
        self, topic: str, key: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        text = to_text(value, schema)
        return None if text is None else text.encode()

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return SchemaAndValue(None, None)
        try:
            return parse_string(data.decode())
        except UnicodeDecodeError:
            return converter("ByteArrayConverter").from_bytes(data)
