"""`moldau schemas`: looks at, changes and checks the schemas of a registry."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json, parse_properties
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import ToolError
from moldau.cli.support.tables import Table, aligned, print_json

if TYPE_CHECKING:
    from moldau.serde import RegisteredSchema, Schema, SchemaRegistryClient

__all__ = ["add_arguments", "run"]

DEFAULT_REGISTRY: Final = "http://127.0.0.1:8081"
ENVIRONMENT: Final = "MOLDAU_SCHEMA_REGISTRY"
_TYPES: Final = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}

_EXAMPLES = """\
examples:
  moldau schemas list
  moldau schemas show orders-value
  moldau schemas diff orders-value 1 2
  moldau schemas check orders-value order.avsc
  moldau schemas register orders-value order.avsc
  moldau schemas generate order.avsc --output order.py
  moldau schemas cat orders.avro
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    listing = commands.add("list", "list subjects with their latest versions")
    listing.add_argument("prefix", nargs="?", metavar="PREFIX", help="only subjects that start so")
    listing.add_argument("--deleted", action="store_true", help="also those that are deleted")
    show = commands.add("show", "print a schema")
    show.add_argument("subject", nargs="?", metavar="SUBJECT", help="subject (or use --id)")
    show.add_argument("--version", default="latest", metavar="N", help="version (default: latest)")
    show.add_argument("--id", type=int, metavar="N", help="a schema by its id")
    diff = commands.add("diff", "compare two versions of a subject")
    diff.add_argument("subject", metavar="SUBJECT", help="subject")
    diff.add_argument("old", nargs="?", type=int, metavar="OLD", help="default: the last but one")
    diff.add_argument("new", nargs="?", type=int, metavar="NEW", help="default: the latest")
    register = commands.add("register", "register the schema of a file")
    check = commands.add("check", "check whether the schema of a file is compatible")
    for each in (register, check):
        each.add_argument("subject", metavar="SUBJECT", help="subject")
        each.add_argument("file", metavar="FILE", help=".avsc, .json or .proto; - for stdin")
        each.add_argument(
            "--type", choices=sorted(_TYPES.values()), help="type (default: by the file's name)"
        )
        each.add_argument(
            "--reference",
            action="append",
            default=[],
            metavar="NAME=SUBJECT:VERSION",
            help="a schema that the file refers to; may be repeated",
        )
    register.add_argument("--normalize", action="store_true", help="register the normalized form")
    register.add_argument("--metadata", metavar="FILE", help="JSON file with the metadata")
    register.add_argument("--rules", metavar="FILE", help="JSON file with the rule set")
    check.add_argument("--version", default="latest", metavar="N", help="compare with this version")
    delete = commands.add("delete", "delete a subject or a version of it")
    delete.add_argument("subject", metavar="SUBJECT", help="subject")
    delete.add_argument("--version", type=int, metavar="N", help="only this version")
    delete.add_argument(
        "--permanent", action="store_true", help="for good; it must be deleted softly before"
    )
    generate = commands.add("generate", "print Python dataclasses for Avro schemas")
    generate.add_argument("files", nargs="+", metavar="FILE", help=".avsc file; - for stdin")
    generate.add_argument("--output", metavar="FILE", help="write to this file")
    cat = commands.add("cat", "print the records of an Avro container file as JSON")
    cat.add_argument("file", metavar="FILE", help=".avro file")
    cat.add_argument("--schema", action="store_true", help="print the file's schema instead")
    for each in (listing, show):
        add_json(each)
    for each in (listing, show, diff, register, check, delete):
        each.add_argument(
            "--registry",
            metavar="URL",
            help=f"address of the registry (default: {ENVIRONMENT}, or {DEFAULT_REGISTRY})",
        )
        each.add_argument(
            "--command-config", metavar="FILE", help="properties file, for TLS and credentials"
        )
        each.add_argument(
            "--command-property",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="setting of the registry's client; may be repeated",
        )


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "generate":
        return _generate(arguments)
    if arguments.command == "cat":
        return _cat(arguments)
    from moldau.client.errors import KafkaError
    from moldau.serde import SchemaRegistryClient

    try:
        with SchemaRegistryClient(config=_settings(arguments)) as registry:
            return int(_COMMANDS[arguments.command](registry, arguments))
    except KafkaError as error:
        raise ToolError(str(error)) from None


