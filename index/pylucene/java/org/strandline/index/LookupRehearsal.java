package org.strandline.index;

import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DocValues;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.SearcherManager;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;

/**
 * Asks a new server for keys that it has, a little at a time. A JVM compiles what has run some thousands of times;
 * until then a look-up takes several times as long, which would be those of the first people to come after a restart.
 */
final class LookupRehearsal implements Runnable {
    /** After so many the compiler has done what it will. */
    private static final int QUESTIONS = 20_000;
    /** So many in a row, then a pause: others want the processor, too. */
    private static final int AT_ONCE = 25;
    private static final int PAUSE_MS = 2;
    private static final int KINDS = 3;
    /** After so many it is looked again which label says the most. */
    private static final int LOOK_AGAIN = 100;
    /** Below this the index is not like the one that it will be. */
    private static final int FEWEST_KEYS = 1000;

    private final LookupServer server;
    private final UnixDomainSocketAddress address;
    private final AtomicBoolean begun = new AtomicBoolean();
    private final SplittableRandom random = new SplittableRandom(1);
    private BytesRef rarest;

    LookupRehearsal(LookupServer server, UnixDomainSocketAddress address) {
        this.server = server;
        this.address = address;
    }

    /** Whether it should be run now: once, when there is an index to speak of. */
    boolean isDue(SearcherManager searchers) throws IOException {
        if (begun.get()) {
            return false;
        }
        IndexSearcher searcher = searchers.acquire();
        try {
            return searcher.getIndexReader().numDocs() >= FEWEST_KEYS && begun.compareAndSet(false, true);
        } finally {
            searchers.release(searcher);
        }
    }

    @Override
    public void run() {
        ByteBuffer question = LookupServer.buffer();
        ByteBuffer answer = LookupServer.buffer();
        try (SocketChannel connection = SocketChannel.open(address)) {
            for (int turn = 0; turn < QUESTIONS; turn++) {
                LookupView view = server.view();
                if (view == null) {
                    return;
                }
                ask(turn, view.searchers(), question);
                connection.write(question.flip());
                connection.read(answer.clear());
                if (turn % AT_ONCE == AT_ONCE - 1) {
                    Thread.sleep(PAUSE_MS);
                }
            }
        } catch (IOException | RuntimeException | InterruptedException error) {
            // The index is being closed, or something is amiss that whoever asks in earnest meets, too.
        }
    }

    /** For some key: by all of its labels, or by the one that the fewest keys share. Of each kind in turn. */
    private void ask(int turn, SearcherManager searchers, ByteBuffer question) throws IOException {
        IndexSearcher searcher = searchers.acquire();
        try {
            byte[] key = someKey(searcher);
            if (turn % LOOK_AGAIN == 0) {
                rarest = rarestLabel(searcher, key);
            }
            write(question, turn % KINDS, key, turn % 2 == 0 ? null : rarest);
        } finally {
            searchers.release(searcher);
        }
    }

    private static BytesRef rarestLabel(IndexSearcher searcher, byte[] key) throws IOException {
        BytesRef rarest = null;
        int fewest = Integer.MAX_VALUE;
        PartKeyCursor labels = new PartKeyCursor();
        for (labels.reset(key, 0, key.length); labels.next();) {
            Term term = new Term(Fields.ofLabel(labels.name.utf8ToString()), labels.value.clone());
            int shared = searcher.getIndexReader().docFreq(term);
            if (shared < fewest) {
                fewest = shared;
                rarest = BytesRef.deepCopyOf(labels.name);
            }
        }
        return rarest;
    }

    /** A question by one label of a key, or by all if that one is null or not there. */
    private static void write(ByteBuffer question, int kind, byte[] key, BytesRef only) {
        ByteBuffer selector = ByteBuffer.allocate(Short.BYTES + 2 * key.length).order(ByteOrder.LITTLE_ENDIAN).putShort((short) 0);
        int count = 0;
        byte[] label = {};
        PartKeyCursor labels = new PartKeyCursor();
        for (labels.reset(key, 0, key.length); labels.next();) {
            if (only == null || only.bytesEquals(labels.name)) {
                label = ArrayUtil.copyOfSubArray(key, labels.name.offset, labels.name.offset + labels.name.length);
                put(selector, labels.name);
                put(selector.putShort((short) 1), labels.value);
                count++;
            }
        }
        if (count == 0) {
            write(question, kind, key, null);
            return;
        }
        selector.putShort(0, (short) count);
        byte[] packed = ArrayUtil.copyOfSubArray(selector.array(), 0, selector.position());
        LookupFrames.question(question, kind, label, packed);
    }

    private static void put(ByteBuffer selector, BytesRef text) {
        selector.putShort((short) text.length).put(text.bytes, text.offset, text.length);
    }

    private byte[] someKey(IndexSearcher searcher) throws IOException {
        List<LeafReaderContext> leaves = searcher.getIndexReader().leaves();
        LeafReaderContext leaf = leaves.get(random.nextInt(leaves.size()));
        BinaryDocValues keys = DocValues.getBinary(leaf.reader(), Fields.PART_KEY);
        keys.advance(random.nextInt(leaf.reader().maxDoc()));
        BytesRef key = keys.binaryValue();
        return ArrayUtil.copyOfSubArray(key.bytes, key.offset, key.offset + key.length);
    }
}
