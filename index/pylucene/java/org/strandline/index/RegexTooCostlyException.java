package org.strandline.index;

/** Matching a regular expression would take more work than the caller allows. The search returned no result. */
public final class RegexTooCostlyException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final long examinedTerms;
    private final long elapsedMillis;

    RegexTooCostlyException(String reason, long examinedTerms, long elapsedMillis) {
        super(reason);
        this.examinedTerms = examinedTerms;
        this.elapsedMillis = elapsedMillis;
    }

    /** The number of terms that had been matched against the expression. */
    public long getExaminedTerms() {
        return examinedTerms;
    }

    /** The time that this had taken. */
    public long getElapsedMillis() {
        return elapsedMillis;
    }
}
