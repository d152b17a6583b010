package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.util.BytesRef;

/** Receives terms in order, each with the number of documents that have it. */
@FunctionalInterface
interface TermVisitor {
    /** Receive the next term, whose bytes change with the next step; return false if no more are wanted. */
    boolean visit(BytesRef term, int documents) throws IOException;
}
