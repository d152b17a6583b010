// The page's main module: polls the node, and shows its state and that of the connection.

import {request, hasToken, Latest, listeners, useToken, wasAborted} from "./api.js";
import {Buckets} from "./buckets.js";
import {badge, byId, el, setMessage, setMessages, setAttribute, setText, show} from "./dom.js";
import {Explore} from "./explore.js";
import {bytes, count, duration, exact, local, moment, plural} from "./format.js";
import {Hours} from "./hours.js";
import {Jobs} from "./jobs.js";
import {Poller} from "./polling.js";
import {describe, Shards} from "./shards.js";
import {startTheme} from "./themes.js";
import {SPANS} from "./view.js";

const FAST_MS = 2000;
const SLOW_MS = 10_000;
const HOURS_MS = 30_000;
const MAX_BUCKETS = 1000;
const MAX_LISTED = 3;

const shards = new Shards(byId("shards"));
const hours = new Hours(byId("hours"), byId("hours-readout"));
const explore = new Explore();
const jobs = new Jobs(() => jobsPoller.now());
const buckets = new Buckets(byId("buckets"), byId("buckets-readout"), (start, end) => explore.exploreTime(start, end));

let answeredAt = null;
let isReachable = true;
let allActive = null;
let started = null;

// ---- polling ----

const shardsPoller = new Poller(async () => {
    try {
        const {data} = await request("strandline/shards");
        setMessage(byId("shards-error"), "");
        showNode(data);
    } catch (error) {
        if (!error.unreachable) setMessage(byId("shards-error"), error.message);
    }
    showConnection();
}, () => (allActive && isReachable ? SLOW_MS : FAST_MS));

const newestBuckets = new Latest();
const bucketsPoller = new Poller(async () => {
    const end = Math.ceil(Date.now() / 1000);
    const start = end - SPANS[explore.view.buckets];
    await section("buckets", async () => {
        const {data, warnings} = await newestBuckets.run(signal => request("strandline/buckets", {start, end, limit: MAX_BUCKETS}, signal));
        setMessages(byId("buckets-warnings"), warnings);
        buckets.update(data, start * 1000, end * 1000);
    });
}, () => (allActive ? SLOW_MS : 2 * FAST_MS));

const hoursPoller = new Poller(() => section("hours", async () => hours.update((await request("strandline/hours", {days: 2})).data)), () => HOURS_MS);

const jobsPoller = new Poller(() => section("jobs", async () => {
    jobs.areGoing = true;
    const {data, warnings} = await request("jobs");
    setMessages(byId("jobs-warnings"), warnings);
    jobs.update(data);
    if (jobs.wantsRates()) jobs.updateRates((await request("strandline/job-rates")).data.points);
}), () => (jobs.areGoing ? FAST_MS : SLOW_MS));

// A section that can't be loaded shows the error. Other sections are not affected.
async function section(name, work) {
    const error = byId(`${name}-error`);
    try {
        await work();
        setMessage(error, "");
    } catch (failure) {
        if (!wasAborted(failure) && !failure.unreachable) setMessage(error, failure.message);
    }
}

const pollers = [shardsPoller, jobsPoller, bucketsPoller, hoursPoller];

// ---- the node ----

function showNode(data) {
    const rate = shards.update(data);
    const active = data.shards.filter(shard => shard.active).length;
    const isAllReady = data.shards.length > 0 && data.shards.every(isReady);
    setText(byId("node"), `dataset ${data.dataset} \u00b7 version ${data.version}`);
    document.title = isAllReady ? `Strandline \u00b7 ${data.dataset}` : `${active}/${data.shards.length} active \u00b7 Strandline`;
    showBanner(data, active, isAllReady);
    showSummary(data, active, rate);
    // Partial results are reloaded once all shards are ready, and everything if the node was restarted.
    if (allActive === false && isAllReady) for (const refresh of [() => explore.refresh(), () => bucketsPoller.now(), () => hoursPoller.now()]) refresh();
    if (started !== null && started !== data.started_ms && allActive !== false) explore.refresh();
    [allActive, started] = [isAllReady, data.started_ms];
}

const isReady = shard => shard.active && shard.store_unanswered_s === null;

