package org.strandline.index;

import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.util.BytesRef;

/**
 * Makes the query for a list of values. In Java because a list may have thousands of values, each of which would take
 * two JNI calls.
 */
public final class TermSets {
    private TermSets() {}

    /**
     * Matches documents whose label has one of the values.
     *
     * @param values for each value a u16 with its length, little endian, and its UTF-8 bytes
     * @throws MalformedBatchException if the last value is truncated
     */
    public static Query anyOf(String label, byte[] values) {
        List<BytesRef> terms = new ArrayList<>();
        int position = 0;
        while (position < values.length) {
            int start = position + Short.BYTES;
            if (start > values.length || PartKeyCursor.length(values, position) > values.length - start) {
                throw new MalformedBatchException(terms.size(), position, "the list of values is cut off");
            }
            BytesRef term = new BytesRef(values, start, PartKeyCursor.length(values, position));
            terms.add(term);
            position = start + term.length;
        }
        return new TermInSetQuery(Fields.ofLabel(label), terms);
    }
}
