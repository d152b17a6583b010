// The part of PromQL that is needed to colour a query, to find its selectors, and to complete at the cursor. The text
// may be invalid or incomplete: only the node decides whether it is an expression.

import {parts, withMatcher} from "./selector.js";

const TOKEN = /(#[^\r\n]*)|([A-Za-z_:][A-Za-z0-9_:]*)|("(?:[^"\\\n]|\\[^\n])*"?|'(?:[^'\\\n]|\\[^\n])*'?|`[^`]*`?)|((?:\.\d|\d)[0-9A-Za-z_.]*)|(==|=~|!=|!~|>=|<=|[-+*\/%^<>=@])|([()[\]{},])|[^\s]/gy;
const SPACE = /\s+/y;
const LABEL_LISTS = new Set(["by", "without", "on", "ignoring", "group_left", "group_right"]);
const BETWEEN = new Set(["and", "or", "unless", "atan2", "offset", "bool", "inf", "nan", ...LABEL_LISTS]);
const BINARY = new Set(["and", "or", "unless", "atan2"]);
const CLOSES = {")": "(", "]": "[", "}": "{"};

// Tokens as {kind, text, start, end}. Kinds: comment, name, string, number, operator, other, and each bracket and comma
// as its own kind. An unterminated string ends at the end of its line.
export function tokensOf(text) {
    const tokens = [];
    let brackets = 0;
    let at = 0;
    while (at < text.length) {
        SPACE.lastIndex = at;
        if (SPACE.test(text)) at = SPACE.lastIndex;
        if (at >= text.length) break;
        // In brackets, a colon separates range and step. Elsewhere it is part of a name.
        if (brackets && text[at] === ":") {
            tokens.push({kind: ":", text: ":", start: at, end: at + 1});
            at += 1;
            continue;
        }
        TOKEN.lastIndex = at;
        const [matched, comment, name, string, number, operator, sign] = TOKEN.exec(text);
        const kind = comment !== undefined ? "comment" : name !== undefined ? "name" : string !== undefined ? "string" : number !== undefined ? "number" : operator !== undefined ? "operator" : sign ?? "other";
        if (sign === "[") brackets += 1;
        else if (sign === "]") brackets = Math.max(0, brackets - 1);
        tokens.push({kind, text: matched, start: at, end: at + matched.length});
        at += matched.length;
    }
    return tokens;
}

const isClosed = ({text}) => text.length > 1 && text.endsWith(text[0]) && (text[0] === "`" || !/(?:^|[^\\])(?:\\\\)*\\$/.test(text.slice(1, -1)));

const isWord = (token, words) => token?.kind === "name" && words.has(token.text.toLowerCase());

// Calls `visit` for each token, with the stack of open brackets. Returns those that are open at the end.
function visitTokens(tokens, visit) {
    const open = [];
    tokens.forEach((token, index) => {
        if (token.kind in CLOSES) {
            while (open.length && open.pop().kind !== CLOSES[token.kind]);
        }
        visit(token, index, open);
        if (token.kind === "(" || token.kind === "[" || token.kind === "{") {
            open.push({kind: token.kind, index, isLabelList: token.kind === "(" && isWord(tokens[index - 1], LABEL_LISTS)});
        }
    });
    return open;
}

const withoutComments = tokens => tokens.filter(token => token.kind !== "comment");

const isMetric = (tokens, index) => tokens[index].kind === "name" && tokens[index + 1]?.kind !== "(" && !isWord(tokens[index], BETWEEN) && !isWord(tokens[index + 1], new Set(["by", "without"]));

// The positions of a query's selectors: {start, end}. Selectors with unclosed braces are left out.
export function selectorsOf(text) {
    const tokens = withoutComments(tokensOf(text));
    const found = [];
    visitTokens(tokens, (token, index, open) => {
        const around = open.at(-1);
        if (around && (around.kind !== "(" || around.isLabelList)) return;
        if (token.kind === "{" && !(index > 0 && isMetric(tokens, index - 1))) add(index, index);
        else if (isMetric(tokens, index)) add(index, tokens[index + 1]?.kind === "{" ? index + 1 : null);
    });
    function add(index, brace) {
        if (brace === null) found.push({start: tokens[index].start, end: tokens[index].end});
        const close = brace === null ? -1 : tokens.findIndex((token, at) => at > brace && token.kind === "}");
        if (close >= 0) found.push({start: tokens[index].start, end: tokens[close].end});
    }
    return found;
}

// The selectors of a query as texts, without invalid ones and duplicates.
export function selectorTexts(text) {
    const texts = selectorsOf(text).map(({start, end}) => text.slice(start, end)).filter(one => parts(one) !== null);
    return [...new Set(texts)];
}

// The query with `label="value"` added to each selector. A metric name replaces the name of a single selector, or the
// whole query if there are several selectors. null if nothing can be added.
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

// What can be completed at the cursor: {kind, prefix, start, end} and fields of the kind; null if nothing. A completion
// replaces `start` to `end`.
export function contextAt(text, cursor) {
    const all = tokensOf(text);
    const current = all.find(token => token.start < cursor && (cursor < token.end || (cursor === token.end && goesOn(token))));
    if (current?.kind === "comment") return null;
    const before = withoutComments(all.filter(token => token.end <= cursor && token !== current));
    const open = visitTokens(before, () => {});
    const around = open.at(-1);
    if (around?.kind === "{") return inBraces(text, cursor, {before, current, brace: around.index});
    if (current?.kind === "string") return null;
    const span = {prefix: current ? text.slice(current.start, cursor) : "", start: current?.start ?? cursor, end: current?.end ?? cursor};
    const last = before.at(-1);
    if (around?.isLabelList) {
        const given = before.slice(around.index + 1).filter(token => token.kind === "name").map(token => token.text);
        return ["(", ","].includes(last.kind) ? {kind: "label", ...span, selectors: selectorTexts(text), given} : null;
    }
    if (around?.kind === "[" || isWord(last, new Set(["offset"]))) return [":", "[", "name"].includes(last.kind) ? {kind: "duration", ...span} : null;
    if (current && current.kind !== "name") return null;
    if (last?.kind === "operator" && last.text === "@") return {kind: "at", ...span};
    return {kind: "expression", ...span, ...expected(before, last)};
}

// Whether a letter directly after the token would belong to it.
const goesOn = token => ["name", "number", "comment"].includes(token.kind) || (token.kind === "string" && !isClosed(token));

// Whether an operand or an operator is expected, and the possible keywords.
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
    for (let index = tokens.length - 1; index >= 0; index -= 1) {
        if (tokens[index].kind === ")") depth += 1;
        else if (tokens[index].kind === "(" && (depth -= 1) === 0) return index;
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
        // If the closing quote is missing, the string ends at the opening quote of the next one.
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

// The selector with its complete matchers; "" if there is none.
function completeSelector(name, inside) {
    const complete = [];
    inside.forEach((token, index) => {
        const [op, value] = [inside[index + 1], inside[index + 2]];
        if (op?.kind === "operator" && value?.kind === "string") complete.push(`${token.text}${op.text}${value.text}`);
    });
    const written = complete.length ? `${name}{${complete.join(", ")}}` : name;
    return written && parts(written) !== null ? written : "";
}

// The offset in the text of a line and column, which the node counts in code points from 1.
export function offsetOf(text, line, column) {
    const lines = text.split("\n");
    const before = lines.slice(0, line - 1).reduce((total, one) => total + one.length + 1, 0);
    const points = [...(lines[line - 1] ?? "")].slice(0, column - 1);
    return Math.min(text.length, before + points.join("").length);
}
