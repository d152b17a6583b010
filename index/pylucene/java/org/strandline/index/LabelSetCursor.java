package org.strandline.index;

import org.apache.lucene.util.BytesRef;

/** Iterates over the names in a term of {@link Fields#LABEL_SET}. */
final class LabelSetCursor {
    final BytesRef name = new BytesRef();
    private int next;
    private int end;

    void reset(BytesRef set) {
        name.bytes = set.bytes;
        next = set.offset;
        end = set.offset + set.length;
    }

    /** Advance to the next name; false after the last one. */
    boolean next() {
        if (next >= end) {
            return false;
        }
        name.offset = next + Short.BYTES;
        name.length = PartKeyCursor.length(name.bytes, next);
        next = name.offset + name.length;
        return true;
    }
}
