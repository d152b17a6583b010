// Bulk jobs: a table that is updated in place, details of expanded jobs, and operators' commands.

import {request, command} from "./api.js";
import {badge, byId, el, setMessage, setAttribute, setText, show} from "./dom.js";
import {count, duration, exact, local, moment, percent, plural} from "./format.js";
import {JobRates} from "./job_rates.js";

const DAY = 86_400_000;
const ENDED = ["done", "failed", "cancelled"];
const MAX_ENDED = 5;
const COLUMNS = 8;
const RATES_EVERY = 10_000;
const MIN_OBSERVED = 8000;
const MANY_ERRORS = 0.01;
const STATES = {planned: "off", running: "work", paused: "off", broken: "bad", completing: "work", done: "ok", failed: "bad", cancelled: "off"};

const VERBS = {
    pause: {
        name: "Pause", title: "Pause this job?", yes: "Pause",
        text: "Workers release its parts within seconds. What has landed stays, and is not sent again when the job is resumed.",
        applies: job => ["planned", "running"].includes(job.state) && !job.wanted,
    },
    resume: {
        name: "Resume", title: "Resume this job?", yes: "Resume",
        text: "Workers continue the job. Failed parts are retried, and the error rate is counted from zero.",
        applies: job => ["paused", "broken", "failed"].includes(job.state) && !job.wanted,
    },
    cancel: {
        name: "Cancel", title: "Cancel this job permanently?", yes: "Cancel the job",
        text: "It can't be resumed. What has landed stays.",
        applies: job => ["planned", "running", "paused", "broken"].includes(job.state) && job.wanted !== "cancelled",
    },
};

export const isGoing = (job, now) => ["running", "completing"].includes(job.state) || (job.state === "planned" && job.due_at <= now) || Boolean(job.wanted);

export function stateOf(job, now) {
    if (job.wanted) return ["work", job.wanted === "paused" ? "Pausing" : "Cancelling"];
    if (job.state === "planned" && job.due_at > now) return ["off", `Due in ${duration((job.due_at - now) / 1000)}`];
    return [STATES[job.state] ?? "off", job.state.charAt(0).toUpperCase() + job.state.slice(1)];
}

// The records per second of a job and its remaining time, from successive answers.
class ProgressRate {
    #before = null;
    #first = null;
    rate = null;
    left = null;

