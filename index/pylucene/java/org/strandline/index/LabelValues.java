package org.strandline.index;

import java.io.IOException;
import java.util.List;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Terms;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.BytesRefBuilder;
import org.apache.lucene.util.PriorityQueue;

/** Iterates in order over the values of one label that counted documents have, in the cheaper of two ways. */
final class LabelValues {
    /**
     * The number of terms, or of postings, that can be visited in the time of finding a value in a document's part key.
     * At a million documents with ten labels that is 0.45 µs; a term takes 90 ns, one of its postings 4.5 ns.
     */
    private static final int TERMS_PER_DOCUMENT = 5;

    private static final int POSTINGS_PER_DOCUMENT = 100;

    private LabelValues() {}

    /**
     * Visit each value with the number of counted documents that have it, until the visitor returns false.
     *
     * @param page which values are wanted; nothing is added to it here
     */
    static void visit(CountedDocuments counted, BytesRef label, TermPage page, TermVisitor visitor)
            throws IOException {
        String field = Fields.ofLabel(label.utf8ToString());
        if (counted.fewerThan(documentsOfEqualCost(counted, field))) {
            TermTally tally = new TermTally(page);
            tally.addValues(counted, label);
            tally.visit(visitor);
        } else {
            merge(counted, field, page, visitor);
        }
    }

    private static long documentsOfEqualCost(CountedDocuments counted, String field) throws IOException {
        long terms = 0;
        long postings = 0;
        for (LeafReaderContext leaf : counted.leaves()) {
            Terms values = leaf.reader().terms(field);
            if (values != null) {
                terms += values.size();
                postings += values.getSumDocFreq();
            }
        }
        return terms / TERMS_PER_DOCUMENT + postings / POSTINGS_PER_DOCUMENT;
    }

    /** Merge the sorted terms of the segments; nothing is kept of a term that was visited. */
    private static void merge(CountedDocuments counted, String field, TermPage page, TermVisitor visitor)
            throws IOException {
        List<LeafReaderContext> leaves = counted.leaves();
        PriorityQueue<SegmentTerms> segments = new PriorityQueue<>(Math.max(1, leaves.size())) {
            @Override
            protected boolean lessThan(SegmentTerms one, SegmentTerms other) {
                return one.term.compareTo(other.term) < 0;
            }
        };
        for (LeafReaderContext leaf : leaves) {
            Terms terms = leaf.reader().terms(field);
            if (terms != null) {
                SegmentTerms segment = new SegmentTerms(terms.iterator(), counted.bits(leaf), page);
                if (segment.first()) {
                    segments.add(segment);
                }
            }
        }
        BytesRefBuilder term = new BytesRefBuilder();
        while (segments.size() > 0) {
            term.copyBytes(segments.top().term);
            int count = 0;
            while (segments.size() > 0 && segments.top().term.equals(term.get())) {
                count += segments.top().count();
                if (segments.top().next()) {
                    segments.updateTop();
                } else {
                    segments.pop();
                }
            }
            if (count > 0 && !visitor.visit(term.get(), count)) {
                return;
            }
        }
    }
}
