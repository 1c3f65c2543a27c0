"""Writes the message classes in `src/moldau/wire/messages` from the descriptions in `schemas`.

    python tools/generate_messages.py            write what changed
    python tools/generate_messages.py --check    write nothing, fail if anything would change

One module for each description file, plain classes without decorators (importing a message costs
well under a millisecond), and a package whose names are loaded on first use.
"""

from __future__ import annotations

import sys
from pathlib import Path

from message_description import (
    OPEN_END,
    ApiDescription,
    Description,
    DescriptionError,
    Field,
    MessageDescription,
    Struct,
    default_of,
    load,
    snake_case,
)

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"
TARGET = ROOT / "src" / "moldau" / "wire" / "messages"

HINTS = {
    "bool": "bool",
    "float64": "float",
    "uuid": "UUID",
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
}
GENERATED = "Made from schemas/ by tools/generate_messages.py; edit the description instead."


def hint(message: MessageDescription, described: Field) -> str:
    if described.is_struct:
        element = f"{message.name}.{described.element}"
    else:
        element = HINTS.get(described.element, "int")
    whole = f"list[{element}]" if described.is_array else element
    nullable = described.nullable is not None or default_of(described) is None
    return f"{whole} | None" if nullable else whole


def field_spec(described: Field) -> str:
    nullable = described.nullable and (described.nullable.low, described.nullable.high)
    tag = None
    if described.tagged is not None:
        tag = (described.tag, described.tagged.low, described.tagged.high)
    return repr(
        (
            described.attribute,
            described.type if described.follows_flexible else "inflexible-string",
            described.versions.low,
            described.versions.high,
            nullable,
            tag,
            default_of(described),
            described.ignorable,
        )
    )


def class_lines(message: MessageDescription, struct: Struct, heading: list[str]) -> list[str]:
    """The class of a struct (or of the message itself), without indentation."""
    fields = struct.fields
    lines = [f"class {struct.name}(Message):", *(f"    {line}".rstrip() for line in heading)]
    slots = "".join(f'"{f.attribute}", ' for f in fields)
    lines.append(f"    __slots__ = ({slots.rstrip()})" if fields else "    __slots__ = ()")
    lines.append("    FIELDS = (")
    lines += [f"        {field_spec(f)}," for f in fields]
    lines += ["    )", ""]
    if not fields:
        lines.append("    def __init__(self) -> None:")
    else:
        lines += ["    def __init__(", "        self,", "        *,"]
        for f in fields:
            default = default_of(f)
            # A uuid is immutable, so that its default can be shared.
            text = "ZERO_UUID" if f.type == "uuid" else "UNSET" if default == () else repr(default)
            lines.append(f"        {f.attribute}: {hint(message, f)} = {text},")
        lines.append("    ) -> None:")
    for f in fields:
        name = f.attribute
        if default_of(f) == () and f.type != "uuid":
            fresh = "[]" if f.is_array else f"{message.name}.{f.element}()"
            lines.append(f"        self.{name} = {fresh} if {name} is UNSET else {name}")
        else:
            lines.append(f"        self.{name} = {name}")
    lines.append("        self.unknown_tagged_fields = None")
    return lines


def message_lines(message: MessageDescription) -> list[str]:
    flexible = message.flexible.low if message.flexible else OPEN_END
    versions = message.versions
    span = f"{versions.low}-{versions.high}" if versions.low != versions.high else versions.low
    heading = [
        f'"""{message.kind}, versions {span}."""',
        "",
        f'KIND = "{message.kind}"',
        f"TYPE = {message.type}",
        f"LOWEST_VERSION = {versions.low}",
        f"HIGHEST_VERSION = {versions.high}",
        f"FLEXIBLE_FROM = {flexible}",
    ]
    own = Struct(message.name, versions, message.fields)
    lines = ["", "", *class_lines(message, own, heading)]
    for struct in message.structs.values():
        nested = class_lines(message, struct, [])
        lines += ["", *(f"    {line}" if line else "" for line in nested)]
    return lines


def module_text(messages: list[MessageDescription]) -> str:
    body = [line for message in messages for line in message_lines(message)]
    text = "\n".join(body)
    imports = []
    if "UUID" in text:
        imports += ["from uuid import UUID", ""]
    names = "UNSET, Message" if "UNSET" in text else "Message"
    imports.append(f"from moldau.wire.message import {names}")
    if "ZERO_UUID" in text:
        imports.append("from moldau.wire.uuids import ZERO_UUID")
    head = [f'"""{GENERATED}"""', "", "from __future__ import annotations", "", *imports]
    return "\n".join([*head, text]) + "\n"


