import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

/**
 * A session with Apache Kafka's own Java client that prints what its user sees, one line per step.
 * Whatever differs between two brokers by nature (ids, clocks, addresses) is not printed.
 */
public class ClientSession {
    static final Duration POLL = Duration.ofMillis(500);
    static final long T0 = 1_700_000_000_000L;
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin admin = Admin.create(properties())) {
            topics(admin);
            producing();
            refusals(admin);
            consuming();
            offsets(admin);
            groups(admin);
            configs(admin);
            cluster(admin);
            manyPartitions(admin);
            deletions(admin);
        }
    }

    // ---- steps

    static void topics(Admin admin) throws Exception {
        NewTopic plain = new NewTopic("plain", 3, (short) 1);
        NewTopic stamped = new NewTopic("stamped", 1, (short) -1)
            .configs(Map.of("message.timestamp.type", "LogAppendTime"));
        NewTopic compacted = new NewTopic("compacted", 1, (short) 1)
            .configs(Map.of("cleanup.policy", "compact"));
        CreateTopicsResult created = admin.createTopics(List.of(plain, stamped, compacted));
        say("created", created.numPartitions("plain").get(), created.replicationFactor("stamped").get(),
            created.config("compacted").get().get("cleanup.policy").value());
        attempt("create again", () -> admin.createTopics(List.of(plain)).all().get());
        attempt("create wrong name", () -> create(admin, new NewTopic("a b", 1, (short) 1)));
        attempt("create too replicated", () -> create(admin, new NewTopic("x", 1, (short) 3)));
        attempt("create unknown config", () -> create(admin,
            new NewTopic("x", 1, (short) 1).configs(Map.of("no.such", "1"))));
        attempt("create only checked", () -> admin.createTopics(
            List.of(new NewTopic("x", 1, (short) 1)), new CreateTopicsOptions().validateOnly(true)).all().get());
        attempt("grow", () -> admin.createPartitions(Map.of("plain", NewPartitions.increaseTo(4))).all().get());
        attempt("shrink", () -> admin.createPartitions(Map.of("plain", NewPartitions.increaseTo(2))).all().get());
        say("topics", new TreeSet<>(admin.listTopics().names().get()));
        // A broker learns of a change a moment after the controller has answered for it.
        until(() -> partitionCount(admin, "plain") == 4);
        // Pages of two partitions: the client asks DescribeTopicPartitions again from its cursor.
        TopicDescription described = admin.describeTopics(List.of("plain"),
            new DescribeTopicsOptions().partitionSizeLimitPerResponse(2)).allTopicNames().get().get("plain");
        say("described", described.name(), described.isInternal(), described.authorizedOperations(),
            described.partitions().stream().map(p -> p.partition() + ":" + p.replicas().size()
                + p.isr().size() + p.elr() + p.lastKnownElr()).collect(Collectors.toList()));
        Uuid id = described.topicId();
        say("described by id", admin.describeTopics(TopicCollection.ofTopicIds(List.of(id)))
            .allTopicIds().get().get(id).name());
        attempt("describe unknown id", () -> admin.describeTopics(
            TopicCollection.ofTopicIds(List.of(new Uuid(5, 5)))).allTopicIds().get());
        attempt("describe unknown", () -> admin.describeTopics(List.of("none")).allTopicNames().get());
        say("operations", admin.describeTopics(List.of("plain"), new DescribeTopicsOptions()
            .includeAuthorizedOperations(true)).allTopicNames().get().get("plain")
            .authorizedOperations().stream().sorted().collect(Collectors.toList()));
    }

    static void producing() throws Exception {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (Producer<String, String> producer = producer(Map.of("compression.type", codec))) {
                for (int i = 0; i < 20; i++) {
                    ProducerRecord<String, String> record =
                        new ProducerRecord<>("plain", 0, T0 + i, "key-" + i, codec + "-" + i);
                    record.headers().add("codec", codec.getBytes()).add("empty", new byte[0])
                        .add("codec", null);
                    producer.send(record);
                }
                RecordMetadata last = producer.send(
                    new ProducerRecord<String, String>("plain", 0, (Long) (T0 + 20), null, null)).get();
                say("produced", codec, last.offset(), last.timestamp() - T0,
                    last.serializedKeySize(), last.serializedValueSize());
            }
        }
        for (String acks : List.of("0", "1", "all")) {
            Map<String, String> more = Map.of("acks", acks, "enable.idempotence", "false");
            try (Producer<String, String> producer = producer(more)) {
                RecordMetadata sent = producer.send(
                    new ProducerRecord<>("plain", 1, T0, acks, acks)).get();
                say("acks", acks, sent.hasOffset() ? sent.offset() : "no offset");
                producer.flush();
            }
        }
        try (Producer<String, String> producer = producer(Map.of("batch.size", "200",
                "max.in.flight.requests.per.connection", "5", "linger.ms", "0"))) {
            for (int i = 0; i < 500; i++) {
                producer.send(new ProducerRecord<>("plain", 2, T0 + i, "k" + i, "in order " + i));
            }
            producer.flush();
            say("partitions", producer.partitionsFor("plain").size());
        }
        try (Producer<String, String> producer = producer(Map.of())) {
            long before = System.currentTimeMillis();
            RecordMetadata sent = producer.send(
                new ProducerRecord<>("stamped", 0, T0, "k", "v")).get();
            say("stamped by the broker", sent.timestamp() >= before - 1000);
        }
    }

    static void refusals(Admin admin) throws Exception {
        try (Producer<String, String> producer = producer(Map.of("max.block.ms", "1500"))) {
            attempt("no key on compacted", () -> send(producer, "compacted", 0, null, "v"));
            attempt("key on compacted", () -> send(producer, "compacted", 0, "k", "v"));
            attempt("no such partition", () -> send(producer, "plain", 9, "k", "v"));
            attempt("wrong topic", () -> send(producer, "a b", 0, "k", "v"));
        }
        Map<String, String> large = Map.of("max.request.size", "3000000", "buffer.memory", "9000000");
        try (Producer<String, String> producer = producer(large)) {
            attempt("too large", () -> send(producer, "plain", 3, "k", "x".repeat(2_000_000)));
        }
        set(admin, ConfigResource.Type.TOPIC, "plain", "max.message.bytes", "3000000");
        try (Producer<String, String> producer = producer(large)) {
            attempt("now fits", () -> send(producer, "plain", 3, "k", "x".repeat(2_000_000)));
        }
        try (Consumer<String, String> consumer = consumer(Map.of("max.partition.fetch.bytes", "1000",
                "fetch.max.bytes", "1000"))) {
            TopicPartition partition = new TopicPartition("plain", 3);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            say("larger than asked for", read(consumer, 1).get(0).value().length());
        }
        set(admin, ConfigResource.Type.TOPIC, "plain", "message.timestamp.after.max.ms", "1000");
        try (Producer<String, String> producer = producer(Map.of())) {
            long future = System.currentTimeMillis() + 3_600_000;
            attempt("from the future", () -> producer.send(
                new ProducerRecord<>("plain", 3, future, "k", "v")).get());
        }
    }

    static void consuming() {
        TopicPartition first = new TopicPartition("plain", 0);
        TopicPartition third = new TopicPartition("plain", 2);
        try (Consumer<String, String> consumer = consumer(Map.of("max.poll.records", "10"))) {
            consumer.assign(List.of(first));
            consumer.seekToBeginning(List.of(first));
            for (ConsumerRecord<String, String> record : read(consumer, 105)) {
                say(record.offset(), record.timestamp() - T0, record.timestampType(), record.key(),
                    record.value(), headers(record), record.leaderEpoch().orElse(-1));
            }
            say("position", consumer.position(first), consumer.currentLag(first));
            consumer.seek(first, 50);
            say("after seek", read(consumer, 1).get(0).value());
            say("begins", new TreeMap<>(strings(consumer.beginningOffsets(List.of(first, third)))),
                "ends", new TreeMap<>(strings(consumer.endOffsets(List.of(first, third)))));
            Map<TopicPartition, Long> times = Map.of(first, T0 + 15, third, T0 + 490);
            say("for times", new TreeMap<>(strings(consumer.offsetsForTimes(times))));
            say("after the end", consumer.offsetsForTimes(Map.of(first, T0 + 10_000)));
            consumer.assign(List.of(first, third));
            consumer.seekToBeginning(List.of(first, third));
            consumer.pause(List.of(first));
            List<ConsumerRecord<String, String>> unpaused = read(consumer, 500);
            say("unpaused only", unpaused.stream().map(ConsumerRecord::partition).distinct().toList(),
                unpaused.get(499).value(), inOrder(unpaused));
            consumer.resume(List.of(first));
            say("resumed", read(consumer, 105).size());
            say("topics", new TreeSet<>(consumer.listTopics().keySet()));
        }
        Map<String, String> out = Map.of("auto.offset.reset", "none");
        try (Consumer<String, String> consumer = consumer(out)) {
            consumer.assign(List.of(first));
            consumer.seek(first, 5000);
            attempt("out of range", () -> consumer.poll(Duration.ofSeconds(60)));
        }
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed",
                "check.crcs", "true", "fetch.min.bytes", "50000", "fetch.max.wait.ms", "100"))) {
            consumer.assign(List.of(third));
            consumer.seekToBeginning(List.of(third));
            say("read committed", inOrder(read(consumer, 500)));
        }
    }

    static void offsets(Admin admin) throws Exception {
        TopicPartition first = new TopicPartition("plain", 0);
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest(),
                OffsetSpec.maxTimestamp(), OffsetSpec.forTimestamp(T0 + 7),
                OffsetSpec.forTimestamp(T0 + 10_000), OffsetSpec.earliestLocal())) {
            var found = admin.listOffsets(Map.of(first, spec)).partitionResult(first).get();
            long time = found.timestamp() < 0 ? found.timestamp() : found.timestamp() - T0;
            say("list", spec.getClass().getSimpleName(), found.offset(), time, found.leaderEpoch());
        }
        attempt("latest tiered", () -> say(admin.listOffsets(Map.of(first, OffsetSpec.latestTiered()))
            .partitionResult(first).get().offset()));
        attempt("list without topic", () -> admin.listOffsets(
            Map.of(new TopicPartition("none", 0), OffsetSpec.latest()),
            new ListOffsetsOptions().timeoutMs(1500)).all().get());
        say("low watermark", admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(30)))
            .lowWatermarks().get(first).get().lowWatermark());
        attempt("delete too much", () -> admin.deleteRecords(
            Map.of(first, RecordsToDelete.beforeOffset(9000))).all().get());
        try (Consumer<String, String> consumer = consumer(Map.of("auto.offset.reset", "earliest"))) {
            consumer.assign(List.of(first));
            consumer.seek(first, 3);
            say("first left", read(consumer, 1).get(0).offset());
        }
        DescribeProducersResult.PartitionProducerState producers =
            admin.describeProducers(List.of(first)).partitionResult(first).get();
        say("producers", producers.activeProducers().stream().map(p -> p.producerEpoch() + ":"
            + p.lastSequence() + ":" + p.coordinatorEpoch() + ":" + p.currentTransactionStartOffset())
            .collect(Collectors.toList()));
        say("all gone", admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(-1)))
            .lowWatermarks().get(first).get().lowWatermark());
    }

    static void groups(Admin admin) throws Exception {
        Map<String, String> settings = Map.of("group.id", "readers", "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "group.instance.id", "one");
        List<TopicPartition> all = new ArrayList<>();
        for (int i = 1; i < 3; i++) all.add(new TopicPartition("plain", i));
        try (Consumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of("plain"));
            List<ConsumerRecord<String, String>> records = read(consumer, 503 + 1);
            say("subscribed", records.size(), consumer.assignment().size());
            consumer.commitSync(Map.of(all.get(0), new OffsetAndMetadata(1, "a note")));
            consumer.commitSync(Map.of(all.get(1), new OffsetAndMetadata(400)));
            say("committed", new TreeMap<>(strings(consumer.committed(Set.copyOf(all)))));
            ClassicGroupDescription group = admin.describeClassicGroups(List.of("readers"))
                .describedGroups().get("readers").get();
            say("group", group.state(), group.protocol(), group.protocolData(), group.members().size());
            MemberDescription member = group.members().iterator().next();
            say("member", member.groupInstanceId(), member.assignment().topicPartitions().size());
            attempt("delete a group in use",
                () -> admin.deleteConsumerGroups(List.of("readers")).all().get());
            say("metadata", consumer.groupMetadata().generationId());
        }
        attempt("remove member", () -> admin.removeMembersFromConsumerGroup("readers",
            new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("one")))).all().get());
        say("groups", admin.listGroups().all().get().stream().map(g -> g.groupId() + g.type()
            + g.groupState() + g.protocol()).sorted().collect(Collectors.toList()));
        say("consumer group", admin.describeConsumerGroups(List.of("readers")).all().get()
            .get("readers").groupState());
        admin.alterConsumerGroupOffsets("readers", Map.of(all.get(1), new OffsetAndMetadata(450)))
            .all().get();
        say("offsets", new TreeMap<>(strings(admin.listConsumerGroupOffsets("readers")
            .partitionsToOffsetAndMetadata().get())));
        Map<String, String> plain = Map.of("group.id", "readers");
        try (Consumer<String, String> consumer = consumer(plain)) {
            consumer.subscribe(java.util.regex.Pattern.compile("pl.*"));
            List<ConsumerRecord<String, String>> records = read(consumer, 50);
            say("resumed from the committed offset", records.get(0).offset());
        }
        admin.deleteConsumerGroupOffsets("readers", Set.of(all.get(1))).all().get();
        say("after deleting one", admin.listConsumerGroupOffsets("readers")
            .partitionsToOffsetAndMetadata().get().containsKey(all.get(1)));
        attempt("delete group", () -> admin.deleteConsumerGroups(List.of("readers")).all().get());
        attempt("delete no group", () -> admin.deleteConsumerGroups(List.of("none")).all().get());
        attempt("describe no group", () -> admin.describeConsumerGroups(List.of("none")).all().get());
    }

    static void configs(Admin admin) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "plain");
        attempt("append", () -> alter(admin, topic, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND));
        attempt("subtract", () -> alter(admin, topic, "cleanup.policy", "delete", AlterConfigOp.OpType.SUBTRACT));
        attempt("append to a number", () -> alter(admin, topic, "retention.ms", "1", AlterConfigOp.OpType.APPEND));
        attempt("not a number", () -> alter(admin, topic, "retention.ms", "x", AlterConfigOp.OpType.SET));
        attempt("unknown", () -> alter(admin, topic, "no.such", "1", AlterConfigOp.OpType.SET));
        attempt("back", () -> alter(admin, topic, "max.message.bytes", "", AlterConfigOp.OpType.DELETE));
        until(() -> admin.describeConfigs(List.of(topic)).all().get().get(topic)
            .get("max.message.bytes").isDefault());
        Config config = admin.describeConfigs(List.of(topic), new DescribeConfigsOptions()
            .includeSynonyms(true).includeDocumentation(true)).all().get().get(topic);
        say("config", config.entries().stream().filter(e -> !e.isDefault())
            .map(e -> e.name() + "=" + e.value() + e.source() + e.type() + e.synonyms().size()
                + (e.documentation() != null)).sorted().collect(Collectors.toList()));
        say("keys", config.entries().stream().map(ConfigEntry::name).sorted().collect(Collectors.toList()));
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "m");
        attempt("metrics", () -> alter(admin, metrics, "interval.ms", "60000", AlterConfigOp.OpType.SET));
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "g");
        attempt("group", () -> alter(admin, group, "consumer.session.timeout.ms", "50000", AlterConfigOp.OpType.SET));
        // A broker hears of it a moment after the controller has answered.
        until(() -> admin.listConfigResources().all().get().contains(group));
        say("resources", admin.listConfigResources().all().get().stream()
            .map(r -> r.type() + ":" + r.name()).sorted().collect(Collectors.toList()));
        say("only metrics", admin.listConfigResources(Set.of(ConfigResource.Type.CLIENT_METRICS),
            new ListConfigResourcesOptions()).all().get());
    }

    static void cluster(Admin admin) throws Exception {
        DescribeClusterResult described = admin.describeCluster(
            new DescribeClusterOptions().includeAuthorizedOperations(true));
        say("cluster", described.nodes().get().size(), described.clusterId().get().length(),
            described.authorizedOperations().get().stream().sorted().collect(Collectors.toList()));
        int node = described.nodes().get().iterator().next().id();
        Map<String, LogDirDescription> folders =
            admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node);
        LogDirDescription folder = folders.values().iterator().next();
        say("folders", folders.size(), folder.error(), folder.totalBytes().getAsLong() > 0,
            folder.usableBytes().getAsLong() > 0,
            folder.replicaInfos().entrySet().stream().filter(e -> e.getKey().topic().equals("plain"))
                .map(e -> e.getKey() + ":" + e.getValue().offsetLag() + e.getValue().isFuture()
                    + (e.getValue().size() > 0)).sorted().collect(Collectors.toList()));
        say("features", new TreeMap<>(strings(admin.describeFeatures().featureMetadata().get()
            .finalizedFeatures())));
        say("supported", new TreeMap<>(strings(admin.describeFeatures().featureMetadata().get()
            .supportedFeatures())));
        TopicPartitionReplica replica = new TopicPartitionReplica("plain", 0, node);
        attempt("move to nowhere", () -> admin.alterReplicaLogDirs(Map.of(replica, "/no/such/folder")).all().get());
    }

    /** Incremental fetch sessions over many partitions: records arrive for a few at a time. */
    static void manyPartitions(Admin admin) throws Exception {
        create(admin, new NewTopic("many", 300, (short) 1));
        List<TopicPartition> all = new ArrayList<>();
        for (int i = 0; i < 300; i++) all.add(new TopicPartition("many", i));
        try (Consumer<String, String> consumer = consumer(Map.of());
             Producer<String, String> producer = producer(Map.of())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            consumer.poll(POLL);
            for (int round = 0; round < 5; round++) {
                for (int i = round; i < 300; i += 7) producer.send(new ProducerRecord<>("many", i, "k", "r" + round));
                producer.flush();
                int expected = (300 - round + 6) / 7;
                List<ConsumerRecord<String, String>> records = read(consumer, expected);
                say("round", round, records.size(), records.stream().map(ConsumerRecord::value).distinct().toList());
            }
            consumer.assign(all.subList(0, 10));
            producer.send(new ProducerRecord<>("many", 3, "k", "fewer")).get();
            say("fewer", read(consumer, 1).get(0).value());
        }
    }

    static void deletions(Admin admin) throws Exception {
        Uuid id = admin.describeTopics(List.of("many")).allTopicNames().get().get("many").topicId();
        attempt("delete by id", () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get());
        attempt("delete by id again", () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get());
        attempt("delete", () -> admin.deleteTopics(List.of("stamped", "compacted", "plain")).all().get());
        attempt("delete again", () -> admin.deleteTopics(List.of("plain")).all().get());
        until(() -> !admin.listTopics().names().get().contains("plain"));
        say("left", new TreeSet<>(admin.listTopics().names().get()));
    }

    // ---- helpers

    interface Step { void run() throws Exception; }

    static void attempt(String what, Step step) {
        try {
            step.run();
            say(what, "done");
        } catch (ExecutionException failure) {
            say(what, failure.getCause().getClass().getSimpleName());
        } catch (Exception failure) {
            say(what, failure.getClass().getSimpleName());
        }
    }

    interface Condition { boolean holds() throws Exception; }

    static void until(Condition condition) throws Exception {
        long deadline = System.currentTimeMillis() + 60_000;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("never so");
            Thread.sleep(10);
        }
    }

    static int partitionCount(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
            .partitions().size();
    }

    static void say(Object... parts) {
        System.out.println(Arrays.stream(parts).map(String::valueOf).collect(Collectors.joining(" ")));
    }

    static void create(Admin admin, NewTopic topic) throws Exception {
        admin.createTopics(List.of(topic)).all().get();
    }

    static void send(Producer<String, String> producer, String topic, int partition, String key, String value)
            throws Exception {
        producer.send(new ProducerRecord<>(topic, partition, T0, key, value)).get();
    }

    static void set(Admin admin, ConfigResource.Type type, String name, String key, String value) throws Exception {
        alter(admin, new ConfigResource(type, name), key, value, AlterConfigOp.OpType.SET);
    }

    static void alter(Admin admin, ConfigResource resource, String key, String value, AlterConfigOp.OpType how)
            throws Exception {
        Collection<AlterConfigOp> changes = List.of(new AlterConfigOp(new ConfigEntry(key, value), how));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    static List<ConsumerRecord<String, String>> read(Consumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        long deadline = System.currentTimeMillis() + 60_000;
        while (records.size() < count && System.currentTimeMillis() < deadline) {
            consumer.poll(POLL).forEach(records::add);
        }
        return records;
    }

    static boolean inOrder(List<ConsumerRecord<String, String>> records) {
        for (int i = 0; i < records.size(); i++) {
            if (!records.get(i).value().equals("in order " + i)) return false;
        }
        return true;
    }

    static String headers(ConsumerRecord<String, String> record) {
        StringBuilder text = new StringBuilder();
        for (Header header : record.headers()) {
            text.append(header.key()).append('=').append(header.value() == null ? "null"
                : new String(header.value(), StandardCharsets.UTF_8)).append(';');
        }
        return text.toString();
    }

    static <V> Map<String, String> strings(Map<?, V> map) {
        Map<String, String> texts = new TreeMap<>();
        map.forEach((key, value) -> texts.put(String.valueOf(key), String.valueOf(value)));
        return texts;
    }

    static Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.serializer", StringSerializer.class);
        properties.put("value.serializer", StringSerializer.class);
        properties.put("key.deserializer", StringDeserializer.class);
        properties.put("value.deserializer", StringDeserializer.class);
        return properties;
    }

    static Producer<String, String> producer(Map<String, String> more) {
        Properties properties = properties();
        properties.putAll(more);
        return new KafkaProducer<>(properties);
    }

    static Consumer<String, String> consumer(Map<String, String> more) {
        Properties properties = properties();
        properties.putAll(more);
        return new KafkaConsumer<>(properties);
    }
}
