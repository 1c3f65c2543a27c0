// Runs cases in the form of the semantic vectors of Kafka Streams on its own TopologyTestDriver: what
// tests/unit/streams/vectors/program.py does with ours. All that is written is printed as bytes,
// changelogs and internal topics included.
//
// Standard input, one JSON object per line: {"topology": [...], "config": {...}, "inputs": [...]}.
// Output, one per line: {"describe", "error", "steps": [["topic key value timestamp [headers]", ...]],
// "dropped"}.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.test.TestRecord;

@SuppressWarnings({"rawtypes", "unchecked"})
public class StreamsCases {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();

    private final StreamsBuilder builder = new StreamsBuilder();
    private final Map<String, Object> made = new HashMap<>();
    private final Set<String> longs = new HashSet<>();

    private static Duration ms(long value) {
        return Duration.ofMillis(value);
    }

    private static String text(JsonNode op, String name) {
        return op.has(name) && !op.get(name).isNull() ? op.get(name).asText() : null;
    }

    // Functions.

    private static Predicate<Object, Object> predicate(String given) {
        String[] parts = given.split(":", 2);
        return (key, value) -> switch (parts[0]) {
            case "value_gt" -> value != null && Long.parseLong(value.toString()) > Long.parseLong(parts[1]);
            case "value_even" -> value != null && Long.parseLong(value.toString()) % 2 == 0;
            case "value_startswith" -> value != null && value.toString().startsWith(parts[1]);
            case "value_not_null" -> value != null;
            case "key_eq" -> parts[1].equals(key);
            case "true" -> true;
            case "false" -> false;
            default -> throw new IllegalArgumentException(given);
        };
    }

    private static Object mapped(String given, Object value) {
        String[] parts = given.split(":", 2);
        String word = value == null ? null : value.toString();
        return switch (parts[0]) {
            case "upper" -> word == null ? null : word.toUpperCase(Locale.ROOT);
            case "append" -> word + parts[1];
            case "int_add" -> word == null ? null : Long.toString(Long.parseLong(word) + Long.parseLong(parts[1]));
            case "null_if" -> parts[1].equals(word) ? null : value;
            case "identity", "value" -> value;
            case "before" -> word == null ? null : word.split(java.util.regex.Pattern.quote(parts[1]), 2)[0];
            case "after" -> word == null || !word.contains(parts[1]) ? null
                : word.split(java.util.regex.Pattern.quote(parts[1]), 2)[1];
            case "to_null" -> null;
            case "const" -> parts[1];
            default -> throw new IllegalArgumentException(given);
        };
    }

    private static Object keyed(String given, Object key, Object value) {
        if (given.equals("key")) {
            return key;
        }
        if (given.startsWith("key_append:")) {
            return key + given.substring("key_append:".length());
        }
        Object found = mapped(given, value);
        return found instanceof Long ? found.toString() : found;
    }

    private static Object combined(String given, Object one, Object two) {
        return switch (given) {
            case "concat+" -> one + "+" + two;
            case "concat-" -> one + "-" + two;
            case "sum" -> Long.toString(Long.parseLong(one.toString()) + Long.parseLong(two.toString()));
            case "sub" -> Long.toString(Long.parseLong(one.toString()) - Long.parseLong(two.toString()));
            case "latest" -> two;
            case "null_if_drop" -> "drop".equals(two) ? null : one + "+" + two;
            default -> throw new IllegalArgumentException(given);
        };
    }

    private static ValueJoiner joiner(JsonNode op) {
        String given = op.has("joiner") ? text(op, "joiner") : "concat:-";
        String[] parts = given.split(":", 2);
        if (parts[0].equals("null_if_right")) {
            return (a, b) -> parts[1].equals(b) ? null : a + "-" + b;
        }
        return (a, b) -> a + parts[1] + b;
    }

