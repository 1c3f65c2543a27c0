import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;

/**
 * Prints the metrics of an application of Kafka Streams with stores of each kind, as group, name and
 * the names of its tags, one a line.
 */
public class StreamsMetrics {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        var settings = new Properties();
        settings.put("application.id", "java-metrics-" + arguments[1].toLowerCase());
        settings.put("bootstrap.servers", bootstrap);
        settings.put("metrics.recording.level", arguments[1]);
        settings.put("default.dsl.store", "in_memory");
        settings.put("commit.interval.ms", 100);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("state.dir", Files.createTempDirectory("streams-metrics").toString());
        try (var producer = new KafkaProducer<String, String>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 20; number++) {
                producer.send(new ProducerRecord<>("measured", "k" + number % 3, "v" + number)).get();
            }
        }
        try (var streams = new KafkaStreams(topology(), settings)) {
            streams.start();
            long deadline = System.currentTimeMillis() + 60_000;
            while (System.currentTimeMillis() < deadline && processed(streams) < 20) {
                Thread.sleep(100);
            }
            // Punctuations and commits of what was processed.
            Thread.sleep(1500);
            var found = new TreeSet<String>();
            for (MetricName name : streams.metrics().keySet()) {
                if (name.group().startsWith("stream-")) {
                    found.add(name.group() + "\t" + name.name() + "\t"
                        + String.join(",", new TreeSet<>(name.tags().keySet())));
                }
            }
            found.forEach(System.out::println);
        }
    }

    static double processed(KafkaStreams streams) {
        double most = 0;
        for (var each : streams.metrics().entrySet()) {
            if (each.getKey().name().equals("process-total")
                    && each.getKey().group().equals("stream-thread-metrics")) {
                most = Math.max(most, (Double) each.getValue().metricValue());
            }
        }
        return most;
    }

    static Topology topology() {
        var builder = new StreamsBuilder();
        var strings = Consumed.with(Serdes.String(), Serdes.String());
        var grouped = builder.stream("measured", strings)
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
        grouped.count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream().to("measured-counts", Produced.with(Serdes.String(), Serdes.Long()));
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(1)))
            .count(Materialized.<String, Long>as(Stores.inMemoryWindowStore("windows",
                    Duration.ofMinutes(1), Duration.ofSeconds(10), false))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())
                .withName("held"))
            .toStream().foreach((key, count) -> { });
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofSeconds(5)))
            .count(Materialized.<String, Long>as(Stores.inMemorySessionStore("sessions",
                    Duration.ofMinutes(1)))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()));
        return builder.build();
    }
}
