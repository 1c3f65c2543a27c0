"""The files that documents for developers name exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "docs" / "howto.md",
    ROOT / "docs" / "development.md",
    *sorted((ROOT / "src").rglob("README.md")),
]
_FILE = re.compile(r"`([\w/.-]+\.(?:py|pyi|pxd|toml|schema))`")


@pytest.fixture(scope="module")
def files() -> frozenset[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return frozenset("/" + line for line in listed.stdout.splitlines())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_exist(document: Path, files: frozenset[str]) -> None:
    named = {name.replace("../", "") for name in _FILE.findall(document.read_text())}
    missing = [
        name for name in sorted(named) if not any(each.endswith("/" + name) for each in files)
    ]
    assert missing == []
