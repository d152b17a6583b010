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
 * Warms up a new server with lookups of keys that it has, at a low rate. The JVM compiles code that has run some thousands
 * of times. Until then, lookups take several times as long, and the first clients after a restart would wait.
 */
final class LookupWarmUp implements Runnable {
    /** After this many lookups the JVM has compiled everything. */
    private static final int LOOKUPS = 20_000;
    /** Lookups between pauses, which leave processor time to others. */
    private static final int BURST = 25;
    private static final int PAUSE_MS = 2;
    private static final int KINDS = 3;
    /** Lookups after which the most selective label is determined again. */
    private static final int LABEL_INTERVAL = 100;
    /** With fewer keys, the index is too small to be representative. */
    private static final int MIN_KEYS = 1000;

    private final LookupServer server;
    private final UnixDomainSocketAddress address;
    private final AtomicBoolean started = new AtomicBoolean();
    private final SplittableRandom random = new SplittableRandom(1);
    private BytesRef rarest;

    LookupWarmUp(LookupServer server, UnixDomainSocketAddress address) {
        this.server = server;
        this.address = address;
    }

    /** Whether it must run now: once, when the index has enough keys. */
    boolean isDue(SearcherManager searchers) throws IOException {
        if (started.get()) {
            return false;
        }
        IndexSearcher searcher = searchers.acquire();
        try {
            return searcher.getIndexReader().numDocs() >= MIN_KEYS && started.compareAndSet(false, true);
        } finally {
            searchers.release(searcher);
        }
    }

    @Override
    public void run() {
        ByteBuffer request = LookupServer.buffer();
        ByteBuffer answer = LookupServer.buffer();
        try (SocketChannel connection = SocketChannel.open(address)) {
            for (int number = 0; number < LOOKUPS; number++) {
                LookupView view = server.view();
                if (view == null) {
                    return;
                }
                prepare(number, view.searchers(), request);
                connection.write(request.flip());
                connection.read(answer.clear());
                if (number % BURST == BURST - 1) {
                    Thread.sleep(PAUSE_MS);
                }
            }
        } catch (IOException | RuntimeException | InterruptedException error) {
            // The index is being closed, or there is an error that real lookups will report.
        }
    }

    /** A lookup of a random key, by all of its labels or by the rarest one. The kinds alternate. */
    private void prepare(int number, SearcherManager searchers, ByteBuffer request) throws IOException {
        IndexSearcher searcher = searchers.acquire();
        try {
            byte[] key = randomKey(searcher);
            if (number % LABEL_INTERVAL == 0) {
                rarest = rarestLabel(searcher, key);
            }
            write(request, number % KINDS, key, number % 2 == 0 ? null : rarest);
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

    /** A lookup by one label of a key, or by all of them if that one is null or the key does not have it. */
    private static void write(ByteBuffer request, int kind, byte[] key, BytesRef onlyLabel) {
        ByteBuffer selector = ByteBuffer.allocate(Short.BYTES + 2 * key.length).order(ByteOrder.LITTLE_ENDIAN).putShort((short) 0);
        int count = 0;
        byte[] label = {};
        PartKeyCursor labels = new PartKeyCursor();
        for (labels.reset(key, 0, key.length); labels.next();) {
            if (onlyLabel == null || onlyLabel.bytesEquals(labels.name)) {
                label = ArrayUtil.copyOfSubArray(key, labels.name.offset, labels.name.offset + labels.name.length);
                put(selector, labels.name);
                put(selector.putShort((short) 1), labels.value);
                count++;
            }
        }
        if (count == 0) {
            write(request, kind, key, null);
            return;
        }
        selector.putShort(0, (short) count);
        byte[] packed = ArrayUtil.copyOfSubArray(selector.array(), 0, selector.position());
        LookupFrames.lookup(request, kind, label, packed);
    }

    private static void put(ByteBuffer selector, BytesRef text) {
        selector.putShort((short) text.length).put(text.bytes, text.offset, text.length);
    }

    private byte[] randomKey(IndexSearcher searcher) throws IOException {
        List<LeafReaderContext> leaves = searcher.getIndexReader().leaves();
        LeafReaderContext leaf = leaves.get(random.nextInt(leaves.size()));
        BinaryDocValues keys = DocValues.getBinary(leaf.reader(), Fields.PART_KEY);
        keys.advance(random.nextInt(leaf.reader().maxDoc()));
        BytesRef key = keys.binaryValue();
        return ArrayUtil.copyOfSubArray(key.bytes, key.offset, key.offset + key.length);
    }
}
