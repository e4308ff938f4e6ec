import com.sun.management.OperatingSystemMXBean;
import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.CommitMode;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Confluent's Parallel Consumer, in the order of keys: handles so many records of a topic, and prints time and CPU time
 * as JSON. With a log it writes two lines for each record, and goes on until it is ended.
 */
public class ParallelProcessing {
    private static final AtomicInteger handled = new AtomicInteger();
    private static final CountDownLatch over = new CountDownLatch(1);
    private static volatile long began;
    private static volatile long cpu;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int wanted = Integer.parseInt(args[3]);
        long handlerNanos = (long) (Double.parseDouble(args[4]) * 1e6);
        FileOutputStream log = args.length > 6 ? new FileOutputStream(args[6], true) : null;
        KafkaConsumer<String, byte[]> consumer =
            new KafkaConsumer<>(settings(args), new StringDeserializer(), new ByteArrayDeserializer());
        ParallelConsumerOptions<String, byte[]> options = ParallelConsumerOptions.<String, byte[]>builder()
            .ordering(ProcessingOrder.KEY)
            .maxConcurrency(Integer.parseInt(args[5]))
            .commitMode(CommitMode.PERIODIC_CONSUMER_ASYNCHRONOUS)
            .consumer(consumer)
            .build();
        ParallelStreamProcessor<String, byte[]> processor = ParallelStreamProcessor.createEosStreamProcessor(options);
        processor.subscribe(List.of(topic));
        processor.poll(context -> {
            ConsumerRecord<String, byte[]> record = context.getSingleConsumerRecord();
            begin(log, record);
            sleep(handlerNanos);
            finish(log, record, wanted);
        });
        over.await();
        double seconds = (System.nanoTime() - began) / 1e9;
        double cpuSeconds = (cpuNanos() - cpu) / 1e9;
        System.out.println("{\"seconds\": " + seconds + ", \"cpu_seconds\": " + cpuSeconds + ", \"records\": "
            + (wanted - 1) + ", \"version\": \"kafka-clients " + AppInfoParser.getVersion() + "\"}");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void begin(FileOutputStream log, ConsumerRecord<String, byte[]> record) {
        if (log != null) {
            write(log, "began", record);
        }
    }

    private static void finish(FileOutputStream log, ConsumerRecord<String, byte[]> record, int wanted) {
        if (log != null) {
            write(log, "done", record);
            return;
        }
        int count = handled.incrementAndGet();
        if (count == 1) {
            cpu = cpuNanos();
            began = System.nanoTime();
        }
        if (count == wanted) {
            over.countDown();
        }
    }

    private static void sleep(long nanos) {
        if (nanos > 0) {
            try {
                Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    private static void write(FileOutputStream log, String what, ConsumerRecord<String, byte[]> record) {
        String line = System.nanoTime() + " " + what + " " + record.partition() + " " + record.offset() + " "
            + record.key() + "\n";
        try {
            log.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private static Properties settings(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("session.timeout.ms", "10000");
        settings.put("heartbeat.interval.ms", "1000");
        return settings;
    }

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
