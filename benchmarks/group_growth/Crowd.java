import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
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
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Java's consumers of a large group, a thread each. crowd.py describes the orders, and the lines that it writes. */
public class Crowd {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long FLUSH_EVERY_MS = 100;
    private static final String COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";

    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);
    private static final Object READING = new Object();
    private static List<List<Object>> reads = new ArrayList<>();
    private static volatile boolean over;

    public static void main(String[] args) throws Exception {
        JsonNode job = JSON.readTree(args[0]);
        say(Map.of("version", "kafka-clients " + AppInfoParser.getVersion()));
        System.in.read();
        Thread flusher = new Thread(Crowd::flushOften);
        flusher.setDaemon(true);
        flusher.start();
        List<Thread> threads = new ArrayList<>();
        for (int index = 0; index < job.get("consumers").asInt(); index++) {
            int number = index;
            threads.add(new Thread(() -> consume(job, number)));
        }
        threads.forEach(Thread::start);
        while (System.in.read() >= 0) {
        }
        over = true;
        for (Thread thread : threads) {
            thread.join();
        }
        flush();
    }

    private static void consume(JsonNode job, int number) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(job))) {
            consumer.subscribe(List.of(job.get("topic").asText()), new Share(number));
            while (!over) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    String text = new String(record.value(), StandardCharsets.US_ASCII);
                    int value = Integer.parseInt(text.substring(0, text.indexOf(' ')));
                    synchronized (READING) {
                        reads.add(List.of(record.partition(), value, System.nanoTime() / 1e9));
                    }
                }
            }
        } catch (KafkaException error) {
            say(Map.of("error", error.getClass().getSimpleName() + ": " + error.getMessage()));
        }
    }

    private static Properties settings(JsonNode job) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", job.get("bootstrap").asText());
        settings.put("group.id", job.get("topic").asText());
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("group.protocol", job.get("protocol").asText());
        if (!job.get("protocol").asText().equals("consumer")) {
            settings.put("partition.assignment.strategy", COOPERATIVE);
        }
        return settings;
    }

    private static void flushOften() {
        try {
            while (true) {
                Thread.sleep(FLUSH_EVERY_MS);
                flush();
            }
        } catch (InterruptedException end) {
            // The program ends.
        }
    }

    private static void flush() {
        List<List<Object>> taken;
        synchronized (READING) {
            taken = reads;
            reads = new ArrayList<>();
        }
        if (!taken.isEmpty()) {
            say(Map.of("reads", taken));
        }
    }

    private static synchronized void say(Object line) {
        try {
            OUT.write((JSON.writeValueAsString(line) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException gone) {
            System.exit(1);
        }
    }

    private static class Share implements ConsumerRebalanceListener {
        private final int consumer;
        private final TreeSet<Integer> assigned = new TreeSet<>();

        Share(int consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            double at = System.nanoTime() / 1e9;
            partitions.forEach(partition -> assigned.add(partition.partition()));
            say(Map.of("consumer", consumer, "assigned", assigned, "at", at));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            double at = System.nanoTime() / 1e9;
            partitions.forEach(partition -> assigned.remove(partition.partition()));
            say(Map.of("consumer", consumer, "assigned", assigned, "at", at));
        }
    }
}
