// Loaded before the page is rendered, so that a saved theme does not flash the other one first.
"use strict";
(() => {
    let theme = "system";
    try {
        theme = localStorage.getItem("strandline-theme") || "system";
    } catch {
        // Without local storage, the theme is the system's.
    }
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
