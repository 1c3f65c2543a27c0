"""YAML documents, with the line of everything in them.

YAML's own loader does not keep the line of a value. Here the tree of nodes is walked beside the
data, so that each mistake, and each line of SQL in a block, can be reported with its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moldau.installation import pip_install
from moldau.pipelines.definition.code import resolve
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.reading import PipelineArguments, PipelinePath, arguments_of
from moldau.pipelines.errors import DefinitionError, PipelineError

DOCUMENT_SIZE_MAX = 1024 * 1024
# `${env:NAME}` is not meant: it is put in when the pipeline starts.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


def read(path: Path, variables: Mapping[str, object] | None = None) -> PipelineArguments:
    """The parts of a YAML file's pipeline; its functions are read from the files beside it."""
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
) -> PipelineArguments:
    """The parts of a YAML text's pipeline; `file` is the name that mistakes are reported with.

    Given `variables`, every `${name}` in a value is replaced by the variable of that name.
    """
    folder = (base or Path.cwd()).absolute()
    data, lines = _parsed(text, file)
    if variables is not None:
        data = _with_variables(data, variables, lines, file)

    def place(path: PipelinePath) -> Place | None:
        line = lines.get(path)
        return None if line is None else Place(file, line)

    return arguments_of(
        data,
        places=place,
        resolve=lambda reference: resolve(reference, folder),
        base=str(folder),
    )


def _with_variables(
    data: Any, variables: Mapping[str, object], lines: Mapping[PipelinePath, int], file: str
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
                where = f"{Path(file).name}:{lines[path]}"
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


def _parsed(text: str, file: str) -> tuple[Any, dict[PipelinePath, int]]:
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
        line = f"{Path(file).name}:{mark.line + 1}" if mark else Path(file).name
        problem = PipelineError(f"not YAML: {error.problem or error.context}", where=line)
        raise DefinitionError([problem]) from None
    except yaml.YAMLError as error:
        raise PipelineError(f"not YAML: {error}", where=Path(file).name) from None
    if node is None:
        raise PipelineError("empty", where=Path(file).name)
    loader = yaml.SafeLoader("")
    lines: dict[PipelinePath, int] = {}
    mistakes: list[PipelineError] = []

    def walk(node: Any, path: PipelinePath) -> Any:
        # A block's text begins in the line after its sign, so that line 1 of the SQL is there.
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        lines[path] = node.start_mark.line + (2 if block else 1)
        if isinstance(node, yaml.SequenceNode):
            return [walk(one, (*path, index)) for index, one in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return loader.construct_object(node, deep=True)
        loader.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str | int) or key in found:
                problem = "given twice" if isinstance(key, str) and key in found else "no name"
                mistakes.append(
                    PipelineError(f"{key!r}: {problem}", where=f"{Path(file).name}:{line}")
                )
                continue
            found[key] = walk(value_node, (*path, key))
            if not (isinstance(value_node, yaml.ScalarNode) and value_node.style in ("|", ">")):
                lines[(*path, key)] = line
        return found

    try:
        data = walk(node, ())
    except yaml.YAMLError as error:
        raise PipelineError(f"not YAML: {error}", where=Path(file).name) from None
    if mistakes:
        raise DefinitionError(mistakes)
    return data, lines
