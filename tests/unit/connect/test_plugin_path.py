"""`plugin.path`: roots with modules of their own, several versions side by side (KIP-891)."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.api import ConfigError, ConnectError
from moldau.connect.machine.versions import Version, VersionError, parse_range
from moldau.connect.plugins import Plugins, named_plugin
from moldau.connect.validation import validate_connector

CONNECTOR = """
from __future__ import annotations
from dataclasses import dataclass, field
import shared_library.parts
import shared_library.parts as parts
from shared_library import NUMBER
from . import beside
from moldau.connect.api import ConfigDef, Kind, SourceConnector, SourceTask

@dataclass
class Row:
    name: str
    more: list[str] = field(default_factory=list)

class MySource(SourceConnector):
    ALIASES = ("com.example.MyConnector",)
    @classmethod
    def config(cls):
        return ConfigDef().define(f"setting.{NUMBER}", Kind.STRING, "x", doc="A setting")
    def start(self, props): ...
    def task_class(self):
        return MyTask
    def task_configs(self, max_tasks):
        import shared_library.late
        row = Row("a")
        numbers = (NUMBER, shared_library.parts.PART, parts.PART, shared_library.late.NUMBER)
        return [{"numbers": str(numbers), "beside": beside.NAME, "row": row.name}]
    def stop(self): ...

class MyTask(SourceTask):
    def start(self, props): ...
    def poll(self): ...
    def stop(self): ...
