"""Protobuf as a language of schemas, without protoc.

`ProtobufLanguage` reads texts; a `ProtobufSchema` is printed, compared and compiled to descriptors.
"""

from moldau.data.protobuf.differences import Difference, DifferenceType
from moldau.data.protobuf.indexes import MessageIndexError, decode_path, encode_path
from moldau.data.protobuf.schema import SCHEMA_TYPE, ProtobufLanguage, ProtobufSchema

__all__ = [
    "SCHEMA_TYPE",
    "Difference",
    "DifferenceType",
    "MessageIndexError",
    "ProtobufLanguage",
    "ProtobufSchema",
    "decode_path",
    "encode_path",
]