    private static Iterable<String> parts(Object value, String separator) {
        List<String> found = new ArrayList<>();
        for (String part : (value == null ? "" : value.toString()).split(java.util.regex.Pattern.quote(separator))) {
            if (!part.isEmpty()) {
                found.add(part);
            }
        }
        return found;
    }

    // Options.

    // Grouped, Suppressed and others take a name as it is, and check it when they use it.
    private static Named named(JsonNode op) {
        boolean checked = !Set.of("groupByKey", "groupBy", "suppress").contains(text(op, "op"));
        return checked && op.has("name") ? Named.as(text(op, "name")) : null;
    }

    private static Materialized store(JsonNode op) {
        if (!op.has("store") && !op.has("retention") && !op.has("versioned")) {
            return null;
        }
        Materialized found;
        if (op.has("versioned")) {
            found = Materialized.as(Stores.persistentVersionedKeyValueStore(
                text(op, "store"), ms(op.get("versioned").asLong())));
        } else {
            found = op.has("store") ? Materialized.as(text(op, "store")) : Materialized.with(null, null);
        }
        if (op.has("retention")) {
            found = found.withRetention(ms(op.get("retention").asLong()));
        }
        return found;
    }

    private static Materialized strings(JsonNode op) {
        Materialized found = store(op);
        return found == null ? null : found.withKeySerde(Serdes.String()).withValueSerde(Serdes.String());
    }

    // With the keys that are there, which may be windowed.
    private static Materialized values(JsonNode op) {
        Materialized found = store(op);
        return found == null ? null : found.withValueSerde(Serdes.String());
    }

    // Operations.

    private void add(JsonNode op) {
        Object found = make(op);
        if (op.has("id")) {
            made.put(text(op, "id"), found);
            String name = text(op, "op");
            boolean kept = Set.of("filter", "filterNot", "toStream", "suppress", "merge", "peek", "selectKey",
                "repartition").contains(name);
            if (name.equals("count") || op.has("state")
                    || (kept && op.has("in") && longs.contains(text(op, "in")))) {
                longs.add(text(op, "id"));
            }
        }
    }

