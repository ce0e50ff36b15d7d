// The page with all runs: loads them, and shows the state of the URL.
import { type RunList } from "./api.js";
import { button, element, problem } from "./elements.js";
import { follow } from "./live.js";
import { liveDocument } from "./live_document.js";
import { COLUMNS, columnsOf, idOf, type Account, type Listed } from "./runs_columns.js";
import { asText, filtered, lines, sorted, type Line } from "./runs_order.js";
import { RowReads } from "./row_reads.js";
import { RunsScatter } from "./runs_scatter.js";
import { RunsTable } from "./runs_table.js";
import { RunsTools } from "./runs_tools.js";
import { valueColumns, valueNames, type RunValues } from "./value_columns.js";
import { change, onChange, parameter, parameters } from "./url_state.js";

const PAUSE_MS = 6000;  // with the accounts once a minute, at most one request in five seconds
const AGE_MS = 30_000;
const MOST_SORTED = 2000;  // by values, which are read run by run
const MOST_SELECTED = 200;  // they are in the address

export function showRuns(main: HTMLElement): void {
  let list: RunList | null = null, failure = "", anchor = "";
  let shown: Listed[] = [], shownLines: Line[] = [];  // as the last drawing has them
  const accounts = new RowReads<Account>("/api/goodput", draw), values = new RowReads<RunValues>("/api/values", draw);
  const notes = element("div"), empty = element("div", { className: "empty" });
  const tools = new RunsTools(() => navigator.clipboard.writeText(asText(columns(), copied())), {
    selectAll: (isSelected) => select(shownLines.flatMap(idsOf), isSelected), wantNames: draw,
  });
  const rows = new RunsTable({
    sort: (id) => change(parameter("sort") !== id ? { sort: id, order: "" } : { order: parameter("order") ? "" : "down" }),
    select: (id, isRange) => select(isRange ? rangeTo(id) : [id], !selected().includes(id), id),
    fold: (name) => change({ groups: toggled(parameters().getAll("groups"), name || "-") }),
    seen: (runs) => {
      accounts.want(runs);
      if (valueColumns().length || tools.isChoosing) values.want(isScatter() || isByValue() ? [...runs, ...shown.slice(0, MOST_SORTED)] : runs);
    },
  });
  const scatter = new RunsScatter();
  document.title = "Runs";
  main.className = "wide";
  main.replaceChildren(element("h1", { className: "hidden" }, "Runs"), tools.box, notes, scatter.box, rows.box, empty);

  const columns = () => columnsOf(parameter("columns"), { sources: (list?.sources.length ?? 0) > 1, tags: list?.runs.some(({ tags }) => tags.length > 0) ?? false });
  const phases = () => new Set(parameter("phase").split(",").filter(Boolean));
  const all = (): Listed[] => (list?.runs ?? []).map((run) => ({ run, id: idOf(run), account: accounts.of(run), values: values.of(run) }));
  const isScatter = (): boolean => parameter("chart") === "scatter";
  const isByValue = (): boolean => valueColumns().some(({ id }) => id === parameter("sort"));
  const selected = (): string[] => parameters().getAll("run");
  function inOrder(runs: Listed[]): Listed[] {
    const column = [...COLUMNS, ...valueColumns()].find(({ id }) => id === parameter("sort"));
    return column ? sorted(runs, column, parameter("order") === "down") : runs;
  }

  function linesOf(runs: Listed[]): Line[] {
    const folded = new Set(parameters().getAll("groups"));
    return lines(runs, parameter("by") === "group", (name) => folded.has(name || "-"));
  }

  /** Return the selected runs, or all that are shown. */
  function copied(): Listed[] {
    const wanted = new Set(selected()), marked = shown.filter(({ id }) => wanted.has(id));
    return marked.length ? marked : shown;
  }

  /** Return the runs from the last one that was selected to another one, as they are shown. */
  function rangeTo(id: string): string[] {
    const ids = shownLines.flatMap(idsOf);
    const [first, last] = [ids.indexOf(anchor), ids.indexOf(id)].sort((one, other) => one - other);
    return first === undefined || first < 0 ? [id] : ids.slice(first, last! + 1);
  }

  function select(ids: string[], isSelected: boolean, last = ""): void {
    const others = selected().filter((id) => !ids.includes(id));
    change({ run: isSelected ? [...others, ...ids].slice(0, MOST_SELECTED) : others }, "replace");
    anchor = last;
    draw();  // also if nothing has changed: the box that was pressed shows the state
  }

  function draw(): void {
    const everything = all(), marked = new Set(selected()), wanted = phases(), filter = { text: parameter("q"), group: parameter("group") };
    const found = filtered(everything, { ...filter, phases: new Set() });
    shown = inOrder(filtered(found, { text: "", group: "", phases: wanted }));
    shownLines = linesOf(shown);
    tools.show({ all: everything, found, shown: shown.length, ids: shownLines.flatMap(idsOf), isRead: list !== null, columns: columns(), selected: marked, phases: wanted, names: valueNames(values.all()) });
    rows.show({ columns: columns(), sort: parameter("sort"), isDown: parameter("order") === "down", selected: marked, lines: shownLines });
    const problems = (list?.sources ?? []).flatMap((source) => (source.problem ? [problem(source.problem)] : []));
    notes.replaceChildren(...(failure ? [problem(failure)] : []), ...problems);
    scatter.box.hidden = !isScatter() || !shown.length;
    if (!scatter.box.hidden) scatter.show({ columns: columns(), runs: shown, selected: marked });
    rows.box.hidden = !shown.length;
    empty.hidden = shown.length > 0;
    if (!shown.length) empty.replaceChildren(...reason(everything.length));
  }

  function reason(count: number): Node[] {
    if (!list) return failure ? [] : [element("p", { className: "muted" }, "Reading runs …")];
    if (count) {
      return [element("p", {}, "No run matches the search and the filters."),
        button("Show all runs", () => change({ q: "", phase: "", group: "" }))];
    }
    const places = list.sources.map(({ place }) => place).join(", ");
    return [element("p", {}, `No runs yet in ${places}. This page shows them as soon as they start:`),
      element("pre", {}, 'from mldiagnostics import machinelearning_run, metrics\n\nwith machinelearning_run("my-run") as run:\n'
        + '    for step in range(1000):\n        run.step(step)\n        metrics.record("loss", loss, step=step)')];
  }

  function show(loaded: RunList): void {
    [list, failure] = [loaded, ""];
    draw();
  }
  function fail({ message }: Error): void {
    failure = message;
    draw();
  }
  const page = liveDocument("/api/runs", PAUSE_MS, show, fail);
  onChange(draw);
  addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement && event.target.type === "search";
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      tools.search.focus();
    }
    if (event.key === "Escape" && isTyping) change({ q: (tools.search.value = "") }, "replace");
  });
  setInterval(() => document.hidden || draw(), AGE_MS);
  draw();
  page.reload();
  follow("/api/live", { runs: page.changed });
}

const idsOf = (line: Line): string[] => (line.kind === "run" ? [line.listed.id] : []);
const toggled = (names: string[], name: string): string[] =>
  names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
