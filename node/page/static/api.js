// Questions to the node. An answer is `{data, warnings, infos}`; what went wrong is an `ApiError` in words.

const TOKEN = "strandline-token";
const LONGEST_ADDRESS = 4000;

export class ApiError extends Error {
    constructor(message, {status = 0, unreachable = false} = {}) {
        super(message);
        this.status = status;
        this.unreachable = unreachable;
    }
}

export const wasAborted = error => error instanceof DOMException && error.name === "AbortError";

let token = "";
try {
    token = sessionStorage.getItem(TOKEN) || "";
} catch {
    // Then it is asked for again after a reload.
}

export const hasToken = () => token !== "";

export function useToken(given) {
    token = given;
    try {
        sessionStorage.setItem(TOKEN, given);
    } catch {
        // As above.
    }
}

// `heard` is told of each answer, `refused` of each that asked for a token, and `unheard` of each that did not come.
export const listeners = {heard: () => {}, refused: () => {}, unheard: () => {}};

// Has an operator's wish carried out, with a token of its own that is not kept beyond the page's life.
export async function command(path, adminToken) {
    let response;
    let body;
    try {
        response = await fetch(`/api/v1/${path}`, {method: "POST", headers: {Authorization: `Bearer ${adminToken}`}, cache: "no-store", credentials: "same-origin"});
        body = await response.text();
    } catch {
        listeners.unheard();
        throw new ApiError("the node does not answer; look at the job before you try again", {unreachable: true});
    }
    listeners.heard();
    const document = parsed(body);
    if (document?.status !== "success") {
        throw new ApiError(document?.error || `the node answered ${response.status} ${response.statusText}`.trim(), {status: response.status});
    }
    return document.data;
}

export async function ask(path, parameters = {}, signal = undefined) {
    const query = new URLSearchParams();
    for (const [name, given] of Object.entries(parameters)) {
        for (const one of Array.isArray(given) ? given : [given]) {
            if (one !== null && one !== undefined && one !== "") query.append(name, one);
        }
    }
    const headers = token ? {Authorization: `Bearer ${token}`} : {};
    // A long selector is longer than an address should be.
    const posted = query.toString().length > LONGEST_ADDRESS;
    const sent = {headers, signal, cache: "no-store", credentials: "same-origin", ...(posted ? {method: "POST", body: query} : {})};
    let response;
    let body;
    try {
        response = await fetch(`/api/v1/${path}${posted ? "" : `?${query}`}`, sent);
        body = await response.text();
    } catch (error) {
        if (wasAborted(error)) throw error;
        listeners.unheard();
        throw new ApiError("the node does not answer", {unreachable: true});
    }
    listeners.heard();
    if (response.status === 401 || response.status === 403) {
        listeners.refused();
        throw new ApiError("the node asks for a token", {status: response.status});
    }
    const document = parsed(body);
    if (document === null || typeof document !== "object") {
        throw new ApiError(`the node answered ${response.status} ${response.statusText}`.trim(), {status: response.status});
    }
    if (document.status !== "success") {
        throw new ApiError(document.error || `the node answered ${response.status}`, {status: response.status});
    }
    return {data: document.data, warnings: document.warnings || [], infos: document.infos || []};
}

function parsed(body) {
    try {
        return JSON.parse(body);
    } catch {
        return null;
    }
}

// Of several questions of one kind only the newest is wanted: it aborts the one before.
export class Latest {
    #controller = null;

    async run(work) {
        this.#controller?.abort();
        const controller = new AbortController();
        this.#controller = controller;
        return work(controller.signal);
    }

    abort() {
        this.#controller?.abort();
    }
}
