"""`moldau metadata-shell`: browse a snapshot or a log segment of the cluster's metadata.

With further words one command is run; without, a shell reads them. The file is only read and
never locked, so the snapshot of a running node may be looked at, too.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from moldau.broker.metadata.machine.delta import MetadataDelta
from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.raft.machine.batches import decode_metadata_batches
from moldau.broker.raft.machine.errors import MetadataError
from moldau.cli.files.machine.metadata_tree import (
    Directory,
    Found,
    Provenance,
    find_nodes,
    print_node,
    root_of,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import ToolError
from moldau.config.suggestions import did_you_mean

__all__ = ["Shell", "add_arguments", "load_tree", "run"]

_EXAMPLES = """\
examples:
  moldau metadata-shell -s DATA/__cluster_metadata-0/00000000000000000000.log
  moldau metadata-shell -s FILE.checkpoint ls /image/topics/byName
  moldau metadata-shell -s FILE.checkpoint cat /image/cluster/brokers/1
  moldau metadata-shell -s FILE.checkpoint tree /image/configs
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--snapshot",
        "-s",
        required=True,
        metavar="FILE",
        help="snapshot (.checkpoint) or segment (.log) of __cluster_metadata-0",
    )
    parser.add_argument(
        "command",
        nargs="*",
        metavar="WORD",
        help="command to run, instead of the interactive shell: "
        + ", ".join(c.name for c in COMMANDS if not c.shell_only),
    )


def run(arguments: argparse.Namespace) -> int:
    interactive = not arguments.command
    if interactive:
        print("Loading...")
    root = load_tree(arguments.snapshot)
    if not interactive:
        Shell(root, print).execute(arguments.command)
        return 0
    print("Starting...")
    shell = Shell(root, print, width=shutil.get_terminal_size().columns, interactive=True)
    print("[ Kafka Metadata Shell ]")
    _read_commands(shell)
    return 0


