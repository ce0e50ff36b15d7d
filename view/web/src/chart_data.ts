// Curves as columns of a chart, and as a table; pure.
import type { AlignedData } from "uplot";
import type { Curve } from "./api.js";
import { smoothed } from "./smoothing.js";

export type Column = (number | null | undefined)[];

/** A line of a chart: all attempts at one series are a group. `hue` is the number of its colour. */
export interface Line { label: string; group: number; hue: number; isLast: boolean; curve: Curve }
export interface Columns { x: number[]; raw: Column[]; smooth: Column[]; low: Column[]; high: Column[] }

/** Return the lines of the curves of one metric. */
export function linesOf(curves: Curve[]): Line[] {
  const groups: string[] = [];
  const last = new Map<string, number>();
  for (const curve of curves) {
    const name = groupOf(curve);
    if (!groups.includes(name)) groups.push(name);
    last.set(name, Math.max(curve.attempt, last.get(name) ?? 0));
  }
  return curves.map((curve) => {
    const name = groupOf(curve), isLast = last.get(name) === curve.attempt;
    return { label: name + (isLast ? "" : ` · attempt ${curve.attempt}`), group: groups.indexOf(name), hue: groups.indexOf(name), isLast, curve };
  });
}

function groupOf({ labels, rank, device }: Curve): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  if (rank !== null) parts.unshift(`rank ${rank}`);
  if (device !== null) parts.push(`device ${device}`);
  return parts.join(" · ");
}

/** Return the columns of lines over the union of their x. */
export function columnsOf(lines: Line[], smoothing: number, isLog: boolean): Columns {
  const x = [...new Set(lines.flatMap(({ curve }) => [...curve.x, ...(curve.nonfinite?.x ?? [])]))].sort((one, other) => one - other);
  const place = new Map(x.map((each, at) => [each, at]));
  const spread = (xs: number[], values: number[]): Column => {
    const column: Column = new Array<undefined>(x.length).fill(undefined);
    xs.forEach((each, at) => {
      const value = values[at];
      column[place.get(each)!] = value === undefined || (isLog && value <= 0) ? null : value;
    });
    return column;
  };
  const columns: Columns = { x, raw: [], smooth: [], low: [], high: [] };
  for (const { curve } of lines) {
    const raw = spread(curve.x, curve.mean);
    columns.raw.push(raw);
    columns.smooth.push(smoothing > 0 ? smoothed(raw, smoothing) : raw);
    columns.low.push(curve.low ? spread(curve.x, curve.low) : raw);
    columns.high.push(curve.high ? spread(curve.x, curve.high) : raw);
  }
  return columns;
}

/** Return the data of a plot: for each line its smooth and raw values, its lowest and its highest ones. */
export function plotData({ x, raw, smooth, low, high }: Columns): AlignedData {
  return [x, ...raw.flatMap((each, at) => [smooth[at]!, each, low[at]!, high[at]!])] as AlignedData;
}

/** Return how many values of a curve are not finite, in words; empty for none. */
export function nonfiniteText({ summary: { nonfinite: { nan, plus, minus } } }: Curve): string {
  return [[nan, "NaN"], [plus, "inf"], [minus, "-inf"]].filter(([count]) => count).map(([count, name]) => `${count} ${name}`).join(", ");
}
