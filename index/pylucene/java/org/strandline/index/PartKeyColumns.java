package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BitUtil;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/**
 * Reads part ids, key hashes and part keys from an index, as columns. In Java because a restart reads them for every
 * document of the index.
 */
public final class PartKeyColumns {
    private PartKeyColumns() {}

    /** The number of segments of a searcher's index; {@link #idsAndHashes} reads one of them. */
    public static int segments(IndexSearcher searcher) {
        return searcher.getIndexReader().leaves().size();
    }

    /**
     * The part id and key hash of each live document of one segment, in the order of the documents. One segment per
     * call, so that the copy in the Java heap stays small.
     *
     * @param segment from 0 to {@link #segments} - 1
     * @return u32 count n; n part ids of u32; n key hashes of 16 bytes
     */
    public static byte[] idsAndHashes(IndexSearcher searcher, int segment) throws IOException {
        LeafReader reader = searcher.getIndexReader().leaves().get(segment).reader();
        NumericDocValues partIds = DocValues.getNumeric(reader, Fields.PART_ID);
        BinaryDocValues keyHashes = DocValues.getBinary(reader, Fields.KEY_HASH);
        Bits live = reader.getLiveDocs();
        int count = reader.numDocs();
        byte[] out = new byte[arrayLength(
            Integer.BYTES + (long) count * (Integer.BYTES + PartKeyBatch.HASH_BYTES))];
        BitUtil.VH_LE_INT.set(out, 0, count);
        int idEnd = Integer.BYTES;
        int hashEnd = Integer.BYTES + count * Integer.BYTES;
        for (int doc = 0; doc < reader.maxDoc(); doc++) {
            if (live == null || live.get(doc)) {
                partIds.advance(doc);
                keyHashes.advance(doc);
                BitUtil.VH_LE_INT.set(out, idEnd, (int) partIds.longValue());
                BytesRef hash = keyHashes.binaryValue();
                System.arraycopy(hash.bytes, hash.offset, out, hashEnd, PartKeyBatch.HASH_BYTES);
                idEnd += Integer.BYTES;
                hashEnd += PartKeyBatch.HASH_BYTES;
            }
        }
        return out;
    }

    /**
     * The part ids, key hashes and part keys of the live documents that a query matches, segment by segment, in the
     * order of the documents, which may differ from that of the ids.
     *
     * @return a batch as {@link PartKeyDocuments#add} takes it
     * @throws IllegalArgumentException if they don't fit into one array of 2 GB
     */
    public static byte[] partKeys(IndexSearcher searcher, Query query) throws IOException {
        return visited(searcher, query, new Batch(Integer.MAX_VALUE, true)).pack();
    }

    /**
     * The part ids and part keys, without hashes, if at most this many documents match; null if more do. The search
     * ends as soon as that is known.
     *
     * @return u64 count n; n + 1 offsets of u64 into the part keys, the first one 0; n part ids of u32; the part keys
     */
    public static byte[] fewPartKeys(IndexSearcher searcher, Query query, int most) throws IOException {
        try {
            return visited(searcher, query, new Batch(most, false)).packWithoutHashes();
        } catch (TooMany more) {
            return null;
        }
    }

    private static Batch visited(IndexSearcher searcher, Query query, Batch batch) throws IOException {
        Matches.visit(searcher, query, leaf -> {
            NumericDocValues partIds = DocValues.getNumeric(leaf.reader(), Fields.PART_ID);
            BinaryDocValues keyHashes =
                batch.hasHashes ? DocValues.getBinary(leaf.reader(), Fields.KEY_HASH) : null;
            BinaryDocValues partKeys = DocValues.getBinary(leaf.reader(), Fields.PART_KEY);
            return doc -> {
                partIds.advance(doc);
                partKeys.advance(doc);
                batch.append((int) partIds.longValue(), partKeys.binaryValue());
                if (keyHashes != null) {
                    keyHashes.advance(doc);
                    batch.setLastHash(keyHashes.binaryValue());
                }
            };
        });
        return batch;
    }