    private Object make(JsonNode op) {
        Object in = op.has("in") ? made.get(text(op, "in")) : null;
        Named named = named(op);
        String fn = text(op, "fn");
        KStream stream = in instanceof KStream ? (KStream) in : null;
        KTable table = in instanceof KTable ? (KTable) in : null;
        switch (text(op, "op")) {
            case "stream": {
                Consumed consumed = Consumed.with(Serdes.String(), Serdes.String());
                return builder.stream(text(op, "topic"), op.has("name") ? consumed.withName(text(op, "name")) : consumed);
            }
            case "table": {
                Consumed consumed = Consumed.with(Serdes.String(), Serdes.String());
                consumed = op.has("name") ? consumed.withName(text(op, "name")) : consumed;
                Materialized store = strings(op);
                return store == null ? builder.table(text(op, "topic"), consumed)
                    : builder.table(text(op, "topic"), consumed, store);
            }
            case "global_table": {
                Consumed consumed = Consumed.with(Serdes.String(), Serdes.String());
                Materialized store = strings(op);
                return store == null ? builder.globalTable(text(op, "topic"), consumed)
                    : builder.globalTable(text(op, "topic"), consumed, store);
            }
            case "filter":
                if (stream != null) {
                    return named == null ? stream.filter(predicate(fn)) : stream.filter(predicate(fn), named);
                }
                if (store(op) != null) {
                    Materialized store = longs.contains(text(op, "in")) ? store(op) : values(op);
                    return named == null ? table.filter(predicate(fn), store) : table.filter(predicate(fn), named, store);
                }
                return named == null ? table.filter(predicate(fn)) : table.filter(predicate(fn), named);
            case "filterNot":
                if (stream != null) {
                    return named == null ? stream.filterNot(predicate(fn)) : stream.filterNot(predicate(fn), named);
                }
                if (store(op) != null) {
                    Materialized store = longs.contains(text(op, "in")) ? store(op) : values(op);
                    return named == null ? table.filterNot(predicate(fn), store)
                        : table.filterNot(predicate(fn), named, store);
                }
                return named == null ? table.filterNot(predicate(fn)) : table.filterNot(predicate(fn), named);
            case "mapValues": {
                ValueMapper mapper = value -> mapped(fn, value);
                if (stream != null) {
                    return named == null ? stream.mapValues(mapper) : stream.mapValues(mapper, named);
                }
                if (store(op) != null) {
                    return named == null ? table.mapValues(mapper, values(op))
                        : table.mapValues(mapper, named, values(op));
                }
                return named == null ? table.mapValues(mapper) : table.mapValues(mapper, named);
            }
            case "selectKey": {
                KeyValueMapper mapper = (key, value) -> keyed(fn, key, value);
                return named == null ? stream.selectKey(mapper) : stream.selectKey(mapper, named);
            }
            case "map": {
                KeyValueMapper mapper = (key, value) -> KeyValue.pair(
                    keyed(text(op, "key"), key, value), mapped(text(op, "value"), value));
                return named == null ? stream.map(mapper) : stream.map(mapper, named);
            }
            case "flatMapValues": {
                ValueMapper mapper = value -> parts(value, text(op, "split"));
                return named == null ? stream.flatMapValues(mapper) : stream.flatMapValues(mapper, named);
            }
            case "flatMap": {
                KeyValueMapper mapper = (key, value) -> {
                    List<KeyValue> pairs = new ArrayList<>();
                    parts(value, text(op, "split")).forEach(part -> pairs.add(KeyValue.pair(part, key)));
                    return pairs;
                };
                return named == null ? stream.flatMap(mapper) : stream.flatMap(mapper, named);
            }
            case "merge": {
                KStream other = (KStream) made.get(text(op, "with"));
                return named == null ? stream.merge(other) : stream.merge(other, named);
            }
            case "peek":
                return named == null ? stream.peek((k, v) -> { }) : stream.peek((k, v) -> { }, named);
            case "foreach":
                if (named == null) {
                    stream.foreach((k, v) -> { });
                } else {
                    stream.foreach((k, v) -> { }, named);
                }
                return null;
            case "repartition": {
                Repartitioned how = Repartitioned.with(Serdes.String(), Serdes.String());
                how = op.has("name") ? how.withName(text(op, "name")) : how;
                how = op.has("partitions") ? how.withNumberOfPartitions(op.get("partitions").asInt()) : how;
                return stream.repartition(how);
            }
            case "toTable": {
                Materialized store = strings(op);
                if (store == null) {
                    return named == null ? stream.toTable() : stream.toTable(named);
                }
                return named == null ? stream.toTable(store) : stream.toTable(named, store);
            }
            case "toStream": {
                if (fn == null) {
                    return named == null ? table.toStream() : table.toStream(named);
                }
                KeyValueMapper mapper = (key, value) -> keyed(fn, key, value);
                return named == null ? table.toStream(mapper) : table.toStream(mapper, named);
            }
            case "split":
                return split(op, stream, named);
            case "groupByKey": {
                Grouped grouped = Grouped.with(Serdes.String(), Serdes.String());
                return stream.groupByKey(op.has("name") ? grouped.withName(text(op, "name")) : grouped);
            }
            case "groupBy": {
                Grouped grouped = Grouped.with(Serdes.String(), Serdes.String());
                grouped = op.has("name") ? grouped.withName(text(op, "name")) : grouped;
                if (stream != null) {
                    return stream.groupBy((key, value) -> keyed(fn, key, value), grouped);
                }
                String value = op.has("value") ? text(op, "value") : "identity";
                return table.groupBy((k, v) -> KeyValue.pair(keyed(fn, k, v), mapped(value, v)), grouped);
            }
            case "windowedBy":
                return windowed(op, in);
            case "count":
                return aggregation(op, in, named, "count");
            case "reduce":
                return aggregation(op, in, named, "reduce");
            case "aggregate":
                return aggregation(op, in, named, "aggregate");
            case "cogroup": {
                String adder = text(op, "adder");
                Aggregator combine = (key, value, total) -> combined(adder, total, value);
                if (in instanceof KGroupedStream grouped) {
                    return grouped.cogroup(combine);
                }
                return ((CogroupedKStream) in).cogroup((KGroupedStream) made.get(text(op, "with")), combine);
            }
            case "suppress": {
                Suppressed how;
                if (text(op, "until").equals("window_closes")) {
                    how = Suppressed.untilWindowCloses(op.has("max_records")
                        ? Suppressed.BufferConfig.maxRecords(op.get("max_records").asLong()).shutDownWhenFull()
                        : Suppressed.BufferConfig.unbounded());
                } else {
                    how = Suppressed.untilTimeLimit(ms(op.get("limit").asLong()), op.has("max_records")
                        ? Suppressed.BufferConfig.maxRecords(op.get("max_records").asLong())
                        : Suppressed.BufferConfig.unbounded());
                }
                return table.suppress(op.has("name") ? how.withName(text(op, "name")) : how);
            }
            case "join", "leftJoin", "outerJoin":
                return joined(op, in, text(op, "op"));
            case "process": {
                if (op.has("state")) {
                    builder.addStateStore(Stores.keyValueStoreBuilder(
                        Stores.inMemoryKeyValueStore(text(op, "state")), Serdes.String(), Serdes.Long()));
                    return named == null ? stream.process(() -> new Step(op), text(op, "state"))
                        : stream.process(() -> new Step(op), named, text(op, "state"));
                }
                return named == null ? stream.process(() -> new Step(op)) : stream.process(() -> new Step(op), named);
            }
            case "processValues": {
                FixedKeyProcessorSupplier supplier = Stamp::new;
                return named == null ? stream.processValues(supplier) : stream.processValues(supplier, named);
            }
            case "to": {
                Produced produced = longs.contains(text(op, "in"))
                    ? Produced.valueSerde((Serde) Serdes.Long()) : Produced.valueSerde((Serde) Serdes.String());
                stream.to(text(op, "topic"), op.has("name") ? produced.withName(text(op, "name")) : produced);
                return null;
            }
            default:
                throw new IllegalArgumentException(op.toString());
        }
    }

