// A processor with stores that keep headers, on Kafka Streams' own test driver or on a cluster. Its
// twin is in tests/support/streams_headers.py.
//
// StreamsHeaders: standard input has one command per line: "stores memory|disk CACHED CACHE_BYTES",
// "in KEY VALUE TIME HEADERS" (hex, "-" is null; headers are name=hex, separated by commas). Output:
// "out TOPIC KEY VALUE TIME [HEADERS]" and "done" after each command.
// StreamsHeaders BOOTSTRAP PREFIX: runs on a cluster until its input is closed.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.AggregationWithHeaders;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStoreWithHeaders;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStoreWithHeaders;
import org.apache.kafka.streams.state.TimestampedWindowStoreWithHeaders;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.test.TestRecord;

public class StreamsHeaders {
    private static final HexFormat HEX = HexFormat.of();
    private static final Duration LONG_TIME = Duration.ofMillis(1_000_000);
    private static final Duration SIZE = Duration.ofMillis(50);

    static class Keeper extends ContextualProcessor<String, String, String, String> {
        private TimestampedKeyValueStoreWithHeaders<String, String> timed;
        private TimestampedWindowStoreWithHeaders<String, String> windows;
        private SessionStoreWithHeaders<String, String> sessions;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            timed = context.getStateStore("timed");
            windows = context.getStateStore("windows");
            sessions = context.getStateStore("sessions");
        }

        @Override
        public void process(Record<String, String> record) {
            String key = record.key();
            String value = record.value();
            long time = record.timestamp();
            Windowed<String> session = new Windowed<>(key, new SessionWindow(time, time + 5));
            if (value == null) {
                say(record, shown(timed.delete(key)));
                windows.put(key, null, time / 50 * 50);
                sessions.remove(session);
            } else {
                ValueTimestampHeaders<String> made =
                    ValueTimestampHeaders.make(value, time, record.headers());
                if (value.startsWith("a")) {
                    say(record, shown(timed.putIfAbsent(key, made)));
                } else {
                    timed.putAll(List.of(new KeyValue<>("other", made), new KeyValue<>(key, made)));
                }
                windows.put(key, made, time / 50 * 50);
                sessions.put(session, AggregationWithHeaders.make(value, record.headers()));
            }
            say(record, shown(timed.get(key)));
            say(record, timed.all());
            say(record, windows.fetch(key, 0L, 1000L));
            say(record, sessions.findSessions(key, 0, 1000));
        }

        private static String shown(Object found) {
            if (found instanceof ValueTimestampHeaders<?> each) {
                return each.value() + "@" + each.timestamp() + headers(each.headers());
            }
            if (found instanceof AggregationWithHeaders<?> each) {
                return each.aggregation() + headers(each.headers());
            }
            return "null";
        }

        private <K, V> void say(Record<String, String> record, KeyValueIterator<K, V> found) {
            StringBuilder text = new StringBuilder();
            try (found) {
                while (found.hasNext()) {
                    KeyValue<K, V> each = found.next();
                    Object key = each.key instanceof Windowed<?> windowed
                        ? windowed.key() + "/" + windowed.window().start() : each.key;
                    text.append(key).append('=').append(shown(each.value)).append(' ');
                }
            }
            say(record, text.toString());
        }

        private void say(Record<String, String> record, String text) {
            context().forward(record.withValue(text));
        }
    }

    private static Topology build(String prefix, boolean onDisk, boolean cached) {
        Serde<String> text = Serdes.String();
        StreamsBuilder builder = new StreamsBuilder();
        List<StoreBuilder<?>> stores = List.of(
            Stores.timestampedKeyValueStoreWithHeadersBuilder(
                onDisk ? Stores.persistentTimestampedKeyValueStoreWithHeaders("timed")
                    : Stores.inMemoryKeyValueStore("timed"), text, text),
            Stores.timestampedWindowStoreWithHeadersBuilder(
                onDisk ? Stores.persistentTimestampedWindowStoreWithHeaders("windows", LONG_TIME, SIZE, false)
                    : Stores.inMemoryWindowStore("windows", LONG_TIME, SIZE, false), text, text),
            Stores.sessionStoreWithHeadersBuilder(
                onDisk ? Stores.persistentSessionStoreWithHeaders("sessions", LONG_TIME)
                    : Stores.inMemorySessionStore("sessions", LONG_TIME), text, text));
        for (StoreBuilder<?> each : stores) {
            builder.addStateStore(cached ? each.withCachingEnabled() : each);
        }
        builder.<String, String>stream(prefix + "in").process(Keeper::new, "timed", "windows", "sessions")
            .to(prefix + "out");
        return builder.build();
    }

    private static Properties config(String application, String bootstrap) {
        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        return config;
    }

    private static String hex(byte[] data) {
        return data == null ? "-" : "x" + HEX.formatHex(data);
    }

    private static byte[] bytes(String text) {
        return text.equals("-") ? null : HEX.parseHex(text.substring(1));
    }

    private static String headers(Headers headers) {
        List<String> shown = new ArrayList<>();
        for (Header header : headers) {
            shown.add(header.key() + "=" + hex(header.value()));
        }
        return "[" + String.join(",", shown) + "]";
    }

    private static Headers parsed(String text) {
        RecordHeaders headers = new RecordHeaders();
        for (String each : text.substring(1, text.length() - 1).split(",")) {
            if (!each.isEmpty()) {
                int at = each.indexOf('=');
                headers.add(each.substring(0, at), bytes(each.substring(at + 1)));
            }
        }
        return headers;
    }

    private static void print(TopologyTestDriver driver) {
        for (String topic : new TreeSet<>(driver.producedTopicNames())) {
            var out = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            for (TestRecord<byte[], byte[]> record : out.readRecordsToList()) {
                System.out.println("out " + topic + " " + hex(record.key()) + " " + hex(record.value()) + " "
                    + record.timestamp() + " " + headers(record.headers()));
            }
        }
        System.out.println("done");
    }

    private static void onDriver() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TopologyTestDriver driver = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("stores")) {
                if (driver != null) {
                    driver.close();
                }
                Properties config = config("app", "none:1");
                config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, words[3]);
                Topology topology = build("", words[1].equals("disk"), words[2].equals("true"));
                driver = new TopologyTestDriver(topology, config, Instant.EPOCH);
            } else {
                driver.createInputTopic("in", new ByteArraySerializer(), new ByteArraySerializer())
                    .pipeInput(new TestRecord<>(bytes(words[1]), bytes(words[2]), parsed(words[4]),
                        Instant.ofEpochMilli(Long.parseLong(words[3]))));
            }
            print(driver);
        }
        if (driver != null) {
            driver.close();
        }
    }

    private static void onCluster(String bootstrap, String prefix) throws Exception {
        Properties config = config(prefix + "app", bootstrap);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("state.dir", Files.createTempDirectory("headers").toString());
        KafkaStreams streams = new KafkaStreams(build(prefix, true, false), config);
        streams.start();
        while (System.in.read() >= 0) { }
        streams.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(30)));
        System.out.println("closed");
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            onDriver();
        } else {
            onCluster(arguments[0], arguments[1]);
        }
    }
}
