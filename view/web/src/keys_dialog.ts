// The keys of a page, in a dialog that `?` opens.
import { button, element, labelled } from "./elements.js";

export type Keys = readonly [keys: string, meaning: string][];
const ALWAYS: Keys = [["?", "This list"]];

export const KEYS_OF_RUNS: Keys = [
  ["/", "Search"], ["Esc", "Clear the search"], ["↓ ↑ or j k", "Next or previous run"], ["Page Down, Page Up", "15 runs further"],
  ["Home, End", "First or last run"], ["Enter", "Open the run"], ["Space", "Select the run for a comparison"],
  ["Shift + click", "Select all runs from the last selected one"],
];
export const KEYS_OF_CHARTS: Keys = [
  ["/", "Search metrics"], ["Drag", "Zoom"], ["Esc", "All charts, without a zoom"],
];

/** Open the list by `?`, and by a button in the head of the page. */
export function offerKeys(keys: Keys): void {
  const opener = labelled(button("?", () => show(keys), { className: "quiet", title: "Keys ( ? )" }), { "aria-label": "Keys" });
  document.querySelector("body > header")?.append(opener);
  addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches("input:not([type=checkbox]), select, textarea");
    if (event.key !== "?" || isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    show(keys);
  });
}

function show(keys: Keys): void {
  const id = "keys-title", dialog = labelled(element("dialog", { className: "keys" }), { "aria-labelledby": id });
  const rows = [...keys, ...ALWAYS].map(([names, meaning]) =>
    element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, names)), element("td", {}, meaning)));
  dialog.append(element("div", { className: "tools" }, element("h2", { id }, "Keys"), button("Close", () => dialog.close())),
    element("table", {}, element("tbody", {}, ...rows)));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}