def load_tree(path: str) -> Directory:
    """The metadata in the file as a tree; ToolError if it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}") from None
    image = MetadataImage()
    provenance = Provenance()
    first_offset: int | None = None
    try:
        for batch in decode_metadata_batches(memoryview(data), path):
            first_offset = batch.base_offset if first_offset is None else first_offset
            image.replay_all(batch.records, MetadataDelta())
            provenance = Provenance(batch.next_offset - 1, batch.epoch, batch.append_time_ms)
    except MetadataError as error:
        hint = ""
        if first_offset:
            hint = (
                f". The file begins at offset {first_offset}: what came before is in the newest "
                ".checkpoint beside it, read that one"
            )
        raise ToolError(f"Error: {error}{hint}") from None
    if first_offset is None:
        raise ToolError(f"Error: {path} contains no records")
    return root_of(image, provenance)


@dataclass(slots=True)
class Shell:
    """Runs commands on a tree; remembers where it is and what was typed."""

    root: Directory
    write: Callable[[str], None]
    #: Columns of the screen; None prints one name per line.
    width: int | None = None
    interactive: bool = False
    working_directory: str = "/"
    history: list[str] = field(default_factory=list)
    ended: bool = False

    def execute(self, words: Sequence[str]) -> None:
        """Run one command; errors are part of its output."""
        if not words:
            return
        name, *arguments = words
        usable = {c.name: c for c in COMMANDS if self.interactive or not c.shell_only}
        command = usable.get(name)
        if command is None:
            guess = did_you_mean(name, usable) or f" Choose from {', '.join(usable)}."
            self.write(f"invalid choice: '{name}'.{guess}")
        elif len(arguments) < command.words_min:
            self.write(f"{name}: too few arguments. {command.usage}")
        elif command.words_max is not None and len(arguments) > command.words_max:
            self.write(
                f"{name}: unrecognized arguments: {' '.join(arguments[command.words_max :])}"
            )
        else:
            command.handler(self, arguments)

    def found(self, target: str) -> list[Found]:
        return list(find_nodes(self.root, target, self.working_directory))

    def complete(self, line: str) -> list[str]:
        """What the last word of a line may become."""
        before, _, word = line.rpartition(" ")
        if not before.strip():
            return [c.name for c in COMMANDS if c.name.startswith(word)]
        if before.split()[0] == "man":
            return [c.name for c in COMMANDS if c.name.startswith(word)]
        folder, slash, prefix = word.rpartition("/")
        start = f"{folder}{slash}" or "."
        candidates = []
        for found in self.found(start):
            if isinstance(found.node, str):
                continue
            for name in found.node.names:
                if name.startswith(prefix):
                    suffix = "/" if isinstance(found.node.child(name), Directory) else ""
                    candidates.append(f"{folder}{slash}{name}{suffix}")
        return candidates


def _cat(shell: Shell, targets: Sequence[str]) -> None:
    for target in targets:
        nodes = shell.found(target)
        if not nodes:
            shell.write(f"cat: {target}: No such file or directory.")
        for found in nodes:
            if isinstance(found.node, str):
                shell.write(found.node)
            else:
                shell.write(f"cat: {target}: Is a directory")


def _cd(shell: Shell, arguments: Sequence[str]) -> None:
    target = arguments[0] if arguments else "/"
    nodes = shell.found(target)
    if not nodes:
        shell.write(f"cd: {target}: no such directory.")
    for found in nodes:
        if isinstance(found.node, str):
            shell.write(f"cd: {target}: not a directory.")
        else:
            shell.working_directory = found.absolute


def _exit(shell: Shell, arguments: Sequence[str]) -> None:
    shell.ended = True


def _find(shell: Shell, paths: Sequence[str]) -> None:
    for path in paths or ["."]:
        nodes = shell.found(path)
        if not nodes:
            shell.write(f"find: {path}: no such file or directory.")
        for found in nodes:
            _find_below(shell, path, found.node)


def _find_below(shell: Shell, path: str, node: Directory | str) -> None:
    shell.write(path)
    if isinstance(node, str):
        return
    for name in node.names:
        child = node.child(name)
        if child is not None:
            _find_below(shell, f"{path.rstrip('/')}/{name}", child)


def _help(shell: Shell, arguments: Sequence[str]) -> None:
    shell.write("Welcome to the metadata shell. It reads; nothing can be changed here.\n")
    for command in COMMANDS:
        shell.write(f"  {command.name:<10}{command.description}")


def _history(shell: Shell, arguments: Sequence[str]) -> None:
    count = len(shell.history)
    if arguments:
        if not arguments[0].lstrip("-").isdigit():
            shell.write(f"history: {arguments[0]} is not a number of entries")
            return
        count = max(0, int(arguments[0]))
    first = max(0, len(shell.history) - count)
    for number, line in enumerate(shell.history[first:], first):
        shell.write(f"{number:5d}  {line}")


def _ls(shell: Shell, targets: Sequence[str]) -> None:
    files: list[str] = []
    folders: list[tuple[str, list[str]]] = []
    for target in targets or ["."]:
        nodes = shell.found(target)
        if not nodes:
            shell.write(f"ls: {target}: no such file or directory.")
        for found in nodes:
            if isinstance(found.node, str):
                files.append(found.name)
            else:
                folders.append((found.name, found.node.names))
    _write_columns(shell, files)
    titled = bool(files) or len(folders) > 1
    separated = bool(files)
    for name, entries in folders:
        if titled and entries:
            shell.write(f"\n{name}:" if separated else f"{name}:")
            separated = True
        _write_columns(shell, entries)


def _write_columns(shell: Shell, entries: Sequence[str]) -> None:
    """Down and then across, in as many columns as the screen has room for."""
    if not entries:
        return
    for columns in range(max(1, (shell.width or 0) // 4), 0, -1):
        per_column = -(-len(entries) // columns)
        parts = [entries[at : at + per_column] for at in range(0, len(entries), per_column)]
        widths = [max(map(len, part)) + 2 for part in parts]
        if columns == 1 or (len(parts) == columns and sum(widths) <= (shell.width or 0)):
            break
    for line in range(per_column):
        cells = [
            part[line].ljust(width) if number < len(parts) - 1 else part[line]
            for number, (part, width) in enumerate(zip(parts, widths, strict=True))
            if line < len(part)
        ]
        shell.write("".join(cells))


def _man(shell: Shell, arguments: Sequence[str]) -> None:
    for command in COMMANDS:
        if command.name == arguments[0]:
            shell.write(f"{command.name}: {command.description}\n\n{command.usage}")
            return
    shell.write(f"man: unknown command {arguments[0]}. Type help to get a list of commands.")


def _pwd(shell: Shell, arguments: Sequence[str]) -> None:
    shell.write(shell.working_directory)


def _tree(shell: Shell, targets: Sequence[str]) -> None:
    for target in targets:
        nodes = shell.found(target)
        if not nodes:
            shell.write(f"tree: {target}: No such file or directory.")
        for found in nodes:
            print_node(found.node, shell.write)


class Command(NamedTuple):
    """`words_max` is None where any number may follow."""

    name: str
    description: str
    words: str
    handler: Callable[[Shell, Sequence[str]], None]
    words_min: int = 0
    words_max: int | None = 0
    shell_only: bool = False

    @property
    def usage(self) -> str:
        return f"usage: {self.name} {self.words}".rstrip()


COMMANDS = (
    Command("cat", "print metadata files", "FILE [FILE ...]", _cat, 1, None),
    Command("cd", "change the directory", "[DIRECTORY]", _cd, 0, 1, True),
    Command("exit", "leave the shell", "", _exit, shell_only=True),
    Command("find", "print everything below paths", "[PATH ...]", _find, 0, None),
    Command("help", "list the commands", "", _help, shell_only=True),
    Command("history", "print what was typed", "[COUNT]", _history, 0, 1, True),
    Command("ls", "list directories", "[PATH ...]", _ls, 0, None),
    Command("man", "show the help of a command", "COMMAND", _man, 1, 1, True),
    Command("pwd", "print the current directory", "", _pwd, shell_only=True),
    Command("tree", "print directories with all in them", "PATH [PATH ...]", _tree, 1, None),
)  # fmt: skip


def _read_commands(shell: Shell) -> None:
    _install_completion(shell)
    while not shell.ended:
        try:
            line = input(">> ")
        except KeyboardInterrupt:
            print("^C")
            continue
        except EOFError:
            return
        if not line.strip():
            continue
        shell.history.append(line)
        try:
            words = shlex.split(line)
        except ValueError as error:
            print(f"{line}: {error}")
            continue
        shell.execute(words)
        sys.stdout.flush()


def _install_completion(shell: Shell) -> None:
    try:
        import readline
    except ImportError:
        # Python was built without it: lines cannot be edited or completed.
        return
    candidates: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            candidates[:] = shell.complete(readline.get_line_buffer()[: readline.get_endidx()])
        return candidates[state] if state < len(candidates) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
