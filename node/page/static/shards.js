// The shards: one card each, updated in place.

import {badge, el, setMessage, setAttribute, setText, show} from "./dom.js";
import {bytes, count, duration, exact, percent, plural} from "./format.js";

const STEPS = [
    ["acquiring", "Acquiring the shard"],
    ["recovering-index", "Loading the index"],
    ["replaying", "Replaying"],
    ["catching-up", "Catching up"],
    ["active", "Active"],
];
const PHASES = {...Object.fromEntries(STEPS), fenced: "Fenced", failed: "Failed", stopped: "Stopped"};

export function stateOf(shard) {
    if (shard.process === "down") return ["bad", "Down"];
    if (shard.process === "waiting") {
        return ["bad", shard.starts_in_s === null ? "Ended" : `Ended, restarts in ${duration(shard.starts_in_s)}`];
    }
    if (shard.process === "stopped" || shard.phase === "stopped") return ["off", "Stopped"];
    if (shard.phase === "fenced" || shard.phase === "failed") return ["bad", PHASES[shard.phase]];
    if (shard.store_unanswered_s !== null) return ["bad", `Store has not answered for ${duration(shard.store_unanswered_s)}`];
    if (shard.active) return ["ok", "Active"];
    if (shard.phase === null) return ["work", "Starting"];
    return ["work", PHASES[shard.phase] ?? shard.phase];
}

// For the banner: "shard 1: replaying, 43 %, about 12 s left".
export function describe(shard) {
    const [, word] = stateOf(shard);
    const words = [`shard ${shard.shard}: ${word.toLowerCase()}`];
    if (shard.progress !== null) words.push(percent(shard.progress));
    if (shard.time_left_s !== null) words.push(`about ${duration(shard.time_left_s)} left`);
    return words.join(", ");
}

function describeLag(shard) {
    const words = [exact(shard.lag)];
    if (shard.lag_s) words.push(`records may have been waiting for ${duration(shard.lag_s)}`);
    if (shard.held_back) words.push(`an open transaction holds back ${exact(shard.held_back)}`);
    return words.join("; ");
}

const FIGURES = [
    ["Lag (records)", shard => count(shard.lag) + (shard.lag_s ? ` \u00b7 ${duration(shard.lag_s)}` : ""), describeLag],
    ["Series", shard => count(shard.keys), shard => exact(shard.keys)],
    ["Samples/s", (shard, rate) => count(rate), () => "Since the previous refresh"],
    ["Buffer", shard => bytes(shard.buffer?.memory_bytes), shard => buffered(shard.buffer)],
    ["Not stored", shard => (shard.unstored_buckets === null ? "\u2013" : plural(shard.unstored_buckets, "bucket")), () => "Closed buckets that are not completely stored"],
    ["Retention margin", shard => duration(shard.kafka_keeps_ms === null ? null : shard.kafka_keeps_ms / 1000), () => "How long Kafka is guaranteed to keep records that are not stored; a dash if unlimited or unknown"],
    ["Memory", shard => bytes(shard.memory_bytes), shard => exact(shard.memory_bytes)],
    ["Restarts", shard => exact(shard.restarts), () => "Since the node started"],
];

function buffered(buffer) {
    if (!buffer) return "";
    const spilled = buffer.spilled_bytes ? `, ${bytes(buffer.spilled_bytes)} of it on disk` : "";
    return `${exact(buffer.samples)} samples of ${exact(buffer.series)} series${spilled}`;
}

function jobs(states) {
    const all = Object.values(states).reduce((sum, count) => sum + count, 0);
    return all ? `${states.done ?? 0} of ${plural(all, "replay job")} done` : "";
}

function started(shard) {
    const phases = STEPS.filter(([phase]) => shard.start_s[phase] >= 0.5);
    return shard.active && phases.length ? `start: ${phases.map(([phase, words]) => `${words.toLowerCase()} ${duration(shard.start_s[phase])}`).join(", ")}` : "";
}

