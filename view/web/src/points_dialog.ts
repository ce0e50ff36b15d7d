// The points behind a chart as they were recorded: a table, and files.
import { get, type Points } from "./api.js";
import { element } from "./elements.js";
import { showNumbers } from "./numbers_dialog.js";

/** Points of one run: the base of its addresses, and their query; `title` names the run where there are several. */
export interface PointsSource { title: string; base: string; query: URLSearchParams }

/** Open a dialog with the points of one metric. */
export async function showPoints(title: string, sources: PointsSource[]): Promise<void> {
  const files = sources.map(({ title: run, base, query }) =>
    element("a", { href: `${base}/points.csv?${query}`, download: `${[run, title].filter(Boolean).join("-")}.csv` }, run ? `CSV of ${run}` : "CSV"));
  try {
    const all = await Promise.all(sources.map(({ base, query }) => get<Points>(`${base}/points?${query}`)));
    const heads = ["run", ...(all[0]?.columns ?? [])];
    const rows = all.flatMap((each, at) => each.rows.map((row) => [sources[at]!.title, ...row].map((cell) => String(cell ?? ""))));
    const used = heads.map((head, at) => head !== "metric" && rows.some((row) => row[at] !== ""));
    const kept = (cells: string[]) => cells.filter((_, at) => used[at]);
    showNumbers(title, kept(heads), rows.map(kept), files, all.some(({ isCut }) => isCut));
  } catch (error) {
    showNumbers(title, ["problem"], [[(error as Error).message]], files);
  }
}
