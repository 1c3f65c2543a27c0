"""Python functions as parts of a definition: by their source, by their module or pickled.

A definition must run wherever the control loop restarts it, so it carries the code itself. A
function named in YAML travels as the source of its file and of the files beside it that this file
imports; a function given in Python travels pickled by value. Only a function of an installed
package (`module:function`) is kept as a name.
"""

from __future__ import annotations

import ast
import base64
import builtins
import linecache
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

from moldau.installation import pip_install
from moldau.pipelines.definition.places import Place
from moldau.pipelines.errors import PipelineError

SOURCE_SIZE_MAX = 512 * 1024


@dataclass(frozen=True, slots=True)
class Code:
    """One function. Exactly one of `file`, `module` and `pickle` says where its code is."""

    function: str
    file: str | None = None
    """The function's file, one of `files`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Sources by path, relative to the definition's folder."""
    module: str | None = None
    pickle: str | None = None
    place: Place | None = None
    """Where the function begins, if that is known."""

    def __str__(self) -> str:
        if self.pickle is not None:
            return self.function
        return f"{self.file or self.module}:{self.function}"

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"function": self.function}
        for name in ("file", "module", "pickle"):
            if (value := getattr(self, name)) is not None:
                fields[name] = value
        if self.files:
            fields["files"] = dict(self.files)
        if self.place:
            fields["place"] = self.place.to_json()
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Code:
        place = fields.get("place")
        return cls(
            function=str(fields["function"]),
            file=fields.get("file"),
            files=dict(fields.get("files", {})),
            module=fields.get("module"),
            pickle=fields.get("pickle"),
            place=Place.from_json(place) if place else None,
        )

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Code:
        """The function by value: its module need not be found where it will run."""
        name = getattr(function, "__name__", type(function).__name__)
        code = getattr(function, "__code__", None)
        place = Place(code.co_filename, code.co_firstlineno) if code else None
        return cls(function=name, pickle=_pickled(function, name), place=place)

    def load(self) -> Callable[..., Any]:
        """The function itself; errors while it is loaded are reported with their line."""
        if self.pickle is not None:
            import pickle

            try:
                found = pickle.loads(base64.b64decode(self.pickle))
            except Exception as error:
                raise PipelineError(
                    f"function {self.function} cannot be loaded: {type(error).__name__}: {error}",
                    where=str(self.place) if self.place else None,
                    hint="give it as file.py:function if it needs modules that are only beside it",
                ) from error
        elif self.file is not None:
            found = _attribute(_Sources(self.files).load(self.file), self.function, self.file)
        else:
            found = _attribute(_imported(str(self.module)), self.function, str(self.module))
        if not callable(found):
            raise PipelineError(f"{self} is no function but a {type(found).__name__}")
        return found  # type: ignore[no-any-return]


def resolve(reference: str, folder: Path) -> Code:
    """`file.py:function` or `module:function`, the files sought in `folder`.

    Raises `ValueError` with a sentence that says what is wrong with the reference.
    """
    target, _, function = reference.rpartition(":")
    if not target or not function.isidentifier():
        raise ValueError(
            f"{reference!r} is not of the form 'file.py:function' or 'module:function'"
        )
    if target.endswith(".py"):
        path = folder / target
        if not path.is_file():
            raise ValueError(f"there is no file {target} in {folder}")
    else:
        path = folder / (target.replace(".", "/") + ".py")
        if not path.is_file():
            return Code(function=function, module=target)
    name = _relative(path, folder)
    files = _with_imports(name, folder)
    line = _line_of(files[name], function, name)
    return Code(function=function, file=name, files=files, place=Place(name, line))


def _relative(path: Path, folder: Path) -> str:
    try:
        return path.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return path.resolve().as_posix()


def _with_imports(first: str, folder: Path) -> dict[str, str]:
    """The file and every file of the same folder that it imports, directly or not."""
    files: dict[str, str] = {}
    wanted = [first]
    total = 0
    while wanted:
        name = wanted.pop()
        if name in files:
            continue
        source = (folder / name).read_text(encoding="utf-8")
        total += len(source)
        if total > SOURCE_SIZE_MAX:
            raise ValueError(
                f"{first} and what it imports is larger than {SOURCE_SIZE_MAX // 1024} KiB; "
                "install the code as a package and refer to it as module:function"
            )
        files[name] = source
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            raise ValueError(f"{name}:{error.lineno}: SyntaxError: {error.msg}") from None
        home = PurePosixPath(name).parent
        for module in _imported_names(tree):
            for candidate in _candidates(home, module):
                if (folder / candidate).is_file():
                    wanted.append(candidate)
    return files


def _candidates(home: PurePosixPath, module: str) -> list[str]:
    path = module.replace(".", "/")
    return [
        (home / f"{path}.py").as_posix(),
        (home / path / "__init__.py").as_posix(),
    ]


def _imported_names(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names]
    parents = {name.rsplit(".", i)[0] for name in names for i in range(name.count(".") + 1)}
    return sorted(parents)


