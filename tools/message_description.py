"""Reads the message descriptions under `schemas/`.

The grammar, one item a line, nesting by two spaces of indentation:

    api NAME number=N versions=RANGE flexible=RANGE listeners=LIST [latest-unstable]
        [forwarded] [cluster-action]              followed by `request` and `response`
    request | response                            in an api file
    KIND NAME [type=N] versions=RANGE flexible=RANGE
                                                  KIND: header, data, metadata, remote-log,
                                                  FAMILY-key, FAMILY-value
      FIELD TYPE RANGE [ATTRIBUTE...]             the fields of a struct type follow it, deeper
      struct NAME RANGE                           a struct that several fields share

RANGE is `3`, `3-5`, `3+` or `none`. TYPE is a primitive, a struct's name, or one of them with `[]`
before it. Attributes: `nullable[=RANGE]`, `tag=N`, `tagged=RANGE` (without it: wherever the field
is), `flexible=RANGE` (overrides the message's), `default=VALUE`, `ignorable`, `key` (names the
element in its collection), `zerocopy`, `entity=WORD`. `#` starts a comment.

What always holds for a description that was read without DescriptionError: struct types are
defined once in their message, defaults fit their types, tags are unique in their struct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

OPEN_END = 32767
NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "float64")
PRIMITIVES = frozenset((*NUMBERS, "uuid", "string", "bytes", "records"))
LISTENERS = ("broker", "controller")
FAMILIES = ("group", "transaction", "share")
KINDS = ("header", "data", "metadata", "remote-log") + tuple(
    f"{family}-{part}" for family in FAMILIES for part in ("key", "value")
)


class DescriptionError(Exception):
    """A description that cannot be understood; says where."""


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions."""

    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high


@dataclass(slots=True)
class Field:
    name: str
    type: str
    versions: Versions
    nullable: Versions | None = None
    tag: int | None = None
    tagged: Versions | None = None
    # False: the field keeps the encoding of inflexible versions everywhere.
    follows_flexible: bool = True
    default: str | None = None
    ignorable: bool = False
    key: bool = False
    zerocopy: bool = False
    entity: str | None = None

    @property
    def element(self) -> str:
        return self.type.removeprefix("[]")

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def is_struct(self) -> bool:
        return self.element not in PRIMITIVES

    @property
    def attribute(self) -> str:
        return snake_case(self.name)


@dataclass(slots=True)
class Struct:
    name: str
    versions: Versions
    fields: list[Field] = field(default_factory=list)
    # Declared by a `struct` line, not below the field that uses it.
    shared: bool = False


@dataclass(slots=True)
class MessageDescription:
    name: str
    kind: str
    type: int | None
    versions: Versions
    flexible: Versions | None
    fields: list[Field] = field(default_factory=list)
    structs: dict[str, Struct] = field(default_factory=dict)


@dataclass(slots=True)
class ApiDescription:
    name: str
    number: int
    versions: Versions
    flexible: Versions | None
    listeners: tuple[str, ...]
    latest_unstable: bool
    forwarded: bool
    cluster_action: bool


@dataclass(slots=True)
class Description:
    """Everything under `schemas/`. `modules` maps a file's stem to its messages."""

    apis: list[ApiDescription] = field(default_factory=list)
    modules: dict[str, list[MessageDescription]] = field(default_factory=dict)

    def messages(self) -> Iterator[MessageDescription]:
        for messages in self.modules.values():
            yield from messages


def snake_case(name: str) -> str:
    """TransactionalId -> transactional_id, KRaftVersion -> kraft_version."""
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def parse_versions(text: str) -> Versions | None:
    match = re.fullmatch(r"(\d+)(\+|-(\d+))?", text)
    if text == "none":
        return None
    if match is None:
        raise DescriptionError(f"{text!r} is no range of versions: write 3, 3-5, 3+ or none")
    low = int(match[1])
    if match[2] == "+":
        return Versions(low, OPEN_END)
    return Versions(low, int(match[3] or low))


