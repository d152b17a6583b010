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

/** The documents that are counted when terms are counted: every live one, or the live ones that a query matches. */
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

    /** The number of counted documents. */
    int count() {
        return matching == null ? liveCount : matchCount;
    }

    /** Whether a query selected the documents, and at most the given number. */
    boolean fewerThan(long documents) {
        return matching != null && matchCount <= documents;
    }

    List<LeafReaderContext> leaves() {
        return leaves;
    }

    /** The counted documents of one segment; null if all of its documents count. */
    Bits bits(LeafReaderContext leaf) {
        return matching == null ? leaf.reader().getLiveDocs() : matching[leaf.ord];
    }

    /** The same in order; only if a query selected them. */
    DocIdSetIterator iterator(LeafReaderContext leaf) {
        return new BitSetIterator(matching[leaf.ord], 0);
    }
}
