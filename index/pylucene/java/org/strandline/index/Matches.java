package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BulkScorer;
import org.apache.lucene.search.ConstantScoreQuery;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.LeafCollector;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Scorable;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.Bits;

/** Passes every live document that a query matches to a visitor, segment by segment, in order, without scores. */
final class Matches {
    private Matches() {}

    /** Opens a segment for its documents; only called for segments that may have a match. */
    interface Segments {
        Documents open(LeafReaderContext leaf) throws IOException;
    }

    /** Receives a segment's documents. */
    interface Documents extends LeafCollector {
        @Override
        default void setScorer(Scorable scorer) {}
    }

    static void visit(IndexSearcher searcher, Query query, Segments segments) throws IOException {
        if (query instanceof TermQuery) {
            visit(searcher, ((TermQuery) query).getTerm(), segments);
            return;
        }
        Query rewritten = searcher.rewrite(new ConstantScoreQuery(query));
        Weight weight = searcher.createWeight(rewritten, ScoreMode.COMPLETE_NO_SCORES, 1);
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            BulkScorer scorer = weight.bulkScorer(leaf);
            if (scorer != null) {
                scorer.score(segments.open(leaf), leaf.reader().getLiveDocs(), 0, DocIdSetIterator.NO_MORE_DOCS);
            }
        }
    }

    /**
     * The same for one term, directly from its postings: most terms have one document, and a search is expensive in
     * comparison.
     */
    private static void visit(IndexSearcher searcher, Term term, Segments segments) throws IOException {
        for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
            PostingsEnum found = leaf.reader().postings(term, PostingsEnum.NONE);
            if (found == null) {
                continue;
            }
            Bits live = leaf.reader().getLiveDocs();
            Documents documents = segments.open(leaf);
            for (int doc = found.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = found.nextDoc()) {
                if (live == null || live.get(doc)) {
                    documents.collect(doc);
                }
            }
        }
    }
}
