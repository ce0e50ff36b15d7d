// All metrics in a list: a small line, and the exact last, lowest, highest and average value.
import { get, type Curve, type Curves, type Metric } from "./api.js";
import { button, drawing, element } from "./elements.js";
import { nonfiniteText } from "./chart_data.js";
import { color, short } from "./run_parts.js";

const TOGETHER = 24, BUCKETS = 60;
const WIDTH = 160, HEIGHT = 26;

/** Return the list; `open` shows the chart of a metric. */
export function sparklines(base: string, open: (metric: string) => void): { box: HTMLElement; show: (metrics: Metric[] | null) => void } {
  const body = element("tbody");
  const heads = ["Metric", "", "Last", "Lowest", "Highest", "Average", "Unit", "Points"].map((text) =>
    element("th", { scope: "col", className: ["", "Metric", "Unit"].includes(text) ? "" : "number" }, text));
  heads[1]!.append(element("span", { className: "hidden" }, "Curve"));
  const box = element("div", { className: "scroll", tabIndex: 0, hidden: true },
    element("table", { className: "sparklines" }, element("thead", {}, element("tr", {}, ...heads)), body));
  const rows = new Map<string, { row: HTMLTableRowElement; metric: Metric; count: number }>();
  let waiting: string[] = [], isBusy = false;
  const watcher = new IntersectionObserver((entries) => {
    const seen = entries.filter(({ isIntersecting }) => isIntersecting).map(({ target }) => (target as HTMLElement).dataset["metric"] ?? "");
    waiting.push(...seen.filter((name) => rows.get(name)?.count !== rows.get(name)?.metric.count));
    void load();
  }, { rootMargin: "200px" });

  async function load(): Promise<void> {
    if (isBusy || !waiting.length) return;
    isBusy = true;
    const names = [...new Set(waiting)].slice(0, TOGETHER);
    waiting = waiting.filter((name) => !names.includes(name));
    const query = new URLSearchParams({ axis: "time", buckets: String(BUCKETS) });
    names.forEach((name) => query.append("metric", name));
    try {
      const { curves } = await get<Curves>(`${base}/curves?${query}`);
      for (const name of names) fill(name, curves.filter(({ metric }) => metric === name));
    } catch {
      // the note above the list has the problem; the next look loads again
    }
    isBusy = false;
    void load();
  }

  function fill(name: string, curves: Curve[]): void {
    const known = rows.get(name);
    if (!known) return;
    known.count = known.metric.count;
    const summaries = curves.map(({ summary }) => summary);
    const all = (name: "lowest" | "highest") => summaries.flatMap((each) => (each[name] === null ? [] : [each[name]]));
    const odd = ({ nonfinite: { nan, plus, minus } }: Curve["summary"]) => nan + plus + minus;
    const finite = summaries.reduce((sum, each) => sum + each.count - odd(each), 0);
    const total = summaries.reduce((sum, each) => sum + (each.average ?? 0) * (each.count - odd(each)), 0);
    const cells = [all("lowest").length ? short(Math.min(...all("lowest"))) : "–", all("highest").length ? short(Math.max(...all("highest"))) : "–",
      finite ? short(total / finite) : "–"];
    known.row.children[1]!.replaceChildren(sparkline(curves));
    known.row.children[3]!.textContent = cells[0]!;
    known.row.children[4]!.textContent = cells[1]!;
    known.row.children[5]!.textContent = cells[2]!;
    const notes = curves.map(nonfiniteText).filter(Boolean);
    known.row.children[7]!.textContent = [known.metric.count.toLocaleString("en"), ...notes].join(", ");
  }

  function show(metrics: Metric[] | null): void {
    box.hidden = metrics === null;
    for (const metric of metrics ?? []) {
      const known = rows.get(metric.metric) ?? { row: newRow(metric), metric, count: -1 };
      rows.set(metric.metric, known);
      known.metric = metric;
      known.row.children[2]!.textContent = short(metric.lastValue) || "–";
      known.row.children[7]!.textContent = metric.count.toLocaleString("en");
      watcher.unobserve(known.row);  // observing again reports the rows on the screen
      watcher.observe(known.row);
    }
    body.replaceChildren(...(metrics ?? []).map(({ metric }) => rows.get(metric)!.row));
  }

  function newRow({ metric, unit }: Metric): HTMLTableRowElement {
    const name = button(metric, () => open(metric), { className: "link" });
    const number = () => element("td", { className: "number" });
    const row = element("tr", {}, element("td", {}, name), element("td"), number(), number(), number(), number(),
      element("td", { className: "muted" }, unit === "1" ? "" : unit), number());
    row.dataset["metric"] = metric;
    return row;
  }
  return { box, show };
}

/** Return a small drawing of curves over time. */
export function sparkline(curves: Curve[], width = WIDTH, height = HEIGHT): SVGSVGElement {
  const drawn = drawing("svg", { class: "sparkline", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const xs = curves.flatMap(({ x }) => x), ys = curves.flatMap(({ mean }) => mean);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const place = (x: number, y: number) =>
    `${(((x - left) / (right - left || 1)) * (width - 2) + 1).toFixed(1)},${(height - 2 - ((y - low) / (high - low || 1)) * (height - 4)).toFixed(1)}`;
  curves.forEach(({ x, mean }) => drawn.append(drawing("polyline", {
    points: x.map((each, at) => place(each, mean[at]!)).join(" "), fill: "none", stroke: color(0), "stroke-width": 1.3,
  })));
  return drawn;
}
