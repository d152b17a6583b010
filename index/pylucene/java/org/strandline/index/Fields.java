package org.strandline.index;

import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.DocValuesType;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.util.BytesRef;

/**
 * The fields of a part key's document. Python reads the names from here, so that both sides agree by construction.
 *
 * <p>A label's field is its name with the prefix {@link #LABEL_PREFIX}, so that no label's field collides with the
 * others.
 */
public final class Fields {
    /**
     * The part id: a numeric doc value, and the term of its block of 256 ids. A block's term is the ids' three high
     * bytes, so that terms sort as ids do. A term for each id would take a third of the time of adding a document;
     * {@link PartIdQuery} finds an id from its block in less than 0.1 ms.
     */
    public static final String PART_ID = "part_id";

    /** The 128-bit key hash: a binary doc value of the 16 bytes as the batch had them. */
    public static final String KEY_HASH = "key_hash";

    /** The part key's bytes: a binary doc value. */
    public static final String PART_KEY = "part_key";

    /**
     * The names of the document's labels, as one term: for each label a u16 with the name's length and the name, which
     * is the part key without its values. Documents have few different sets of names, so a term for each set costs a
     * tenth of a term for each name; {@link HasLabelQuery} and {@link TermCounts} split the sets.
     */
    public static final String LABEL_SET = "label_set";

    /** The prefix of a label's field name. */
    public static final String LABEL_PREFIX = "label:";

    /** The number of part ids that share a term. */
    static final int BLOCK_SIZE = 256;

    /** The highest block; block numbers have 24 bits. */
    static final int LAST_BLOCK = (1 << 24) - 1;

    static final FieldType PART_ID_TYPE = type(IndexOptions.DOCS, DocValuesType.NUMERIC);
    static final FieldType BINARY_TYPE = type(IndexOptions.NONE, DocValuesType.BINARY);
    static final FieldType TERM_TYPE = type(IndexOptions.DOCS, DocValuesType.NONE);

    private Fields() {}

    /** The name of the field that holds a label's values. */
    static String ofLabel(String name) {
        return LABEL_PREFIX + name;
    }

    /** The block of a part id, which its term is made of. */
    static int blockOf(int partId) {
        return partId >>> 8;
    }

    /** The lowest part id of a term's block. */
    static int blockStart(BytesRef term) {
        byte[] bytes = term.bytes;
        int start = term.offset;
        return bytes[start] << 24 | (bytes[start + 1] & 0xFF) << 16 | (bytes[start + 2] & 0xFF) << 8;
    }

    /** A buffer for a block's term. */
    static BytesRef newBlockTerm() {
        return new BytesRef(new byte[3]);
    }

    /** Write the term of a block. */
    static void setBlockTerm(BytesRef term, int block) {
        term.bytes[0] = (byte) (block >>> 16);
        term.bytes[1] = (byte) (block >>> 8);
        term.bytes[2] = (byte) block;
    }

    private static FieldType type(IndexOptions indexed, DocValuesType docValues) {
        FieldType type = new FieldType();
        type.setIndexOptions(indexed);
        type.setDocValuesType(docValues);
        type.setTokenized(false);
        type.setOmitNorms(true);
        type.freeze();
        return type;
    }
}
