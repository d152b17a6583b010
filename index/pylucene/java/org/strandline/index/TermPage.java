package org.strandline.index;

import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BitUtil;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.StringHelper;

/** A page of a list of terms: a filter for the terms that belong to it, and those that were added, in order. */
final class TermPage {
    final BytesRef prefix;
    private final BytesRef after;
    private final int limit;
    private int count = 0;
    private boolean more = false;
    private int[] counts = new int[16];
    private int[] ends = new int[16];
    private byte[] terms = new byte[256];

    /** A filter for all terms; none can be added. */
    static TermPage everything() {
        return new TermPage(new BytesRef(), new BytesRef(), 0);
    }

    TermPage(BytesRef prefix, BytesRef after, int limit) {
        if (limit < 0) {
            throw new IllegalArgumentException("a limit of " + limit + " is below 0");
        }
        this.prefix = prefix;
        this.after = after;
        this.limit = limit;
    }

    /** A lower bound of the page's terms. */
    BytesRef start() {
        return prefix.compareTo(after) > 0 ? prefix : after;
    }

    /** Whether a term comes after the previous page. */
    boolean isAfterPreviousPage(BytesRef term) {
        return after.length == 0 || term.compareTo(after) > 0;
    }

    boolean belongs(BytesRef term) {
        return StringHelper.startsWith(term, prefix) && isAfterPreviousPage(term);
    }

    /** Add the next term; false if the page is full already, so that there are more. */
    boolean add(BytesRef term, int documents) {
        if (count == limit) {
            more = true;
            return false;
        }
        int start = count == 0 ? 0 : ends[count - 1];
        counts = ArrayUtil.grow(counts, count + 1);
        ends = ArrayUtil.grow(ends, count + 1);
        terms = ArrayUtil.grow(terms, Math.addExact(start, term.length));
        System.arraycopy(term.bytes, term.offset, terms, start, term.length);
        counts[count] = documents;
        ends[count] = start + term.length;
        count++;
        return true;
    }

    /** The layout that {@link TermCounts} returns. */
    byte[] pack() {
        int countsStart = 2 * Integer.BYTES;
        int offsetsStart = countsStart + count * Integer.BYTES;
        int termsStart = offsetsStart + (count + 1) * Integer.BYTES;
        int termsLength = count == 0 ? 0 : ends[count - 1];
        byte[] out = new byte[Math.addExact(termsStart, termsLength)];
        BitUtil.VH_LE_INT.set(out, 0, count);
        BitUtil.VH_LE_INT.set(out, Integer.BYTES, more ? 1 : 0);
        for (int i = 0; i < count; i++) {
            BitUtil.VH_LE_INT.set(out, countsStart + i * Integer.BYTES, counts[i]);
            BitUtil.VH_LE_INT.set(out, offsetsStart + (i + 1) * Integer.BYTES, ends[i]);
        }
        System.arraycopy(terms, 0, out, termsStart, termsLength);
        return out;
    }
}
