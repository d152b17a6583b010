// The page: what is asked how often, and what is said while answers are missing.

import {ask, hasToken, Latest, listeners, useToken, wasAborted} from "./api.js";
import {Buckets} from "./buckets.js";
import {badge, byId, el, say, sayAll, setAttribute, setText, show} from "./dom.js";
import {Explore} from "./explore.js";
import {bytes, count, duration, exact, local, moment, plural} from "./format.js";
import {Hours} from "./hours.js";
import {Jobs} from "./jobs.js";
import {Poller} from "./polling.js";
import {inWords, Shards} from "./shards.js";
import {startTheme} from "./themes.js";
import {SPANS} from "./view.js";

const QUICK = 2000;
const CALM = 10_000;
const HOURS = 30_000;
const MOST_BUCKETS = 1000;
const MOST_TOLD = 3;

const shards = new Shards(byId("shards"));
const hours = new Hours(byId("hours"), byId("hours-readout"));
const explore = new Explore();
const jobs = new Jobs(() => jobsPoller.now());
const buckets = new Buckets(byId("buckets"), byId("buckets-readout"), (start, end) => explore.exploreTime(start, end));

let heard = null;
let answers = true;
let allActive = null;
let started = null;

// ---- what is asked ----

const shardsPoller = new Poller(async () => {
    try {
        const {data} = await ask("strandline/shards");
        say(byId("shards-error"), "");
        showNode(data);
    } catch (error) {
        if (!error.unreachable) say(byId("shards-error"), error.message);
    }
    tellConnection();
}, () => (allActive && answers ? CALM : QUICK));

const newestBuckets = new Latest();
const bucketsPoller = new Poller(async () => {
    const end = Math.ceil(Date.now() / 1000);
    const start = end - SPANS[explore.view.buckets];
    await section("buckets", async () => {
        const {data, warnings} = await newestBuckets.run(signal => ask("strandline/buckets", {start, end, limit: MOST_BUCKETS}, signal));
        sayAll(byId("buckets-warnings"), warnings);
        buckets.update(data, start * 1000, end * 1000);
    });
}, () => (allActive ? CALM : 2 * QUICK));

const hoursPoller = new Poller(() => section("hours", async () => hours.update((await ask("strandline/hours", {days: 2})).data)), () => HOURS);

const jobsPoller = new Poller(() => section("jobs", async () => {
    jobs.areGoing = true;
    const {data, warnings} = await ask("jobs");
    sayAll(byId("jobs-warnings"), warnings);
    jobs.update(data);
    if (jobs.wantsRates()) jobs.updateRates((await ask("strandline/job-rates")).data.points);
}), () => (jobs.areGoing ? QUICK : CALM));

// A part of the page that can't be filled says why, and the others go on.
async function section(name, work) {
    const error = byId(`${name}-error`);
    try {
        await work();
        say(error, "");
    } catch (failure) {
        if (!wasAborted(failure) && !failure.unreachable) say(error, failure.message);
    }
}

const pollers = [shardsPoller, jobsPoller, bucketsPoller, hoursPoller];

// ---- the node ----

function showNode(data) {
    const rate = shards.update(data);
    const active = data.shards.filter(shard => shard.active).length;
    const whole = data.shards.length > 0 && data.shards.every(isReady);
    setText(byId("node"), `dataset ${data.dataset} \u00b7 version ${data.version}`);
    document.title = whole ? `Strandline \u00b7 ${data.dataset}` : `${active}/${data.shards.length} active \u00b7 Strandline`;
    tellStanding(data, active, whole);
    tellSummary(data, active, rate);
    // What was partial is whole now, and another node may answer at this address.
    if (allActive === false && whole) for (const refresh of [() => explore.refresh(), () => bucketsPoller.now(), () => hoursPoller.now()]) refresh();
    if (started !== null && started !== data.started_ms && allActive !== false) explore.refresh();
    [allActive, started] = [whole, data.started_ms];
}

const isReady = shard => shard.active && shard.store_unanswered_s === null;

function tellStanding(data, active, whole) {
    const banner = byId("banner");
    if (whole) {
        say(banner, "");
        return;
    }
    const others = data.shards.filter(shard => !isReady(shard));
    const failing = others.some(shard => shard.store_unanswered_s !== null || ["down", "waiting"].includes(shard.process) || ["failed", "fenced"].includes(shard.phase));
    const told = others.slice(0, MOST_TOLD).map(inWords).join("; ");
    const more = others.length > MOST_TOLD ? `; and ${others.length - MOST_TOLD} more` : "";
    // A replay does not get on without its worker.
    const worker = data.processes.find(process => process.name === "worker" && ["down", "waiting"].includes(process.process));
    const waits = worker ? ` The replay worker is ${worker.process}: ${worker.reason}.` : "";
    setAttribute(banner, "data-state", failing || worker ? "bad" : "work");
    const lacking = active < data.shards.length ? "answers may lack what the others hold" : "queries of stored samples fail";
    say(banner, `${active} of ${plural(data.shards.length, "shard")} ${active === 1 ? "is" : "are"} active; ${lacking}. ${capital(told)}${more}.${waits}`);
}

const capital = text => text.charAt(0).toUpperCase() + text.slice(1);

const summary = new Map();

function tellSummary(data, active, rate) {
    const sum = figure => data.shards.reduce((total, shard) => (figure(shard) === null ? total : (total ?? 0) + figure(shard)), null);
    const keys = sum(shard => shard.keys);
    const lag = sum(shard => shard.lag);
    const memory = sum(shard => shard.buffer?.memory_bytes ?? null);
    const others = (data.partitions ?? 0) > data.shards.length;
    figure("Active shards", `${active} of ${data.shards.length}`, others ? `The topic has ${data.partitions} partitions: this node does not serve all of them` : "");
    figure("Series", count(keys), `${exact(keys)}, summed over shards`);
    figure("Samples/s", count(rate), "Since the answer before this one");
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

listeners.heard = () => {
    heard = performance.now();
    answers = true;
};
listeners.unheard = () => {
    answers = false;
    tellConnection();
};
listeners.refused = () => {
    if (!byId("token-form").hidden) return;
    say(byId("token-error"), hasToken() ? "The node does not take this token." : "");
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

function tellConnection() {
    const state = byId("connection");
    const ago = heard === null ? null : (performance.now() - heard) / 1000;
    const late = ago !== null && ago * 1000 > (allActive ? CALM : QUICK) + 3000;
    document.body.toggleAttribute("data-stale", heard !== null && (!answers || late));
    if (answers && !late) badge(state, heard === null ? "off" : "ok", heard === null ? "Connecting" : "Live");
    else badge(state, "bad", ago === null ? "The node does not answer" : `No connection, last answer ${duration(ago)} ago`);
}

setInterval(tellConnection, 1000);

// ---- the start ----

startTheme(byId("theme"));
byId("buckets-span").value = explore.view.buckets;
byId("buckets-span").addEventListener("change", event => {
    explore.change({buckets: event.target.value});
    bucketsPoller.now();
});
for (const poller of pollers) poller.now();
explore.start();
