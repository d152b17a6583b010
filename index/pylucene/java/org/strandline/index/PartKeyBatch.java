package org.strandline.index;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.util.BitUtil;

/**
 * A packed batch of part keys, completely checked before any of it is used.
 *
 * <p>Layout, little endian: u32 count n; n part ids of u32; n key hashes of 16 bytes; n + 1 offsets of u32 into what
 * follows, the first one 0; the part keys, one after the other, up to the array's end. Columns instead of rows, so that
 * numpy makes a batch by copying arrays.
 */
final class PartKeyBatch {
    static final int HASH_BYTES = 16;

    /** Lucene's limit on a term: it applies to a value, and to all names of a part key together. */
    static final int MAX_TERM_BYTES = IndexWriter.MAX_TERM_LENGTH;

    final byte[] bytes;
    final int count;
    private final int hashes;
    private final int offsets;
    private final int keys;

    /** Read the batch's header and check the whole batch. */
    PartKeyBatch(byte[] bytes) {
        this.bytes = bytes;
        if (bytes.length < Integer.BYTES) {
            throw new MalformedBatchException(-1, bytes.length, "the batch ends in its count");
        }
        long n = Integer.toUnsignedLong((int) BitUtil.VH_LE_INT.get(bytes, 0));
        long columnsEnd = columnsEnd(n);
        if (columnsEnd > bytes.length) {
            throw new MalformedBatchException(
                -1, bytes.length, "a batch of " + n + " documents has columns of " + columnsEnd + " bytes, but only "
                    + bytes.length + " bytes came");
        }
        count = (int) n;
        hashes = Integer.BYTES + count * Integer.BYTES;
        offsets = hashes + count * HASH_BYTES;
        keys = (int) columnsEnd;
        check();
    }

    /** The size of the count and the columns of n documents; the part keys follow them. */
    static long columnsEnd(long n) {
        return Integer.BYTES + n * (Integer.BYTES + HASH_BYTES) + (n + 1) * Integer.BYTES;
    }

    int partId(int document) {
        return (int) BitUtil.VH_LE_INT.get(bytes, Integer.BYTES + document * Integer.BYTES);
    }

    int hashStart(int document) {
        return hashes + document * HASH_BYTES;
    }

    /** The start of a document's part key in the array; it ends where the next one starts. */
    int keyStart(int document) {
        return keys + (int) BitUtil.VH_LE_INT.get(bytes, offsets + document * Integer.BYTES);
    }

    private void check() {
        long size = bytes.length - keys;
        long previous = 0;
        for (int document = 0; document <= count; document++) {
            int position = offsets + document * Integer.BYTES;
            long offset = Integer.toUnsignedLong((int) BitUtil.VH_LE_INT.get(bytes, position));
            if (offset < previous || offset > size || (document == 0 && offset != 0)) {
                throw new MalformedBatchException(
                    Math.min(document, count - 1), position,
                    "offset " + document + " is " + offset + ", which is not between the one before, " + previous
                        + ", and the " + size + " bytes of part keys");
            }
            previous = offset;
        }
        if (previous != size) {
            throw new MalformedBatchException(
                -1, keys + previous, (size - previous) + " bytes follow the last part key");
        }
        KeyCheck keyCheck = new KeyCheck();
        for (int document = 0; document < count; document++) {
            keyCheck.check(document);
        }
    }

    /**
     * Checks that a part key is in canonical form: complete, sorted by name without duplicates, nothing empty, UTF-8.
     */
    private final class KeyCheck {
        private final CharsetDecoder utf8 = StandardCharsets.UTF_8.newDecoder();
        private int document;
        private boolean ascii;

        void check(int document) {
            this.document = document;
            int position = keyStart(document);
            int end = keyStart(document + 1);
            // One check of the whole key, which usually avoids a check of each text.
            ascii = isAscii(position, end);
            int nameBytes = 0;
            int lastStart = -1;
            int lastEnd = -1;
            while (position < end) {
                int nameStart = position + Short.BYTES;
                int nameEnd = textEnd(position, end, "a label's name", -1, -1);
                if (lastStart >= 0
                        && Arrays.compareUnsigned(bytes, lastStart, lastEnd, bytes, nameStart, nameEnd) >= 0) {
                    throw malformed(position, "label " + text(nameStart, nameEnd) + " comes after "
                        + text(lastStart, lastEnd) + ": names must be sorted and unique");
                }
                nameBytes += nameEnd - position;
                if (nameBytes > MAX_TERM_BYTES) {
                    throw malformed(position, "the names of its labels up to " + text(nameStart, nameEnd) + " have "
                        + nameBytes + " bytes with their lengths; Lucene allows at most " + MAX_TERM_BYTES);
                }
                position = textEnd(nameEnd, end, "the value of label ", nameStart, nameEnd);
                lastStart = nameStart;
                lastEnd = nameEnd;
            }
        }

        /** Check one length and the text after it; return the end of the text. */
        private int textEnd(int position, int end, String what, int nameStart, int nameEnd) {
            if (end - position < Short.BYTES) {
                throw malformed(position, named(what, nameStart, nameEnd) + " is cut off in its length");
            }
            int length = PartKeyCursor.length(bytes, position);
            int start = position + Short.BYTES;
            if (length == 0) {
                throw malformed(position, named(what, nameStart, nameEnd) + " is empty");
            }
            if (length > end - start) {
                throw malformed(position, named(what, nameStart, nameEnd) + " has " + length
                    + " bytes, but the part key ends after " + (end - start));
            }
            if (length > MAX_TERM_BYTES) {
                throw malformed(position, named(what, nameStart, nameEnd) + " has " + length
                    + " bytes; Lucene allows at most " + MAX_TERM_BYTES);
            }
            if (!ascii && !isUtf8(start, start + length)) {
                throw malformed(start, named(what, nameStart, nameEnd) + " is not UTF-8");
            }
            return start + length;
        }

        private boolean isAscii(int start, int end) {
            byte all = 0;
            for (int i = start; i < end; i++) {
                all |= bytes[i];
            }
            return all >= 0;
        }

        private boolean isUtf8(int start, int end) {
            if (isAscii(start, end)) {
                return true;
            }
            try {
                utf8.decode(ByteBuffer.wrap(bytes, start, end - start));
                return true;
            } catch (CharacterCodingException malformed) {
                return false;
            }
        }

        private String named(String what, int nameStart, int nameEnd) {
            return nameStart < 0 ? what : what + text(nameStart, nameEnd);
        }

        private String text(int start, int end) {
            // A malicious name may have thousands of bytes: a message shows the beginning.
            int shown = Math.min(end, start + 100);
            String text = new String(bytes, start, shown - start, StandardCharsets.UTF_8);
            return "'" + text + (shown < end ? "…" : "") + "'";
        }

        private MalformedBatchException malformed(int position, String reason) {
            return new MalformedBatchException(document, position, reason);
        }
    }
}
