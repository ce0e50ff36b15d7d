// One metric: caption with the values under the pointer, chart, legend, and its numbers.
import type { Metric } from "./api.js";
import { Chart, type ChartView } from "./chart.js";
import { nonfiniteText, type Line } from "./chart_data.js";
import { button, element, labelled, problem } from "./elements.js";
import { showPoints, type PointsSource } from "./points_dialog.js";
import { color, short } from "./run_parts.js";

const LEGEND = 12;
const RANGE = "no points in this range";

/** The card of one metric; `action` is the last button of its caption. */
export class CurveCard<M extends Pick<Metric, "metric" | "unit"> = Metric> {
  readonly box: HTMLElement;
  readonly plotBox = element("div", { className: "curve-plot" });
  private readonly readout = element("span", { className: "readout" });
  private readonly legend = element("ul", { className: "legend" });
  private readonly failure = element("div");
  private readonly chart = new Chart(this.plotBox);
  private lines: Line[] = [];
  private view: ChartView | null = null;
  private readonly values = new Map<number, HTMLElement>();
  private isWhole = false;  // whether the legend has all curves

  constructor(readonly metric: M, private readonly action: HTMLButtonElement, sources: () => PointsSource[]) {
    const unit = metric.unit && metric.unit !== "1" ? element("span", { className: "muted" }, ` ${metric.unit}`) : null;
    const name = element("strong", { title: metric.metric }, metric.metric);
    const numbers = labelled(button("▦", () => void showPoints(metric.metric, sources()), { className: "quiet", title: "Numbers" }),
      { "aria-label": `Numbers of ${metric.metric}` });
    this.box = element("figure", { className: "curve" },
      element("figcaption", {}, element("span", { className: "name" }, name, unit), this.readout, numbers, action),
      this.plotBox, this.failure, this.legend);
    new ResizeObserver(() => this.chart.fit()).observe(this.plotBox);
  }

  /** The axis and the range that are shown. */
  get window(): Pick<ChartView, "axis" | "range"> {
    return this.view ?? { axis: "step", range: [-1e18, 1e18] };
  }

  /** Draw lines; without any, a text. */
  draw(lines: Line[], view: ChartView, empty = RANGE): void {
    this.lines = lines;
    this.view = { ...view, point: (x, values, mark, nearest) => this.point(x, values, mark, nearest) };
    this.box.classList.remove("loading");
    this.failure.replaceChildren();
    if (!lines.length) {
      this.chart.close();
      this.legend.replaceChildren();
      this.plotBox.replaceChildren(element("p", { className: "muted" }, empty));
      return;
    }
    if (this.plotBox.firstElementChild?.tagName === "P") this.plotBox.replaceChildren();
    this.chart.draw(lines, this.view);
    this.drawLegend();
    this.chart.pointAgain();
  }

  /** Draw again what is there, after a change of the theme. */
  redraw(changes: Partial<ChartView> = {}): void {
    if (this.view && this.lines.length) this.draw(this.lines, { ...this.view, ...changes });
  }

  /** Show another window at once. */
  move(range: [number, number]): void {
    if (this.view) this.view.range = range;
    if (this.lines.length) this.chart.move(range);
  }

  /** Show why the newest points cannot be drawn, beside those that are there. */
  fail(message: string): void {
    this.box.classList.remove("loading");
    this.failure.replaceChildren(problem(message));
  }

  set isAlone(isAlone: boolean) {
    this.box.classList.toggle("alone", isAlone);
    this.action.setAttribute("aria-pressed", String(isAlone));
  }

  private drawLegend(): void {
    const groups = this.chart.lines.filter(({ isLast }) => isLast);
    this.values.clear();
    const isNamed = groups.length > 1 || Boolean(groups[0]?.label);
    const items = (isNamed ? groups : []).slice(0, this.isWhole ? groups.length : LEGEND).map(({ label, group, hue }) => {
      const swatch = element("span", { className: "line" }), value = element("span", { className: "value" });
      swatch.style.background = color(hue);
      this.values.set(group, value);
      return element("li", {}, swatch, `${label} `, value);
    });
    if (groups.length > LEGEND) {
      const other = button(this.isWhole ? "Fewer" : `and ${groups.length - LEGEND} more`, () => {
        this.isWhole = !this.isWhole;
        this.drawLegend();
        this.chart.pointAgain();
      }, { className: "quiet" });
      items.push(element("li", {}, other));
    }
    this.legend.replaceChildren(...items);
  }

  /** Show the values at a place, or the exact last ones and how many are not finite. */
  private point(x: number | null, values: Map<number, number>, mark: string, nearest?: number): void {
    const last = new Map(this.chart.lines.filter(({ isLast }) => isLast).map(({ group, curve }) => [group, curve]));
    const text = (group: number) => {
      const curve = last.get(group);
      if (x !== null) return short(values.get(group));
      return curve ? [short(curve.summary.last?.value), nonfiniteText(curve)].filter(Boolean).join(", ") : "";
    };
    const place = x === null ? "" : `${this.view?.axis === "step" ? "step " : ""}${this.chart.xText(x)}`;
    const near = this.chart.lines.find(({ isLast, group, label }) => isLast && label && group === nearest);
    const named = near ? `${near.label} ${text(near.group)}` : this.values.size ? "" : text(0);
    this.readout.textContent = [mark, place, named].filter(Boolean).join(" · ");
    this.values.forEach((box, group) => {
      box.textContent = text(group);
      box.parentElement?.classList.toggle("near", group === near?.group);
    });
  }
}
