package org.strandline.index;

/** A packed batch violates its layout. None of it was added or deleted. */
public final class MalformedBatchException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    private final int document;
    private final long position;

    MalformedBatchException(int document, long position, String reason) {
        super(reason);
        this.document = document;
        this.position = position;
    }

    /** The document's index in the batch, from 0, or -1 if the batch itself is malformed. */
    public int getDocument() {
        return document;
    }

    /** The position of the first malformed byte, from 0. */
    public long getPosition() {
        return position;
    }
}
