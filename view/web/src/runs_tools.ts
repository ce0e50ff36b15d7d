// The tools above the table of runs: search, phases, group, columns, copying and comparison.
import { button, choice, counted, element, labelled } from "./elements.js";
import { COLUMNS, type Column, type Listed } from "./runs_columns.js";
import { change, parameter, parameters } from "./url_state.js";
import { ValueField } from "./value_columns.js";

const PHASES = ["Active", "Pending", "Completed", "Failed"];
export const MAX_COMPARED = 8;
const MOST_GROUPS = 500;  // the search finds the others

/** `found` are the runs of the search and the group, whatever their phase; `ids` are those of the table. */
export interface ToolsState { all: readonly Listed[]; found: readonly Listed[]; shown: number; ids: readonly string[]; isRead: boolean; columns: readonly Column[]; selected: ReadonlySet<string>; phases: ReadonlySet<string>; names: readonly string[] }

export class RunsTools {
  readonly box: HTMLElement;
  readonly search = labelled(element("input", { type: "search", placeholder: "Search runs ( / )" }), { "aria-label": "Search runs" });
  private readonly phases = labelled(element("div", { className: "chips" }), { role: "group", "aria-label": "Phases" });
  private readonly groups = element("span");
  private readonly columns = element("details", { className: "menu" });
  private readonly boxes = element("div", { className: "boxes" });
  private readonly field = new ValueField();
  private readonly count = labelled(element("p", { className: "muted count" }), { role: "status" });
  private readonly compare = element("a", { className: "button" });
  private readonly everything = element("input", { type: "checkbox" });
  private readonly grouped = element("input", { type: "checkbox" });
  private readonly scatter = button("Scatter", () => change({ chart: parameter("chart") ? "" : "scatter", x: "", y: "" }));
  private readonly copyButton: HTMLButtonElement;
  private known = "";

  constructor(copy: () => Promise<void>, actions: { selectAll: (isSelected: boolean) => void; wantNames: () => void }) {
    this.columns.append(element("summary", {}, "Columns"), element("div", { className: "menu-box" }, this.boxes, this.field.box));
    this.columns.addEventListener("toggle", () => { if (this.columns.open) actions.wantNames(); });
    this.everything.addEventListener("change", () => actions.selectAll(this.everything.checked));
    this.search.value = parameter("q");
    this.search.addEventListener("input", () => change({ q: this.search.value }, "replace"));
    this.grouped.addEventListener("change", () => change({ by: this.grouped.checked ? "group" : "", fold: "", groups: "" }));
    this.copyButton = button("Copy as text", () => void copy().then(() => this.say("Copied"), () => this.say("The browser did not allow it")));
    const tools = element("div", { className: "tools" }, this.search, this.phases, this.groups,
      element("label", { className: "check" }, this.grouped, " By group"),
      element("label", { className: "check" }, this.everything, " Select all"), this.columns, this.scatter, this.copyButton, this.compare);
    this.box = element("div", {}, tools, this.count);
  }

  /** Whether the names of columns are on the screen. */
  get isChoosing(): boolean {
    return this.columns.open;
  }

  show(state: ToolsState): void {
    const { all, found, shown, selected, phases } = state;
    if (document.activeElement !== this.search) this.search.value = parameter("q");
    this.grouped.checked = parameter("by") === "group";
    this.scatter.setAttribute("aria-pressed", String(parameter("chart") === "scatter"));
    this.field.show(state.names);
    const marked = state.ids.filter((id) => selected.has(id)).length;
    this.everything.checked = marked > 0 && marked === state.ids.length;
    this.everything.indeterminate = marked > 0 && marked < state.ids.length;
    this.count.textContent = !state.isRead ? "" : shown === all.length ? counted(all.length, "run")
      : `${shown.toLocaleString("en")} of ${counted(all.length, "run")}`;
    this.compare.textContent = selected.size ? `Compare ${selected.size}` : "Compare";
    this.copyButton.title = selected.size ? "The selected runs" : "The runs below";
    const isReady = selected.size > 1 && selected.size <= MAX_COMPARED;
    labelled(this.compare, { title: isReady ? "" : `Select 2 to ${MAX_COMPARED} runs`, "aria-disabled": String(!isReady) });
    if (isReady) this.compare.href = `/compare?${[...selected].map((id) => `run=${encodeURIComponent(id).replaceAll("%2F", "/").replaceAll("%3A", ":")}`).join("&")}`;
    else this.compare.removeAttribute("href");
    const known = JSON.stringify([all.map(({ run }) => run.runGroup), found.map(({ run }) => run.phase), [...phases], state.columns.map(({ id }) => id), parameter("group")]);
    if (known === this.known) return;  // a menu that is open stays open
    this.known = known;
    this.drawPhases(state);
    this.drawGroups(all);
    this.drawColumns(state.columns);
  }

  private drawPhases({ found, phases }: ToolsState): void {
    const focused = document.activeElement?.getAttribute("data-phase");
    this.phases.replaceChildren(...PHASES.map((phase) => {
      const count = found.filter(({ run }) => run.phase === phase).length;
      const next = PHASES.filter((each) => phases.has(each) !== (each === phase));
      const chip = button(phase, () => change({ phase: next.join(",") }));
      chip.append(element("span", { className: "muted" }, ` ${count}`));
      return labelled(chip, { "aria-pressed": String(phases.has(phase)), "data-phase": phase });
    }));
    if (focused) this.phases.querySelector<HTMLElement>(`[data-phase="${focused}"]`)?.focus();
  }

  private drawGroups(all: readonly Listed[]): void {
    const names = [...new Set(all.flatMap(({ run }) => run.runGroup ?? []))].sort();
    const shown = names.includes(parameter("group")) || !parameter("group") ? names : [parameter("group"), ...names];
    this.groups.hidden = !shown.length;
    this.groups.replaceChildren(choice("Group", [["", "All groups"], ...shown.slice(0, MOST_GROUPS).map((name): [string, string] => [name, name])],
      parameter("group"), (group) => change({ group })));
  }

  private drawColumns(columns: readonly Column[]): void {
    const shown = new Set(columns.map(({ id }) => id));
    const boxes = COLUMNS.filter(({ id }) => id !== "name").map(({ id, title }) => {
      const box = element("input", { type: "checkbox", checked: shown.has(id) });
      box.addEventListener("change", () => {
        const names = COLUMNS.filter((column) => (column.id === id ? box.checked : shown.has(column.id)));
        this.known = "";
        change({ columns: names.map((column) => column.id).join(",") });
      });
      return element("label", { className: "check" }, box, ` ${title}`);
    });
    const values = columns.filter(({ css }) => css).map(({ id }) => {
      const box = element("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => change({ value: parameters().getAll("value").filter((each) => each !== id) }));
      return element("label", { className: "check" }, box, ` ${id}`);
    });
    this.boxes.replaceChildren(...boxes, ...values, button("Reset", () => change({ columns: "", value: "" })));
  }

  private say(text: string): void {
    this.copyButton.textContent = text;
    setTimeout(() => { this.copyButton.textContent = "Copy as text"; }, 2000);
  }
}
