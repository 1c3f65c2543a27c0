"""The shape of the source tree, read from its syntax alone: imports, sizes, names.

Nothing is imported. Each rule takes a `Tree` and returns one line per violation, so that the test
can plant violations in a tree of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MACHINE = "machine"

#: What pure code may import that is not Moldau's. Everything else is refused, so that what is
#: added to the standard library, or forgotten here, is looked at first.
PURE_IMPORTS = frozenset(
    [
        "__future__",
        "abc",
        "array",
        "ast",
        "base64",
        "binascii",
        "bisect",
        "codecs",
        "collections",
        "collections.abc",
        "contextlib",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "errno",
        "fnmatch",
        "fractions",
        "functools",
        "graphlib",
        "hashlib",
        "heapq",
        "hmac",
        "html",
        "ipaddress",
        "itertools",
        "json",
        "keyword",
        "math",
        "numbers",
        "operator",
        "re",
        "shlex",
        "string",
        "struct",
        "textwrap",
        "types",
        "typing",
        "typing_extensions",
        "unicodedata",
        "urllib.parse",
        "uuid",
        "weakref",
        "zlib",
        "zoneinfo",
        "cramjam",
        "crc32c",
        "cython",
        "fastavro",
        "google.protobuf",
        "google.protobuf.descriptor",
        "google.protobuf.message",
        "jsonschema_rs",
        "jsonschema_specifications",
        "pyarrow",
        "pyarrow.compute",
        "re2",
        "xxhash",
    ]
)
#: Of modules that are only partly pure: the names that are.
PURE_NAMES = {
    "http": frozenset({"HTTPStatus"}),
    "io": frozenset({"BytesIO", "StringIO"}),
    "pathlib": frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"}),
}
_CALLS = frozenset({"open", "print", "input", "breakpoint"})
_ATTRIBUTES = frozenset({"now", "utcnow", "today", "uuid1", "uuid4", "getnode"})
_SUSPECT = re.compile(rf"\b(?:{'|'.join([*_CALLS, *_ATTRIBUTES])})\(")


@dataclass(frozen=True, slots=True)
class Import:
    target: str
    """A module of the tree, or a module from outside."""
    line: int
    type_only: bool
    inside: bool


@dataclass(frozen=True, slots=True)
class Size:
    name: str
    lines: int
    is_class: bool


@dataclass(slots=True)
class Module:
    name: str
    path: Path
    is_package: bool
    line_count: int = 0
    imports: list[Import] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    asserts: list[int] = field(default_factory=list)
    impurities: list[str] = field(default_factory=list)

    @property
    def in_machine(self) -> bool:
        parts = self.name.split(".")
        return MACHINE in (parts if self.is_package else parts[:-1])


class Tree:
    """The modules of one package, `generated` ones without their insides."""

    def __init__(self, package: Path, *, generated: Collection[str] = ()) -> None:
        self.root = package.name
        self.modules: dict[str, Module] = {}
        for path in sorted(package.rglob("*.py")):
            parts = [package.name, *path.relative_to(package).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            self.modules[name] = Module(name, path, is_package)
        for module in self.modules.values():
            if not _is_within(module.name, generated):
                _Reader(self, module).read()

    def imports_of(self, module: Module, *, types: bool) -> Iterator[Import]:
        return (i for i in module.imports if i.inside and (types or not i.type_only))

    def pure(self, excused: Mapping[str, str]) -> dict[str, str]:
        """For every module that is not pure: why, by way of what it imports when it runs."""
        why = {
            m.name: m.impurities[0]
            for m in self.modules.values()
            if m.impurities and m.name not in excused
        }
        users: dict[str, list[str]] = {}
        for module in self.modules.values():
            if module.name not in excused:
                for each in self.imports_of(module, types=False):
                    users.setdefault(each.target, []).append(module.name)
        waiting = list(why)
        while waiting:
            name = waiting.pop()
            for user in users.get(name, ()):
                if user not in why:
                    why[user] = f"{name}: {why[name]}" if ": " not in why[name] else why[name]
                    waiting.append(user)
        return why


class _Reader:
    """Reads statements only: the few calls that matter are looked for where the text has them."""

    def __init__(self, tree: Tree, module: Module) -> None:
        self._tree = tree
        self._module = module

    def read(self) -> None:
        text = self._module.path.read_text()
        self._module.line_count = text.count("\n")
        parsed = ast.parse(text)
        self._statements(parsed.body, self._module.name, type_only=False)
        if _SUSPECT.search(text):
            self._calls(parsed)

    def _statements(self, body: Sequence[ast.stmt], within: str, *, type_only: bool) -> None:
        for node in body:
            match node:
                case ast.Import():
                    for alias in node.names:
                        self._add(alias.name, node.lineno, (), type_only)
                case ast.ImportFrom():
                    self._add_from(node, type_only)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._definition(node, within, type_only)
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    self._statements(node.body, within, type_only=True)
                    self._statements(node.orelse, within, type_only=type_only)
                case ast.Assert():
                    self._module.asserts.append(node.lineno)
                case ast.Match():
                    for each in node.cases:
                        self._statements(each.body, within, type_only=type_only)
                case _:
                    for block in ("body", "orelse", "finalbody"):
                        self._statements(getattr(node, block, ()), within, type_only=type_only)
                    for handler in getattr(node, "handlers", ()):
                        self._statements(handler.body, within, type_only=type_only)

    def _definition(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        within: str,
        type_only: bool,
    ) -> None:
        name = f"{within}.{node.name}"
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        self._module.sizes.append(Size(name, lines, isinstance(node, ast.ClassDef)))
        if isinstance(node, ast.AsyncFunctionDef):
            self._impure(node.lineno, f"has async def {node.name}")
        self._statements(node.body, name, type_only=type_only)

    def _add_from(self, node: ast.ImportFrom, type_only: bool) -> None:
        base = node.module or ""
        if node.level:
            module = self._module
            home = module.name if module.is_package else module.name.rpartition(".")[0]
            above = home.split(".")[: len(home.split(".")) - (node.level - 1)]
            base = ".".join([*above, base] if base else above)
        plain: list[str] = []
        for alias in node.names:
            if f"{base}.{alias.name}" in self._tree.modules:
                self._add(f"{base}.{alias.name}", node.lineno, (), type_only)
            else:
                plain.append(alias.name)
        if plain:
            self._add(base, node.lineno, tuple(plain), type_only)

    def _add(self, target: str, line: int, names: tuple[str, ...], type_only: bool) -> None:
        inside = target.split(".")[0] == self._tree.root
        while inside and target not in self._tree.modules and "." in target:
            target = target.rpartition(".")[0]
        self._module.imports.append(Import(target, line, type_only, inside))
        if inside or type_only:
            return
        if names and target in PURE_NAMES and PURE_NAMES[target].issuperset(names):
            return
        if names and all(f"{target}.{name}" in PURE_IMPORTS for name in names):
            return
        if target not in PURE_IMPORTS:
            self._impure(line, f"imports {target}")
        for name in names:
            if name in _ATTRIBUTES:
                self._impure(line, f"imports {target}.{name}")

    def _calls(self, parsed: ast.Module) -> None:
        for node in ast.walk(parsed):
            if isinstance(node, ast.Call):
                called = node.func
                if isinstance(called, ast.Name) and called.id in _CALLS:
                    self._impure(node.lineno, f"calls {called.id}")
                elif isinstance(called, ast.Attribute) and called.attr in _ATTRIBUTES:
                    self._impure(node.lineno, f"calls {called.attr}")

    def _impure(self, line: int, what: str) -> None:
        self._module.impurities.append(f"line {line} {what}")


def _is_within(name: str, packages: Collection[str]) -> bool:
    return any(name == each or name.startswith(each + ".") for each in packages)


# The rules.


def impure_machines(
    tree: Tree, *, excused: Mapping[str, str], types_excused: Collection[str] = ()
) -> list[str]:
    """Machines import only pure code, directly or not; not even types from code that acts."""
    why = tree.pure(excused)
    found = []
    for module in tree.modules.values():
        if not module.in_machine:
            continue
        if module.name in why:
            found.append(f"{module.name} is not pure: {why[module.name]}")
        for each in tree.imports_of(module, types=True):
            if each.type_only and each.target in why and each.target not in types_excused:
                found.append(
                    f"{module.name} line {each.line}: takes a type from {each.target}, "
                    f"which is not pure: {why[each.target]}"
                )
    return found


def pure_beside_machine(
    tree: Tree, *, excused: Mapping[str, str], beside: Mapping[str, str]
) -> list[str]:
    """Where there is a machine folder, what decides is in it."""
    why = tree.pure(excused)
    folders = {
        name.rpartition(".")[0]
        for name, module in tree.modules.items()
        if module.is_package and name.rpartition(".")[2] == MACHINE
    }
    pure = [
        name
        for name, module in tree.modules.items()
        if name.rpartition(".")[0] in folders and not module.is_package and name not in why
    ]
    found = [
        f"{name} is pure: move it to {name.rpartition('.')[0]}.{MACHINE}, or say in BESIDE why not"
        for name in pure
        if name not in beside
    ]
    return found + [f"{name} in BESIDE is not needed" for name in beside if name not in pure]


def cycles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The strongly connected parts of more than one node (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in graph:
        if node not in number:
            visit(node)
    return sorted(found)


def children_graph(tree: Tree, package: str) -> dict[str, set[str]]:
    """Which of a package's modules and packages use which, types included."""
    graph: dict[str, set[str]] = {}
    for module in tree.modules.values():
        if not module.name.startswith(package + "."):
            continue
        child = module.name[len(package) + 1 :].split(".")[0]
        graph.setdefault(child, set())
        for each in tree.imports_of(module, types=True):
            if each.target.startswith(package + "."):
                other = each.target[len(package) + 1 :].split(".")[0]
                if other != child:
                    graph[child].add(other)
    return graph


