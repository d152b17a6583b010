// Parses PromQL selectors, to add matchers to them.

const PLAIN_METRIC = /^[A-Za-z_:][A-Za-z0-9_:]*$/;
const PLAIN_LABEL = /^[A-Za-z_][A-Za-z0-9_]*$/;
const NO_METRICS = new Set(["atan2", "bool", "group_left", "group_right", "ignoring", "inf", "nan", "on"]);
const TOKEN = /(?:[ \t\r\n]|#[^\r\n]*)*(?:([A-Za-z_:][A-Za-z0-9_:]*)|("(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*'|`[^`]*`)|(=~|!~|!=|=)|([{},])|$)/y;

// All JSON escapes are valid in Go, too.
export const quoted = text => JSON.stringify(text);

export const isPlainMetric = name => PLAIN_METRIC.test(name) && !NO_METRICS.has(name.toLowerCase());

export const isPlainLabel = name => PLAIN_LABEL.test(name);

const writtenLabel = label => (isPlainLabel(label) ? label : quoted(label));

// The name and matchers of a selector, with quoted values; null if it is invalid.
export function parts(text) {
    const tokens = tokensOf(text);
    if (tokens === null) return null;
    let index = 0;
    const take = kind => (tokens[index]?.kind === kind ? tokens[index++].text : null);
    const name = take("name");
    const matchers = [];
    if (take("{") !== null) {
        while (take("}") === null) {
            const label = take("name") ?? take("string");
            if (label === null) return null;
            const op = take("op");
            if (op === null) {
                if (PLAIN_METRIC.test(label)) return null;
                matchers.push({label: "__name__", op: "=", value: label});
            } else {
                const value = take("string");
                if (value === null) return null;
                matchers.push({label: unquoted(label), op, value});
            }
            if (take(",") === null && tokens[index]?.kind !== "}") return null;
        }
    } else if (name === null && tokens.length) return null;
    return index === tokens.length ? {name, matchers} : null;
}

function unquoted(label) {
    if (!/^["'`]/.test(label)) return label;
    try {
        return JSON.parse(label);
    } catch {
        return label.slice(1, -1);
    }
}

function tokensOf(text) {
    const tokens = [];
    TOKEN.lastIndex = 0;
    for (;;) {
        const found = TOKEN.exec(text);
        if (found === null) return null;
        const [, name, string, op, mark] = found;
        if (name !== undefined) tokens.push({kind: "name", text: name});
        else if (string !== undefined) tokens.push({kind: "string", text: string});
        else if (op !== undefined) tokens.push({kind: "op", text: op});
        else if (mark !== undefined) tokens.push({kind: mark, text: mark});
        else return tokens;
    }
}

// The selector with `label="value"` instead of its matchers of that label; null if the selector is invalid.
export function withMatcher(text, label, value) {
    const known = parts(text);
    if (known === null) return null;
    const others = known.matchers.filter(one => one.label !== label);
    if (label === "__name__") {
        if (isPlainMetric(value)) return selectorOf(value, others);
        return selectorOf(null, [{label, op: "=", value: quoted(value)}, ...others]);
    }
    return selectorOf(known.name, [...others, {label, op: "=", value: quoted(value)}]);
}

// A selector from a metric name or null, and matchers with quoted values.
export function selectorOf(name, matchers) {
    const inside = matchers.map(one => `${writtenLabel(one.label)}${one.op}${one.value}`).join(", ");
    return (name ?? "") + (inside || name === null ? `{${inside}}` : "");
}

// A label set in PromQL's notation, without the labels in `leftOut`.
export function seriesText(labels, leftOut = new Set()) {
    const {__name__: name, ...others} = labels;
    const inside = Object.entries(others).filter(([label]) => !leftOut.has(label)).map(([label, value]) => `${writtenLabel(label)}=${quoted(value)}`);
    const shownName = name !== undefined && !leftOut.has("__name__") ? name : "";
    return shownName + (inside.length || !shownName ? `{${inside.join(", ")}}` : "");
}
