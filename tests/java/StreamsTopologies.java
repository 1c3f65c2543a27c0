// Runs topologies on Kafka Streams' own TopologyTestDriver and prints all that they write, changelogs
// and internal topics included, as bytes. The topologies are those of tests/support/streams_twins.py.
//
// Standard input, one command per line: "topology NAME CACHE_BYTES", "in TOPIC KEY VALUE TIME" (hex,
// "-" is null), "wall MILLISECONDS", "end". Output: "describe BASE64", "out TOPIC KEY VALUE TIME
// HEADERS" and "done" after each command.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.test.TestRecord;

public class StreamsTopologies {
    private static final HexFormat HEX = HexFormat.of();

    private static Duration ms(long value) {
        return Duration.ofMillis(value);
    }

    private static <S extends org.apache.kafka.streams.processor.StateStore>
            Materialized<String, String, S> strings(String name) {
        return Materialized.<String, String, S>as(name)
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String());
    }

    private static final ValueJoiner<String, String, String> PAIR = (a, b) -> a + "-" + b;

    static class Counter extends ContextualProcessor<String, String, String, String> {
        private KeyValueStore<String, Long> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("seen");
            context.schedule(Duration.ofMillis(40), PunctuationType.STREAM_TIME, time ->
                context.forward(new Record<>("punct", Long.toString(time), time)));
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            Long before = store.get(record.key());
            long now = before == null ? 1 : before + 1;
            store.put(record.key(), now == 4 ? null : now);
            context().forward(record.withValue(record.value() + now).withTimestamp(record.timestamp() + 3));
        }
    }

    /** Writes to stores of all kinds that come with it, and forwards what they then have. */
    static class StoreUser extends ContextualProcessor<String, String, String, String> {
        private KeyValueStore<String, String> plain;
        private KeyValueStore<String, String> recent;
        private TimestampedKeyValueStore<String, String> timed;
        private WindowStore<String, String> windows;
        private SessionStore<String, String> sessions;
        private VersionedKeyValueStore<String, String> versions;

        static ProcessorSupplier<String, String, String, String> supplier() {
            return new ProcessorSupplier<>() {
                @Override
                public StoreUser get() {
                    return new StoreUser();
                }

                @Override
                public Set<StoreBuilder<?>> stores() {
                    Serde<String> text = Serdes.String();
                    return new LinkedHashSet<>(List.of(
                        Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("plain"), text, text)
                            .withCachingEnabled(),
                        Stores.keyValueStoreBuilder(Stores.lruMap("recent", 2), text, text),
                        Stores.timestampedKeyValueStoreBuilder(
                            Stores.persistentTimestampedKeyValueStore("timed"), text, text)
                            .withCachingEnabled(),
                        Stores.windowStoreBuilder(
                            Stores.inMemoryWindowStore("windows", ms(1_000_000), ms(50), false), text, text)
                            .withCachingEnabled(),
                        Stores.sessionStoreBuilder(
                            Stores.inMemorySessionStore("sessions", ms(1_000_000)), text, text),
                        Stores.versionedKeyValueStoreBuilder(
                            Stores.persistentVersionedKeyValueStore("versions", ms(200)), text, text)));
                }
            };
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            plain = context.getStateStore("plain");
            recent = context.getStateStore("recent");
            timed = context.getStateStore("timed");
            windows = context.getStateStore("windows");
            sessions = context.getStateStore("sessions");
            versions = context.getStateStore("versions");
        }

        @Override
        public void process(Record<String, String> record) {
            String key = record.key();
            String value = record.value();
            long time = record.timestamp();
            if (key == null) {
                return;
            }
            plain.putAll(List.of(new KeyValue<>(key, "first"), new KeyValue<>(key, value)));
            // Read backwards, a cache also shows what was deleted, as null.
            say(record, value == null ? plain.all() : plain.reverseAll());
            say(record, value == null ? plain.range("a", "b") : plain.reverseRange("a", "b"));
            recent.putIfAbsent(key, value);
            say(record, recent.all());
            if (value == null) {
                var gone = timed.delete(key);
                say(record, gone == null ? "null" : gone.value() + "@" + gone.timestamp());
            } else {
                timed.putIfAbsent(key, ValueAndTimestamp.make(value, time));
            }
            windows.put(key, value, time / 50 * 50);
            windows.put("other", value, time / 50 * 50);
            say(record, value == null ? windows.fetch(key, 0L, 1000L) : windows.backwardFetch(key, 0L, 1000L));
            if (value == null) {
                sessions.remove(new Windowed<>(key, new SessionWindow(time, time + 5)));
            } else {
                sessions.put(new Windowed<>(key, new SessionWindow(time, time + 5)), value);
            }
            say(record, sessions.backwardFindSessions(key, 0, 1000));
            say(record, sessions.findSessions("a", "c", 10, 500));
            say(record, sessions.backwardFindSessions("a", "c", 10, 500));
            if (value == null) {
                var gone = versions.delete(key, time);
                say(record, gone == null ? "null" : gone.value() + "@" + gone.timestamp());
            } else {
                say(record, String.valueOf(versions.put(key, value, time)));
            }
        }

        private <K> void say(Record<String, String> record, KeyValueIterator<K, String> found) {
            StringBuilder text = new StringBuilder();
            try (found) {
                while (found.hasNext()) {
                    KeyValue<K, String> each = found.next();
                    Object key = each.key instanceof Windowed<?> windowed
                        ? windowed.key() + "/" + windowed.window().start() : each.key;
                    text.append(key).append('=').append(each.value).append(' ');
                }
            }
            say(record, text.toString());
        }

        private void say(Record<String, String> record, String text) {
            context().forward(record.withValue(text));
        }
    }

    private static Topology build(String name) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (name) {
            case "word_count" -> builder.<String, String>stream("left")
                .filter((k, v) -> v != null)
                .flatMapValues(v -> Arrays.asList(v.toLowerCase(Locale.ROOT).split(",")))
                .groupBy((k, v) -> v)
                .count(Materialized.as("counts"))
                .toStream().to("out", Produced.with(Serdes.String(), Serdes.Long()));
            case "count_in_place" -> builder.<String, String>stream("left")
                .filter((k, v) -> v != null)
                .flatMapValues(v -> Arrays.asList(v.split("")))
                .groupByKey()
                .count(Materialized.as("counts"))
                .toStream().to("out", Produced.with(Serdes.String(), Serdes.Long()));
            case "derived_tables" -> {
                KTable<String, String> table = builder.table("left", strings("rows"));
                KTable<String, String> kept = table.filter((k, v) -> v.length() > 1, strings("kept"));
                kept.toStream().to("out");
                kept.mapValues(v -> v.toUpperCase(Locale.ROOT)).toStream().to("out2");
                table.filterNot((k, v) -> v.startsWith("x")).toStream().to("out3");
            }
            case "grouped_table" -> {
                KTable<String, String> table = builder.table("left");
                table.groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v))
                    .reduce((all, v) -> all + v, (all, v) -> all.replaceFirst(v, ""), strings("reduced"))
                    .toStream().to("out");
                table.groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v), Grouped.as("by-letter"))
                    .count(Materialized.as("per-letter"))
                    .toStream().to("out2", Produced.with(Serdes.String(), Serdes.Long()));
            }
            case "windows" -> {
                KGroupedStream<String, String> grouped = builder.<String, String>stream("left").groupByKey();
                grouped.windowedBy(TimeWindows.ofSizeAndGrace(ms(50), ms(20)).advanceBy(ms(25)))
                    .reduce((a, b) -> a + "+" + b, StreamsTopologies.<WindowStore<Bytes, byte[]>>strings("hopping").withRetention(ms(1_000_000)))
                    .toStream((k, v) -> k.key() + "@" + k.window().start()).to("out");
                grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(15), ms(30)))
                    .reduce((a, b) -> a + "+" + b, StreamsTopologies.<SessionStore<Bytes, byte[]>>strings("sessions").withRetention(ms(1_000_000)))
                    .toStream((k, v) -> k.key() + "@" + k.window().start() + "-" + k.window().end()).to("out2");
            }
            case "windowed_topic" -> builder.<String, String>stream("left").groupByKey()
                .windowedBy(TimeWindows.ofSizeWithNoGrace(ms(50)))
                .count(Materialized.as("tumbling"))
                .toStream().to("out", Produced.with(
                    org.apache.kafka.streams.kstream.WindowedSerdes.timeWindowedSerdeFrom(String.class, 50),
                    Serdes.Long()));
            case "emit_final" -> builder.<String, String>stream("left").groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(ms(50), ms(10)))
                .emitStrategy(EmitStrategy.onWindowClose())
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("final")
                    .withRetention(ms(1_000_000)))
                .toStream((k, v) -> k.key() + "@" + k.window().start())
                .to("out", Produced.with(Serdes.String(), Serdes.Long()));
            case "suppressed" -> {
                builder.<String, String>stream("left")
                    .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                    .windowedBy(TimeWindows.ofSizeAndGrace(ms(50), ms(10)))
                    .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("held")
                        .withRetention(ms(1_000_000)))
                    .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("closed"))
                    .toStream((k, v) -> k.key() + "@" + k.window().start())
                    .to("out", Produced.with(Serdes.String(), Serdes.Long()));
                builder.<String, String>table("right", strings("rows"))
                    .suppress(Suppressed.<String>untilTimeLimit(ms(30), Suppressed.BufferConfig.maxRecords(2))
                        .withName("limit"))
                    .toStream().to("out2");
            }
            case "stream_joins" -> {
                KStream<String, String> left = builder.stream("left");
                KStream<String, String> right = builder.stream("right");
                JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(ms(20), ms(10));
                left.join(right, PAIR, windows).to("out");
                left.leftJoin(right, PAIR, windows).to("out2");
                left.outerJoin(right, PAIR, windows.before(ms(5)), StreamJoined.as("joined")).to("out3");
            }
            case "stream_table" -> {
                KStream<String, String> left = builder.stream("left");
                KTable<String, String> right = builder.table("right", strings("rows"));
                left.join(right, PAIR).to("out");
                left.leftJoin(right, PAIR).to("out2");
                left.selectKey((k, v) -> v == null ? null : v.substring(0, 1))
                    .leftJoin(right, PAIR, Joined.as("rekeyed")).to("out3");
            }
            case "versioned" -> {
                KStream<String, String> left = builder.stream("left");
                KTable<String, String> right = builder.table("right", Consumed.with(Serdes.String(), Serdes.String()),
                    Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("rows", ms(200)))
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
                left.join(right, PAIR, Joined.<String, String, String>as("waits").withGracePeriod(ms(30)))
                    .to("out");
                right.filter((k, v) -> v.length() > 1).toStream().to("out2");
            }
            case "table_joins" -> {
                KTable<String, String> left = builder.table("left", strings("lefts"));
                KTable<String, String> right = builder.table("right");
                left.join(right, PAIR).toStream().to("out");
                left.leftJoin(right, PAIR).toStream().to("out2");
                left.outerJoin(right, PAIR, strings("outer")).toStream().to("out3");
            }
            case "foreign_key" -> {
                KTable<String, String> left = builder.table("left");
                KTable<String, String> right = builder.table("right");
                left.join(right, v -> v.substring(0, 1), PAIR).toStream().to("out");
                left.leftJoin(right, v -> v.startsWith("x") ? null : v.substring(0, 1), PAIR,
                    TableJoined.as("fk"), strings("result")).toStream().to("out2");
            }
            case "cogroup" -> {
                KGroupedStream<String, String> left = builder.<String, String>stream("left").groupByKey();
                KGroupedStream<String, String> right = builder.<String, String>stream("right").groupByKey();
                left.<String>cogroup((k, v, all) -> all + "l" + v)
                    .cogroup(right, (k, v, all) -> all + "r" + v)
                    .aggregate(() -> "", strings("both")).toStream().to("out");
            }
            case "processor" -> {
                builder.addStateStore(Stores.keyValueStoreBuilder(
                    Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.Long()));
                builder.<String, String>stream("left").process(Counter::new, "seen").to("out");
            }
            case "stores" -> builder.<String, String>stream("left").process(StoreUser.supplier()).to("out");
            case "global" -> builder.<String, String>stream("left").leftJoin(
                builder.<String, String>globalTable("right", strings("rows")),
                (k, v) -> v == null ? null : v.substring(0, 1), PAIR).to("out");
            default -> throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    private static String hex(byte[] data) {
        return data == null ? "-" : "x" + HEX.formatHex(data);
    }

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : HEX.parseHex(text.substring(1));
    }

    private static void print(TopologyTestDriver driver) {
        for (String topic : new TreeSet<>(driver.producedTopicNames())) {
            var out = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            for (TestRecord<byte[], byte[]> record : out.readRecordsToList()) {
                List<String> headers = new ArrayList<>();
                for (Header header : record.headers()) {
                    headers.add(header.key() + "=" + hex(header.value()));
                }
                System.out.println("out " + topic + " " + hex(record.key()) + " " + hex(record.value()) + " "
                    + record.timestamp() + " [" + String.join(",", headers) + "]");
            }
        }
        System.out.println("done");
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TopologyTestDriver driver = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("topology")) {
                if (driver != null) {
                    driver.close();
                }
                Topology topology = build(words[1]);
                System.out.println("describe " + Base64.getEncoder().encodeToString(
                    topology.describe().toString().getBytes(StandardCharsets.UTF_8)));
                Properties config = new Properties();
                config.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
                config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
                config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
                config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
                config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, words[2]);
                config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0);
                config.put(StreamsConfig.InternalConfig
                    .EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0);
                driver = new TopologyTestDriver(topology, config, Instant.EPOCH);
            } else if (words[0].equals("in")) {
                TestInputTopic<byte[], byte[]> topic = driver.createInputTopic(
                    words[1], new ByteArraySerializer(), new ByteArraySerializer());
                topic.pipeInput(new TestRecord<>(bytes(words[2]), bytes(words[3]),
                    Instant.ofEpochMilli(Long.parseLong(words[4]))));
            } else if (words[0].equals("wall")) {
                driver.advanceWallClockTime(ms(Long.parseLong(words[1])));
            }
            print(driver);
        }
        if (driver != null) {
            driver.close();
        }
    }
}