    private static int arrayLength(long bytes) {
        if (bytes > ArrayUtil.MAX_ARRAY_LENGTH) {
            throw new IllegalArgumentException(
                bytes + " bytes don't fit into one array: request fewer part keys at a time");
        }
        return (int) bytes;
    }

    /** Ends a search that has exceeded its limit. A single object, because its stack trace is not used. */
    private static final class TooMany extends RuntimeException {
        private static final long serialVersionUID = 1;
        private static final TooMany INSTANCE = new TooMany();

        private TooMany() {
            super(null, null, false, false);
        }
    }

    /** A batch under construction, of at most this many part keys, with or without their hashes. */
    private static final class Batch {
        final boolean hasHashes;
        private final int most;
        private int count = 0;
        private int[] ids = new int[16];
        private int[] keyEnds = new int[16];
        private byte[] hashes;
        private byte[] keys = new byte[4096];
        private int keysEnd = 0;

        Batch(int most, boolean hasHashes) {
            this.most = most;
            this.hasHashes = hasHashes;
            hashes = new byte[hasHashes ? 16 * PartKeyBatch.HASH_BYTES : 0];
        }

        void append(int id, BytesRef key) {
            if (count == most) {
                throw TooMany.INSTANCE;
            }
            ids = ArrayUtil.grow(ids, count + 1);
            keyEnds = ArrayUtil.grow(keyEnds, count + 1);
            keys = ArrayUtil.grow(keys, arrayLength((long) keysEnd + key.length));
            System.arraycopy(key.bytes, key.offset, keys, keysEnd, key.length);
            keysEnd += key.length;
            ids[count] = id;
            keyEnds[count] = keysEnd;
            count++;
        }

        void setLastHash(BytesRef hash) {
            hashes = ArrayUtil.grow(hashes, arrayLength((long) count * PartKeyBatch.HASH_BYTES));
            int start = (count - 1) * PartKeyBatch.HASH_BYTES;
            System.arraycopy(hash.bytes, hash.offset, hashes, start, PartKeyBatch.HASH_BYTES);
        }

        byte[] packWithoutHashes() {
            long keyStart = (count + 2L) * Long.BYTES + (long) count * Integer.BYTES;
            byte[] out = new byte[arrayLength(keyStart + keysEnd)];
            BitUtil.VH_LE_LONG.set(out, 0, (long) count);
            int idStart = (count + 2) * Long.BYTES;
            for (int i = 0; i < count; i++) {
                BitUtil.VH_LE_LONG.set(out, (i + 2) * Long.BYTES, (long) keyEnds[i]);
                BitUtil.VH_LE_INT.set(out, idStart + i * Integer.BYTES, ids[i]);
            }
            System.arraycopy(keys, 0, out, (int) keyStart, keysEnd);
            return out;
        }

        byte[] pack() {
            long columnsEnd = PartKeyBatch.columnsEnd(count);
            byte[] out = new byte[arrayLength(columnsEnd + keysEnd)];
            BitUtil.VH_LE_INT.set(out, 0, count);
            int idStart = Integer.BYTES;
            int hashStart = idStart + count * Integer.BYTES;
            int offsetStart = hashStart + count * PartKeyBatch.HASH_BYTES;
            System.arraycopy(hashes, 0, out, hashStart, count * PartKeyBatch.HASH_BYTES);
            System.arraycopy(keys, 0, out, (int) columnsEnd, keysEnd);
            for (int i = 0; i < count; i++) {
                BitUtil.VH_LE_INT.set(out, idStart + i * Integer.BYTES, ids[i]);
                BitUtil.VH_LE_INT.set(out, offsetStart + (i + 1) * Integer.BYTES, keyEnds[i]);
            }
            return out;
        }
    }
}