def package_text(description: Description) -> str:
    lines = [
        f'"""Every message by its name, loaded on first use. {GENERATED}"""',
        "",
        "from __future__ import annotations",
        "",
        "from importlib import import_module",
        "",
        "from moldau.wire.message import Message",
        "",
        "# The module that holds each message.",
        "MODULES = {",
    ]
    for module, messages in description.modules.items():
        lines += [f'    "{message.name}": "{module}",' for message in messages]
    lines += [
        "}",
        "",
        '__all__ = ["Message", *MODULES]',
        "",
        "",
        "def __getattr__(name: str) -> object:",
        "    module = MODULES.get(name)",
        "    if module is None:",
        '        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")',
        '    value = getattr(import_module(f"{__name__}.{module}"), name)',
        "    globals()[name] = value",
        "    return value",
    ]
    return "\n".join(lines) + "\n"


def stub_text(description: Description) -> str:
    lines = [f"# {GENERATED}", "", "from moldau.wire.message import Message as Message"]
    for module, messages in description.modules.items():
        for message in messages:
            name = message.name
            lines.append(f"from moldau.wire.messages.{module} import {name} as {name}")
    lines += ["", "MODULES: dict[str, str]"]
    return "\n".join(lines) + "\n"


def api_row(api: ApiDescription) -> str:
    values = (
        api.number,
        api.name,
        api.versions.low,
        api.versions.high,
        api.flexible.low if api.flexible else OPEN_END,
        api.listeners,
        api.latest_unstable,
        api.forwarded,
        api.cluster_action,
    )
    return f"    {values!r},"


def tables_text(description: Description) -> str:
    """The API keys, and which message is meant by a record's type number."""
    lines = [
        f'"""API keys and record types. {GENERATED}"""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "",
        "",
        "class ApiKey(IntEnum):",
        '    """The APIs by the names of Kafka\'s own enumeration."""',
        "",
        *(f"    {snake_case(api.name).upper()} = {api.number}" for api in description.apis),
        "",
        "",
        "# number, name, first version, last version, first flexible version, listeners,",
        "# latest version unstable, forwarded to the controller, needs ClusterAction.",
        "APIS = (",
        *(api_row(api) for api in description.apis),
        ")",
        "",
        "# For each kind of record: type number to message name.",
        "RECORD_TYPES: dict[str, dict[int, str]] = {",
    ]
    kinds: dict[str, dict[int, str]] = {}
    for message in description.messages():
        if message.type is not None and message.kind not in ("request", "response"):
            names = kinds.setdefault(message.kind, {})
            if names.setdefault(message.type, message.name) != message.name:
                raise DescriptionError(f"{message.kind} type {message.type} is used twice")
    for kind, names in sorted(kinds.items()):
        lines.append(f'    "{kind}": {{')
        lines += [f'        {number}: "{names[number]}",' for number in sorted(names)]
        lines.append("    },")
    lines.append("}")
    return "\n".join(lines) + "\n"


def generate(description: Description) -> dict[str, str]:
    """File name to text of everything under TARGET."""
    files = {f"{name}.py": module_text(messages) for name, messages in description.modules.items()}
    files["__init__.py"] = package_text(description)
    files["__init__.pyi"] = stub_text(description)
    files["tables.py"] = tables_text(description)
    return files


def stale_files(files: dict[str, str], target: Path) -> list[str]:
    """Names of files that are missing, differ, or should not be there."""
    present = {path.name for path in target.glob("*.py*") if path.is_file()}
    wrong = present - files.keys()
    for name, text in files.items():
        if name not in present or (target / name).read_text(encoding="utf-8") != text:
            wrong.add(name)
    return sorted(wrong)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.stderr.write(__doc__ or "")
        return 2
    files = generate(load(SCHEMAS))
    stale = stale_files(files, TARGET)
    if arguments == ["--check"]:
        for name in stale:
            sys.stderr.write(f"stale: {TARGET / name}; run python tools/generate_messages.py\n")
        return 1 if stale else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in files:
            (TARGET / name).write_text(files[name], encoding="utf-8")
        else:
            (TARGET / name).unlink()
    sys.stdout.write(f"{len(stale)} of {len(files)} files written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
