// Light, dark or as the system has it, remembered.

import {setText} from "./dom.js";

const THEMES = ["system", "light", "dark"];

export function startTheme(button) {
    const root = document.documentElement;
    const tell = () => {
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
            // Then it holds until the page is left.
        }
        tell();
    });
    tell();
}
