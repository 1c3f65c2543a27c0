"""`moldau delete-records`: delete records below given offsets, as kafka-delete-records does."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json, read_text
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import message_of, reporting_as
from moldau.cli.support.tables import Table, print_json
from moldau.client.admin import RecordsToDelete
from moldau.client.topics import TopicPartition

__all__ = ["add_arguments", "parse_offsets", "run"]

_VERSION = 1

_FORMAT = """\
format of the file:
  {"partitions": [{"topic": "orders", "partition": 0, "offset": 100}],
   "version": 1}

Records below the offset are deleted; -1 deletes all records of the partition.

examples:
  moldau delete-records --offset-json-file offsets.json
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _FORMAT
    add_common(parser)
    parser.add_argument(
        "--offset-json-file",
        required=True,
        metavar="FILE",
        help="JSON file with an offset for each partition",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with reporting_as(""):
        offsets = parse_offsets(read_text(arguments.offset_json_file))
        with open_admin(arguments) as admin:
            if not arguments.json:
                print("Executing records delete operation")
            results = admin.delete_records(
                {key: RecordsToDelete(offset) for key, offset in offsets.items()}, check=False
            )
    if arguments.json:
        print_json(
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    **(
                        {"error": message_of(results.errors[key])}
                        if key in results.errors
                        else {"lowWatermark": results[key].low_watermark}
                    ),
                }
                for key in offsets
            ]
        )
        return 0
    print("Records delete operation completed:")
    table = Table("partition", "low_watermark", "error", plain=_plain)
    for key in offsets:
        error = results.errors.get(key)
        if error is not None:
            table.add(key, "", message_of(error), style="red")
        else:
            table.add(key, results[key].low_watermark, "")
    table.show()
    # Kafka's tool reports failures of single partitions and exits with 0.
    return 0


def _plain(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for partition, low_watermark, error in rows:
        result = f"error: {error}" if error else f"low_watermark: {low_watermark}"
        yield f"partition: {partition}\t{result}"


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Offsets by partition, from Kafka's JSON; Refused if it is not valid."""
    try:
        document = json.loads(text)
    except ValueError:
        raise Refused("The input string is not a valid JSON") from None
    if not isinstance(document, dict):
        raise Refused("The input string is not a JSON object")
    version = document.get("version", _VERSION)
    if version != _VERSION:
        raise Refused(f"Not supported version field value {version}")
    if "partitions" not in document:
        raise Refused("Missing partitions field")
    if not isinstance(document["partitions"], list):
        raise Refused("The field partitions is not a list")
    entries = [_entry(each) for each in document["partitions"]]
    counts = Counter(key for key, _ in entries)
    twice = [str(key) for key, count in counts.items() if count > 1]
    if twice:
        raise Refused(f"Offset json file contains duplicate topic partitions: {','.join(twice)}")
    return dict(entries)


def _is_number(value: object, bits: int) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return value.bit_length() < bits


def _entry(entry: Any) -> tuple[TopicPartition, int]:
    if not isinstance(entry, dict):
        raise Refused(f"An entry of partitions is not an object: {json.dumps(entry)}")
    for field, bits in (("topic", None), ("partition", 32), ("offset", 64)):
        if field not in entry:
            raise Refused(f"No such field exists: `{field}` in {json.dumps(entry)}")
        if bits is None:
            if not isinstance(entry[field], str):
                raise Refused(f"The field {field} is not a string in {json.dumps(entry)}")
        elif not _is_number(entry[field], bits):
            raise Refused(
                f"The field {field} is not a number of {bits} bits in {json.dumps(entry)}"
            )
    return TopicPartition(entry["topic"], entry["partition"]), entry["offset"]
