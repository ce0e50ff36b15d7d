// Values of hosts in columns of time or steps as colours; the slowest hosts are named.
import { button, element, labelled } from "./elements.js";
import { showNumbers } from "./numbers_dialog.js";
import { isDark, short } from "./run_parts.js";

const MOST_PX = 22, LEAST_PX = 2, TALL_PX = 560;
const SLOW = 1.1, SLOWER = 1.05, OFTEN = .75;  // a host is slow by this much, and slower in most columns: one spike is noise
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
  const height = Math.max(LEAST_PX * ranks.length, Math.min(MOST_PX * ranks.length, TALL_PX));
  canvas.style.height = `${height}px`;
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
  const ends = element("div", { className: "ends muted" }, ...[0, columns / 2, columns].map((at) => element("span", {}, columnName(Math.floor(at)))));
  const scale = element("p", { className: "muted scale" }, text(low), element("span", { className: "viridis", ariaHidden: "true" }), text(high));
  const heads = ["host", ...Array.from({ length: columns }, (_, at) => columnName(at))];
  const numbers = button("Numbers", () => showNumbers(title, heads,
    ranks.map((rank, at) => [name(rank), ...rows[at]!.map((value) => (value === null ? "" : String(value)))])));
  return element("div", {}, ...(isPace ? [slowest(data, name)] : []), element("div", { className: "tools" }, scale, numbers, readout),
    element("div", { className: "map" }, rankLabels(ranks, height, name), element("div", {}, canvas, ends)));
}

/** Return the names of the lines; of many lines, every few are named. */
function rankLabels(ranks: number[], height: number, name: (rank: number) => string): HTMLElement {
  const line = height / ranks.length, every = Math.ceil(MOST_PX / line);
  return labelled(element("ol", { className: "ranks" }, ...ranks.filter((_, at) => at % every === 0).map((rank) => {
    const label = element("li", {}, name(rank));
    label.style.height = `${every * line}px`;
    return label;
  })), { "aria-hidden": "true" });
}

/** Return the hosts that have been slower than the median host in most of the last columns. */
function slowest({ ranks, rows }: HeatValues, name: (rank: number) => string): HTMLElement {
  const columns = rows[0]?.length ?? 0, fewest = Math.max(2, rows.length / 2);  // a host that is left alone has nobody to compare with
  const known = Array.from({ length: columns }, (_, at) => at).filter((at) => rows.filter((row) => row[at] !== null).length >= fewest);
  const last = known.slice(-Math.max(3, Math.floor(known.length / 10)));
  const medians = new Map(last.map((at) => [at, median(rows.flatMap((row) => row[at] ?? []))]));
  const ratios = rows.map((row) => last.flatMap((at) => (row[at] === null || !medians.get(at) ? [] : [row[at]! / medians.get(at)!])));
  const slow = ranks.map((rank, at) => [rank, median(ratios[at]!), ratios[at]!.filter((each) => each >= SLOWER).length / ratios[at]!.length] as const)
    .filter(([, ratio, often]) => ratio >= SLOW && often >= OFTEN).sort((one, other) => other[1] - one[1]);
  if (!slow.length || slow.length > ranks.length / 2) {
    return element("p", { className: "muted" }, "No host is slower than the others.");
  }
  const names = slow.slice(0, NAMED).map(([rank, ratio]) => `${name(rank)} (${ratio.toFixed(2)} × the median)`);
  const more = slow.length > NAMED ? ` and ${slow.length - NAMED} more` : "";
  return element("p", { className: "slow" }, `Slow lately: ${names.join(", ")}${more}`);
}

/** Return the median; of two hosts, the value of the faster one. */
function median(values: number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

function quantile(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

function shade(share: number): [number, number, number] {
  const place = Math.min(1, Math.max(0, share)) * (COLORS.length - 1), at = Math.min(COLORS.length - 2, Math.floor(place));
  const mix = (part: 0 | 1 | 2) => Math.round(COLORS[at]![part] + (place - at) * (COLORS[at + 1]![part] - COLORS[at]![part]));
  return [mix(0), mix(1), mix(2)];
}
