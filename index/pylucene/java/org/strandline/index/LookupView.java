package org.strandline.index;

import org.apache.lucene.search.SearcherManager;

/** What look-ups are answered from. */
record LookupView(SearcherManager searchers, KeyTimes times) {}
