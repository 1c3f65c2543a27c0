"""What goes wrong with typed data."""

from __future__ import annotations


class DataError(ValueError):
    """A value or schema that cannot be used as asked; Kafka Connect's DataException."""


class SchemaBuilderError(DataError):
    """A schema that makes no sense in itself, such as two fields of one name."""


class SchemaProjectorError(DataError):
    """A value that cannot be read with another version of its schema."""


class OptionError(ValueError):
    """A setting of a conversion that has no meaning; Kafka's ConfigException."""
