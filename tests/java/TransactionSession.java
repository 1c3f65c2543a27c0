import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

/**
 * Transactions with Apache Kafka's own Java client, whose producer speaks transaction version 2
 * where the broker does. Prints what its user sees, one line per step; what differs between two
 * brokers by nature (producer ids, clocks) is not printed.
 */
public class TransactionSession {
    static final TopicPartition FIRST = new TopicPartition("t", 0);
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin admin = Admin.create(properties())) {
            admin.createTopics(List.of(new NewTopic("t", 3, (short) 1), new NewTopic("in", 1, (short) 1)))
                .all().get();
            commitsAndAborts(admin);
            offsets(admin);
            zombies(admin);
            timeouts(admin);
            manyInARow();
            fencedByAdmin(admin);
            refusals();
        }
        say("done");
    }

    // ---- steps

    static void commitsAndAborts(Admin admin) throws Exception {
        try (Producer<String, String> producer = producer("steps")) {
            producer.initTransactions();
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                for (int partition = 0; partition < 3; partition++) {
                    say("sent", send(producer, partition, "v" + number).offset());
                }
                say("open", stable(admin), end(admin), states(admin), described(admin, "steps"));
                say("producers", producers(admin));
                if (number % 3 == 1) producer.abortTransaction();
                else producer.commitTransaction();
                settle(admin);
                say("ended", stable(admin), end(admin), states(admin), described(admin, "steps"));
                say("producers", producers(admin));
            }
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            producer.abortTransaction();
            settle(admin);
            say("empty ones", end(admin), producers(admin));
        }
        say("committed", read("read_committed", 12));
        say("uncommitted", read("read_uncommitted", 18));
    }

    static void offsets(Admin admin) throws Exception {
        try (Producer<String, String> plain = new KafkaProducer<>(properties())) {
            for (int i = 0; i < 4; i++) plain.send(new ProducerRecord<>("in", 0, null, "i" + i)).get();
        }
        Properties more = properties();
        more.put("group.id", "job");
        more.put("enable.auto.commit", "false");
        more.put("auto.offset.reset", "earliest");
        for (String protocol : List.of("classic", "consumer")) {
            more.put("group.protocol", protocol);
            more.put("group.id", "job " + protocol);
            try (Consumer<String, String> consumer = new KafkaConsumer<>(more);
                    Producer<String, String> producer = producer("job")) {
                producer.initTransactions();
                consumer.subscribe(List.of("in"));
                List<ConsumerRecord<String, String>> records = new ArrayList<>();
                until(() -> {
                    consumer.poll(Duration.ofMillis(100)).forEach(records::add);
                    return records.size() == 4;
                });
                TopicPartition in = new TopicPartition("in", 0);
                producer.beginTransaction();
                send(producer, 0, "out");
                producer.sendOffsetsToTransaction(Map.of(in, new OffsetAndMetadata(2)), consumer.groupMetadata());
                producer.abortTransaction();
                say("aborted offsets", protocol, consumer.committed(java.util.Set.of(in)).get(in));
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(
                    Map.of(in, new OffsetAndMetadata(4, "done")), consumer.groupMetadata());
                producer.commitTransaction();
                say("committed offsets", protocol, consumer.committed(java.util.Set.of(in)).get(in));
                producer.beginTransaction();
                attempt("wrong generation", () -> {
                    producer.sendOffsetsToTransaction(Map.of(in, new OffsetAndMetadata(1)),
                        new ConsumerGroupMetadata("job " + protocol, 99,
                            consumer.groupMetadata().memberId(), java.util.Optional.empty()));
                    return "accepted";
                });
                producer.abortTransaction();
                producer.beginTransaction();
                attempt("unknown member", () -> {
                    producer.sendOffsetsToTransaction(Map.of(in, new OffsetAndMetadata(1)),
                        new ConsumerGroupMetadata("job " + protocol, 1, "stranger", java.util.Optional.empty()));
                    return "accepted";
                });
                producer.abortTransaction();
                say("after refusals", consumer.committed(java.util.Set.of(in)).get(in));
            }
        }
    }

    static void zombies(Admin admin) throws Exception {
        try (Producer<String, String> zombie = producer("twice"); Producer<String, String> next = producer("twice")) {
            zombie.initTransactions();
            zombie.beginTransaction();
            send(zombie, 1, "zombie");
            next.initTransactions();
            settle(admin);
            say("taken over", described(admin, "twice"));
            next.beginTransaction();
            send(next, 1, "next");
            attempt("zombie sends", () -> send(zombie, 1, "again").offset());
            attempt("zombie commits", () -> {
                zombie.commitTransaction();
                return "committed";
            });
            next.commitTransaction();
            settle(admin);
        }
        say("after zombie", stable(admin));
    }

    static void timeouts(Admin admin) throws Exception {
        Properties more = properties();
        more.put("transactional.id", "slow");
        // It is waited out, and yet enough for what is sent on a machine that is slow once.
        more.put("transaction.timeout.ms", "4000");
        more.put("delivery.timeout.ms", "4000");
        more.put("request.timeout.ms", "4000");
        more.put("linger.ms", "0");
        try (Producer<String, String> producer = new KafkaProducer<>(more)) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, 2, "slow");
            settle(admin);
            say("timed out", described(admin, "slow"));
            attempt("commit too late", () -> {
                producer.commitTransaction();
                return "committed";
            });
            attempt("abort after that", () -> {
                producer.abortTransaction();
                return "aborted";
            });
            attempt("go on", () -> {
                producer.beginTransaction();
                send(producer, 2, "on");
                producer.commitTransaction();
                return "committed";
            });
            settle(admin);
        }
        say("after timeout", stable(admin), described(admin, "slow"));
    }

    static void manyInARow() throws Exception {
        try (Producer<String, String> producer = producer("row")) {
            producer.initTransactions();
            for (int number = 0; number < 200; number++) {
                producer.beginTransaction();
                for (int partition = 0; partition < 3; partition++) {
                    producer.send(new ProducerRecord<>("t", partition, null, "row" + number));
                }
                if (number % 10 == 9) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        Properties more = properties();
        more.put("isolation.level", "read_committed");
        try (Consumer<String, String> consumer = new KafkaConsumer<>(more)) {
            List<TopicPartition> all = partitions();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            List<String> seen = new ArrayList<>();
            until(() -> {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> {
                    if (record.partition() == 1 && record.value().startsWith("row")) seen.add(record.value());
                });
                return seen.size() >= 180;
            });
            say("in a row", seen.size(), seen.equals(java.util.stream.IntStream.range(0, 200)
                .filter(number -> number % 10 != 9).mapToObj(number -> "row" + number).collect(Collectors.toList())));
        }
    }

    static void fencedByAdmin(Admin admin) throws Exception {
        try (Producer<String, String> producer = producer("fenced")) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, 0, "fenced");
            admin.fenceProducers(List.of("fenced")).all().get();
            settle(admin);
            say("fenced", described(admin, "fenced"));
            attempt("commit when fenced", () -> {
                producer.commitTransaction();
                return "committed";
            });
        }
        attempt("describe unknown", () -> described(admin, "nobody"));
        say("listed", admin.listTransactions().all().get().stream().map(TransactionListing::transactionalId)
            .collect(Collectors.toCollection(TreeSet::new)));
        say("listed by state", admin.listTransactions(new ListTransactionsOptions()
            .filterStates(List.of(TransactionState.ONGOING))).all().get().size());
    }

    static void refusals() {
        Properties more = properties();
        more.put("transactional.id", "too long");
        more.put("transaction.timeout.ms", "999999999");
        attempt("timeout above the maximum", () -> {
            try (Producer<String, String> producer = new KafkaProducer<>(more)) {
                producer.initTransactions();
                return "accepted";
            }
        });
    }

    // ---- what is shown

    static String described(Admin admin, String transactionalId) throws Exception {
        TransactionDescription found = admin.describeTransactions(List.of(transactionalId))
            .description(transactionalId).get();
        return found.state() + " epoch=" + found.producerEpoch() + " " + new TreeSet<>(found.topicPartitions()
            .stream().map(TopicPartition::toString).collect(Collectors.toList()));
    }

    static String states(Admin admin) throws Exception {
        return admin.listTransactions().all().get().stream()
            .map(each -> each.transactionalId() + ":" + each.state()).sorted().collect(Collectors.joining(","));
    }

    static String producers(Admin admin) throws Exception {
        return admin.describeProducers(List.of(FIRST)).partitionResult(FIRST).get().activeProducers().stream()
            .map(each -> each.producerEpoch() + "/" + each.lastSequence() + "/"
                + each.currentTransactionStartOffset().orElse(-1) + "/" + each.coordinatorEpoch().orElse(-1))
            .sorted().collect(Collectors.joining(","));
    }

    static String end(Admin admin) throws Exception {
        return listed(admin, IsolationLevel.READ_UNCOMMITTED);
    }

    static String stable(Admin admin) throws Exception {
        return listed(admin, IsolationLevel.READ_COMMITTED);
    }

    static String listed(Admin admin, IsolationLevel level) throws Exception {
        Map<TopicPartition, OffsetSpec> wanted = partitions().stream()
            .collect(Collectors.toMap(each -> each, each -> OffsetSpec.latest()));
        Map<TopicPartition, ListOffsetsResult.ListOffsetsResultInfo> found =
            admin.listOffsets(wanted, new ListOffsetsOptions(level)).all().get();
        return partitions().stream().map(each -> String.valueOf(found.get(each).offset()))
            .collect(Collectors.joining("/"));
    }

    /** Markers are written after the client has been answered. */
    static void settle(Admin admin) throws Exception {
        until(() -> stable(admin).equals(end(admin))
            && admin.listTransactions().all().get().stream().noneMatch(each ->
                each.state() != TransactionState.EMPTY && each.state() != TransactionState.COMPLETE_COMMIT
                && each.state() != TransactionState.COMPLETE_ABORT));
    }

    static List<String> read(String level, int count) {
        Properties more = properties();
        more.put("isolation.level", level);
        try (Consumer<String, String> consumer = new KafkaConsumer<>(more)) {
            List<TopicPartition> all = partitions();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            List<String> seen = new ArrayList<>();
            long deadline = System.currentTimeMillis() + 60_000;
            while (seen.size() < count && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(100)).forEach(record ->
                    seen.add(record.partition() + "@" + record.offset() + "=" + record.value()));
            }
            seen.sort(null);
            return seen;
        }
    }

    // ---- helpers

    static List<TopicPartition> partitions() {
        return List.of(FIRST, new TopicPartition("t", 1), new TopicPartition("t", 2));
    }

    static RecordMetadata send(Producer<String, String> producer, int partition, String value) throws Exception {
        return producer.send(new ProducerRecord<>("t", partition, null, value)).get();
    }

    static void attempt(String what, Callable<Object> step) {
        try {
            say(what, step.call());
        } catch (Throwable failure) {
            Throwable cause = failure instanceof ExecutionException ? failure.getCause() : failure;
            List<String> chain = new ArrayList<>();
            for (Throwable each = cause; each != null && chain.size() < 3; each = each.getCause()) {
                chain.add(each.getClass().getSimpleName());
            }
            say(what, chain);
        }
    }

    static void until(Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + 90_000;
        while (!condition.call()) {
            if (System.currentTimeMillis() > deadline) throw new IllegalStateException("waited for too long");
            Thread.sleep(10);
        }
    }

    static void say(Object... parts) {
        System.out.println(Arrays.stream(parts).map(String::valueOf).collect(Collectors.joining(" ")));
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

    static Producer<String, String> producer(String transactionalId) {
        Properties more = properties();
        more.put("transactional.id", transactionalId);
        return new KafkaProducer<>(more);
    }
}
