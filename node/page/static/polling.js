// Periodic work, which pauses while the page is hidden.

export class Poller {
    #timer = 0;
    #running = false;
    #begun = -Infinity;

    // `pause` returns the milliseconds between two starts. It is called before each one.
    constructor(work, pause) {
        this.work = work;
        this.pause = pause;
        document.addEventListener("visibilitychange", () => this.#plan());
    }

    async now() {
        clearTimeout(this.#timer);
        if (this.#running) return;
        this.#running = true;
        this.#begun = performance.now();
        try {
            await this.work();
        } finally {
            this.#running = false;
            this.#plan();
        }
    }

    #plan() {
        clearTimeout(this.#timer);
        if (document.hidden || this.#running) return;
        const due = this.#begun + this.pause() - performance.now();
        this.#timer = setTimeout(() => this.now(), Math.max(0, due));
    }
}
