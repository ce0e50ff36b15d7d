// Where the time of a run went: the exact partition, as a whole and over time, windows, attempts and disruptions.
import { get, type Breakdown, type Goodput, type GoodputReport, type Run } from "./api.js";
import { causeColor, causeName, partitionOf } from "./causes.js";
import { duration, element, moment, percent, problem, table } from "./elements.js";
import { goodputBar } from "./goodput_bar.js";
import { goodputOverTime } from "./goodput_over_time.js";
import type { Part } from "./run_parts.js";

const LEAST_DIFFERENCE_S = 1;
const INDEPENDENT = "No rank leads the processes of this run, such as those of a Deployment, so it has no account of goodput; "
  + "Hosts has its processes.";

/** Return the part with the goodput of a run. */
export function goodputPart(base: string): Part {
  const box = element("section", {}, element("p", { className: "muted" }, "Computing …"));
  let known = "";

  async function load(run: Run): Promise<void> {
    try {
      const goodput = await get<Goodput>(`${base}/goodput`), { report, problem: obstacle } = goodput;
      const text = JSON.stringify([goodput, run.completionTime]);
      if (text === known) return;
      known = text;
      box.replaceChildren(...(report ? content(report, goodput, run) : [element("p", { className: "muted" },
        run.independent ? INDEPENDENT : obstacle ?? "This run has recorded no events of goodput. Call run.step(n) in its training loop, or use mldiagnostics.goodput.")]));
    } catch (error) {
      known = "";
      box.replaceChildren(problem((error as Error).message));
    }
  }
  return { box, update: ({ run }) => void load(run) };
}

function content(report: GoodputReport, { overTime, figures, alarm, ofCluster, problem: obstacle }: Goodput, run: Run): Node[] {
  const { cumulative, windows, attempts, disruptions } = report;
  const partition = partitionOf(cumulative);
  const causes = [...partition.parts].sort(([, one], [, other]) => other - one).map(([cause, seconds]) =>
    [element("span", {}, swatch(cause), causeName(cause)), duration(seconds), percent(seconds / Math.max(1e-9, cumulative.elapsed_s))]);
  const spans = [...windows.filter(({ elapsed_s }) => elapsed_s < cumulative.elapsed_s), { ...cumulative, window_s: null }].map((each) =>
    [each.window_s === null ? "whole run" : `last ${duration(each.window_s)}`, percent(each.goodput), biggest(each.unproductive_s)]);
  const stretches = attempts.map((each) => [String(each.number), steps(each.first_step, each.last_step), duration(each.stretch.elapsed_s),
    percent(each.stretch.goodput), biggest(each.stretch.unproductive_s), each.ended_by, lane(each.stretch, cumulative)]);
  const losses = disruptions.map((each) => [moment(new Date(1000 * each.lost).toISOString()), each.cause, each.message || null,
    each.steps_lost, duration(each.wasted_s), duration(each.recovery.total_s)]);
  return [
    ...(alarm ? [problem(alarm)] : []),
    element("p", { className: "figure" }, element("strong", {}, percent(cumulative.goodput)),
      element("span", { className: "muted" }, ` of ${duration(cumulative.elapsed_s)} went into steps that count`)),
    ...(ofCluster ? [asOf(cumulative, obstacle)] : bounds(cumulative, run)),
    element("div", { className: "whole" }, goodputBar(partition) as unknown as Node),
    ...(overTime && cumulative.elapsed_s > 0 ? [element("h2", {}, "Over time"), goodputOverTime(overTime)] : []),
    element("div", { className: "columns" },
      titled("By cause", table(["Cause", "Time", "Share"], causes)),
      ...(figures?.length ? [titled("Reliability and cost", table(["Figure", "Value"], figures.map(([name, text]) => [name.trim(), text])))] : []),
      titled("Windows", table(["Window", "Goodput", "Largest loss"], spans)),
      ...(stretches.length > 1 ? [titled("Attempts", table(["Attempt", "Steps", "Time", "Goodput", "Largest loss", "Ended by", "By cause"], stretches))] : []),
      ...(losses.length ? [titled("Disruptions", table(["Lost at", "Cause", "Evidence", "Steps lost", "Repeated", "Recovery"], losses))] : [])),
  ];
}

/** Return the note of an account that the MLRun has. */
function asOf({ end }: Breakdown, obstacle: string | null | undefined): Node {
  const source = `From the MLRun, as of ${moment(new Date(1000 * end).toISOString())}.`;
  return element("p", { className: "muted" }, [source, obstacle].filter(Boolean).join(" "));
}

/** Return a note if the account has another start or end than the run. */
function bounds({ start, end }: Breakdown, { creationTime, completionTime }: Run): Node[] {
  const differs = (time: string | null, other: number) => time !== null && Math.abs(Date.parse(time) / 1000 - other) > LEAST_DIFFERENCE_S;
  if (!differs(creationTime, start) && !differs(completionTime, end)) return [];
  const [from, to] = [start, end].map((each) => moment(new Date(1000 * each).toISOString()));
  return [element("p", { className: "muted" }, `The account is from the first job start, ${from}, to the job end, ${to}; the run may be longer.`)];
}

/** Return the time of an attempt by cause, at its place in the time of the run. */
function lane(stretch: Breakdown, { start, end }: Breakdown): Node {
  const bar = goodputBar(partitionOf(stretch)), size = Math.max(1e-9, end - start);
  const box = element("div", { className: "lane" }, bar);
  bar.style.marginLeft = `${(100 * (stretch.start - start)) / size}%`;
  bar.style.width = `${Math.max(0.5, (100 * (stretch.end - stretch.start)) / size)}%`;
  return box;
}

function titled(title: string, content: HTMLElement): HTMLElement {
  return element("div", {}, element("h2", {}, title), content);
}

function biggest(unproductive: Record<string, number>): string | null {
  const [cause, seconds] = Object.entries(unproductive).reduce<[string, number]>((most, each) => (each[1] > most[1] ? each : most), ["", 0]);
  return cause ? `${causeName(cause)}, ${duration(seconds)}` : null;
}

function steps(first: number | null, last: number | null): string | null {
  return first === null || last === null ? null : `${first}–${last}`;
}

/** Return a square in the colour of a cause. */
export function swatch(cause: string): HTMLElement {
  const made = element("span", { className: "swatch", ariaHidden: "true" });
  made.style.background = causeColor(cause);
  return made;
}
