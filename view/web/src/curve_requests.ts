// Requests for the curves of the charts on the screen: few at a time, the outdated ones are dropped.
import { get, type Curve, type Curves, type Metric, type Metrics } from "./api.js";
import type { Axis } from "./chart.js";
import { timeOfStep } from "./chart_marks.js";

const TOGETHER = 6;

export interface Wanted { metric: Metric; buckets: number }
export interface Window { axis: Axis; by: string; from: number | null; to: number | null }
export interface Answer { curves: Curve[]; axis: Axis; range: [number, number] }

/** Return the window of one metric: metrics without steps use time. */
export function windowOf(metrics: Metric[], metric: Metric, { axis, from, to }: Window, steps: Metrics["steps"]): { axis: Axis; range: [number, number] } {
  const isStep = axis === "step" && metric.steps !== null;
  const extents = metrics.flatMap(({ steps, times }) => (isStep ? (steps ? [steps] : []) : times ? [times] : []));
  const whole: [number, number] = [Math.min(...extents.map(([first]) => first)), Math.max(...extents.map(([, last]) => last))];
  if (axis === "step" && !isStep) {
    const first = from === null ? null : timeOfStep(steps, from), last = to === null ? null : timeOfStep(steps, to);
    return { axis: "time", range: wider([first ?? whole[0], last ?? whole[1]]) };
  }
  return { axis, range: wider([from ?? whole[0], to ?? whole[1]]) };
}

function wider([first, last]: [number, number]): [number, number] {
  return last > first ? [first, last] : [first - .5, first + .5];
}

/** Loads curves; a new call drops the requests of the one before. */
export class CurveRequests {
  private aborter = new AbortController();

  constructor(private readonly base: string) {}

  /** Load curves and hand over each as it comes. */
  load(metrics: Metric[], wanted: Wanted[], window: Window, steps: Metrics["steps"],
    done: (metric: Metric, answer: Answer | Error) => void): void {
    this.aborter.abort();
    this.aborter = new AbortController();
    const { signal } = this.aborter;
    const groups = new Map<string, Wanted[]>();
    for (const each of wanted) {
      const { axis, range } = windowOf(metrics, each.metric, window, steps);
      const key = JSON.stringify([axis, range, each.buckets]);
      groups.set(key, [...(groups.get(key) ?? []), each]);
    }
    for (const [key, members] of groups) {
      const [axis, range, buckets] = JSON.parse(key) as [Axis, [number, number], number];
      for (let at = 0; at < members.length; at += TOGETHER) {
        const part = members.slice(at, at + TOGETHER);
        void this.request(part, { axis, range, buckets, by: window.by }, signal, done);
      }
    }
  }

  private async request(part: Wanted[], { axis, range, buckets, by }: { axis: Axis; range: [number, number]; buckets: number; by: string },
    signal: AbortSignal, done: (metric: Metric, answer: Answer | Error) => void): Promise<void> {
    const query = new URLSearchParams({ axis: axis === "step" ? "step" : "time", by, buckets: String(buckets), from: String(range[0]), to: String(range[1]) });
    for (const { metric } of part) query.append("metric", metric.metric);
    try {
      const { curves } = await get<Curves>(`${this.base}/curves?${query}`, signal);
      for (const { metric } of part) done(metric, { curves: curves.filter((curve) => curve.metric === metric.metric), axis, range });
    } catch (error) {
      if (!signal.aborted) for (const { metric } of part) done(metric, error as Error);
    }
  }
}
