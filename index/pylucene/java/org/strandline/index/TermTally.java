package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.BytesRefHash;

/**
 * Counts the terms that belong to a page, added in any order, and visits them in order. It can read them from the part
 * keys of documents, which is cheaper if there are fewer documents than terms.
 */
final class TermTally {
    private final BytesRefHash terms = new BytesRefHash();
    private final TermPage page;
    private int[] counts = new int[16];

    TermTally(TermPage page) {
        this.page = page;
    }

    void add(BytesRef term, int documents) {
        if (page.belongs(term)) {
            int slot = terms.add(term);
            if (slot < 0) {
                slot = -slot - 1;
            }
            counts = ArrayUtil.grow(counts, slot + 1);
            counts[slot] += documents;
        }
    }

    /** Count the names of the documents' labels. */
    void addNames(CountedDocuments counted) throws IOException {
        visitPartKeys(counted, labels -> {
            while (labels.next()) {
                add(labels.name, 1);
            }
        });
    }

    /** Count the documents' values of one label. */
    void addValues(CountedDocuments counted, BytesRef label) throws IOException {
        visitPartKeys(counted, labels -> {
            while (labels.next()) {
                int order = labels.name.compareTo(label);
                if (order == 0) {
                    add(labels.value, 1);
                }
                if (order >= 0) {
                    return;
                }
            }
        });
    }

    private interface PartKeyVisitor {
        void visit(PartKeyCursor labels);
    }

    private static void visitPartKeys(CountedDocuments counted, PartKeyVisitor visitor) throws IOException {
        PartKeyCursor labels = new PartKeyCursor();
        for (LeafReaderContext leaf : counted.leaves()) {
            BinaryDocValues partKeys = DocValues.getBinary(leaf.reader(), Fields.PART_KEY);
            DocIdSetIterator docs = counted.iterator(leaf);
            for (int doc = docs.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = docs.nextDoc()) {
                partKeys.advance(doc);
                BytesRef key = partKeys.binaryValue();
                labels.reset(key.bytes, key.offset, key.offset + key.length);
                visitor.visit(labels);
            }
        }
    }

    /** The number of different terms. */
    int size() {
        return terms.size();
    }

    /** Visit the terms in order, until the visitor returns false. The tally can't be used afterwards. */
    void visit(TermVisitor visitor) throws IOException {
        BytesRef term = new BytesRef();
        int size = terms.size();
        int[] sorted = terms.sort();
        for (int i = 0; i < size; i++) {
            if (!visitor.visit(terms.get(sorted[i], term), counts[sorted[i]])) {
                return;
            }
        }
    }
}
