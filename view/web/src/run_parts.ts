// What the parts of the page of one run share.
import type { Metrics, RunDocument, Value } from "./api.js";

/** A part of the page, made when it is first looked at. */
export interface Part {
  box: HTMLElement;
  /** Show the run as it is now. */
  update: (run: RunDocument) => void;
  /** Read new points of metrics; return the state of the curves as events name it, empty while not all are read. */
  refresh?: () => Promise<string>;
  /** Show how many percent of the lines are read. */
  progress?: (percent: number) => void;
  /** Show the state of the URL. */
  redraw?: () => void;
}

/** Return the name of the state of all curves in events; empty while lines are read. */
export const stateOf = ({ progress: { complete, revision } }: Metrics): string => (complete ? `all ${revision}` : "");

/** Okabe and Ito, lighter in the dark: apart for all kinds of colour vision. */
const COLORS: readonly [light: string, dark: string][] = [["#0072b2", "#4ba8e0"], ["#d55e00", "#f08a3c"], ["#009e73", "#2ec29b"],
  ["#b0568b", "#dd92bd"], ["#b07c00", "#e6ac2f"], ["#4f9bd0", "#8fcdf5"], ["#6f6f6f", "#b4b4b4"], ["#8e4bb8", "#bf8ae0"]];
const dark = matchMedia("(prefers-color-scheme: dark)");

export const isDark = (): boolean => dark.matches;
export const color = (at: number): string => COLORS[at % COLORS.length]![Number(isDark())]!;
export const onTheme = (redraw: () => void): void => dark.addEventListener("change", redraw);

/** Return a number with up to five digits, as short as it can be read; empty for no value. */
export function short(value: Value | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string" || !Number.isFinite(value)) return String(value).replace("Infinity", "inf");
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(3);
  return value.toLocaleString("en", { maximumSignificantDigits: 5 });
}

/** Return a time of day in the viewer's zone, with the date where a range spans days. */
export function clock(seconds: number, span = 0): string {
  const text = new Date(1000 * seconds).toLocaleString("sv");
  return span > 86400 ? text.slice(0, 16) : text.slice(11, 19);
}

/** Return a time since the start as hours, minutes and seconds. */
export function elapsed(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds)), two = (part: number) => String(part).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}
