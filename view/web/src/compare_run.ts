// One of the compared runs: its letter and colour, and what the server knows of it.
import { get, type Files, type Goodput, type Metric, type Metrics, type RunDocument } from "./api.js";
import { drawing, element, labelled } from "./elements.js";
import { color } from "./run_parts.js";
import { addressOf, nameOf } from "./runs_columns.js";

export interface StepTimes {
  count: number; mean: number | null; min: number | null; max: number | null;
  p1: number | null; median: number | null; p90: number | null; p99: number | null; bins: [number, number][];
}

/** A run of a comparison. What failed to load is null, with the reason in `problems`. */
export interface Compared {
  id: string; at: number; title: string; base: string;
  document: RunDocument | null; hasFiles: boolean; metrics: Metric[]; isRead: boolean; goodput: Goodput["report"]; steps: StepTimes | null; problems: string[];
}

export const letterOf = ({ at }: { at: number }): string => String.fromCharCode(65 + at);
/** The colour of a run; its letter says the same. */
export const colorOf = ({ at }: { at: number }): string => color(at);

/** Load all about a run but its curves. */
export async function load(id: string, at: number): Promise<Compared> {
  const base = `/api${addressOf(id)}`, problems: string[] = [];
  const document = await part<RunDocument>(base, problems);
  const empty = { id, at, title: document ? nameOf(document.run) : id, base, document, hasFiles: false, metrics: [], isRead: true, goodput: null, steps: null, problems };
  if (!document) return empty;
  const files = await part<Files>(`${base}/files`, problems), hasFiles = files !== null && files.problem === null;
  if (files?.problem) problems.push(files.problem);
  const [goodput, run] = await Promise.all([part<Goodput>(`${base}/goodput`, problems), hasFiles ? loadRecords({ ...empty, hasFiles }) : empty]);
  return { ...run, goodput: goodput?.report ?? null, problems: [...new Set([...problems, ...run.problems])] };
}

/** Load what is computed from the records of a run again: the server had not read them all. */
export async function loadRecords(run: Compared): Promise<Compared> {
  const problems: string[] = [];
  const [metrics, steps] = await Promise.all([part<Metrics>(`${run.base}/metrics`, problems), part<StepTimes>(`${run.base}/steptimes`, problems)]);
  return {
    ...run, metrics: metrics?.metrics ?? [], isRead: metrics?.progress.complete ?? true, steps,
    problems: [...new Set([...run.problems, ...problems])],
  };
}

async function part<T>(path: string, problems: string[]): Promise<T | null> {
  try {
    return await get<T>(path);
  } catch (error) {
    problems.push((error as Error).message);
    return null;
  }
}

/** Return the letter of a run in its colour. */
export function badge(run: { at: number }): Element {
  const letter = letterOf(run), fill = colorOf(run);
  return labelled(drawing("svg", { class: "run-badge", viewBox: "0 0 20 20", role: "img" },
    drawing("rect", { width: 20, height: 20, rx: 5, fill }),
    drawing("text", { x: 10, y: 14.5, "text-anchor": "middle", class: isBright(fill) ? "on-bright" : "" }, letter)), { "aria-label": letter });
}

/** Return whether black has more contrast on a colour than white: by its luminance, as WCAG defines it. */
function isBright(hex: string): boolean {
  const [red, green, blue] = [1, 3, 5].map((at) => (parseInt(hex.slice(at, at + 2), 16) / 255) ** 2.2);
  return .2126 * red! + .7152 * green! + .0722 * blue! > .18;
}

/** Return a table head with the runs as columns. */
export function heads(runs: readonly Compared[]): HTMLElement[] {
  return runs.map((run) => element("span", { className: "compared-run", title: run.title }, badge(run), element("span", {}, run.title)));
}
