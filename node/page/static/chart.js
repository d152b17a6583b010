// Shared by the charts: scales, ticks, axes and pointer events.

import {el, svg} from "./dom.js";
import {day, minute, second} from "./format.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [1000, 5000, 15_000, 30_000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 30 * DAY];

export const linear = (from, to, low, high) => number => low + ((number - from) / (to - from || 1)) * (high - low);

// Round numbers that enclose a range, with about `wanted` steps.
export function ticks(low, high, wanted) {
    const raw = (high - low || Math.abs(high) || 1) / wanted;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(size => size >= raw * 0.999);
    const found = [];
    for (let index = Math.floor(low / step); ; index += 1) {
        found.push(Number((index * step).toPrecision(12)));
        if (index * step >= high || found.length > 50) return found;
    }
}

export function timeTicks(first, last, wanted) {
    const step = TIME_STEPS.find(size => (last - first) / size <= wanted) ?? 30 * DAY * Math.ceil((last - first) / (30 * DAY * wanted));
    const found = [];
    for (let time = Math.ceil(first / step) * step; time <= last; time += step) {
        const text = step >= DAY || time % DAY === 0 ? day(time).slice(5) : step < MINUTE ? second(time) : minute(time);
        found.push({time, text});
    }
    return found;
}

// An empty SVG with the element's width; null while the element is hidden.
export function canvas(element, height) {
    const width = Math.floor(element.clientWidth);
    if (width < 50) return null;
    const picture = svg("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"});
    return {picture, width, height};
}

export function axis(picture, {left, right, bottom, marks, y, text}) {
    const group = svg("g", {class: "axis"});
    for (const mark of marks) {
        const height = y(mark);
        group.append(svg("line", {x1: left, x2: right, y1: height, y2: height}));
        group.append(svg("text", {x: left - 6, y: height + 4, "text-anchor": "end"}, text(mark)));
    }
    group.append(svg("line", {class: "base", x1: left, x2: right, y1: bottom, y2: bottom}));
    picture.append(group);
}

export function timeAxis(picture, {first, last, x, y, left, right}) {
    const group = svg("g", {class: "axis"});
    for (const {time, text} of timeTicks(first, last, Math.max(2, Math.floor((right - left) / 70)))) {
        const position = x(time);
        if (position < left + 14 || position > right - 14) continue;
        group.append(svg("text", {x: position, y, "text-anchor": "middle"}, text));
    }
    picture.append(group);
}

// Calls `draw` when the width of the element has changed.
export function onResize(element, draw) {
    let width = 0;
    new ResizeObserver(() => {
        if (element.clientWidth !== width) {
            width = element.clientWidth;
            draw();
        }
    }).observe(element);
}

// Selects a position in the chart by pointer, tap or keys. Calls `at(x, y)` with pixels of the chart, `step(count)` for
// arrow keys, `left()` when the pointer leaves the chart, and `escaped()` for Escape.
export function onPointer(element, {at, step, left = () => {}, escaped = left}) {
    const where = event => {
        const box = element.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    element.addEventListener("pointermove", event => at(...where(event)));
    element.addEventListener("pointerdown", event => at(...where(event)));
    element.addEventListener("pointerleave", event => {
        if (event.pointerType === "mouse") left();
    });
    element.addEventListener("keydown", event => {
        const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity};
        if (event.key in steps) {
            event.preventDefault();
            step(steps[event.key]);
        } else if (event.key === "Escape") escaped();
    });
}

export const emptyNote = text => el("p", {class: "nothing"}, text);
