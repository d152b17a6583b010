// The theme button: light, dark or the system's theme, saved in local storage.

import {setText} from "./dom.js";

const THEMES = ["system", "light", "dark"];

export function startTheme(button) {
    const root = document.documentElement;
    const showTheme = () => {
        const theme = root.dataset.theme ?? "system";
        setText(button, `Theme: ${theme}`);
    };
    button.addEventListener("click", () => {
        const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
        if (next === "system") delete root.dataset.theme;
        else root.dataset.theme = next;
        try {
            localStorage.setItem("strandline-theme", next);
        } catch {
            // Without local storage, the theme lasts until the page is closed.
        }
        showTheme();
    });
    showTheme();
}
