"""Sets the targets of references once a document is read, each target loaded once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from moldau.data.json_schema.documents import Documents, Place
from moldau.data.json_schema.model import ReferenceSchema, SchemaNode
from moldau.data.schema_language import SchemaError

NODES_MAX = 100_000


class References:
    """References that are read and not yet followed, and how many schemas there are in all."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._waiting: deque[tuple[ReferenceSchema, Place]] = deque()
        self._made: list[ReferenceSchema] = []
        self._referred: dict[int, SchemaNode] = {}
        self._targets: dict[tuple[int, str], SchemaNode] = {}
        self._nodes_count = 0

    def count_node(self) -> None:
        self._nodes_count += 1
        if self._nodes_count > NODES_MAX:
            raise SchemaError(f"The schema consists of more than {NODES_MAX} schemas")

    def add(self, ref: str, place: Place) -> ReferenceSchema:
        """A reference at a place; its target is set later."""
        node = ReferenceSchema(ref=ref)
        self._waiting.append((node, place))
        self._made.append(node)
        return node

    def follow(self, root: SchemaNode, load: Callable[[Place], SchemaNode]) -> None:
        """Load what the references name, and what that refers to in turn."""
        self._targets[id(self._documents.main), "#"] = root
        while self._waiting:
            node, place = self._waiting.popleft()
            target = self._documents.resolve(node.ref, place)
            key = (id(target.document), target.pointer)
            if key not in self._targets:
                self._targets[key] = load(target)
            self._referred[id(node)] = self._targets[key]
        done: set[int] = set()
        for node in self._made:
            self._set_target(node, done)

    def _set_target(self, node: ReferenceSchema, done: set[int]) -> None:
        """Follow references to references to their end."""
        path: list[ReferenceSchema] = []
        end: SchemaNode = node
        while isinstance(end, ReferenceSchema):
            if id(end) in done:
                end = end.target
                break
            path.append(end)
            end = self._referred[id(end)]
            if len(path) > len(self._made):
                raise SchemaError(f"The $ref {node.ref!r} leads only back to itself")
        for each in path:
            each.target = end
            done.add(id(each))
