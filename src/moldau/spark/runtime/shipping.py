"""Packs moldau and what it needs at run time for executors that do not have it installed.

The archive is made from this environment, compiled modules included, so executors need the same
Python version and platform; pyspark, pyarrow and pandas they have as any executor for Python has.

Invariants: an archive's name is the hash of its content, so what is cached is never stale,
and two environments never overwrite each other's.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from moldau.spark.runtime.errors import SparkRuntimeError
from moldau.spark.runtime.machine.command import Shipped

__all__ = ["contents", "requirement_names", "ship"]

# Imported from where they are, which for an editable install is the source folder.
_OWN = ("moldau", "pyspark_moldau")
# Of moldau's requirements, what only its commands use.
_COMMANDS_ONLY = frozenset({"rich"})
# Executors for Python have these already, and they are large.
_PRESENT = frozenset({"pyspark", "pyarrow", "pandas", "numpy", "py4j", "pip", "setuptools"})
_SKIPPED_FOLDERS = frozenset({"__pycache__", "tests", "test"})
_SKIPPED_ENDINGS = (".c", ".pxd", ".pyc", ".pyi")
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)([^;]*)(?:;(.*))?$")
_ARCHIVES_MAX = 5


def ship(cache: Path, *, extra: Sequence[str] = ()) -> Shipped:
    """The archive for this environment, made if it is not in the cache yet."""
    files = sorted(contents(extra))
    digest = _digest(files)
    folder = cache / "shipped" / digest
    archive = cache / "shipped" / f"{digest}.tar.gz"
    if not archive.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as name:
            _make(files, Path(name) / "unpacked", Path(name) / "archive.tar.gz")
            if not folder.exists():
                (Path(name) / "unpacked").rename(folder)
            # Last: with it the pair is complete.
            (Path(name) / "archive.tar.gz").rename(archive)
        _forget_old(folder.parent)
    os.utime(archive)
    return Shipped(str(archive), str(folder))


def contents(extra: Iterable[str] = ()) -> Iterator[tuple[str, Path]]:
    """Name in the archive and file, of everything that goes into it."""
    for package in _OWN:
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            continue
        root = Path(next(iter(found.submodule_search_locations)))
        for path in root.rglob("*"):
            inside = path.relative_to(root)
            if path.is_file() and _is_wanted(PurePosixPath(inside.as_posix())):
                yield f"{package}/{inside.as_posix()}", path
    for distribution in _distributions(extra):
        for file in distribution.files or ():
            name = PurePosixPath(file.as_posix())
            # Scripts and the like are beside the packages, under `..`.
            if ".." in name.parts or not _is_wanted(name):
                continue
            path = Path(str(distribution.locate_file(file)))
            if path.is_file():
                yield name.as_posix(), path


def _is_wanted(name: PurePosixPath) -> bool:
    return not (_SKIPPED_FOLDERS & set(name.parts[:-1]) or name.name.endswith(_SKIPPED_ENDINGS))


def _distributions(extra: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    waiting = [name for name in _requirements("moldau") if name not in _COMMANDS_ONLY]
    for name in extra:
        if name.lower() not in _PRESENT:
            # Asked for by the user: a name that is wrong must not pass in silence.
            _distribution(name, asked=True)
        waiting.append(name)
    seen: set[str] = set()
    while waiting:
        name = _canonical(waiting.pop())
        if name in seen or name in _PRESENT:
            continue
        seen.add(name)
        distribution = _distribution(name)
        if distribution is not None:
            yield distribution
            waiting += requirement_names(distribution.requires or ())


def _requirements(name: str) -> list[str]:
    distribution = _distribution(name)
    return [] if distribution is None else requirement_names(distribution.requires or ())


def requirement_names(requirements: Iterable[str]) -> list[str]:
    """The distributions that are always needed: extras are left out, markers otherwise not asked.

    One that is not installed here was not needed here, and is not found later.
    """
    names: list[str] = []
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match is not None and "extra" not in (match[3] or ""):
            names.append(_canonical(match[1]))
    return names


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _distribution(name: str, *, asked: bool = False) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        if asked:
            raise SparkRuntimeError(
                f"{name} is to be shipped to executors but is not installed here: pip install "
                f"{name}"
            ) from None
        return None


def _digest(files: Sequence[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _make(files: Sequence[tuple[str, Path]], folder: Path, archive: Path) -> None:
    for name, path in files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    with tarfile.open(archive, "w:gz", compresslevel=1) as file:
        file.add(folder, arcname=".")


def _forget_old(folder: Path) -> None:
    """Every change of moldau's files makes an archive; only the last ones can be in use."""
    archives = sorted(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    for archive in archives[:-_ARCHIVES_MAX]:
        archive.unlink(missing_ok=True)
        shutil.rmtree(folder / archive.name.removesuffix(".tar.gz"), ignore_errors=True)
