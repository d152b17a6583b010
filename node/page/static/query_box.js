// The editor of a query: syntax colours, completions, and a mark at the position of an error.

import {Latest, wasAborted} from "./api.js";
import {namesFor, wordsFor} from "./completions.js";
import {el, setAttribute, setText, show} from "./dom.js";
import {AGGREGATIONS, FUNCTIONS, KEYWORDS} from "./language.js";
import {contextAt, offsetOf, tokensOf} from "./promql.js";
import {shortened} from "./tops.js";

const DEBOUNCE = 120;
const MAX_OPTIONS = 40;
const CALLED = new Set([...FUNCTIONS, ...AGGREGATIONS].map(word => word.name));
const WORDS = new Set(KEYWORDS.map(word => word.name));
const PLACE = /(?:^|[^\d:])(\d+):(\d+): parse error: /;

export class QueryBox {
    #requests = new Latest();
    #timer = 0;
    #options = [];
    #context = null;
    #active = -1;
    #fault = null;

    // `times` returns the range in which names and values are looked up, in seconds.
    constructor({box, backdrop, list, status}, times) {
        this.box = box;
        this.backdrop = backdrop;
        this.list = list;
        this.status = status;
        this.times = times;
        box.addEventListener("input", () => {
            this.clearFault();
            this.#plan();
        });
        box.addEventListener("keydown", event => this.#key(event));
        box.addEventListener("blur", () => this.close());
        // A click in the text moves the cursor away from what the list completes.
        box.addEventListener("pointerdown", () => this.close());
        // Keeps the focus in the box while an option is selected.
        list.addEventListener("pointerdown", event => event.preventDefault());
        list.addEventListener("click", event => {
            const index = [...list.children].indexOf(event.target.closest("[role=option]"));
            if (index >= 0) this.#accept(index);
        });
    }

    get value() {
        return this.box.value.trim();
    }

    set value(text) {
        if (this.box.value !== text) this.box.value = text;
        this.close();
        this.clearFault();
    }

    // Marks the position in an error message, and returns the message to show; the same message if it has no position.
    markFault(message) {
        const found = PLACE.exec(message);
        if (found === null) return message;
        const [line, column] = [Number(found[1]), Number(found[2])];
        // Positions refer to the trimmed text.
        const blanks = this.box.value.length - this.box.value.trimStart().length;
        const start = blanks + offsetOf(this.value, line, column);
        const token = tokensOf(this.box.value).find(one => one.start <= start && start < one.end);
        this.#fault = {start: token?.start ?? start, end: token?.end ?? start + 1};
        setAttribute(this.box, "aria-invalid", "true");
        this.#paint();
        const fault = message.slice(found.index).replace(PLACE, "");
        return `Line ${line}, column ${column}: ${fault}`;
    }

    clearFault() {
        this.#fault = null;
        setAttribute(this.box, "aria-invalid", null);
        this.#paint();
    }

    close() {
        clearTimeout(this.#timer);
        this.#requests.abort();
        this.#show([], null);
    }

    #plan() {
        clearTimeout(this.#timer);
        this.#requests.abort();
        this.#timer = setTimeout(() => this.#complete(), DEBOUNCE);
    }

    async #complete() {
        const {value, selectionStart, selectionEnd} = this.box;
        const context = selectionStart === selectionEnd ? contextAt(value, selectionStart) : null;
        if (context === null) return this.#show([], null);
        const words = wordsFor(context, value.slice(context.end));
        this.#show(words, context);
        try {
            const names = await this.#requests.run(signal => namesFor(context, this.times(), signal));
            if (names.length) this.#show(context.kind === "expression" ? [...words.slice(0, MAX_OPTIONS / 2), ...names] : names, context);
        } catch (error) {
            // Errors only mean fewer completions.
            if (!wasAborted(error)) this.#show(words, context);
        }
    }

    #show(options, context) {
        // The text at the cursor itself is not shown as its only completion.
        const isWritten = context !== null && options.length === 1 && options[0].insert === this.box.value.slice(context.start, context.end);
        const before = this.#active >= 0 ? this.#options[this.#active] : null;
        this.#options = isWritten ? [] : options.slice(0, MAX_OPTIONS);
        this.#context = context;
        this.list.replaceChildren(...this.#options.map((option, index) => el(
            "li", {role: "option", id: `completion-${index}`, "aria-selected": "false", title: shortened(option.text)},
            el("bdi", {class: "word"}, shortened(option.text)), el("span", {class: "detail"}, option.detail), el("span", {class: "kind"}, option.kind),
        )));
        this.#activate(before === null ? -1 : this.#options.findIndex(option => option.text === before.text && option.kind === before.kind));
        const isOpen = this.#options.length > 0;
        show(this.list, isOpen);
        setAttribute(this.box, "aria-expanded", String(isOpen));
        setText(this.status, isOpen ? `${this.#options.length} completions` : "");
    }

    #activate(index) {
        this.list.children[this.#active]?.setAttribute("aria-selected", "false");
        this.#active = index;
        const active = this.list.children[index];
        active?.setAttribute("aria-selected", "true");
        setAttribute(this.box, "aria-activedescendant", active?.id ?? null);
        if (active) this.list.scrollTop = Math.max(active.offsetTop + active.offsetHeight - this.list.clientHeight, Math.min(this.list.scrollTop, active.offsetTop));
    }

    #accept(index) {
        const {insert, back} = this.#options[index];
        const {start, end, kind} = this.#context;
        this.#show([], null);
        this.box.focus();
        this.box.setSelectionRange(start, end);
        // Unlike setRangeText, this can be undone by the user.
        if (!document.execCommand("insertText", false, insert)) this.box.setRangeText(insert, start, end);
        this.box.setSelectionRange(start + insert.length - back, start + insert.length - back);
        this.clearFault();
        // After a label name, complete its values.
        if (kind === "label" && back) this.#plan();
        else clearTimeout(this.#timer);
    }

    #key(event) {
        if (event.isComposing || event.altKey || event.metaKey) return;
        const count = this.#options.length;
        const taken = () => {
            event.preventDefault();
            event.stopPropagation();
        };
        if (event.ctrlKey) {
            if (event.key !== " ") return;
            taken();
            this.#complete();
        } else if (event.key === "Enter" && !event.shiftKey) {
            taken();
            if (this.#active >= 0) this.#accept(this.#active);
            else this.box.form.requestSubmit();
        } else if (!count) return;
        else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            taken();
            const [first, step] = event.key === "ArrowDown" ? [0, 1] : [count - 1, -1];
            this.#activate(this.#active < 0 ? first : (this.#active + step + count) % count);
        } else if (event.key === "Tab" && !event.shiftKey) {
            taken();
            this.#accept(Math.max(0, this.#active));
        } else if (event.key === "Escape") {
            taken();
            this.close();
        }
    }

    // The box's own text is transparent. This draws the same text behind it, with colours and the error mark.
    #paint() {
        const text = this.box.value;
        const {start: faultStart, end: faultEnd} = this.#fault ?? {start: -1, end: -1};
        const pieces = [];
        let at = 0;
        const push = (end, colour) => {
            const isFault = at >= faultStart && end <= faultEnd;
            const piece = text.slice(at, end);
            if (piece) pieces.push(colour || isFault ? el("span", {class: `${colour} ${isFault ? "fault" : ""}`.trim()}, piece) : piece);
            at = end;
        };
        const pushBlank = end => {
            // Between tokens, only the marked blanks get the mark.
            for (const cut of [faultStart, faultEnd]) if (at < cut && cut < end) push(cut, "");
            push(end, "");
        };
        const tokens = tokensOf(text);
        for (const [index, token] of tokens.entries()) {
            pushBlank(token.start);
            push(token.end, colourOf(token, tokens[index + 1]));
        }
        pushBlank(text.length);
        // An error at the end of the text is marked on an added blank.
        if (faultStart >= text.length) pieces.push(el("span", {class: "fault"}, "\u00a0"));
        // An empty last line needs a character to have a height.
        this.backdrop.replaceChildren(...pieces, "\u200b");
    }
}

function colourOf(token, next) {
    if (token.kind !== "name") return {string: "string", number: "number", comment: "comment"}[token.kind] ?? "";
    if (WORDS.has(token.text.toLowerCase())) return "keyword";
    const isCalled = next?.kind === "(" || (next?.kind === "name" && WORDS.has(next.text.toLowerCase()));
    return isCalled && CALLED.has(token.text) ? "function" : "";
}
