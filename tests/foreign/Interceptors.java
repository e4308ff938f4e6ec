import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;

/** Writes a line for each call of an interceptor. Arguments: the bootstrap address, a topic, a prefix of group ids. */
public class Interceptors {
    static synchronized void say(String line) {
        System.out.println(line);
    }

    static String names(Headers headers) {
        return Arrays.stream(headers.toArray()).map(one -> one.key()).collect(Collectors.joining());
    }

    public abstract static class Sees implements ProducerInterceptor<String, String> {
        abstract String name();

        public ProducerRecord<String, String> onSend(ProducerRecord<String, String> record) {
            say(name() + " send " + record.value().substring(0, 1) + " " + names(record.headers()));
            record.headers().add(name(), new byte[0]);
            return record;
        }

        public void onAcknowledgement(RecordMetadata metadata, Exception error, Headers headers) {
            String offset = error == null ? Long.toString(metadata.offset()) : "-1 failed";
            say(name() + " acknowledged " + metadata.partition() + " " + offset + " " + names(headers));
        }

        public void close() {
            say(name() + " closed");
        }

        public void configure(Map<String, ?> configs) { }
    }

    public static class First extends Sees {
        String name() {
            return "x";
        }
    }

    public static class Last extends Sees {
        String name() {
            return "y";
        }
    }

    public static class Broken extends Sees {
        String name() {
            return "b";
        }

        public ProducerRecord<String, String> onSend(ProducerRecord<String, String> record) {
            say("b send");
            throw new IllegalStateException("no trace");
        }

        public void onAcknowledgement(RecordMetadata metadata, Exception error, Headers headers) {
            say("b acknowledged");
            throw new IllegalStateException("no audit");
        }
    }

    public static class Reads implements ConsumerInterceptor<String, String> {
        public ConsumerRecords<String, String> onConsume(ConsumerRecords<String, String> records) {
            StringBuilder values = new StringBuilder();
            Map<TopicPartition, List<ConsumerRecord<String, String>>> kept = new TreeMap<>(
                (one, other) -> one.partition() - other.partition());
            for (TopicPartition partition : records.partitions()) {
                records.records(partition).forEach(record -> values.append(record.value()));
                kept.put(partition, records.records(partition).stream().filter(
                    record -> !record.value().equals("2")).toList());
            }
            say("consume " + values);
            return new ConsumerRecords<>(kept, records.nextOffsets());
        }

        public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            offsets.values().forEach(offset -> say("commit " + offset.offset()));
        }

        public void close() {
            say("closed");
        }

        public void configure(Map<String, ?> configs) { }
    }

    public static class AlsoReads extends Reads { }

    static void produce(String bootstrap, String topic) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "linger.ms", 200, "max.request.size", 1000,
            "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "interceptor.classes", "Interceptors$First,Interceptors$Broken,Interceptors$Last");
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        producer.partitionsFor(topic);
        for (String value : List.of("1", "2", "3")) {
            producer.send(new ProducerRecord<>(topic, value));
        }
        producer.flush();
        producer.send(new ProducerRecord<>(topic, 0, null, "L".repeat(2000)));
        producer.send(new ProducerRecord<>("not a topic", "N"));
        producer.close();
        try {
            producer.send(new ProducerRecord<>(topic, 0, null, "C"));
        } catch (IllegalStateException error) {
            say("refused");
        }
    }

    static void consume(String bootstrap, String topic, String group, boolean auto) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "group.id", group, "auto.offset.reset", "earliest",
            "enable.auto.commit", auto, "auto.commit.interval.ms", 60000,
            "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "interceptor.classes", "Interceptors$Reads,Interceptors$AlsoReads");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(List.of(topic));
        ConsumerRecords<String, String> records = ConsumerRecords.empty();
        while (records.isEmpty()) {
            records = consumer.poll(Duration.ofSeconds(1));
        }
        records.forEach(record -> say("user " + record.value()));
        if (!auto) {
            consumer.commitSync();
        }
        consumer.poll(Duration.ofMillis(10));
        consumer.close();
    }

    public static void main(String[] args) {
        produce(args[0], args[1]);
        consume(args[0], args[1], args[2] + "-1", false);
        consume(args[0], args[1], args[2] + "-2", true);
    }
}
