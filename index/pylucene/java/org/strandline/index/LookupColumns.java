package org.strandline.index;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.util.BitUtil;
import org.apache.lucene.util.BytesRef;

/**
 * The result of a lookup over a few part keys, as the columns of a frame: concatenated texts with their offsets, and, for
 * names and values, the number of keys with each.
 */
final class LookupColumns {
    static final int SERIES = 0;
    static final int NAMES = 1;
    static final int VALUES = 2;

    private final byte[] packed;
    private final int keys;
    private final List<BytesRef> texts = new ArrayList<>();
    private final List<Long> counts = new ArrayList<>();
    private final boolean isCounted;
    private int textBytes = 0;

    /**
     * @param packed the result of {@link PartKeyColumns#fewPartKeys}
     * @param kind SERIES: the keys, in the order of their labels; NAMES: their label names; VALUES: the values of one
     *     label. Names and values are distinct and in the order of their bytes
     */
    LookupColumns(byte[] packed, int kind, BytesRef label) {
        this.packed = packed;
        keys = (int) (long) BitUtil.VH_LE_LONG.get(packed, 0);
        isCounted = kind != SERIES;
        if (isCounted) {
            collectTexts(kind == NAMES ? null : label);
        } else {
            collectKeys();
        }
        for (BytesRef text : texts) {
            textBytes += text.length;
        }
    }

    /** The number of keys. */
    int keys() {
        return keys;
    }

    /** The number of results. */
    int results() {
        return texts.size();
    }

    /** The part id of a key. */
    int partId(int key) {
        return (int) BitUtil.VH_LE_INT.get(packed, (keys + 2) * Long.BYTES + key * Integer.BYTES);
    }

    /** The columns in the header of a frame: the type and the length of each. */
    String described() {
        String columns = "[\"<i8\"," + (texts.size() + 1) + "],[\"|u1\"," + textBytes + "]";
        return isCounted ? columns + ",[\"<i8\"," + counts.size() + "]" : columns;
    }

    /** The size of the columns in the body of a frame, where each begins at a multiple of eight bytes. */
    int size() {
        return Long.BYTES * (texts.size() + 1) + LookupFrames.padded(textBytes) + Long.BYTES * counts.size();
    }

    /** Write the columns. */
    void write(ByteBuffer body) {
        long offset = 0;
        body.putLong(offset);
        for (BytesRef text : texts) {
            offset += text.length;
            body.putLong(offset);
        }
        for (BytesRef text : texts) {
            body.put(text.bytes, text.offset, text.length);
        }
        for (int i = textBytes; i < LookupFrames.padded(textBytes); i++) {
            body.put((byte) 0);
        }
        counts.forEach(body::putLong);
    }

    private void collectKeys() {
        List<Integer> order = new ArrayList<>(keys);
        for (int key = 0; key < keys; key++) {
            order.add(key);
        }
        if (keys > 1) {
            order.sort(this::compare);
        }
        for (int key : order) {
            texts.add(new BytesRef(packed, start(key), start(key + 1) - start(key)));
        }
    }

    private void collectTexts(BytesRef label) {
        List<BytesRef> all = new ArrayList<>();
        for (int key = 0; key < keys; key++) {
            PartKeyCursor labels = cursor(key);
            while (labels.next()) {
                if (label == null) {
                    all.add(labels.name.clone());
                } else if (label.bytesEquals(labels.name)) {
                    all.add(labels.value.clone());
                }
            }
        }
        if (keys > 1) {
            all.sort(null);
        }
        for (BytesRef text : all) {
            int last = texts.size() - 1;
            if (last >= 0 && texts.get(last).bytesEquals(text)) {
                counts.set(last, counts.get(last) + 1);
            } else {
                texts.add(text);
                counts.add(1L);
            }
        }
    }

    private int compare(int one, int other) {
        PartKeyCursor left = cursor(one);
        PartKeyCursor right = cursor(other);
        while (left.next()) {
            if (!right.next()) {
                return 1;
            }
            int order = left.name.compareTo(right.name);
            order = order != 0 ? order : left.value.compareTo(right.value);
            if (order != 0) {
                return order;
            }
        }
        return right.next() ? -1 : 0;
    }

    private PartKeyCursor cursor(int key) {
        PartKeyCursor cursor = new PartKeyCursor();
        cursor.reset(packed, start(key), start(key + 1));
        return cursor;
    }

    /** Where a key starts, and the one before it ends. */
    private int start(int key) {
        int first = (keys + 2) * Long.BYTES + keys * Integer.BYTES;
        return first + (int) (long) BitUtil.VH_LE_LONG.get(packed, (key + 1) * Long.BYTES);
    }
}
