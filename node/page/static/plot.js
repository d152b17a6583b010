// The plot of a range query: a line per series, and the values at the pointer.

import {axis, canvas, emptyNote, linear, onPointer, onResize, ticks, timeAxis} from "./chart.js";
import {el, setText, svg} from "./dom.js";
import {axisValue, local, moment, parsed, value} from "./format.js";
import {seriesText} from "./selector.js";
import {shortened} from "./tops.js";

export const MAX_LINES = 50;
const HEIGHT = 280;
const BOTTOM = HEIGHT - 24;
const COLOURS = 8;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

// Seconds between points, about two pixels apart.
export function stepFor(seconds, width) {
    const least = seconds / Math.max(50, width / 2);
    return STEPS.find(step => step >= least) ?? Math.ceil(least / 86_400) * 86_400;
}

// Labels with the same value in all series, which are left out of the legend.
export function commonLabels(all) {
    if (all.length < 2) return new Set();
    const [first, ...others] = all;
    return new Set(Object.keys(first).filter(label => label !== "__name__" && others.every(labels => labels[label] === first[label])));
}

export class Plot {
    #lines = [];
    #times = null;
    #layout = null;
    #cursor = null;
    #alone = null;

    constructor({area, plot, readout, legend, heading}) {
        this.area = area;
        this.plot = plot;
        this.readout = readout;
        this.legend = legend;
        this.heading = heading;
        onResize(plot, () => this.#draw());
        onPointer(plot, {at: (x, y) => this.#at(x, y), step: by => this.#step(by), left: () => this.#point(null)});
    }

    get width() {
        return Math.max(300, this.plot.clientWidth || document.documentElement.clientWidth - 64) - 60;
    }

    clear() {
        this.#lines = [];
        this.#times = null;
        this.area.hidden = true;
    }

    // Shows a matrix of Prometheus' API, with times in seconds.
    update(matrix, {start, end, step}) {
        const shown = matrix.slice(0, MAX_LINES);
        const common = commonLabels(shown.map(one => one.metric));
        const kept = this.#lines[this.#alone]?.fullName;
        this.#lines = shown.map((one, index) => ({
            text: shortened(seriesText(one.metric, common)),
            fullName: seriesText(one.metric),
            points: one.values.map(([time, written]) => [time * 1000, parsed(written)]),
            colour: index % COLOURS,
            dashed: Math.floor(index / COLOURS) % 4,
        }));
        this.#alone = this.#lines.findIndex(line => line.fullName === kept);
        if (this.#alone < 0) this.#alone = null;
        this.#times = {first: start * 1000, last: end * 1000, step: step * 1000};
        this.area.hidden = false;
        this.#fillLegend();
        this.#draw();
        return common.size ? seriesText(Object.fromEntries([...common].map(label => [label, shown[0].metric[label]]))) : "";
    }

    #fillLegend() {
        const rows = this.#lines.map((line, index) => {
            const swatch = svg("svg", {class: "swatch-line", viewBox: "0 0 22 8", "aria-hidden": "true"}, svg("path", {d: "M1 4h20", class: style(line)}));
            const button = el("button", {type: "button", class: "link", title: shortened(line.fullName), "aria-pressed": String(index === this.#alone), onclick: () => this.#choose(index)}, swatch, el("bdi", {}, line.text));
            line.cell = el("td", {class: "number"});
            line.row = el("tr", {onpointerenter: () => this.#light(index), onpointerleave: () => this.#light(null)}, el("td", {}, button), line.cell);
            line.button = button;
            return line.row;
        });
        this.legend.replaceChildren(...rows);
    }

    #choose(index) {
        this.#alone = this.#alone === index ? null : index;
        this.#lines.forEach((line, other) => line.button.setAttribute("aria-pressed", String(other === this.#alone)));
        this.#draw();
    }

    #draw() {
        if (!this.#times) return;
        const lines = this.#alone === null ? this.#lines : [this.#lines[this.#alone]];
        const numbers = lines.flatMap(line => line.points.map(([, number]) => number).filter(Number.isFinite));
        if (!numbers.length) {
            this.#layout = null;
            this.plot.replaceChildren(emptyNote("No sample in this time."));
            this.#updateReadout();
            return;
        }
        const space = canvas(this.plot, HEIGHT);
        if (space === null) return;
        const {picture, width} = space;
        let low = numbers.reduce((least, number) => Math.min(least, number), Infinity);
        let high = numbers.reduce((most, number) => Math.max(most, number), -Infinity);
        // The axis includes zero if values are near it. A constant line is drawn in the middle.
        if (low > 0 && low < 0.5 * high) low = 0;
        if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
        const marks = ticks(low, high, 4);
        const left = 12 + 6.6 * Math.max(...marks.map(mark => axisValue(mark).length));
        const right = width - 8;
        const {first, last, step} = this.#times;
        const x = linear(first, last, left, right);
        const y = linear(marks[0], marks.at(-1), BOTTOM, 10);
        axis(picture, {left, right, bottom: BOTTOM, marks, y, text: axisValue});
        timeAxis(picture, {first, last, x, y: HEIGHT - 5, left, right});
        const group = svg("g", {class: "lines"});
        for (const line of lines) {
            line.path = svg("path", {d: path(line.points, x, y, step), class: `line ${style(line)}`});
            group.append(line.path);
        }
        const cursor = svg("line", {class: "cursor-line", y1: 6, y2: BOTTOM, visibility: "hidden"});
        const dots = svg("g");
        picture.append(group, cursor, dots);
        this.#layout = {x, y, cursor, dots, left, right, lines};
        this.plot.replaceChildren(picture);
        this.#point(this.#cursor);
    }

    #at(pixel, height) {
        if (!this.#layout) return;
        const {first, last, step} = this.#times;
        const {left, right} = this.#layout;
        const time = linear(left, right, first, last)(Math.max(left, Math.min(right, pixel)));
        this.#point(first + Math.round((time - first) / step) * step, height);
    }

    #step(by) {
        const {first, last, step} = this.#times ?? {};
        if (first === undefined) return;
        const newest = first + Math.floor((last - first) / step) * step;
        const from = this.#cursor ?? (by < 0 ? newest + step : first - step);
        this.#point(Math.max(first, Math.min(newest, from + by * step)));
    }

    #point(time, height = null) {
        this.#cursor = time;
        const layout = this.#layout;
        if (!layout) return this.#updateReadout();
        layout.cursor.setAttribute("visibility", time === null ? "hidden" : "visible");
        layout.dots.replaceChildren();
        let nearest = null;
        if (time !== null) {
            layout.cursor.setAttribute("x1", layout.x(time));
            layout.cursor.setAttribute("x2", layout.x(time));
            for (const line of layout.lines) {
                const number = valueAt(line.points, time);
                if (!Number.isFinite(number)) continue;
                layout.dots.append(svg("circle", {cx: layout.x(time), cy: layout.y(number), r: 2.6, class: style(line)}));
                const far = height === null ? 0 : Math.abs(layout.y(number) - height);
                if (nearest === null || far < nearest.far) nearest = {line, far};
            }
        }
        this.#light(nearest && layout.lines.length > 1 ? this.#lines.indexOf(nearest.line) : null);
        this.#updateReadout(nearest?.line);
    }

