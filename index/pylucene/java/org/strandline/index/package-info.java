/**
 * Strandline's extension of PyLucene: what must not cross the border between Python and Java once per document.
 *
 * <p>Python makes the writers, readers and queries with Lucene's own classes. It calls in here with one packed
 * {@code byte[]} or one query, and gets one {@code byte[]} back: documents are added from a batch of part keys, a query's
 * matches leave as a serialised roaring bitmap of part ids, terms leave with their counts, and the (part id, key hash)
 * columns leave in bulk. Every number in a packed array is little endian. Nothing here knows of time, buckets, shards
 * or PromQL.
 *
 * <p>The static methods keep no state between calls, so any thread may call them at any time.
 */
package org.strandline.index;
