// The columns of the table of runs: value for sorting, text for copying, element for the page.
import type { Run } from "./api.js";
import { partitionOf, type Partition } from "./causes.js";
import { age, duration, element, labelled, moment, percent } from "./elements.js";
import { valueColumns, type RunValues } from "./value_columns.js";
import { goodputBar, partitionOfShare } from "./goodput_bar.js";

export interface Account { elapsedSeconds: number; productiveSeconds: number; unproductiveSeconds: Record<string, number>; goodput: number | null }

/** A run with its account of goodput and its values, once they are read. */
export interface Listed { run: Run; id: string; account: Account | null | undefined; values: RunValues | null | undefined }

export interface Column {
  id: string;
  title: string;
  /** Sorts; null stands last. */
  value: (listed: Listed) => string | number | null;
  text: (listed: Listed) => string;
  cell?: (listed: Listed) => Node;
  isNumber?: boolean;
  isExtra?: boolean;
  /** The name of its style, if that is not its id. */
  css?: string;
}

export const idOf = (run: Run): string => `${run.source}/${run.key}`;
export const addressOf = (id: string): string => {
  const at = id.indexOf("/");
  return `/runs/${encodeURIComponent(id.slice(0, at))}/${encodeURIComponent(id.slice(at + 1))}`;
};
export const nameOf = (run: Run): string => run.displayName ?? run.runId;
const SIGNS: Record<string, string> = { Active: "●", Completed: "✓", Failed: "✕", Pending: "○" };

/** Return a phase with a sign: not by colour alone. */
export function phaseSign(run: Run): HTMLElement {
  const sign = labelled(element("span", { className: `sign ${run.phase.toLowerCase()}` }, SIGNS[run.phase] ?? "·"), { "aria-hidden": "true" });
  return element("span", { className: "phase", title: [run.reason, run.message].filter(Boolean).join(": ") }, sign, ` ${run.phase}`,
    run.reason ? element("span", { className: "muted" }, ` ${run.reason}`) : null);
}

/** Return the tags of a run, each in a frame of its own. */
export function tagList(tags: readonly string[]): HTMLElement {
  return element("span", { className: "tags", title: tags.join(", ") }, ...tags.map((tag) => element("span", { className: "tag" }, tag)));
}

export const goodputOf = ({ run, account }: Listed): number | null => account?.goodput ?? run.goodput;

function partition(listed: Listed): Partition | null {
  if (listed.account && listed.account.elapsedSeconds > 0) return partitionOf(listed.account);
  return listed.run.goodput === null ? null : partitionOfShare(listed.run.goodput);
}

function goodputCell(listed: Listed): Node {
  const time = partition(listed);
  if (!time) {
    const reason = listed.account === undefined ? "not read yet" : "no events of goodput, or too many records to read them for a list";
    return element("span", { className: "muted", title: reason }, listed.account === undefined ? "…" : "–");
  }
  return element("span", { className: "with-bar" }, goodputBar(time), percent(goodputOf(listed)));
}

const seconds = (time: string | null): number | null => (time ? Date.parse(time) / 1000 : null);
const plain = (get: (run: Run) => string | number | null) => ({
  value: ({ run }: Listed) => get(run),
  text: ({ run }: Listed) => { const value = get(run); return typeof value === "number" ? value.toLocaleString("en") : value ?? ""; },
});
const time = (get: (run: Run) => string | null) => ({
  value: ({ run }: Listed) => seconds(get(run)), text: ({ run }: Listed) => moment(get(run)),
});
const elapsed = (run: Run): number | null => {
  const start = seconds(run.creationTime), end = seconds(run.completionTime) ?? Date.now() / 1000;
  return start === null ? null : Math.max(0, end - start);
};
const workload = ({ workloadRef: of }: Run): string | null => (of ? [of["kind"], of["name"]].filter(Boolean).join("/") : null);

export const COLUMNS: readonly Column[] = [
  { id: "name", title: "Name", ...plain(nameOf) },
  { id: "tags", title: "Tags", ...plain((run) => run.tags.join(", ") || null), cell: ({ run }) => tagList(run.tags), isExtra: true },
  { id: "group", title: "Group", ...plain((run) => run.runGroup) },
  { id: "workload", title: "Workload", ...plain(workload) },
  { id: "source", title: "Source", ...plain((run) => run.source), isExtra: true },
  { id: "namespace", title: "Namespace", ...plain((run) => run.namespace), isExtra: true },
  { id: "phase", title: "Phase", value: ({ run }) => `${run.phase} ${run.reason ?? ""}`,
    text: ({ run }) => [run.phase, run.reason].filter(Boolean).join(": "), cell: ({ run }) => phaseSign(run) },
  { id: "attempt", title: "Attempt", ...plain((run) => run.attempt), isNumber: true },
  { id: "hosts", title: "Hosts", ...plain((run) => run.hosts.reporting), isNumber: true },
  { id: "step", title: "Step", ...plain((run) => run.progress.step), isNumber: true },
  { id: "steptime", title: "Step time", value: ({ run }) => run.progress.stepTimeSeconds,
    text: ({ run: { progress } }) => (progress.stepTimeSeconds === null ? "" : duration(progress.stepTimeSeconds)), isNumber: true },
  { id: "goodput", title: "Goodput", value: goodputOf, text: (listed) => (goodputOf(listed) === null ? "" : percent(goodputOf(listed))), cell: goodputCell },
  { id: "profiles", title: "Profiles", ...plain((run) => run.profileSessions), isNumber: true, isExtra: true },
  { id: "elapsed", title: "Duration", value: ({ run }) => elapsed(run),
    text: ({ run }) => { const size = elapsed(run); return size === null ? "" : duration(size); }, isNumber: true, isExtra: true },
  { id: "heartbeat", title: "Last report", ...time((run) => run.lastHeartbeatTime), isExtra: true },
  { id: "ended", title: "Ended", ...time((run) => run.completionTime), isExtra: true },
  { id: "age", title: "Age", value: ({ run }) => { const at = seconds(run.creationTime); return at === null ? null : -at; },
    text: ({ run }) => age(run.creationTime),
    cell: ({ run }) => element("span", { title: moment(run.creationTime) }, age(run.creationTime)), isNumber: true },
  { id: "notes", title: "Notes", ...plain((run) => run.notes), isExtra: true },
  { id: "id", title: "Run id", ...plain((run) => run.runId), isExtra: true },
];

/** Widths of the page, and the columns that fit up to each of them. */
const FITTING: readonly [width_px: number, columns: readonly string[]][] = [
  [700, ["phase", "step", "goodput", "age"]],
  [1480, ["tags", "group", "source", "phase", "step", "steptime", "goodput", "age"]],
];

const NARROW_PX = 1100;  // as in runs.css: tags take the place of the step time

/** Return the columns that the URL names, in their order; without names, those that are shown at first. Those of values follow the name. */
export function columnsOf(names: string, has: { sources: boolean; tags: boolean }): Column[] {
  const given = names.split(",").filter(Boolean);
  const fitting = FITTING.find(([width_px]) => innerWidth <= width_px)?.[1].filter((id) => !has.tags || innerWidth > NARROW_PX || id !== "steptime");
  const isFirst = ({ id, isExtra }: Column) => (id === "source" ? has.sources : id === "tags" ? has.tags : !isExtra) && (fitting?.includes(id) ?? true);
  const shown = COLUMNS.filter((column) => column.id === "name" || (given.length ? given.includes(column.id) : isFirst(column)));
  return [...shown.slice(0, 1), ...valueColumns(), ...shown.slice(1)];
}
