package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.util.BytesRef;

/**
 * Lookups and their answers, in the frames of {@code strandline.node.query.frames}. {@code
 * strandline.node.query.lookup_frames} describes a lookup. All numbers are little endian, and so are the buffers.
 */
final class LookupFrames {
    /** The maximum size of an answer and of a lookup, which is much shorter. */
    static final int MAX_FRAME = 32 << 10;
    private static final int VERSION = 3;
    private static final int PREFIX = 16;
    /** "SLQ1". */
    private static final int MAGIC = 0x31514C53;
    private static final int ALIGNED = 8;
    /** The size of a packed lookup up to the length of the label. */
    private static final int FIXED = 21;
    /** The maximum number of keys that a lookup may match. */
    private static final int MAX_KEYS = 20;

    private LookupFrames() {}

    /** A length rounded up to a multiple of eight. */
    static int padded(int length) {
        return (length + ALIGNED - 1) / ALIGNED * ALIGNED;
    }

    /**
     * Whether the buffer has a complete lookup, from its start to its position.
     *
     * @throws MalformedBatchException if the bytes are not a lookup
     */
    static boolean isComplete(ByteBuffer request) {
        int received = request.position();
        if (received < PREFIX) {
            return false;
        }
        long header = Integer.toUnsignedLong(request.getInt(4));
        long body = request.getLong(8);
        long size = PREFIX + header + body;
        if (request.getInt(0) != MAGIC || body < FIXED || body > MAX_FRAME || size > MAX_FRAME || received > size) {
            throw new MalformedBatchException(-1, 0, "the bytes are not a lookup");
        }
        return received == size;
    }

    /**
     * Write the answer to a complete lookup. It is declined if more than {@code MAX_KEYS} keys match, if one of them did
     * not exist in the range, or if there are more results than the limit.
     */
    static void answer(LookupView view, ByteBuffer request, ByteBuffer answer) throws IOException {
        int at = PREFIX + request.getInt(4);
        int end = request.position();
        int kind = request.get(at);
        long first = request.getLong(at + 1);
        long last = request.getLong(at + 9);
        int limit = (int) Math.min(Integer.toUnsignedLong(request.getInt(at + 17)), Integer.MAX_VALUE);
        byte[] label = text(request, at + FIXED, Short.BYTES, end);
        byte[] selectors = text(request, at + FIXED + Short.BYTES + label.length, Integer.BYTES, end);
        if (kind < LookupColumns.SERIES || kind > LookupColumns.VALUES) {
            throw new MalformedBatchException(-1, at, "a lookup is of an unknown kind");
        }
        byte[] keys = KeyLookup.few(view.searchers(), selectors, MAX_KEYS);
        LookupColumns found = keys != null ? new LookupColumns(keys, kind, new BytesRef(label)) : null;
        if (found == null || found.results() > limit || !allExist(view.times(), found, first, last)) {
            declined(answer);
            return;
        }
        String kindAndFields = kind == LookupColumns.SERIES
            ? "\"series\",\"fields\":{\"warnings\":[],\"more\":false}"
            : "\"terms\",\"fields\":{\"warnings\":[],\"more\":false,\"of_all\":false}";
        byte[] header = header(kindAndFields, found.described());
        if (PREFIX + header.length + found.size() > MAX_FRAME) {
            declined(answer);
            return;
        }
        found.write(prefix(answer, header, found.size()));
        answer.flip();
    }

    /** Write that the request must go to the shard's process. */
    static void declined(ByteBuffer answer) {
        prefix(answer, header("\"declined\",\"fields\":{}", ""), 0).flip();
    }

    /** Write a lookup with one selector, as {@link KeyLookup} reads it, for all times. */
    static void lookup(ByteBuffer request, int kind, byte[] label, byte[] selector) {
        int length = FIXED + Short.BYTES + label.length + Integer.BYTES + selector.length;
        byte[] header = header("\"lookup\",\"fields\":{}", "[\"|u1\"," + length + "]");
        prefix(request, header, padded(length));
        request.put((byte) kind).putLong(1).putLong(0).putInt(Integer.MAX_VALUE);
        request.putShort((short) label.length).put(label).putInt(selector.length).put(selector);
        request.put(new byte[padded(length) - length]);
    }

    /** The text that follows its length, which has {@code width} bytes. */
    private static byte[] text(ByteBuffer request, int at, int width, int end) {
        if (at + width > end) {
            throw new MalformedBatchException(-1, at, "a lookup is cut off");
        }
        int length = width == Short.BYTES ? Short.toUnsignedInt(request.getShort(at)) : request.getInt(at);
        if (length < 0 || length > end - at - width) {
            throw new MalformedBatchException(-1, at, "a lookup is cut off");
        }
        byte[] text = new byte[length];
        request.get(at + width, text);
        return text;
    }

    private static boolean allExist(KeyTimes times, LookupColumns found, long first, long last) {
        for (int key = 0; key < found.keys(); key++) {
            if (!times.isThere(found.partId(key), first, last)) {
                return false;
            }
        }
        return true;
    }

    private static byte[] header(String kindAndFields, String columns) {
        StringBuilder header = new StringBuilder("{\"version\":").append(VERSION).append(",\"kind\":").append(kindAndFields)
            .append(",\"columns\":[").append(columns).append("]}");
        while (header.length() % ALIGNED != 0) {
            header.append(' ');
        }
        return header.toString().getBytes(StandardCharsets.US_ASCII);
    }

    private static ByteBuffer prefix(ByteBuffer frame, byte[] header, int body) {
        return frame.clear().putInt(MAGIC).putInt(header.length).putLong(body).put(header);
    }
}
