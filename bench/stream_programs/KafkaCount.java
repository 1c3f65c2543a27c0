import java.nio.file.Files;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;

/** Counts by key with Kafka Streams: bootstrap, input, output, application id, guarantee. */
public class KafkaCount {
    public static void main(String[] arguments) throws Exception {
        var builder = new StreamsBuilder();
        builder.stream(arguments[1], Consumed.with(Serdes.String(), Serdes.String()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to(arguments[2], Produced.with(Serdes.String(), Serdes.Long()));
        var settings = new Properties();
        settings.put("application.id", arguments[3]);
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("processing.guarantee", arguments[4]);
        settings.put("commit.interval.ms", 100);
        settings.put("statestore.cache.max.bytes", 0);
        settings.put("auto.offset.reset", "earliest");
        settings.put("state.dir", Files.createTempDirectory("kafka-count").toString());
        var streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        Thread.sleep(Long.MAX_VALUE);
    }
}
