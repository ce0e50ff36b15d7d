// Charts in sections, by the first part of the names of their metrics: each has its own bound, and folds.
import type { Metric } from "./api.js";
import { button, counted, element } from "./elements.js";
import { change, parameters } from "./url_state.js";

const ALONE_AT_ONCE = 100, SECTION_AT_ONCE = 12;

export interface CurveSections {
  box: HTMLElement;
  /** Show metrics in the order given; a section stands where its first metric does. */
  show: (metrics: readonly Metric[]) => void;
}

interface Section { box: HTMLDetailsElement; update: (metrics: readonly Metric[], isAlone: boolean) => void }

/** Return the section of a metric: `train` of `train/loss`; empty if its name has no parts. */
export const sectionOf = (metric: string): string => metric.slice(0, Math.max(0, metric.indexOf("/")));

/** Return the sections. `card` returns the chart of a metric, always the same element. */
export function curveSections(card: (metric: Metric) => HTMLElement): CurveSections {
  const box = element("div", { className: "sections" }), sections = new Map<string, Section>();

  function show(metrics: readonly Metric[]): void {
    const members = new Map<string, Metric[]>();
    for (const metric of metrics) {
      const name = sectionOf(metric.metric), known = members.get(name);
      if (known) known.push(metric);
      else members.set(name, [metric]);
    }
    const boxes = [...members].map(([name, own]) => {
      const section = sections.get(name) ?? newSection(name);
      sections.set(name, section);
      section.update(own, members.size === 1);
      return section.box;
    });
    replace(box, boxes);
  }

  function newSection(name: string): Section {
    const key = name || "-", head = element("summary"), charts = element("div", { className: "charts" });
    const more = button("", () => {
      limit += isAlone ? ALONE_AT_ONCE : SECTION_AT_ONCE;
      draw();
    });
    const details = element("details", { className: "section" }, head, charts, more);
    let own: readonly Metric[] = [], isAlone = false, limit = 0;

    function draw(): void {
      const folded = parameters().getAll("fold").includes(key);
      details.open = isAlone || !folded;
      details.classList.toggle("only", isAlone);
      head.replaceChildren(element("h2", {}, name || "Without a prefix"), element("span", { className: "muted" }, ` ${counted(own.length, "metric")}`));
      const most = Math.max(limit, isAlone ? ALONE_AT_ONCE : SECTION_AT_ONCE), rest = own.length - most;
      replace(charts, details.open ? own.slice(0, most).map(card) : []);
      more.hidden = rest <= 0;
      more.textContent = `Show ${Math.min(rest, isAlone ? ALONE_AT_ONCE : SECTION_AT_ONCE)} more of ${rest}`;
      limit = most;
    }
    head.addEventListener("click", (event) => {
      event.preventDefault();  // the address folds it
      const folded = parameters().getAll("fold");
      change({ fold: folded.includes(key) ? folded.filter((each) => each !== key) : [...folded, key] });
    });
    function update(metrics: readonly Metric[], alone: boolean): void {
      if (alone !== isAlone) limit = 0;
      [own, isAlone] = [metrics, alone];
      draw();
    }
    return { box: details, update };
  }
  return { box, show };
}

/** Put children into a box, unless it has them: charts that stay keep their place on the screen. */
function replace(box: HTMLElement, children: HTMLElement[]): void {
  if (children.length !== box.children.length || children.some((each, at) => box.children[at] !== each)) box.replaceChildren(...children);
}
