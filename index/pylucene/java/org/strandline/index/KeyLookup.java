package org.strandline.index;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.SearcherManager;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.util.BytesRef;

/**
 * Finds few part keys by the values of their labels, in one call: making a query and acquiring a searcher from Python
 * takes a JNI call for each step, which together cost more than the search.
 */
public final class KeyLookup {
    private final byte[] packed;
    private int position = 0;

    private KeyLookup(byte[] packed) {
        this.packed = packed;
    }

    /**
     * Runs {@link PartKeyColumns#fewPartKeys} for the documents that match any of some selectors, as of the last
     * refresh.
     *
     * @param selectors one after the other, little endian: a u16 with the number of labels, and for each a u16 with the
     *     name's length, the name, a u16 with the number of values, and for each a u16 with its length and the value. A
     *     selector matches documents that have each of these labels with one of its values
     * @param most the maximum number of documents
     * @return null if more documents match
     * @throws MalformedBatchException if there is no selector, one has no label, a label has no value, or the last
     *     selector is truncated
     */
    public static byte[] few(SearcherManager searchers, byte[] selectors, int most) throws IOException {
        Query query = new KeyLookup(selectors).anySelector();
        IndexSearcher searcher = searchers.acquire();
        try {
            return PartKeyColumns.fewPartKeys(searcher, query, most);
        } finally {
            searchers.release(searcher);
        }
    }

    private Query anySelector() {
        Query first = selector();
        if (position == packed.length) {
            return first;
        }
        BooleanQuery.Builder any = new BooleanQuery.Builder().add(first, Occur.SHOULD);
        while (position < packed.length) {
            any.add(selector(), Occur.SHOULD);
        }
        return any.build();
    }

    private Query selector() {
        int start = position;
        int labels = number();
        if (labels == 0) {
            throw new MalformedBatchException(-1, start, "a selector has no label");
        }
        if (labels == 1) {
            return label();
        }
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        for (int i = 0; i < labels; i++) {
            all.add(label(), Occur.FILTER);
        }
        return all.build();
    }

    private Query label() {
        BytesRef name = text();
        String field = Fields.ofLabel(new String(packed, name.offset, name.length, StandardCharsets.UTF_8));
        int start = position;
        int values = number();
        if (values == 0) {
            throw new MalformedBatchException(-1, start, "a label has no value");
        }
        if (values == 1) {
            return new TermQuery(new Term(field, text()));
        }
        List<BytesRef> terms = new ArrayList<>();
        for (int i = 0; i < values; i++) {
            terms.add(text());
        }
        return new TermInSetQuery(field, terms);
    }

    private BytesRef text() {
        int length = number();
        if (length > packed.length - position) {
            throw cutOff();
        }
        BytesRef text = new BytesRef(packed, position, length);
        position += length;
        return text;
    }

    private int number() {
        if (packed.length - position < Short.BYTES) {
            throw cutOff();
        }
        int number = PartKeyCursor.length(packed, position);
        position += Short.BYTES;
        return number;
    }

    private MalformedBatchException cutOff() {
        return new MalformedBatchException(-1, position, "a selector is cut off");
    }
}
