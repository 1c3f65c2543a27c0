import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;

/** The programs with Kafka Streams; the arguments are those of the package. */
public class KafkaProgram {
    public static void main(String[] arguments) throws Exception {
        var inputs = arguments[1].split(",");
        var target = arguments[2];
        var text = Consumed.with(Serdes.String(), Serdes.String());
        var written = Produced.with(Serdes.String(), Serdes.String());
        var builder = new StreamsBuilder();
        var stream = builder.stream(inputs[0], text);
        var grouped = stream.groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
        switch (arguments[5]) {
            case "stateless" -> stream
                .filter((key, value) -> value != null)
                .mapValues(value -> value + "!")
                .to(target, written);
            case "count" -> grouped
                .count(Materialized.as("counts"))
                .toStream()
                .to(target, Produced.with(Serdes.String(), Serdes.Long()));
            case "windowed" -> grouped
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(5), Duration.ofSeconds(1)))
                .count(Materialized.as("counts"))
                .toStream()
                .to(target, Produced.with(
                    WindowedSerdes.timeWindowedSerdeFrom(String.class, 5000), Serdes.Long()));
            case "stream-table" -> {
                KTable<String, String> table = builder.table(inputs[1], text, Materialized.as("rows"));
                stream
                    .leftJoin(table, (one, two) -> one,
                        Joined.with(Serdes.String(), Serdes.String(), Serdes.String()))
                    .to(target, written);
            }
            case "stream-stream" -> stream
                .join(builder.stream(inputs[1], text), (one, two) -> one,
                    JoinWindows.ofTimeDifferenceAndGrace(
                        Duration.ofMillis(50), Duration.ofMinutes(10)),
                    StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()))
                .to(target, written);
            default -> throw new IllegalArgumentException(arguments[5]);
        }
        var settings = new Properties();
        settings.put("application.id", arguments[3]);
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("processing.guarantee", arguments[4]);
        settings.put("commit.interval.ms", 100);
        settings.put("statestore.cache.max.bytes", 0);
        settings.put("default.dsl.store", arguments[6].equals("memory") ? "in_memory" : "rocksDB");
        settings.put("auto.offset.reset", "earliest");
        settings.put("state.dir", arguments[7]);
        var streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        Thread.sleep(Long.MAX_VALUE);
    }
}
