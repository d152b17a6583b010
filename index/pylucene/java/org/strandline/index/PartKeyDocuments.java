package org.strandline.index;

import java.io.IOException;
import org.apache.lucene.index.IndexWriter;

/**
 * Adds part keys to an index. In Java because a document with ten labels would otherwise take more than ten JNI calls.
 */
public final class PartKeyDocuments {
    private PartKeyDocuments() {}

    /**
     * Add every part key of a packed batch ({@link PartKeyBatch} has the layout) as one document.
     *
     * <p>The batch is checked first: a malformed one adds nothing. The caller ensures that ids are new. The documents
     * can be found after the next refresh.
     *
     * @return the number of documents that were added
     * @throws MalformedBatchException if the batch or a part key in it is malformed
     */
    public static int add(IndexWriter writer, byte[] batch) throws IOException {
        PartKeyBatch keys = new PartKeyBatch(batch);
        PartKeyDocument document = new PartKeyDocument(keys);
        for (int i = 0; i < keys.count; i++) {
            document.moveTo(i);
            writer.addDocument(document);
        }
        return keys.count;
    }
}
