import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Java's KafkaConsumer as a member of a group under fault. member.py describes the lines that it writes. */
public class Member {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** After so many errors in a row, with no record in between, a member replaces its consumer by a new one. */
    private static final int PATIENCE = 10;
    private static final Duration REST = Duration.ofMillis(100);
    private static final Duration POLL = Duration.ofMillis(100);
    private static final String RANGE = "org.apache.kafka.clients.consumer.RangeAssignor";
    private static final String COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";

    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);
    private static volatile KafkaConsumer<byte[], byte[]> current;
    private static volatile long ordered;

    public static void main(String[] args) throws Exception {
        System.setErr(new PrintStream(new Complaints(System.err), true, StandardCharsets.UTF_8));
        JsonNode job = JSON.readTree(args[0]);
        say(Map.of("version", "kafka-clients " + AppInfoParser.getVersion()));
        Thread order = new Thread(Member::takeOrder);
        order.setDaemon(true);
        order.start();
        while (ordered == 0) {
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(job))) {
                current = consumer;
                consumer.subscribe(List.of(job.get("topic").asText()), new Shares());
                read(consumer);
            } catch (KafkaException error) {
                complain(error);
                Thread.sleep(REST.toMillis());
            }
        }
        say(Map.of("closed", (System.nanoTime() - ordered) / 1e9));
    }

    private static Properties settings(JsonNode job) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", job.get("bootstrap").asText());
        settings.put("group.id", job.get("group").asText());
        settings.put("auto.offset.reset", "earliest");
        settings.put("auto.commit.interval.ms", job.get("commit_interval_ms").asText());
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("group.protocol", job.get("protocol").asText());
        String assignor = job.get("assignor").asText();
        if (job.get("protocol").asText().equals("consumer")) {
            settings.put("group.remote.assignor", assignor);
        } else {
            settings.put("session.timeout.ms", job.get("session_timeout_ms").asText());
            settings.put("heartbeat.interval.ms", job.get("heartbeat_interval_ms").asText());
            settings.put("partition.assignment.strategy", assignor.equals("range") ? RANGE : COOPERATIVE);
        }
        return settings;
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer) throws InterruptedException {
        int failures = 0;
        while (failures < PATIENCE && ordered == 0) {
            try {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    failures = 0;
                    String text = new String(record.value(), StandardCharsets.US_ASCII);
                    int number = Integer.parseInt(text.substring(0, text.indexOf(' ')));
                    say(List.of(record.partition(), number, System.nanoTime() / 1e9));
                }
            } catch (WakeupException order) {
                return;
            } catch (KafkaException error) {
                failures++;
                complain(error);
                Thread.sleep(REST.toMillis());
            }
        }
    }

    /** Wait for the end of the standard input, which requests the close. */
    private static void takeOrder() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (IOException closed) {
            // The same as its end.
        }
        ordered = System.nanoTime();
        if (current != null) {
            current.wakeup();
        }
    }

    private static void complain(Exception error) {
        String text = error.getClass().getSimpleName() + ": " + error.getMessage();
        say(Map.of("error", text.substring(0, Math.min(text.length(), 200))));
    }

    private static synchronized void say(Object line) {
        try {
            // Less than a pipe accepts atomically, so that a kill cuts no line.
            OUT.write((JSON.writeValueAsString(line) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        } catch (IOException gone) {
            System.exit(1);
        }
    }

    private static class Shares implements ConsumerRebalanceListener {
        private final TreeSet<Integer> assigned = new TreeSet<>();

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> assigned.add(partition.partition()));
            say(Map.of("assigned", assigned));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> assigned.remove(partition.partition()));
            say(Map.of("assigned", assigned));
        }
    }

    /** Writes each line of the log to the standard output as well, its numbers as #. */
    private static class Complaints extends OutputStream {
        private final OutputStream errors;
        private final StringBuilder line = new StringBuilder();

        Complaints(OutputStream errors) {
            this.errors = errors;
        }

        @Override
        public synchronized void write(int character) throws IOException {
            errors.write(character);
            if (character != '\n') {
                line.append((char) character);
                return;
            }
            String text = line.toString();
            line.setLength(0);
            if (text.contains("] WARN ") || text.contains("] ERROR ")) {
                String said = text.substring(text.indexOf(" - ") + 3).replaceAll("\\d+", "#");
                say(Map.of("logged", said.substring(0, Math.min(said.length(), 100))));
            }
        }
    }
}
