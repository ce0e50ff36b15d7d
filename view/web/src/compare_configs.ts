// Configurations side by side: keys that differ, and equal ones folded.
import { heads, type Compared } from "./compare_run.js";
import { counted, element, labelled } from "./elements.js";
import { change, parameter } from "./url_state.js";

const MAX_ROWS = 1000;

export interface Difference { key: string; values: (string | null)[]; isEqual: boolean }

/** Return nested values as text by their paths. */
export function flattened(value: unknown, path = ""): Map<string, string> {
  const flat = new Map<string, string>();
  const add = (each: unknown, at: string): void => {
    if (each !== null && typeof each === "object" && Object.keys(each).length) {
      for (const [name, inner] of Object.entries(each)) add(inner, at ? `${at}.${name}` : name);
    } else if (at) flat.set(at, typeof each === "string" ? each : JSON.stringify(each) ?? "");
  };
  add(value, path);
  return flat;
}

/** Return all keys with the values of each configuration; a key that one lacks differs. */
export function differences(configs: readonly unknown[]): Difference[] {
  const maps = configs.map((config) => flattened(config));
  const keys = new Set(maps.flatMap((map) => [...map.keys()]));
  const place = (key: string) => ["user.", "hardware.", "software."].findIndex((section) => key.startsWith(section));
  return [...keys].sort((one, other) => place(one) - place(other) || one.localeCompare(other, "en", { numeric: true })).map((key) => {
    const values = maps.map((map) => map.get(key) ?? null);
    return { key, values, isEqual: values.every((value) => value === values[0]) };
  });
}

export function showConfigs(box: HTMLElement, runs: readonly Compared[]): void {
  const all = differences(runs.map(({ document }) => document?.configs ?? {}));
  const word = parameter("config").toLowerCase();
  const found = all.filter(({ key, values }) => [key, ...values].join("\n").toLowerCase().includes(word));
  const different = found.filter(({ isEqual }) => !isEqual), equal = found.filter(({ isEqual }) => isEqual);
  let search = box.querySelector<HTMLInputElement>("input");
  if (!search) {
    const field = labelled(element("input", { type: "search", placeholder: "Search names and values" }), { "aria-label": "Search the configurations" });
    field.addEventListener("input", () => change({ config: field.value }, "replace"));
    box.append(element("div", { className: "tools" }, field), element("div"));
    search = field;
  }
  if (document.activeElement !== search) search.value = parameter("config");
  const wasOpen = box.querySelector("details")?.open ?? false;
  const fold = element("details", { className: "equal-configs", open: wasOpen, hidden: !equal.length },
    element("summary", {}, counted(equal.length, "equal key")), configTable("Equal configuration", equal, runs.slice(0, 1), ["Value of all"]));
  box.lastElementChild?.replaceChildren(
    different.length ? configTable("Configuration that differs", different, runs, heads(runs)) : element("p", { className: "muted" }, all.length ? "No key differs." : "The runs have recorded no configuration."),
    fold);
}

function configTable(label: string, rows: readonly Difference[], runs: readonly Compared[], titles: (Node | string)[]): HTMLElement {
  const head = element("tr", {}, element("th", { scope: "col" }, "Key"), ...titles.map((title) => element("th", { scope: "col" }, title)));
  const body = rows.slice(0, MAX_ROWS).map(({ key, values }) => element("tr", {}, element("th", { scope: "row" }, key),
    ...runs.map((_, at) => {
      const value = values[at] ?? null, isChanged = value !== values[0];
      const cell = element("td", { className: isChanged ? "changed" : "", title: isChanged ? `not as in ${runs[0]!.title}` : "" });
      cell.append(value === null ? element("span", { className: "muted" }, "not set") : value);
      return cell;
    })));
  const more = rows.length > MAX_ROWS ? element("p", { className: "muted" }, `The first ${MAX_ROWS} of ${rows.length} keys; search for the others.`) : null;
  return element("div", {}, labelled(element("div", { className: "scroll", tabIndex: 0 },
    element("table", { className: "compared-configs" }, element("thead", {}, head), element("tbody", {}, ...body))), { role: "region", "aria-label": label }), more);
}
