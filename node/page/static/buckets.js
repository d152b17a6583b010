// The chart of active series by bucket: the sum of all shards, and a row per shard.

import {axis, canvas, emptyNote, linear, onPointer, onResize, ticks, timeAxis} from "./chart.js";
import {el, setText, show, svg} from "./dom.js";
import {axisValue, count, exact, local, plural, span} from "./format.js";

const SUM = 200;
const ROW = 26;
const MAX_ROWS = 16;
const LEFT = 54;
const MIN_BUCKETS = 12;

// The least advanced state of the shards is the state of a bucket in the sum.
const ORDER = ["open", "closed", "stored"];

export function summed(buckets) {
    const byStart = new Map();
    for (const bucket of buckets) {
        const known = byStart.get(bucket.start);
        if (known) known.shards.push(bucket);
        else byStart.set(bucket.start, {start: bucket.start, end: bucket.end, shards: [bucket]});
    }
    const total = (shards, figure) => shards.reduce((sum, one) => sum + one[figure], 0);
    return [...byStart.values()].sort((one, other) => one.start - other.start).map(({start, end, shards}) => ({
        start, end, shards,
        active: total(shards, "active"),
        changed: total(shards, "changed"),
        samples: total(shards, "samples"),
        state: ORDER[Math.min(...shards.map(one => Math.max(0, ORDER.indexOf(one.state))))],
    }));
}

// The requested range, shortened to the existing buckets, so that these are drawn as wide as possible.
function fitting(buckets, first, last) {
    if (!buckets.length) return {first, last};
    const end = Math.max(last, buckets.at(-1).end);
    const least = MIN_BUCKETS * (buckets[0].end - buckets[0].start);
    return {first: Math.min(Math.max(first, buckets[0].start), end - least), last: end};
}

export class Buckets {
    #buckets = [];
    #times = {first: 0, last: 1};
    #chosen = null;
    #isLoaded = false;
    #layout = null;

