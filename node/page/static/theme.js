// Loaded before anything is drawn, so that a remembered theme does not flash up as the other one first.
"use strict";
(() => {
    let theme = "system";
    try {
        theme = localStorage.getItem("strandline-theme") || "system";
    } catch {
        // A browser that keeps nothing has the system's theme.
    }
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
