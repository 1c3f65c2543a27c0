import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;

/**
 * A word count of Kafka Streams in a streams group (KIP-1071), printing what its user sees. Whatever
 * differs between two brokers by nature (ids, clocks, addresses) is not printed.
 */
public class StreamsSession {
    static String bootstrap;
    static String guarantee;
    static String group;
    static String lines;
    static String output;
    static Admin admin;
    static final Map<String, Long> counts = new TreeMap<>();

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        guarantee = arguments[1];
        group = "counting-" + guarantee;
        lines = "lines-" + guarantee;
        output = "counts-" + guarantee;
        try (Admin opened = Admin.create(properties())) {
            admin = opened;
            if (arguments.length > 2) {
                restarts();
                return;
            }
            attempt("describe nothing", () -> describe());
            missingSourceTopics();
            KafkaStreams first = application("first", 7001);
            first.start();
            await("running again", () -> active(first) == 6);
            counting(first);
            KafkaStreams second = second(first);
            standbys(first, second);
            leaving(first, second);
            second.close(Duration.ofSeconds(30));
            ending();
        }
    }

    // ---- steps

    static void missingSourceTopics() throws Exception {
        // Without an endpoint: Apache Kafka 4.3 cannot tell endpoints of a group that is not ready.
        KafkaStreams first = application("waiting", 0);
        // A member gives up waiting for topics after two intervals: too soon for a slow machine.
        configure("streams.heartbeat.interval.ms", "10000");
        first.start();
        await("not ready", () -> state().equals("NotReady"));
        say("topology while waiting", topology());
        admin.createTopics(List.of(new NewTopic(lines, 3, (short) 1), new NewTopic(output, 1, (short) 1)))
            .all().get();
        await("running", () -> first.state() == KafkaStreams.State.RUNNING && active(first) == 6);
        say("created", internalTopics());
        first.close(Duration.ofSeconds(30));
        configure("streams.heartbeat.interval.ms", "5000");
    }

    static void counting(KafkaStreams first) throws Exception {
        write("a b a", "c a", "b");
        expect(Map.of("a", 3L, "b", 2L, "c", 1L));
        say("state", state(), topology());
        say("members", describe().members().size(), "tasks", active(first), standby(first));
        say("listed", admin.listGroups(ListGroupsOptions.forStreamsGroups()).all().get().stream()
            .map(each -> each.groupId() + " " + each.type() + " " + each.protocol() + " "
                + each.groupState().map(Object::toString).orElse("")).toList());
        attempt("delete while running", () -> admin.deleteStreamsGroups(List.of(group)).all().get());
        attempt("classic consumer in it", () -> classicConsumer());
        attempt("commit by hand", () -> admin.alterStreamsGroupOffsets(group,
            Map.of(new TopicPartition(lines, 0), new OffsetAndMetadata(0))).all().get());
    }

    static KafkaStreams second(KafkaStreams first) throws Exception {
        KafkaStreams second = application("second", 7002);
        second.start();
        await("shared", () -> active(first) == 3 && active(second) == 3);
        write("a d");
        expect(Map.of("a", 4L, "d", 1L));
        List<String> hosts = List.of("7001 has 3", "7002 has 3");
        await("both known", () -> hosts(first).equals(hosts) && hosts(second).equals(hosts));
        say("owner of a is the same", first.queryMetadataForKey("store", "a", new StringSerializer()).activeHost().port()
            == second.queryMetadataForKey("store", "a", new StringSerializer()).activeHost().port());
        return second;
    }

    static void standbys(KafkaStreams first, KafkaStreams second) throws Exception {
        configure("streams.num.standby.replicas", "1");
        await("standbys", () -> standby(first) + standby(second) == 3);
        say("with standbys", active(first) + active(second), standby(first) + standby(second));
        StreamsGroupDescription described = describe();
        say("described", described.groupState(), described.members().stream()
            .map(each -> tasks(each.assignment().activeTasks()) + "+" + tasks(each.assignment().standbyTasks())
                + (each.assignment().equals(each.targetAssignment()) ? "" : " moving"))
            .sorted().toList());
        say("topology epochs", described.members().stream().map(StreamsGroupMemberDescription::topologyEpoch).toList());
    }

    static void leaving(KafkaStreams first, KafkaStreams second) throws Exception {
        first.close(Duration.ofSeconds(30));
        await("taken over", () -> active(second) == 6);
        write("d d");
        expect(Map.of("d", 3L));
        say("left alone", active(second), standby(second), describe().members().size());
    }

    static void ending() throws Exception {
        await("empty", () -> state().equals("Empty"));
        say("offsets kept", admin.listStreamsGroupOffsets(Map.of(group, new ListStreamsGroupOffsetsSpec()))
            .partitionsToOffsetAndMetadata(group).get().keySet().stream().map(TopicPartition::topic)
            .collect(Collectors.toCollection(TreeSet::new)));
        admin.deleteStreamsGroups(List.of(group)).all().get();
        attempt("describe deleted", () -> describe());
        say("end");
    }

    /** Waits for a line of input wherever the broker is to be restarted. */
    static void restarts() throws Exception {
        admin.createTopics(List.of(new NewTopic(lines, 3, (short) 1), new NewTopic(output, 1, (short) 1)))
            .all().get();
        KafkaStreams first = application("first", 7001);
        KafkaStreams second = application("second", 7002);
        first.start();
        second.start();
        await("shared", () -> active(first) == 3 && active(second) == 3);
        for (String word : List.of("a", "b", "c")) {
            write(word + " " + word, word);
            expect(Map.of(word, 3L));
            say("restart");
            System.in.read();
        }
        await("still shared", () -> state().equals("Stable") && active(first) == 3 && active(second) == 3);
        first.close(Duration.ofSeconds(30));
        second.close(Duration.ofSeconds(30));
        await("empty", () -> state().equals("Empty"));
        say("end");
    }

    // ---- the application

    static KafkaStreams application(String name, int port) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(lines, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("store"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withCachingDisabled())
            .toStream().to(output, Produced.with(Serdes.String(), Serdes.Long()));
        Properties properties = properties();
        properties.put("application.id", group);
        properties.put("client.id", name);
        properties.put("group.protocol", "streams");
        if (port != 0) {
            properties.put("application.server", "localhost:" + port);
        }
        properties.put("num.stream.threads", "1");
        properties.put("processing.guarantee", guarantee);
        properties.put("commit.interval.ms", "100");
        properties.put("state.dir", Files.createTempDirectory("streams").toString());
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setUncaughtExceptionHandler(error -> {
            System.err.println(name + ": " + error);
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler
                .StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        return streams;
    }

    static List<String> hosts(KafkaStreams streams) {
        return streams.metadataForAllStreamsClients().stream()
            .map(each -> each.hostInfo().port() + " has " + each.topicPartitions().size()).sorted().toList();
    }

    static int active(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream().mapToInt(each -> each.activeTasks().size()).sum();
    }

    static int standby(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream().mapToInt(each -> each.standbyTasks().size()).sum();
    }

    static void write(String... written) throws Exception {
        try (Producer<String, String> producer = new KafkaProducer<>(properties(), new StringSerializer(), new StringSerializer())) {
            int at = 0;
            for (String line : written) {
                producer.send(new ProducerRecord<>(lines, at++ % 3, null, line)).get();
            }
        }
    }

    static void expect(Map<String, Long> wanted) throws Exception {
        Properties properties = properties();
        properties.put("auto.offset.reset", "earliest");
        properties.put("isolation.level", "read_committed");
        try (Consumer<String, Long> consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new LongDeserializer())) {
            consumer.assign(List.of(new TopicPartition(output, 0)));
            consumer.seekToBeginning(consumer.assignment());
            await("counts", () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> counts.put(record.key(), record.value()));
                return counts.entrySet().containsAll(wanted.entrySet());
            });
        }
        say("counts", counts);
    }

    static void classicConsumer() throws Exception {
        Properties properties = properties();
        properties.put("group.id", group);
        try (Consumer<String, String> consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(lines));
            // It is refused, sooner or later.
            for (int i = 0; i < 600; i++) consumer.poll(Duration.ofMillis(100));
        }
    }

    static void configure(String name, String value) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
    }

    // ---- what the admin client sees

    static StreamsGroupDescription describe() throws Exception {
        return admin.describeStreamsGroups(List.of(group)).all().get().get(group);
    }

    static String state() {
        try {
            return describe().groupState().toString();
        } catch (Exception error) {
            return error.toString();
        }
    }

    static String topology() throws Exception {
        return describe().subtopologies().stream().map(each -> each.subtopologyId() + ": " + each.sourceTopics()
            + " " + topics(each.repartitionSourceTopics()) + " -> " + each.repartitionSinkTopics()
            + " " + topics(each.stateChangelogTopics())).sorted().toList().toString();
    }

    static Map<String, String> topics(Map<String, StreamsGroupSubtopologyDescription.TopicInfo> topics) {
        Map<String, String> shown = new TreeMap<>();
        topics.forEach((name, info) -> shown.put(name, info.partitions() + "/" + info.replicationFactor()
            + " " + new TreeMap<>(info.topicConfigs())));
        return shown;
    }

    static String internalTopics() throws Exception {
        List<String> names = admin.listTopics().names().get().stream().filter(name -> name.startsWith(group)).sorted().toList();
        List<String> shown = new ArrayList<>();
        for (String name : names) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
            Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            shown.add(name + " " + admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().size()
                + " " + config.get("cleanup.policy").value() + " " + config.get("retention.ms").value()
                + " " + config.get("segment.bytes").value());
        }
        return shown.toString();
    }

    static String tasks(List<StreamsGroupMemberAssignment.TaskIds> tasks) {
        return tasks.stream().mapToInt(each -> each.partitions().size()).sum() + "";
    }

    // ---- helpers

    interface Step {
        void run() throws Exception;
    }

    static void attempt(String what, Step step) {
        try {
            step.run();
            say(what, "done");
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            say(what, cause.getClass().getSimpleName());
        }
    }

    static void await(String what, BooleanSupplier condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("waited in vain: " + what + ", " + state());
            }
            Thread.sleep(50);
        }
        say(what);
    }

    static void say(Object... words) {
        System.out.println(Arrays.stream(words).map(String::valueOf).collect(Collectors.joining(" ")));
    }

    static Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        return properties;
    }
}
