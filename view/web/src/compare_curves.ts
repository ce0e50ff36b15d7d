// The curves of several runs, a chart for each chosen metric.
import type uPlot from "uplot";
import { get, type Curve, type Curves } from "./api.js";
import { drawCurves, labelOf, type RunCurve } from "./compare_chart.js";
import { type Compared } from "./compare_run.js";
import { button, choice, element, labelled, problem, table } from "./elements.js";
import { change, parameter, parameters } from "./url_state.js";

const AT_FIRST = 4, MAX_LINES = 48, AGAIN_MS = 1500;

export class CompareCurves {
  readonly part = element("section");
  private readonly tools = element("div", { className: "tools" });
  private readonly charts = element("div", { className: "charts" });
  private readonly note = element("p", { className: "muted" });
  private readonly plots = new Map<HTMLElement, uPlot>();
  private runs: readonly Compared[] = [];
  private last = "";
  private turn = 0;

  constructor() {
    this.part.append(element("h2", {}, "Curves"), this.tools, this.note, this.charts);
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(this.charts.clientWidth - width) > 8 && width) void this.load();
      width = this.charts.clientWidth;
    }).observe(this.charts);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => void this.load());
  }

  /** Show the runs; curves are read again if their points or the state of the URL have changed. */
  show(runs: readonly Compared[]): void {
    this.runs = runs.filter(({ document }) => document?.hasFiles);
    const names = ["metric", "axis", "from", "to", "smooth", "log", "run"];
    const state = JSON.stringify([names.map((name) => parameters().getAll(name)), this.metrics(), this.runs.map(({ metrics }) => metrics.map(({ count }) => count))]);
    if (state === this.last) return;
    this.last = state;
    this.drawTools();
    void this.load();
  }

  /** Return the metrics of the URL, else some that most runs have, a loss first. */
  private metrics(): string[] {
    const chosen = parameters().getAll("metric");
    return chosen.length ? chosen : this.known().slice(0, AT_FIRST);
  }

  private known(): string[] {
    const counts = new Map<string, number>();
    for (const { metrics } of this.runs) for (const { metric } of metrics) counts.set(metric, (counts.get(metric) ?? 0) + 1);
    const hasX = (name: string) => parameter("axis") === "relative" || this.runs.some(({ metrics }) => metrics.some(({ metric, steps }) => metric === name && steps !== null));
    const weight = (name: string) => Number(hasX(name)) * 100 + (counts.get(name) ?? 0) * 4 + (/loss/i.test(name) ? 2 : 0) - (/utilization|memory/i.test(name) ? 1 : 0);
    return [...counts.keys()].sort((one, other) => weight(other) - weight(one) || one.localeCompare(other));
  }

  private drawTools(): void {
    const shown = this.metrics(), known = this.known();
    const add = labelled(element("input", { type: "search", placeholder: "Add a metric" }), { "aria-label": "Add a metric", list: "metrics" });
    const names = element("datalist", { id: "metrics" }, ...known.filter((name) => !shown.includes(name)).slice(0, 500).map((value) => element("option", { value })));
    add.addEventListener("change", () => known.includes(add.value) && change({ metric: [...shown, add.value] }));
    const smooth = labelled(element("input", { type: "range", min: "0", max: "0.99", step: "0.01", value: parameter("smooth") || "0" }), { "aria-label": "Smoothing" });
    smooth.addEventListener("change", () => change({ smooth: smooth.value === "0" ? "" : smooth.value }));
    const isZoomed = Boolean(parameter("from") || parameter("to"));
    this.tools.replaceChildren(add, names,
      choice("X axis", [["", "by step"], ["relative", "by time since start"]], parameter("axis"), (axis) => change({ axis, from: "", to: "" })),
      choice("Y axis", [["", "linear"], ["1", "logarithmic"]], parameter("log"), (log) => change({ log })),
      element("label", { className: "check" }, "Smoothing ", smooth, ` ${parameter("smooth") || "0"}`),
      ...(isZoomed ? [button("Whole range", () => change({ from: "", to: "" }))] : []));
  }

  private async load(): Promise<void> {
    const turn = ++this.turn;
    const metrics = this.metrics();
    this.note.textContent = metrics.length ? "" : this.runs.some(({ isRead }) => !isRead) ? "Reading …" : "The runs have no metrics that can be read from here.";
    this.note.hidden = !this.note.textContent;
    const figures = metrics.map((metric) => this.figure(metric));
    for (const [figure, plot] of this.plots) if (!figures.includes(figure)) plot.destroy();
    if (figures.some((figure, at) => this.charts.children[at] !== figure) || figures.length !== this.charts.children.length) this.charts.replaceChildren(...figures);
    const width = figures[0]?.clientWidth ?? 400;
    const buckets = Math.min(2000, Math.max(60, Math.floor((width * devicePixelRatio) / 2)));
    const failures: string[] = [];
    let isComplete = true;
    const loaded = await Promise.all(this.runs.map(async (run) => {
      const wanted = metrics.filter((metric) => run.metrics.some((each) => each.metric === metric)).slice(0, 32);
      if (!wanted.length) return [];
      try {
        const { curves, progress } = await get<Curves>(`${run.base}/curves?${this.query(run, wanted, buckets)}`);
        isComplete &&= progress.complete;
        return curves.map((curve) => ({ run, curve, x: this.shifted(run, curve) }));
      } catch (error) {
        failures.push(`${run.id}: ${(error as Error).message}`);
        return [];
      }
    }));
    if (turn !== this.turn) return;  // a later state of the page is on its way
    figures.forEach((figure, at) => this.draw(figure, loaded.flat().filter(({ curve }) => curve.metric === metrics[at])));
    if (failures.length) this.charts.prepend(problem(failures.join(" ")));
    if (!isComplete) setTimeout(() => turn === this.turn && void this.load(), AGAIN_MS);
  }

  private query(run: Compared, metrics: string[], buckets: number): URLSearchParams {
    const isStep = parameter("axis") !== "relative";
    const query = new URLSearchParams([...metrics.map((metric) => ["metric", metric]), ["axis", isStep ? "step" : "time"], ["buckets", String(buckets)]]);
    for (const name of ["from", "to"]) {
      const value = Number(parameter(name));
      if (parameter(name) && Number.isFinite(value)) query.set(name, String(value + (isStep ? 0 : startOf(run))));
    }
    return query;
  }

  private shifted(run: Compared, { x }: Curve): number[] {
    return parameter("axis") === "relative" ? x.map((each) => each - startOf(run)) : x;
  }

  private figure(metric: string): HTMLElement {
    const known = [...this.charts.children].find((figure) => (figure as HTMLElement).dataset["metric"] === metric);
    if (known) return known as HTMLElement;
    const remove = labelled(button("×", () => change({ metric: this.metrics().filter((each) => each !== metric) }), { className: "quiet" }), { "aria-label": `Remove ${metric}` });
    const figure = element("figure", {}, element("figcaption", {}, element("span", {}, metric), remove), element("div", { className: "plot" }), element("details", {}));
    figure.dataset["metric"] = metric;
    return figure;
  }

  private draw(figure: HTMLElement, all: readonly RunCurve[]): void {
    const [, box, numbers] = figure.children as unknown as [HTMLElement, HTMLElement, HTMLDetailsElement];
    this.plots.get(figure)?.destroy();
    this.plots.delete(figure);
    const curves = all.slice(0, MAX_LINES);
    const from = Number(parameter("from")), to = Number(parameter("to"));
    const range: [number, number] | null = parameter("from") && parameter("to") && from < to ? [from, to] : null;
    numbers.hidden = !curves.length;
    if (!curves.length) {
      const isStepless = parameter("axis") !== "relative" && all.length === 0 && !range;
      box.replaceChildren(element("p", { className: "muted" }, isStepless ? "No points with a step; choose the time since start." : "No points in this range."));
      return;
    }
    this.plots.set(figure, drawCurves(box, curves, {
      axis: parameter("axis") || "step", isLog: parameter("log") === "1", smoothing: Math.min(0.99, Math.max(0, Number(parameter("smooth")) || 0)), range,
      zoom: (start, end) => change({ from: String(Number(start.toPrecision(8))), to: String(Number(end.toPrecision(8))) }),
    }));
    const rows = curves.map((each) => {
      const { mean, low = mean, high = mean } = each.curve;
      return [labelOf(each, curves), mean.at(-1) ?? null, low.reduce((one, other) => Math.min(one, other), Infinity),
        high.reduce((one, other) => Math.max(one, other), -Infinity)];
    });
    const left = all.length > MAX_LINES ? element("p", { className: "muted" }, `${all.length - MAX_LINES} curves are left out.`) : "";
    numbers.replaceChildren(element("summary", {}, "Numbers"), table(["Run", "Last", "Lowest", "Highest"], rows), left);
  }
}

const startOf = ({ document }: Compared): number => Date.parse(document?.run.creationTime ?? document?.run.startTime ?? "1970-01-01") / 1000;
