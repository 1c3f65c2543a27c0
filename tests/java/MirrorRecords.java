import java.lang.reflect.Method;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.time.Duration;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;
import org.apache.kafka.connect.mirror.ReplicationPolicy;

/** MirrorMaker's own records and names, for comparison; and what its client reads of a mirror. */
public class MirrorRecords {
    public static void main(String[] words) throws Exception {
        switch (words[0]) {
            case "bytes" -> bytes();
            case "names" -> names(words);
            case "translate" -> translate(words);
            case "upstream" -> System.out.println(
                RemoteClusterUtils.upstreamClusters(Map.of("bootstrap.servers", words[1])));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void bytes() throws Exception {
        TopicPartition partition = new TopicPartition("größe.orders", 7);
        print("checkpoint", new Checkpoint("gruppe-ü", partition, 1L << 40, 12345L, "meta ü"));
        print("heartbeat", new Heartbeat("A", "büro", 1_700_000_000_123L));
        Class<?> sync = Class.forName("org.apache.kafka.connect.mirror.OffsetSync");
        var maker = sync.getDeclaredConstructor(TopicPartition.class, long.class, long.class);
        maker.setAccessible(true);
        print("sync", maker.newInstance(partition, 1L << 33, 5L));
    }

    private static void print(String name, Object record) throws Exception {
        for (String part : List.of("recordKey", "recordValue")) {
            Method method = record.getClass().getDeclaredMethod(part);
            method.setAccessible(true);
            byte[] found = (byte[]) method.invoke(record);
            System.out.println(name + " " + Base64.getEncoder().encodeToString(found));
        }
    }

    private static void names(String[] words) {
        for (String separator : List.of(".", "_", "--")) {
            for (ReplicationPolicy policy : List.of(
                    new DefaultReplicationPolicy(), new IdentityReplicationPolicy())) {
                Map<String, String> settings = Map.of(
                    "replication.policy.separator", separator, "source.cluster.alias", "A");
                if (policy instanceof DefaultReplicationPolicy each) each.configure(settings);
                for (int index = 1; index < words.length; index++) {
                    String topic = words[index];
                    System.out.println(String.join("\t",
                        policy.getClass().getSimpleName(), separator, topic,
                        policy.formatRemoteTopic("A", topic),
                        String.valueOf(policy.topicSource(topic)),
                        String.valueOf(policy.upstreamTopic(topic)),
                        policy.originalTopic(topic),
                        String.valueOf(policy.isHeartbeatsTopic(topic)),
                        String.valueOf(policy.isCheckpointsTopic(topic)),
                        String.valueOf(policy.isMM2InternalTopic(topic)),
                        String.valueOf(policy.isInternalTopic(topic)),
                        policy.offsetSyncsTopic("A"), policy.checkpointsTopic("A")));
                }
            }
        }
    }

    private static void translate(String[] words) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> found = RemoteClusterUtils.translateOffsets(
            Map.of("bootstrap.servers", words[1]), words[2], words[3], Duration.ofSeconds(30));
        found.forEach((partition, offset) ->
            System.out.println(partition + " " + offset.offset() + " " + offset.metadata()));
    }
}
