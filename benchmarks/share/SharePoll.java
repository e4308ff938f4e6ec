import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Java's share consumer: reads all records of a topic, accepts them, and prints time and CPU time as JSON. */
public class SharePoll {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofSeconds(1);

    private static boolean explicit;
    private static long size;

    public static void main(String[] args) throws Exception {
        JsonNode job = JSON.readTree(args[0]);
        explicit = args[2].equals("explicit");
        int wanted = job.get("records").asInt();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings(job, args))) {
            consumer.subscribe(List.of(job.get("topic").asText()));
            ConsumerRecords<byte[], byte[]> records;
            do {
                records = consumer.poll(POLL);
            } while (records.isEmpty());
            int first = records.count();
            long began = System.nanoTime();
            long cpu = cpuNanos();
            int done = process(consumer, records);
            while (done < wanted) {
                done += process(consumer, consumer.poll(POLL));
            }
            Map<TopicIdPartition, Optional<KafkaException>> results = consumer.commitSync();
            for (Optional<KafkaException> error : results.values()) {
                if (error.isPresent()) {
                    throw error.get();
                }
            }
            double seconds = (System.nanoTime() - began) / 1e9;
            double cpuSeconds = (cpuNanos() - cpu) / 1e9;
            if (done != wanted || size != (long) wanted * job.get("value_size").asInt()) {
                throw new IllegalStateException("asked for " + wanted + " records, counted " + done);
            }
            System.out.println(JSON.writeValueAsString(Map.of(
                "seconds", seconds,
                "cpu_seconds", cpuSeconds,
                "max_rss_kb", mostResidentKb(),
                "records", done - first,
                "version", "kafka-clients " + AppInfoParser.getVersion())));
        }
    }

    private static int process(KafkaShareConsumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            size += record.value().length;
            if (explicit) {
                consumer.acknowledge(record);
            }
        }
        return records.count();
    }

    private static Properties settings(JsonNode job, String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", job.get("bootstrap").asText());
        settings.put("group.id", args[1]);
        settings.put("share.acknowledgement.mode", args[2]);
        settings.put("max.poll.records", job.get("max_poll_records").asInt());
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return settings;
    }

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private static long mostResidentKb() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        return 0;
    }
}
