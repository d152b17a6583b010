// The box that a query is written in: coloured, with completions below it, and with a mark where an error is.

import {Latest, wasAborted} from "./api.js";
import {namesFor, wordsFor} from "./completions.js";
import {el, setAttribute, setText, show} from "./dom.js";
import {AGGREGATIONS, FUNCTIONS, KEYWORDS} from "./language.js";
import {contextAt, offsetOf, tokensOf} from "./promql.js";
import {shortened} from "./tops.js";

const DEBOUNCE = 120;
const MOST_OPTIONS = 40;
const CALLED = new Set([...FUNCTIONS, ...AGGREGATIONS].map(word => word.name));
const WORDS = new Set(KEYWORDS.map(word => word.name));
const PLACE = /(?:^|[^\d:])(\d+):(\d+): parse error: /;

export class QueryBox {
    #asked = new Latest();
    #timer = 0;
    #options = [];
    #context = null;
    #active = -1;
    #fault = null;

    // `times` gives the seconds that names and values are looked up in.
    constructor({box, backdrop, list, told}, times) {
        this.box = box;
        this.backdrop = backdrop;
        this.list = list;
        this.told = told;
        this.times = times;
        box.addEventListener("input", () => {
            this.clearFault();
            this.#plan();
        });
        box.addEventListener("keydown", event => this.#key(event));
        box.addEventListener("blur", () => this.close());
        // A click elsewhere in the text is about another place than the list.
        box.addEventListener("pointerdown", () => this.close());
        // The box keeps the focus while an option is chosen.
        list.addEventListener("pointerdown", event => event.preventDefault());
        list.addEventListener("click", event => {
            const place = [...list.children].indexOf(event.target.closest("[role=option]"));
            if (place >= 0) this.#accept(place);
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

    // Marks the place that an error names, and gives the error in words; the error as it is if it names none.
    markFault(message) {
        const found = PLACE.exec(message);
        if (found === null) return message;
        const [line, column] = [Number(found[1]), Number(found[2])];
        // The node was asked about the text without the blanks around it.
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
        this.#asked.abort();
        this.#show([], null);
    }

    #plan() {
        clearTimeout(this.#timer);
        this.#asked.abort();
        this.#timer = setTimeout(() => this.#complete(), DEBOUNCE);
    }

    async #complete() {
        const {value, selectionStart, selectionEnd} = this.box;
        const context = selectionStart === selectionEnd ? contextAt(value, selectionStart) : null;
        if (context === null) return this.#show([], null);
        const words = wordsFor(context, value.slice(context.end));
        this.#show(words, context);
        try {
            const names = await this.#asked.run(signal => namesFor(context, this.times(), signal));
            if (names.length) this.#show(context.kind === "expression" ? [...words.slice(0, MOST_OPTIONS / 2), ...names] : names, context);
        } catch (error) {
            // Without completions one writes the name.
            if (!wasAborted(error)) this.#show(words, context);
        }
    }

    #show(options, context) {
        // What stands there already is no completion.
        const isWritten = context !== null && options.length === 1 && options[0].insert === this.box.value.slice(context.start, context.end);
        const before = this.#active >= 0 ? this.#options[this.#active] : null;
        this.#options = isWritten ? [] : options.slice(0, MOST_OPTIONS);
        this.#context = context;
        this.list.replaceChildren(...this.#options.map((option, place) => el(
            "li", {role: "option", id: `completion-${place}`, "aria-selected": "false", title: shortened(option.text)},
            el("bdi", {class: "word"}, shortened(option.text)), el("span", {class: "detail"}, option.detail), el("span", {class: "kind"}, option.kind),
        )));
        this.#activate(before === null ? -1 : this.#options.findIndex(option => option.text === before.text && option.kind === before.kind));
        const isOpen = this.#options.length > 0;
        show(this.list, isOpen);
        setAttribute(this.box, "aria-expanded", String(isOpen));
        setText(this.told, isOpen ? `${this.#options.length} completions` : "");
    }

    #activate(place) {
        this.list.children[this.#active]?.setAttribute("aria-selected", "false");
        this.#active = place;
        const active = this.list.children[place];
        active?.setAttribute("aria-selected", "true");
        setAttribute(this.box, "aria-activedescendant", active?.id ?? null);
        if (active) this.list.scrollTop = Math.max(active.offsetTop + active.offsetHeight - this.list.clientHeight, Math.min(this.list.scrollTop, active.offsetTop));
    }

    #accept(place) {
        const {insert, back} = this.#options[place];
        const {start, end, kind} = this.#context;
        this.#show([], null);
        this.box.focus();
        this.box.setSelectionRange(start, end);
        // Unlike setRangeText this can be undone by a key.
        if (!document.execCommand("insertText", false, insert)) this.box.setRangeText(insert, start, end);
        this.box.setSelectionRange(start + insert.length - back, start + insert.length - back);
        this.clearFault();
        // The values of a label follow its name; behind a value there is nothing to offer yet.
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

    // The text again behind the box, whose own letters are transparent, in colours and with the mark.
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
            // Between tokens the mark stands on a blank alone.
            for (const cut of [faultStart, faultEnd]) if (at < cut && cut < end) push(cut, "");
            push(end, "");
        };
        const tokens = tokensOf(text);
        for (const [place, token] of tokens.entries()) {
            pushBlank(token.start);
            push(token.end, colourOf(token, tokens[place + 1]));
        }
        pushBlank(text.length);
        // Behind the last letter there is none to mark.
        if (faultStart >= text.length) pieces.push(el("span", {class: "fault"}, "\u00a0"));
        // A last line that is empty needs something in it to have a height.
        this.backdrop.replaceChildren(...pieces, "\u200b");
    }
}

function colourOf(token, next) {
    if (token.kind !== "name") return {string: "string", number: "number", comment: "comment"}[token.kind] ?? "";
    if (WORDS.has(token.text.toLowerCase())) return "keyword";
    const isCalled = next?.kind === "(" || (next?.kind === "name" && WORDS.has(next.text.toLowerCase()));
    return isCalled && CALLED.has(token.text) ? "function" : "";
}
