package org.strandline.index;

import org.apache.lucene.util.BitUtil;
import org.apache.lucene.util.BytesRef;

/**
 * Iterates over the labels of one part key: for each label, sorted by name, a u16 with the name's length, the name, a
 * u16 with the value's length, the value. It does not check the bytes: {@link PartKeyBatch} has done so before they
 * were stored.
 */
final class PartKeyCursor {
    final BytesRef name = new BytesRef();
    final BytesRef value = new BytesRef();
    private int next;
    private int end;

    void reset(byte[] bytes, int start, int end) {
        name.bytes = bytes;
        value.bytes = bytes;
        this.next = start;
        this.end = end;
    }

    /** Advance to the next label; false after the last one. */
    boolean next() {
        if (next >= end) {
            return false;
        }
        name.offset = next + Short.BYTES;
        name.length = length(name.bytes, next);
        value.offset = name.offset + name.length + Short.BYTES;
        value.length = length(name.bytes, value.offset - Short.BYTES);
        next = value.offset + value.length;
        return true;
    }

    static int length(byte[] bytes, int position) {
        return Short.toUnsignedInt((short) BitUtil.VH_LE_SHORT.get(bytes, position));
    }
}
