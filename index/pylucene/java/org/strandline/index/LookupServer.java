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
 * Answers lookups of a few series over a Unix socket, with threads of the JVM, which need not wait for Python's GIL while
 * the shard works.
 *
 * <p>It does not know the shard's state. The shard opens it while answers from the index are complete, and shuts it
 * otherwise. While it is shut, and for requests that it can't answer, it declines, and the request goes to the shard's
 * process.
 */
public final class LookupServer {
    private static final int MAX_CONNECTIONS = 64;
    private static final int BACKLOG = 128;
    private static final long RETRY_NS = 20_000_000;

    private final Path path;
    private final UserPrincipal owner;
    private final ServerSocketChannel listener;
    private final Set<LookupConnection> connections = ConcurrentHashMap.newKeySet();
    private final LookupWarmUp warmUp;
    private volatile LookupView view;

    /**
     * Listen, for processes of the same user only. The server is shut at first.
     *
     * @param path a path that does not exist
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
        warmUp = new LookupWarmUp(this, UnixDomainSocketAddress.of(this.path));
        start("lookups", this::accept);
    }

    /**
     * Answer from now on.
     *
     * @param file the shared memory of the shard's columns, as {@link KeyTimes} reads it, with room for {@code rows}
     */
    public void open(SearcherManager searchers, String file, int rows) throws IOException {
        LookupView opened = new LookupView(searchers, new KeyTimes(file, rows));
        boolean isWarmUpDue = warmUp.isDue(searchers);
        view = opened;
        if (isWarmUpDue) {
            start("lookup-warm-up", warmUp);
        }
    }

    /** Decline from now on, including lookups in progress. */
    public void shut() {
        view = null;
    }

    /** Shut the server, and close the socket and all connections. Idempotent. */
    public void close() throws IOException {
        shut();
        listener.close();
        Files.deleteIfExists(path);
        for (LookupConnection connection : connections) {
            connection.close();
        }
    }

    /** What lookups are answered from; null while the server is shut. */
    LookupView view() {
        return view;
    }

    /** Answer a complete lookup. */
    void reply(ByteBuffer request, ByteBuffer answer) {
        LookupView before = view;
        try {
            if (before != null) {
                LookupFrames.answer(before, request, answer);
                // A shard that has another owner by now must not answer.
                if (view == before) {
                    return;
                }
            }
        } catch (IOException | RuntimeException error) {
            // The shard's process will meet the same error and report it.
        }
        LookupFrames.declined(answer);
    }

    static ByteBuffer buffer() {
        return ByteBuffer.allocateDirect(LookupFrames.MAX_FRAME).order(ByteOrder.LITTLE_ENDIAN);
    }

    private void accept() {
        while (listener.isOpen()) {
            try {
                take(listener.accept());
            } catch (IOException | RuntimeException | OutOfMemoryError error) {
                // Too many open files or threads.
                LockSupport.parkNanos(RETRY_NS);
            }
        }
    }

    private void take(SocketChannel channel) throws IOException {
        if (!isAllowed(channel)) {
            channel.close();
            return;
        }
        LookupConnection connection = new LookupConnection(channel);
        connections.add(connection);
        boolean isServed = false;
        try {
            start("lookup", () -> serve(connection));
            // The server may have been closed meanwhile, without this connection.
            isServed = listener.isOpen();
        } finally {
            if (!isServed) {
                connections.remove(connection);
                connection.close();
            }
        }
    }

    private boolean isAllowed(SocketChannel channel) {
        try {
            UserPrincipal user = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
            return user.equals(owner) && connections.size() < MAX_CONNECTIONS;
        } catch (IOException error) {
            // The other side has closed the connection.
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