def _settings(arguments: argparse.Namespace) -> dict[str, str]:
    settings = {"schema.registry.url": os.environ.get(ENVIRONMENT) or DEFAULT_REGISTRY}
    if arguments.command_config:
        settings.update(read_config_file(arguments.command_config))
    settings.update(parse_properties("--command-property", arguments.command_property))
    if arguments.registry:
        settings["schema.registry.url"] = arguments.registry
    return settings


def _list(registry: SchemaRegistryClient, arguments: argparse.Namespace) -> int:
    subjects = registry.subjects(prefix=arguments.prefix, deleted=arguments.deleted)
    found: list[dict[str, Any]] = []
    for subject in subjects:
        versions = registry.versions(subject, deleted=arguments.deleted)
        last = registry.version(subject, versions[-1])
        found.append(
            {
                "subject": subject,
                "versions": versions,
                "type": last.schema.schema_type,
                "id": last.id,
            }
        )
    if arguments.json:
        print_json(found)
        return 0
    table = Table("SUBJECT", "VERSIONS", "TYPE", "ID", plain=aligned)
    for each in found:
        table.add(each["subject"], _ranges(each["versions"]), each["type"], each["id"])
    table.show()
    return 0


def _ranges(versions: list[int]) -> str:
    """1-3,5"""
    shown: list[list[int]] = []
    for each in versions:
        if shown and shown[-1][1] == each - 1:
            shown[-1][1] = each
        else:
            shown.append([each, each])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in shown)


def _show(registry: SchemaRegistryClient, arguments: argparse.Namespace) -> int:
    if arguments.id is not None:
        found = registry.schema_by_id(arguments.id)
    elif arguments.subject is None:
        raise ToolError("say which schema: a SUBJECT, or --id N")
    elif arguments.version == "latest":
        found = registry.latest(arguments.subject)
    else:
        found = registry.version(arguments.subject, _version(arguments.version), deleted=False)
    if arguments.json:
        print_json(
            {
                "subject": found.subject,
                "version": found.version,
                "id": found.id,
                "guid": found.guid,
                "schemaType": found.schema.schema_type,
                **found.schema.to_json(),
            }
        )
        return 0
    print(_pretty(found.schema))
    return 0


def _diff(registry: SchemaRegistryClient, arguments: argparse.Namespace) -> int:
    subject: str = arguments.subject
    old, new = arguments.old, arguments.new
    if new is None:
        new = registry.latest(subject).version
    if old is None:
        before = [each for each in registry.versions(subject) if each < (new or 0)]
        if not before:
            raise ToolError(f"{subject} has one version only: there is nothing to compare it with")
        old = before[-1]
    first = registry.version(subject, old, deleted=False)
    second = registry.version(subject, int(new or 0), deleted=False)
    lines = difflib.unified_diff(
        _pretty(first.schema).splitlines(),
        _pretty(second.schema).splitlines(),
        _titled(subject, first),
        _titled(subject, second),
        lineterm="",
    )
    for line in lines:
        print(line)
    for title, reader, writer in (
        ("readers of the new version cannot read old data", second, first),
        ("readers of the old version cannot read new data", first, second),
    ):
        for problem in _problems(registry, reader.schema, writer.schema):
            print(f"{title}: {problem}")
    return 0


def _titled(subject: str, found: RegisteredSchema) -> str:
    return f"{subject} version {found.version} (id {found.id})"


def _problems(registry: SchemaRegistryClient, reader: Schema, writer: Schema) -> list[str]:
    from moldau.serde.languages import parse_schema

    parsed = parse_schema(reader, registry), parse_schema(writer, registry)
    return parsed[0].incompatibilities(parsed[1])


