package org.strandline.index;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Estimates the size of an RE2 expression's program from its text alone. Used before an expression is compiled, because
 * nested repetitions multiply: {@code ((a{1000}){1000}){1000}} would fill any heap.
 *
 * <p>The result is never too low. It may be a little too high: flags and names of groups count as text.
 */
final class RegexSize {
    /** The maximum nesting of groups, the same as in Go's implementation of RE2. */
    static final int MAX_DEPTH = 1000;

    /** A repetition with bounds; RE2 allows at most a thousand. */
    private static final Pattern BOUNDS = Pattern.compile("\\{([0-9]{1,9})(?:,([0-9]{1,9})?)?\\}");

    private final String text;
    private final long limit;
    private int position = 0;
    private int depth = 0;

    private RegexSize(String text, long limit) {
        this.text = text;
        this.limit = limit;
    }

    /** Whether an expression's program has no more instructions than the limit, and no deeper groups than Go allows. */
    static boolean isWithin(String expression, long limit) {
        return expression.length() <= limit && new RegexSize(expression, limit).alternatives() <= limit;
    }

    /** The size up to the end of the group, or of the text; beyond the limit, any number above it. */
    private long alternatives() {
        long total = 3;
        long last = 0;
        while (position < text.length() && total + last <= limit) {
            char c = text.charAt(position);
            if (c == ')') {
                break;
            }
            if (c == '{' || c == '*' || c == '+' || c == '?') {
                last = (last + 1) * repeats() + 1;
            } else if (!skipNothing()) {
                total += last;
                last = item();
            }
        }
        return total + last;
    }

    /**
     * Skip flags such as (?i) or an empty quotation: for RE2/J, a repetition after them applies to what precedes them.
     */
    private boolean skipNothing() {
        if (skipIf("\\Q\\E")) {
            return true;
        }
        if (!text.startsWith("(?", position)) {
            return false;
        }
        int end = position + 2;
        while (end < text.length() && (Character.isLetter(text.charAt(end)) || text.charAt(end) == '-')) {
            end++;
        }
        boolean flags = text.startsWith(")", end);
        position = flags ? end + 1 : position;
        return flags;
    }

    /** Skip one item that a repetition may follow; return its size. */
    private long item() {
        char c = text.charAt(position);
        position++;
        if (c == '(') {
            return group();
        }
        if (c == '[') {
            skipClass();
        } else if (c == '\\') {
            return escape();
        }
        return c == '|' ? 2 : 1;
    }

    private long group() {
        depth++;
        if (depth > MAX_DEPTH) {
            return limit + 1;
        }
        long size = alternatives() + 2;
        depth--;
        position++;
        return size;
    }

    private void skipClass() {
        skipIf("^");
        skipIf("]");
        while (position < text.length() && text.charAt(position) != ']') {
            int namedEnd = text.startsWith("[:", position) ? text.indexOf(":]", position + 2) : -1;
            if (namedEnd >= 0) {
                position = namedEnd + 2;
            } else {
                position += text.charAt(position) == '\\' ? 2 : 1;
            }
        }
        position++;
    }

    private long escape() {
        long size = 1;
        if (skipIf("Q")) {
            int end = text.indexOf("\\E", position);
            int next = end < 0 ? text.length() : end + 2;
            size += next - position;
            position = next;
        } else if (skipIf("p{") || skipIf("P{") || skipIf("x{")) {
            int end = text.indexOf('}', position);
            position = end < 0 ? text.length() : end + 1;
        } else {
            position++;
        }
        return size;
    }

    private boolean skipIf(String expected) {
        boolean found = text.startsWith(expected, position);
        position += found ? expected.length() : 0;
        return found;
    }

    /** Skip a repetition; return how often it copies what precedes it. A brace that is plain text copies once. */
    private long repeats() {
        Matcher bounds = BOUNDS.matcher(text).region(position, text.length());
        if (!bounds.lookingAt()) {
            position++;
            return 1;
        }
        position = bounds.end();
        long least = Long.parseLong(bounds.group(1));
        long most = bounds.group(2) == null ? least : Long.parseLong(bounds.group(2));
        // One more than the bound: {n,} copies n times and loops.
        return Math.max(least, most) + 1;
    }
}
