// Values of hosts in columns of time or steps as colours; the slowest hosts are named.
import { button, element, labelled } from "./elements.js";
import { showNumbers } from "./numbers_dialog.js";
import { isDark, short } from "./run_parts.js";

const MOST_PX = 22, LEAST_PX = 2, TALL_PX = 560;
const SLOW = 1.1;
const NAMED = 3;
// From the lowest to the highest value, as bright as their place: viridis, apart for all kinds of colour vision.
const COLORS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]] as const;

/** One row for each of `ranks`. */
export interface HeatValues { ranks: number[]; rows: (number | null)[][] }
/** `over` says what the columns are, such as "time"; `column` names one of them, or the end. */
interface Meaning { title: string; over: string; unit: string; name: (rank: number) => string; column: (at: number) => string; isPace: boolean }

/** Return the map with its scale, the slowest hosts, and the numbers. */
export function heatMap(data: HeatValues, { title, over, unit, name, column: columnName, isPace }: Meaning): HTMLElement {
  const { ranks, rows } = data, columns = rows[0]?.length ?? 1;
  const values = rows.flat().filter((each) => each !== null).sort((one, other) => one - other);
  const [low, high] = [quantile(values, .02), quantile(values, .98)];
  const text = (value: number | null) => (value === null ? "–" : `${short(value)}${unit && unit !== "1" ? ` ${unit}` : ""}`);
  const canvas = labelled(element("canvas", { className: "heat", width: columns, height: ranks.length }),
    { role: "img", "aria-label": `${ranks.length} hosts over ${over}, from ${text(low)} to ${text(high)}; the button Numbers has a table` });
  canvas.style.height = `${Math.max(LEAST_PX * ranks.length, Math.min(MOST_PX * ranks.length, TALL_PX))}px`;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(columns, ranks.length);
  rows.flat().forEach((value, at) => {
    const [red, green, blue] = value === null ? (isDark() ? [40, 46, 54] : [226, 230, 236]) : shade((value - low) / (high - low || 1));
    image.data.set([red, green, blue, 255], 4 * at);
  });
  context.putImageData(image, 0, 0);
  const readout = element("p", { className: "muted readout" }, `One line for each host; ${over} ${over.endsWith("s") ? "go" : "goes"} to the right.`);
  canvas.addEventListener("pointermove", ({ clientX, clientY }) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const column = Math.min(columns - 1, Math.max(0, Math.floor((columns * (clientX - left)) / width)));
    const row = Math.min(ranks.length - 1, Math.max(0, Math.floor((ranks.length * (clientY - top)) / height)));
    readout.textContent = `${name(ranks[row]!)} · ${columnName(column)} · ${text(rows[row]![column] ?? null)}`;
  });
  const ends = element("div", { className: "ends muted" }, element("span", {}, columnName(0)), element("span", {}, columnName(columns)));
  const scale = element("p", { className: "muted scale" }, text(low), element("span", { className: "viridis", ariaHidden: "true" }), text(high));
  const heads = ["host", ...Array.from({ length: columns }, (_, at) => columnName(at))];
  const numbers = button("Numbers", () => showNumbers(title, heads,
    ranks.map((rank, at) => [name(rank), ...rows[at]!.map((value) => (value === null ? "" : String(value)))])));
  const labels = MOST_PX * ranks.length <= TALL_PX ? element("ol", { className: "ranks", start: 0, ariaHidden: "true" },
    ...ranks.map((rank) => element("li", {}, name(rank)))) : null;
  return element("div", {}, ...(isPace ? [slowest(data, name)] : []),
    element("div", { className: "map" }, labels, element("div", {}, canvas, ends)), element("div", { className: "tools" }, scale, numbers, readout));
}

/** Return the hosts whose last values are well above the median host. */
function slowest({ ranks, rows }: HeatValues, name: (rank: number) => string): HTMLElement {
  const recent = rows.map((row) => mean(row.filter((each) => each !== null).slice(-Math.max(3, Math.floor(row.length / 10)))));
  const known = recent.filter((each) => each !== null).sort((one, other) => one - other), median = quantile(known, .5);
  const slow = ranks.map((rank, at) => [rank, (recent[at] ?? 0) / median] as const).filter(([, ratio]) => ratio >= SLOW)
    .sort((one, other) => other[1] - one[1]);
  if (!slow.length || slow.length > ranks.length / 2) {
    return element("p", { className: "muted" }, "No host is slower than the others: all are within 10 % of the median.");
  }
  const names = slow.slice(0, NAMED).map(([rank, ratio]) => `${name(rank)} (${ratio.toFixed(2)} × the median)`);
  const more = slow.length > NAMED ? ` and ${slow.length - NAMED} more` : "";
  return element("p", { className: "slow" }, `Slow lately: ${names.join(", ")}${more}`);
}

function mean(values: number[]): number | null {
  return values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : null;
}

function quantile(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

function shade(share: number): [number, number, number] {
  const place = Math.min(1, Math.max(0, share)) * (COLORS.length - 1), at = Math.min(COLORS.length - 2, Math.floor(place));
  const mix = (part: 0 | 1 | 2) => Math.round(COLORS[at]![part] + (place - at) * (COLORS[at + 1]![part] - COLORS[at]![part]));
  return [mix(0), mix(1), mix(2)];
}
