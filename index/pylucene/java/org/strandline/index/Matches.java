package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.BulkScorer;
import org.apache.lucene.search.ConstantScoreQuery;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Scorable;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Weight;

/** Hands every live document that a query matches to a visitor, segment by segment, in order, without scores. */
final class Matches {
    private Matches() {}

    /** Opens a segment for its documents; asked only for segments that may have a match. */
    interface Segments {
        Documents open(LeafReaderContext leaf) throws IOException;
    }

    /** Takes a segment's documents. */
    interface Documents extends LeafCollector {
        @Override
        default void setScorer(Scorable scorer) {}
    }

    static void visit(IndexSearcher searcher, Query query, Segments segments) throws IOException {
        Query rewritten = searcher.rewrite(new ConstantScoreQuery(query));
        Weight weight = searcher.createWeight(rewritten, ScoreMode.COMPLETE_NO_SCORES, 1);
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            BulkScorer scorer = weight.bulkScorer(leaf);
            if (scorer != null) {
                scorer.score(segments.open(leaf), leaf.reader().getLiveDocs(), 0, DocIdSetIterator.NO_MORE_DOCS);
            }
        }
    }
}
