"""What README, docs and the start message tell a stranger to copy works as written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import ROOT, BrokerProcess, moldau
from support.waiting import eventually


def readme_block(language: str, containing: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    [block] = [block for block in blocks if containing in block]
    return str(block)


def run(command: list[str] | str, *, shell: bool = False, at: str | None = None) -> str:
    """What a command prints; `at` is the broker that stands for the one on 127.0.0.1:9092."""
    done = subprocess.run(
        command,
        shell=shell,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ if at is None else {**os.environ, "MOLDAU_BOOTSTRAP_SERVERS": at},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_python_example_of_the_readme(broker: BrokerProcess) -> None:
    program = readme_block("python", "Consumer").replace("127.0.0.1:9092", broker.bootstrap)
    assert run([sys.executable, "-c", program]).strip() == "hello"
    described, consumed = (
        run([sys.executable, "-m", "moldau.cli", *line.split()[1:]], at=broker.bootstrap)
        for line in readme_block("sh", "moldau topics --describe").splitlines()
    )
    assert "Topic: greetings\tPartition: 0\tLeader: 1\t" in described
    assert consumed == "hello\n"


def test_the_test_of_the_readme(tmp_path: Path) -> None:
    test = tmp_path / "test_orders.py"
    test.write_text(readme_block("python", "moldau_broker"))
    # Moldau itself does without pytest, so the steps before have to name it.
    before = (ROOT / "README.md").read_text().partition("(moldau_broker)")[0]
    assert "`pip install pytest`" in before
    assert "1 passed" in run([sys.executable, "-m", "pytest", "-q", str(test)])


@pytest.mark.parametrize(
    ("document", "output"),
    [
        ("groups.md", "[b'paint the fence']"),
        ("transactions.md", "['alice -10', 'bob +10']"),
    ],
)
def test_the_python_examples_of_the_documentation(
    broker: BrokerProcess, document: str, output: str
) -> None:
    text = (ROOT / "docs" / document).read_text()
    [program] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    program = program.replace("127.0.0.1:9092", broker.bootstrap)
    assert run([sys.executable, "-c", program]).strip() == output


def test_the_commands_of_the_readme_are_targets() -> None:
    commands = re.findall(r"^make (\w+)", readme_block("sh", "make run"), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert commands == ["run", "test"]
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_commands_of_the_readme_need_no_installed_package() -> None:
    """After `make run` the README's lines work: nothing is installed by a name no index has."""
    text = (ROOT / "README.md").read_text()
    assert text.index(". .venv/bin/activate") < text.index("\nmoldau topics")
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        assert "pip install 'moldau[" not in document.read_text(), document


def test_links_of_the_documentation_lead_somewhere() -> None:
    examples = sorted((ROOT / "examples").rglob("README.md"))
    documents = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")]
    for document in [*documents, *examples]:
        # Without blocks and words of code, in which brackets mean something else.
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_lines_of_the_start_message(tmp_path: Path) -> None:
    with moldau(tmp_path) as process:
        eventually(lambda: "Ctrl-C stops it." in process.log.read_text(), what="it says it is up")
        ready = process.log.read_text()
        assert f"PLAINTEXT://{process.bootstrap}" in ready
        [python_line] = re.findall(r"^  \S*python\S* (-c .*)$", ready, re.MULTILINE)
        run(f"{sys.executable} {python_line}", shell=True)
        [produce, consume] = [
            f"{before}{sys.executable} -m moldau.cli {words}"
            for before, words in re.findall(
                r"^  (echo hello \| )?\S.* (console-\w+ .*)$", ready, re.MULTILINE
            )
        ]
        run(produce, shell=True)
        assert run(consume, shell=True) == "hello\n"