def load(directory: Path) -> Description:
    """Read all `*.schema` files under `directory`."""
    description = Description()
    for path in sorted(directory.rglob("*.schema")):
        if path.stem in description.modules:
            raise DescriptionError(f"{path}: there is another file of this name")
        try:
            _FileReader(description, path.stem).read(path.read_text(encoding="utf-8"))
        except DescriptionError as error:
            raise DescriptionError(f"{path}: {error}") from None
    description.apis.sort(key=lambda api: api.number)
    return description


class _FileReader:
    """Keeps the place where the next line's field belongs."""

    def __init__(self, description: Description, module: str) -> None:
        self._description = description
        self._messages = description.modules.setdefault(module, [])
        self._api: ApiDescription | None = None
        self._message: MessageDescription | None = None
        # The field lists open at each depth; the last is the deepest.
        self._open: list[list[Field]] = []

    def read(self, text: str) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            content = line.split("#", 1)[0].rstrip()
            if not content:
                continue
            try:
                self._read_line(content)
            except DescriptionError as error:
                raise DescriptionError(f"line {number}: {error}") from None
        for message in self._messages:
            _check(message)

    def _read_line(self, content: str) -> None:
        words = content.split()
        indent = len(content) - len(content.lstrip())
        if indent % 2:
            raise DescriptionError("indent by two spaces for each level")
        if indent == 0:
            self._read_head(words)
        elif self._message is None:
            raise DescriptionError("a field outside of any message")
        elif words[0] == "struct" and indent == 2:
            self._read_struct(self._message, words)
        else:
            self._read_field(self._message, words, depth=indent // 2)

    def _read_head(self, words: list[str]) -> None:
        kind, *rest = words
        if kind == "api":
            self._api = _parse_api(rest)
            self._description.apis.append(self._api)
            self._message = None
            return
        if kind in ("request", "response"):
            if self._api is None or rest:
                raise DescriptionError(f"`{kind}` stands alone on its line, after an `api` line")
            api = self._api
            name = api.name + kind.capitalize()
            message = MessageDescription(name, kind, api.number, api.versions, api.flexible)
        elif kind in KINDS:
            if not rest:
                raise DescriptionError(f"`{kind}` needs a name")
            values = _attributes(rest[1:], {"type", "versions", "flexible"}, set())
            type_number = int(values["type"]) if "type" in values else None
            versions = _required_versions(values, "versions")
            flexible = parse_versions(_required(values, "flexible"))
            message = MessageDescription(rest[0], kind, type_number, versions, flexible)
        else:
            raise DescriptionError(f"{kind!r} is none of api, request, response, {KINDS}")
        self._messages.append(message)
        self._message = message
        self._open = [message.fields]

    def _read_struct(self, message: MessageDescription, words: list[str]) -> None:
        if len(words) != 3:
            raise DescriptionError("write `struct NAME RANGE`")
        versions = parse_versions(words[2])
        if versions is None:
            raise DescriptionError("a struct exists in some version")
        struct = Struct(words[1], versions, shared=True)
        _add_struct(message, struct)
        # Its fields stand one level deeper than the message's own.
        self._open = [[], struct.fields]

    def _read_field(self, message: MessageDescription, words: list[str], depth: int) -> None:
        if depth > len(self._open):
            parent = self._open[-1][-1] if self._open[-1] else None
            if depth != len(self._open) + 1 or parent is None or not parent.is_struct:
                raise DescriptionError("deeper than its place: only a struct field has fields")
            struct = Struct(parent.element, parent.versions)
            _add_struct(message, struct)
            self._open.append(struct.fields)
        del self._open[depth:]
        self._open[-1].append(_parse_field(words))


def _add_struct(message: MessageDescription, struct: Struct) -> None:
    if struct.name in message.structs:
        raise DescriptionError(f"struct {struct.name} is defined twice in {message.name}")
    message.structs[struct.name] = struct


def _attributes(words: list[str], valued: set[str], flags: set[str]) -> dict[str, str]:
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if name in values:
            raise DescriptionError(f"{name} is given twice")
        if not ((equals and name in valued) or (not equals and name in flags)):
            raise DescriptionError(f"{word!r} is no attribute here: {sorted(valued | flags)}")
        values[name] = value
    return values


def _required(values: dict[str, str], name: str) -> str:
    if name not in values:
        raise DescriptionError(f"{name}= is missing")
    return values[name]


def _required_versions(values: dict[str, str], name: str) -> Versions:
    versions = parse_versions(_required(values, name))
    if versions is None or versions.high == OPEN_END:
        raise DescriptionError(f"{name} must be a closed range")
    return versions


def _parse_api(words: list[str]) -> ApiDescription:
    values = _attributes(
        words[1:],
        {"number", "versions", "flexible", "listeners"},
        {"latest-unstable", "forwarded", "cluster-action"},
    )
    listeners = tuple(_required(values, "listeners").split(","))
    if not set(listeners) <= set(LISTENERS):
        raise DescriptionError(f"listeners are of {LISTENERS}")
    return ApiDescription(
        name=words[0],
        number=int(_required(values, "number")),
        versions=_required_versions(values, "versions"),
        flexible=parse_versions(_required(values, "flexible")),
        listeners=listeners,
        latest_unstable="latest-unstable" in values,
        forwarded="forwarded" in values,
        cluster_action="cluster-action" in values,
    )


def _parse_field(words: list[str]) -> Field:
    if len(words) < 3:
        raise DescriptionError("write `FIELD TYPE RANGE [ATTRIBUTE...]`")
    name, type_name, versions_text = words[:3]
    versions = parse_versions(versions_text)
    if versions is None:
        raise DescriptionError(f"{name} exists in no version")
    values = _attributes(
        words[3:],
        {"nullable", "tag", "tagged", "flexible", "default", "entity"},
        {"nullable", "ignorable", "key", "zerocopy"},
    )
    tag = int(values["tag"]) if "tag" in values else None
    nullable = parse_versions(values["nullable"] or versions_text) if "nullable" in values else None
    tagged = parse_versions(values.get("tagged", versions_text)) if tag is not None else None
    if values.get("flexible", "none") != "none" or ("flexible" in values and type_name != "string"):
        raise DescriptionError("flexible=none on a string is the only override there is")
    return Field(
        name=name,
        type=type_name,
        versions=versions,
        nullable=nullable,
        tag=tag,
        tagged=tagged,
        follows_flexible="flexible" not in values,
        default=values.get("default"),
        ignorable="ignorable" in values,
        key="key" in values,
        zerocopy="zerocopy" in values,
        entity=values.get("entity"),
    )


def default_of(described: Field) -> object:
    """The default as a Python value; () for the empty array, default struct and zero uuid."""
    text, kind = described.default, described.type
    if text == "null":
        return None
    if described.is_array or described.is_struct or kind == "uuid":
        return ()
    if kind == "records" and described.nullable is not None:
        return None
    if kind in ("bytes", "records"):
        return b""
    if kind == "string":
        return "" if text is None else text.strip('"')
    if kind == "bool":
        return {None: False, "false": False, "true": True}[text]
    if kind == "float64":
        return float(text or 0)
    return int(text or "0", 0)


def _check(message: MessageDescription) -> None:
    own = Struct(message.name, message.versions, message.fields)
    for struct in (own, *message.structs.values()):
        where = f"{message.name}.{struct.name}"
        tags = [f.tag for f in struct.fields if f.tag is not None]
        names = [f.attribute for f in struct.fields]
        if len(set(tags)) != len(tags) or len(set(names)) != len(names):
            raise DescriptionError(f"{where}: a tag or name is used twice")
        for described in struct.fields:
            if described.is_struct and described.element not in message.structs:
                raise DescriptionError(f"{where}.{described.name}: no type {described.element}")
            try:
                default = default_of(described)
            except (KeyError, ValueError) as error:
                raise DescriptionError(f"{where}.{described.name}: bad default") from error
            if default is None and described.nullable is None:
                raise DescriptionError(f"{where}.{described.name}: null, but is not nullable")
