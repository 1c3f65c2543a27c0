"""Finds what a `$ref` names: in its own document, in one of the references, in a meta-schema.

Nothing is fetched: an address that none of these has is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

from moldau.data.json_schema.drafts import Draft, draft_named
from moldau.data.json_schema.text import read_json
from moldau.data.schema_language import ResolvedReference, SchemaError

_ANCHORS = ("$anchor", "$dynamicAnchor")
_VALUES = ("enum", "const", "default", "examples")
#: The keyword of the definitions by draft; a reference to the later one finds the earlier one too.
_DEFINITIONS = {"$defs": "definitions"}


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A text, with the address under which others know it and the draft it is read as."""

    address: str
    root: Any
    draft: Draft

    @property
    def place(self) -> Place:
        return Place(self, "#", self.root, _base_in(self.root, self.draft, self.address))


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A value in a document; `base` is the address that a relative reference there starts from."""

    document: Document
    pointer: str
    value: Any
    base: str

    def child(self, key: str | int) -> Place:
        value = self.value[key]
        token = str(key).replace("~", "~0").replace("/", "~1")
        base = _base_in(value, self.document.draft, self.base)
        return Place(self.document, f"{self.pointer}/{token}", value, base)

    @property
    def name(self) -> str:
        """For messages."""
        return self.document.address + self.pointer if self.document.address else self.pointer


class Documents:
    """A schema's text and everything that it may refer to."""

    def __init__(self, root: Any, references: Sequence[ResolvedReference], draft: Draft) -> None:
        self._draft = draft
        self.main = Document("", root, draft)
        self._by_address: dict[str, Document] = {}
        self._places_by_id: dict[str, Place] | None = None
        base = self.main.place.base
        for reference in references:
            self._add(reference, base)

    def _add(self, reference: ResolvedReference, base: str) -> None:
        try:
            root = read_json(reference.text)
        except SchemaError as error:
            raise SchemaError(f"The reference {reference.name!r}: {error}") from None
        named = draft_named(root.get("$schema")) if isinstance(root, dict) else None
        draft = self._draft
        if named is not None and not named.is_modern and not draft.is_modern:
            draft = named
        document = Document(reference.name, root, draft)
        self._by_address.setdefault(reference.name, document)
        self._by_address.setdefault(_joined(base, reference.name), document)
        self._by_address.setdefault("./" + reference.name, document)

    def resolve(self, ref: str, place: Place) -> Place:
        """What a `$ref` at a place names."""
        address = _joined(place.base, ref)
        document, _, fragment = address.partition("#")
        if ref.startswith("#/") or ref == "#":
            return self._within(self._resource_of(place), fragment, ref, place)
        found = self._by_id(address)
        if found is not None:
            return found
        if ref.startswith("#"):
            raise _unresolved(ref, place, "no schema has that anchor or id")
        named = self._by_address.get(address) or self._by_address.get(ref)
        if named is not None:
            return named.place
        start = self._resource_at(ref.partition("#")[0], document)
        if start is None:
            raise _unresolved(
                ref,
                place,
                "it is in none of the references, and nothing is fetched from other servers: "
                "register that schema and list it in the references of this one",
            )
        return self._within(start, fragment, ref, place)

    def _resource_of(self, place: Place) -> Place:
        """What the pointers in a place's references start from."""
        root = place.document.place
        if not place.document.draft.is_modern or place.base == root.base:
            return root
        return self._by_id(place.base) or root

    def _resource_at(self, written: str, address: str) -> Place | None:
        named = self._by_address.get(written) or self._by_address.get(address)
        if named is not None:
            return named.place
        found = self._by_id(address)
        if found is not None:
            return found
        meta_schema = _meta_schema(address, self._draft)
        if meta_schema is None:
            return None
        self._by_address[address] = meta_schema
        if self._places_by_id is not None:
            self._collect(meta_schema, self._places_by_id)
        return meta_schema.place

    def _within(self, start: Place, fragment: str, ref: str, place: Place) -> Place:
        if not fragment:
            return start
        if not fragment.startswith("/"):
            anchor = self._by_id(f"{start.base.partition('#')[0]}#{fragment}")
            if anchor is None:
                raise _unresolved(ref, place, "no schema there has that anchor or id")
            return anchor
        found: Place | None = start
        for position, token in enumerate(fragment[1:].split("/")):
            key = unquote(token).replace("~1", "/").replace("~0", "~")
            tokens_left = fragment[1:].split("/")[position + 1 :]
            found = _step(found, key, tokens_left) if found is not None else None
        if found is None:
            raise _unresolved(ref, place, f"{start.name} has nothing there")
        return found

    def _by_id(self, address: str) -> Place | None:
        if self._places_by_id is None:
            self._places_by_id = {}
            for document in (self.main, *dict.fromkeys(self._by_address.values())):
                self._collect(document, self._places_by_id)
        return self._places_by_id.get(address.removesuffix("#"))

    def _collect(self, document: Document, places: dict[str, Place]) -> None:
        for place in _objects(document):
            if isinstance(place.value.get(document.draft.id_keyword), str):
                places.setdefault(place.base.removesuffix("#"), place)
            if document.draft.is_modern:
                for keyword in _ANCHORS:
                    anchor = place.value.get(keyword)
                    if isinstance(anchor, str):
                        places.setdefault(f"{place.base.partition('#')[0]}#{anchor}", place)


def _step(place: Place, key: str, left: list[str]) -> Place | None:
    value = place.value
    if isinstance(value, list):
        return place.child(int(key)) if key.isdecimal() and int(key) < len(value) else None
    if not isinstance(value, dict):
        return None
    other = _DEFINITIONS.get(key)
    if other is not None and place.pointer == "#" and left:
        name = unquote(left[0]).replace("~1", "/").replace("~0", "~")
        here, there = value.get(key), value.get(other)
        if not (isinstance(here, dict) and name in here) and isinstance(there, dict):
            key = other
    return place.child(key) if key in value else None


def _objects(document: Document) -> Iterator[Place]:
    """Every object of a document that may be a schema."""
    waiting = [document.place]
    while waiting:
        place = waiting.pop()
        if isinstance(place.value, dict):
            yield place
            waiting += [
                place.child(key)
                for key, value in place.value.items()
                if key not in _VALUES and isinstance(value, dict | list)
            ]
        elif isinstance(place.value, list):
            waiting += [
                place.child(index)
                for index, value in enumerate(place.value)
                if isinstance(value, dict | list)
            ]


def _base_in(value: Any, draft: Draft, base: str) -> str:
    own = value.get(draft.id_keyword) if isinstance(value, dict) else None
    return _joined(base, own) if isinstance(own, str) else base


def _joined(base: str, ref: str) -> str:
    if ref.startswith("#"):
        return base.partition("#")[0] + ref
    try:
        return urljoin(base, ref)
    except ValueError as error:
        raise SchemaError(f"The address {ref!r} cannot be read: {error}") from None


def _meta_schema(address: str, draft: Draft) -> Document | None:
    # Imported on the first reference to a meta-schema: the package reads all of them from files.
    from jsonschema_specifications import REGISTRY

    named = draft_named(address)
    known = named.value if named is not None else address
    try:
        contents = REGISTRY.contents(known)
    except LookupError:
        return None
    return Document(known, contents, draft)


def _unresolved(ref: str, place: Place, why: str) -> SchemaError:
    return SchemaError(f"The $ref {ref!r} at {place.name} is not resolved: {why}")