    #light(index) {
        this.#lines.forEach((line, other) => {
            line.row.classList.toggle("lit", other === index);
            line.path?.classList.toggle("lit", other === index);
        });
    }

    #updateReadout(nearest = null) {
        const time = this.#cursor;
        for (const line of this.#lines) {
            const number = time === null ? line.points.at(-1)?.[1] : valueAt(line.points, time);
            setText(line.cell, number === undefined ? "\u2013" : value(number));
        }
        setText(this.heading, time === null ? "Last value" : moment(time).slice(11));
        if (time === null) {
            setText(this.readout, "Point at the plot to see the values at a time; select a series to see only that one.");
            this.readout.removeAttribute("title");
        } else {
            const number = nearest && valueAt(nearest.points, time);
            setText(this.readout, nearest ? `${moment(time)} \u00b7 ${nearest.text} \u00b7 ${value(number)}` : `${moment(time)} \u00b7 no sample`);
            this.readout.title = local(time);
        }
    }
}

const style = line => `colour-${line.colour} dash-${line.dashed}`;

function valueAt(points, time) {
    let [low, high] = [0, points.length - 1];
    while (low <= high) {
        const middle = (low + high) >> 1;
        if (Math.abs(points[middle][0] - time) < 1) return points[middle][1];
        if (points[middle][0] < time) low = middle + 1;
        else high = middle - 1;
    }
    return undefined;
}

// A line is interrupted at missing and infinite points. A single point is drawn as a short dash.
function path(points, x, y, step) {
    const written = [];
    let before = null;
    for (const [index, [time, number]] of points.entries()) {
        if (!Number.isFinite(number)) {
            before = null;
            continue;
        }
        const joins = before !== null && time - before < step * 1.5;
        const [across, up] = [x(time).toFixed(1), y(number).toFixed(1)];
        written.push(`${joins ? "L" : "M"}${across} ${up}`);
        const next = points[index + 1];
        const followed = next && Number.isFinite(next[1]) && next[0] - time < step * 1.5;
        if (!joins && !followed) written.push("h1.5");
        before = time;
    }
    return written.join("");
}
