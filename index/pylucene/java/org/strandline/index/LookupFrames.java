package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.util.BytesRef;

/**
 * Look-ups and their answers, in frames as {@code strandline.node.query.frames} has them; what is in a look-up says
 * {@code strandline.node.query.lookup_frames}. All numbers are little endian, and so are the buffers.
 */
final class LookupFrames {
    /** In bytes: of an answer, and of a look-up, which is shorter by far. */
    static final int LONGEST = 32 << 10;
    private static final int VERSION = 3;
    private static final int PREFIX = 16;
    /** "SLQ1". */
    private static final int MAGIC = 0x31514C53;
    private static final int ALIGNED = 8;
    /** Of what is asked, up to the length of the label. */
    private static final int FIXED = 21;
    /** Of the keys that a look-up matches. */
    private static final int A_HANDFUL = 20;

    private LookupFrames() {}

    /** So many bytes, and those that make them a multiple of eight. */
    static int padded(int length) {
        return (length + ALIGNED - 1) / ALIGNED * ALIGNED;
    }

    /**
     * Whether a look-up is here as a whole, from the buffer's start to its position.
     *
     * @throws MalformedBatchException if what has come is none
     */
    static boolean isWhole(ByteBuffer question) {
        int have = question.position();
        if (have < PREFIX) {
            return false;
        }
        long header = Integer.toUnsignedLong(question.getInt(4));
        long body = question.getLong(8);
        long size = PREFIX + header + body;
        if (question.getInt(0) != MAGIC || body < FIXED || body > LONGEST || size > LONGEST || have > size) {
            throw new MalformedBatchException(-1, 0, "what came is no look-up");
        }
        return have == size;
    }

    /**
     * Write the answer to a look-up that is here as a whole. It is declined if more than a handful of keys match, or one
     * of these was not there, or there are more results than are wanted.
     */
    static void answer(LookupView view, ByteBuffer question, ByteBuffer answer) throws IOException {
        int at = PREFIX + question.getInt(4);
        int end = question.position();
        int asked = question.get(at);
        long first = question.getLong(at + 1);
        long last = question.getLong(at + 9);
        int limit = (int) Math.min(Integer.toUnsignedLong(question.getInt(at + 17)), Integer.MAX_VALUE);
        byte[] label = taken(question, at + FIXED, Short.BYTES, end);
        byte[] selectors = taken(question, at + FIXED + Short.BYTES + label.length, Integer.BYTES, end);
        if (asked < LookupColumns.SERIES || asked > LookupColumns.VALUES) {
            throw new MalformedBatchException(-1, at, "a look-up asks for what is not known");
        }
        byte[] keys = KeyLookup.few(view.searchers(), selectors, A_HANDFUL);
        LookupColumns found = keys != null ? new LookupColumns(keys, asked, new BytesRef(label)) : null;
        if (found == null || found.results() > limit || !areThere(view.times(), found, first, last)) {
            declined(answer);
            return;
        }
        String told = asked == LookupColumns.SERIES
            ? "\"series\",\"fields\":{\"warnings\":[],\"more\":false}"
            : "\"terms\",\"fields\":{\"warnings\":[],\"more\":false,\"of_all\":false}";
        byte[] header = header(told, found.described());
        if (PREFIX + header.length + found.size() > LONGEST) {
            declined(answer);
            return;
        }
        found.write(prefix(answer, header, found.size()));
        answer.flip();
    }

    /** Write that the shard's process has to be asked. */
    static void declined(ByteBuffer answer) {
        prefix(answer, header("\"declined\",\"fields\":{}", ""), 0).flip();
    }

    /** Write a look-up, for one selector as {@link KeyLookup} takes it, and for all times. */
    static void question(ByteBuffer question, int asked, byte[] label, byte[] selector) {
        int length = FIXED + Short.BYTES + label.length + Integer.BYTES + selector.length;
        byte[] header = header("\"lookup\",\"fields\":{}", "[\"|u1\"," + length + "]");
        prefix(question, header, padded(length));
        question.put((byte) asked).putLong(1).putLong(0).putInt(Integer.MAX_VALUE);
        question.putShort((short) label.length).put(label).putInt(selector.length).put(selector);
        question.put(new byte[padded(length) - length]);
    }

    /** The text behind its length, which has so many bytes. */
    private static byte[] taken(ByteBuffer question, int at, int width, int end) {
        if (at + width > end) {
            throw new MalformedBatchException(-1, at, "a look-up is cut off");
        }
        int length = width == Short.BYTES ? Short.toUnsignedInt(question.getShort(at)) : question.getInt(at);
        if (length < 0 || length > end - at - width) {
            throw new MalformedBatchException(-1, at, "a look-up is cut off");
        }
        byte[] text = new byte[length];
        question.get(at + width, text);
        return text;
    }

    private static boolean areThere(KeyTimes times, LookupColumns found, long first, long last) {
        for (int key = 0; key < found.keys(); key++) {
            if (!times.isThere(found.partId(key), first, last)) {
                return false;
            }
        }
        return true;
    }

    private static byte[] header(String told, String columns) {
        StringBuilder header = new StringBuilder("{\"version\":").append(VERSION).append(",\"kind\":").append(told)
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
