package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.util.BytesRef;

/** Takes terms in order, each with the number of documents that have it. */
@FunctionalInterface
interface TermVisitor {
    /**
     * Take the next term, whose bytes change with the step after; false if no more are wanted.
     */
    boolean visit(BytesRef term, int documents) throws IOException;
}
