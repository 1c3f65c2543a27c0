"""Makes the functions that read and write one message in one version, from its field table.

They are the same functions as those in `messages/ready`, whose source comes from here as well.
"""

from __future__ import annotations

from typing import Any

from moldau.wire import codec_functions
from moldau.wire.codec_functions import Decoder, Encoder
from moldau.wire.codec_source import FunctionSource
from moldau.wire.message import Message
from moldau.wire.reader_source import reader_source
from moldau.wire.writer_source import writer_source

__all__ = ["make_decoder", "make_encoder"]


def make_encoder(cls: type[Message], version: int) -> Encoder:
    source = writer_source(cls, version)
    encoder: Encoder = _made(source, f"<encoder of {cls.__name__} v{version}>")["encode"]
    return encoder


def make_decoder(cls: type[Message], version: int) -> Decoder:
    source = reader_source(cls, version)
    decoder: Decoder = _made(source, f"<decoder of {cls.__name__} v{version}>")["decode"]
    return decoder


def _made(source: FunctionSource, name: str) -> dict[str, Any]:
    methods = "".join(f"{name} = {made_by}\n" for name, made_by in source.methods.items())
    names = {name: getattr(codec_functions, name) for name in codec_functions.__all__}
    namespace: dict[str, Any] = {**names, **source.classes}
    exec(compile(methods + source.text, name, "exec"), namespace)
    return namespace
