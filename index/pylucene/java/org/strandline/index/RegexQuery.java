package org.strandline.index;

import com.google.re2j.Matcher;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.FilteredTermsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.MultiTermQuery;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.util.AttributeSource;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.StringHelper;

/**
 * Matches documents with a term that an RE2 expression matches, with a limit on the work. In Java because it evaluates
 * every term of a field. Not Lucene's RegexpQuery, because that has another syntax, and a cost that depends on the
 * expression alone.
 *
 * <p>The expression must match the whole term, is case-sensitive, and its dot matches a line feed too, as in
 * Prometheus.
 *
 * <p>Work is counted over all segments that a search visits: a term in three segments counts three times. The clock
 * starts at the first term. One object serves one search, by one thread; a second search continues with the remaining
 * budget. Objects with the same field, expression and prefix are equal whatever their limits, so that Lucene's query
 * cache answers a repeated expression, and then no work counts.
 */
public final class RegexQuery extends MultiTermQuery {
    /** The maximum number of terms, or bytes of terms, between two readings of the clock. */
    private static final int TERMS_BETWEEN_CLOCK_READS = 64;
    private static final int BYTES_BETWEEN_CLOCK_READS = 16 * 1024;

    /** The maximum number of instructions of an expression. A list of a thousand names is well below. */
    private static final int MAX_PROGRAM = 100_000;

    /**
     * Instructions times groups: RE2/J allocates memory for every group's position at every instruction that it
     * follows.
     */
    private static final long MAX_CAPTURES = 4_000_000;

    /**
     * Instructions times bytes for one term: matching can't be interrupted within a term, so none may take too long.
     */
    private static final long MAX_STEPS_PER_TERM = 50_000_000;

    /**
     * Anchors that look at the previous character. Over bytes, RE2/J takes the position after a character of several
     * bytes for the start of the text; over a String it does not. The other anchors look ahead and are right in both.
     */
    private static final String[] LOOKBEHIND_ANCHORS = {"^", "\\A", "\\b", "\\B"};

    private final Pattern pattern;
    private final boolean hasLookbehind;
    private final BytesRef prefix;
    private final long maxTerms;
    private final long maxMillis;
    private long examinedTerms;
    private long startNanos;
    private int termsUntilClockRead;
    private int bytesUntilClockRead;

    /**
     * @param prefix the UTF-8 bytes that every match is known to start with; empty if nothing is known. Only terms that
     *     start with them are examined
     * @param maxTerms the maximum number of terms to examine
     * @param maxMillis the maximum time for that
     * @throws com.google.re2j.PatternSyntaxException if it is not an RE2 expression
     * @throws RegexTooCostlyException if the expression is too large to compile
     */
    public RegexQuery(String field, String expression, byte[] prefix, long maxTerms, long maxMillis) {
        super(field, CONSTANT_SCORE_BLENDED_REWRITE);
        this.pattern = compile(expression);
        this.hasLookbehind = Arrays.stream(LOOKBEHIND_ANCHORS).anyMatch(expression::contains);
        this.prefix = new BytesRef(prefix.clone());
        this.maxTerms = maxTerms;
        this.maxMillis = maxMillis;
    }

    private static Pattern compile(String expression) {
        try {
            if (!RegexSize.isWithin(expression, MAX_PROGRAM)) {
                throw new RegexTooCostlyException(
                    "more than " + MAX_PROGRAM + " steps in the expression, or groups more than " + RegexSize.MAX_DEPTH
                        + " deep", 0, 0);
            }
            Pattern pattern = Pattern.compile(expression, Pattern.DOTALL);
            long captures = (long) pattern.programSize() * (pattern.groupCount() + 1);
            if (captures > MAX_CAPTURES) {
                throw new RegexTooCostlyException(
                    pattern.groupCount() + " groups that capture, in " + pattern.programSize() + " steps", 0, 0);
            }
            return pattern;
        } catch (StackOverflowError tooDeep) {
            throw new RegexTooCostlyException("groups too deep for this thread's stack", 0, 0);
        } catch (PatternSyntaxException invalid) {
            // RE2/J puts our flag in front of the expression, which would confuse the expression's author.
            String fragment = invalid.getPattern();
            throw new PatternSyntaxException(
                invalid.getDescription(), fragment.startsWith("(?s)") ? fragment.substring(4) : fragment);
        }
    }

    /** The number of terms that searches with this object have matched against the expression so far. */
    public long getExaminedTerms() {
        return examinedTerms;
    }

    @Override
    protected TermsEnum getTermsEnum(Terms terms, AttributeSource attributes) throws IOException {
        return new MatchingTerms(terms.iterator());
    }

    private void countTerm(int length) {
        if (examinedTerms == 0) {
            startNanos = System.nanoTime();
        }
        if (examinedTerms >= maxTerms) {
            throw tooCostly("more than " + maxTerms + " terms to examine");
        }
        if ((long) pattern.programSize() * length > MAX_STEPS_PER_TERM) {
            throw tooCostly("a term of " + length + " bytes for an expression of " + pattern.programSize() + " steps");
        }
        examinedTerms++;
        termsUntilClockRead--;
        bytesUntilClockRead -= length;
        if (termsUntilClockRead < 0 || bytesUntilClockRead < 0) {
            termsUntilClockRead = TERMS_BETWEEN_CLOCK_READS;
            bytesUntilClockRead = BYTES_BETWEEN_CLOCK_READS;
            if (elapsedMillis() > maxMillis) {
                throw tooCostly("more than " + maxMillis + " ms of matching");
            }
        }
    }

    private long elapsedMillis() {
        return (System.nanoTime() - startNanos) / 1_000_000;
    }

    private RegexTooCostlyException tooCostly(String reason) {
        return new RegexTooCostlyException(reason, examinedTerms, elapsedMillis());
    }

    @Override
    public void visit(QueryVisitor visitor) {
        visitor.visitLeaf(this);
    }

    @Override
    public String toString(String defaultField) {
        return field + "=~" + pattern.pattern();
    }

    @Override
    public boolean equals(Object other) {
        return super.equals(other)
            && pattern.pattern().equals(((RegexQuery) other).pattern.pattern())
            && prefix.equals(((RegexQuery) other).prefix);
    }

    @Override
    public int hashCode() {
        return 31 * (31 * super.hashCode() + pattern.pattern().hashCode()) + prefix.hashCode();
    }

    private final class MatchingTerms extends FilteredTermsEnum {
        private final Matcher matcher = pattern.matcher(BytesRef.EMPTY_BYTES);

        MatchingTerms(TermsEnum all) {
            super(all, prefix.length > 0);
            if (prefix.length > 0) {
                setInitialSeekTerm(prefix);
            }
        }

        @Override
        protected AcceptStatus accept(BytesRef term) {
            if (!StringHelper.startsWith(term, prefix)) {
                return AcceptStatus.END;
            }
            countTerm(term.length);
            try {
                return matches(term) ? AcceptStatus.YES : AcceptStatus.NO;
            } catch (StackOverflowError tooDeep) {
                // RE2/J follows empty alternatives by recursion; thousands in a row outgrow the stack.
                throw tooCostly("too many optional parts in a row");
            }
        }

        private boolean matches(BytesRef term) {
            if (hasLookbehind) {
                return matcher.reset(term.utf8ToString()).matches();
            }
            return matcher.reset(Arrays.copyOfRange(term.bytes, term.offset, term.offset + term.length)).matches();
        }
    }
}
