package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.StringHelper;

/** One segment's terms that may belong to a page, in order, each with the number of its counted documents. */
final class SegmentTerms {
    /** The current term; its bytes change with the next step. */
    BytesRef term;

    private final TermsEnum terms;
    private final Bits docs;
    private final TermPage page;
    private PostingsEnum postings;

    /** @param docs the counted documents; null for all */
    SegmentTerms(TermsEnum terms, Bits docs, TermPage page) {
        this.terms = terms;
        this.docs = docs;
        this.page = page;
    }

    /** Advance to the first term; false if there is none. */
    boolean first() throws IOException {
        BytesRef start = page.start();
        if (start.length == 0) {
            return next();
        }
        term = terms.seekCeil(start) == TermsEnum.SeekStatus.END ? null : terms.term();
        if (term != null && !page.isAfterPreviousPage(term)) {
            return next();
        }
        return hasPrefix();
    }

    /** Advance to the next term; false after the last one. */
    boolean next() throws IOException {
        term = terms.next();
        return hasPrefix();
    }

    private boolean hasPrefix() {
        return term != null && StringHelper.startsWith(term, page.prefix);
    }

    int count() throws IOException {
        if (docs == null) {
            return terms.docFreq();
        }
        int count = 0;
        postings = terms.postings(postings, PostingsEnum.NONE);
        for (int doc = postings.nextDoc(); doc != PostingsEnum.NO_MORE_DOCS; doc = postings.nextDoc()) {
            if (docs.get(doc)) {
                count++;
            }
        }
        return count;
    }
}
