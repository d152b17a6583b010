// The view is stored in the URL's fragment, so that it can be bookmarked and shared.

export const RANGES = {"15m": ["15 min", 900], "1h": ["1 h", 3600], "6h": ["6 h", 21_600], "24h": ["24 h", 86_400], "7d": ["7 d", 604_800]};
export const SPANS = {"6h": 21_600, "48h": 172_800, "7d": 604_800, "30d": 2_592_000};

const START = {query: "", show: "plot", range: "1h", start: null, end: null, label: "", buckets: "48h"};

export function readView() {
    const given = new URLSearchParams(location.hash.slice(1));
    const [start, end] = [Number(given.get("start")), Number(given.get("end"))];
    const fixed = start > 0 && end > start && end < 8.64e12;
    const range = fixed ? "custom" : given.get("range");
    return {
        ...START,
        // `selector` is the parameter of older URLs.
        query: given.get("query") || given.get("selector") || "",
        show: given.get("show") === "table" ? "table" : START.show,
        range: fixed || range in RANGES ? range : START.range,
        start: fixed ? start : null,
        end: fixed ? end : null,
        label: given.get("label") || "",
        buckets: given.get("buckets") in SPANS ? given.get("buckets") : START.buckets,
    };
}

export function writeView(view) {
    const written = new URLSearchParams();
    if (view.query) written.set("query", view.query);
    if (view.show !== START.show) written.set("show", view.show);
    if (view.range === "custom") {
        written.set("start", view.start);
        written.set("end", view.end);
    } else if (view.range !== START.range) written.set("range", view.range);
    if (view.label) written.set("label", view.label);
    if (view.buckets !== START.buckets) written.set("buckets", view.buckets);
    const hash = written.size ? `#${written}` : "#";
    if (hash !== (location.hash || "#")) history.pushState(null, "", hash);
}

// The current range of the view, in seconds.
export function timesOf(view) {
    if (view.range === "custom") return {start: view.start, end: view.end};
    const end = Math.floor(Date.now() / 1000);
    return {start: end - RANGES[view.range][1], end};
}
