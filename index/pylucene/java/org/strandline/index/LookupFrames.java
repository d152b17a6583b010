package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.lucene.util.BitUtil;
import org.apache.lucene.util.BytesRef;

/**
 * Look-ups and their answers, in frames as {@code strandline.node.query.plain_lookups} has them. All numbers are little
 * endian, and so are the buffers.
 */
final class LookupFrames {
    /** In bytes: whoever waits for an answer takes none that is longer. Questions are shorter by far. */
    static final int LONGEST = 32 << 10;
    private static final int PREFIX = 16;
    private static final int QUESTION = PREFIX + 23;
    /** "SLP1". */
    private static final int MAGIC = 0x31504C53;
    /** Of the keys that a look-up matches. */
    private static final int A_HANDFUL = 20;

    private LookupFrames() {}

    /**
     * Whether a question is here as a whole, from the buffer's start to its position.
     *
     * @throws MalformedBatchException if what has come is no question
     */
    static boolean isWhole(ByteBuffer question) {
        int have = question.position();
        if (have < PREFIX) {
            return false;
        }
        long body = question.getLong(8);
        if (question.getInt(0) != MAGIC || question.getInt(4) != 0
            || body < QUESTION - PREFIX || body > LONGEST - PREFIX || have > PREFIX + body) {
            throw new MalformedBatchException(-1, 0, "what came is no look-up");
        }
        return have == PREFIX + body;
    }

    /**
     * Write the answer to a question, behind which the buffer's position is. It says that somebody else has to be asked
     * if more than a handful of keys match, or one of these was not there, or there are more results than are wanted.
     */
    static void answer(LookupView view, ByteBuffer question, ByteBuffer answer) throws IOException {
        int asked = question.get(PREFIX);
        long first = question.getLong(PREFIX + 1);
        long last = question.getLong(PREFIX + 9);
        int limit = (int) Math.min(Integer.toUnsignedLong(question.getInt(PREFIX + 17)), Integer.MAX_VALUE);
        int labelEnd = QUESTION + Short.toUnsignedInt(question.getShort(PREFIX + 21));
        if (asked < KeysJson.SERIES || asked > KeysJson.VALUES || labelEnd > question.position()) {
            throw new MalformedBatchException(-1, PREFIX, "a look-up asks for what is not known, or is cut off");
        }
        byte[] label = new byte[labelEnd - QUESTION];
        question.get(QUESTION, label);
        byte[] selectors = new byte[question.position() - labelEnd];
        question.get(labelEnd, selectors);
        byte[] keys = KeyLookup.few(view.searchers(), selectors, A_HANDFUL);
        byte[] found = keys != null ? KeysJson.of(keys, asked, new BytesRef(label), limit) : null;
        if (found == null || !areThere(view.times(), found, first, last)) {
            declined(answer);
            return;
        }
        int count = (int) BitUtil.VH_LE_INT.get(found, 0);
        int text = Integer.BYTES * (1 + count);
        if (PREFIX + Integer.BYTES + found.length - text > LONGEST) {
            declined(answer);
            return;
        }
        prefix(answer, Integer.BYTES + found.length - text).putInt(count).put(found, text, found.length - text).flip();
    }

    /** Write that somebody else has to be asked: an answer without anything. */
    static void declined(ByteBuffer answer) {
        prefix(answer, 0).flip();
    }

    /** Write a question, for one selector as {@link KeyLookup} takes it, and for all times. */
    static void question(ByteBuffer question, int asked, byte[] label, byte[] selector) {
        prefix(question, QUESTION - PREFIX + label.length + selector.length);
        question.put((byte) asked).putLong(1).putLong(0).putInt(Integer.MAX_VALUE);
        question.putShort((short) label.length).put(label).put(selector);
    }

    private static boolean areThere(KeyTimes times, byte[] found, long first, long last) {
        int count = (int) BitUtil.VH_LE_INT.get(found, 0);
        for (int key = 0; key < count; key++) {
            if (!times.isThere((int) BitUtil.VH_LE_INT.get(found, Integer.BYTES * (1 + key)), first, last)) {
                return false;
            }
        }
        return true;
    }

    private static ByteBuffer prefix(ByteBuffer frame, int body) {
        return frame.clear().putInt(MAGIC).putInt(0).putLong(body);
    }
}
