import java.io.File;
import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.node.MetadataImageNode;
import org.apache.kafka.image.node.printer.MetadataNodePrinter;
import org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria;
import org.apache.kafka.metadata.MetadataRecordSerde;

/** Prints the image that a metadata log or snapshot makes, as Kafka's metadata shell shows it. */
public class MetadataTree implements MetadataNodePrinter {
    private int depth = 0;

    public static void main(String[] files) throws Exception {
        for (String file : files) {
            new MetadataImageNode(read(new File(file))).print(new MetadataTree());
        }
    }

    static MetadataImage read(File file) throws Exception {
        MetadataImage image = MetadataImage.EMPTY;
        MetadataRecordSerde serde = new MetadataRecordSerde();
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
                for (Record record : batch) {
                    if (batch.isControlBatch()) continue;
                    ApiMessage message = serde.read(
                        new ByteBufferAccessor(record.value()), record.valueSize()).message();
                    // Transactions are the loader's; those of a log at rest have all ended.
                    if (message instanceof BeginTransactionRecord) continue;
                    if (message instanceof EndTransactionRecord) continue;
                    delta.replay(message);
                }
                image = delta.apply(new MetadataProvenance(
                    batch.lastOffset(), batch.partitionLeaderEpoch(), batch.maxTimestamp(), true));
            }
        }
        return image;
    }

    @Override
    public MetadataNodeRedactionCriteria redactionCriteria() {
        return MetadataNodeRedactionCriteria.Disabled.INSTANCE;
    }

    @Override
    public void enterNode(String name) {
        output(name + ":");
        depth++;
    }

    @Override
    public void leaveNode() {
        depth--;
    }

    @Override
    public void output(String text) {
        System.out.println("  ".repeat(depth) + text);
    }
}
