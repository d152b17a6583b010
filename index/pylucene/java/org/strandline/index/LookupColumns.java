package org.strandline.index;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.util.BitUtil;
import org.apache.lucene.util.BytesRef;

/**
 * What a look-up asks of a handful of part keys, as the columns of a frame: texts one behind the other with their
 * offsets; and, for names and values, in how many of the keys each is.
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
     * @param packed what {@link PartKeyColumns#fewPartKeys} gives
     * @param asked whether the keys are asked for, in the order of their labels, or the names that labels have in them,
     *     or the values of one label, each once and in the order of their bytes
     */
    LookupColumns(byte[] packed, int asked, BytesRef label) {
        this.packed = packed;
        keys = (int) (long) BitUtil.VH_LE_LONG.get(packed, 0);
        isCounted = asked != SERIES;
        if (isCounted) {
            takeTexts(asked == NAMES ? null : label);
        } else {
            takeKeys();
        }
        for (BytesRef text : texts) {
            textBytes += text.length;
        }
    }

    /** How many keys there are. */
    int keys() {
        return keys;
    }

    /** How many results there are. */
    int results() {
        return texts.size();
    }

    /** The part id of a key. */
    int partId(int key) {
        return (int) BitUtil.VH_LE_INT.get(packed, (keys + 2) * Long.BYTES + key * Integer.BYTES);
    }

    /** The columns as the header of a frame names them: the type and the length of each. */
    String described() {
        String told = "[\"<i8\"," + (texts.size() + 1) + "],[\"|u1\"," + textBytes + "]";
        return isCounted ? told + ",[\"<i8\"," + counts.size() + "]" : told;
    }

    /** What all columns take in the body of a frame, in which each begins at a multiple of eight bytes. */
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
        for (int place = textBytes; place < LookupFrames.padded(textBytes); place++) {
            body.put((byte) 0);
        }
        counts.forEach(body::putLong);
    }

    private void takeKeys() {
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

    private void takeTexts(BytesRef label) {
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

    /** Where a key begins, and the one before it ends. */
    private int start(int key) {
        int first = (keys + 2) * Long.BYTES + keys * Integer.BYTES;
        return first + (int) (long) BitUtil.VH_LE_LONG.get(packed, (key + 1) * Long.BYTES);
    }
}
