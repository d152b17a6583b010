package org.strandline.index;

import java.io.Reader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.document.InvertableType;
import org.apache.lucene.document.StoredValue;
import org.apache.lucene.index.IndexableField;
import org.apache.lucene.index.IndexableFieldType;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;

/**
 * The document of a batch's part key: one object that moves from key to key, so that adding a million documents creates
 * only a few fields. Values are slices of the batch itself; Lucene copies them when it indexes.
 */
final class PartKeyDocument implements Iterable<IndexableField> {
    private static final int OWN_FIELDS = 4;

    private final PartKeyBatch batch;
    private final PartKeyCursor cursor = new PartKeyCursor();
    private final PartIdField partId = new PartIdField();
    private final BytesField keyHash;
    private final BytesField partKey;
    private final BytesField labelSet;
    /** By a label's name: the name of its field, as one String object whose hash is computed once. */
    private final Map<BytesRef, String> fieldNames = new HashMap<>();
    private IndexableField[] fields = new IndexableField[OWN_FIELDS];
    private int fieldCount;

    PartKeyDocument(PartKeyBatch batch) {
        this.batch = batch;
        keyHash = new BytesField(Fields.KEY_HASH, batch.bytes, Fields.BINARY_TYPE);
        partKey = new BytesField(Fields.PART_KEY, batch.bytes, Fields.BINARY_TYPE);
        labelSet = new BytesField(Fields.LABEL_SET, new byte[256], Fields.TERM_TYPE);
        fields[0] = partId;
        fields[1] = keyHash;
        fields[2] = partKey;
        fields[3] = labelSet;
    }

    /** Move to the batch's i-th part key. */
    void moveTo(int i) {
        int start = batch.keyStart(i);
        int end = batch.keyStart(i + 1);
        partId.set(batch.partId(i));
        keyHash.set(batch.hashStart(i), PartKeyBatch.HASH_BYTES);
        partKey.set(start, end - start);
        cursor.reset(batch.bytes, start, end);
        int setEnd = 0;
        // Neighbours in a batch mostly have the same labels. In that case the set and the fields' names are reused.
        boolean sameNames = true;
        fieldCount = OWN_FIELDS;
        while (cursor.next()) {
            int nameEnd = setEnd + Short.BYTES + cursor.name.length;
            sameNames = sameNames && nameEnd <= labelSet.value.length && Arrays.equals(
                labelSet.value.bytes, setEnd, nameEnd,
                batch.bytes, cursor.name.offset - Short.BYTES, cursor.name.offset + cursor.name.length);
            if (!sameNames) {
                labelSet.value.bytes = ArrayUtil.grow(labelSet.value.bytes, nameEnd);
                System.arraycopy(
                    batch.bytes, cursor.name.offset - Short.BYTES, labelSet.value.bytes, setEnd, nameEnd - setEnd);
            }
            addLabel(sameNames);
            setEnd = nameEnd;
        }
        labelSet.value.length = setEnd;
    }

    private void addLabel(boolean sameName) {
        if (fieldCount == fields.length) {
            fields = Arrays.copyOf(fields, fieldCount + 1);
            fields[fieldCount] = new BytesField(null, batch.bytes, Fields.TERM_TYPE);
        }
        BytesField field = (BytesField) fields[fieldCount++];
        field.set(cursor.value.offset, cursor.value.length);
        if (!sameName) {
            field.name = fieldNames.get(cursor.name);
            if (field.name == null) {
                field.name = Fields.ofLabel(cursor.name.utf8ToString());
                fieldNames.put(cursor.name.clone(), field.name);
            }
        }
    }

    @Override
    public Iterator<IndexableField> iterator() {
        return new Iterator<>() {
            private int next = 0;

            @Override
            public boolean hasNext() {
                return next < fieldCount;
            }

            @Override
            public IndexableField next() {
                if (next >= fieldCount) {
                    throw new NoSuchElementException();
                }
                return fields[next++];
            }
        };
    }

    /** The common base of the fields: no text, no analysis, nothing stored. */
    private abstract static class OwnField implements IndexableField {
        @Override
        public TokenStream tokenStream(Analyzer analyzer, TokenStream reuse) {
            throw new UnsupportedOperationException(name() + " is not analysed");
        }

        @Override
        public String stringValue() {
            return null;
        }

        @Override
        public Reader readerValue() {
            return null;
        }

        @Override
        public StoredValue storedValue() {
            return null;
        }

        @Override
        public InvertableType invertableType() {
            return InvertableType.BINARY;
        }
    }

    /** Bytes, mostly a slice of the batch: a term, or a binary doc value. */
    private static final class BytesField extends OwnField {
        final BytesRef value;
        String name;
        private final IndexableFieldType type;

        BytesField(String name, byte[] bytes, IndexableFieldType type) {
            this.name = name;
            this.value = new BytesRef(bytes, 0, 0);
            this.type = type;
        }

        void set(int offset, int length) {
            value.offset = offset;
            value.length = length;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public IndexableFieldType fieldType() {
            return type;
        }

        @Override
        public BytesRef binaryValue() {
            return value;
        }

        @Override
        public Number numericValue() {
            return null;
        }
    }

    /** The part id, both as its block's term and as a numeric doc value. */
    private static final class PartIdField extends OwnField {
        private final BytesRef term = Fields.newBlockTerm();
        private long id;

        void set(int partId) {
            id = Integer.toUnsignedLong(partId);
            Fields.setBlockTerm(term, Fields.blockOf(partId));
        }

        @Override
        public String name() {
            return Fields.PART_ID;
        }

        @Override
        public IndexableFieldType fieldType() {
            return Fields.PART_ID_TYPE;
        }

        @Override
        public BytesRef binaryValue() {
            return term;
        }

        @Override
        public Number numericValue() {
            return id;
        }
    }
}
