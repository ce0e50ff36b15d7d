// A chart of the runs of the table: one of their numbers against another one.
import { choice, counted, drawing, element } from "./elements.js";
import { addressOf, nameOf, type Column, type Listed } from "./runs_columns.js";
import { change, parameter } from "./url_state.js";

const HEIGHT_PX = 300, LEFT_PX = 72, RIGHT_PX = 16, TOP_PX = 12, BOTTOM_PX = 30;
const MOST_POINTS = 2000;
const LOG_RATIO = 100;  // wider ranges have a logarithmic axis

export interface ScatterState { columns: readonly Column[]; runs: readonly Listed[]; selected: ReadonlySet<string> }
interface Point { listed: Listed; x: number; y: number }
interface Scale { place: (value: number) => number; ticks: number[]; isLog: boolean }

/** Return the ends of an axis and its ticks; `place` is from 0 to 1. */
export function scaleOf(values: readonly number[]): Scale {
  const low = Math.min(...values), high = Math.max(...values);
  if (low > 0 && high / low >= LOG_RATIO) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), every = Math.ceil((last - first) / 6);
    const ticks = Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at)).filter((_, at) => at % every === 0);
    return { isLog: true, ticks, place: (value) => (Math.log10(value) - first) / (last - first) };
  }
  const size = high - low || Math.abs(high) || 1, rough = size / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const first = Math.floor(low / step), last = Math.max(first + 1, Math.ceil(high / step));
  return { isLog: false, ticks: Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step),
    place: (value) => (value / step - first) / (last - first) };
}

export class RunsScatter {
  readonly box = element("section", { className: "scatter", ariaLabel: "Scatter" });
  private readonly tools = element("div", { className: "tools" });
  private readonly plot = element("div");
  private across: HTMLSelectElement | null = null;
  private up: HTMLSelectElement | null = null;
  private known = "";
  private state: ScatterState = { columns: [], runs: [], selected: new Set() };

  constructor() {
    this.box.append(this.tools, this.plot);
    let width = 0;
    new ResizeObserver(() => {
      if (this.plot.clientWidth !== width) this.draw();
      width = this.plot.clientWidth;
    }).observe(this.plot);
  }

  show(state: ScatterState): void {
    this.state = state;
    this.draw();
  }

  private draw(): void {
    const columns = this.state.columns.filter(({ isNumber, css, id }) => isNumber || css || id === "goodput");
    const chosen = (name: string, wanted: string, other: string) =>
      columns.find(({ id }) => id === parameter(name)) ?? columns.find(({ id }) => id.startsWith(wanted)) ?? columns.find(({ id }) => id === other) ?? columns[0];
    const x = chosen("x", "config:", "steptime"), y = chosen("y", "metric:", "goodput");
    if (!x || !y) {
      this.plot.replaceChildren(element("p", { className: "muted" }, "The table has no columns of numbers; choose some in Columns."));
      return;
    }
    this.drawTools(columns);
    [this.across!.value, this.up!.value] = [x.id, y.id];
    const points = this.state.runs.flatMap((listed): Point[] => {
      const [across, up] = [x.value(listed), y.value(listed)];
      return typeof across === "number" && typeof up === "number" && Number.isFinite(across) && Number.isFinite(up) ? [{ listed, x: across, y: up }] : [];
    });
    const others = this.state.runs.length - points.length, more = points.length - MOST_POINTS;
    const notes = [others ? `${counted(others, "run")} without both numbers` : "", more > 0 ? `${counted(more, "run")} more, not drawn` : ""];
    this.plot.replaceChildren(...(points.length ? [this.chart(points.slice(0, MOST_POINTS), x, y)] : []),
      element("p", { className: "muted" }, notes.filter(Boolean).join(" · ")));
  }

  /** Draw the fields once for the same columns: a field that is replaced loses the focus. */
  private drawTools(columns: readonly Column[]): void {
    const known = columns.map(({ id }) => id).join("\n");
    if (known === this.known) return;
    this.known = known;
    const named = columns.map(({ id, title }): [string, string] => [id, title]);
    this.across = choice("Horizontal axis", named, "", (id) => change({ x: id }));
    this.up = choice("Vertical axis", named, "", (id) => change({ y: id }));
    this.tools.replaceChildren(this.up, element("span", { className: "muted" }, "against"), this.across);
  }

  private chart(points: readonly Point[], x: Column, y: Column): SVGElement {
    const width = Math.max(240, this.plot.clientWidth), across = scaleOf(points.map((point) => point.x)), up = scaleOf(points.map((point) => point.y));
    const left = (value: number) => LEFT_PX + across.place(value) * (width - LEFT_PX - RIGHT_PX);
    const top = (value: number) => HEIGHT_PX - BOTTOM_PX - up.place(value) * (HEIGHT_PX - TOP_PX - BOTTOM_PX);
    const most = Math.max(2, Math.floor(width / 90)), every = Math.ceil(across.ticks.length / most);
    const ticks = [
      ...across.ticks.filter((_, at) => at % every === 0).flatMap((value) => [
        drawing("line", { x1: left(value), x2: left(value), y1: TOP_PX, y2: HEIGHT_PX - BOTTOM_PX }),
        drawing("text", { x: left(value), y: HEIGHT_PX - BOTTOM_PX + 18, "text-anchor": "middle" }, text(value))]),
      ...up.ticks.flatMap((value) => [
        drawing("line", { x1: LEFT_PX, x2: width - RIGHT_PX, y1: top(value), y2: top(value) }),
        drawing("text", { x: LEFT_PX - 8, y: top(value) + 4, "text-anchor": "end" }, text(value))]),
    ];
    const dots = points.map(({ listed, x: value, y: other }) => {
      const label = `${nameOf(listed.run)}: ${x.title} ${x.text(listed)}, ${y.title} ${y.text(listed)}`;
      const dot = drawing("circle", { cx: left(value), cy: top(other), r: 5 }, drawing("title", {}, label));
      return drawing("a", { href: addressOf(listed.id), "aria-label": label, class: this.state.selected.has(listed.id) ? "selected" : "" }, dot);
    });
    const log = (scale: Scale) => (scale.isLog ? ", logarithmic" : "");
    return drawing("svg", { width, height: HEIGHT_PX, role: "group", "aria-label": `${y.title}${log(up)} against ${x.title}${log(across)}` },
      drawing("g", { "aria-hidden": "true" }, ...ticks), ...dots);
  }
}

const text = (value: number): string => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(0) : String(Number(value.toPrecision(4))));