def _register(registry: SchemaRegistryClient, arguments: argparse.Namespace) -> int:
    schema = _schema(arguments)
    found = registry.register_full(arguments.subject, schema, normalize=arguments.normalize)
    version = found.version
    if version is None:
        version = registry.lookup(arguments.subject, schema).version
    print(f"{arguments.subject} version {version} has id {found.id}")
    return 0


def _check(registry: SchemaRegistryClient, arguments: argparse.Namespace) -> int:
    version = arguments.version
    problems = registry.compatibility_problems(
        arguments.subject, _schema(arguments), version=version
    )
    if not problems:
        print(f"{arguments.file} is compatible with {arguments.subject}")
        return 0
    for problem in problems:
        print(problem)
    raise ToolError(f"{arguments.file} is not compatible with {arguments.subject}")


def _delete(registry: SchemaRegistryClient, arguments: argparse.Namespace) -> int:
    if arguments.version is not None:
        deleted = [
            registry.delete_version(
                arguments.subject, arguments.version, permanent=arguments.permanent
            )
        ]
    else:
        deleted = registry.delete_subject(arguments.subject, permanent=arguments.permanent)
    kind = "for good" if arguments.permanent else "softly"
    print(f"deleted {arguments.subject} version {_ranges(deleted)} {kind}")
    return 0


_COMMANDS: Final[dict[str, Any]] = {
    "list": _list,
    "show": _show,
    "diff": _diff,
    "register": _register,
    "check": _check,
    "delete": _delete,
}


def _schema(arguments: argparse.Namespace) -> Schema:
    from moldau.serde import Schema, SchemaReference

    kind = arguments.type or _TYPES.get(Path(arguments.file).suffix, "AVRO")
    references = []
    for each in arguments.reference:
        name, _, place = each.partition("=")
        subject, _, version = place.rpartition(":")
        if not subject:
            raise ToolError(f"--reference {each}: use NAME=SUBJECT:VERSION")
        references.append(SchemaReference(name, subject, _version(version)))
    metadata = getattr(arguments, "metadata", None)
    rules = getattr(arguments, "rules", None)
    return Schema(
        _read(arguments.file),
        kind,
        tuple(references),
        None if metadata is None else _json(metadata),
        None if rules is None else _json(rules),
    )


def _generate(arguments: argparse.Namespace) -> int:
    from moldau.data.avro.dataclass_source import dataclass_source
    from moldau.data.avro.language import AvroLanguage
    from moldau.data.errors import DataError
    from moldau.data.schema_language import SchemaError

    roots = []
    for path in arguments.files:
        try:
            roots.append(AvroLanguage().parse(_read(path)).root)
        except SchemaError as error:
            raise ToolError(f"{path}: {error}") from None
    try:
        source = dataclass_source(roots)
    except DataError as error:
        raise ToolError(str(error)) from None
    if arguments.output:
        Path(arguments.output).write_text(source)
    else:
        print(source, end="")
    return 0


def _cat(arguments: argparse.Namespace) -> int:
    from moldau.data.errors import DataError

    try:
        with Path(arguments.file).open("rb") as file:
            for line in _lines_of(file, schema_only=arguments.schema):
                print(line)
    except (OSError, DataError) as error:
        raise ToolError(f"{arguments.file}: {error}") from None
    return 0


def _lines_of(file: Any, *, schema_only: bool) -> Iterator[str]:
    from moldau.data import json_text
    from moldau.data.avro.json_values import to_json
    from moldau.serde.avro_files import AvroFile

    found = AvroFile(file, logical_types=False, named_branches=True)
    if schema_only:
        yield found.schema.canonical_text
        return
    convert = to_json(found.schema.root)
    for record in found:
        yield json_text.compact(convert(record))


def _pretty(schema: Schema) -> str:
    if schema.schema_type == "PROTOBUF":
        return schema.text.strip()
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except ValueError:
        return schema.text


def _version(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ToolError(f"version {text} is not a number")
    return int(text)


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read {path}: {error}") from None


def _json(path: str) -> Any:
    try:
        return json.loads(_read(path))
    except ValueError as error:
        raise ToolError(f"{path} is not JSON: {error}") from None