    private Object split(JsonNode op, KStream stream, Named named) {
        BranchedKStream branched = named == null ? stream.split() : stream.split(named);
        for (JsonNode each : op.get("branches")) {
            branched = each.has("name")
                ? branched.branch(predicate(text(each, "fn")), Branched.as(text(each, "name")))
                : branched.branch(predicate(text(each, "fn")));
        }
        Map<String, KStream> found;
        if (op.has("default")) {
            found = op.get("default").isBoolean() ? branched.defaultBranch()
                : branched.defaultBranch(Branched.as(text(op, "default")));
        } else {
            found = branched.noDefaultBranch();
        }
        found.forEach((name, each) -> made.put(text(op, "id") + "/" + name, each));
        return null;
    }

    private Object windowed(JsonNode op, Object in) {
        JsonNode given = op.get("window");
        Duration grace = ms(given.has("grace") ? given.get("grace").asLong() : 0);
        boolean onClose = "on_window_close".equals(text(op, "emit"));
        switch (text(given, "type")) {
            case "sliding": {
                SlidingWindows windows = SlidingWindows.ofTimeDifferenceAndGrace(ms(given.get("diff").asLong()), grace);
                if (in instanceof CogroupedKStream cogrouped) {
                    return cogrouped.windowedBy(windows);
                }
                TimeWindowedKStream found = ((KGroupedStream) in).windowedBy(windows);
                return onClose ? found.emitStrategy(EmitStrategy.onWindowClose()) : found;
            }
            case "session": {
                SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(ms(given.get("gap").asLong()), grace);
                if (in instanceof CogroupedKStream cogrouped) {
                    return cogrouped.windowedBy(windows);
                }
                SessionWindowedKStream found = ((KGroupedStream) in).windowedBy(windows);
                return onClose ? found.emitStrategy(EmitStrategy.onWindowClose()) : found;
            }
            default: {
                Windows windows;
                if (text(given, "type").equals("unlimited")) {
                    windows = UnlimitedWindows.of().startOn(Instant.ofEpochMilli(
                        given.has("start") ? given.get("start").asLong() : 0));
                } else {
                    TimeWindows timed = TimeWindows.ofSizeAndGrace(ms(given.get("size").asLong()), grace);
                    windows = given.has("advance") ? timed.advanceBy(ms(given.get("advance").asLong())) : timed;
                }
                if (in instanceof CogroupedKStream cogrouped) {
                    return cogrouped.windowedBy(windows);
                }
                TimeWindowedKStream found = ((KGroupedStream) in).windowedBy(windows);
                return onClose ? found.emitStrategy(EmitStrategy.onWindowClose()) : found;
            }
        }
    }

