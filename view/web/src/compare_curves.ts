// The curves of several runs, a chart for each chosen metric; their zoom is the same.
import { get, type Curve, type Curves } from "./api.js";
import type { Line } from "./chart_data.js";
import type { ChartView } from "./chart.js";
import { letterOf, type Compared } from "./compare_run.js";
import { CurveCard } from "./curve_card.js";
import { button, choice, counted, element, labelled, problem } from "./elements.js";
import type { PointsSource } from "./points_dialog.js";
import { onTheme } from "./run_parts.js";
import { change, parameter, parameters } from "./url_state.js";

const AT_FIRST = 4, MOST_CARDS = 32, MOST_LINES = 48, MOST_NAMES = 500, AGAIN_MS = 1500, HEIGHT_PX = 240;

interface RunCurve { run: Compared; curve: Curve }

export class CompareCurves {
  readonly part = element("section");
  private readonly tools = element("div", { className: "tools" });
  private readonly charts = element("div", { className: "charts" });
  private readonly note = element("p", { className: "muted" });
  private readonly cards = new Map<string, CurveCard<{ metric: string; unit: string }>>();
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
    onTheme(() => this.cards.forEach((card) => card.redraw()));
  }

  /** Show the runs; curves are read again if their points or the state of the URL have changed. */
  show(runs: readonly Compared[]): void {
    this.runs = runs.filter(({ hasFiles }) => hasFiles);
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
    return (chosen.length ? chosen : this.known().slice(0, AT_FIRST)).slice(0, MOST_CARDS);
  }

  private known(): string[] {
    const counts = new Map<string, number>(), stepped = new Set<string>();
    for (const { metrics } of this.runs) {
      for (const { metric, steps } of metrics) {
        counts.set(metric, (counts.get(metric) ?? 0) + 1);
        if (steps !== null || parameter("axis") === "relative") stepped.add(metric);
      }
    }
    const weight = (name: string) => Number(stepped.has(name)) * 100 + (counts.get(name) ?? 0) * 4 + (/loss/i.test(name) ? 2 : 0) - (/utilization|memory/i.test(name) ? 1 : 0);
    return [...counts.keys()].sort((one, other) => weight(other) - weight(one) || one.localeCompare(other));
  }

  private drawTools(): void {
    const shown = this.metrics(), known = this.known();
    const add = labelled(element("input", { type: "search", placeholder: "Add a metric" }), { "aria-label": "Add a metric", list: "metrics" });
    const names = element("datalist", { id: "metrics" }, ...known.filter((name) => !shown.includes(name)).slice(0, MOST_NAMES).map((value) => element("option", { value })));
    add.addEventListener("change", () => add.value && change({ metric: [...shown, add.value] }));
    const smooth = labelled(element("input", { type: "range", min: "0", max: "0.99", step: "0.01", value: parameter("smooth") || "0" }), { "aria-label": "Smoothing" });
    smooth.addEventListener("change", () => change({ smooth: smooth.value === "0" ? "" : smooth.value }));
    const isZoomed = Boolean(parameter("from") || parameter("to"));
    this.tools.replaceChildren(add, names,
      choice("X axis", [["", "by step"], ["relative", "by time since start"]], parameter("axis"), (axis) => change({ axis, from: "", to: "" })),
      choice("Y axis", [["", "linear"], ["1", "logarithmic"]], parameter("log"), (log) => change({ log })),
      element("label", { className: "check" }, "Smoothing ", smooth, ` ${parameter("smooth") || "0"}`),
      ...(isZoomed ? [button("Reset zoom", () => change({ from: "", to: "" }))] : []));
  }

  private async load(): Promise<void> {
    const turn = ++this.turn;
    const metrics = this.metrics(), cards = metrics.map((metric) => this.card(metric));
    this.say(metrics.length ? "" : this.runs.some(({ isRead }) => !isRead) ? "Reading …" : "The runs have no metrics that can be read from here.");
    if (cards.some(({ box }, at) => this.charts.children[at] !== box) || cards.length !== this.charts.children.length) this.charts.replaceChildren(...cards.map(({ box }) => box));
    const width = cards[0]?.box.clientWidth ?? 400;
    const buckets = Math.min(2000, Math.max(60, Math.floor((width * devicePixelRatio) / 2)));
    const failures: string[] = [];
    let isComplete = true;
    const loaded = await Promise.all(this.runs.map(async (run): Promise<RunCurve[]> => {
      if (!metrics.length) return [];
      try {
        const { curves, progress } = await get<Curves>(`${run.base}/curves?${this.query(run, metrics, buckets)}`);
        isComplete &&= progress.complete;
        return curves.map((curve) => ({ run, curve: this.shifted(run, curve) }));
      } catch (error) {
        failures.push(`${run.id}: ${(error as Error).message}`);
        return [];
      }
    }));
    if (turn !== this.turn) return;  // a later state of the page is on its way
    const all = loaded.flat(), view = this.view(all);
    const leftOut = metrics.reduce((sum, metric, at) => {
      const curves = all.filter(({ curve }) => curve.metric === metric);
      cards[at]!.draw(linesOf(curves.slice(0, MOST_LINES)), view, view.axis === "step" && !this.isZoomed() ? "No points with a step; choose the time since start." : undefined);
      return sum + Math.max(0, curves.length - MOST_LINES);
    }, 0);
    this.say(leftOut ? `${counted(leftOut, "curve")} left out; compare fewer runs.` : "");
    if (failures.length) this.charts.prepend(problem(failures.join(" ")));
    if (!isComplete) setTimeout(() => turn === this.turn && void this.load(), AGAIN_MS);
  }

  private say(text: string): void {
    this.note.textContent = text;
    this.note.hidden = !text;
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

  private shifted(run: Compared, curve: Curve): Curve {
    if (parameter("axis") !== "relative") return curve;
    const since = (xs: number[]) => xs.map((each) => each - startOf(run));
    return { ...curve, x: since(curve.x), ...(curve.nonfinite && { nonfinite: { ...curve.nonfinite, x: since(curve.nonfinite.x) } }) };
  }

  private isZoomed(): boolean {
    return Boolean(parameter("from") && parameter("to") && Number(parameter("from")) < Number(parameter("to")));
  }

  /** Return the view of all charts: the window of the URL, or all points of all charts. */
  private view(all: readonly RunCurve[]): ChartView {
    const ends = all.flatMap(({ curve: { x, nonfinite } }) => [...(x.length ? [x[0]!, x.at(-1)!] : []), ...(nonfinite?.x ?? [])]);
    const first = ends.reduce((one, other) => Math.min(one, other), Infinity), last = ends.reduce((one, other) => Math.max(one, other), -Infinity);
    const range: [number, number] = this.isZoomed() ? [Number(parameter("from")), Number(parameter("to"))] : last > first ? [first, last] : [first - .5, first + .5];
    return {
      axis: parameter("axis") === "relative" ? "relative" : "step", range, origin: 0, isLog: parameter("log") === "1", marks: [],
      smoothing: Math.min(0.99, Math.max(0, Number(parameter("smooth")) || 0)), height: HEIGHT_PX, point: () => {},
      zoom: (from, to) => {
        this.cards.forEach((card) => card.move([from, to]));
        change({ from: String(Number(from.toPrecision(8))), to: String(Number(to.toPrecision(8))) });
      },
    };
  }

  private source(run: Compared, metric: string, { axis, range: [from, to] }: Pick<ChartView, "axis" | "range">): PointsSource {
    const start = axis === "step" ? 0 : startOf(run);
    const query = new URLSearchParams({ metric, axis: axis === "step" ? "step" : "time", from: String(from + start), to: String(to + start) });
    return { title: run.title, base: run.base, query };
  }

  private card(metric: string): CurveCard<{ metric: string; unit: string }> {
    const known = this.cards.get(metric);
    if (known) return known;
    const remove = labelled(button("×", () => change({ metric: this.metrics().filter((each) => each !== metric) }), { className: "quiet" }), { "aria-label": `Remove ${metric}` });
    const unit = this.runs.flatMap(({ metrics }) => metrics).find((each) => each.metric === metric)?.unit ?? "";
    const card: CurveCard<{ metric: string; unit: string }> = new CurveCard<{ metric: string; unit: string }>({ metric, unit }, remove, () => this.runs.map((run) => this.source(run, metric, card.window)));
    this.cards.set(metric, card);
    return card;
  }
}

/** Return the lines of one chart: the colour is that of the run. */
function linesOf(all: readonly RunCurve[]): Line[] {
  const groups = new Map<string, number>(), last = new Map<string, number>();
  const named = all.map(({ run, curve }) => {
    const others = all.filter((each) => each.run === run).map((each) => each.curve);
    const labels = Object.entries(curve.labels).filter(([name, value]) => others.some((other) => other.labels[name] !== value));
    const label = [letterOf(run), run.title, ...labels.map(([name, value]) => `${name}=${value}`)].join(" ");
    const name = JSON.stringify([run.at, label]);
    if (!groups.has(name)) groups.set(name, groups.size);
    last.set(name, Math.max(curve.attempt, last.get(name) ?? 0));
    return { run, curve, label, name };
  });
  return named.map(({ run, curve, label, name }) => {
    const isLast = last.get(name) === curve.attempt;
    return { label: isLast ? label : `${label} · attempt ${curve.attempt}`, group: groups.get(name)!, hue: run.at, isLast, curve };
  });
}

const startOf = ({ document }: Compared): number => Date.parse(document?.run.creationTime ?? document?.run.startTime ?? "1970-01-01") / 1000;
