import java.io.FileReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.*;

/**
 * Sessions of support.secured_clients with the Java client. Arguments: two system properties as
 * key=value, what permitted groups begin with, then for each session its name and its properties
 * file. Prints a line for each: name, values read, error codes; separated by tabs.
 */
public class SecuredSession {
    static final String OPEN = "open", READABLE = "readable", HIDDEN = "hidden";
    static final int COUNT = 6;

    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 2; i++) {
            String[] pair = arguments[i].split("=", 2);
            System.setProperty(pair[0], pair[1]);
        }
        for (int i = 3; i < arguments.length; i += 2) {
            Properties properties = new Properties();
            try (FileReader file = new FileReader(arguments[i + 1])) {
                properties.load(file);
            }
            session(arguments[i], arguments[2], properties);
        }
        System.exit(0);
    }

    static void session(String name, String groups, Properties properties) throws Exception {
        List<Integer> codes = new ArrayList<>();
        StringSerializer serializer = new StringSerializer();
        try (Producer<String, String> producer = new KafkaProducer<>(properties, serializer, serializer)) {
            for (int i = 0; i < COUNT; i++)
                producer.send(new ProducerRecord<>(OPEN, name + "." + i)).get();
            for (String topic : List.of(READABLE, HIDDEN)) {
                try {
                    producer.send(new ProducerRecord<>(topic, "denied")).get();
                    codes.add(0);
                } catch (ExecutionException failure) {
                    codes.add(code(failure.getCause()));
                }
            }
        }
        TreeSet<String> values = new TreeSet<>();
        try (Consumer<String, String> consumer = subscribed(properties, groups + name, OPEN)) {
            long deadline = System.currentTimeMillis() + 60_000;
            while (values.size() < COUNT && System.currentTimeMillis() < deadline)
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(500)))
                    if (each.value().startsWith(name + ".")) values.add(each.value());
        }
        codes.add(denied(properties, groups + name + "-hidden", HIDDEN));
        codes.add(denied(properties, "not-hers-" + name, OPEN));
        System.out.println(name + "\t" + String.join(",", values) + "\t"
            + codes.stream().map(String::valueOf).collect(Collectors.joining(",")));
    }

    static Consumer<String, String> subscribed(Properties properties, String group, String topic) {
        Properties own = new Properties();
        own.putAll(properties);
        own.put("group.id", group);
        own.put("auto.offset.reset", "earliest");
        StringDeserializer deserializer = new StringDeserializer();
        Consumer<String, String> consumer = new KafkaConsumer<>(own, deserializer, deserializer);
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    static int denied(Properties properties, String group, String topic) {
        try (Consumer<String, String> consumer = subscribed(properties, group, topic)) {
            consumer.poll(Duration.ofSeconds(60));
            return 0;
        } catch (ApiException failure) {
            return code(failure);
        }
    }

    static int code(Throwable failure) {
        return Errors.forException(failure).code();
    }
}
