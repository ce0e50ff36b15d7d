// Elements of the page. Values become text alone, never markup.

type Child = Node | string | null;
const SVG = "http://www.w3.org/2000/svg";

/** Return an element with properties and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K, properties: Partial<HTMLElementTagNameMap[K]> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Return an element with attributes besides. */
export function labelled<E extends Element>(made: E, attributes: Record<string, string>): E {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Return an SVG element with attributes and children. */
export function drawing<K extends keyof SVGElementTagNameMap>(
  name: K, attributes: Record<string, string | number> = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, name) as SVGElementTagNameMap[K];
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Return text for screen readers alone. */
export const hidden = (text: string): HTMLElement => element("span", { className: "hidden" }, text);

/** Return a button. */
export function button(text: string, action: () => void, properties: Partial<HTMLButtonElement> = {}): HTMLButtonElement {
  const made = element("button", { type: "button", ...properties }, text);
  made.addEventListener("click", action);
  return made;
}

/** Return a field with a choice; values and texts are the same unless pairs are given. */
export function choice(label: string, choices: readonly (string | [value: string, text: string])[],
  value: string, action: (value: string) => void): HTMLSelectElement {
  const made = element("select", {}, ...choices.map((each) => (typeof each === "string"
    ? element("option", { value: each }, each) : element("option", { value: each[0] }, each[1]))));
  made.setAttribute("aria-label", label);
  made.value = value;
  made.addEventListener("change", () => action(made.value));
  return made;
}

export const ROWS_AT_ONCE = 1000;

/**
 * Return a table in a box that scrolls, with a button for more than 1000 rows; numbers are aligned to the right.
 * @param limit - Most rows to show, which the button raises; a table that is drawn again and has the same limit keeps its rows.
 */
export function table(heads: (Node | string)[], rows: (Node | string | number | null)[][], limit = { rows: ROWS_AT_ONCE }): HTMLElement {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = element("tbody"), more = button("", () => {
    limit.rows += ROWS_AT_ONCE;
    add();
  });
  let shown = 0;
  function add(): void {
    body.append(...rows.slice(shown, limit.rows).map((cells) => element("tr", {}, ...cells.map((cell) =>
      typeof cell === "number"
        ? element("td", { className: "number" }, cell.toLocaleString("en", { maximumSignificantDigits: 5 }))
        : element("td", {}, cell ?? "–")))));
    shown = Math.min(rows.length, limit.rows);
    more.hidden = shown === rows.length;
    more.textContent = `Show ${Math.min(ROWS_AT_ONCE, rows.length - shown)} more of ${rows.length} rows`;
  }
  add();
  return element("div", { className: "scroll", tabIndex: 0 }, element("table", {}, element("thead", {}, head), body), more);
}

export function problem(text: string): HTMLElement {
  return element("p", { className: "problem", role: "alert" }, text);
}

const UNITS = [[86_400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]] as const;

/** Return a duration in its two largest units, as the goodput report does. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  for (const [size, unit, smallSize, smallUnit] of UNITS) {
    if (whole < size) continue;
    const small = Math.floor((whole % size) / smallSize);
    return `${Math.floor(whole / size)} ${unit}${small ? ` ${String(small).padStart(2, "0")} ${smallUnit}` : ""}`;
  }
  const short = (value: number) => String(Number(value.toPrecision(3)));
  if (seconds >= 1 || seconds === 0) return `${short(seconds)} s`;
  return seconds >= 1e-3 ? `${short(seconds * 1e3)} ms` : `${short(seconds * 1e6)} µs`;
}

/** Return the time since a moment in one unit, as kubectl does: 42s, 17m, 5h, 12d. */
export function age(time: string | null, now = Date.now()): string {
  if (!time) return "–";
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86400)}d`;
}

export function bytes(size: number): string {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, size)) / 10));
  return `${(size / 1024 ** power).toFixed(power ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

/** Return a number with its noun: 1 run, 1,200 runs. */
export const counted = (count: number, noun: string): string => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
export const percent = (share: number | null): string => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
/** Return a time of the browser's zone, with the zone: 2026-11-27 14:54:20 UTC+1. */
export function moment(time: string | null): string {
  if (!time) return "–";
  return `${new Date(time).toLocaleString("sv")} ${zone(new Date(time))}`;
}

/** Return the browser's zone at a time: UTC, UTC+5:30. */
export function zone(at = new Date()): string {
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" }).formatToParts(at);
  return parts.find(({ type }) => type === "timeZoneName")?.value.replace("GMT", "UTC").replace(/\+0$/, "") ?? "";
}
