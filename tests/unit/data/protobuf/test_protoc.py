"""Descriptors are those that the real protoc makes of the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from moldau.data.protobuf import ProtobufLanguage, ProtobufSchema
from moldau.data.schema_language import ResolvedReference
from support import protoc
from support.proto_corpus import TEXTS

LANGUAGE = ProtobufLanguage()


def schema_of(name: str, folder: Path, compiled: dict[str, Any]) -> ProtobufSchema:
    def text(path: str) -> str:
        file = folder / path
        return (file if file.exists() else protoc.INCLUDED / path).read_text()

    references = [ResolvedReference(path, text(path)) for path in compiled if path != name]
    return LANGUAGE.parse(text(name), references)


def readable(proto: Any, all_files: list[Any]) -> Any:
    """The descriptor with its custom options as values, so that their order does not count."""
    pool = descriptor_pool.DescriptorPool()
    names = {file.name for file in all_files}
    if "google/protobuf/descriptor.proto" not in names:
        pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    for file in all_files:
        pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto")
    made = message_factory.GetMessageClass(found)
    return protoc.comparable(made.FromString(proto.SerializeToString()))


def check(name: str, folder: Path, out: Path) -> None:
    compiled = protoc.compile_file(name, folder, out)
    files = list(compiled.values())
    expected = readable(compiled[name], files)
    schema = schema_of(name, folder, compiled)
    assert str(readable(schema.compiled.proto, files)) == str(expected)
    # The canonical text says the same in another order: of imports, of messages and enums.
    again = LANGUAGE.parse(
        schema.canonical_text,
        [ResolvedReference(path, (folder / path).read_text()) for path in compiled
         if path != name and (folder / path).exists()],
    )  # fmt: skip
    assert again.canonical_text == schema.canonical_text
    assert lines(readable(again.compiled.proto, files)) == lines(expected)


def lines(proto: Any) -> list[str]:
    for numbers_of_imports in ("public_dependency", "weak_dependency"):
        proto.ClearField(numbers_of_imports)
    return sorted(str(proto).splitlines())


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_of_the_corpus(name: str, corpus: Path, tmp_path: Path) -> None:
    check(name, corpus, tmp_path)


@pytest.mark.parametrize(
    ("folder", "name"), [pytest.param(*each, id=each[1]) for each in protoc.installed_files()]
)
def test_an_installed_file(folder: Path, name: str, tmp_path: Path) -> None:
    check(name, folder, tmp_path)


@pytest.mark.parametrize("name", TEXTS)
def test_the_serialized_form_is_read_back(name: str, corpus: Path, tmp_path: Path) -> None:
    schema = schema_of(name, corpus, protoc.compile_file(name, corpus, tmp_path))
    references = [
        ResolvedReference(path, text) for path, text in TEXTS.items() if path in schema.references
    ]
    again = LANGUAGE.parse(schema.formatted("serialized"), references)
    assert again.name == schema.name
    assert again.differences(schema) == []
    # Custom options are known only to those who have the file that defines them, a descriptor
    # has rounded numbers, and a feature that is set alone is a message there.
    if name not in ("options.proto", "extending.proto", "defaults.proto", "editions.proto"):
        assert again.normalized().canonical_text == schema.normalized().canonical_text
