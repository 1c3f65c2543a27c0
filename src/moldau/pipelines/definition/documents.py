"""YAML documents, with the line and the column of everything in them.

YAML's own loader does not keep the place of a value. Here the tree of nodes is walked beside the
data, so that each mistake, and each word of SQL in a block, can be reported with its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moldau.installation import pip_install
from moldau.pipelines.definition.code import resolve
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.reading import PipelinePath, Reading, parts_of
from moldau.pipelines.errors import DefinitionError, PipelineError

DOCUMENT_SIZE_MAX = 1024 * 1024
# `${env:NAME}` is not meant: it is put in when the pipeline starts.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML document's data, with the place of each of its parts."""

    file: str
    base: Path
    data: Any
    text: str
    places: Mapping[PipelinePath, Place]
    #: Where the text of each single value begins and ends.
    spans: Mapping[PipelinePath, tuple[int, int]]

    def place(self, path: PipelinePath) -> Place | None:
        return self.places.get(path)

    def place_in(self, path: PipelinePath, value: str, offset: int, word: str) -> Place | None:
        """The place of `word`, which is at `offset` in the value: SQL, for one.

        It is found again in the document by counting, whatever YAML does to spaces and quotes.
        """
        if path not in self.spans or not word:
            return self.places.get(path)
        start, end = self.spans[path]
        found = start - 1
        for _ in range(_count(value, word, offset) + 1):
            found = self.text.find(word, found + 1, end)
            if found < 0:
                return self.places.get(path)
        line = self.text.count("\n", 0, found) + 1
        return Place(self.file, line, found - self.text.rfind("\n", 0, found))

    def arguments(self) -> Reading:
        """The parts of its pipeline, and its mistakes."""
        return parts_of(
            self.data,
            places=self.place,
            resolve=lambda reference: resolve(reference, self.base),
            base=str(self.base),
        )


def _count(value: str, word: str, end: int) -> int:
    """How often the word begins before `end`."""
    count, found = 0, value.find(word)
    while 0 <= found < end:
        count, found = count + 1, value.find(word, found + 1)
    return count


def read(path: Path, variables: Mapping[str, object] | None = None) -> Document:
    """A YAML file; functions are read from the files beside it."""
    try:
        if path.stat().st_size > DOCUMENT_SIZE_MAX:
            raise PipelineError(f"{path}: larger than {DOCUMENT_SIZE_MAX // 1024} KiB")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise PipelineError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None
    return parse(text, file=str(path), base=path.parent, variables=variables)


def parse(
    text: str,
    *,
    file: str = "pipeline.yaml",
    base: Path | None = None,
    variables: Mapping[str, object] | None = None,
) -> Document:
    """A YAML text; `file` is the name that mistakes are reported with.

    Given `variables`, every `${name}` in a value is replaced by the variable of that name.
    """
    data, places, spans = _parsed(text, file)
    if variables is not None:
        data = _with_variables(data, variables, places)
    return Document(file, (base or Path.cwd()).absolute(), data, text, places, spans)


def _with_variables(
    data: Any, variables: Mapping[str, object], places: Mapping[PipelinePath, Place]
) -> Any:
    mistakes: list[PipelineError] = []

    def walk(value: Any, path: PipelinePath) -> Any:
        if isinstance(value, dict):
            return {name: walk(one, (*path, name)) for name, one in value.items()}
        if isinstance(value, list):
            return [walk(one, (*path, index)) for index, one in enumerate(value)]
        if not isinstance(value, str):
            return value

        def put(found: re.Match[str]) -> str:
            if found[1] not in variables:
                where = places[path].exact
                known = ", ".join(variables) or "none"
                mistakes.append(
                    PipelineError(
                        f"no variable {found[1]!r} is given", where=where, hint=f"given: {known}"
                    )
                )
                return ""
            return str(variables[found[1]])

        return _VARIABLE.sub(put, value)

    replaced = walk(data, ())
    if mistakes:
        raise DefinitionError(mistakes)
    return replaced


def _parsed(
    text: str, file: str
) -> tuple[Any, dict[PipelinePath, Place], dict[PipelinePath, tuple[int, int]]]:
    try:
        import yaml
    except ImportError:
        raise PipelineError(
            "pipelines in YAML need a package that is not installed", hint=pip_install("spark")
        ) from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = Place(file, mark.line + 1, mark.column + 1).exact if mark else Path(file).name
        problem = PipelineError(f"not YAML: {error.problem or error.context}", where=where)
        raise DefinitionError([problem]) from None
    except yaml.YAMLError as error:
        raise PipelineError(f"not YAML: {error}", where=Path(file).name) from None
    if node is None:
        raise PipelineError("empty", where=Path(file).name)
    loader = yaml.SafeLoader("")
    places: dict[PipelinePath, Place] = {}
    spans: dict[PipelinePath, tuple[int, int]] = {}
    mistakes: list[PipelineError] = []

    def at(mark: Any) -> Place:
        return Place(file, mark.line + 1, mark.column + 1)

    def walk(node: Any, path: PipelinePath) -> Any:
        places[path] = at(node.start_mark)
        if isinstance(node, yaml.SequenceNode):
            return [walk(one, (*path, index)) for index, one in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            spans[path] = (node.start_mark.index, node.end_mark.index)
            if node.style in ("|", ">"):
                # A block's text begins in the line after its sign: line 1 of the SQL is there.
                places[path] = Place(file, node.start_mark.line + 2)
            return loader.construct_object(node, deep=True)
        loader.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            place = at(key_node.start_mark)
            if not isinstance(key, str | int) or key in found:
                problem = "given twice" if isinstance(key, str) and key in found else "no name"
                mistakes.append(PipelineError(f"{key!r}: {problem}", where=place.exact))
                continue
            found[key] = walk(value_node, (*path, key))
            if not (isinstance(value_node, yaml.ScalarNode) and value_node.style in ("|", ">")):
                places[(*path, key)] = place
        return found

    try:
        data = walk(node, ())
    except yaml.YAMLError as error:
        raise PipelineError(f"not YAML: {error}", where=Path(file).name) from None
    if mistakes:
        raise DefinitionError(mistakes)
    return data, places, spans
