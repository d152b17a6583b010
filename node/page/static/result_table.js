// The result of an instant query as a table: a row a series, or one for a scalar or a text.

import {el} from "./dom.js";
import {moment, parsed, value} from "./format.js";
import {seriesText} from "./selector.js";
import {shortened} from "./tops.js";

export const MOST_ROWS = 200;
const MOST_SAMPLES = 20;

// How many rows there are.
export function showTable(body, {resultType, result}) {
    const rows = rowsOf(resultType, result);
    body.replaceChildren(...rows);
    return rows.length;
}

function rowsOf(type, result) {
    if (type === "scalar" || type === "string") {
        const [time, written] = result;
        return [row(type, cell(type === "scalar" ? value(parsed(written)) : shortened(written), time, written))];
    }
    return result.slice(0, MOST_ROWS).map(({metric, value: point, values: points}) => {
        const whole = seriesText(metric);
        if (point) return row(whole, cell(value(parsed(point[1])), point[0], point[1]));
        const newest = points.slice(-MOST_SAMPLES).reverse();
        const lines = newest.map(([time, written]) => el("div", {}, `${value(parsed(written))} at ${moment(time * 1000).slice(11)}`));
        const more = points.length - newest.length;
        return row(whole, el("td", {class: "number"}, ...lines, more ? el("div", {class: "note"}, `and ${more} older`) : null));
    });
}

const row = (name, shown) => el("tr", {}, el("td", {}, el("bdi", {title: shortened(name)}, name.slice(0, 2000))), shown);

const cell = (text, time, written) => el("td", {class: "number", title: `${shortened(written)} at ${moment(time * 1000)}`}, text);
