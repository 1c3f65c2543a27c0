import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.Endpoint;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Tells for each line of standard input, key=value pairs separated by tabs, whether Apache Kafka
 * would start with it: "ok", the advertised listeners of brokers and of controllers and the
 * inter-broker listener, or "no" and why not.
 */
public class StartConfigs {
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line; (line = lines.readLine()) != null; ) {
            Properties properties = new Properties();
            for (String pair : line.split("\t")) {
                int at = pair.indexOf('=');
                properties.put(pair.substring(0, at), pair.substring(at + 1));
            }
            out.println(verdict(properties));
        }
    }

    static String verdict(Properties properties) {
        try {
            KafkaConfig config = new KafkaConfig(properties, false);
            return String.join("\t", "ok", text(config.effectiveAdvertisedBrokerListeners()),
                text(config.effectiveAdvertisedControllerListeners()),
                config.interBrokerListenerName().value());
        } catch (Exception refused) {
            return "no\t" + String.valueOf(refused.getMessage()).replace('\n', ' ');
        }
    }

    static String text(Seq<Endpoint> endpoints) {
        List<Endpoint> all = CollectionConverters.asJava(endpoints);
        return all.stream()
            .map(each -> each.listener() + " " + (each.host() == null ? "" : each.host()) + " "
                + each.port())
            .collect(Collectors.joining(","));
    }
}
