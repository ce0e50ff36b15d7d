// Columns of configurations and of last values of metrics, which the address names.
import { labelled, element } from "./elements.js";
import type { Column, Listed } from "./runs_columns.js";
import { change, parameters } from "./url_state.js";

type Cell = string | number | boolean | null;
export interface RunValues { configs: Record<string, Cell>; metrics: Record<string, number | string> }

const MOST_NAMES = 1000;  // the field takes any other name, too
const KINDS = { config: "configs", metric: "metrics" } as const;

/** Return the columns of the address, such as `value=config:user.rate&value=metric:loss`. */
export function valueColumns(): Column[] {
  return [...new Set(parameters().getAll("value"))].flatMap((id) => columnOf(id) ?? []);
}

function columnOf(id: string): Column | null {
  const at = id.indexOf(":"), kind = id.slice(0, Math.max(0, at)), name = id.slice(at + 1);
  if ((kind !== "config" && kind !== "metric") || !name) return null;
  const cell = ({ values }: Listed): Cell => values?.[KINDS[kind]][name] ?? null;
  return {
    id, title: name.replace(/^user\./, ""), css: "value", isNumber: kind === "metric", isExtra: true,
    // A metric that is a text is not finite: it stands last.
    value: (listed) => { const value = cell(listed); return typeof value === "string" && kind === "metric" ? null : typeof value === "boolean" ? String(value) : value; },
    text: (listed) => { const value = cell(listed); return typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 6, useGrouping: false }) : value === null ? "" : String(value); },
  };
}

/** Return the names of columns that runs have. */
export function valueNames(all: readonly RunValues[]): string[] {
  const names = (kind: "config" | "metric") => [...new Set(all.flatMap((values) => Object.keys(values[KINDS[kind]])))].sort().map((name) => `${kind}:${name}`);
  const configs = names("config"), isOwn = (name: string) => name.startsWith("config:user.");
  return [...configs.filter(isOwn), ...names("metric"), ...configs.filter((name) => !isOwn(name))].slice(0, MOST_NAMES);
}

/** A field that adds a column, with the names that are known. */
export class ValueField {
  readonly box: HTMLElement;
  private readonly names = element("datalist", { id: "value-names" });
  private known = "";

  constructor() {
    const label = "Add a configuration or metric";
    const field = labelled(element("input", { type: "search", placeholder: label }), { "aria-label": label, list: "value-names" });
    field.addEventListener("change", () => {
      const id = field.value.trim();
      if (columnOf(id)) change({ value: [...new Set([...parameters().getAll("value"), id])] });
      field.value = "";
    });
    this.box = element("div", {}, field, this.names);
  }

  show(names: readonly string[]): void {
    const known = names.join("\n");
    if (known === this.known) return;
    this.known = known;
    this.names.replaceChildren(...names.map((value) => element("option", { value })));
  }
}
