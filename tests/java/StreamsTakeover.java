import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

/**
 * A word count, also by windows, that runs until its input is closed. The same application in Python
 * takes over its topics and its state, and the other way round.
 */
public class StreamsTakeover {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String prefix = arguments[1];
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> words = builder
            .stream(prefix + "text", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")));
        KGroupedStream<String, String> grouped =
            words.groupBy((key, word) -> word, Grouped.with("by-word", Serdes.String(), Serdes.String()));
        grouped.count(Materialized.as(Stores.inMemoryKeyValueStore("counts"))).toStream()
            .to(prefix + "counts", Produced.with(Serdes.String(), Serdes.Long()));
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(5)))
            .count(Materialized.as(Stores.inMemoryWindowStore(
                "windowed", Duration.ofSeconds(15), Duration.ofSeconds(10), false))).toStream()
            .map((key, count) -> KeyValue.pair(key.key() + "@" + key.window().start(), count))
            .to(prefix + "windowed", Produced.with(Serdes.String(), Serdes.Long()));
        Properties properties = new Properties();
        properties.put("application.id", prefix + "app");
        properties.put("bootstrap.servers", bootstrap);
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("state.dir", Files.createTempDirectory("takeover").toString());
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.start();
        while (System.in.read() >= 0) { }
        streams.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(30)));
        System.out.println("closed");
    }
}
