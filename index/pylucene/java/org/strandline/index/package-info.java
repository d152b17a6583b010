/**
 * Strandline's extension of PyLucene: whatever would otherwise take a JNI call per document.
 *
 * <p>Python makes the writers, readers and queries with Lucene's own classes. It calls this package with one packed
 * {@code byte[]} or one query, and gets one {@code byte[]} back: documents are added from a batch of part keys, a
 * query's matches are returned as a serialised roaring bitmap of part ids, terms with their counts, and the (part id,
 * key hash) columns in bulk. Numbers in packed arrays are little endian. Nothing here knows of time, buckets, shards or
 * PromQL.
 *
 * <p>The static methods keep no state between calls, so they are thread-safe.
 */
package org.strandline.index;
