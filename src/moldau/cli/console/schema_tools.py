"""What the console tools with schemas share: Kafka's tool with Confluent's reader or formatter."""

from __future__ import annotations

import argparse
from typing import Final

from moldau.cli.console import console_consumer, console_producer
from moldau.cli.support.arguments import Parser

__all__ = [
    "add_consumer_arguments",
    "add_producer_arguments",
    "run_producer",
]

#: The part of Confluent's class names, by the word in the tool's name.
_CLASSES: Final = {
    "avro": "io.confluent.kafka.formatter.Avro",
    "json-schema": "io.confluent.kafka.formatter.json.JsonSchema",
    "protobuf": "io.confluent.kafka.formatter.protobuf.Protobuf",
}
_SCHEMAS: Final = {
    "avro": '{"type":"string"}',
    "json-schema": '{"type":"string"}',
    "protobuf": 'syntax="proto3"; message M { string f = 1; }',
}


def add_producer_arguments(parser: Parser, word: str) -> None:
    console_producer.add_arguments(parser)
    parser.epilog = f"""\
Lines are JSON. The properties are those of Confluent's reader: schema.registry.url (default:
http://localhost:8081), value.schema, value.schema.file or value.schema.id, key.schema,
key.schema.file or key.schema.id, value.refs, key.refs, key.serializer, auto.register,
use.latest.version, and those of the console producer.

examples:
  moldau {word}-console-producer --topic orders \\
    --property value.schema='{_SCHEMAS[word]}'
"""
    # Old tutorials give the brokers under another name.
    parser.add_deprecated("--broker-list", instead="--bootstrap-server")
    parser._option_string_actions["--bootstrap-server"].required = False
    parser.set_defaults(line_reader=f"{_CLASSES[word]}MessageReader")


def run_producer(arguments: argparse.Namespace) -> int:
    arguments.parser.require(arguments, "--bootstrap-server")
    return console_producer.run(arguments)


def add_consumer_arguments(parser: Parser, word: str) -> None:
    console_consumer.add_arguments(parser)
    parser.epilog = f"""\
Keys and values are printed as JSON. The properties are those of Confluent's formatter:
schema.registry.url (default: http://localhost:8081), print.key, print.timestamp, print.partition,
print.offset, print.headers, print.schema.ids (true or false), key.separator, line.separator,
headers.separator, schema.id.separator, key.deserializer.

examples:
  moldau {word}-console-consumer --topic orders --from-beginning \\
    --property print.schema.ids=true
"""
    parser.set_defaults(formatter=f"{_CLASSES[word]}MessageFormatter")
