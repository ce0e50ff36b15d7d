// The charts of one run, of its own metrics or of the system: those on the screen are loaded, for the visible window.
import { get, type Metric, type Metrics, type RunDocument } from "./api.js";
import type { Axis, ChartView } from "./chart.js";
import { linesOf } from "./chart_data.js";
import { marksOf, type Mark } from "./chart_marks.js";
import { CurveCard } from "./curve_card.js";
import { CurveRequests, type Answer } from "./curve_requests.js";
import { curveSections } from "./curve_sections.js";
import { curveTools } from "./curve_tools.js";
import { sparklines } from "./sparklines.js";
import { button, counted, element, labelled, problem } from "./elements.js";
import { throttled } from "./live.js";
import type { PointsSource } from "./points_dialog.js";
import { onTheme, stateOf, type Part } from "./run_parts.js";
import { change, parameter } from "./url_state.js";

const SYSTEM = /(_utilization|_duty_cycle)$|^system[/_]/;
const MANY_RANKS = 16;
const SEARCH_MS = 300;
const LOW_PX = 190, HIGH_PX = 420;

/** Compare names; those of no group come first. */
function byName({ metric: one }: Metric, { metric: other }: Metric): number {
  return Number(one.includes("/")) - Number(other.includes("/")) || one.localeCompare(other);
}

