package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.FilteredTermsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.MultiTermQuery;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.util.AttributeSource;
import org.apache.lucene.util.BytesRef;

/**
 * Matches documents that have a label, with any value: those whose set of names contains it. In Java because it splits
 * every set. Lucene's FieldExistsQuery needs norms or doc values, which labels don't have.
 */
public final class HasLabelQuery extends MultiTermQuery {
    private final BytesRef label;

    public HasLabelQuery(String label) {
        super(Fields.LABEL_SET, CONSTANT_SCORE_BLENDED_REWRITE);
        this.label = new BytesRef(label);
    }

    @Override
    protected TermsEnum getTermsEnum(Terms terms, AttributeSource attributes) throws IOException {
        return new FilteredTermsEnum(terms.iterator(), false) {
            private final LabelSetCursor names = new LabelSetCursor();

            @Override
            protected AcceptStatus accept(BytesRef set) {
                names.reset(set);
                while (names.next()) {
                    if (names.name.equals(label)) {
                        return AcceptStatus.YES;
                    }
                }
                return AcceptStatus.NO;
            }
        };
    }

    @Override
    public void visit(QueryVisitor visitor) {
        visitor.visitLeaf(this);
    }

    @Override
    public String toString(String defaultField) {
        return "has " + label.utf8ToString();
    }

    @Override
    public boolean equals(Object other) {
        return super.equals(other) && label.equals(((HasLabelQuery) other).label);
    }

    @Override
    public int hashCode() {
        return 31 * super.hashCode() + label.hashCode();
    }
}