    constructor(element, readout, explore) {
        this.element = element;
        this.readout = readout;
        this.explore = explore;
        onResize(element, () => this.#draw());
        onPointer(element, {
            at: x => this.#choose(this.#indexAt(x) ?? this.#chosen),
            step: by => this.#step(by),
            escaped: () => this.#choose(null),
        });
        this.text = el("span");
        this.button = el("button", {type: "button", class: "link", hidden: true, onclick: () => this.#open(this.#chosen)}, "Explore this time");
        readout.append(this.text, " ", this.button);
        element.addEventListener("keydown", event => {
            if (event.key === "Enter" && this.#chosen !== null) this.#open(this.#chosen);
        });
    }

    update(buckets, first, last) {
        this.#isLoaded = true;
        const kept = this.#buckets[this.#chosen]?.start;
        this.#buckets = summed(buckets);
        this.#times = fitting(this.#buckets, first, last);
        const again = this.#buckets.findIndex(bucket => bucket.start === kept);
        this.#chosen = again < 0 ? null : again;
        this.#draw();
        this.#updateReadout();
    }

    #draw() {
        if (!this.#isLoaded) return;
        if (!this.#buckets.length) {
            this.#layout = null;
            this.element.replaceChildren(emptyNote("No bucket in this time."));
            return;
        }
        const shards = [...new Set(this.#buckets.flatMap(bucket => bucket.shards.map(one => one.shard)))].sort((one, other) => one - other);
        const rows = shards.length > 1 ? shards.slice(0, MAX_ROWS) : [];
        const space = canvas(this.element, SUM + rows.length * ROW + 22);
        if (space === null) return;
        const {picture, width, height} = space;
        const right = width - 4;
        const {first, last} = this.#times;
        const x = linear(first, last, LEFT, right);
        const marks = ticks(0, Math.max(1, ...this.#buckets.map(bucket => bucket.active)), 4);
        const y = linear(0, marks.at(-1), SUM - 8, 10);
        axis(picture, {left: LEFT, right, bottom: SUM - 8, marks, y, text: axisValue});
        picture.append(hatching());
        const bars = svg("g", {class: "sum"});
        for (const bucket of this.#buckets) bars.append(bar(x, bucket, y(bucket.active), SUM - 8, bucket.state));
        picture.append(bars);
        rows.forEach((shard, index) => {
            const top = SUM + index * ROW;
            const group = svg("g", {class: "row", "data-shard": shard}, svg("text", {class: "name", x: LEFT - 6, y: top + 15, "text-anchor": "end"}, `shard ${shard}`));
            const own = this.#buckets.flatMap(bucket => bucket.shards.filter(one => one.shard === shard));
            const height = linear(0, Math.max(1, ...own.map(one => one.active)), 0, ROW - 6);
            for (const one of own) group.append(bar(x, one, top + ROW - 4 - height(one.active), top + ROW - 4, one.state));
            picture.append(group);
        });
        timeAxis(picture, {first, last, x, y: height - 5, left: LEFT, right});
        const cursor = svg("rect", {class: "cursor", y: 4, height: height - 26, width: 0, x: 0, visibility: "hidden"});
        picture.append(cursor);
        this.#layout = {x, cursor};
        const hidden = shards.length - rows.length;
        this.element.replaceChildren(picture, ...(rows.length && hidden ? [el("p", {class: "note"}, `${plural(hidden, "more shard")} in the sum.`)] : []));
        this.#mark();
    }

    #indexAt(pixel) {
        if (!this.#layout) return null;
        const {first, last} = this.#times;
        const time = linear(this.#layout.x(first), this.#layout.x(last), first, last)(pixel);
        const index = this.#buckets.findIndex(bucket => bucket.start <= time && time < bucket.end);
        return index < 0 ? null : index;
    }

    #step(by) {
        const newest = this.#buckets.length - 1;
        const from = this.#chosen ?? (by < 0 ? newest + 1 : -1);
        if (newest >= 0) this.#choose(Math.max(0, Math.min(newest, from + by)));
    }

    #choose(index) {
        if (index === this.#chosen) return;
        this.#chosen = index;
        this.#mark();
        this.#updateReadout();
    }

    #open(index) {
        const {start, end} = this.#buckets[index];
        this.explore(start / 1000, end / 1000);
    }

    #mark() {
        if (!this.#layout) return;
        const {x, cursor} = this.#layout;
        const bucket = this.#buckets[this.#chosen];
        cursor.setAttribute("visibility", bucket ? "visible" : "hidden");
        if (bucket) {
            cursor.setAttribute("x", x(bucket.start));
            cursor.setAttribute("width", Math.max(2, x(bucket.end) - x(bucket.start)));
        }
    }

    #updateReadout() {
        const bucket = this.#buckets[this.#chosen];
        show(this.button, Boolean(bucket));
        if (!bucket) {
            setText(this.text, this.#buckets.length ? "Point at a bucket to see its figures." : "");
            this.readout.removeAttribute("title");
            return;
        }
        const shards = bucket.shards.slice(0, MAX_ROWS).map(one => `shard ${one.shard} ${count(one.active)}${one.state === bucket.state ? "" : ` (${one.state})`}`);
        const parts = [span(bucket.start, bucket.end), bucket.state, `${exact(bucket.active)} active series`, `${count(bucket.samples)} samples`, `${count(bucket.changed)} keys stored`];
        if (bucket.shards.length > 1) parts.push(shards.join(", "));
        setText(this.text, parts.join(" \u00b7 "));
        this.readout.title = `${local(bucket.start)} to ${local(bucket.end)}`;
    }
}

function bar(x, bucket, top, bottom, state) {
    const [left, right] = [x(bucket.start), x(bucket.end)];
    const gap = right - left > 6 ? 1.5 : right - left > 3 ? 0.75 : 0;
    // A bucket with few series must still be visible.
    const height = bucket.active ? Math.max(1.5, bottom - top) : 0;
    return svg("rect", {class: `bar ${state}`, x: left + gap / 2, width: Math.max(0.75, right - left - gap), y: bottom - height, height, rx: right - left > 8 ? 1.5 : 0});
}

function hatching() {
    const pattern = svg("pattern", {id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"}, svg("rect", {class: "hatch-ground", width: 5, height: 5}), svg("rect", {class: "hatch-line", width: 2.2, height: 5}));
    return svg("defs", {}, pattern);
}
