// Which runs the table shows, and in which order; pure.
import { goodputOf, nameOf, type Column, type Listed } from "./runs_columns.js";

export interface Filter { text: string; phases: ReadonlySet<string>; group: string }
export interface Group { name: string; runs: Listed[]; isFolded: boolean }
export type Line = { kind: "run"; listed: Listed } | { kind: "group"; group: Group };

/** Return the runs that have each word of a text somewhere. */
export function filtered(all: readonly Listed[], { text, phases, group }: Filter): Listed[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter(({ run }) => {
    if (phases.size && !phases.has(run.phase)) return false;
    if (group && run.runGroup !== group) return false;
    if (!words.length) return true;
    const workload = run.workloadRef ? Object.values(run.workloadRef) : [];
    const texts = [nameOf(run), run.runId, ...run.tags, run.notes, run.runGroup, run.namespace, run.phase, run.reason, run.message, run.source, ...workload];
    const whole = texts.join("\n").toLowerCase();
    return words.every((word) => whole.includes(word));
  });
}

/** Return runs by the values of a column; runs without a value stand last in both directions. */
export function sorted(runs: readonly Listed[], column: Column, isDown: boolean): Listed[] {
  const sign = isDown ? -1 : 1;
  const values = new Map(runs.map((listed) => [listed, column.value(listed)]));
  return [...runs].sort((one, other) => {
    const first = values.get(one) ?? null, second = values.get(other) ?? null;
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return sign * (typeof first === "number" && typeof second === "number"
      ? first - second : String(first).localeCompare(String(second), "en", { numeric: true }));
  });
}

/** Return the lines of the table: runs, or groups with their runs. Groups stand where their first run does. */
export function lines(runs: readonly Listed[], isGrouped: boolean, isFolded: (name: string) => boolean): Line[] {
  if (!isGrouped) return runs.map((listed) => ({ kind: "run", listed }));
  const groups = new Map<string, Listed[]>();
  for (const listed of runs) {
    const name = listed.run.runGroup ?? "";
    const members = groups.get(name);
    if (members) members.push(listed);
    else groups.set(name, [listed]);
  }
  return [...groups].flatMap(([name, members]): Line[] => {
    const group = { name, runs: members, isFolded: isFolded(name) };
    return [{ kind: "group", group }, ...(group.isFolded ? [] : members.map((listed): Line => ({ kind: "run", listed })))];
  });
}

/** Return a group in a few words: how many runs of each phase, and their mean goodput. */
export function summary(runs: readonly Listed[]): string {
  const phases = new Map<string, number>();
  for (const { run } of runs) phases.set(run.phase, (phases.get(run.phase) ?? 0) + 1);
  const shares = runs.map(goodputOf).filter((share) => share !== null);
  const counts = [...phases].map(([phase, count]) => `${count} ${phase.toLowerCase()}`);
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  return [...counts, ...(shares.length ? [`mean goodput ${(100 * mean).toFixed(1)} %`] : [])].join(" · ");
}

/** Return the table as text that spreadsheets and chats take: a line for each run, columns apart by tabs. */
export function asText(columns: readonly Column[], runs: readonly Listed[]): string {
  const clean = (text: string) => text.replaceAll(/\s+/g, " ");
  const rows = runs.map((listed) => columns.map((column) => clean(column.text(listed))));
  return [columns.map(({ title }) => title), ...rows].map((cells) => cells.join("\t")).join("\n") + "\n";
}