    update(job, now) {
        if (job.state !== "running") {
            this.#before = this.#first = this.rate = this.left = null;
            return;
        }
        const records = job.counts.records;
        // A new attempt at a part lowers the counts.
        if (this.#before === null || records < this.#before.records) [this.#before, this.rate] = [{records, now}, null];
        else if (now - this.#before.now >= 900) {
            this.rate = ((records - this.#before.records) * 1000) / (now - this.#before.now);
            this.#before = {records, now};
        }
        if (this.#first === null || job.progress < this.#first.progress) this.#first = {progress: job.progress, now};
        const [done, took] = [job.progress - this.#first.progress, now - this.#first.now];
        this.left = done > 0 && took >= MIN_OBSERVED ? ((1 - job.progress) * took) / done / 1000 : null;
    }
}

class Row {
    #progressRate = new ProgressRate();
    #shown = "";
    #open = false;
    #requestNumber = 0;

    constructor(id, change) {
        this.change = change;
        const named = name => el("td", {class: "number", "data-name": name});
        this.name = el("button", {type: "button", class: "link", "aria-expanded": "false", title: "Show or hide details", onclick: () => this.#toggle()}, id);
        this.kind = el("span", {class: "muted"});
        this.state = el("p", {class: "badge"});
        this.progress = el("progress", {max: "1", "aria-label": `Progress of job ${id}`});
        this.left = el("span", {class: "left"});
        this.records = named("Records");
        this.rate = named("Records/s");
        this.landed = named("Landed");
        this.errors = named("Errors");
        this.actions = el("td", {class: "actions"});
        this.reason = el("p", {class: "reason"});
        this.expiry = el("p");
        this.details = el("div", {class: "details", hidden: true});
        this.more = el("tr", {class: "more"}, el("td", {colspan: COLUMNS}, this.reason, this.expiry, this.details));
        this.element = el(
            "tbody", {"data-job": id},
            el("tr", {}, el("td", {class: "wide"}, el("div", {class: "job"}, this.kind, this.name)), el("td", {class: "wide"}, this.state), el("td", {class: "done-of"}, this.progress, this.left), this.records, this.rate, this.landed, this.errors, this.actions),
            this.more,
        );
    }

    update(job, now, mayChange) {
        this.job = job;
        this.#progressRate.update(job, now);
        const [state, word] = stateOf(job, now);
        const {counts} = job;
        const errors = counts.bad + counts.refused;
        badge(this.state, state, word);
        setAttribute(this.element, "data-state", state);
        setText(this.kind, job.kind);
        setAttribute(this.kind, "title", `Planned ${moment(job.created_at)}\n${local(job.created_at)}`);
        this.progress.value = job.state === "done" ? 1 : job.progress;
        setText(this.left, [percent(job.progress), `${count(job.parts_done)} of ${plural(job.parts, "part")}`, this.#progressRate.left === null ? "" : `about ${duration(this.#progressRate.left)} left`].filter(Boolean).join(" \u00b7 "));
        for (const [cell, number] of [[this.records, counts.records], [this.rate, this.#progressRate.rate]]) {
            setText(cell, count(number));
            setAttribute(cell, "title", number === null ? null : exact(Math.round(number)));
        }
        setText(this.landed, `${count(job.landed)} ${job.unit}`);
        setAttribute(this.landed, "title", exact(job.landed));
        setText(this.errors, errors ? `${count(errors)} (${share(errors, counts.records + counts.refused)})` : "0");
        setAttribute(this.errors, "title", `${exact(counts.bad)} bad records, ${exact(counts.refused)} refused by Kafka`);
        this.errors.classList.toggle("many-errors", errors > (counts.records + counts.refused) * MANY_ERRORS);
        this.#buttons(mayChange);
        setMessage(this.reason, job.reason);
        this.#expiry(job, now);
        const shown = JSON.stringify([job.state, job.wanted, counts, job.parts_done, job.parts_failed]);
        if (shown !== this.#shown && this.#open) this.#loadDetails();
        this.#shown = shown;
        show(this.more, Boolean(job.reason) || job.expires_at !== null || this.#open);
    }

    #buttons(mayChange) {
        const verbs = Object.keys(VERBS).filter(verb => mayChange && VERBS[verb].applies(this.job));
        if (verbs.join() === (this.actions.dataset.verbs ?? "")) return;
        this.actions.dataset.verbs = verbs.join();
        this.actions.replaceChildren(...verbs.map(verb => el("button", {type: "button", class: "quiet", "data-verb": verb, "aria-label": `${VERBS[verb].name} job ${this.job.job}`, onclick: () => this.change(this.job, verb)}, VERBS[verb].name)));
    }

    #expiry(job, now) {
        const soon = job.expires_at !== null && job.expires_at - now < DAY;
        this.expiry.className = soon ? "warning" : "muted";
        const when = job.expires_at === null ? "" : `It will be cancelled ${soon ? `in ${duration((job.expires_at - now) / 1000)}` : `on ${moment(job.expires_at)}`} unless it is resumed.`;
        setMessage(this.expiry, when);
    }

    #toggle() {
        this.#open = !this.#open;
        setAttribute(this.name, "aria-expanded", String(this.#open));
        show(this.details, this.#open);
        if (this.#open) this.#loadDetails();
        show(this.more, this.#open || Boolean(this.job.reason) || this.job.expires_at !== null);
    }

    async #loadDetails() {
        const number = (this.#requestNumber += 1);
        let shown;
        try {
            shown = details((await request(`jobs/${encodeURIComponent(this.job.job)}`)).data);
        } catch (error) {
            shown = [el("p", {class: "error"}, `Details are not available: ${error.message}`)];
        }
        if (number === this.#requestNumber) this.details.replaceChildren(...shown);
    }
}

const share = (some, all) => (all ? `${Number(((some * 100) / all).toPrecision(2))}\u202f%` : "\u2013");

// The same details as `strandline job status` prints.
function details(job) {
    const times = Object.keys(job.times.counts).map(Number);
    const facts = [
        `Planned ${moment(job.created_at)}.`,
        `${plural(job.parts, "part")}: ${job.parts_done} done, ${job.parts_leased} being worked on, ${job.parts_failed} failed.`,
        times.length ? `Samples are between ${moment(Math.min(...times))} and ${moment(Math.max(...times) + job.times.step_ms)}.` : "",
        job.nulls ? `${plural(job.nulls, "null value")} left out.` : "",
    ];
    const shown = [el("p", {}, facts.filter(Boolean).join(" "))];
    const reasons = Object.entries(job.bad).sort(([, one], [, other]) => other - one);
    if (reasons.length) shown.push(el("ul", {"aria-label": "Bad records by reason"}, ...reasons.map(([reason, number]) => el("li", {}, `${exact(number)} \u00d7 ${reason}`))));
    if (job.bad_lines.length) shown.push(badLines(job.bad_lines));
    for (const part of job.failed_parts.slice(0, 20)) shown.push(el("p", {class: "reason"}, `Part ${part.part} failed ${plural(part.failures, "time")}: ${part.reason}`));
    return shown;
}

function badLines(lines) {
    const rows = lines.map(({uri, record}) => el("tr", {}, el("td", {}, el("bdi", {}, `${uri}:${record.line || `byte ${record.offset}`}`)), el("td", {}, record.reason), el("td", {}, el("bdi", {}, record.excerpt))));
    const head = el("thead", {}, el("tr", {}, ...["File and line", "Reason", "Text"].map(name => el("th", {scope: "col"}, name))));
    return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "The first bad records"}, el("table", {class: "bad-lines"}, head, el("tbody", {}, ...rows)));
}

export class Jobs {
    #rows = new Map();
    #data = null;
    #token = "";
    #all = false;
    #ratesAt = -Infinity;
    #rates = new JobRates(byId("job-rates"), byId("job-rates-readout"));
    areGoing = false;

    constructor(refresh) {
        this.refresh = refresh;
        byId("jobs-more").addEventListener("click", () => {
            this.#all = !this.#all;
            this.update(this.#data);
        });
        byId("jobs-admin").addEventListener("click", () => this.#toggleForm(byId("admin-form").hidden));
        byId("admin-form").addEventListener("submit", event => {
            event.preventDefault();
            this.#use(byId("admin-token").value.trim());
        });
    }

    update(data) {
        this.#data = data;
        const now = data.looked_at;
        // Jobs that have not ended come first, and newer jobs before older ones.
        const newest = [...data.jobs].reverse();
        const live = newest.filter(job => !ENDED.includes(job.state));
        const ended = newest.filter(job => ENDED.includes(job.state));
        const shown = [...live, ...(this.#all ? ended : ended.slice(0, MAX_ENDED))];
        this.areGoing = live.some(job => isGoing(job, now));
        for (const [id, row] of this.#rows) {
            if (shown.some(job => job.job === id)) continue;
            row.element.remove();
            this.#rows.delete(id);
        }
        shown.forEach((job, index) => {
            if (!this.#rows.has(job.job)) this.#rows.set(job.job, new Row(job.job, (one, verb) => this.#change(one, verb)));
            const row = this.#rows.get(job.job);
            row.update(job, now, this.#token !== "");
            // The first child is the table's head.
            const table = byId("jobs");
            if (table.children[index + 1] !== row.element) table.insertBefore(row.element, table.children[index + 1] ?? null);
        });
        const hidden = ended.length - MAX_ENDED;
        show(byId("jobs-more"), hidden > 0);
        setText(byId("jobs-more"), this.#all ? "Show fewer jobs that have ended" : `Show ${plural(hidden, "more job")} that ${hidden === 1 ? "has" : "have"} ended`);
        show(byId("jobs-area"), data.jobs.length > 0);
        show(byId("jobs-none"), data.jobs.length === 0);
        show(byId("jobs-admin"), data.jobs.length > 0);
    }

    wantsRates() {
        if (!this.#data.jobs.length || performance.now() - this.#ratesAt < RATES_EVERY) return false;
        this.#ratesAt = performance.now();
        return true;
    }

    updateRates(points) {
        this.#rates.update(points);
    }

    #toggleForm(shown) {
        show(byId("admin-form"), shown);
        setAttribute(byId("jobs-admin"), "aria-expanded", String(shown));
        if (shown) byId("admin-token").focus();
    }

    #use(token) {
        this.#token = token;
        byId("admin-token").value = "";
        setMessage(byId("jobs-failure"), "");
        this.#toggleForm(false);
        setText(byId("jobs-admin"), token ? "Use another admin token" : "Pause, resume or cancel");
        this.update(this.#data);
    }

    async #change(job, verb) {
        if (!(await confirmed(job, VERBS[verb]))) return;
        setMessage(byId("jobs-failure"), "");
        setMessage(byId("jobs-answer"), "");
        try {
            const {note} = await command(`jobs/${encodeURIComponent(job.job)}/${verb}`, this.#token);
            setMessage(byId("jobs-answer"), `${VERBS[verb].name}: ${note}`);
        } catch (error) {
            if ([401, 403].includes(error.status)) this.#use("");
            setMessage(byId("jobs-failure"), `${VERBS[verb].name} job ${job.job}: ${error.message}`);
        }
        this.refresh();
    }
}

function confirmed(job, {title, text, yes}) {
    const dialog = byId("job-dialog");
    setText(byId("job-dialog-title"), title);
    setText(byId("job-dialog-text"), `${job.job} (${job.kind}, ${percent(job.progress)} done). ${text}`);
    const button = byId("job-dialog-yes");
    setText(button, yes);
    button.classList.toggle("danger", yes === VERBS.cancel.yes);
    dialog.returnValue = "no";
    button.onclick = () => dialog.close("yes");
    byId("job-dialog-no").onclick = () => dialog.close("no");
    dialog.showModal();
    byId("job-dialog-no").focus();
    return new Promise(resolve => {
        dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), {once: true});
    });
}