"""


def files_of(version: str, number: int, *, entry_point: bool = True) -> dict[str, str]:
    found = {
        "my_plugin/__init__.py": CONNECTOR,
        "my_plugin/beside.py": f"NAME = 'beside {number}'",
        "shared_library/__init__.py": f"NUMBER = {number}",
        "shared_library/parts.py": f"PART = {number}",
        "shared_library/late.py": "from shared_library import NUMBER",
        # What pip brings along must not take the place of the worker's.
        "moldau/__init__.py": "raise ImportError('not this one')",
    }
    if entry_point:
        info = f"my_plugin-{version}.dist-info"
        found[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: my-plugin\nVersion: {version}\n"
        found[f"{info}/entry_points.txt"] = "[moldau.connect]\nMySource = my_plugin:MySource\n"
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def write_wheel(path: Path, files: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    write(tmp_path / "old", files_of("1.4.0", 14))
    write(tmp_path / "new", files_of("1.10.0", 110))
    write_wheel(tmp_path / "my_plugin-2.0rc1-py3-none-any.whl", files_of("2.0rc1", 200))
    return tmp_path


def made(plugins: Plugins, version: str | None = None, name: str = "MySource") -> Any:
    return plugins.connector(name, version)().task_configs(1)[0]


def test_versions_live_side_by_side(roots: Path) -> None:
    plugins = Plugins(paths=[str(roots)])
    latest = plugins.connector("MySource")
    assert made(plugins, "1.4.0") == {
        "numbers": "(14, 14, 14, 14)", "beside": "beside 14", "row": "a"
    }  # fmt: skip
    assert made(plugins, "[1,2-alpha)")["numbers"] == "(110, 110, 110, 110)"
    assert made(plugins)["numbers"] == "(200, 200, 200, 200)"
    assert plugins.connector("MySource") is latest
    # A second reading of the same path has the same classes.
    assert Plugins(paths=[str(roots)]).connector("MySource") is latest
    assert "shared_library" not in sys.modules
    assert "my_plugin" not in sys.modules


@pytest.mark.parametrize("name", ["MySource", "my_plugin.MySource", "com.example.MyConnector"])
def test_it_has_several_names(roots: Path, name: str) -> None:
    assert made(Plugins(paths=[str(roots)]), "1.4.0", name)["numbers"] == "(14, 14, 14, 14)"


def test_all_versions_are_listed_and_described(roots: Path) -> None:
    plugins = Plugins(built_in=(), paths=[str(roots)])
    found = {(each.class_name, each.version, each.kind.value) for each in plugins.list()}
    assert found == {
        ("my_plugin.MySource", version, "source") for version in ("1.4.0", "1.10.0", "2.0rc1")
    }
    assert list(plugins.connector("MySource", "1.10.0").config()) == ["setting.110"]
    assert plugins.version_of("MySource", "[1,2-alpha)") == "1.10.0"


def test_a_version_that_is_not_there_is_named(roots: Path) -> None:
    plugins = Plugins(paths=[str(roots)])
    with pytest.raises(ConnectError, match=r"range \[3,3\], available versions: \[1\.10\.0, 1\.4"):
        plugins.connector("MySource", "3")
    config = {"connector.class": "MySource", "name": "x", "connector.plugin.version": "1.4.0"}
    validated = validate_connector(config, plugins)
    assert validated.errors == []
    assert "setting.14" in validated.definition
    assert named_plugin(config) == ("MySource", "1.4.0")


def test_a_directory_without_entry_points_is_scanned(tmp_path: Path) -> None:
    write(tmp_path / "plain", files_of("", 7, entry_point=False))
    write(tmp_path / "broken", {"broken_plugin/__init__.py": "import no_such_module"})
    plugins = Plugins(built_in=(), paths=[str(tmp_path)])
    assert [(each.class_name, each.version) for each in plugins.list()] == [
        ("my_plugin.MySource", "1.0")
    ]
    assert made(plugins, name="my_plugin.MySource")["numbers"] == "(7, 7, 7, 7)"
    only_named = Plugins(built_in=(), paths=[str(tmp_path)], scan=False)
    assert only_named.list() == []
    assert made(only_named, name="my_plugin.MySource")["beside"] == "beside 7"


def test_a_directory_of_modules_is_a_root_itself(tmp_path: Path) -> None:
    write(tmp_path, files_of("5.0", 5))
    assert made(Plugins(paths=[str(tmp_path)]))["numbers"] == "(5, 5, 5, 5)"


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugin\.path.*nowhere is no directory"):
        Plugins(paths=[str(tmp_path / "nowhere")])
    (tmp_path / "bad.whl").write_text("no archive")
    with pytest.raises(ConfigError, match=r"plugin\.path"):
        Plugins(paths=[str(tmp_path)])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9", "1.10"), ("1.0-alpha", "1.0-beta"), ("1.0-rc1", "1.0"), ("1.0", "1.0.1"),
        ("1.0-SNAPSHOT", "1.0"), ("1.0", "1.0-sp"), ("1.0.0-rc2", "1.0.0-rc10"), ("1", "2"),
    ],
)  # fmt: skip
def test_the_order_of_versions(older: str, newer: str) -> None:
    assert Version(older) < Version(newer)
    assert not Version(newer) < Version(older)


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1.0.0"), ("1.0", "1.0-ga"), ("1.0-a1", "1-alpha1")]
)
def test_versions_that_are_the_same(one: str, other: str) -> None:
    assert Version(one) == Version(other)
    assert hash(Version(one)) == hash(Version(other))


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("1.5", ("1.5", "1.5.0"), ("1.4", "1.6")),
        ("[1.0,2.0)", ("1.0", "1.9.9"), ("2.0", "0.9")),
        ("(1.0,2.0]", ("2.0",), ("1.0", "2.0.1")),
        ("[1.5,)", ("1.5", "9"), ("1.4",)),
        ("(,1.0],[1.2,)", ("0.1", "1.0", "1.2"), ("1.1",)),
    ],
)
def test_ranges(text: str, inside: tuple[str, ...], outside: tuple[str, ...]) -> None:
    found = parse_range(text)
    assert found is not None
    holds: Callable[[str], bool] = lambda each: found.holds(Version(each))  # noqa: E731
    assert all(map(holds, inside))
    assert not any(map(holds, outside))


@pytest.mark.parametrize("text", ["[1", "(1)", "[2,1]", "[1,2],[1.5,3]", " ", "[1,2]x", "1,2"])
def test_ranges_that_make_no_sense(text: str) -> None:
    with pytest.raises(VersionError):
        parse_range(text)


def test_any_version() -> None:
    assert parse_range(None) is None
    assert parse_range("latest") is None
