// Creates and updates elements. Texts are always inserted as text, never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = id => document.getElementById(id);

export function el(name, attributes = {}, ...children) {
    return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
    return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter(child => child !== null && child !== undefined));
    return element;
}

// Only changes what differs, so that a refresh keeps the selection and the focus.
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
    if (value === null || value === undefined) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function show(element, shown) {
    if (element.hidden === shown) element.hidden = !shown;
}

// Shows a text, or hides the element if the text is empty.
export function setMessage(element, text) {
    setText(element, text || "");
    show(element, Boolean(text));
}

export function setMessages(list, texts) {
    const before = [...list.children].map(item => item.textContent);
    if (before.length !== texts.length || before.some((text, index) => text !== texts[index])) {
        list.replaceChildren(...texts.map(text => el("li", {}, text)));
    }
    show(list, texts.length > 0);
}

// States differ in shape, not only in colour.
const SHAPES = {
    ok: "M3.5 8.4l3 3 6-6.8",
    work: "M8 2.5a5.5 5.5 0 1 1-5.5 5.5M8 5v3.2l2 1.6",
    bad: "M4 4l8 8M12 4l-8 8",
    off: "M3.5 8h9",
};

export function icon(state) {
    return svg("svg", {class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true"}, svg("path", {d: SHAPES[state]}));
}

export function badge(element, state, text) {
    if (element.dataset.state === state && element.textContent === text && element.firstElementChild) return;
    element.dataset.state = state;
    element.replaceChildren(icon(state), text);
}
