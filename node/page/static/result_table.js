// The result of an instant query as a table: a row per series, or one for a scalar or a string.

import {el} from "./dom.js";
import {moment, parsed, value} from "./format.js";
import {seriesText} from "./selector.js";
import {shortened} from "./tops.js";

export const MAX_ROWS = 200;
const MAX_SAMPLES = 20;

// Returns the number of rows.
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
    return result.slice(0, MAX_ROWS).map(({metric, value: point, values: points}) => {
        const name = seriesText(metric);
        if (point) return row(name, cell(value(parsed(point[1])), point[0], point[1]));
        const newest = points.slice(-MAX_SAMPLES).reverse();
        const lines = newest.map(([time, written]) => el("div", {}, `${value(parsed(written))} at ${moment(time * 1000).slice(11)}`));
        const more = points.length - newest.length;
        return row(name, el("td", {class: "number"}, ...lines, more ? el("div", {class: "note"}, `and ${more} older`) : null));
    });
}

const row = (name, shown) => el("tr", {}, el("td", {}, el("bdi", {title: shortened(name)}, name.slice(0, 2000))), shown);

const cell = (text, time, written) => el("td", {class: "number", title: `${shortened(written)} at ${moment(time * 1000)}`}, text);
