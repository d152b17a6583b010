// The section "Explore": a query and a range of times, its result, the largest metrics and labels, and its series.

import {request, Latest, wasAborted} from "./api.js";
import {byId, el, setMessage, setMessages, setText, show} from "./dom.js";
import {exact, plural} from "./format.js";
import {Poller} from "./polling.js";
import {narrowed, selectorTexts} from "./promql.js";
import {QueryBox} from "./query_box.js";
import {Results} from "./results.js";
import {parts, seriesText} from "./selector.js";
import {Tops} from "./tops.js";
import {RANGES, readView, timesOf, writeView} from "./view.js";

const TOP = 10;
const MAX_SERIES = 50;

export class Explore {
    #tops = new Latest();
    #series = new Latest();
    #formatted = new Latest();
    #matching = null;
    #round = 0;

    constructor() {
        this.view = readView();
        this.box = new QueryBox({box: byId("query"), backdrop: byId("query-backdrop"), list: byId("completions"), status: byId("completions-status")}, () => timesOf(this.view));
        this.results = new Results();
        this.tops = new Tops(
            {metrics: byId("top-metrics"), labels: byId("top-labels"), pairs: byId("top-pairs"), title: byId("third-title"), all: byId("all-pairs"), bounds: byId("bounds")},
            {matcher: (label, value) => this.#add(label, value), label: label => this.change({label})},
        );
        this.#makeForm();
        // Results that end now are refreshed; those of slow queries less often.
        this.poller = new Poller(() => this.#refreshIfRelative(), () => Math.max(15_000, 20 * this.results.took));
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

    // Request everything again. Earlier requests are aborted.
    async refresh() {
        this.#round += 1;
        const round = this.#round;
        this.#matching = null;
        this.results.abort();
        this.#series.abort();
        byId("explore").setAttribute("aria-busy", "true");
        const tops = this.#refreshTops();
        // A plain selector is only evaluated if it does not match too many series, so its size must be known first.
        if (this.#isSelector) await tops;
        if (round !== this.#round) return;
        const isAnswered = await this.#refreshResult();
        const failure = await tops;
        if (round !== this.#round) return;
        byId("explore").removeAttribute("aria-busy");
        // An error in the query is shown only once, below the query.
        setMessage(byId("tops-error"), isAnswered ? failure : "");
        await this.#listSeries();
    }

    get #isSelector() {
        return this.view.query !== "" && parts(this.view.query) !== null;
    }

    // Returns the error message, or "".
    async #refreshTops() {
        const {query, label} = this.view;
        const selectors = selectorTexts(query);
        try {
            const {data, warnings} = await this.#tops.run(signal => request("strandline/cardinality", {"match[]": selectors, ...timesOf(this.view), limit: TOP, label}, signal));
            this.#matching = data.series;
            setMessages(byId("explore-warnings"), warnings);
            setText(byId("explore-count"), `${plural(data.series, "series", "series")} ${selectors.length ? "matched" : "in total"} in this range, ${plural(data.label_names, "label")}.`);
            byId("explore-count").title = exact(data.series);
            this.tops.update(data);
            return "";
        } catch (error) {
            if (wasAborted(error) || error.unreachable) return "";
            setText(byId("explore-count"), "");
            return error.message;
        }
    }

    // Returns whether the node could answer.
    async #refreshResult() {
        try {
            await this.results.update(this.view, timesOf(this.view), this.#isSelector ? this.#matching : null);
            setMessage(byId("explore-error"), "");
            return true;
        } catch (error) {
            setMessage(byId("explore-error"), this.box.value === this.view.query ? this.box.markFault(error.message) : error.message);
            return false;
        }
    }

    async #refreshIfRelative() {
        if (this.view.range !== "custom" && this.#matching !== null && this.view.query) await this.#refreshResult();
    }

    async #listSeries() {
        if (!byId("series-details").open) return;
        const selectors = selectorTexts(this.view.query);
        const rows = byId("series");
        setMessage(byId("series-error"), "");
        if (!selectors.length) {
            rows.replaceChildren();
            setText(byId("series-note"), "Write a query to list the series that its selectors match.");
            return;
        }
        try {
            const {data} = await this.#series.run(signal => request("series", {"match[]": selectors, ...timesOf(this.view), limit: MAX_SERIES}, signal));
            const shown = data.slice(0, MAX_SERIES);
            rows.replaceChildren(...shown.map(labels => el("tr", {}, el("td", {}, el("bdi", {}, seriesText(labels).slice(0, 2000))))));
            setText(byId("series-note"), `${exact(shown.length)} of ${exact(Math.max(this.#matching ?? 0, data.length))} series.`);
        } catch (error) {
            if (wasAborted(error) || error.unreachable) return;
            rows.replaceChildren();
            setText(byId("series-note"), "");
            setMessage(byId("series-error"), error.message);
        }
    }

    #add(label, value) {
        const query = narrowed(this.view.query, label, value);
        if (query === null) setMessage(byId("explore-error"), "The query has no selector to which a matcher can be added.");
        else this.change({query});
    }

    // Formats the query with the node's formatter.
    async #format() {
        const query = this.box.value;
        if (!query) return;
        try {
            const {data} = await this.#formatted.run(signal => request("format_query", {query}, signal));
            // The text may have been edited meanwhile.
            if (this.box.value === query) this.box.value = data;
            setMessage(byId("explore-error"), "");
        } catch (error) {
            if (!wasAborted(error) && !error.unreachable && this.box.value === query) setMessage(byId("explore-error"), this.box.markFault(error.message));
        }
    }

    #makeForm() {
        const choice = (name, value, words, chosen) => el("label", {}, el("input", {type: "radio", name, value, onchange: chosen}), el("span", {}, words));
        const choices = [...Object.entries(RANGES).map(([range, [words]]) => [range, words]), ["custom", "from \u2026 to"]];
        byId("ranges").append(...choices.map(([range, words]) => choice("range", range, words, () => this.#chooseRange(range))));
        byId("shows").append(...[["plot", "Plot"], ["table", "Table"]].map(([shown, words]) => choice("show", shown, words, () => this.change({show: shown}))));
        byId("explore").addEventListener("submit", event => {
            event.preventDefault();
            this.change({query: this.box.value});
        });
        byId("clear").addEventListener("click", () => this.change({query: "", label: ""}));
        byId("format").addEventListener("click", () => this.#format());
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
        // Pending answers would remove the message.
        this.#round += 1;
        this.#tops.abort();
        this.results.abort();
        byId("explore").removeAttribute("aria-busy");
        setMessage(byId("explore-error"), "The end of the range is before its start.");
    }

    #fillForm() {
        const {query, show: shown, range, start, end} = this.view;
        this.box.value = query;
        for (const input of byId("ranges").querySelectorAll("input")) input.checked = input.value === range;
        for (const input of byId("shows").querySelectorAll("input")) input.checked = input.value === shown;
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
}
