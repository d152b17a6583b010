// A selector and a time, and what they are about: samples, the tops of the index, and the series themselves.

import {ask, Latest, wasAborted} from "./api.js";
import {byId, el, say, sayAll, setText, show} from "./dom.js";
import {count, exact, plural} from "./format.js";
import {MOST_LINES, Plot, stepFor} from "./plot.js";
import {Poller} from "./polling.js";
import {isPlainMetric, seriesText, withMatcher} from "./selector.js";
import {shortened, Tops} from "./tops.js";
import {RANGES, readView, timesOf, writeView} from "./view.js";

const TOP = 10;
const MOST_SERIES = 50;
// To draw some series all that match are read.
const MOST_READ = 2000;
const SUGGESTIONS = 20;

export class Explore {
    #tops = new Latest();
    #samples = new Latest();
    #series = new Latest();
    #suggested = new Latest();
    #matching = null;
    #took = 0;

    constructor() {
        this.view = readView();
        this.plot = new Plot({area: byId("plot-area"), plot: byId("plot"), readout: byId("plot-readout"), legend: byId("legend"), heading: byId("legend-time")});
        this.tops = new Tops(
            {metrics: byId("top-metrics"), labels: byId("top-labels"), pairs: byId("top-pairs"), title: byId("third-title"), all: byId("all-pairs"), bounds: byId("bounds")},
            {matcher: (label, value) => this.#add(label, value), label: label => this.change({label})},
        );
        this.#makeForm();
        // A plot that ends now goes on; one that takes long, less often.
        this.poller = new Poller(() => this.#again(), () => Math.max(15_000, 20 * this.#took));
        window.addEventListener("hashchange", () => this.#followAddress());
        window.addEventListener("popstate", () => this.#followAddress());
    }

    start() {
        this.#fillForm();
        this.refresh();
        this.poller.now();
    }

    change(part) {
        this.view = {...this.view, ...part};
        this.#fillForm();
        writeView(this.view);
        this.refresh();
    }

    exploreTime(start, end) {
        this.change({range: "custom", start, end});
        byId("explore-title").scrollIntoView({block: "start"});
    }

    // Ask all anew. Answers to earlier questions are not waited for.
    async refresh() {
        this.#matching = null;
        this.#samples.abort();
        this.#series.abort();
        const {selector, label} = this.view;
        const times = timesOf(this.view);
        byId("explore").setAttribute("aria-busy", "true");
        try {
            const {data, warnings} = await this.#tops.run(signal => ask("strandline/cardinality", {"match[]": selector, ...times, limit: TOP, label}, signal));
            this.#matching = data.series;
            say(byId("explore-error"), "");
            sayAll(byId("explore-warnings"), warnings);
            setText(byId("explore-count"), `${plural(data.series, "series", "series")} ${selector ? "matched" : "there"} in this time, ${plural(data.label_names, "label")}.`);
            byId("explore-count").title = exact(data.series);
            this.tops.update(data);
            byId("explore").removeAttribute("aria-busy");
        } catch (error) {
            if (wasAborted(error)) return;
            byId("explore").removeAttribute("aria-busy");
            this.#failed(error);
            return;
        }
        await Promise.all([this.#drawSamples(), this.#listSeries()]);
    }

    #failed(error) {
        if (error.unreachable) return;
        say(byId("explore-error"), error.message);
        setText(byId("explore-count"), "");
        this.plot.clear();
        setText(byId("plot-note"), "");
        say(byId("plot-error"), "");
        byId("series").replaceChildren();
    }

    async #again() {
        if (this.view.range !== "custom" && this.#matching !== null && this.view.selector) await this.#drawSamples();
    }

    async #drawSamples() {
        const {selector} = this.view;
        const matching = this.#matching;
        sayAll(byId("plot-warnings"), []);
        say(byId("plot-error"), "");
        if (!selector) return this.#noPlot("Write a selector, or choose a metric below, to plot its samples.");
        if (matching > MOST_READ) return this.#noPlot(`${count(matching)} series match, and at most ${count(MOST_READ)} are read for a plot. Choose a value below to narrow it.`);
        const {start, end} = timesOf(this.view);
        const step = stepFor(end - start, this.plot.width);
        // Steps fall on the same times at each refresh, so that lines don't jitter.
        const times = {start: Math.floor(start / step) * step, end: Math.ceil(end / step) * step, step};
        const begun = performance.now();
        try {
            const {data, warnings} = await this.#samples.run(signal => ask("query_range", {query: selector, ...times, limit: MOST_LINES}, signal));
            this.#took = performance.now() - begun;
            const common = this.plot.update(data.result, times);
            const all = Math.max(matching, data.result.length);
            const drawn = Math.min(data.result.length, MOST_LINES);
            const cut = all > drawn && data.result.length >= MOST_LINES ? `${exact(drawn)} of ${exact(all)} series are drawn` : `${plural(drawn, "series", "series")} drawn`;
            setText(byId("plot-note"), `${cut}, a point every ${step < 60 ? `${step} s` : step < 3600 ? `${step / 60} min` : `${step / 3600} h`}.${common ? ` All have ${shortened(common)}.` : ""}`);
            // That the list was cut off is said already.
            sayAll(byId("plot-warnings"), warnings.filter(warning => !/truncated due to limit/.test(warning)));
        } catch (error) {
            if (wasAborted(error) || error.unreachable) return;
            this.#noPlot("");
            say(byId("plot-error"), error.message);
        }
    }

    #noPlot(why) {
        this.#samples.abort();
        this.plot.clear();
        setText(byId("plot-note"), why);
    }

    async #listSeries() {
        if (!byId("series-details").open) return;
        const {selector} = this.view;
        const rows = byId("series");
        say(byId("series-error"), "");
        if (!selector) {
            rows.replaceChildren();
            setText(byId("series-note"), "Write a selector to list its series.");
            return;
        }
        try {
            const {data} = await this.#series.run(signal => ask("series", {"match[]": selector, ...timesOf(this.view), limit: MOST_SERIES}, signal));
            const shown = data.slice(0, MOST_SERIES);
            rows.replaceChildren(...shown.map(labels => el("tr", {}, el("td", {}, el("bdi", {}, seriesText(labels).slice(0, 2000))))));
            setText(byId("series-note"), `${exact(shown.length)} of ${exact(Math.max(this.#matching ?? 0, data.length))} series.`);
        } catch (error) {
            if (wasAborted(error) || error.unreachable) return;
            rows.replaceChildren();
            setText(byId("series-note"), "");
            say(byId("series-error"), error.message);
        }
    }

    #add(label, value) {
        const selector = withMatcher(this.view.selector, label, value);
        if (selector === null) say(byId("explore-error"), "What stands in the box is no selector, so nothing can be added to it.");
        else this.change({selector});
    }

    #makeForm() {
        const choices = [...Object.entries(RANGES).map(([range, [words]]) => [range, words]), ["custom", "from \u2026 to"]];
        byId("ranges").append(...choices.map(([range, words]) => el("label", {}, el("input", {type: "radio", name: "range", value: range, onchange: () => this.#chooseRange(range)}), el("span", {}, words))));
        byId("explore").addEventListener("submit", event => {
            event.preventDefault();
            this.change({selector: byId("selector").value.trim()});
        });
        byId("clear").addEventListener("click", () => this.change({selector: "", label: ""}));
        byId("selector").addEventListener("input", () => this.#suggest(byId("selector").value.trim()));
        for (const input of [byId("from"), byId("to")]) input.addEventListener("change", () => this.#chooseTimes());
        byId("series-details").addEventListener("toggle", () => this.#listSeries());
    }

    #chooseRange(range) {
        if (range === "custom") this.change({range, ...timesOf(this.view)});
        else this.change({range, start: null, end: null});
    }

    #chooseTimes() {
        const [start, end] = [byId("from"), byId("to")].map(input => Date.parse(`${input.value}Z`) / 1000);
        if (Number.isNaN(start) || Number.isNaN(end)) return;
        if (end > start) {
            this.change({range: "custom", start, end});
            return;
        }
        // An answer that is still on its way would take the message away.
        this.#tops.abort();
        byId("explore").removeAttribute("aria-busy");
        say(byId("explore-error"), "The time ends before it begins.");
    }

    #fillForm() {
        const {selector, range, start, end} = this.view;
        byId("selector").value = selector;
        for (const input of byId("ranges").querySelectorAll("input")) input.checked = input.value === range;
        show(byId("custom"), range === "custom");
        if (range === "custom") {
            byId("from").value = new Date(start * 1000).toISOString().slice(0, 19);
            byId("to").value = new Date(end * 1000).toISOString().slice(0, 19);
        }
    }

    #followAddress() {
        const view = readView();
        if (JSON.stringify(view) === JSON.stringify(this.view)) return;
        this.view = view;
        this.#fillForm();
        this.refresh();
    }

    async #suggest(written) {
        if (!isPlainMetric(written)) return;
        try {
            const match = `{__name__=~"${written}.*"}`;
            const {data} = await this.#suggested.run(signal => ask("label/__name__/values", {"match[]": match, ...timesOf(this.view), limit: SUGGESTIONS}, signal));
            byId("metrics").replaceChildren(...data.slice(0, SUGGESTIONS).map(value => el("option", {value: shortened(value)})));
        } catch {
            // Without suggestions one writes the name.
        }
    }
}
