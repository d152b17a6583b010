package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.ConstantScoreScorer;
import org.apache.lucene.search.ConstantScoreWeight;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScorerSupplier;
import org.apache.lucene.search.TwoPhaseIterator;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.DocIdSetBuilder;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;

/**
 * Matches the documents whose part id is in a bitmap: it brings what Python computes on bitmaps (a time range, for
 * instance) back into Lucene. In Java because it is evaluated once per document.
 *
 * <p>Objects are compared by identity, and never cached: comparing bitmaps would cost more than it saves.
 */
public final class PartIdQuery extends Query {
    private final RoaringBitmap partIds = new RoaringBitmap();
    private final long cardinality;

    /** Match the part ids of a serialised roaring bitmap, in RoaringBitmap's portable format. */
    public PartIdQuery(byte[] bitmap) throws IOException {
        partIds.deserialize(ByteBuffer.wrap(bitmap));
        cardinality = partIds.getLongCardinality();
    }

    @Override
    public Weight createWeight(IndexSearcher searcher, ScoreMode scoreMode, float boost) {
        return new ConstantScoreWeight(this, boost) {
            @Override
            public Scorer scorer(LeafReaderContext leaf) throws IOException {
                return scorerSupplier(leaf).get(Long.MAX_VALUE);
            }

            @Override
            public ScorerSupplier scorerSupplier(LeafReaderContext leaf) {
                int maxDoc = leaf.reader().maxDoc();
                Weight weight = this;
                return new ScorerSupplier() {
                    @Override
                    public Scorer get(long leadCost) throws IOException {
                        NumericDocValues ids = DocValues.getNumeric(leaf.reader(), Fields.PART_ID);
                        // A query with a lower cost leads, and its documents are checked against the bitmap.
                        DocIdSetIterator candidates = leadCost < cost() ? ids : inBlocks(leaf);
                        return new ConstantScoreScorer(weight, score(), scoreMode, filter(candidates, ids));
                    }

                    @Override
                    public long cost() {
                        return Math.min(cardinality, maxDoc);
                    }
                };
            }

            @Override
            public boolean isCacheable(LeafReaderContext leaf) {
                return false;
            }
        };
    }

    /** The documents in every block of ids that has an id of the bitmap. */
    private DocIdSetIterator inBlocks(LeafReaderContext leaf) throws IOException {
        Terms terms = leaf.reader().terms(Fields.PART_ID);
        if (terms == null) {
            return DocIdSetIterator.empty();
        }
        DocIdSetBuilder docs = new DocIdSetBuilder(leaf.reader().maxDoc());
        TermsEnum blocks = terms.iterator();
        PostingsEnum postings = null;
        BytesRef term = Fields.newBlockTerm();
        PeekableIntIterator wanted = partIds.getIntIterator();
        // Bitmap and segment alternately skip to the next block, so that blocks that only one of them has cost nothing.
        while (wanted.hasNext()) {
            int wantedBlock = Fields.blockOf(wanted.peekNext());
            Fields.setBlockTerm(term, wantedBlock);
            if (blocks.seekCeil(term) == TermsEnum.SeekStatus.END) {
                break;
            }
            int start = Fields.blockStart(blocks.term());
            int block = Fields.blockOf(start);
            if (block == wantedBlock) {
                postings = blocks.postings(postings, PostingsEnum.NONE);
                docs.add(postings);
                if (block == Fields.LAST_BLOCK) {
                    break;
                }
                start += Fields.BLOCK_SIZE;
            }
            wanted.advanceIfNeeded(start);
        }
        DocIdSetIterator found = docs.build().iterator();
        return found == null ? DocIdSetIterator.empty() : found;
    }

    private TwoPhaseIterator filter(DocIdSetIterator candidates, NumericDocValues ids) {
        return new TwoPhaseIterator(candidates) {
            @Override
            public boolean matches() throws IOException {
                return ids.advanceExact(candidates.docID()) && partIds.contains((int) ids.longValue());
            }

            @Override
            public float matchCost() {
                return 10;
            }
        };
    }

    @Override
    public void visit(QueryVisitor visitor) {
        visitor.visitLeaf(this);
    }

    @Override
    public String toString(String field) {
        return Fields.PART_ID + " in a bitmap of " + cardinality;
    }

    @Override
    public boolean equals(Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }
}
