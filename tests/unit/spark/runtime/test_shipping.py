"""What executors without moldau get."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from moldau.spark.runtime import shipping
from moldau.spark.runtime.errors import SparkRuntimeError
from moldau.spark.runtime.shipping import contents, requirement_names, ship


def test_requirements_of_extras_are_not_meant() -> None:
    listed = ["crc32c>=2.7", "Google_Re2 (>=1.1)", 'pyspark[connect]>=4; extra == "spark"', "x;a>1"]
    assert requirement_names(listed) == ["crc32c", "google-re2", "x"]


def test_moldau_its_compiled_modules_and_what_it_imports_are_in_it() -> None:
    names = {name for name, _ in contents()}
    assert {
        "moldau/__init__.py",
        "pyspark_moldau/__init__.py",
        "moldau/spark/datasource.py",
    } <= names
    tops = {name.partition("/")[0] for name in names}
    assert {"crc32c", "cramjam", "re2", "xxhash"} <= tops
    assert not {"rich", "pyspark", "pyarrow", "numpy"} & tops
    assert not any(name.endswith((".pyc", ".c", ".pxd")) for name in names)
    compiled = list(Path(shipping.__file__).parents[2].glob("wire/_record_codec*.so"))
    assert [f"moldau/wire/{path.name}" for path in compiled] == sorted(
        name for name in names if name.startswith("moldau/wire/_record_codec.") and "so" in name
    )


@pytest.fixture
def _little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package.py"
    package.write_text("content = 1\n")
    monkeypatch.setattr(shipping, "contents", lambda extra: iter([("package.py", package)]))


@pytest.mark.usefixtures("_little")
def test_the_same_content_is_packed_once(tmp_path: Path) -> None:
    first = ship(tmp_path / "cache")
    made = Path(first.archive).stat().st_ino
    assert ship(tmp_path / "cache") == first
    assert Path(first.archive).stat().st_ino == made
    (tmp_path / "package.py").write_text("content = 2\n")
    second = ship(tmp_path / "cache")
    assert second != first
    assert (Path(second.folder) / "package.py").read_text() == "content = 2\n"
    with tarfile.open(second.archive) as archive:
        assert "./package.py" in archive.getnames()


@pytest.mark.usefixtures("_little")
def test_old_archives_are_forgotten(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / "package.py").write_text(f"content = {number}\n")
        last = ship(tmp_path / "cache")
    left = list((tmp_path / "cache" / "shipped").iterdir())
    assert len(left) == 2 * shipping._ARCHIVES_MAX
    assert Path(last.archive) in left


def test_more_packages_can_be_shipped_if_they_are_here() -> None:
    assert any(name.startswith("pluggy/") for name, _ in contents(["pluggy"]))
    with pytest.raises(SparkRuntimeError, match="pip install not-anywhere"):
        list(contents(["not-anywhere"]))


def test_the_client_works_from_what_is_shipped_alone(tmp_path: Path) -> None:
    """In a Python that has no packages at all."""
    shipped = ship(tmp_path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import moldau.wire._record_codec;"
        "from moldau.client import Producer, Consumer, Admin; import moldau; print(moldau.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, shipped.folder],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == f"{shipped.folder}/moldau/__init__.py", done.stderr
