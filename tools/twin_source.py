"""Reads the classes that twins are generated from: their methods, and where their names come from.

Only the syntax is read; nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Place:
    """Where a name is imported from, and whether only for types."""

    module: str
    for_types: bool = False


class Module:
    """A module of `src`, by its syntax."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = path_of(name)
        self.text = self.path.read_text()
        self.tree = ast.parse(self.text)
        self.names = dict(self._names(self.tree.body, for_types=False))

    def _names(self, body: list[ast.stmt], *, for_types: bool) -> Iterator[tuple[str, Place]]:
        for node in body:
            match node:
                case ast.ImportFrom(module=str(module)):
                    for alias in node.names:
                        yield alias.name, Place(module, for_types)
                case ast.Import():
                    for alias in node.names:
                        yield alias.name, Place("", for_types)
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    yield from self._names(node.body, for_types=True)
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    yield name, Place(self.name)
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield node.name, Place(self.name)

    def class_(self, name: str) -> ast.ClassDef:
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node
        raise SystemExit(f"{self.path} has no class {name}")


@dataclass(frozen=True)
class Method:
    """A method, and the module whose names it uses."""

    function: Function
    module: Module

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def is_property(self) -> bool:
        return self._is_decorated("property")

    @property
    def is_abstract(self) -> bool:
        return self._is_decorated("abstractmethod")

    def _is_decorated(self, name: str) -> bool:
        decorators = self.function.decorator_list
        return any(isinstance(each, ast.Name) and each.id == name for each in decorators)

    @property
    def words(self) -> str:
        words = ast.get_docstring(self.function)
        if not words:
            raise SystemExit(f"{self.module.path}: {self.name} has no docstring")
        return words

    def signature_names(self) -> set[str]:
        parts: list[ast.AST] = [self.function.args]
        if self.function.returns is not None:
            parts.append(self.function.returns)
        return {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}


@cache
def module(name: str) -> Module:
    return Module(name)


def path_of(name: str) -> Path:
    return ROOT / "src" / (name.replace(".", "/") + ".py")


def methods_of(place: str) -> list[Method]:
    """The methods of `module:Class`, and those it takes over from an area of operations
    (`name = _area(Class.name)`, see AsyncAdmin)."""
    owner, _, class_name = place.partition(":")
    source = module(owner)
    taken_over: list[Method] = []
    own: list[Method] = []
    for node in source.class_(class_name).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                own.append(Method(node, source))
            case ast.Assign(
                value=ast.Call(args=[ast.Attribute(value=ast.Name(id=area), attr=name)])
            ):
                found = methods_of(f"{source.names[area].module}:{area}")
                taken_over.extend(each for each in found if each.name == name)
    return [*taken_over, *own]
