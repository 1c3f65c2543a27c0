// Apache Kafka's own answer to how a partition changes: one case per line of the file in, one
// record per line out. Fields are separated by ';', numbers in a list by ','.

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.MetadataVersion;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

public class PartitionChanges {
    public static void main(String[] arguments) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            out.append(answer(line.split(";", -1))).append('\n');
        }
        System.out.print(out);
    }

    static String answer(String[] fields) {
        int[] replicas = numbers(fields[0]);
        Uuid[] directories = new Uuid[replicas.length];
        for (int i = 0; i < replicas.length; i++) directories[i] = new Uuid(0, 1000 + replicas[i]);
        PartitionRegistration partition = new PartitionRegistration.Builder().
            setReplicas(replicas).
            setDirectories(directories).
            setIsr(numbers(fields[1])).
            setRemovingReplicas(numbers(fields[2])).
            setAddingReplicas(numbers(fields[3])).
            setElr(numbers(fields[4])).
            setLastKnownElr(numbers(fields[5])).
            setLeader(Integer.parseInt(fields[6])).
            setLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(fields[7]))).
            setLeaderEpoch(5).
            setPartitionEpoch(9).
            build();
        List<Integer> alive = list(fields[8]);
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, new Uuid(0, 7), 0, alive::contains,
            MetadataVersion.fromFeatureLevel(Short.parseShort(fields[9])),
            Integer.parseInt(fields[10]), fields[11].equals("1"));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(fields[12]));
        builder.setDefaultDirProvider(id -> new Uuid(0, 2000 + id));
        if (!fields[13].equals("-")) builder.setTargetIsr(list(fields[13]));
        if (!fields[14].equals("-")) builder.setTargetReplicas(list(fields[14]));
        if (!fields[15].equals("-")) builder.setTargetRemoving(list(fields[15]));
        if (!fields[16].equals("-")) builder.setTargetAdding(list(fields[16]));
        if (!fields[17].isEmpty()) builder.setUncleanShutdownReplicas(list(fields[17]));
        if (!fields[18].equals("-")) builder.setTargetLeaderRecoveryState(
            LeaderRecoveryState.of(Byte.parseByte(fields[18])));
        return builder.build().
            map(made -> text((PartitionChangeRecord) made.message())).orElse("none");
    }

    static String text(PartitionChangeRecord record) {
        return text(record.isr()) + ";" + record.leader() + ";" + text(record.replicas()) + ";" +
            text(record.removingReplicas()) + ";" + text(record.addingReplicas()) + ";" +
            record.leaderRecoveryState() + ";" + text(record.eligibleLeaderReplicas()) + ";" +
            text(record.lastKnownElr()) + ";" + (record.directories() == null ? "-" :
            record.directories().stream().map(id -> "" + id.getLeastSignificantBits()).
                collect(Collectors.joining(",")));
    }

    static String text(List<Integer> numbers) {
        if (numbers == null) return "-";
        return numbers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    static int[] numbers(String text) {
        if (text.isEmpty()) return new int[0];
        return Arrays.stream(text.split(",")).mapToInt(Integer::parseInt).toArray();
    }

    static List<Integer> list(String text) {
        return Arrays.stream(numbers(text)).boxed().collect(Collectors.toList());
    }
}
