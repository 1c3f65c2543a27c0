"""Files that use the whole language, to compare with protoc. They import one another by name."""

from __future__ import annotations

TEXTS = {
    "empty.proto": "",
    "scalars.proto": """
        syntax = "proto3";
        package all.scalars;
        message Scalars {
          double f_double = 1; float f_float = 2; int32 f_int32 = 3; int64 f_int64 = 4;
          uint32 f_uint32 = 5; uint64 f_uint64 = 6; sint32 f_sint32 = 7; sint64 f_sint64 = 8;
          fixed32 f_fixed32 = 9; fixed64 f_fixed64 = 10; sfixed32 f_sfixed32 = 11;
          sfixed64 f_sfixed64 = 12; bool f_bool = 13; string f_string = 14; bytes f_bytes = 15;
          repeated int32 packed = 16; repeated int32 unpacked = 0x11 [packed = false];
          repeated string names = 022; optional int32 maybe = 19; optional string _maybe = 20;
          string explicit = 21 [json_name = "JSON"]; int32 a__b_c = 22; int32 Big_Case = 23;
        }
    """,
    "comments.proto": """
        // before everything
        syntax /* in */ = "proto3"; // behind
        /* a block
         * of lines "with quotes" */
        package /**/ comments /* between */ ;
        ;
        message M { /* nothing */ ; int32 x = 1; // end of line
        // } not an end
        };
    """,
    "maps.proto": """
        syntax = "proto3";
        package maps;
        message Holder {
          map<string, int32> counts = 1;
          message Inner { map < int64 , Holder > by_id = 7; }
          map<bool, .maps.Holder.Inner> inner_by_flag = 2;
          map<sfixed32, Color> colours_ = 3;
          enum Color { NONE = 0; RED = 1; }
        }
    """,
    "scopes.proto": """
        syntax = "proto3";
        package outer.inner;
        message A { message B { message C {} C c = 1; B b = 2; A a = 3; } B.C c = 1; A.B b = 2; }
        message B { A.B ab = 1; inner.A a = 2; outer.inner.B b = 3; .outer.inner.A top = 4; }
        message Use { B b = 1; E e = 2; enum E { ZERO = 0; } message B { int32 own = 1; } }
        enum E { NULL = 0; }
    """,
    "oneofs.proto": """
        syntax = "proto3";
        message M {
          int32 first = 9;
          oneof choice { string name = 1; M child = 2; bytes data = 3 [deprecated = true]; }
          optional int32 maybe = 4;
          oneof other { int32 a = 5; }
          optional M second = 6;
          int32 last = 7;
        }
    """,
    "enums.proto": """
        syntax = "proto2";
        enum E {
          option allow_alias = true;
          reserved -5 to -2, 10, 20 to max; reserved "OLD", 'OLDER';
          A = 0; B = 1; C = 1 [deprecated = true]; MIN = -1; option_ = 7; HEX = 0x8; OCTAL = 011;
        }
        message M { enum E { X = 1; } optional E e = 1 [default = X]; optional .E top = 2; }
    """,
    "defaults.proto": r"""
        syntax = "proto2";
        message D {
          optional int32 i = 1 [default = -42];
          optional uint64 u = 2 [default = 0xFFFFFFFFFFFFFFFF];
          optional int64 o = 3 [default = -0777];
          optional double d = 4 [default = 1.5e10];
          optional double big = 5 [default = 1e300];
          optional float f = 6 [default = 0.1];
          optional float inf = 7 [default = inf];
          optional double ninf = 8 [default = -inf];
          optional float nan = 9 [default = nan];
          optional bool b = 10 [default = true];
          optional string s = 11 [default = "a\n\"q\"\t\x41\101 \u00e4"];
          optional bytes y = 12 [default = "\001\xff\\\'abc\?"];
          optional string adjacent = 13 [default = "one" ' two' "" "three"];
          optional double whole = 14 [default = 3];
          optional float third = 15 [default = 0.3333333333333333];
          optional double pi = 16 [default = 3.141592653589793238];
          optional string e = 17 [default = ""];
          optional double neg = 18 [default = - 2.5];
          required sint32 last = 19 [default = -2147483648];
          optional double dot = 20 [default = .5];
          optional double trailing = 21 [default = 5.];
        }
    """,
    "groups.proto": """
        syntax = "proto2";
        package old;
        message Search {
          repeated group Result = 1 { required string url = 2; optional group Deep = 3 {
            optional int32 n = 1; } enum Kind { A = 1; } optional Kind kind = 4; }
          oneof choice { group Either = 5 { optional int32 x = 1; } string or = 6; }
          extensions 100 to 199;
          extensions 500, 1000 to max;
        }
        extend Search {
          optional group Extra = 100 { optional int32 y = 1; }
          repeated string more = 101;
        }
    """,
    "reserved.proto": """
        syntax = "proto3";
        message M {
          reserved 2, 15, 9 to 11, 40 to max;
          reserved "foo", 'bar';
          int32 message = 1; int32 optional = 3; int32 group = 4; int32 oneof = 5; int32 to = 6;
          int32 max = 7; int32 reserved = 8; int32 rpc = 12; int32 syntax = 13; int32 map = 14;
        }
        message reserved {}
    """,
    "services.proto": """
        syntax = "proto3";
        package svc;
        message Request {}
        service Plain {
          option deprecated = true;
          rpc One(Request) returns (.svc.Request);
          rpc Two(stream Request) returns (stream Request) {
            option idempotency_level = IDEMPOTENT; }
          rpc Three(stream .svc.Request) returns (Request) {}
          rpc Four(svc.Request) returns (stream svc.Request) { option deprecated = true; };
        }
    """,
    "extending.proto": """
        syntax = "proto2";
        package ext;
        import "google/protobuf/descriptor.proto";
        import public "scalars.proto";
        extend google.protobuf.FieldOptions {
          optional string text = 50001;
          repeated int32 numbers = 50002;
          optional Settings settings = 50003;
          repeated Settings many = 50004;
          optional bytes raw = 50005;
          optional double ratio = 50006;
          optional Level level = 50007;
        }
        extend google.protobuf.FileOptions { optional Settings file_settings = 50001; }
        extend google.protobuf.MessageOptions { optional Settings message_settings = 50001; }
        extend google.protobuf.EnumOptions { optional bool enum_flag = 50001; }
        extend google.protobuf.EnumValueOptions { optional string value_text = 50001; }
        extend google.protobuf.OneofOptions { optional int32 oneof_number = 50001; }
        extend google.protobuf.ServiceOptions { optional string service_text = 50001; }
        extend google.protobuf.MethodOptions { optional Settings method_settings = 50001; }
        extend google.protobuf.ExtensionRangeOptions { optional string range_text = 50001; }
        enum Level { LOW = 0; HIGH = 5; }
        message Settings {
          optional string name = 1; repeated int64 values = 2; optional Settings next = 3;
          map<string, int32> sizes = 4; optional Level level = 5; optional bool on = 6;
          optional float ratio = 7; repeated Settings list = 8;
          extensions 100 to 200;
          extend Settings { optional string nested_extension = 100; }
        }
        extend Settings { optional int32 outer_extension = 101; }
    """,
    "options.proto": r"""
        syntax = "proto2";
        package use.options;
        import "extending.proto";
        option java_package = "org.example"; option java_multiple_files = true;
        option optimize_for = SPEED; option cc_enable_arenas = false;
        option (ext.file_settings).name = "by path";
        option (ext.file_settings).next.values = 1;
        option (ext.file_settings).next.values = 2;
        option (.ext.file_settings).level = HIGH;
        message M {
          option (ext.message_settings) = {
            name: "aggregate" 'joined', values: [1, 2, 0x3], values: -4;
            next { name: 'inner' on: true ratio: -1.5e3 next: < level: LOW > }
            sizes { key: "a" value: 1 } sizes: { key: "b", value: 2 }
            [ext.Settings.nested_extension]: "x" [ext.outer_extension]: 7
            list: [{ name: "l1" }, { on: false }]
          };
          option deprecated = true;
          optional string a = 1 [(ext.text) = "t\001\xc3\xa4", (ext.numbers) = 1,
            (ext.numbers) = -2];
          optional int32 b = 2 [deprecated = true, (ext.settings).next.next.name = "deep",
            (ext.settings).(ext.outer_extension) = 5, (ext.ratio) = 1, (ext.level) = HIGH,
            (ext.raw) = "\377\000", jstype = JS_NORMAL];
          optional int64 c = 3 [(ext.many) = { name: "1" }, (ext.many) = {}, jstype = JS_STRING];
          oneof o { option (ext.oneof_number) = 3; int32 d = 4 [(ext.ratio) = -inf]; }
          extensions 100 to 110 [(ext.range_text) = "r"];
        }
        enum E { option (ext.enum_flag) = true; V = 0 [(ext.value_text) = "v", deprecated = true]; }
        service S {
          option (ext.service_text) = "s";
          rpc R(M) returns (M) { option (ext.method_settings) = { on: true }; }
        }
    """,
    "imports.proto": """
        syntax = "proto3";
        package imports;
        import "extending.proto";
        import weak "maps.proto";
        import "google/protobuf/timestamp.proto";
        import "google/protobuf/any.proto";
        import "google/protobuf/struct.proto";
        message M {
          google.protobuf.Timestamp at = 1; google.protobuf.Any any = 2;
          map<string, google.protobuf.Value> values = 3; all.scalars.Scalars through_public = 4;
          maps.Holder weakly = 5; google.protobuf.NullValue none = 6;
        }
    """,
    "editions.proto": """
        edition = "2023";
        package ed;
        option features.field_presence = IMPLICIT;
        option features.enum_type = CLOSED;
        message M {
          reserved old, older;
          int32 a = 1; string b = 2 [features.field_presence = EXPLICIT];
          repeated int32 c = 3 [features.repeated_field_encoding = EXPANDED];
          M child = 4 [features.message_encoding = DELIMITED];
          bytes d = 5 [features = { field_presence: LEGACY_REQUIRED }];
          map<string, M> e = 6;
        }
        enum E { option features.enum_type = OPEN; ZERO = 0; reserved GONE; }
    """,
    "edition_2024.proto": """
        edition = "2024";
        package later;
        export message Shown { int32 a = 1; Hidden hidden = 2; Hidden.Inner inner = 3; }
        local message Hidden { export enum Inner { ZERO = 0; } string local = 1; bool export = 2; }
        local enum Small { NONE = 0; }
    """,
}
