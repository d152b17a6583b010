package org.strandline.index;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import jdk.net.ExtendedSocketOptions;
import org.apache.lucene.search.SearcherManager;

/**
 * Answers look-ups of single series, or of a handful, over a socket of the machine: with threads of the JVM, which need
 * not wait until the shard's own work lets go of Python.
 *
 * <p>It knows nothing of how the shard is. Whoever does opens it while answers from the index have nothing lacking, and
 * shuts it otherwise; then, and for whatever it does not know, it says that somebody else has to be asked.
 */
public final class LookupServer {
    private static final int MOST_CONNECTIONS = 64;
    private static final int BACKLOG = 128;
    private static final long PAUSE_NS = 20_000_000;

    private final Path path;
    private final UserPrincipal owner;
    private final ServerSocketChannel listener;
    private final Set<LookupConnection> connections = ConcurrentHashMap.newKeySet();
    private final LookupRehearsal rehearsal;
    private volatile LookupView view;

    /**
     * Listen, for processes of the same user only, and answer nothing yet.
     *
     * @param path where nothing is
     */
    public LookupServer(String path) throws IOException {
        this.path = Path.of(path);
        listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            listener.bind(UnixDomainSocketAddress.of(this.path), BACKLOG);
            Files.setPosixFilePermissions(this.path, PosixFilePermissions.fromString("rw-------"));
            owner = Files.getOwner(this.path);
        } catch (IOException error) {
            listener.close();
            throw error;
        }
        rehearsal = new LookupRehearsal(this, UnixDomainSocketAddress.of(this.path));
        start("lookups", this::accept);
    }

    /**
     * Answer from now on.
     *
     * @param file with the memory of the shard's columns, as {@link KeyTimes} reads it, and room for so many rows
     */
    public void open(SearcherManager searchers, String file, int rows) throws IOException {
        LookupView opened = new LookupView(searchers, new KeyTimes(file, rows));
        boolean isRehearsed = !rehearsal.isDue(searchers);
        view = opened;
        if (!isRehearsed) {
            start("lookup-rehearsal", rehearsal);
        }
    }

    /** Answer no more. What is being answered just now is not told either. */
    public void shut() {
        view = null;
    }

    /** Shut it and let go of the socket and all connections. Closing twice does nothing. */
    public void close() throws IOException {
        shut();
        listener.close();
        Files.deleteIfExists(path);
        for (LookupConnection connection : connections) {
            connection.close();
        }
    }

    /** What answers are made of now; null while it is shut. */
    LookupView view() {
        return view;
    }

    /** Answer a question that is here as a whole. */
    void reply(ByteBuffer question, ByteBuffer answer) {
        LookupView before = view;
        try {
            if (before != null) {
                LookupFrames.answer(before, question, answer);
                // A shard that belongs to somebody else by now says nothing any more.
                if (view == before) {
                    return;
                }
            }
        } catch (IOException | RuntimeException error) {
            // Whoever is asked next meets it again, and tells it.
        }
        LookupFrames.declined(answer);
    }

    static ByteBuffer buffer() {
        return ByteBuffer.allocateDirect(LookupFrames.LONGEST).order(ByteOrder.LITTLE_ENDIAN);
    }

    private void accept() {
        while (listener.isOpen()) {
            try {
                take(listener.accept());
            } catch (IOException | RuntimeException | OutOfMemoryError error) {
                // There are no files left, or no threads.
                LockSupport.parkNanos(PAUSE_NS);
            }
        }
    }

    private void take(SocketChannel channel) throws IOException {
        if (!mayAsk(channel)) {
            channel.close();
            return;
        }
        LookupConnection connection = new LookupConnection(channel);
        connections.add(connection);
        boolean isServed = false;
        try {
            start("lookup", () -> serve(connection));
            // Whoever closes the server may have looked at its connections just before.
            isServed = listener.isOpen();
        } finally {
            if (!isServed) {
                connections.remove(connection);
                connection.close();
            }
        }
    }

    private boolean mayAsk(SocketChannel channel) {
        try {
            UserPrincipal user = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
            return user.equals(owner) && connections.size() < MOST_CONNECTIONS;
        } catch (IOException error) {
            // It has gone again.
            return false;
        }
    }

    private void serve(LookupConnection connection) {
        try {
            connection.serve(this);
        } finally {
            connections.remove(connection);
        }
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }
}
