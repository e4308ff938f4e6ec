import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * What Kafka's own assignors say: a case per line in, an answer per line out, both JSON.
 *
 * In: assignor, topics (a name, and for each partition its racks), members (id, instance id or null, the subscription's
 * bytes in base64; in the order of JoinGroup), generation.
 * Out: members (an id, and the assignment's bytes), user_data (what each of them would put into its next
 * subscription), again (what Java makes of a subscription when it writes what it has read); or error.
 */
public class Assign {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (RuntimeException error) {
                answer.removeAll();
                answer.put("error", error.toString());
            }
            out.write((JSON.writeValueAsString(answer) + "\n").getBytes("UTF-8"));
        }
        out.flush();
    }

    private static void answer(JsonNode given, ObjectNode answer) throws Exception {
        String name = given.get("assignor").asText();
        Map<String, Subscription> subscriptions = new HashMap<>();
        ObjectNode again = answer.putObject("again");
        for (JsonNode member : given.get("members")) {
            byte[] bytes = member.get(2).binaryValue();
            Subscription read = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(bytes));
            again.put(member.get(0).asText(), bytes(ConsumerProtocol.serializeSubscription(read, version(bytes))));
            read.setGroupInstanceId(Optional.ofNullable(member.get(1).textValue()));
            subscriptions.put(member.get(0).asText(), read);
        }
        Cluster cluster = cluster(given.get("topics"));
        Map<String, Assignment> assigned =
            assignor(name).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        ObjectNode members = answer.putObject("members");
        ObjectNode userData = answer.putObject("user_data");
        for (String member : new TreeSet<>(assigned.keySet())) {
            ByteBuffer written = ConsumerProtocol.serializeAssignment(assigned.get(member));
            members.put(member, bytes(written.duplicate()));
            ConsumerPartitionAssignor one = assignor(name);
            ConsumerGroupMetadata metadata =
                new ConsumerGroupMetadata("g", given.get("generation").asInt(), member, Optional.empty());
            one.onAssignment(ConsumerProtocol.deserializeAssignment(written), metadata);
            ByteBuffer next = one.subscriptionUserData(Collections.emptySet());
            userData.put(member, next == null ? null : bytes(next));
        }
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            int index = 0;
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks)
                    replicas.add(nodes.computeIfAbsent(rack.asText(), r -> new Node(nodes.size(), "h", 9092, r)));
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), index++, all.length > 0 ? all[0] : null, all, all));
            }
        });
        return new Cluster("c", nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range":
                return new RangeAssignor();
            case "roundrobin":
                return new RoundRobinAssignor();
            case "sticky":
                return new StickyAssignor();
            default:
                return new CooperativeStickyAssignor();
        }
    }

    private static short version(byte[] subscription) {
        return (short) Math.min(ByteBuffer.wrap(subscription).getShort(), 3);
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }
}
