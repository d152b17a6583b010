package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.MatchAllDocsQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.util.Bits;
import org.roaringbitmap.RoaringBitmap;
import org.roaringbitmap.RoaringBitmapWriter;

/**
 * Converts a query's matches into a bitmap of part ids. In Java because a query may match a million documents, whose
 * ids are returned as one array of a few kilobytes.
 */
public final class PartIdBitmaps {
    private PartIdBitmaps() {}

    /**
     * The part ids of the live documents that a query matches, without scores.
     *
     * @return a roaring bitmap in RoaringBitmap's portable format
     */
    public static byte[] collect(IndexSearcher searcher, Query query) throws IOException {
        // Ids mostly rise with document numbers, since both follow the order of addition: the writer appends while they
        // do, and merges where a segment starts below the end of the one before.
        RoaringBitmapWriter<RoaringBitmap> ids = RoaringBitmapWriter.writer().constantMemory().runCompress(false).get();
        if (query instanceof MatchAllDocsQuery) {
            for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
                addAll(leaf, ids);
            }
        } else {
            Matches.visit(searcher, query, leaf -> {
                NumericDocValues partIds = DocValues.getNumeric(leaf.reader(), Fields.PART_ID);
                return doc -> {
                    if (partIds.advanceExact(doc)) {
                        ids.add((int) partIds.longValue());
                    }
                };
            });
        }
        return serialise(ids.get());
    }

    private static void addAll(LeafReaderContext leaf, RoaringBitmapWriter<RoaringBitmap> ids) throws IOException {
        NumericDocValues partIds = DocValues.getNumeric(leaf.reader(), Fields.PART_ID);
        Bits live = leaf.reader().getLiveDocs();
        for (int doc = partIds.nextDoc(); doc != NumericDocValues.NO_MORE_DOCS; doc = partIds.nextDoc()) {
            if (live == null || live.get(doc)) {
                ids.add((int) partIds.longValue());
            }
        }
    }

    private static byte[] serialise(RoaringBitmap bitmap) {
        bitmap.runOptimize();
        ByteBuffer out = ByteBuffer.allocate(bitmap.serializedSizeInBytes());
        bitmap.serialize(out);
        return out.array();
    }
}
