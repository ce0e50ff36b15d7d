// The table of runs: of thousands of rows, only those on the screen are elements.
import { button, counted, element, hidden, labelled } from "./elements.js";
import { addressOf, nameOf, type Column, type Listed } from "./runs_columns.js";
import { summary, type Group, type Line } from "./runs_order.js";

const ROW_PX = 34;  // as in runs.css
const SPARE_ROWS = 12;

export interface TableState { columns: readonly Column[]; lines: readonly Line[]; sort: string; isDown: boolean; selected: ReadonlySet<string> }
export interface TableActions { sort: (column: string) => void; select: (id: string, isRange: boolean) => void; fold: (group: string) => void; seen: (runs: Listed[]) => void }

/** Return what the headings show, as a key. */
function headKey({ columns, sort, isDown }: TableState): string {
  return [sort, isDown, ...columns.map(({ id }) => id)].join(" ");
}

export class RunsTable {
  readonly box: HTMLElement;
  private readonly head = element("thead");
  private readonly body = element("tbody");
  private readonly table: HTMLTableElement;
  private state: TableState = { columns: [], lines: [], sort: "", isDown: false, selected: new Set() };
  private isAsked = false;

  constructor(private readonly actions: TableActions) {
    this.table = labelled(element("table", { className: "runs" }, this.head, this.body), { "aria-label": "Runs" });
    this.box = labelled(element("div", { className: "runs-box", tabIndex: 0 }, this.table), { role: "region", "aria-label": "Table of runs" });
    this.box.addEventListener("scroll", () => this.ask());
    this.box.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.ask()).observe(this.box);
  }

  /** Show a state. The focus and the place stay. */
  show(state: TableState): void {
    const drawn = headKey(this.state);
    this.state = state;
    if (drawn !== headKey(state)) this.drawHead();
    this.table.setAttribute("aria-rowcount", String(state.lines.length + 1));
    this.draw();
  }

  /** Draw the headings. A button that is replaced while it is pressed gets no click, so news of runs leave them. */
  private drawHead(): void {
    this.head.replaceChildren(labelled(element("tr", {}, element("th", { className: "c-select", scope: "col" }, hidden("Selected")),
      ...this.state.columns.map((column) => this.heading(column))), { "aria-rowindex": "1" }));
  }

  private ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  private heading({ id, title, isNumber, css }: Column): HTMLElement {
    const isSorted = this.state.sort === id;
    const sign = labelled(element("span", { className: "arrow" }, isSorted ? (this.state.isDown ? "▾" : "▴") : ""), { "aria-hidden": "true" });
    const made = element("th", { scope: "col", className: `c-${css ?? id}${isNumber ? " number" : ""}`, title: css ? id : "" },
      button(title, () => this.actions.sort(id)));
    made.firstElementChild?.append(sign);
    if (isSorted) made.setAttribute("aria-sort", this.state.isDown ? "descending" : "ascending");
    return made;
  }

  private draw(): void {
    const { lines } = this.state;
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_PX) - SPARE_ROWS);
    const end = Math.min(lines.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW_PX) + SPARE_ROWS);
    const focused = this.focusedKey();
    const shown = lines.slice(first, end);
    const rows = shown.map((line, at) => labelled(line.kind === "run" ? this.row(line.listed) : this.groupRow(line.group),
      { "aria-rowindex": String(first + at + 2) }));
    this.body.replaceChildren(this.space(first), ...rows, this.space(lines.length - end));
    if (focused) this.element(focused)?.focus({ preventScroll: true });
    this.actions.seen(shown.flatMap((line) => (line.kind === "run" ? [line.listed] : [])));
  }

  /** Return rows that are not drawn as one of their height. */
  private space(rows: number): HTMLElement {
    const cell = element("td", { colSpan: this.state.columns.length + 1 });
    cell.style.height = `${rows * ROW_PX}px`;
    return labelled(element("tr", { className: "space", hidden: !rows }, cell), { "aria-hidden": "true" });
  }

  private row(listed: Listed): HTMLElement {
    const { id, run } = listed;
    const isSelected = this.state.selected.has(id);
    const box = labelled(element("input", { type: "checkbox", checked: isSelected }), { "aria-label": `Compare ${nameOf(run)}`, "data-at": `box ${id}` });
    box.addEventListener("click", (event) => this.actions.select(id, event.shiftKey));
    const cells = this.state.columns.map((column) => {
      const className = `c-${column.css ?? column.id}${column.isNumber ? " number" : ""}`;
      if (column.id === "name") {
        const link = labelled(element("a", { href: addressOf(id), title: nameOf(run) }, nameOf(run)), { "data-at": `run ${id}` });
        return labelled(element("th", { className, scope: "row" }, link), {});
      }
      const text = column.text(listed);
      return element("td", { className, title: column.cell ? "" : text }, column.cell ? column.cell(listed) : text || "–");
    });
    return element("tr", { className: isSelected ? "selected" : "" }, element("td", { className: "c-select" }, box), ...cells);
  }

  private groupRow({ name, runs, isFolded }: Group): HTMLElement {
    const fold = labelled(button(`${isFolded ? "▸" : "▾"} ${name || "without a group"}`, () => this.actions.fold(name)),
      { "aria-expanded": String(!isFolded), "data-at": `group ${name}` });
    const count = element("span", { className: "muted" }, ` ${counted(runs.length, "run")} · ${summary(runs)}`);
    return element("tr", { className: "group" },
      element("th", { colSpan: this.state.columns.length + 1, scope: "rowgroup" }, element("span", { className: "group-head" }, fold, count)));
  }

  private focusedKey(): string {
    return this.body.contains(document.activeElement) ? document.activeElement?.getAttribute("data-at") ?? "" : "";
  }

  private element(at: string): HTMLElement | null {
    return this.body.querySelector(`[data-at="${CSS.escape(at)}"]`);
  }

  /** Arrows move over the rows, space selects, enter opens as on any link. */
  private key(event: KeyboardEvent): void {
    const { lines } = this.state;
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 15, PageUp: -15, Home: -lines.length, End: lines.length }[event.key];
    const focused = this.focusedKey();
    if (event.ctrlKey || event.metaKey || event.altKey || !lines.length) return;
    if (event.key === " " && focused.startsWith("run ")) {
      event.preventDefault();
      this.actions.select(focused.slice(4), event.shiftKey);
    }
    if (!step) return;
    event.preventDefault();
    const keys = lines.map((line) => (line.kind === "run" ? `run ${line.listed.id}` : `group ${line.group.name}`));
    const from = keys.indexOf(focused.replace(/^box /, "run "));
    const to = from < 0 && Math.abs(step) < lines.length ? 0 : Math.min(lines.length - 1, Math.max(0, from + step));
    const top = to * ROW_PX, visible = this.box.clientHeight - 2 * ROW_PX;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (top > this.box.scrollTop + visible) this.box.scrollTop = top - visible;
    this.draw();
    this.element(keys[to] ?? "")?.focus({ preventScroll: true });
  }
}
