package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.store.ByteBuffersDataOutput;
import org.apache.lucene.util.BytesRef;

/**
 * Counts which labels and values make an index large. In Java because the largest label may have a value for each of a
 * million documents, of which only a few are returned.
 *
 * <p>Counts are as exact as those of {@link TermCounts}, for the same documents: labels and values that only deleted
 * documents have are omitted. Values are visited in order and only the top ones are kept, so that memory does not grow
 * with their number. If a query matches few documents, their values are tallied one label at a time.
 */
public final class Cardinality {
    private Cardinality() {}

    /**
     * Every label with the number of its values, the pairs of label and value that the most documents have, and the top
     * values of one label.
     *
     * @param query which documents count; null for every live one
     * @param ranked the label whose values are listed
     * @param limit the maximum number of pairs, and of values of the one label
     * @return u32 documents; u32 labels, and for each in order of the names' bytes: u32 values, u32 documents, u64
     *     total length of all its values, the name preceded by its length as u16; then the pairs and the values of the
     *     one label, both as {@link #values} returns them
     */
    public static byte[] labels(IndexSearcher searcher, Query query, String ranked, int limit) throws IOException {
        BytesRef rankedName = new BytesRef(ranked);
        CountedDocuments counted = CountedDocuments.of(searcher, query);
        TermTally names = TermCounts.tallyNames(counted, TermPage.everything());
        TopValues pairs = new TopValues(limit);
        TopValues rankedValues = new TopValues(limit);
        ByteBuffersDataOutput out = new ByteBuffersDataOutput();
        out.writeInt(counted.count());
        out.writeInt(names.size());
        names.visit((name, documents) -> {
            LabelSize size = new LabelSize();
            boolean isRanked = name.equals(rankedName);
            LabelValues.visit(counted, name, TermPage.everything(), (value, having) -> {
                size.values++;
                size.bytes += value.length;
                pairs.add(name, value, having);
                if (isRanked) {
                    rankedValues.add(name, value, having);
                }
                return true;
            });
            out.writeInt(size.values);
            out.writeInt(documents);
            out.writeLong(size.bytes);
            TopValues.writeText(out, name);
            return true;
        });
        pairs.write(out);
        rankedValues.write(out);
        return out.toArrayCopy();
    }

    /**
     * The values of one label that the most documents have. Of values with the same number of documents, lower values
     * come first.
     *
     * @param query which documents count; null for every live one
     * @param limit the maximum number of values
     * @return u32 count; for each, the one with the most documents first: u32 documents, then the label and the value,
     *     each preceded by its length as u16
     */
    public static byte[] values(IndexSearcher searcher, Query query, String label, int limit) throws IOException {
        BytesRef name = new BytesRef(label);
        TopValues top = new TopValues(limit);
        LabelValues.visit(CountedDocuments.of(searcher, query), name, TermPage.everything(), (value, documents) -> {
            top.add(name, value, documents);
            return true;
        });
        ByteBuffersDataOutput out = new ByteBuffersDataOutput();
        top.write(out);
        return out.toArrayCopy();
    }

    private static final class LabelSize {
        int values = 0;
        long bytes = 0;
    }
}