function showBanner(data, active, isAllReady) {
    const banner = byId("banner");
    if (isAllReady) {
        setMessage(banner, "");
        return;
    }
    const others = data.shards.filter(shard => !isReady(shard));
    const failing = others.some(shard => shard.store_unanswered_s !== null || ["down", "waiting"].includes(shard.process) || ["failed", "fenced"].includes(shard.phase));
    const listed = others.slice(0, MAX_LISTED).map(describe).join("; ");
    const more = others.length > MAX_LISTED ? `; and ${others.length - MAX_LISTED} more` : "";
    // A replay makes no progress without its worker.
    const worker = data.processes.find(process => process.name === "worker" && ["down", "waiting"].includes(process.process));
    const waits = worker ? ` The replay worker is ${worker.process}: ${worker.reason}.` : "";
    setAttribute(banner, "data-state", failing || worker ? "bad" : "work");
    const lacking = active < data.shards.length ? "answers may lack the data of the others" : "queries of stored samples fail";
    setMessage(banner, `${active} of ${plural(data.shards.length, "shard")} ${active === 1 ? "is" : "are"} active; ${lacking}. ${capital(listed)}${more}.${waits}`);
}

const capital = text => text.charAt(0).toUpperCase() + text.slice(1);

const summary = new Map();

function showSummary(data, active, rate) {
    const sum = figure => data.shards.reduce((total, shard) => (figure(shard) === null ? total : (total ?? 0) + figure(shard)), null);
    const keys = sum(shard => shard.keys);
    const lag = sum(shard => shard.lag);
    const memory = sum(shard => shard.buffer?.memory_bytes ?? null);
    const others = (data.partitions ?? 0) > data.shards.length;
    figure("Active shards", `${active} of ${data.shards.length}`, others ? `The topic has ${data.partitions} partitions; this node does not serve all of them` : "");
    figure("Series", count(keys), `${exact(keys)}, summed over shards`);
    figure("Samples/s", count(rate), "Since the previous refresh");
    figure("Lag (records)", count(lag), exact(lag));
    figure("Write buffer", bytes(memory), exact(memory));
    figure("Running for", duration((data.now_ms - data.started_ms) / 1000), `Since ${moment(data.started_ms)}\n${local(data.started_ms)}`);
}

function figure(name, text, title) {
    if (!summary.has(name)) {
        const shown = el("dd");
        summary.set(name, shown);
        byId("summary").append(el("div", {}, el("dt", {}, name), shown));
    }
    setText(summary.get(name), text);
    setAttribute(summary.get(name), "title", title || null);
}

// ---- the connection ----

listeners.onAnswer = () => {
    answeredAt = performance.now();
    isReachable = true;
};
listeners.onUnreachable = () => {
    isReachable = false;
    showConnection();
};
listeners.onUnauthorized = () => {
    if (!byId("token-form").hidden) return;
    setMessage(byId("token-error"), hasToken() ? "The node does not accept this token." : "");
    show(byId("token-form"), true);
};

byId("token-form").addEventListener("submit", event => {
    event.preventDefault();
    useToken(byId("token").value.trim());
    byId("token").value = "";
    show(byId("token-form"), false);
    for (const poller of pollers) poller.now();
    explore.refresh();
});

function showConnection() {
    const state = byId("connection");
    const ago = answeredAt === null ? null : (performance.now() - answeredAt) / 1000;
    const late = ago !== null && ago * 1000 > (allActive ? SLOW_MS : FAST_MS) + 3000;
    document.body.toggleAttribute("data-stale", answeredAt !== null && (!isReachable || late));
    if (isReachable && !late) badge(state, answeredAt === null ? "off" : "ok", answeredAt === null ? "Connecting" : "Live");
    else badge(state, "bad", ago === null ? "The node does not answer" : `No connection, last answer ${duration(ago)} ago`);
}

setInterval(showConnection, 1000);

// ---- the start ----

startTheme(byId("theme"));
byId("buckets-span").value = explore.view.buckets;
byId("buckets-span").addEventListener("change", event => {
    explore.change({buckets: event.target.value});
    bucketsPoller.now();
});
for (const poller of pollers) poller.now();
explore.start();
