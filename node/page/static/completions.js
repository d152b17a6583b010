// Completions at the cursor: words of PromQL, and names and values from the node. Every list has a limit.

import {request} from "./api.js";
import {AGGREGATIONS, FUNCTIONS, KEYWORDS} from "./language.js";
import {isPlainLabel, isPlainMetric, parts, quoted, selectorOf} from "./selector.js";

const MAX_COMPLETIONS = 20;
// Label names are filtered by prefix here.
const MAX_LABELS = 500;
const MAX_VALUE_LENGTH = 500;
const DURATIONS = ["1m", "5m", "15m", "30m", "1h", "6h", "1d", "1w"];
const MEANINGS = new Map(KEYWORDS.map(word => [word.name, word]));

// A completion is {text, kind, detail, insert, back}: `insert` replaces the text at the cursor, and the cursor is then
// `back` characters before its end.
const plain = (text, kind, detail = "", insert = text, back = 0) => ({text, kind, detail, insert, back});

// Completions that need no request.
export function wordsFor(context, after) {
    const {kind, prefix} = context;
    if (kind === "duration") return DURATIONS.filter(one => one.startsWith(prefix)).map(one => plain(one, "duration"));
    if (kind === "at") return ["start()", "end()"].filter(one => one.startsWith(prefix)).map(one => plain(one, "keyword", one === "start()" ? "Start of the query" : "End of the query"));
    if (kind !== "expression") return [];
    const keywords = context.keywords.filter(name => name.startsWith(prefix)).map(name => plain(name, "keyword", MEANINGS.get(name).summary, `${name} `));
    if (!context.operand || !prefix) return keywords;
    const call = ({name, signature, summary}, word) => {
        if (after.startsWith("(")) return plain(name, word, `${signature} ${summary}`);
        return plain(name, word, `${signature} ${summary}`, `${name}()`, signature === "()" ? 0 : 1);
    };
    const words = [...AGGREGATIONS.map(one => call(one, "aggregation")), ...FUNCTIONS.map(one => call(one, "function"))];
    const begin = words.filter(one => one.text.startsWith(prefix));
    const contain = prefix.length > 2 ? words.filter(one => !one.text.startsWith(prefix) && one.text.includes(prefix)) : [];
    return [...begin, ...contain, ...keywords].slice(0, MAX_COMPLETIONS);
}

// Completions from the node, for the range of times that is shown.
export async function namesFor(context, times, signal) {
    switch (context.kind) {
        case "expression": return context.operand && context.prefix ? metrics(context, times, signal) : [];
        case "label": return labels(context, times, signal);
        case "value": return values(context, times, signal);
        default: return [];
    }
}

async function metrics({prefix}, times, signal) {
    const {data} = await request("label/__name__/values", {"match[]": `{__name__=~${quoted(`${literal(prefix)}.*`)}}`, ...times, limit: MAX_COMPLETIONS}, signal);
    return data.slice(0, MAX_COMPLETIONS).map(name => plain(name, "metric", "", isPlainMetric(name) ? name : `{${quoted(name)}}`));
}

async function labels({prefix, selectors, given, isMatcher}, times, signal) {
    const {data} = await request("labels", {"match[]": selectors.map(accepted), ...times, limit: MAX_LABELS}, signal);
    const left = data.filter(name => name.startsWith(prefix) && name !== "__name__" && !given.includes(name));
    return left.slice(0, MAX_COMPLETIONS).map(name => {
        const written = isPlainLabel(name) ? name : quoted(name);
        return isMatcher ? plain(name, "label", "", `${written}=""`, 1) : plain(name, "label", "", written);
    });
}

// The node refuses selectors without a metric name whose matchers all match the empty string.
function accepted(selector) {
    const {name, matchers} = parts(selector);
    return name === null ? selectorOf(null, [...matchers, {label: "__name__", op: "!=", value: '""'}]) : selector;
}

async function values({prefix, label, op, quote, selector}, times, signal) {
    const isExpression = op === "=~" || op === "!~";
    // Completes the last alternative of a regular expression.
    const [head, begun] = isExpression ? split(prefix) : ["", prefix];
    const known = parts(selector) ?? {name: null, matchers: []};
    const wanted = begun ? {label, op: "=~", value: quoted(`${literal(begun)}.*`)} : {label, op: "!=", value: '""'};
    const match = selectorOf(known.name, [...known.matchers, wanted]);
    const {data} = await request(`label/${encodeURIComponent(label)}/values`, {"match[]": match, ...times, limit: MAX_COMPLETIONS}, signal);
    const escaped = {"\"": text => quoted(text).slice(1, -1), "'": text => quoted(text).slice(1, -1).replaceAll("\\\"", "\"").replaceAll("'", "\\'"), "`": text => text}[quote];
    return data.filter(value => value && value.length <= MAX_VALUE_LENGTH && !(quote === "`" && value.includes("`"))).slice(0, MAX_COMPLETIONS).map(value => {
        const written = escaped(isExpression ? literal(value) : value);
        return plain(value, "value", "", `${quote}${head}${written}${quote}`);
    });
}

function split(prefix) {
    const at = prefix.lastIndexOf("|") + 1;
    return [prefix.slice(0, at), prefix.slice(at)];
}

// Escapes a text for a regular expression.
const literal = text => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
