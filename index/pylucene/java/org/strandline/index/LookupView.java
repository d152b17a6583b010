package org.strandline.index;

import org.apache.lucene.search.SearcherManager;

/** What lookups are answered from. */
record LookupView(SearcherManager searchers, KeyTimes times) {}
