"""Connect's schemas and values as Protobuf, and back."""

from moldau.data.protobuf.connect.data import ProtobufData
from moldau.data.protobuf.connect.options import ProtobufDataOptions

__all__ = ["ProtobufData", "ProtobufDataOptions"]
