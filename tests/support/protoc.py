"""The real protoc, as grpcio-tools brings it: descriptors to compare with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

INCLUDED = Path(grpc_tools.__file__).parent / "_proto"


def compile_file(name: str, folder: Path, out: Path) -> dict[str, Any]:
    """The descriptors of a file and of all it imports, by name."""
    path = out / "descriptors"
    arguments = [f"-I{folder}", f"-I{INCLUDED}", "--include_imports", "--retain_options"]
    status = protoc.main(["protoc", *arguments, f"--descriptor_set_out={path}", name])
    assert status == 0, f"protoc refused {name}"
    files = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes()).file
    return {file.name: file for file in files}


@cache
def installed_files() -> list[tuple[Path, str]]:
    """The `.proto` files of installed packages: the folder they are found from, and the name."""
    packages = INCLUDED.parents[1]
    found = [(INCLUDED, path) for path in INCLUDED.rglob("*.proto")]
    found += [
        (packages, path) for path in packages.rglob("*.proto") if not path.is_relative_to(INCLUDED)
    ]
    return sorted((folder, str(path.relative_to(folder))) for folder, path in found)


def comparable(proto: Any) -> Any:
    """A descriptor without what no text says: empty options, which braces alone make."""
    copy = type(proto)()
    copy.CopyFrom(proto)
    _drop_empty_options(copy)
    copy.ClearField("name")
    return copy


def _drop_empty_options(message: Any) -> None:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            continue
        for each in value if field.is_repeated else [value]:
            _drop_empty_options(each)
        if field.name == "options" and not value.SerializeToString():
            message.ClearField("options")
