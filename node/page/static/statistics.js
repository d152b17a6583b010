// The cost of a query, from the node's statistics.

import {el} from "./dom.js";
import {bytes, count, exact, milliseconds} from "./format.js";

// From Prometheus' statistics and Strandline's own. Missing figures are left out.
export function showStatistics(list, stats) {
    const {samples = {}, strandline: own = {}} = stats ?? {};
    const figures = [
        ["Series from shards", own.series, count, exact],
        ["Samples read", own.samples ?? samples.totalQueryableSamples, count, exact],
        ["Samples in memory at once", samples.peakSamples, count, exact],
        ["Memory", own.bytes, bytes, exact],
        ["Time in shards", own.shardSeconds, milliseconds, seconds => `${seconds} s`],
        ["Time in front", own.frontSeconds, milliseconds, seconds => `${seconds} s`],
    ].filter(([, figure]) => typeof figure === "number");
    list.replaceChildren(...figures.map(([name, figure, shown, full]) => el("div", {}, el("dt", {}, name), el("dd", {title: full(figure)}, shown(figure)))));
    list.hidden = figures.length === 0;
}
