package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * One connection over which a look-up at a time is asked.
 *
 * <p>It waits by a selector. A thread that waits in a read of a socket of the machine is woken up as well when the other
 * side takes what was sent last: after each answer, for nothing, and on the time of whoever takes it.
 */
final class LookupConnection {
    private final SocketChannel channel;
    private final Selector selector;

    /** Takes the channel over; it is closed if this fails. */
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

    /** Answer by a server until the other side is gone, or says what it should not, or this is closed. */
    void serve(LookupServer server) {
        try {
            ByteBuffer question = LookupServer.buffer();
            ByteBuffer answer = LookupServer.buffer();
            while (received(question.clear())) {
                server.reply(question, answer);
                channel.write(answer);
                if (answer.hasRemaining()) {
                    // One answer always fits: whoever has no room for it asks without taking what it asked for.
                    return;
                }
            }
        } catch (IOException | ClosedSelectorException | MalformedBatchException | OutOfMemoryError error) {
            // It was closed, here or there; or who asks is none that should be here, or there is no memory for one more.
        } finally {
            close();
        }
    }

    private boolean received(ByteBuffer question) throws IOException {
        while (!LookupFrames.isWhole(question)) {
            int came = channel.read(question);
            if (came < 0) {
                return false;
            }
            if (came == 0) {
                selector.select();
                selector.selectedKeys().clear();
            }
        }
        return true;
    }

    /** End it, from any thread. Closing twice does nothing. */
    void close() {
        // The selector last: that wakes up whoever waits, and only with it the socket is let go of.
        try (selector; channel) {
            return;
        } catch (IOException error) {
            // Nothing was to come any more.
        }
    }
}
