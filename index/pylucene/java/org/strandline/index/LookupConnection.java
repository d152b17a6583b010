package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * A connection for one lookup at a time.
 *
 * <p>It waits with a selector. A thread that blocks in a read of a Unix socket is also woken up, for nothing, when the
 * other side reads the last answer, and this delays the reader.
 */
final class LookupConnection {
    private final SocketChannel channel;
    private final Selector selector;

    /** Takes ownership of the channel, which is closed if this fails. */
    LookupConnection(SocketChannel channel) throws IOException {
        this.channel = channel;
        Selector opened = null;
        boolean isReady = false;
        try {
            opened = Selector.open();
            channel.configureBlocking(false).register(opened, SelectionKey.OP_READ);
            isReady = true;
        } finally {
            if (!isReady) {
                channel.close();
                if (opened != null) {
                    opened.close();
                }
            }
        }
        selector = opened;
    }

    /** Answer with a server until the other side closes the connection or sends an invalid frame, or this is closed. */
    void serve(LookupServer server) {
        try {
            ByteBuffer request = LookupServer.buffer();
            ByteBuffer answer = LookupServer.buffer();
            while (received(request.clear())) {
                server.reply(request, answer);
                channel.write(answer);
                if (answer.hasRemaining()) {
                    // The socket's buffer always has room for one answer, unless the other side does not read answers.
                    return;
                }
            }
        } catch (IOException | ClosedSelectorException | MalformedBatchException | OutOfMemoryError error) {
            // One side has closed the connection, the frame is invalid, or there is no memory for another connection.
        } finally {
            close();
        }
    }

    private boolean received(ByteBuffer request) throws IOException {
        while (!LookupFrames.isComplete(request)) {
            int read = channel.read(request);
            if (read < 0) {
                return false;
            }
            if (read == 0) {
                selector.select();
                selector.selectedKeys().clear();
            }
        }
        return true;
    }

    /** Close the connection, from any thread. Idempotent. */
    void close() {
        // The selector is closed last: this wakes up the waiting thread, and releases the socket.
        try (selector; channel) {
            return;
        } catch (IOException error) {
            // The connection is no longer used.
        }
    }
}
