// Formats numbers and times.

const NONE = "\u2013";
const THIN = "\u202f";
const STEPS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const BYTES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];

function scaled(number, steps, unit) {
    const size = Math.abs(number);
    for (const [index, [step, name]] of steps.entries()) {
        if (size < step * 0.9995 && !(size >= step)) continue;
        const shown = number / step;
        const digits = Math.abs(shown) < 99.95 ? 1 : 0;
        const text = shown.toFixed(digits).replace(/\.0$/, "");
        // 999,950 becomes 1 M, not 1000 k.
        if (Math.abs(Number(text)) >= 1000 && index > 0) return `1${THIN}${steps[index - 1][1]}`;
        return `${text}${THIN}${name}`;
    }
    const text = Number.isInteger(number) ? String(number) : number.toFixed(size < 10 ? 1 : 0);
    return unit ? `${text}${THIN}${unit}` : text;
}

const missing = number => number === null || number === undefined;

export const count = number => (missing(number) ? NONE : scaled(number, STEPS, ""));
export const bytes = number => (missing(number) ? NONE : scaled(number, BYTES, "B"));
export const exact = number => (missing(number) ? "" : number.toLocaleString("en-US"));
export const percent = fraction => (missing(fraction) ? NONE : `${Math.floor(fraction * 100)}${THIN}%`);
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function duration(seconds) {
    if (missing(seconds)) return NONE;
    const total = Math.max(0, Math.round(seconds));
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = parts.findIndex(([size]) => total >= size);
    if (first < 0) return `0${THIN}s`;
    const [size, name] = parts[first];
    const shown = [`${Math.floor(total / size)}${THIN}${name}`];
    if (first + 1 < parts.length) {
        const [next, nextName] = parts[first + 1];
        const rest = Math.floor((total % size) / next);
        if (rest) shown.push(`${rest}${THIN}${nextName}`);
    }
    return shown.join(" ");
}

// A duration of milliseconds to seconds.
export function milliseconds(seconds) {
    const ms = seconds * 1000;
    return ms < 1000 ? `${Number(ms.toPrecision(2))}${THIN}ms` : `${Number(seconds.toPrecision(3))}${THIN}s`;
}

const SPECIAL = {"+Inf": Infinity, "-Inf": -Infinity, NaN};

// Parses a sample's value.
export const parsed = written => (written in SPECIAL ? SPECIAL[written] : Number(written));

// A sample's value with up to 8 significant digits.
export function value(number) {
    if (Number.isNaN(number)) return "NaN";
    if (!Number.isFinite(number)) return number > 0 ? "+Inf" : "-Inf";
    const size = Math.abs(number);
    if (size !== 0 && (size >= 1e15 || size < 1e-4)) return number.toExponential(4).replace(/\.?0+e/, "e");
    return Number(number.toPrecision(8)).toLocaleString("en-US", {maximumFractionDigits: 8});
}

export function axisValue(number) {
    const size = Math.abs(number);
    if (size >= 1000) return scaled(number, STEPS, "");
    if (size !== 0 && size < 1e-3) return number.toExponential(1).replace(".0e", "e");
    return String(Number(number.toPrecision(4)));
}

const iso = ms => new Date(ms).toISOString();
export const day = ms => iso(ms).slice(0, 10);
export const minute = ms => iso(ms).slice(11, 16);
export const second = ms => iso(ms).slice(11, 19);
export const moment = ms => `${day(ms)} ${second(ms)} UTC`;
export const shortMoment = ms => `${day(ms)} ${minute(ms)} UTC`;
export const local = ms => new Date(ms).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "long"});

export function span(first, behind) {
    const sameDay = day(first) === day(behind) || (minute(behind) === "00:00" && behind - first <= 86_400_000);
    return `${day(first)} ${minute(first)}\u2013${sameDay ? minute(behind) : `${day(behind)} ${minute(behind)}`} UTC`;
}