class Card {
    constructor(number) {
        this.state = el("p", {class: "badge"});
        this.progress = el("progress", {max: "1", "aria-label": `Progress of shard ${number}`});
        this.left = el("span", {class: "left"});
        this.steps = STEPS.map(([, words]) => el("li", {title: words}));
        this.start = el("div", {class: "start"}, el("ol", {class: "steps", "aria-hidden": "true"}, ...this.steps), this.progress, this.left);
        this.reason = el("p", {class: "reason"});
        this.values = FIGURES.map(() => el("dd"));
        this.pairs = FIGURES.map(([name], index) => el("div", {}, el("dt", {}, name), this.values[index]));
        this.more = el("p", {class: "more muted"});
        this.element = el(
            "li", {class: "card", "data-shard": number},
            el("div", {class: "head"}, el("h3", {}, `Shard ${number}`), this.state),
            this.start, this.reason, el("dl", {}, ...this.pairs), this.more,
        );
    }

    update(shard, rate) {
        const [state, word] = stateOf(shard);
        badge(this.state, state, word);
        setAttribute(this.element, "data-state", state);
        const reached = STEPS.findIndex(([phase]) => phase === shard.phase);
        this.steps.forEach((step, index) => setAttribute(step, "class", index < reached ? "done" : index === reached ? "now" : ""));
        show(this.start, state === "work");
        if (shard.progress === null) this.progress.removeAttribute("value");
        else this.progress.value = shard.progress;
        const left = shard.time_left_s === null ? "" : `about ${duration(shard.time_left_s)} left`;
        setText(this.left, [shard.progress === null ? "" : percent(shard.progress), left].filter(Boolean).join(" \u00b7 "));
        setMessage(this.reason, shard.reason || (shard.store_unanswered_s === null ? "" : `${shard.store} does not answer. Queries of stored samples fail, and nothing is stored; samples stay in memory, on disk and in Kafka.`));
        FIGURES.forEach(([name, shown, title], index) => {
            // Before the first report, only the restarts are known.
            show(this.pairs[index], shard.phase !== null || name === "Restarts");
            setText(this.values[index], shown(shard, rate));
            setAttribute(this.values[index], "title", title(shard) || null);
        });
        const offset = (words, number) => (number === null || number < 0 ? "" : `${words} ${exact(number)}`);
        const more = [
            offset("reads offset", shard.position), offset("stored up to", shard.checkpoint),
            shard.pid === null ? "no process" : `process ${shard.pid}`,
            shard.exit_code === null ? "" : `last exit code ${shard.exit_code}`,
            jobs(shard.replay_jobs), started(shard),
        ];
        setText(this.more, more.filter(Boolean).join(" \u00b7 "));
    }
}

export class Shards {
    #cards = new Map();
    #before = new Map();

    constructor(list) {
        this.list = list;
    }

    // Updates the cards, and returns the samples per second of all shards.
    update(data) {
        let total = null;
        for (const [number, card] of this.#cards) {
            if (data.shards.some(shard => shard.shard === number)) continue;
            card.element.remove();
            this.#cards.delete(number);
        }
        for (const shard of data.shards) {
            const rate = this.#rate(shard, data.now_ms);
            if (rate !== null) total = (total ?? 0) + rate;
            if (!this.#cards.has(shard.shard)) {
                this.#cards.set(shard.shard, new Card(shard.shard));
                this.list.append(this.#cards.get(shard.shard).element);
            }
            this.#cards.get(shard.shard).update(shard, rate);
        }
        return total;
    }

    #rate(shard, now) {
        if (shard.samples === null) {
            this.#before.delete(shard.shard);
            return null;
        }
        const before = this.#before.get(shard.shard);
        // The counter restarts with the process.
        if (!before || before.pid !== shard.pid || shard.samples < before.samples) {
            this.#before.set(shard.shard, {samples: shard.samples, now, pid: shard.pid, rate: null});
            return null;
        }
        if (now - before.now < 900) return before.rate;
        const rate = ((shard.samples - before.samples) * 1000) / (now - before.now);
        this.#before.set(shard.shard, {samples: shard.samples, now, pid: shard.pid, rate});
        return rate;
    }
}
