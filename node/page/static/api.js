// Requests to the node's API. An answer is `{data, warnings, infos}`; failures throw an `ApiError`.

const TOKEN = "strandline-token";
const MAX_URL_LENGTH = 4000;

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
    // Without session storage, the token must be entered again after a reload.
}

export const hasToken = () => token !== "";

export function useToken(given) {
    token = given;
    try {
        sessionStorage.setItem(TOKEN, given);
    } catch {
        // See above.
    }
}

// `onAnswer` is called for each answer, `onUnauthorized` for each answer that requires a token, and `onUnreachable` for
// each request without an answer.
export const listeners = {onAnswer: () => {}, onUnauthorized: () => {}, onUnreachable: () => {}};

// Sends an operator's command. The admin token is only kept in memory.
export async function command(path, adminToken) {
    let response;
    let body;
    try {
        response = await fetch(`/api/v1/${path}`, {method: "POST", headers: {Authorization: `Bearer ${adminToken}`}, cache: "no-store", credentials: "same-origin"});
        body = await response.text();
    } catch {
        listeners.onUnreachable();
        throw new ApiError("the node does not answer; check the job before you try again", {unreachable: true});
    }
    listeners.onAnswer();
    const document = parsed(body);
    if (document?.status !== "success") {
        throw new ApiError(document?.error || `the node answered ${response.status} ${response.statusText}`.trim(), {status: response.status});
    }
    return document.data;
}

export async function request(path, parameters = {}, signal = undefined) {
    const query = new URLSearchParams();
    for (const [name, given] of Object.entries(parameters)) {
        for (const one of Array.isArray(given) ? given : [given]) {
            if (one !== null && one !== undefined && one !== "") query.append(name, one);
        }
    }
    const headers = token ? {Authorization: `Bearer ${token}`} : {};
    // Long selectors would make the URL too long.
    const posted = query.toString().length > MAX_URL_LENGTH;
    const sent = {headers, signal, cache: "no-store", credentials: "same-origin", ...(posted ? {method: "POST", body: query} : {})};
    let response;
    let body;
    try {
        response = await fetch(`/api/v1/${path}${posted ? "" : `?${query}`}`, sent);
        body = await response.text();
    } catch (error) {
        if (wasAborted(error)) throw error;
        listeners.onUnreachable();
        throw new ApiError("the node does not answer", {unreachable: true});
    }
    listeners.onAnswer();
    if (response.status === 401 || response.status === 403) {
        listeners.onUnauthorized();
        throw new ApiError("the node requires a token", {status: response.status});
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

// Runs requests of one kind. A new request aborts the previous one.
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