def import_cycles(tree: Tree) -> list[str]:
    """No cycles between modules, nor between packages, not even for types."""
    return sorted(
        "import one another: " + ", ".join(sorted(f"{name}.{child}" for child in part))
        for name, module in tree.modules.items()
        if module.is_package
        for part in cycles(children_graph(tree, name))
    )


def broken_layers(tree: Tree, package: str, layers: Sequence[Iterable[str]]) -> list[str]:
    """Each child of a package has a layer and uses only the layers below."""
    level = {child: -index for index, layer in enumerate(layers) for child in layer}
    found = []
    for child, used in sorted(children_graph(tree, package).items()):
        if child not in level:
            found.append(f"{package}.{child} has no layer: put it into LAYERS")
            continue
        found += [
            f"{package}.{child} uses {package}.{other}, which is not below it"
            for other in sorted(used)
            if other in level and level[other] >= level[child]
        ]
    return found


def too_large(
    tree: Tree, *, file: int, function: int, class_: int, known: Mapping[str, tuple[int, str]]
) -> list[str]:
    """Sizes in lines; `known` gives what may be larger for now, how large, and why."""
    sizes: dict[str, tuple[int, int]] = {}
    for module in tree.modules.values():
        if module.line_count > file:
            sizes[module.name] = module.line_count, file
        for size in module.sizes:
            limit = class_ if size.is_class else function
            if size.lines > limit:
                sizes[size.name] = size.lines, limit
    found = [
        f"{name} has {lines} lines, more than {known.get(name, (limit, ''))[0]}"
        for name, (lines, limit) in sorted(sizes.items())
        if lines > known.get(name, (limit, ""))[0]
    ]
    return found + [f"{name} is small enough now" for name in known if name not in sizes]


def asserts(tree: Tree) -> list[str]:
    """`python -O` deletes them; `moldau.invariant` stays."""
    return [
        f"{module.name} line {line}: use moldau.invariant, not assert"
        for module in tree.modules.values()
        for line in module.asserts
    ]


def wrong_underscores(tree: Tree, compiled: Collection[str]) -> list[str]:
    """A leading underscore says that a module is compiled, and only that."""
    found = [
        f"{name} is compiled: its name begins with an underscore"
        for name in compiled
        if not name.rpartition(".")[2].startswith("_")
    ]
    found += [f"{name} is compiled and missing" for name in compiled if name not in tree.modules]
    return found + [
        f"{name} is not compiled: no underscore"
        for name in tree.modules
        if name.rpartition(".")[2].startswith("_")
        and not name.endswith("__main__")
        and name not in compiled
    ]
