package org.strandline.index;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BitUtil;
import org.apache.lucene.util.BytesRef;

/** What a look-up asks of a handful of part keys, as JSON. */
final class KeysJson {
    static final int SERIES = 0;
    static final int NAMES = 1;
    static final int VALUES = 2;
    private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

    private final byte[] packed;
    private final int count;
    private byte[] out = new byte[1024];
    private int end = 0;

    private KeysJson(byte[] packed) {
        this.packed = packed;
        this.count = (int) (long) BitUtil.VH_LE_LONG.get(packed, 0);
    }

    /**
     * @param packed what {@link PartKeyColumns#fewPartKeys} gives
     * @param asked whether the label sets are asked for, in their order, or the names that labels have in them, or the
     *     values of one label, each once and in the order of their bytes
     * @return u32 count n of the keys; n part ids of u32; a list in JSON. Null if there are more results than
     *     {@code limit}
     */
    static byte[] of(byte[] packed, int asked, BytesRef label, int limit) {
        return new KeysJson(packed).written(asked, label, limit);
    }

    private byte[] written(int asked, BytesRef label, int limit) {
        putIds();
        if (asked == SERIES ? !putSeries(limit) : !putTexts(asked == NAMES ? null : label, limit)) {
            return null;
        }
        return ArrayUtil.copyOfSubArray(out, 0, end);
    }

    private void putIds() {
        room(Integer.BYTES * (1 + count));
        BitUtil.VH_LE_INT.set(out, 0, count);
        System.arraycopy(packed, (count + 2) * Long.BYTES, out, Integer.BYTES, count * Integer.BYTES);
        end = Integer.BYTES * (1 + count);
    }

    private boolean putSeries(int limit) {
        if (count > limit) {
            return false;
        }
        put('[');
        List<Integer> order = new ArrayList<>(count);
        for (int key = 0; key < count; key++) {
            order.add(key);
        }
        if (count > 1) {
            order.sort(this::compare);
        }
        for (int place = 0; place < count; place++) {
            if (place > 0) {
                put(',');
            }
            putLabels(cursor(order.get(place)));
        }
        put(']');
        return true;
    }

    private void putLabels(PartKeyCursor labels) {
        put('{');
        boolean isFirst = true;
        while (labels.next()) {
            if (!isFirst) {
                put(',');
            }
            isFirst = false;
            putText(labels.name);
            put(':');
            putText(labels.value);
        }
        put('}');
    }

    private boolean putTexts(BytesRef label, int limit) {
        List<BytesRef> texts = new ArrayList<>();
        for (int key = 0; key < count; key++) {
            PartKeyCursor labels = cursor(key);
            while (labels.next()) {
                if (label == null) {
                    texts.add(labels.name.clone());
                } else if (label.bytesEquals(labels.name)) {
                    texts.add(labels.value.clone());
                }
            }
        }
        if (count > 1) {
            texts = texts.stream().sorted().distinct().toList();
        }
        if (texts.size() > limit) {
            return false;
        }
        put('[');
        for (int place = 0; place < texts.size(); place++) {
            if (place > 0) {
                put(',');
            }
            putText(texts.get(place));
        }
        put(']');
        return true;
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
        int keyStart = (count + 2) * Long.BYTES + count * Integer.BYTES;
        PartKeyCursor cursor = new PartKeyCursor();
        cursor.reset(packed, keyStart + offset(key), keyStart + offset(key + 1));
        return cursor;
    }

    private int offset(int key) {
        return (int) (long) BitUtil.VH_LE_LONG.get(packed, (key + 1) * Long.BYTES);
    }

    /** Texts are UTF-8: {@link PartKeyBatch} has checked them. */
    private void putText(BytesRef text) {
        // A control character takes six.
        room(6 * text.length + 2);
        out[end++] = '"';
        int behind = text.offset + text.length;
        for (int place = text.offset; place < behind; place++) {
            byte one = packed[place];
            if (one < 0 || (one >= ' ' && one != '"' && one != '\\')) {
                out[end++] = one;
            } else {
                putEscaped(one);
            }
        }
        out[end++] = '"';
    }

    private void putEscaped(byte one) {
        out[end++] = '\\';
        switch (one) {
            case '"', '\\' -> out[end++] = one;
            case '\b' -> out[end++] = 'b';
            case '\t' -> out[end++] = 't';
            case '\n' -> out[end++] = 'n';
            case '\f' -> out[end++] = 'f';
            case '\r' -> out[end++] = 'r';
            default -> {
                out[end++] = 'u';
                out[end++] = '0';
                out[end++] = '0';
                out[end++] = HEX[one >> 4];
                out[end++] = HEX[one & 0xF];
            }
        }
    }

    private void put(char one) {
        room(1);
        out[end++] = (byte) one;
    }

    private void room(int more) {
        out = ArrayUtil.grow(out, end + more);
    }
}