    private Object aggregation(JsonNode op, Object in, Named given, String what) {
        Named named = given == null ? null : given;
        Materialized store = store(op);
        if (what.equals("count")) {
            // As the vectors were made: it takes a number that count() without one does not.
            store = store == null ? Materialized.with(Serdes.String(), Serdes.Long())
                : store.withKeySerde(Serdes.String()).withValueSerde(Serdes.Long());
        } else {
            store = store == null ? Materialized.with(Serdes.String(), Serdes.String())
                : store.withKeySerde(Serdes.String()).withValueSerde(Serdes.String());
        }
        String adder = text(op, "adder"), subtractor = text(op, "subtractor"), merger = text(op, "merger");
        Reducer reducer = (a, b) -> combined(adder, a, b);
        Reducer remover = (a, b) -> combined(subtractor, a, b);
        Initializer init = () -> text(op, "init");
        Aggregator add = (k, v, total) -> combined(adder, total, v);
        Aggregator remove = (k, v, total) -> combined(subtractor, total, v);
        Merger merge = (k, a, b) -> combined(merger, a, b);
        if (in instanceof KGroupedStream g) {
            if (what.equals("count")) {
                return named == null ? g.count(store) : g.count(named, store);
            }
            if (what.equals("reduce")) {
                return named == null ? g.reduce(reducer, store) : g.reduce(reducer, named, store);
            }
            return named == null ? g.aggregate(init, add, store) : g.aggregate(init, add, named, store);
        }
        if (in instanceof KGroupedTable g) {
            if (what.equals("count")) {
                return named == null ? g.count(store) : g.count(named, store);
            }
            if (what.equals("reduce")) {
                return named == null ? g.reduce(reducer, remover, store) : g.reduce(reducer, remover, named, store);
            }
            return named == null ? g.aggregate(init, add, remove, store) : g.aggregate(init, add, remove, named, store);
        }
        if (in instanceof TimeWindowedKStream g) {
            if (what.equals("count")) {
                return named == null ? g.count(store) : g.count(named, store);
            }
            if (what.equals("reduce")) {
                return named == null ? g.reduce(reducer, store) : g.reduce(reducer, named, store);
            }
            return named == null ? g.aggregate(init, add, store) : g.aggregate(init, add, named, store);
        }
        if (in instanceof SessionWindowedKStream g) {
            if (what.equals("count")) {
                return named == null ? g.count(store) : g.count(named, store);
            }
            if (what.equals("reduce")) {
                return named == null ? g.reduce(reducer, store) : g.reduce(reducer, named, store);
            }
            return named == null ? g.aggregate(init, add, merge, store) : g.aggregate(init, add, merge, named, store);
        }
        if (in instanceof CogroupedKStream g) {
            return named == null ? g.aggregate(init, store) : g.aggregate(init, named, store);
        }
        if (in instanceof TimeWindowedCogroupedKStream g) {
            return named == null ? g.aggregate(init, store) : g.aggregate(init, named, store);
        }
        SessionWindowedCogroupedKStream g = (SessionWindowedCogroupedKStream) in;
        return named == null ? g.aggregate(init, merge, store) : g.aggregate(init, merge, named, store);
    }

