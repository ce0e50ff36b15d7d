// The page with all runs: loads them, and shows the state of the URL.
import { Accounts } from "./accounts.js";
import { type RunList } from "./api.js";
import { button, element, problem } from "./elements.js";
import { follow } from "./live.js";
import { liveDocument } from "./live_document.js";
import { COLUMNS, columnsOf, idOf, type Listed } from "./runs_columns.js";
import { asText, filtered, lines, sorted } from "./runs_order.js";
import { RunsTable } from "./runs_table.js";
import { RunsTools } from "./runs_tools.js";
import { change, onChange, parameter, parameters } from "./url_state.js";

const PAUSE_MS = 6000;  // with the accounts once a minute, at most one request in five seconds
const AGE_MS = 30_000;

export function showRuns(main: HTMLElement): void {
  let list: RunList | null = null, failure = "";
  const accounts = new Accounts(draw);
  const notes = element("div"), empty = element("div", { className: "empty" });
  const tools = new RunsTools(() => navigator.clipboard.writeText(asText(columns(), shown())));
  const rows = new RunsTable({
    sort: (id) => change(parameter("sort") !== id ? { sort: id, order: "" } : { order: parameter("order") ? "" : "down" }),
    select: (id) => change({ run: toggled(parameters().getAll("run"), id) }, "replace"),
    fold: (name) => change({ groups: toggled(parameters().getAll("groups"), name || "-") }),
    seen: (runs) => accounts.want(runs),
  });
  document.title = "Runs";
  main.className = "wide";
  main.replaceChildren(element("h1", { className: "hidden" }, "Runs"), tools.box, notes, rows.box, empty);

  const columns = () => columnsOf(parameter("columns"), (list?.sources.length ?? 0) > 1);
  const phases = () => new Set(parameter("phase").split(",").filter(Boolean));
  const all = (): Listed[] => (list?.runs ?? []).map((run) => ({ run, id: idOf(run), account: accounts.of(run) }));
  function shown(): Listed[] {
    const runs = filtered(all(), { text: parameter("q"), phases: phases(), group: parameter("group") });
    const column = COLUMNS.find(({ id }) => id === parameter("sort"));
    return column ? sorted(runs, column, parameter("order") === "down") : runs;
  }

  function draw(): void {
    const runs = shown(), everything = all();
    const selected = new Set(parameters().getAll("run"));
    const folded = new Set(parameters().getAll("groups"));
    tools.show({ all: everything, shown: runs.length, isRead: list !== null, columns: columns(), selected, phases: phases() });
    rows.show({
      columns: columns(), sort: parameter("sort"), isDown: parameter("order") === "down", selected,
      lines: lines(runs, parameter("by") === "group", (name) => folded.has(name || "-")),
    });
    const problems = (list?.sources ?? []).flatMap((source) => (source.problem ? [problem(source.problem)] : []));
    notes.replaceChildren(...(failure ? [problem(failure)] : []), ...problems);
    rows.box.hidden = !runs.length;
    empty.hidden = runs.length > 0;
    if (!runs.length) empty.replaceChildren(...reason(everything.length));
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

const toggled = (names: string[], name: string): string[] =>
  names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
