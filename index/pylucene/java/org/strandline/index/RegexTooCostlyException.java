package org.strandline.index;

/** Matching a regular expression would take more work than its caller allows. The search gave no result. */
public final class RegexTooCostlyException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final long examinedTerms;
    private final long elapsedMillis;

    RegexTooCostlyException(String reason, long examinedTerms, long elapsedMillis) {
        super(reason);
        this.examinedTerms = examinedTerms;
        this.elapsedMillis = elapsedMillis;
    }

    /** How many terms had been matched against the expression. */
    public long getExaminedTerms() {
        return examinedTerms;
    }

    /** How long that had taken. */
    public long getElapsedMillis() {
        return elapsedMillis;
    }
}