    private Object joined(JsonNode op, Object left, String kind) {
        Object right = made.get(text(op, "with"));
        ValueJoiner joiner = joiner(op);
        String name = text(op, "name");
        if (op.has("window")) {
            JsonNode given = op.get("window");
            JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(
                ms(given.get("diff").asLong()), ms(given.has("grace") ? given.get("grace").asLong() : 0));
            windows = given.has("before") ? windows.before(ms(given.get("before").asLong())) : windows;
            windows = given.has("after") ? windows.after(ms(given.get("after").asLong())) : windows;
            StreamJoined how = StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
            how = name == null ? how : how.withName(name);
            how = op.has("store") ? how.withStoreName(text(op, "store")) : how;
            KStream one = (KStream) left, two = (KStream) right;
            return switch (kind) {
                case "join" -> one.join(two, joiner, windows, how);
                case "leftJoin" -> one.leftJoin(two, joiner, windows, how);
                default -> one.outerJoin(two, joiner, windows, how);
            };
        }
        if (right instanceof GlobalKTable global) {
            KStream one = (KStream) left;
            KeyValueMapper key = (k, v) -> keyed(text(op, "key"), k, v);
            if (kind.equals("join")) {
                return name == null ? one.join(global, key, joiner) : one.join(global, key, joiner, Named.as(name));
            }
            return name == null ? one.leftJoin(global, key, joiner) : one.leftJoin(global, key, joiner, Named.as(name));
        }
        if (left instanceof KStream one) {
            KTable two = (KTable) right;
            Joined how = Joined.with(Serdes.String(), Serdes.String(), Serdes.String());
            how = name == null ? how : how.withName(name);
            how = op.has("grace") ? how.withGracePeriod(ms(op.get("grace").asLong())) : how;
            return kind.equals("join") ? one.join(two, joiner, how) : one.leftJoin(two, joiner, how);
        }
        KTable one = (KTable) left, two = (KTable) right;
        Materialized store = values(op);
        if (op.has("fk")) {
            java.util.function.Function key = value -> mapped(text(op, "fk"), value);
            Materialized kept = store == null ? Materialized.with(Serdes.String(), Serdes.String()) : strings(op);
            if (kind.equals("join")) {
                return name == null ? one.join(two, key, joiner, kept)
                    : one.join(two, key, joiner, TableJoined.as(name), kept);
            }
            return name == null ? one.leftJoin(two, key, joiner, kept)
                : one.leftJoin(two, key, joiner, TableJoined.as(name), kept);
        }
        Named named = name == null ? null : Named.as(name);
        if (store == null) {
            return switch (kind) {
                case "join" -> named == null ? one.join(two, joiner) : one.join(two, joiner, named);
                case "leftJoin" -> named == null ? one.leftJoin(two, joiner) : one.leftJoin(two, joiner, named);
                default -> named == null ? one.outerJoin(two, joiner) : one.outerJoin(two, joiner, named);
            };
        }
        return switch (kind) {
            case "join" -> named == null ? one.join(two, joiner, store) : one.join(two, joiner, named, store);
            case "leftJoin" -> named == null ? one.leftJoin(two, joiner, store) : one.leftJoin(two, joiner, named, store);
            default -> named == null ? one.outerJoin(two, joiner, store) : one.outerJoin(two, joiner, named, store);
        };
    }

    // Processors.

    static class Step extends ContextualProcessor<Object, Object, Object, Object> {
        private final JsonNode op;
        private KeyValueStore<Object, Long> store;

        Step(JsonNode op) {
            this.op = op;
        }

