"""`moldau sql test`: statements, ASSERTs and records in this process, without a cluster."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import Failure

if TYPE_CHECKING:
    from moldau.sql.functions.registry import FunctionRegistry

__all__ = ["add_arguments", "run"]

_EXAMPLES = """\
examples:
  moldau sql test statements.sql
  moldau sql test tests/*.sql
  moldau sql test -s statements.sql -i input.json -o output.json
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "files", nargs="*", metavar="FILE",
        help="statements and ASSERTs; lines '--@test: NAME' begin tests of their own",
    )  # fmt: skip
    parser.add_argument(
        "-s", "--sql-file", metavar="FILE", help="statements, as ksql-test-runner takes them"
    )
    parser.add_argument("-i", "--input-file", metavar="JSON", help="the records to begin with")
    parser.add_argument("-o", "--output-file", metavar="JSON", help="the records that must come")
    parser.add_argument(
        "-td", "--test-directory", metavar="DIRECTORY", help="run the .sql files of a directory"
    )
    parser.add_argument(
        "--extension-dir", metavar="DIRECTORY",
        help="functions of your own in Python: the .py files of a directory",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    given = (arguments.sql_file, arguments.input_file, arguments.output_file)
    if arguments.input_file is not None or arguments.output_file is not None:
        if None in given:
            raise Failure("--sql-file, --input-file and --output-file belong together")
        return _run_records(*given, arguments.extension_dir)
    paths = [Path(each) for each in arguments.files]
    if arguments.sql_file is not None:
        paths.append(Path(arguments.sql_file))
    if arguments.test_directory is not None:
        folder = Path(arguments.test_directory)
        if not folder.is_dir():
            raise Failure(f"{folder} is not a directory")
        paths += sorted(folder.rglob("*.sql"))
    if not paths:
        raise Failure("there is nothing to test: name a file of statements and ASSERTs")
    return _run_scripts(paths, arguments.extension_dir)


def _text(path: Path | str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Failure(f"{path}: the file is not UTF-8") from None


def _run_scripts(paths: list[Path], extensions: str | None) -> int:
    from moldau.sql.errors import KsqlException
    from moldau.sql.formats import format_for
    from moldau.sql.testing.files import run_script_test, script_tests

    failed = count = 0
    functions = _functions(extensions)
    for path in paths:
        tests = script_tests(_text(path), path.name)
        for test in tests:
            name = test.name if len(tests) == 1 else f"{path.name}: {test.name}"

            def script(other: str, base: Path = path) -> str:
                try:
                    return _text(base.parent / other)
                except Failure as error:
                    raise KsqlException(f"RUN SCRIPT: {error}") from None

            def one() -> None:
                run_script_test(test, functions=functions, formats=format_for, read_script=script)  # noqa: B023

            count += 1
            failed += not _passed(name, one)
    print(f"{count - failed} of {count} passed")
    return 1 if failed else 0


def _run_records(sql: str, inputs: str, outputs: str, extensions: str | None) -> int:
    from moldau.sql.formats import format_for
    from moldau.sql.testing.files import run_records

    texts = [_text(each) for each in (sql, inputs, outputs)]
    functions = _functions(extensions)

    def one() -> None:
        run_records(*texts, functions=functions, formats=format_for)

    if _passed(Path(sql).name, one):
        print("\t >>> Test passed!")
        return 0
    print("\t>>>>> Test failed")
    return 1


def _functions(extensions: str | None) -> FunctionRegistry:
    from moldau.sql.functions.registry import built_in
    from moldau.sql.functions.sandbox.loading import EXTENSION_DIR, add_extensions

    if extensions is None:
        return built_in()
    if not Path(extensions).is_dir():
        raise Failure(f"--extension-dir {extensions} is not a directory")
    return add_extensions(built_in(), {EXTENSION_DIR: extensions})


def _passed(name: str, test: Callable[[], None]) -> bool:
    """Run a test and say how it went."""
    from moldau.sql.errors import KsqlException, KsqlStatementException

    start = time.perf_counter()
    try:
        test()
    except KsqlException as error:
        unlogged = error.unlogged if isinstance(error, KsqlStatementException) else str(error)
        print(f"FAILED {name}\n    " + unlogged.replace("\n", "\n    "))
        return False
    print(f"passed {name} ({(time.perf_counter() - start) * 1000:.0f} ms)")
    return True
