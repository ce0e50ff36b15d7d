// One chart: lines with the band between their lowest and highest values, marks, and a zoom that all charts share.
import uPlot from "uplot";
import type { Mark } from "./chart_marks.js";
import { columnsOf, plotData, type Line } from "./chart_data.js";
import { relativeTicks, timeLabels } from "./chart_ticks.js";
import { clock, color, elapsed, short } from "./run_parts.js";

export type Axis = "step" | "time" | "relative";
export interface ChartView {
  axis: Axis;
  /** First and last x of the window. */
  range: [number, number];
  /** Start of the run in Unix seconds, for times relative to it. */
  origin: number;
  isLog: boolean;
  smoothing: number;
  height: number;
  marks: Mark[];
  zoom: (from: number, to: number) => void;
  /** Called with the place of the pointer, null outside, and the value of each group of lines there. */
  point: (x: number | null, values: Map<number, number>, mark: string, nearest?: number) => void;
}

const LEAST_PX = 160;
const NEAR_PX = 5;
const MOST_DISTANT = 60;
const MOST_BANDS = 3;
const LABEL_PX = { step: 70, time: 80, relative: 90 };
/** Room on the right for half of the last label. */
const RIGHT_PX = { step: 16, time: 36, relative: 36 };
const DASH: Record<Mark["kind"], number[]> = { restart: [4, 3], profile: [], text: [1, 3] };
const MARKS: Record<Mark["kind"], number> = { restart: 1, profile: 7, text: 2 };

/** A chart in a box. */
export class Chart {
  private plot: uPlot | null = null;
  private shape = "";
  private view: ChartView | null = null;
  lines: Line[] = [];

  constructor(private readonly box: HTMLElement) {}

  /** Draw lines; the former drawing stays where only its numbers differ. */
  draw(lines: Line[], view: ChartView): void {
    this.view = view;
    this.lines = lines;
    const data = plotData(columnsOf(this.lines, view.smoothing, view.isLog));
    const ink = getComputedStyle(this.box).color;
    const shape = JSON.stringify([this.lines.map(({ label, hue, curve }) => [label, hue, Boolean(curve.low)]), view.axis, view.isLog, view.smoothing > 0, view.height, ink]);
    if (this.plot && shape === this.shape) {
      this.plot.setData(data, false);
      this.plot.setScale("x", { min: view.range[0], max: view.range[1] });
      return;
    }
    this.close();
    this.shape = shape;
    this.plot = new uPlot(this.options(view, ink), data, this.box);
  }

  /** Take the width of the box, unless it is hidden. */
  fit(): void {
    if (this.plot && this.box.clientWidth && this.plot.width !== this.width) this.plot.setSize({ width: this.width, height: this.plot.height });
  }

  /** Show a window at once, with the points that are there. */
  move(range: [number, number]): void {
    if (this.view) this.view.range = range;
    this.plot?.setScale("x", { min: range[0], max: range[1] });
  }

  /** Report the values under the pointer, which may be others now. */
  pointAgain(): void {
    if (this.plot) this.point(this.plot);
  }

  close(): void {
    this.plot?.destroy();
    this.plot = null;
    this.shape = "";
  }

  private get width(): number {
    return Math.max(LEAST_PX, this.box.clientWidth);
  }

