package org.strandline.index;

import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.PriorityQueue;
import org.apache.lucene.store.DataOutput;
import org.apache.lucene.util.BytesRef;

/**
 * The values with the most documents, across labels. At most the limit are kept. Of two with the same number of
 * documents, the one that is first by label, then by value, ranks higher, so that the result does not depend on the
 * order of addition.
 */
final class TopValues {
    private record Value(BytesRef label, BytesRef value, int documents) {}

    private static final Comparator<Value> LOWEST_FIRST = Comparator.comparingInt(Value::documents)
            .thenComparing(Value::label, Comparator.reverseOrder())
            .thenComparing(Value::value, Comparator.reverseOrder());

    private final PriorityQueue<Value> kept = new PriorityQueue<>(LOWEST_FIRST);
    private final int limit;

    TopValues(int limit) {
        if (limit < 0) {
            throw new IllegalArgumentException("a limit of " + limit + " is below 0");
        }
        this.limit = limit;
    }

    /** Consider a value; its bytes are copied only if it ranks. */
    void add(BytesRef label, BytesRef value, int documents) {
        if (kept.size() == limit) {
            if (limit == 0 || LOWEST_FIRST.compare(new Value(label, value, documents), kept.peek()) < 0) {
                return;
            }
            kept.poll();
        }
        kept.add(new Value(BytesRef.deepCopyOf(label), BytesRef.deepCopyOf(value), documents));
    }

    /**
     * Write a u32 with their number; then for each, highest first: u32 documents, label and value as texts with
     * lengths.
     */
    void write(DataOutput out) throws IOException {
        Value[] values = kept.toArray(new Value[0]);
        Arrays.sort(values, LOWEST_FIRST.reversed());
        out.writeInt(values.length);
        for (Value one : values) {
            out.writeInt(one.documents);
            writeText(out, one.label);
            writeText(out, one.value);
        }
    }

    /** Write a text preceded by its length as u16. */
    static void writeText(DataOutput out, BytesRef text) throws IOException {
        out.writeShort((short) text.length);
        out.writeBytes(text.bytes, text.offset, text.length);
    }
}
