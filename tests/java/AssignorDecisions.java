// Apache Kafka's own client-side assignors: groups in, assignments out.
//
// A line in has three fields between tabs. The first is the assignor's name. The second has the
// topics, "name=racks,racks;..." with the racks of a partition's replicas joined by "+". The third
// has the members, separated by ";", each "id|instance|rack|topics|owned|generation|user data" with
// lists joined by ",", partitions as "topic:index" and the user data in hex; what is absent is "".
// What comes out is a line of "id=topic:index,...;...", sorted by id.

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.Collectors;

public class AssignorDecisions {
    static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    static Optional<String> text(String field) {
        return field.isEmpty() ? Optional.empty() : Optional.of(field);
    }

    static Cluster cluster(String field) {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : field.split(";")) {
            String[] parts = topic.split("=", 2);
            int index = 0;
            for (String racks : parts[1].split(",", -1)) {
                Node[] replicas = Arrays.stream(racks.split("\\+", -1))
                    .map(rack -> new Node(1, "h", 1, rack.isEmpty() ? null : rack)).toArray(Node[]::new);
                partitions.add(new PartitionInfo(parts[0], index++, replicas[0], replicas, replicas));
            }
        }
        return new Cluster("c", List.of(new Node(1, "h", 1)), partitions, Set.of(), Set.of());
    }

    static Map<String, Subscription> members(String field) {
        Map<String, Subscription> found = new HashMap<>();
        for (String member : field.split(";")) {
            String[] parts = member.split("\\|", -1);
            List<TopicPartition> owned = new ArrayList<>();
            for (String key : parts[4].isEmpty() ? new String[0] : parts[4].split(",")) {
                String[] halves = key.split(":");
                owned.add(new TopicPartition(halves[0], Integer.parseInt(halves[1])));
            }
            ByteBuffer data = parts[6].isEmpty() ? null : ByteBuffer.wrap(HexFormat.of().parseHex(parts[6]));
            Subscription subscription = new Subscription(List.of(parts[3].split(",")), data, owned,
                Integer.parseInt(parts[5]), text(parts[2]));
            subscription.setGroupInstanceId(text(parts[1]));
            found.put(parts[0], subscription);
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] fields = line.split("\t");
            var assigned = assignor(fields[0])
                .assign(cluster(fields[1]), new GroupSubscription(members(fields[2]))).groupAssignment();
            System.out.println(new TreeMap<>(assigned).entrySet().stream()
                .map(each -> each.getKey() + "=" + each.getValue().partitions().stream()
                    .map(key -> key.topic() + ":" + key.partition()).collect(Collectors.joining(",")))
                .collect(Collectors.joining(";")));
        }
    }
}
