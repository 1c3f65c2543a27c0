"""Every button of the pages is clicked by a test in a browser; a new one fails here until it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "src/moldau/services/console/static"
BROWSER = ROOT / "tests/conformance/console"
LABEL = re.compile(r"""\bbutton\(\s*"([^"]+)"|class: "b[^"]*"[^)]*?\}, "([^"]+)"\)""")

TESTS = "".join(path.read_text() for path in sorted(BROWSER.glob("test_*.py")))


def labels() -> list[tuple[str, str]]:
    found = set()
    for path in sorted(STATIC.rglob("*.js")):
        for match in LABEL.finditer(path.read_text()):
            found.add((path.name, match[1] or match[2]))
    return sorted(found)


def test_there_are_labels() -> None:
    assert ("topics.js", "Create topic") in labels()
    assert ("messages.js", "Show") in labels()
    assert len(labels()) > 50


@pytest.mark.parametrize(("file", "label"), labels())
def test_a_button_is_clicked(file: str, label: str) -> None:
    # By its name, or as a part of a longer one: `Delete ACL of User:alice`.
    wanted = re.compile(rf'name=f?"[^"]*{re.escape(label)}|\("{re.escape(label)}", "')
    assert wanted.search(TESTS), f"no test in a browser clicks {label!r} of {file}"
