// The result of a query: over time as a plot, or at the end of that time as a table; with what the node says of it.

import {ask, Latest, wasAborted} from "./api.js";
import {byId, sayAll, setText, show} from "./dom.js";
import {count, exact, moment, plural} from "./format.js";
import {MOST_LINES, Plot, stepFor} from "./plot.js";
import {MOST_ROWS, showTable} from "./result_table.js";
import {showStatistics} from "./statistics.js";
import {shortened} from "./tops.js";

// To show some series of a selector all that match are read.
const MOST_READ = 2000;
const TRUNCATED = /truncated due to limit/;
const NO_PLOT = /invalid expression type .* for range query/;

export class Results {
    #asked = new Latest();

    constructor() {
        this.plot = new Plot({area: byId("plot-area"), plot: byId("plot"), readout: byId("plot-readout"), legend: byId("legend"), heading: byId("legend-time")});
        // Milliseconds that the newest answer took.
        this.took = 0;
    }

    abort() {
        this.#asked.abort();
    }

    // `matching` is how many series a selector matches, and null for other expressions. Throws what the node refuses.
    async update({query, show: shown}, times, matching) {
        if (!query) return this.clear("Write a query, or choose a metric below, to plot its samples.");
        if (matching > MOST_READ) return this.clear(`${count(matching)} series match, and at most ${count(MOST_READ)} are read to show some. Choose a value below to narrow it, or aggregate them.`);
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
        this.#tell(why, {warnings: [], infos: [], data: {}});
    }

    async #draw(query, {start, end}, matching) {
        const step = stepFor(end - start, this.plot.width);
        // Steps fall on the same times at each refresh, so that lines don't jitter.
        const times = {start: Math.floor(start / step) * step, end: Math.ceil(end / step) * step, step};
        let answer;
        try {
            answer = await this.#asked.run(signal => ask("query_range", {query, ...times, limit: MOST_LINES, stats: "all"}, signal));
        } catch (error) {
            // Samples of a range, and texts, are shown though they can't be drawn.
            if (NO_PLOT.test(error.message)) return this.#fillTable(query, {start, end});
            throw error;
        }
        show(byId("table-area"), false);
        const {result} = answer.data;
        const common = this.plot.update(result, times);
        const drawn = Math.min(result.length, MOST_LINES);
        const total = totalOf(answer.warnings) ?? Math.max(matching ?? 0, result.length);
        const cut = total > drawn && drawn === MOST_LINES ? `${exact(drawn)} of ${exact(total)} series are drawn` : `${plural(drawn, "series", "series")} drawn`;
        const spacing = step < 60 ? `${step} s` : step < 3600 ? `${step / 60} min` : `${step / 3600} h`;
        this.#tell(`${cut}, a point every ${spacing}.${common ? ` All have ${shortened(common)}.` : ""}`, answer);
    }

    async #fillTable(query, {end}) {
        const answer = await this.#asked.run(signal => ask("query", {query, time: end, limit: MOST_ROWS, stats: "all"}, signal));
        const rows = showTable(byId("table"), answer.data);
        this.plot.clear();
        show(byId("table-area"), rows > 0);
        const total = totalOf(answer.warnings) ?? rows;
        const shown = total > rows ? `${exact(rows)} of ${exact(total)} series` : ["scalar", "string"].includes(answer.data.resultType) ? `A ${answer.data.resultType}` : plural(rows, "series", "series");
        this.#tell(`${shown} at ${moment(end * 1000)}.`, answer);
    }

    #tell(note, {warnings, infos, data}) {
        setText(byId("result-note"), note);
        // That the list was cut off is said already.
        sayAll(byId("result-warnings"), warnings.filter(warning => !TRUNCATED.test(warning)));
        sayAll(byId("result-infos"), infos);
        showStatistics(byId("result-stats"), data.stats);
    }
}

// How many series there are before the limit, if an answer tells it.
function totalOf(warnings) {
    const found = warnings.map(warning => /truncated due to limit: there are (\d+) series/.exec(warning)).find(Boolean);
    return found ? Number(found[1]) : null;
}
