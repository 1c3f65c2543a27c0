"""What a shell offers after each beginning of a line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moldau.cli.catalogue import TOOLS
from moldau.cli.main import main
from moldau.cli.setup import completion
from moldau.cli.setup.completion import candidates

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("moldau top", ["topics"]),
        ("moldau console-", ["console-producer", "console-consumer", "console-share-consumer"]),
        ("moldau topics --topic-", ["--topic-id"]),
        ("moldau topics --list --if", ["--if-exists", "--if-not-exists"]),
        ("moldau nothing --x", []),
        ("moldau storage f", ["format", "feature-dependencies"]),
        ("moldau storage format --st", ["--standalone"]),
        ("moldau cluster clu", ["cluster-id"]),
        ("moldau cluster --br", ["--brokers"]),
        ("moldau cluster list-endpoints --inc", ["--include-fenced-brokers"]),
        ("moldau server-stop --process-role ", ["broker", "controller"]),
        ("moldau server-stop --process-role=b", ["--process-role=broker"]),
        ("moldau completion z", ["zsh"]),
        ("kafka-topics.sh --topic-", ["--topic-id"]),
        ("bin/kafka-storage.sh f", ["format", "feature-dependencies"]),
        # Without a broker on the line there is nobody to ask.
        ("moldau topics --topic a", []),
        ("moldau topics --bootstrap-server 127.0.0.1:1 --topic ", []),
    ],
)
def test_candidates(line: str, found: list[str]) -> None:
    assert candidates(line) == found


def test_all_commands_at_the_beginning() -> None:
    assert set(TOOLS) < set(candidates("moldau "))


@pytest.mark.parametrize("option", ["--topic", "--topic="])
def test_names_come_from_the_broker_on_the_line(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def ask(arguments: object, kind: str) -> list[str]:
        asked.append((arguments.bootstrap_server, kind))  # type: ignore[attr-defined]
        return ["orders", "others", "payments"]

    monkeypatch.setattr(completion, "_ask", ask)
    glue = "" if option.endswith("=") else " "
    line = f"moldau topics --describe --bootstrap-server h:1 {option}{glue}o"
    prefix = option if option.endswith("=") else ""
    assert candidates(line) == [f"{prefix}orders", f"{prefix}others"]
    assert asked == [("h:1", "topics")]
    assert candidates("moldau consumer-groups --bootstrap-server h:1 --group p") == ["payments"]
    assert asked[-1] == ("h:1", "groups")


def test_a_failure_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(arguments: object, kind: str) -> list[str]:
        raise RuntimeError("no")

    monkeypatch.setattr(completion, "_ask", ask)
    assert candidates("moldau topics --bootstrap-server h:1 --topic ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str, capsys: Capture) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    assert "moldau completion --line" in shown
    assert " kafka-topics.sh " in shown


def test_bash_completes(tmp_path: object) -> None:
    program = f"""
        moldau() {{ {sys.executable} -m moldau.cli "$@"; }}
        eval "$(moldau completion bash)"
        COMP_LINE="moldau topi"; COMP_POINT=11; COMP_WORDS=(moldau topi); COMP_CWORD=1
        _moldau_complete; echo "${{COMPREPLY[@]}}"
        COMP_LINE="kafka-server-stop.sh --process-role=b"; COMP_POINT=${{#COMP_LINE}}
        _moldau_complete; echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    # Behind the equals sign the shell replaces the rest only.
    assert (done.stdout, done.stderr) == ("topics\nbroker\n", "")


def test_without_a_shell_it_says_which_there_are(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion"])
    assert ended.value.code == 1
    assert "bash, zsh, fish" in capsys.readouterr().err
