import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Produces and consumes records, and prints the metrics of Java's clients, one JSON object a line. */
public class JavaMetrics {
    public static void main(String[] args) throws Exception {
        String servers = args[0], topic = args[1], group = args[2], protocol = args[3];
        int count = Integer.parseInt(args[4]), size = Integer.parseInt(args[5]);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers, "client.id", "java"))) {
            admin.describeTopics(List.of(topic)).allTopicNames().get();
            print(admin.metrics());
        }
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", servers);
        settings.put("client.id", "java");
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, number % 2, null, new byte[size])).get();
            }
            print(producer.metrics());
        }
        settings.put("group.id", group);
        if (protocol.equals("share")) {
            share(settings, topic, count);
            return;
        }
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            int read = 0;
            while (read < count) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                read += records.count();
            }
            consumer.commitSync();
            for (int round = 0; round < 5; round++) {
                consumer.poll(Duration.ofMillis(100));
            }
            print(consumer.metrics());
        }
    }

    private static void share(Map<String, Object> settings, String topic, int count) {
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            int read = 0;
            while (read < count) {
                read += consumer.poll(Duration.ofMillis(100)).count();
            }
            consumer.commitSync();
            for (int round = 0; round < 5; round++) {
                consumer.poll(Duration.ofMillis(100));
            }
            print(consumer.metrics());
        }
    }

    private static void print(Map<MetricName, ? extends Metric> metrics) {
        for (Map.Entry<MetricName, ? extends Metric> entry : metrics.entrySet()) {
            MetricName name = entry.getKey();
            Object value = entry.getValue().metricValue();
            StringBuilder tags = new StringBuilder();
            for (Map.Entry<String, String> tag : name.tags().entrySet()) {
                tags.append(tags.length() == 0 ? "" : ",").append(quoted(tag.getKey())).append(":").append(quoted(tag.getValue()));
            }
            boolean isFinite = value instanceof Number && Double.isFinite(((Number) value).doubleValue());
            System.out.println("{\"group\":" + quoted(name.group()) + ",\"name\":" + quoted(name.name()) + ",\"tags\":{" + tags
                + "},\"description\":" + quoted(name.description()) + ",\"value\":" + (isFinite ? value : "null") + "}");
        }
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }
}
