"""`moldau dump-log`: print log segments, indexes and snapshots, as kafka-dump-log does.

Files are only read, so it can be used while the broker runs. Errors in an index are printed
on stderr after everything else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from moldau.cli.files.dump_log_batches import BatchPrinter
from moldau.cli.files.dump_log_decoders import STRING_DECODER, make_decoder
from moldau.cli.files.dump_log_indexes import (
    IndexErrors,
    dump_index,
    dump_producer_snapshot,
    dump_time_index,
    dump_transaction_index,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.failures import ToolError

__all__ = ["add_arguments", "run"]

_INT32_MAX = 2**31 - 1
_DECODERS = ("offsets", "transaction-log", "cluster-metadata", "remote-log-metadata",
             "share-group-state")  # fmt: skip

_EXAMPLES = """\
examples:
  moldau dump-log --print-data-log --files orders-0/00000000000000000000.log
  moldau dump-log --offsets-decoder \\
    --files __consumer_offsets-3/00000000000000000000.log
  moldau dump-log --verify-index-only \\
    --files orders-0/00000000000000000000.index
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add = parser.add_argument
    add("--files", metavar="FILE,FILE", help="files to print (required)")
    add(
        "--print-data-log",
        action="store_true",
        help="print keys and values of records (implied by all decoders)",
    )
    add(
        "--deep-iteration",
        action="store_true",
        help="print the records of each batch (implied by --print-data-log)",
    )
    add(
        "--skip-record-metadata",
        action="store_true",
        help="print only the keys and values of records, and no control records",
    )
    add(
        "--verify-index-only",
        action="store_true",
        help="check indexes against their log and print only errors",
    )
    add(
        "--index-sanity-check",
        action="store_true",
        help="check indexes as a broker does when it starts, without printing them",
    )
    add(
        "--max-message-size",
        type=int,
        default=5 * 1024 * 1024,
        metavar="BYTES",
        help="maximum size of a batch to which an index points (default: %(default)s)",
    )
    add(
        "--max-bytes",
        type=int,
        default=_INT32_MAX,
        metavar="BYTES",
        help="read at most this much of each log (default: all)",
    )
    for part in ("key", "value"):
        add(
            f"--{part}-decoder-class",
            nargs="?",
            const=STRING_DECODER,
            metavar="CLASS",
            help=f"prints {part}s: one of Kafka's decoders by name, or a Python class by its path "
            "(default: text)",
        )
    decoders = parser.add_argument_group("decoders")
    for name in _DECODERS:
        decoders.add_argument(f"--{name}-decoder", action="store_true", help=f"{name} records")


def run(arguments: argparse.Namespace) -> int:
    arguments.parser.require(arguments, "--files")
    chosen = [name for name in _DECODERS if getattr(arguments, f"{name.replace('-', '_')}_decoder")]
    print_data = bool(
        arguments.print_data_log
        or chosen
        or arguments.key_decoder_class is not None
        or arguments.value_decoder_class is not None
    )
    printer = BatchPrinter(
        make_decoder(
            chosen[0] if chosen else None,
            arguments.key_decoder_class or STRING_DECODER,
            arguments.value_decoder_class or STRING_DECODER,
        ),
        deep=print_data or arguments.deep_iteration,
        print_data=print_data,
        skip_metadata=arguments.skip_record_metadata,
        max_bytes=arguments.max_bytes,
    )
    errors = IndexErrors()
    for name in arguments.files.split(","):
        print(f"Dumping {name}")
        try:
            _dump(name, arguments, printer, errors)
        except FileNotFoundError as error:
            raise ToolError(f"{error.filename}: there is no such file") from None
        except OSError as error:
            raise ToolError(f"{name}: {error.strerror or error}") from None
    sys.stdout.flush()
    errors.show()
    printer.show_gaps()
    return 0


def _dump(
    name: str, arguments: argparse.Namespace, printer: BatchPrinter, errors: IndexErrors
) -> None:
    path = Path(name)
    sanity_only, verify_only = arguments.index_sanity_check, arguments.verify_index_only
    match path.name[path.name.rfind(".") :] if "." in path.name else "":
        case ".log" | ".checkpoint":
            printer.dump(path)
        case ".index":
            dump_index(
                path,
                errors,
                sanity_only=sanity_only,
                verify_only=verify_only,
                max_message_size=arguments.max_message_size,
            )
        case ".timeindex":
            dump_time_index(path, errors, sanity_only=sanity_only, verify_only=verify_only)
        case ".snapshot":
            dump_producer_snapshot(path)
        case ".txnindex":
            dump_transaction_index(path)
        case _:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
