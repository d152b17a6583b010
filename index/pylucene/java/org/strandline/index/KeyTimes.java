package org.strandline.index;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The times of keys, from the shard's own columns: memory that the shard writes while it is read here. The layout is
 * that of {@code strandline.index.part_memory}: the number of valid rows as u64; then, each as long as the capacity,
 * the part ids as u32 in ascending order, the first times as i64, and the last times as i64.
 */
final class KeyTimes {
    /** The last time of a key that was purged. */
    private static final long ABSENT = Long.MIN_VALUE;

    private final LongBuffer length;
    private final IntBuffer partIds;
    private final LongBuffer firstTimes;
    private final LongBuffer lastTimes;

    /** @throws IOException if the file is too short for this many rows, or can't be mapped */
    KeyTimes(String file, int rows) throws IOException {
        long ids = 4L * rows;
        try (FileChannel channel = FileChannel.open(Path.of(file), StandardOpenOption.READ)) {
            if (channel.size() < 8 + ids + 16L * rows) {
                throw new IOException("there is no room for " + rows + " rows in " + channel.size() + " bytes");
            }
            length = mapped(channel, 0, 8).asLongBuffer();
            partIds = mapped(channel, 8, ids).asIntBuffer();
            firstTimes = mapped(channel, 8 + ids, 8L * rows).asLongBuffer();
            lastTimes = mapped(channel, 8 + ids + 8L * rows, 8L * rows).asLongBuffer();
        }
    }

    private static ByteBuffer mapped(FileChannel channel, long start, long size) throws IOException {
        return channel.map(MapMode.READ_ONLY, start, size).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Whether a key existed at some moment between two times (inclusive); at any time, if they are swapped. */
    boolean isThere(int partId, long first, long last) {
        int row = rowOf(partId);
        if (row < 0 || lastTimes.get(row) == ABSENT) {
            return false;
        }
        return first > last || (firstTimes.get(row) <= last && lastTimes.get(row) >= first);
    }

    private int rowOf(int partId) {
        // A key's row is written before the refresh that makes the key searchable, so its row is included in this
        // length.
        int rows = (int) length.get(0);
        if (rows == 0) {
            return -1;
        }
        // Usually no lower id was removed, and the row follows from the id.
        long guess = Integer.toUnsignedLong(partId) - Integer.toUnsignedLong(partIds.get(0));
        if (guess >= 0 && guess < rows && partIds.get((int) guess) == partId) {
            return (int) guess;
        }
        int low = 0;
        int high = rows - 1;
        while (low <= high) {
            int middle = (low + high) >>> 1;
            int order = Integer.compareUnsigned(partIds.get(middle), partId);
            if (order == 0) {
                return middle;
            }
            if (order < 0) {
                low = middle + 1;
            } else {
                high = middle - 1;
            }
        }
        return -1;
    }
}
