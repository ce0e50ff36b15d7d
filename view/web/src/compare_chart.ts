// One chart with the curves of several runs.
import uPlot from "uplot";
import type { Curve } from "./api.js";
import { colorOf, letterOf, type Compared } from "./compare_run.js";

export interface RunCurve { run: Compared; curve: Curve; x: number[] }
export interface ChartView { axis: string; isLog: boolean; smoothing: number; range: [number, number] | null; zoom: (from: number, to: number) => void }

/** Return the exponential moving average of values; the first values are not pulled towards zero. */
export function smoothed(values: readonly number[], weight: number): number[] {
  let sum = 0, share = 0;
  return values.map((value) => {
    sum = weight * sum + (1 - weight) * value;
    share = weight * share + (1 - weight);
    return sum / share;
  });
}

/** Return the run of a curve, and what else tells it from other curves of the run. */
export function labelOf({ run, curve }: RunCurve, all: readonly RunCurve[]): string {
  const others = all.filter((each) => each.run === run).map((each) => each.curve);
  const attempt = others.some((other) => other.attempt !== curve.attempt) ? [`attempt ${curve.attempt}`] : [];
  const labels = Object.entries(curve.labels).filter(([name, value]) => others.some((other) => other.labels[name] !== value));
  return [letterOf(run), run.title, ...attempt, ...labels.map(([name, value]) => `${name}=${value}`)].join(" ");
}

/** Draw the curves into a box in place of its former chart, which is returned to destroy it later. */
export function drawCurves(box: HTMLElement, curves: readonly RunCurve[], view: ChartView): uPlot {
  const stroke = getComputedStyle(document.documentElement).getPropertyValue("color");
  const isSmooth = view.smoothing > 0;
  const series: uPlot.Series[] = [{ label: view.axis === "step" ? "step" : "time since start", value: (_, x) => (x === null ? "–" : xText(x, view.axis)) }];
  const tables: number[][][] = [];
  for (const each of curves) {
    const color = colorOf(each.run);
    const points = { show: each.x.length === 1 };
    if (isSmooth) series.push({ label: "raw", stroke: `${color}40`, width: 1, spanGaps: true, points: { show: false }, class: "raw" } as uPlot.Series);
    series.push({ label: labelOf(each, curves), stroke: color, width: 1.75, spanGaps: true, points, value: (_, value) => (value === null ? "–" : Number(value.toPrecision(5)).toString()) });
    tables.push(isSmooth ? [each.x, each.curve.mean, smoothed(each.curve.mean, view.smoothing)] : [each.x, each.curve.mean]);
  }
  const axis = { stroke, grid: { stroke: "#8883", width: 1 }, ticks: { stroke: "#8883", width: 1 }, font: "12px system-ui, sans-serif" };
  box.replaceChildren();
  return new uPlot({
    width: Math.max(240, box.clientWidth), height: 240, series,
    axes: [{ ...axis, values: (_, ticks) => ticks.map((tick) => xText(tick, view.axis)) }, { ...axis, size: 64 }],
    scales: { x: { time: false, ...(view.range ? { range: () => view.range as [number, number] } : {}) }, y: { distr: view.isLog ? 3 : 1 } },
    cursor: { sync: { key: "compare" }, drag: { x: true, y: false, setScale: false } },
    legend: { live: true, markers: { width: 2 } },
    hooks: {
      setSelect: [(plot) => {
        const { left, width } = plot.select;
        if (width > 4) view.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
      }],
    },
  }, uPlot.join(tables as unknown as uPlot.AlignedData[]), box);
}

function xText(x: number, axis: string): string {
  if (axis === "step") return Math.abs(x) >= 1e4 ? `${Number((x / 1000).toPrecision(4))}k` : String(Number(x.toPrecision(6)));
  if (x < 120) return `${Number(x.toPrecision(3))} s`;
  return x < 7200 ? `${Number((x / 60).toPrecision(3))} min` : `${Number((x / 3600).toPrecision(3))} h`;
}
