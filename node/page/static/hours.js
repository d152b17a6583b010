// The readiness of the last hours, one row per day.

import {request, Latest, wasAborted} from "./api.js";
import {el, setText, svg} from "./dom.js";
import {count, day, duration, local, plural} from "./format.js";

const HOUR = 3_600_000;
const STATES = {ready: "ok", "not ready": "work", unknown: "off"};
const MARKS = {ready: "M3.5 8.4l3 3 6-6.8", "not ready": "M8 3.5v5M8 12v.2", unknown: "M3.5 8h9"};

export class Hours {
    #cells = new Map();
    #shown = "";
    #chosen = null;
    #details = new Latest();

    constructor(element, readout) {
        this.element = element;
        this.readout = readout;
    }

    update(hours) {
        const days = [...new Set(hours.map(hour => day(hour.start)))];
        // Cells are only replaced when the hours change, so that a refresh keeps the focus.
        if (this.#shown !== `${hours[0]?.hour} ${hours.length}`) {
            this.#shown = `${hours[0]?.hour} ${hours.length}`;
            this.#cells.clear();
            this.element.replaceChildren(...days.map(date => this.#row(date, hours.filter(hour => day(hour.start) === date))));
            this.#chosen = null;
            setText(this.readout, summary(hours));
        } else if (this.#chosen === null) setText(this.readout, summary(hours));
        for (const hour of hours) this.#fill(this.#cells.get(hour.hour), hour);
    }

    #row(date, hours) {
        const midnight = Date.parse(`${date}T00:00:00Z`);
        const byStart = new Map(hours.map(hour => [hour.start, hour]));
        const cells = [];
        for (let index = 0; index < 24; index += 1) {
            const hour = byStart.get(midnight + index * HOUR);
            if (!hour) {
                cells.push(el("span", {class: "hour none", "aria-hidden": "true"}));
                continue;
            }
            const cell = el("button", {type: "button", class: "hour", "data-hour": hour.hour, onclick: () => this.#choose(hour.hour)});
            this.#cells.set(hour.hour, cell);
            cells.push(cell);
        }
        // Half days without hours are left out.
        const halves = [cells.slice(0, 12), cells.slice(12)].filter(half => half.some(cell => cell.matches("button")));
        return el("div", {class: "day"}, el("h3", {}, date), el("div", {class: "cells"}, ...halves.flat()));
    }

    #fill(cell, hour) {
        const key = `${hour.verdict} ${hour.revision}`;
        if (cell.dataset.shown !== key) {
            cell.dataset.shown = key;
            cell.dataset.state = STATES[hour.verdict] ?? "off";
            const mark = svg("svg", {class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true"}, svg("path", {d: MARKS[hour.verdict] ?? MARKS.unknown}));
            cell.replaceChildren(el("span", {class: "name", "aria-hidden": "true"}, hour.hour.slice(11)), mark, ...(hour.revision ? [el("span", {class: "revision", "aria-hidden": "true"}, `r${count(hour.revision)}`)] : []));
        }
        const words = describe(hour);
        if (cell.getAttribute("aria-label") !== words) {
            cell.setAttribute("aria-label", words);
            cell.title = `${words}\n${local(hour.start)}`;
        }
    }

    async #choose(hour) {
        this.#chosen = hour;
        for (const [name, cell] of this.#cells) cell.setAttribute("aria-pressed", String(name === hour));
        setText(this.readout, this.#cells.get(hour).getAttribute("aria-label"));
        try {
            const {data} = await this.#details.run(signal => request("strandline/ready", {period: hour}, signal));
            this.readout.replaceChildren(...details(data).map(line => el("p", {}, line)));
        } catch (error) {
            // The text from the cell stays.
            if (!wasAborted(error)) this.readout.append(el("p", {class: "muted"}, `Details are not available: ${error.message}.`));
        }
    }
}

function summary(hours) {
    const ready = hours.filter(hour => hour.verdict === "ready").length;
    const waiting = hours.find(hour => hour.verdict === "not ready");
    const first = waiting ? `; first that is not: ${waiting.hour}` : "";
    return `${ready} of ${plural(hours.length, "hour")} ready${first}. Select an hour for details.`;
}

export function describe(hour) {
    const words = [`${hour.hour} UTC: ${hour.verdict}`];
    if (hour.reason) words.push(hour.reason);
    words.push(`revision ${hour.revision}`);
    if (hour.late_samples) words.push(plural(hour.late_samples, "late sample"));
    if (hour.behind.length) words.push(`${hour.behind.length === 1 ? "partition" : "partitions"} ${some(hour.behind)} behind`);
    if (hour.losses) words.push(`${plural(hour.losses, "accepted loss", "accepted losses")}`);
    return words.join(", ");
}

const some = numbers => numbers.slice(0, 10).join(", ") + (numbers.length > 10 ? ` and ${numbers.length - 10} more` : "");

// The same details as `strandline ready` prints.
function details({readiness: found}) {
    const verdict = found.verdict === "ready" ? `ready, revision ${found.revision}` : found.verdict;
    const lines = [`${found.period} UTC is ${verdict}${found.reason ? `: ${found.reason}` : ""}; late samples: ${count(found.late_samples)}.`];
    for (const one of found.behind.slice(0, 10)) {
        const far = one.behind_ms === null ? "was never read" : `is ${duration(one.behind_ms / 1000)} behind`;
        lines.push(`Partition ${one.shard} ${far}: it needs bucket ${one.needed_bucket} and has ${one.reached_bucket ?? "none"}; ${plural(one.missing_groups.length, "group")} missing.`);
    }
    for (const loss of found.losses.slice(0, 10)) {
        lines.push(`Partition ${loss.shard}: accepted loss of offsets from ${loss.first} up to ${loss.behind ?? "the end"} (${loss.reason}).`);
    }
    if (found.rewound_samples) lines.push(`${plural(found.rewound_samples, "late sample")} unavailable until a rewind has read them again.`);
    if (found.started_later.length) lines.push(`Partitions that were first read later and do not count: ${some(found.started_later)}.`);
    return lines;
}
