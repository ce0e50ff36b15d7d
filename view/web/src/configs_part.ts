// The configuration of a run: software, hardware and values of the program, with a search.
import type { RunDocument } from "./api.js";
import { copyButton } from "./copying.js";
import { element, labelled, table } from "./elements.js";
import type { Part } from "./run_parts.js";
import { change, parameter } from "./url_state.js";

const MOST_ROWS = 1000;
const TITLES: Record<string, string> = { user: "Program", hardware: "Hardware", software: "Software" };

/** Return the part with the configuration. */
export function configsPart(): Part {
  const search = labelled(element("input", { type: "search", placeholder: "Search names and values" }), { "aria-label": "Search the configuration" });
  const content = element("div", { className: "columns" });
  let configs: Record<string, unknown> = {};
  const box = element("section", {}, element("div", { className: "tools" }, search, copyButton("Copy as JSON", () => JSON.stringify(configs, null, 2))), content);
  search.addEventListener("input", () => change({ q: search.value }, "replace"));

  function draw(): void {
    if (search.value !== parameter("q")) search.value = parameter("q");
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const names = [...new Set([...Object.keys(TITLES), ...Object.keys(configs)])].filter((name) => flat(configs[name]).length);
    const sections = names.map((name) => {
      const rows = flat(configs[name]).filter((row) => words.every((word) => row.join(" ").toLowerCase().includes(word)));
      const more = rows.length > MOST_ROWS ? [element("p", { className: "muted" }, `${rows.length - MOST_ROWS} more; search for them.`)] : [];
      const body = rows.length ? table(["Name", "Value"], rows.slice(0, MOST_ROWS)) : element("p", { className: "muted" }, "No match.");
      return element("div", { className: "config" }, element("h2", {}, TITLES[name] ?? name), body, ...more);
    });
    content.replaceChildren(...(sections.length ? sections : [element("p", { className: "muted" }, "This run has recorded no configuration.")]));
  }
  return { box, update: (run: RunDocument) => { configs = run.configs; draw(); }, redraw: draw };
}

/** Return nested values with their paths. */
function flat(value: unknown, path = ""): [string, string][] {
  if (value === undefined) return [];
  if (value === null || typeof value !== "object" || !Object.keys(value).length) return path ? [[path, text(value)]] : [];
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return [[path, value.map(text).join(", ")]];
  return Object.entries(value).flatMap(([name, each]) => flat(each, path ? `${path}.${name}` : name));
}

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
