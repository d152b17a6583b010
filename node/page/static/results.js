// The result of a query, with the node's warnings: a plot of the range, or a table of the values at its end.

import {request, Latest, wasAborted} from "./api.js";
import {byId, setMessages, setText, show} from "./dom.js";
import {count, exact, moment, plural} from "./format.js";
import {MAX_LINES, Plot, stepFor} from "./plot.js";
import {MAX_ROWS, showTable} from "./result_table.js";
import {showStatistics} from "./statistics.js";
import {shortened} from "./tops.js";

// To show some series of a selector, the node reads all that match.
const MAX_SERIES_READ = 2000;
const TRUNCATED = /truncated due to limit/;
const NO_PLOT = /invalid expression type .* for range query/;

export class Results {
    #requests = new Latest();

    constructor() {
        this.plot = new Plot({area: byId("plot-area"), plot: byId("plot"), readout: byId("plot-readout"), legend: byId("legend"), heading: byId("legend-time")});
        // Duration of the last query in milliseconds.
        this.took = 0;
    }

    abort() {
        this.#requests.abort();
    }

    // `matching` is the number of series that a selector matches, null for other expressions. Throws the node's errors.
    async update({query, show: shown}, times, matching) {
        if (!query) return this.clear("Write a query or select a metric below to plot its samples.");
        if (matching > MAX_SERIES_READ) return this.clear(`${count(matching)} series match; the limit is ${count(MAX_SERIES_READ)}. Select a value below to narrow the query, or aggregate the series.`);
        const begun = performance.now();
        try {
            await (shown === "table" ? this.#fillTable(query, times) : this.#draw(query, times, matching));
        } catch (error) {
            if (wasAborted(error) || error.unreachable) return;
            this.clear("");
            throw error;
        }
        this.took = performance.now() - begun;
    }

    clear(why) {
        this.abort();
        this.plot.clear();
        show(byId("table-area"), false);
        this.#showNotes(why, {warnings: [], infos: [], data: {}});
    }

    async #draw(query, {start, end}, matching) {
        const step = stepFor(end - start, this.plot.width);
        // Steps are aligned, so that lines don't jitter between refreshes.
        const times = {start: Math.floor(start / step) * step, end: Math.ceil(end / step) * step, step};
        let answer;
        try {
            answer = await this.#requests.run(signal => request("query_range", {query, ...times, limit: MAX_LINES, stats: "all"}, signal));
        } catch (error) {
            // Range vectors and strings can't be plotted, and are shown as a table.
            if (NO_PLOT.test(error.message)) return this.#fillTable(query, {start, end});
            throw error;
        }
        show(byId("table-area"), false);
        const {result} = answer.data;
        const common = this.plot.update(result, times);
        const drawn = Math.min(result.length, MAX_LINES);
        const total = totalOf(answer.warnings) ?? Math.max(matching ?? 0, result.length);
        const cut = total > drawn && drawn === MAX_LINES ? `${exact(drawn)} of ${exact(total)} series are drawn` : `${plural(drawn, "series", "series")} drawn`;
        const spacing = step < 60 ? `${step} s` : step < 3600 ? `${step / 60} min` : `${step / 3600} h`;
        this.#showNotes(`${cut}, a point every ${spacing}.${common ? ` All have ${shortened(common)}.` : ""}`, answer);
    }

    async #fillTable(query, {end}) {
        const answer = await this.#requests.run(signal => request("query", {query, time: end, limit: MAX_ROWS, stats: "all"}, signal));
        const rows = showTable(byId("table"), answer.data);
        this.plot.clear();
        show(byId("table-area"), rows > 0);
        const total = totalOf(answer.warnings) ?? rows;
        const shown = total > rows ? `${exact(rows)} of ${exact(total)} series` : ["scalar", "string"].includes(answer.data.resultType) ? `A ${answer.data.resultType}` : plural(rows, "series", "series");
        this.#showNotes(`${shown} at ${moment(end * 1000)}.`, answer);
    }

    #showNotes(note, {warnings, infos, data}) {
        setText(byId("result-note"), note);
        // The note already says that the list is truncated.
        setMessages(byId("result-warnings"), warnings.filter(warning => !TRUNCATED.test(warning)));
        setMessages(byId("result-infos"), infos);
        showStatistics(byId("result-stats"), data.stats);
    }
}

// The number of series without the limit, from the warning; null if there is none.
function totalOf(warnings) {
    const found = warnings.map(warning => /truncated due to limit: there are (\d+) series/.exec(warning)).find(Boolean);
    return found ? Number(found[1]) : null;
}
