"""The canonical and the normalized text, to the last blank."""

from __future__ import annotations

from moldau.data.protobuf import ProtobufLanguage

LANGUAGE = ProtobufLanguage()

TEXT = """\
syntax = "proto3"; // all in one place
import "google/protobuf/timestamp.proto"; package shop;
import "confluent/meta.proto"; import public "google/protobuf/any.proto";
option java_package = "org.shop"; option (confluent.file_meta).doc = "a \\"shop\\"";
enum Kind { reserved 9, 5 to 7; B = 1;
  A = 0 [deprecated = true, (confluent.enum_value_meta) = {}]; }
service Orders { rpc Place(stream Order) returns (Order) { option deprecated = true; }
  rpc List(Order) returns (stream Order); }
message Order {
  message Line { string sku = 1; map<string, Line> parts = 3; }
  Kind kind = 3; reserved 20 to max, 9; reserved "old"; repeated Line lines = 2;
  optional google.protobuf.Timestamp at = 1 [json_name = "AT"];
  oneof payment { option (my.option) = 5; string card = 8; Cash cash = 4; }
  option deprecated = false;
  double price = 5 [(confluent.field_meta) = { tags: ["PII"], doc: 'x', params: [] },
    (confluent.field_meta).tags = "B", deprecated = true];
}
message Cash {}
"""

# The blank lines of what is nested have blanks, which an editor would remove: "__" stands for them.
CANONICAL = """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";
import "confluent/meta.proto";
import public "google/protobuf/any.proto";

option java_package = "org.shop";
option (confluent.file_meta).doc = "a \\"shop\\"";

message Order {
  reserved 20 to max, 9;
  reserved "old";

  option deprecated = false;

  Kind kind = 3;
  repeated Line lines = 2;
  optional google.protobuf.Timestamp at = 1 [json_name = "AT"];
  double price = 5 [
    (confluent.field_meta) = {
      tags: [
        "PII"
      ],
      doc: "x",
      params: [
      ]
    },
    (confluent.field_meta).tags = "B",
    deprecated = true
  ];

  oneof payment {
    option (my.option) = 5;
__
    string card = 8;
    Cash cash = 4;
  }

  message Line {
    string sku = 1;
    map<string, Line> parts = 3;
  }
}
message Cash {}
enum Kind {
  reserved 9, 5 to 7;
  B = 1;
  A = 0 [
    deprecated = true,
    (confluent.enum_value_meta) = {
    }
  ];
}

service Orders {
  rpc Place (stream Order) returns (Order) {
    option deprecated = true;
  };
  rpc List (Order) returns (stream Order);
}
""".replace("__", "  ")

NORMALIZED = """\
syntax = "proto3";
package shop;

import "confluent/meta.proto";
import "google/protobuf/timestamp.proto";
import public "google/protobuf/any.proto";

option (confluent.file_meta) = {
  doc: "a \\"shop\\""
};
option java_package = "org.shop";

message Order {
  reserved 9;
  reserved 20 to max;
  reserved "old";

  option deprecated = false;

  optional .google.protobuf.Timestamp at = 1 [json_name = "AT"];
  repeated .shop.Order.Line lines = 2;
  .shop.Kind kind = 3;
  double price = 5 [
    (confluent.field_meta) = {
      doc: "x",
      tags: [
        "PII",
        "B"
      ]
    },
    deprecated = true
  ];

  oneof payment {
    option (my.option) = 5;
__
    .shop.Cash cash = 4;
    string card = 8;
  }

  message Line {
    string sku = 1;
    map<string, .shop.Order.Line> parts = 3;
  }
}
message Cash {}
enum Kind {
  reserved 5 to 7;
  reserved 9;
  A = 0 [
    (confluent.enum_value_meta) = {
    },
    deprecated = true
  ];
  B = 1;
}

service Orders {
  rpc Place (stream .shop.Order) returns (.shop.Order) {
    option deprecated = true;
  };
  rpc List (.shop.Order) returns (stream .shop.Order);
}
""".replace("__", "  ")


def test_the_canonical_text() -> None:
    assert LANGUAGE.parse(TEXT).canonical_text == CANONICAL
    assert LANGUAGE.parse(CANONICAL).canonical_text == CANONICAL


def test_the_normalized_text() -> None:
    normalized = LANGUAGE.parse(TEXT).normalized()
    assert normalized.canonical_text == NORMALIZED
    assert normalized.normalized().canonical_text == NORMALIZED
    assert LANGUAGE.parse(NORMALIZED).differences(LANGUAGE.parse(TEXT)) == []


def test_without_extensions_only_confluents_custom_options_are_left() -> None:
    text = LANGUAGE.parse(
        'import "google/protobuf/descriptor.proto"; message M { option (mine) = 1; '
        "extensions 100 to 200; "
        "optional int32 a = 1 [(confluent.field_meta).doc = 'd', (mine) = 2];"
        "} extend google.protobuf.MessageOptions { optional int32 mine = 50000; }"
    ).formatted("ignore_extensions")
    assert text == (
        '\nimport "google/protobuf/descriptor.proto";\n\n'
        "message M {\n"
        '  optional int32 a = 1 [(confluent.field_meta).doc = "d"];\n'
        "}\n"
    )


def test_forms_that_the_language_does_not_have_are_the_canonical_one() -> None:
    schema = LANGUAGE.parse(TEXT)
    assert schema.formatted("") == schema.formatted("resolved") == CANONICAL


def test_a_map_that_is_written_as_descriptors_write_it_is_normalized_to_a_map() -> None:
    text = """syntax = "proto3"; message M { repeated AsEntry as = 1;
        message AsEntry { option map_entry = true; string key = 1; int32 value = 2; } }"""
    schema = LANGUAGE.parse(text)
    assert "message AsEntry {" in schema.canonical_text
    assert schema.normalized().canonical_text == (
        'syntax = "proto3";\n\nmessage M {\n  map<string, int32> as = 1;\n}\n'
    )


def test_oneofs_are_sorted_by_their_smallest_number() -> None:
    text = """syntax = "proto3"; message M {
        oneof second { int32 d = 4; } oneof first { int32 z = 9; int32 b = 2; } }"""
    assert LANGUAGE.parse(text).normalized().canonical_text == (
        'syntax = "proto3";\n\nmessage M {\n'
        "  oneof first {\n    int32 b = 2;\n    int32 z = 9;\n  }\n"
        "  oneof second {\n    int32 d = 4;\n  }\n}\n"
    )


def test_numbers_keep_their_value_when_they_are_normalized() -> None:
    defaults = {"-2.0": "-2", "0x1F": "31", "017": "15", "1e3": "1000", "3.14159": "3.14159",
                "1.50": "1.5", "10f": "10", "-inf": "-inf", "1e999": "1e999"}  # fmt: skip
    for number, expected in defaults.items():
        text = f"message M {{ optional double d = 1 [default = {number}]; }}"
        normalized = LANGUAGE.parse(text).normalized().canonical_text
        assert f"[default = {expected}]" in normalized, number


def test_bytes_as_a_default_have_quotes_only_where_they_need_them() -> None:
    text = r"""message M { optional bytes a = 1 [default = "abc"];
        optional bytes b = 2 [default = "a b\377"]; }"""
    schema = LANGUAGE.parse(text)
    assert "[default = abc]" in schema.canonical_text
    assert r'[default = "a b\377"]' in schema.canonical_text
    assert LANGUAGE.parse(schema.canonical_text).file == schema.file