def _line_of(source: str, function: str, name: str) -> int:
    assigned = None
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == function:
            return node.lineno
        if isinstance(node, ast.AsyncFunctionDef) and node.name == function:
            raise ValueError(
                f"{name}:{node.lineno}: {function} is async; a step must be a plain function"
            )
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.ImportFrom) and function in ast.dump(
            node
        ):
            assigned = node.lineno
    if assigned is None:
        known = [n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
        raise ValueError(
            f"{name} has no function {function!r}"
            + (f"; it has {', '.join(known)}" if known else "")
        )
    return assigned


class _Sources:
    """Modules made from carried sources, visible only to each other.

    They stay out of `sys.modules`: two pipelines may each have a `steps.py` of their own, and
    functions of modules that are not there are pickled by value when Spark sends them on.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._modules: dict[str, ModuleType] = {}

    def load(self, name: str) -> ModuleType:
        if name in self._modules:
            return self._modules[name]
        source = self._files[name]
        path = PurePosixPath(name)
        module = ModuleType(path.parent.name if path.name == "__init__.py" else path.stem)
        module.__file__ = name
        home = path.parent

        def import_here(
            target: str,
            globals: Mapping[str, object] | None = None,
            locals: Mapping[str, object] | None = None,
            fromlist: tuple[str, ...] | None = (),
            level: int = 0,
        ) -> ModuleType:
            found = self._sibling(home, target, tuple(fromlist or ()))
            if found is not None:
                return found
            return builtins.__import__(target, globals, locals, fromlist or (), level)

        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": import_here}
        self._modules[name] = module
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        try:
            exec(compile(source, name, "exec"), module.__dict__)
        except Exception as error:
            raise _while_loading(error, name) from error
        # Functions keep the ordinary built-ins when they are pickled and sent to workers.
        module.__dict__["__builtins__"] = builtins
        return module

    def _sibling(
        self, home: PurePosixPath, target: str, fromlist: tuple[str, ...]
    ) -> ModuleType | None:
        """The carried module that `import target` means; None if it is not one of ours."""
        module = self._module(home, target) if target else None
        below = {
            name: found
            for name in fromlist
            if (found := self._module(home, f"{target}.{name}" if target else name))
        }
        if module is None and not below:
            return None
        if fromlist:
            holder = module or ModuleType(target)
            for name, found in below.items():
                if not hasattr(holder, name):
                    setattr(holder, name, found)
            return holder
        return self._package(home, target)

    def _module(self, home: PurePosixPath, target: str) -> ModuleType | None:
        file = next((c for c in _candidates(home, target) if c in self._files), None)
        return None if file is None else self.load(file)

    def _package(self, home: PurePosixPath, target: str) -> ModuleType | None:
        """What `import a.b.c` binds: `a`, from which the rest can be reached."""
        module = self._module(home, target)
        head, _, rest = target.partition(".")
        if module is None or not rest:
            return module
        root = self._module(home, head) or ModuleType(head)
        _attach(root, rest.split("."), module)
        return root


def _attach(root: ModuleType, names: list[str], module: ModuleType) -> None:
    for name in names[:-1]:
        if not isinstance(getattr(root, name, None), ModuleType):
            setattr(root, name, ModuleType(name))
        root = getattr(root, name)
    setattr(root, names[-1], module)


def _while_loading(error: Exception, name: str) -> PipelineError:
    if isinstance(error, PipelineError):
        return error
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno or 0
    return PipelineError(f"{type(error).__name__}: {error}", where=f"{name}:{line}")


def _imported(module: str) -> ModuleType:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PipelineError(
            f"module {module} cannot be imported: {error}",
            hint="put the file beside the definition, or install the package where Spark runs",
        ) from error


def _attribute(module: ModuleType, name: str, of: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        raise PipelineError(f"{of} has no function {name!r}") from None


def _pickled(function: Callable[..., Any], name: str) -> str:
    try:
        from pyspark import cloudpickle as pickling
    except ImportError:
        raise PipelineError(
            "Python functions as steps need Spark's package",
            hint=pip_install("spark"),
        ) from None
    cloudpickle: Any = pickling
    module = _module_of_user(function)
    if module is not None:
        cloudpickle.register_pickle_by_value(module)
    try:
        return base64.b64encode(cloudpickle.dumps(function)).decode("ascii")
    except Exception as error:
        raise PipelineError(
            f"function {name} cannot be sent to Spark: {type(error).__name__}: {error}",
            hint="open files, connections and locks inside the function, not outside of it",
        ) from error
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(module)


def _module_of_user(function: Callable[..., Any]) -> ModuleType | None:
    """What is to travel with the function: the outermost package, if it is not an installed one.

    So what the function's module imports from its neighbours goes along.
    """
    name = getattr(function, "__module__", None) or ""
    module = sys.modules.get(name)
    if module is None or not _is_users(module):
        return None
    return sys.modules.get(name.partition(".")[0], module)


def _is_users(module: ModuleType) -> bool:
    """Whether the module is a file of the user's and not of an installed package."""
    if module.__name__ == "__main__":
        return False  # cloudpickle takes what is in __main__ by value anyway
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    paths = sysconfig.get_paths()
    installed = {Path(paths[key]).resolve() for key in ("stdlib", "platstdlib", "purelib")}
    return not any(Path(file).resolve().is_relative_to(folder) for folder in installed)
