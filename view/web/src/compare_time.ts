// Where the time of several runs went, side by side, and how long their steps took.
import { byCause, causeColor, causeName, partitionOf } from "./causes.js";
import { badge, colorOf, heads, type Compared, type StepTimes } from "./compare_run.js";
import { drawing, duration, element, percent, table } from "./elements.js";
import { goodputBar } from "./goodput_bar.js";

const BINS_PER_DOUBLING = 16;  // as in step_histogram.py
const WIDTH = 1000, HEIGHT = 40;

export function showGoodput(box: HTMLElement, runs: readonly Compared[]): void {
  const accounts = runs.map(({ goodput }) => (goodput && goodput.cumulative.elapsedSeconds > 0 ? partitionOf(goodput.cumulative) : null));
  if (!accounts.some(Boolean)) return box.replaceChildren(element("p", { className: "muted" }, "None of the runs has recorded events of goodput."));
  const bars = runs.map((run, at) => {
    const account = accounts[at];
    return element("div", { className: "compared-line" }, badge(run) as unknown as Node, element("span", { className: "compared-name" }, run.title),
      account ? goodputBar(account) as unknown as Node : element("span", { className: "muted" }, "no events of goodput"),
      element("strong", {}, percent(run.goodput?.cumulative.goodput ?? null)));
  });
  const causes = [...new Set(accounts.flatMap((account) => account?.parts.map(([cause]) => cause) ?? []))];
  const rows = causes.sort(byCause).map((cause) => [
    element("span", {}, drawing("svg", { class: "swatch", viewBox: "0 0 1 1", "aria-hidden": "true" }, drawing("rect", { width: 1, height: 1, fill: causeColor(cause) })), causeName(cause)),
    ...accounts.map((account) => {
      const seconds = account?.parts.find(([each]) => each === cause)?.[1] ?? 0;
      return account ? element("span", {}, percent(seconds / account.total), element("span", { className: "muted" }, ` ${duration(seconds)}`)) : null;
    })]);
  const elapsed = accounts.map((account) => (account ? duration(account.total) : null));
  const disruptions = runs.map(({ goodput }) => (goodput?.attempts.length ? String(goodput.disruptions.length) : null));
  box.replaceChildren(element("div", { className: "compared-lines" }, ...bars),
    table(["Cause", ...heads(runs)], [...rows, ["elapsed", ...elapsed], ["disruptions", ...disruptions]]));
}

export function showSteps(box: HTMLElement, runs: readonly Compared[]): void {
  const measured = runs.flatMap((run) => (run.steps?.count ? [{ run, steps: run.steps }] : []));
  if (!measured.length) {
    return box.replaceChildren(element("p", { className: "muted" }, "None of the runs has recorded steps; call run.step(n) in the training loop."));
  }
  const bin = (seconds: number | null): number => Math.floor(Math.log2(Math.max(1e-9, seconds ?? 1)) * BINS_PER_DOUBLING);
  const from = Math.min(...measured.map(({ steps }) => bin(steps.p1))) - 2;
  const to = Math.max(...measured.map(({ steps }) => bin(steps.p99))) + 3;
  const place = (seconds: number): number => ((Math.log2(seconds) * BINS_PER_DOUBLING - from) / (to - from)) * WIDTH;
  const ridges = measured.map(({ run, steps }) => element("div", { className: "compared-line" }, badge(run) as unknown as Node,
    element("span", { className: "compared-name" }, run.title), ridge(steps, from, to, place, colorOf(run)) as unknown as Node,
    element("strong", {}, duration(steps.median ?? 0))));
  const base = measured[0]!.steps.median ?? 0;
  const rows = measured.map(({ run, steps }) => [
    element("span", { className: "compared-run" }, badge(run) as unknown as Node, element("span", { title: run.title }, run.title)),
    ...[steps.median, steps.mean, steps.p90, steps.p99, steps.max].map((seconds) => duration(seconds ?? 0)),
    base ? `${(100 * ((steps.median ?? 0) / base - 1)).toFixed(1)} %` : null, steps.count]);
  box.replaceChildren(element("div", { className: "compared-lines" }, ...ridges,
    element("div", { className: "compared-line", ariaHidden: "true" }, element("span"), element("span", { className: "compared-name" }), scale(place, measured.flatMap(({ steps }) => [steps.p1 ?? 1, steps.p99 ?? 1])), element("span"))),
  element("p", { className: "muted" }, "From the 1st to the 99th percentile on a logarithmic axis; the mark is the median."),
  table(["Run", "Median", "Mean", "p90", "p99", "Longest", "Median to first", "Steps"], rows));
}

function ridge(steps: StepTimes, from: number, to: number, place: (seconds: number) => number, fill: string): SVGSVGElement {
  const highest = Math.max(...steps.bins.map(([, count]) => count));
  const width = WIDTH / (to - from);
  const shape = steps.bins.filter(([at]) => at >= from && at < to).map(([at, count]) =>
    drawing("rect", { x: (at - from) * width, y: HEIGHT * (1 - count / highest), width: width + 0.5, height: (HEIGHT * count) / highest, fill }));
  const median = place(steps.median ?? 1);
  const text = `median ${duration(steps.median ?? 0)}, p90 ${duration(steps.p90 ?? 0)}, p99 ${duration(steps.p99 ?? 0)}, longest ${duration(steps.max ?? 0)}`;
  return drawing("svg", { class: "step-ridge", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    drawing("title", {}, text), ...shape, drawing("line", { x1: median, x2: median, y1: 0, y2: HEIGHT, class: "median" }));
}

/** Return round times below the distributions; where they are narrow, their ends. */
function scale(place: (seconds: number) => number, ends: number[]): HTMLElement {
  const box = element("div", { className: "step-scale" });
  let last = -Infinity;
  function tick(seconds: number, text: string): void {
    const x = (100 * place(seconds)) / WIDTH;
    const isAtEnd = x > 82;  // its text is on the left: there is no room on the right
    if (x < 0 || x > 100 || x - last < (isAtEnd ? 18 : 9)) return;
    last = x;
    const made = element("span", { className: isAtEnd ? "at-end" : "" }, text);
    if (isAtEnd) made.style.right = `${100 - x}%`;
    else made.style.left = `${x}%`;
    box.append(made);
  }
  for (let power = -6; power < 6; power++) {
    for (const digit of [1, 2, 5]) {
      const seconds = digit * 10 ** power;
      tick(seconds, seconds < 1 ? `${Number((seconds * 1000).toPrecision(1))} ms` : `${seconds} s`);
    }
  }
  if (!box.childElementCount) for (const seconds of [Math.min(...ends), Math.max(...ends)]) tick(seconds, duration(seconds));
  return box;
}