        @Override
        public void init(ProcessorContext<Object, Object> context) {
            super.init(context);
            if (op.has("punctuate")) {
                context.schedule(ms(op.get("interval").asLong()),
                    text(op, "punctuate").equals("stream_time") ? PunctuationType.STREAM_TIME
                        : PunctuationType.WALL_CLOCK_TIME,
                    time -> context.forward(new Record<>("punct", Long.toString(time), time)));
            }
            if (op.has("state")) {
                store = context.getStateStore(text(op, "state"));
            }
        }

        @Override
        public void process(Record<Object, Object> record) {
            Record<Object, Object> found = record;
            if (op.has("shift_ts")) {
                found = found.withTimestamp(found.timestamp() + op.get("shift_ts").asLong());
            }
            if (op.has("state")) {
                Long before = store.get(found.key());
                long now = before == null ? 1 : before + 1;
                store.put(found.key(), now);
                found = found.withValue(now);
            }
            context().forward(found);
        }
    }

    static class Stamp extends ContextualFixedKeyProcessor<Object, Object, Object> {
        @Override
        public void process(FixedKeyRecord<Object, Object> record) {
            context().forward(record.withValue(record.value() + "@" + context().currentStreamTimeMs()));
        }
    }

    // The run.

    private static String hex(byte[] data) {
        return data == null ? "-" : "x" + HEX.formatHex(data);
    }

    private static byte[] bytes(JsonNode value) {
        return value == null || value.isNull() ? null : value.asText().getBytes(StandardCharsets.UTF_8);
    }

    private static void take(TopologyTestDriver driver, ArrayNode steps) {
        ArrayNode lines = steps.addArray();
        for (String topic : new TreeSet<>(driver.producedTopicNames())) {
            var out = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            for (TestRecord<byte[], byte[]> record : out.readRecordsToList()) {
                List<String> headers = new ArrayList<>();
                for (Header header : record.headers()) {
                    headers.add(header.key() + "=" + hex(header.value()));
                }
                lines.add(topic + " " + hex(record.key()) + " " + hex(record.value()) + " "
                    + record.timestamp() + " [" + String.join(",", headers) + "]");
            }
        }
    }

    private static void run(JsonNode given, ObjectNode result) {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, "0");
        config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0);
        config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0);
        given.get("config").properties().forEach(each -> config.put(each.getKey(), each.getValue().asText()));
        StreamsCases cases = new StreamsCases();
        Topology topology;
        try {
            given.get("topology").forEach(cases::add);
            topology = cases.builder.build(config);
        } catch (RuntimeException error) {
            result.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            return;
        }
        result.put("describe", topology.describe().toString());
        ArrayNode steps = result.putArray("steps");
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, config, Instant.EPOCH)) {
            for (JsonNode step : given.get("inputs")) {
                if (step.has("advance_wall_ms")) {
                    driver.advanceWallClockTime(ms(step.get("advance_wall_ms").asLong()));
                } else {
                    RecordHeaders headers = new RecordHeaders();
                    if (step.has("headers")) {
                        step.get("headers").forEach(each -> headers.add(each.get(0).asText(), bytes(each.get(1))));
                    }
                    driver.createInputTopic(text(step, "topic"), new ByteArraySerializer(), new ByteArraySerializer())
                        .pipeInput(new TestRecord<>(bytes(step.get("key")), bytes(step.get("value")), headers,
                            Instant.ofEpochMilli(step.get("ts").asLong())));
                }
                take(driver, steps);
            }
            double dropped = 0;
            for (var each : driver.metrics().entrySet()) {
                if (each.getKey().name().equals("dropped-records-total")) {
                    dropped += (Double) each.getValue().metricValue();
                }
            }
            result.put("dropped", (long) dropped);
        } catch (RuntimeException error) {
            result.put("error", error.getClass().getSimpleName() + ": " + error.getMessage()
                + " (" + error.getCause() + ")");
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode result = JSON.createObjectNode();
            run(JSON.readTree(line), result);
            System.out.println(JSON.writeValueAsString(result));
        }
    }
}
