package org.strandline.index;

import java.io.IOException;
import java.util.List;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.util.BitSetIterator;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.FixedBitSet;

/** Which documents count when terms are counted: every live one, or the live ones that a query matches. */
final class CountedDocuments {
    private final List<LeafReaderContext> leaves;
    private final int liveCount;
    /** By segment; null if every live document counts. */
    private final FixedBitSet[] matching;
    private int matchCount = 0;

    private CountedDocuments(IndexReader reader, FixedBitSet[] matching) {
        this.leaves = reader.leaves();
        this.liveCount = reader.numDocs();
        this.matching = matching;
    }

    /**
     * @param query null for every live document
     */
    static CountedDocuments of(IndexSearcher searcher, Query query) throws IOException {
        IndexReader reader = searcher.getIndexReader();
        if (query == null) {
            return new CountedDocuments(reader, null);
        }
        FixedBitSet[] matching = new FixedBitSet[reader.leaves().size()];
        for (LeafReaderContext leaf : reader.leaves()) {
            matching[leaf.ord] = new FixedBitSet(leaf.reader().maxDoc());
        }
        CountedDocuments counted = new CountedDocuments(reader, matching);
        Matches.visit(searcher, query, leaf -> {
            FixedBitSet segment = matching[leaf.ord];
            return doc -> {
                segment.set(doc);
                counted.matchCount++;
            };
        });
        return counted;
    }

    /** How many documents count. */
    int count() {
        return matching == null ? liveCount : matchCount;
    }

    /** Whether a query picked the documents, and no more than so many. */
    boolean fewerThan(long documents) {
        return matching != null && matchCount <= documents;
    }

    List<LeafReaderContext> leaves() {
        return leaves;
    }

    /** The documents of one segment that count; null if all of them do. */
    Bits bits(LeafReaderContext leaf) {
        return matching == null ? leaf.reader().getLiveDocs() : matching[leaf.ord];
    }

    /** The same in order; only if a query picked them. */
    DocIdSetIterator iterator(LeafReaderContext leaf) {
        return new BitSetIterator(matching[leaf.ord], 0);
    }
}
