// As much of PromQL as it takes to colour a query, to find its selectors, and to know what may stand at the cursor. The
// text may be wrong or half written: the node decides what is an expression.

import {parts, withMatcher} from "./selector.js";

const TOKEN = /(#[^\r\n]*)|([A-Za-z_:][A-Za-z0-9_:]*)|("(?:[^"\\\n]|\\[^\n])*"?|'(?:[^'\\\n]|\\[^\n])*'?|`[^`]*`?)|((?:\.\d|\d)[0-9A-Za-z_.]*)|(==|=~|!=|!~|>=|<=|[-+*\/%^<>=@])|([()[\]{},])|[^\s]/gy;
const SPACE = /\s+/y;
const LABEL_LISTS = new Set(["by", "without", "on", "ignoring", "group_left", "group_right"]);
const BETWEEN = new Set(["and", "or", "unless", "atan2", "offset", "bool", "inf", "nan", ...LABEL_LISTS]);
const BINARY = new Set(["and", "or", "unless", "atan2"]);
const CLOSES = {")": "(", "]": "[", "}": "{"};

// Tokens as {kind, text, start, end}: comment, name, string, number, operator, the brackets and the comma by their own
// signs, and other. A string that does not end runs to the end of its line.
export function tokensOf(text) {
    const tokens = [];
    let brackets = 0;
    let at = 0;
    while (at < text.length) {
        SPACE.lastIndex = at;
        if (SPACE.test(text)) at = SPACE.lastIndex;
        if (at >= text.length) break;
        // In a range or subquery a colon is a sign, elsewhere a letter of names.
        if (brackets && text[at] === ":") {
            tokens.push({kind: ":", text: ":", start: at, end: at + 1});
            at += 1;
            continue;
        }
        TOKEN.lastIndex = at;
        const [whole, comment, name, string, number, operator, sign] = TOKEN.exec(text);
        const kind = comment !== undefined ? "comment" : name !== undefined ? "name" : string !== undefined ? "string" : number !== undefined ? "number" : operator !== undefined ? "operator" : sign ?? "other";
        if (sign === "[") brackets += 1;
        else if (sign === "]") brackets = Math.max(0, brackets - 1);
        tokens.push({kind, text: whole, start: at, end: at + whole.length});
        at += whole.length;
    }
    return tokens;
}

const isClosed = ({text}) => text.length > 1 && text.endsWith(text[0]) && (text[0] === "`" || !/(?:^|[^\\])(?:\\\\)*\\$/.test(text.slice(1, -1)));

const isWord = (token, words) => token?.kind === "name" && words.has(token.text.toLowerCase());

// Walks over the tokens that stand outside of comments, with the brackets that are open at each.
function walk(tokens, visit) {
    const open = [];
    tokens.forEach((token, place) => {
        if (token.kind in CLOSES) {
            while (open.length && open.pop().kind !== CLOSES[token.kind]);
        }
        visit(token, place, open);
        if (token.kind === "(" || token.kind === "[" || token.kind === "{") {
            open.push({kind: token.kind, place, isLabelList: token.kind === "(" && isWord(tokens[place - 1], LABEL_LISTS)});
        }
    });
    return open;
}

const withoutComments = tokens => tokens.filter(token => token.kind !== "comment");

const isMetric = (tokens, place) => tokens[place].kind === "name" && tokens[place + 1]?.kind !== "(" && !isWord(tokens[place], BETWEEN) && !isWord(tokens[place + 1], new Set(["by", "without"]));

// Where the selectors of a query stand: {start, end}. Braces that are not closed are left out.
export function selectorsOf(text) {
    const tokens = withoutComments(tokensOf(text));
    const found = [];
    walk(tokens, (token, place, open) => {
        const around = open.at(-1);
        if (around && (around.kind !== "(" || around.isLabelList)) return;
        if (token.kind === "{" && !(place > 0 && isMetric(tokens, place - 1))) add(place, place);
        else if (isMetric(tokens, place)) add(place, tokens[place + 1]?.kind === "{" ? place + 1 : null);
    });
    function add(place, brace) {
        if (brace === null) found.push({start: tokens[place].start, end: tokens[place].end});
        const close = brace === null ? -1 : tokens.findIndex((token, at) => at > brace && token.kind === "}");
        if (close >= 0) found.push({start: tokens[place].start, end: tokens[close].end});
    }
    return found;
}

// The selectors as texts, without those that are none and without doubles.
export function selectorTexts(text) {
    const texts = selectorsOf(text).map(({start, end}) => text.slice(start, end)).filter(one => parts(one) !== null);
    return [...new Set(texts)];
}

// The query with `label="value"` in each of its selectors. A metric's name takes the place of the one before if there is
// one selector, and of the whole query if there are several. null if nothing can be added.
export function narrowed(text, label, value) {
    const selectors = selectorsOf(text);
    if (!selectors.length || (label === "__name__" && selectors.length > 1)) {
        return !text.trim() || label === "__name__" ? withMatcher("", label, value) : null;
    }
    let changed = text;
    for (const {start, end} of selectors.reverse()) {
        const written = withMatcher(text.slice(start, end), label, value);
        if (written === null) return null;
        changed = changed.slice(0, start) + written + changed.slice(end);
    }
    return changed;
}

// What may stand at the cursor: {kind, prefix, start, end} and what the kind needs; null if there is nothing to offer.
// `start` to `end` is what a completion replaces.
export function contextAt(text, cursor) {
    const all = tokensOf(text);
    const current = all.find(token => token.start < cursor && (cursor < token.end || (cursor === token.end && goesOn(token))));
    if (current?.kind === "comment") return null;
    const before = withoutComments(all.filter(token => token.end <= cursor && token !== current));
    const open = walk(before, () => {});
    const around = open.at(-1);
    if (around?.kind === "{") return inBraces(text, cursor, {before, current, brace: around.place});
    if (current?.kind === "string") return null;
    const span = {prefix: current ? text.slice(current.start, cursor) : "", start: current?.start ?? cursor, end: current?.end ?? cursor};
    const last = before.at(-1);
    if (around?.isLabelList) {
        const given = before.slice(around.place + 1).filter(token => token.kind === "name").map(token => token.text);
        return ["(", ","].includes(last.kind) ? {kind: "label", ...span, selectors: selectorTexts(text), given} : null;
    }
    if (around?.kind === "[" || isWord(last, new Set(["offset"]))) return [":", "[", "name"].includes(last.kind) ? {kind: "duration", ...span} : null;
    if (current && current.kind !== "name") return null;
    if (last?.kind === "operator" && last.text === "@") return {kind: "at", ...span};
    return {kind: "expression", ...span, ...expected(before, last)};
}

// Whether a letter right behind the token belongs to it.
const goesOn = token => ["name", "number", "comment"].includes(token.kind) || (token.kind === "string" && !isClosed(token));

// Whether an operand or an operator is to follow, and the keywords that may stand there.
function expected(before, last) {
    if (last === undefined || last.kind === "(" || last.kind === ",") return {operand: true, keywords: []};
    if (last.kind === "operator" || isWord(last, BINARY)) return {operand: true, keywords: ["on", "ignoring", ...(/^(==|!=|[<>]=?)$/.test(last.text) ? ["bool"] : [])]};
    if (isWord(last, new Set(["bool"]))) return {operand: true, keywords: ["on", "ignoring"]};
    if (last.kind === ")") {
        const opening = openingOf(before);
        const word = before[opening - 1];
        if (isWord(word, new Set(["on", "ignoring"]))) return {operand: true, keywords: ["group_left", "group_right"]};
        if (isWord(word, LABEL_LISTS)) return {operand: true, keywords: ["and", "or", "unless"]};
        return {operand: false, keywords: ["and", "or", "unless", "by", "without", "offset", "atan2"]};
    }
    if (last.kind === "name") return {operand: false, keywords: ["by", "without", "and", "or", "unless", "offset", "atan2"]};
    return {operand: false, keywords: ["and", "or", "unless", "offset", "atan2"]};
}

function openingOf(tokens) {
    let depth = 0;
    for (let place = tokens.length - 1; place >= 0; place -= 1) {
        if (tokens[place].kind === ")") depth += 1;
        else if (tokens[place].kind === "(" && (depth -= 1) === 0) return place;
    }
    return 0;
}

function inBraces(text, cursor, {before, current, brace}) {
    const inside = before.slice(brace + 1);
    const named = before[brace - 1];
    const name = named && isMetric([...before, {kind: "end"}], brace - 1) ? named.text : "";
    const [last, oneBefore] = [inside.at(-1), inside.at(-2)];
    const matchers = completeSelector(name, inside);
    if (last?.kind === "operator" && oneBefore && ["name", "string"].includes(oneBefore.kind)) {
        if (current?.kind !== "string") return null;
        // The quote may be missing, and the string then ends at another one's beginning.
        const rest = text.slice(cursor, current.end);
        const isWhole = isClosed(current) && /^[^{}(),"'`]*["'`]$/.test(rest);
        const label = oneBefore.kind === "name" ? oneBefore.text : oneBefore.text.slice(1, -1);
        return {kind: "value", prefix: text.slice(current.start + 1, cursor), start: current.start, end: isWhole ? current.end : cursor, label, op: last.text, quote: current.text[0], selector: matchers};
    }
    if (last !== undefined && last.kind !== ",") return null;
    if (current && current.kind !== "name") return null;
    const given = inside.filter(token => token.kind === "name").map(token => token.text);
    const [start, end] = [current?.start ?? cursor, current?.end ?? cursor];
    const hasOperator = /^\s*[=!]/.test(text.slice(end));
    return {kind: "label", prefix: text.slice(start, cursor), start, end, selectors: matchers ? [matchers] : [], given, isMatcher: !hasOperator};
}

// The selector with the matchers that are complete; "" if there is none.
function completeSelector(name, inside) {
    const whole = [];
    inside.forEach((token, place) => {
        const [op, value] = [inside[place + 1], inside[place + 2]];
        if (op?.kind === "operator" && value?.kind === "string") whole.push(`${token.text}${op.text}${value.text}`);
    });
    const written = whole.length ? `${name}{${whole.join(", ")}}` : name;
    return written && parts(written) !== null ? written : "";
}

// Where a place that the node names, by line and column in code points from 1, lies in the text.
export function offsetOf(text, line, column) {
    const lines = text.split("\n");
    const before = lines.slice(0, line - 1).reduce((total, one) => total + one.length + 1, 0);
    const points = [...(lines[line - 1] ?? "")].slice(0, column - 1);
    return Math.min(text.length, before + points.join("").length);
}