/** Return the part with the metrics of the program, or of its hosts and devices. */
export function curvesPart(base: string, kind: "metrics" | "system"): Part {
  const cards = new Map<string, CurveCard>();
  const shown = new Set<CurveCard>();
  const requests = new CurveRequests(base);
  const note = element("p", { className: "muted", role: "status" });
  let metrics: Metrics = { metrics: [], omitted: 0, steps: { t: [], step: [] }, starts: [], sessions: {}, texts: [], progress: { readBytes: 0, totalBytes: 0, revision: 0, leftOut: 0, longNames: 0, badLines: 0, complete: false } };
  let own: Metric[] = [], run: RunDocument | null = null, marks: Mark[] = [], scheduled = 0, percent = 0, found = 0, searched = "", isPartial = false;
  const tools = curveTools(defaults), list = sparklines(base, open);
  const sections = curveSections((metric) => (cards.get(metric.metric) ?? newCard(metric)).box);
  const box = element("section", {}, tools.box, note, list.box, sections.box);
  note.textContent = "Reading metrics …";
  tools.update(false);

  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const card = cards.get((target as HTMLElement).dataset["metric"] ?? "");
      if (!card) continue;
      if (isIntersecting) shown.add(card);
      else shown.delete(card);
    }
    schedule();
  }, { rootMargin: "150px" });
  onTheme(() => shown.forEach((card) => card.redraw()));

  /** Load what is on the screen, once for all changes of a frame. */
  function schedule(): void {
    cancelAnimationFrame(scheduled);
    scheduled = requestAnimationFrame(load);
  }

  function load(): void {
    const visible = [...shown].filter(({ box: { isConnected } }) => isConnected);
    const wanted = visible.map((card) => ({ metric: card.metric, buckets: Math.min(1000, Math.max(100, Math.round(card.plotBox.clientWidth / 100) * 50)) }));
    const [from, to] = [parameter("from"), parameter("to")].map((text) => (text && Number.isFinite(Number(text)) ? Number(text) : null));
    const axis = tools.setting("axis") as Axis;
    requests.load(metrics.metrics, wanted, { axis, by: tools.setting("by"), from: from ?? null, to: to ?? null }, metrics.steps, (metric, answer) => {
      const card = cards.get(metric.metric);
      if (answer instanceof Error) card?.fail(answer.message);
      else card?.draw(linesOf(answer.curves), view(metric.metric, answer));
    });
  }

  /** Metrics of the system have no steps, and hosts are compared if they are few. */
  function defaults(): Record<string, string> {
    const most = Math.max(1, ...own.map(({ ranks }) => ranks));
    return kind === "system" ? { axis: "time", by: most > 1 && most <= MANY_RANKS ? "rank" : "run" } : {};
  }

  function view(metric: string, { axis, range }: Answer): ChartView {
    const origin = Math.min(...metrics.metrics.flatMap(({ times }) => (times ? [times[0]] : [])));
    return {
      axis, range, marks, origin, isLog: tools.setting("scale") === "log", smoothing: Number(tools.setting("smooth")),
      height: parameter("metric") === metric ? HIGH_PX : LOW_PX, zoom, point: () => {},
    };
  }

  function zoom(from: number, to: number): void {
    const digits = tools.setting("axis") === "step" ? 1 : 3;
    if (tools.setting("axis") === "step") shown.forEach((card) => { if (card.metric.steps) card.move([from, to]); });
    else shown.forEach((card) => card.move([from, to]));
    change({ from: from.toFixed(digits), to: to.toFixed(digits) });
  }

  function open(metric: string): void {
    change({ metric: parameter("metric") === metric ? "" : metric, show: "" });
    scrollTo({ top: Math.min(scrollY, box.offsetTop) });
  }

  /** Show the cards that the search leaves, in the order of their names. */
  function arrange(): void {
    const words = parameter("q").toLowerCase().split(/\s+/).filter(Boolean), alone = parameter("metric");
    const matching = own.filter(({ metric }) => words.every((word) => metric.toLowerCase().includes(word)));
    const isAlone = own.some(({ metric }) => metric === alone);
    const isList = parameter("show") === "list" && !isAlone;
    sections.show(isList ? [] : isAlone ? own.filter(({ metric }) => metric === alone) : matching);
    cards.forEach((card, metric) => { card.isAlone = metric === alone; });
    list.show(isList ? matching : null);
    tools.update(isAlone);
    found = matching.length;
    describe();
    schedule();
  }

  function newCard(metric: Metric): CurveCard {
    const enlarge = labelled(button("⤢", () => open(metric.metric), { className: "quiet" }), { "aria-label": `Enlarge ${metric.metric}` });
    const card: CurveCard = new CurveCard(metric, enlarge, () => pointsOf(metric.metric, card.window));
    card.box.classList.add("loading");
    card.box.dataset["metric"] = metric.metric;
    cards.set(metric.metric, card);
    watcher.observe(card.box);
    return card;
  }

  function pointsOf(metric: string, { axis, range }: { axis: Axis; range: [number, number] }): PointsSource[] {
    const query = new URLSearchParams({ metric, axis: axis === "step" ? "step" : "time", from: String(range[0]), to: String(range[1]) });
    return [{ title: "", base, query }];
  }

  function describe(): void {
    const { complete, leftOut, longNames, badLines } = metrics.progress;
    const parts = [found === own.length ? counted(own.length, "metric") : `${found} of ${counted(own.length, "metric")}`];
    if (metrics.omitted) parts.push(`${counted(metrics.omitted, "metric")} more, not listed: search for them`);
    if (!complete && percent < 100) parts.push(`${percent} % read; until then, charts show some of the points`);
    if (leftOut) parts.push(`${counted(leftOut, "point")} left out, because there are too many curves`);
    if (longNames) parts.push(`${counted(longNames, "point")} left out, because the name of their metric is too long`);
    if (badLines) parts.push(`${counted(badLines, "line")} cannot be read`);
    for (const [kind, sign] of [["restart", "┆"], ["profile", "▾"], ["text", "▾"]]) {
      const count = marks.filter((mark) => mark.kind === kind).length;
      if (count) parts.push(`${sign} ${counted(count, kind!)}`);
    }
    note.textContent = parts.join(" · ");
    if (complete && !own.length && !searched) {
      note.textContent = kind === "system" ? "This run has recorded no metrics of its hosts; the SDK samples them every 10 s."
        : "This run has recorded no metrics yet. Record some with metrics.record(name, value, step=…).";
    }
  }

  /** Return the words for the server: it searches where not all metrics are listed. */
  const wantedSearch = (): string => (isPartial ? parameter("metric") || parameter("q") : "");
  const searchSoon = throttled(refresh, SEARCH_MS);

  async function refresh(): Promise<string> {
    try {
      const search = wantedSearch(), answer = await get<Metrics>(`${base}/metrics${search ? `?${new URLSearchParams({ q: search })}` : ""}`);
      if (search !== wantedSearch()) {
        searchSoon();
        return "";
      }
      [metrics, searched] = [answer, search];
      if (answer.omitted && !isPartial) {
        isPartial = true;
        if (wantedSearch()) searchSoon();
      }
      percent = Math.floor((100 * metrics.progress.readBytes) / Math.max(1, metrics.progress.totalBytes));
      own = metrics.metrics.filter(({ metric }) => SYSTEM.test(metric) === (kind === "system")).sort(byName);
      marks = run ? marksOf(run, metrics) : [];
      arrange();
      return stateOf(metrics);
    } catch (error) {
      note.replaceChildren(problem((error as Error).message));
      return "";
    }
  }

  return {
    box,
    update: (changed) => {
      run = changed;
      const known = JSON.stringify(marks);
      marks = marksOf(run, metrics);
      if (metrics.metrics.length && JSON.stringify(marks) !== known) arrange();
    },
    refresh,
    progress: (read) => {
      percent = read;
      if (metrics.metrics.length) describe();
    },
    redraw: () => {
      if (wantedSearch() !== searched) searchSoon();
      if (metrics.metrics.length) arrange();
    },
  };
}
