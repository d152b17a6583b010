// The largest metrics, labels and label pairs: lists with bars, whose lines can be selected.

import {el, setText, show} from "./dom.js";
import {bytes, count, exact, plural} from "./format.js";

const MAX_LENGTH = 120;

// Values may be very long: only the beginning is shown.
export const shortened = text => (text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}\u2026` : text);

export class Tops {
    constructor({metrics, labels, pairs, title, all, bounds}, {matcher, label}) {
        this.metrics = metrics;
        this.labels = labels;
        this.pairs = pairs;
        this.title = title;
        this.all = all;
        this.bounds = bounds;
        this.matcher = matcher;
        this.label = label;
        all.addEventListener("click", () => label(""));
    }

    update(data) {
        const series = entry => ({number: entry.series, title: `${exact(entry.series)} series`});
        this.#fill(this.metrics, data.top_metrics, entry => ({
            ...series(entry), text: entry.value, choose: () => this.matcher(entry.label, entry.value),
        }), "No metric.");
        this.#fill(this.labels, data.top_labels, entry => ({
            number: entry.values, text: entry.name, chosen: entry.name === data.label,
            title: `${exact(entry.values)} values in ${exact(entry.series)} series, ${bytes(entry.value_bytes)} of values`,
            choose: () => this.label(entry.name === data.label ? "" : entry.name),
        }), "No label.", data.label_names);
        const pairs = data.label ? data.top_values : data.top_pairs;
        this.#fill(this.pairs, pairs, entry => ({
            ...series(entry), text: data.label ? entry.value : `${entry.label} = ${entry.value}`,
            choose: () => this.matcher(entry.label, entry.value),
        }), data.label ? "No series has this label." : "No label.");
        setText(this.title, data.label ? `Values of ${shortened(data.label)}` : "Label pairs by series");
        show(this.all, Boolean(data.label));
        show(this.bounds, !data.exact_values);
    }

    #fill(list, entries, shownAs, none, total = entries.length) {
        const shown = entries.map(shownAs);
        const most = Math.max(1, ...shown.map(entry => entry.number));
        const lines = shown.map(entry => {
            const bar = el("span", {class: "bar-fill", "aria-hidden": "true"});
            bar.style.inlineSize = `${(100 * entry.number) / most}%`;
            // bdi isolates the writing direction of the text.
            const text = el("bdi", {class: "text"}, shortened(entry.text));
            const button = el(
                "button", {type: "button", title: `${shortened(entry.text)}\n${entry.title}`, "aria-pressed": entry.chosen ? "true" : null, onclick: entry.choose},
                bar, text, el("span", {class: "number"}, count(entry.number)),
            );
            return el("li", {}, button);
        });
        if (!lines.length) lines.push(el("li", {class: "nothing"}, none));
        if (total > entries.length) lines.push(el("li", {class: "note"}, `and ${plural(total - entries.length, "more")}`.replace("mores", "more")));
        const focused = [...list.children].findIndex(line => line.contains(document.activeElement));
        list.replaceChildren(...lines);
        if (focused >= 0) list.children[focused]?.querySelector("button")?.focus();
    }
}
