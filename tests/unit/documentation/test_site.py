"""The site's pages: every link, also to a heading, leads somewhere. `make site` builds the site."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_CODE = re.compile(r"^(`{3,}).*?^\1`*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:\s]*)(#[^)\s]*)?\)")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    subprocess.run([sys.executable, str(ROOT / "tools/build_site.py"), "--pages-only"], check=True)
    staged = ROOT / "build" / "site-pages"
    # Of pictures only the names matter.
    return {
        str(each.relative_to(staged)): each.read_text() if each.suffix == ".md" else ""
        for each in staged.rglob("*.*")
    }


def headings(text: str) -> set[str]:
    """The names that MkDocs gives to headings."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for title in re.findall(r"^#+ (.*)$", prose, re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", plain))
    return found


def test_links_lead_to_pages_and_headings(pages: dict[str, str]) -> None:
    wrong = []
    for name, text in pages.items():
        if not name.endswith(".md"):
            continue
        for target, heading in _LINK.findall(_CODE.sub("", text)):
            path = os.path.normpath(os.path.join(os.path.dirname(name), target)) if target else name
            if path not in pages:
                wrong.append(f"{name}: {target}")
            elif heading and heading[1:] not in headings(pages[path]):
                wrong.append(f"{name}: {target}{heading}")
    assert wrong == []


def test_every_page_of_docs_is_there(pages: dict[str, str]) -> None:
    documents = {str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs").rglob("*.md")}
    assert documents - pages.keys() == set()
    navigation = (ROOT / "build" / "mkdocs.yml").read_text()
    assert [each for each in sorted(documents) if f"- {each}\n" not in navigation] == []


def test_the_reference_names_what_exists(pages: dict[str, str]) -> None:
    names = re.findall(r"^::: (\S+)$", "\n".join(pages.values()), re.MULTILINE)
    assert len(names) > 8
    for name in names:
        owner, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(owner), attribute) or importlib.import_module(name)
