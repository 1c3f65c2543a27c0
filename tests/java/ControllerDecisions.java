// Apache Kafka's own controller, without a quorum: requests in, answers and the cluster's state out.
//
// A line in is "command version hex", where hex is a request in that version or a record for
// "replay"; "time" has the milliseconds there and "offset" where the log goes on. What comes out is a line with an error name and
// the hex of the response, then the brokers and partitions one per line, then a line with a dot.
// It is in this package because the classes are not public.

package org.apache.kafka.controller;

import kafka.server.KafkaConfig;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;

public class ControllerDecisions {
    static class Clock implements Time {
        long nowMs = 0;

        public long milliseconds() { return nowMs; }
        public long nanoseconds() { return TimeUnit.MILLISECONDS.toNanos(nowMs); }
        public void sleep(long ms) { nowMs += ms; }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
    }

    final Clock clock = new Clock();
    final LogContext logs = new LogContext();
    final SnapshotRegistry registry = new SnapshotRegistry(logs);
    final FeatureControlManager features;
    final ClusterControlManager cluster;
    final ConfigurationControlManager configs;
    final ReplicationControlManager replication;
    final Set<Uuid> topics = new LinkedHashSet<>();
    long nextOffset;

    ControllerDecisions(String clusterId, int sessionMs, long firstOffset) {
        nextOffset = firstOffset;
        features = new FeatureControlManager.Builder().setSnapshotRegistry(registry).
            setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true),
                List.of(0))).build();
        configs = new ConfigurationControlManager.Builder().setSnapshotRegistry(registry).
            setFeatureControl(features).
            setStaticConfig(Map.of()).
            setKafkaConfigSchema(new KafkaConfigSchema(
                Map.of(ConfigResource.Type.BROKER, KafkaConfig.configDef(),
                    ConfigResource.Type.TOPIC, LogConfig.configDefCopy()),
                ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS)).build();
        cluster = new ClusterControlManager.Builder().setClusterId(clusterId).setTime(clock).
            setSnapshotRegistry(registry).setFeatureControlManager(features).
            setSessionTimeoutNs(TimeUnit.MILLISECONDS.toNanos(sessionMs)).
            setBrokerShutdownHandler(this::onShutdown).build();
        replication = new ReplicationControlManager.Builder().setSnapshotRegistry(registry).
            setConfigurationControl(configs).setClusterControl(cluster).
            setFeatureControl(features).build();
        cluster.activate();
    }

    void onShutdown(int brokerId, boolean clean, List<ApiMessageAndVersion> records) {
        replication.handleBrokerShutdown(brokerId, clean, records);
    }

    void replay(ApiMessageAndVersion record) {
        Message message = record.message();
        if (message instanceof TopicRecord made) {
            replication.replay(made);
            topics.add(made.topicId());
        } else if (message instanceof PartitionRecord made) replication.replay(made);
        else if (message instanceof PartitionChangeRecord made) replication.replay(made);
        else if (message instanceof RemoveTopicRecord made) {
            replication.replay(made);
            topics.remove(made.topicId());
        } else if (message instanceof ClearElrRecord made) replication.replay(made);
        else if (message instanceof ConfigRecord made) configs.replay(made);
        else if (message instanceof FeatureLevelRecord made) features.replay(made);
        else if (message instanceof RegisterBrokerRecord made) cluster.replay(made, nextOffset);
        else if (message instanceof UnregisterBrokerRecord made) cluster.replay(made);
        else if (message instanceof BrokerRegistrationChangeRecord made) cluster.replay(made);
        else throw new IllegalStateException("not expected here: " + message);
        nextOffset++;
    }

    <T> T apply(ControllerResult<T> result) {
        result.records().forEach(this::replay);
        return result.response();
    }

    static Message answer(ControllerDecisions world, String command, short version, ByteBuffer in) {
        ByteBufferAccessor body = new ByteBufferAccessor(in);
        switch (command) {
            case "register": {
                Map<String, Short> finalized = new HashMap<>(
                    world.features.finalizedFeatures(Long.MAX_VALUE).featureMap());
                BrokerRegistrationReply reply = world.apply(world.cluster.registerBroker(
                    new BrokerRegistrationRequestData(body, version), world.nextOffset,
                    new FinalizedControllerFeatures(finalized, Long.MAX_VALUE), version >= 3));
                return new BrokerRegistrationResponseData().setBrokerEpoch(reply.epoch());
            }
            case "heartbeat": {
                BrokerHeartbeatRequestData request = new BrokerHeartbeatRequestData(body, version);
                world.cluster.checkBrokerEpoch(request.brokerId(), request.brokerEpoch());
                world.cluster.trackBrokerHeartbeat(request.brokerId(), request.brokerEpoch());
                BrokerHeartbeatReply reply = world.apply(world.replication.processBrokerHeartbeat(
                    request,
                    world.cluster.registerBrokerRecordOffset(request.brokerId()).getAsLong()));
                if (reply.inControlledShutdown()) {
                    world.cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(
                        request.brokerId(), world.nextOffset - 1);
                }
                return new BrokerHeartbeatResponseData().setIsCaughtUp(reply.isCaughtUp()).
                    setIsFenced(reply.isFenced()).setShouldShutDown(reply.shouldShutDown());
            }
            case "unregister": {
                UnregisterBrokerRequestData request = new UnregisterBrokerRequestData(body, version);
                world.apply(world.replication.unregisterBroker(request.brokerId()));
                return new UnregisterBrokerResponseData().setErrorMessage(null);
            }
            case "alter":
                return world.apply(world.replication.alterPartition(
                    new ControllerRequestContext(
                        new RequestHeaderData().setRequestApiVersion(version),
                        KafkaPrincipal.ANONYMOUS, OptionalLong.empty()),
                    new AlterPartitionRequestData(body, version)));
            case "elect":
                return world.apply(world.replication.electLeaders(
                    new ElectLeadersRequestData(body, version)));
            case "reassign":
                return world.apply(world.replication.alterPartitionReassignments(
                    new AlterPartitionReassignmentsRequestData(body, version)));
            case "list":
                return world.replication.listPartitionReassignments(
                    new ListPartitionReassignmentsRequestData(body, version).topics(),
                    Long.MAX_VALUE);
            case "assign":
                return world.apply(world.replication.handleAssignReplicasToDirs(
                    new AssignReplicasToDirsRequestData(body, version)));
            default:
                throw new IllegalStateException("no such command: " + command);
        }
    }

    String run(String command, short version, String argument) {
        if (command.equals("time")) {
            clock.nowMs = Long.parseLong(argument);
            while (apply(replication.maybeFenceOneStaleBroker())) { }
            return "NONE";
        }
        if (command.equals("balance")) {
            apply(replication.maybeBalancePartitionLeaders());
            return "NONE";
        }
        if (command.equals("unclean")) {
            apply(replication.maybeElectUncleanLeaders());
            return "NONE";
        }
        if (command.equals("offset")) {
            nextOffset = Long.parseLong(argument);
            return "NONE";
        }
        ByteBuffer in = ByteBuffer.wrap(HexFormat.of().parseHex(argument));
        if (command.equals("replay")) {
            replay(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(in), in.remaining()));
            return "NONE";
        }
        try {
            return "NONE " + hex(answer(this, command, version, in), version);
        } catch (RuntimeException error) {
            return Errors.forException(error).name();
        }
    }

    static String hex(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        return HexFormat.of().formatHex(out.array());
    }

    void state(StringBuilder out) {
        for (BrokerRegistration broker : new TreeMap<>(cluster.brokerRegistrations()).values()) {
            out.append("broker ").append(broker.id()).append(' ').append(broker.epoch()).append(' ').
                append(broker.fenced()).append(' ').append(broker.inControlledShutdown()).
                append(' ').append(ids(broker.directories())).append('\n');
        }
        for (Uuid topic : topics) {
            int count = replication.getTopic(topic).numPartitions(Long.MAX_VALUE);
            for (int index = 0; index < count; index++) {
                PartitionRegistration it = replication.getPartition(topic, index);
                out.append("partition ").append(number(topic)).append(' ').append(index).
                    append(' ').append(it.leader).append(' ').append(it.leaderEpoch).append(' ').
                    append(it.partitionEpoch).append(' ').append(it.leaderRecoveryState.value()).
                    append(' ').append(Arrays.toString(it.replicas).replace(" ", "")).
                    append(' ').append(Arrays.toString(it.isr).replace(" ", "")).
                    append(' ').append(Arrays.toString(it.elr).replace(" ", "")).
                    append(' ').append(Arrays.toString(it.lastKnownElr).replace(" ", "")).
                    append(' ').append(Arrays.toString(it.addingReplicas).replace(" ", "")).
                    append(' ').append(Arrays.toString(it.removingReplicas).replace(" ", "")).
                    append(' ').append(ids(List.of(it.directories))).append('\n');
            }
        }
    }

    static String ids(List<Uuid> ids) {
        return ids.stream().map(ControllerDecisions::number).collect(
            Collectors.joining(",", "[", "]"));
    }

    static String number(Uuid id) {
        return String.format("%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    public static void main(String[] arguments) throws Exception {
        ControllerDecisions world = null;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            StringBuilder out = new StringBuilder();
            if (words[0].equals("new")) {
                world = new ControllerDecisions(
                    words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]));
                out.append("NONE\n");
            } else {
                String argument = words.length < 3 ? "" : words[2];
                out.append(world.run(words[0], Short.parseShort(words[1]), argument)).append('\n');
                world.state(out);
            }
            System.out.print(out.append(".\n"));
            System.out.flush();
        }
    }
}
