// The chart of records and errors per second of all bulk jobs: two strips with their own scales and one time axis.

import {axis, canvas, emptyNote, linear, onPointer, onResize, ticks, timeAxis} from "./chart.js";
import {setText, svg} from "./dom.js";
import {axisValue, count, moment} from "./format.js";

const HEIGHT = 230;
const BOTTOM = HEIGHT - 24;
const STRIPS = [{name: "Records/s", top: 22, bottom: 118, marks: 3, value: 1, style: ""}, {name: "Errors/s", top: 146, bottom: BOTTOM, marks: 2, value: 2, style: " errors"}];
// Points that are further apart are not connected.
const GAP = 60_000;
const MIN_SPAN = 120_000;

export class JobRates {
    #points = null;
    #layout = null;
    #chosen = null;

    constructor(element, readout) {
        this.element = element;
        this.readout = readout;
        onResize(element, () => this.#draw());
        onPointer(element, {at: x => this.#at(x), step: by => this.#step(by), left: () => this.#choose(null)});
    }

    // Points are [milliseconds, records per second, errors per second], oldest first.
    update(points) {
        this.#points = points;
        this.#draw();
    }

    #draw() {
        const points = this.#points;
        if (points === null) return;
        if (!points.length) {
            this.#layout = null;
            this.element.replaceChildren(emptyNote("No data yet: the node reads the jobs every 15 seconds."));
            setText(this.readout, "");
            return;
        }
        const space = canvas(this.element, HEIGHT);
        if (space === null) return;
        const {picture, width} = space;
        const last = points.at(-1)[0];
        const first = Math.min(points[0][0], last - MIN_SPAN);
        const scales = STRIPS.map(strip => ticks(0, Math.max(...points.map(point => point[strip.value])) || 1, strip.marks));
        const left = 12 + 6.6 * Math.max(...scales.flat().map(mark => axisValue(mark).length));
        const right = width - 8;
        const x = linear(first, last, left, right);
        STRIPS.forEach((strip, index) => {
            const marks = scales[index];
            const y = linear(marks[0], marks.at(-1), strip.bottom, strip.top);
            axis(picture, {left, right, bottom: strip.bottom, marks, y, text: axisValue});
            picture.append(svg("text", {x: left, y: strip.top - 8, class: "strip-name"}, strip.name));
            for (const run of runs(points)) {
                const line = run.map(point => `${x(point[0]).toFixed(1)} ${y(point[strip.value]).toFixed(1)}`).join("L");
                picture.append(svg("path", {class: `rate-area${strip.style}`, d: `M${x(run[0][0]).toFixed(1)} ${strip.bottom}L${line}L${x(run.at(-1)[0]).toFixed(1)} ${strip.bottom}Z`}));
                picture.append(svg("path", {class: `rate${strip.style}`, d: `M${line}${run.length === 1 ? "h1.5" : ""}`}));
            }
        });
        timeAxis(picture, {first, last, x, y: HEIGHT - 5, left, right});
        const cursor = svg("line", {class: "cursor-line", y1: STRIPS[0].top, y2: BOTTOM, visibility: "hidden"});
        picture.append(cursor);
        this.#layout = {x, cursor};
        this.element.replaceChildren(picture);
        this.#choose(this.#chosen);
    }

    #at(pixel) {
        if (!this.#layout) return;
        const distance = point => Math.abs(this.#layout.x(point[0]) - pixel);
        this.#choose(this.#points.reduce((best, point) => (distance(point) < distance(best) ? point : best))[0]);
    }

    #step(by) {
        if (!this.#layout) return;
        const now = this.#points.findIndex(point => point[0] === this.#chosen);
        const from = now >= 0 ? now : by < 0 ? this.#points.length : -1;
        this.#choose(this.#points[Math.max(0, Math.min(this.#points.length - 1, from + by))][0]);
    }

    #choose(time) {
        const point = this.#points.find(one => one[0] === time);
        this.#chosen = point ? time : null;
        this.#layout.cursor.setAttribute("visibility", point ? "visible" : "hidden");
        if (point) for (const end of ["x1", "x2"]) this.#layout.cursor.setAttribute(end, this.#layout.x(time));
        const [when, records, errors] = point ?? this.#points.at(-1);
        setText(this.readout, `${moment(when)}: ${count(records)} records/s, ${count(errors)} errors/s`);
    }
}

// Groups points without gaps between them.
function runs(points) {
    const found = [];
    points.forEach((point, index) => {
        if (index && point[0] - points[index - 1][0] <= GAP) found.at(-1).push(point);
        else found.push([point]);
    });
    return found;
}
