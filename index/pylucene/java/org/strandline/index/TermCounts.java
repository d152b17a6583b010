package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Terms;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/**
 * Lists labels' names and values with the number of documents that have them. In Java because a label may have a
 * million values, each of which may be in every segment.
 *
 * <p>Counts are exact for the searcher's view: a document counts if it is live, has the label or value, and matches the
 * query, if there is one. Lucene's own document frequencies include deleted documents until a merge drops them; they
 * are only used for segments without deletions, and documents are counted one by one elsewhere. Terms without a counted
 * document are not listed, even if they are still in the index.
 *
 * <p>Both methods list in order of the UTF-8 bytes, which is that of the code points. They take a prefix that all
 * listed terms have (empty for all), the term after which to continue (the last of the previous page; empty to start at
 * the first) and the maximum number of terms. Both return: u32 count n; u32, 1 if there are more and 0 if not; n counts
 * of u32; n + 1 offsets of u32 into what follows, the first one 0; the names or values, one after the other.
 */
public final class TermCounts {
    private TermCounts() {}

    /**
     * The values of a label.
     *
     * @param query which documents count; null for every live one
     */
    public static byte[] values(
            IndexSearcher searcher, Query query, String label, byte[] prefix, byte[] after, int limit)
            throws IOException {
        TermPage page = new TermPage(new BytesRef(prefix), new BytesRef(after), limit);
        LabelValues.visit(CountedDocuments.of(searcher, query), new BytesRef(label), page, page::add);
        return page.pack();
    }

    /**
     * The names of labels.
     *
     * @param query which documents count; null for every live one
     */
    public static byte[] names(IndexSearcher searcher, Query query, byte[] prefix, byte[] after, int limit)
            throws IOException {
        TermPage page = new TermPage(new BytesRef(prefix), new BytesRef(after), limit);
        tallyNames(CountedDocuments.of(searcher, query), page).visit(page::add);
        return page.pack();
    }

    /** Count the names of labels that belong to a page; they are not added to it. */
    static TermTally tallyNames(CountedDocuments counted, TermPage page) throws IOException {
        TermTally tally = new TermTally(page);
        if (counted.fewerThan(setCount(counted))) {
            tally.addNames(counted);
        } else {
            for (LeafReaderContext leaf : counted.leaves()) {
                Terms sets = leaf.reader().terms(Fields.LABEL_SET);
                if (sets != null) {
                    addNames(sets, counted.bits(leaf), tally);
                }
            }
        }
        return tally;
    }

    private static void addNames(Terms sets, Bits docs, TermTally tally) throws IOException {
        LabelSetCursor names = new LabelSetCursor();
        SegmentTerms terms = new SegmentTerms(sets.iterator(), docs, TermPage.everything());
        for (boolean more = terms.first(); more; more = terms.next()) {
            int count = terms.count();
            names.reset(terms.term);
            while (count > 0 && names.next()) {
                tally.add(names.name, count);
            }
        }
    }

    private static long setCount(CountedDocuments counted) throws IOException {
        long count = 0;
        for (LeafReaderContext leaf : counted.leaves()) {
            Terms sets = leaf.reader().terms(Fields.LABEL_SET);
            count += sets == null ? 0 : sets.size();
        }
        return count;
    }
}
