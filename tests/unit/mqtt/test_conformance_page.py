"""`docs/mqtt-conformance.md` has every normative statement once, and names tests that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/mqtt-conformance.md").read_text()

#: How many statements each section of MQTT 5 has; they are numbered from 1.
SECTIONS = {
    "1.5.4": 3, "1.5.5": 1, "1.5.7": 1, "2.1.3": 1, "2.2.2": 1,
    "3.1.0": 2, "3.1.2": 30, "3.1.3": 12, "3.1.4": 6, "3.2.0": 2, "3.2.2": 22,
    "3.3.1": 13, "3.3.2": 20, "3.3.4": 10, "3.4.2": 3, "3.5.2": 3, "3.6.1": 1, "3.6.2": 3,
    "3.7.2": 3, "3.8.1": 1, "3.8.3": 5, "3.8.4": 8, "3.9.2": 2, "3.9.3": 2, "3.10.1": 1,
    "3.10.3": 2, "3.10.4": 6, "3.11.2": 2, "3.11.3": 2, "3.12.4": 1, "3.14.0": 1, "3.14.1": 1,
    "3.14.2": 4, "3.14.4": 3, "3.15.1": 1, "3.15.2": 3, "4.1.0": 2, "4.2.0": 1, "4.3.1": 1,
    "4.3.2": 5, "4.3.3": 13, "4.4.0": 2, "4.5.0": 2, "4.6.0": 6, "4.7.0": 1, "4.7.1": 2,
    "4.7.2": 1, "4.7.3": 4, "4.8.2": 6, "4.9.0": 3, "4.12.0": 7, "4.12.1": 2, "4.13.1": 1,
    "4.13.2": 1, "6.0.0": 4,
}  # fmt: skip
#: 2.2.1-1 is not a statement of the final version.
STATEMENTS = {f"2.2.1-{number}" for number in range(2, 7)} | {
    f"{section}-{number}" for section, count in SECTIONS.items() for number in range(1, count + 1)
}


def test_every_statement_is_on_the_page_once() -> None:
    found = Counter(re.findall(r"(?<![\w.-])\d\.\d+\.\d+-\d+\b(?!])", PAGE.partition("## ")[2]))
    assert set(found) == STATEMENTS
    assert not [statement for statement, count in found.items() if count > 1]


def test_every_test_on_the_page_exists() -> None:
    folders = (ROOT / "tests/unit/mqtt", ROOT / "tests/conformance/mqtt")
    texts = [path.read_text() for folder in folders for path in folder.glob("test_*.py")]
    names = set(re.findall(r"`(test_\w+)`", PAGE))
    assert names
    assert not [name for name in names if not any(f"def {name}(" in text for text in texts)]
