// The comparison of some runs; which ones, and the state of their charts, are in the URL.
import { get, type RunList } from "./api.js";
import { showConfigs } from "./compare_configs.js";
import { CompareCurves } from "./compare_curves.js";
import { badge, load, loadRecords, type Compared } from "./compare_run.js";
import { showGoodput, showSteps } from "./compare_time.js";
import { age, button, duration, element, hidden, labelled, percent, problem, table } from "./elements.js";
import { follow, throttled } from "./live.js";
import { onTheme } from "./run_parts.js";
import { addressOf, idOf, phaseSign } from "./runs_columns.js";
import { MAX_COMPARED } from "./runs_tools.js";
import { change, onChange, parameters } from "./url_state.js";

const PAUSE_MS = 10_000, AGAIN_MS = 1500;

export function showComparison(main: HTMLElement): void {
  const known = new Map<string, Compared>(), rows = new Map<string, string>();
  const notes = element("div"), runs = element("div"), goodput = element("div"), steps = element("div"), configs = element("div");
  const curves = new CompareCurves();
  const back = element("a");
  const parts = element("div", {}, runs, curves.part, element("h2", {}, "Goodput"), goodput, element("h2", {}, "Step times"), steps,
    element("h2", {}, "Configuration"), configs);
  document.title = "Comparison";
  main.replaceChildren(element("h1", {}, "Comparison"), element("p", {}, back), notes, parts);

  const ids = () => [...new Set(parameters().getAll("run"))].slice(0, MAX_COMPARED);
  function compared(): Compared[] {
    const all = ids().flatMap((id, at) => (known.has(id) ? [{ ...known.get(id)!, at }] : []));
    const isShared = (title: string) => all.filter((run) => run.title === title).length > 1;
    return all.map((run) => (isShared(run.title) && run.document ? { ...run, title: `${run.title} · ${run.document.run.runId}` } : run));
  }

  function draw(): void {
    const wanted = ids(), all = compared();
    back.textContent = "Choose other runs";
    back.href = `/?${new URLSearchParams(wanted.map((id) => ["run", id]))}`;
    const shown = all.filter(({ document }) => document);
    const count = parameters().getAll("run").length;
    notes.replaceChildren(
      ...(wanted.length < 2 ? [element("p", {}, "Select two or more runs in the list, then Compare.")] : []),
      ...(count > MAX_COMPARED ? [element("p", { className: "muted" }, `The first ${MAX_COMPARED} of ${count} runs are compared.`)] : []),
      ...all.flatMap((run) => run.problems.map((text) => removable(run, text))),
      ...(wanted.length && all.length < wanted.length ? [element("p", { className: "muted" }, `Reading ${wanted.length - all.length} of ${wanted.length} runs …`)] : []));
    parts.hidden = !shown.length;
    if (!shown.length) return;
    document.title = `${shown.map(({ title }) => title).join(", ")} · comparison`;
    runs.replaceChildren(table(["Run", "Phase", "Attempt", "Step", "Step time", "Goodput", "Age", hidden("Remove")], shown.map((run) => {
      const { run: row } = run.document!;
      return [element("span", { className: "compared-run" }, badge(run) as unknown as Node, element("a", { href: addressOf(run.id) }, run.title)), phaseSign(row), row.attempt,
        row.progress.step, row.progress.stepTimeSeconds === null ? null : duration(row.progress.stepTimeSeconds),
        percent(run.goodput?.cumulative.goodput ?? row.goodput), age(row.creationTime), remover(run)];
    })));
    curves.show(shown);
    showGoodput(goodput, shown);
    showSteps(steps, shown);
    showConfigs(configs, shown);
  }
  const remover = (run: Compared) => labelled(button("×", () => change({ run: ids().filter((id) => id !== run.id) }), { className: "quiet" }),
    { "aria-label": `Remove ${run.title}` });
  function removable(run: Compared, text: string): HTMLElement {
    const note = problem(`${run.id}: ${text} `);
    note.append(button("Remove from the comparison", () => change({ run: ids().filter((id) => id !== run.id) })));
    return note;
  }

  async function read(id: string): Promise<void> {
    keep(id, await load(id, ids().indexOf(id)));
  }
  function keep(id: string, run: Compared): void {
    known.set(id, run);
    draw();
    if (!run.isRead) setTimeout(() => void readOn(id, run), AGAIN_MS);
  }
  async function readOn(id: string, run: Compared): Promise<void> {
    const isCurrent = () => ids().includes(id) && known.get(id) === run;
    if (!isCurrent()) return;
    const more = await loadRecords(run);
    if (isCurrent()) keep(id, more);
  }
  function update(): void {
    draw();
    for (const id of ids()) {
      if (known.has(id) || rows.has(id)) continue;
      rows.set(id, "");
      void read(id);
    }
  }
  /** Read those runs again whose row in the list has changed. */
  async function look(): Promise<void> {
    try {
      const list = await get<RunList>("/api/runs");
      for (const run of list.runs) {
        const id = idOf(run), row = JSON.stringify(run), before = rows.get(id);
        if (before === undefined || before === row) continue;
        rows.set(id, row);
        if (before) void read(id);
      }
    } catch {
      // The server refuses it: the next event leads to another look.
    }
  }
  onChange(update);
  onTheme(draw);
  update();
  follow("/api/live", { runs: throttled(look, PAUSE_MS) });
}