  private options(view: ChartView, ink: string): uPlot.Options {
    const xText = (x: number) => this.xText(x);
    const hasBands = view.smoothing === 0 && new Set(this.lines.map(({ group }) => group)).size <= MOST_BANDS;
    const line = { grid: { stroke: "#8883", width: 1 }, ticks: { stroke: "#8883", width: 1, size: 4 }, stroke: ink, font: "11px system-ui, sans-serif" };
    const x: uPlot.Axis = { ...line, size: 28, space: LABEL_PX[view.axis] };
    if (view.axis === "time") x.values = (_, ticks, _axis, _space, step) => timeLabels(ticks, step);
    if (view.axis === "relative") x.values = (_, ticks) => ticks.map((tick) => elapsed(tick - view.origin));
    if (view.axis === "relative") x.splits = ({ width }, _, min, max) => relativeTicks(min, max, view.origin, width / LABEL_PX.relative);
    return {
      width: this.width, height: view.height, legend: { show: false }, padding: [10, RIGHT_PX[view.axis], 0, 0],
      series: [{ value: (_, value) => (value === null ? "" : xText(value)) }, ...this.lines.flatMap((each) => seriesOf(each, view.smoothing > 0, hasBands))],
      bands: hasBands ? this.lines.flatMap(({ hue, curve }, at) =>
        (curve.low ? [{ series: [4 * at + 4, 4 * at + 3] as [number, number], fill: `${color(hue)}2e` }] : [])) : [],
      axes: [x, { ...line, size: 52, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))) }],
      scales: { x: { time: view.axis === "time", range: () => this.view!.range }, y: { distr: view.isLog ? 3 : 1 } },
      cursor: { sync: { key: view.axis }, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      hooks: {
        draw: [(plot) => this.drawMarks(plot)],
        setCursor: [(plot) => this.point(plot)],
        setSelect: [({ select, posToVal }) => {
          if (select.width > 4) view.zoom(posToVal(select.left, "x"), posToVal(select.left + select.width, "x"));
          this.plot?.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    };
  }

  /** Return an x as people read it. */
  xText(x: number): string {
    if (!this.view) return "";
    const { axis, origin, range } = this.view;
    if (axis === "step") return short(Math.round(x));
    return axis === "relative" ? elapsed(x - origin) : clock(x, range[1] - range[0]);
  }

  private place(mark: Mark): number | null {
    return this.view?.axis === "step" ? mark.step : mark.time;
  }

  private drawMarks(plot: uPlot): void {
    const { ctx, bbox } = plot, ratio = devicePixelRatio;
    ctx.save();
    for (const mark of this.view?.marks ?? []) {
      const x = this.place(mark), { min, max } = plot.scales["x"]!;
      if (x === null || min === undefined || max === undefined || x < min || x > max) continue;
      const left = Math.round(plot.valToPos(x, "x", true));
      ctx.strokeStyle = ctx.fillStyle = color(MARKS[mark.kind]);
      ctx.lineWidth = ratio;
      ctx.setLineDash(DASH[mark.kind].map((size) => size * ratio));
      ctx.globalAlpha = mark.kind === "restart" ? .8 : .35;
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      ctx.globalAlpha = 1;
      if (mark.kind === "restart") continue;
      ctx.beginPath();
      ctx.moveTo(left - 4 * ratio, bbox.top - 5 * ratio);
      ctx.lineTo(left + 4 * ratio, bbox.top - 5 * ratio);
      ctx.lineTo(left, bbox.top + 2 * ratio);
      ctx.fill();
    }
    this.drawNonfinite(plot);
    ctx.restore();
  }

  /** Mark values that are not finite: infinities at the edge of their sign, NaN as crosses at the bottom. */
  private drawNonfinite(plot: uPlot): void {
    const { ctx, bbox } = plot, ratio = devicePixelRatio, { min, max } = plot.scales["x"]!;
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    ctx.globalAlpha = 1;
    for (const { hue, curve: { nonfinite } } of this.lines) {
      ctx.fillStyle = color(hue);
      nonfinite?.x.forEach((x, at) => {
        if (min === undefined || max === undefined || x < min || x > max) return;
        const left = plot.valToPos(x, "x", true), top = bbox.top + 10 * ratio, bottom = bbox.top + bbox.height - 3 * ratio;
        if (nonfinite.plus[at]) ctx.fillText("▲", left, top);
        if (nonfinite.minus[at]) ctx.fillText("▼", left, bottom);
        if (nonfinite.nan[at]) ctx.fillText("✕", left, bottom);
      });
    }
  }

  private point(plot: uPlot): void {
    const { idx, left } = plot.cursor;
    if (idx === null || idx === undefined || left === undefined || left < 0) return this.view?.point(null, new Map(), "");
    const marked = this.view?.marks.find((mark) => {
      const x = this.place(mark);
      return x !== null && Math.abs(plot.valToPos(x, "x") - left) <= NEAR_PX;
    });
    const near = new Map<number, [value: number, distance: number]>();
    this.lines.forEach(({ group }, at) => {
      const [value, distance] = valueNear(plot.data[4 * at + 2]!, idx);
      if (value !== null && distance < (near.get(group)?.[1] ?? Infinity)) near.set(group, [value, distance]);
    });
    const values = new Map([...near].map(([group, [value]]) => [group, value]));
    this.view?.point(plot.data[0][idx] ?? null, values, marked?.text ?? "", nearestTo(plot, values));
  }
}

/** Return the value at a place, or the nearest one: lines do not have points at the same x. */
function valueNear(column: ArrayLike<number | null | undefined>, at: number): [value: number | null, distance: number] {
  for (let distance = 0; distance < MOST_DISTANT; distance += 1) {
    for (const place of [at - distance, at + distance]) if (typeof column[place] === "number") return [column[place] as number, distance];
  }
  return [null, Infinity];
}

/** The edges of a band are drawn: its fill alone does not show a spike, which is a pixel wide. */
function seriesOf({ hue, isLast, curve }: Line, isSmooth: boolean, hasBands: boolean): uPlot.Series[] {
  const stroke = color(hue), spanGaps = true, hidden = { show: false };
  const alpha = isLast ? 1 : .55;
  const edge = { stroke: hasBands && curve.low ? `${stroke}80` : "transparent", width: 1, alpha, spanGaps, points: hidden };
  return [
    { stroke, width: 1.5, alpha, spanGaps, points: { show: curve.x.length === 1, size: 6, fill: stroke } },
    { stroke, width: 1, alpha: .25 * alpha, spanGaps, points: hidden, show: isSmooth },
    { ...edge, auto: !isSmooth },
    { ...edge, auto: !isSmooth },
  ];
}

/** Return the curve whose value is nearest to the pointer. */
function nearestTo(plot: uPlot, values: Map<number, number>): number | undefined {
  const top = plot.cursor.top ?? 0, distance = (value: number) => Math.abs(plot.valToPos(value, "y") - top);
  return [...values].reduce<[number, number] | undefined>((best, each) => (best && distance(best[1]) <= distance(each[1]) ? best : each), undefined)?.[0];
}
