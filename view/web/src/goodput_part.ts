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
    [element("span", {}, swatch(cause), causeName(cause)), duration(seconds), percent(seconds / Math.max(1e-9, cumulative.elapsedSeconds))]);
  const spans = [...windows.filter(({ elapsedSeconds }) => elapsedSeconds < cumulative.elapsedSeconds), { ...cumulative, windowSeconds: null }].map((each) =>
    [each.windowSeconds === null ? "whole run" : `last ${duration(each.windowSeconds)}`, percent(each.goodput), biggest(each.unproductiveSeconds)]);
  const stretches = attempts.map((each) => [String(each.number), steps(each.firstStep, each.lastStep), duration(each.stretch.elapsedSeconds),
    percent(each.stretch.goodput), biggest(each.stretch.unproductiveSeconds), each.endedBy, lane(each.stretch, cumulative)]);
  const losses = disruptions.map((each) => [moment(each.lostTime), each.cause, each.message || null,
    each.stepsLost, duration(each.wastedSeconds), duration(each.recovery.totalSeconds)]);
  return [
    ...(alarm ? [problem(alarm)] : []),
    element("p", { className: "figure" }, element("strong", {}, percent(cumulative.goodput)),
      element("span", { className: "muted" }, ` of ${duration(cumulative.elapsedSeconds)} went into steps that count`)),
    ...(ofCluster ? [asOf(cumulative, obstacle)] : bounds(cumulative, run)),
    element("div", { className: "whole" }, goodputBar(partition) as unknown as Node),
    ...(overTime && cumulative.elapsedSeconds > 0 ? [element("h2", {}, "Over time"), goodputOverTime(overTime)] : []),
    element("div", { className: "columns" },
      titled("By cause", table(["Cause", "Time", "Share"], causes)),
      ...(figures?.length ? [titled("Reliability and cost", table(["Figure", "Value"], figures.map(([name, text]) => [name.trim(), text])))] : []),
      titled("Windows", table(["Window", "Goodput", "Largest loss"], spans)),
      ...(stretches.length > 1 ? [titled("Attempts", table(["Attempt", "Steps", "Time", "Goodput", "Largest loss", "Ended by", "By cause"], stretches))] : []),
      ...(losses.length ? [titled("Disruptions", table(["Lost at", "Cause", "Evidence", "Steps lost", "Repeated", "Recovery"], losses))] : [])),
  ];
}

/** Return the note of an account that the MLRun has. */
function asOf({ endTime }: Breakdown, obstacle: string | null | undefined): Node {
  const source = `From the MLRun, as of ${moment(endTime)}.`;
  return element("p", { className: "muted" }, [source, obstacle].filter(Boolean).join(" "));
}

/** Return a note if the account has another start or end than the run. */
function bounds({ startTime, endTime }: Breakdown, { creationTime, completionTime }: Run): Node[] {
  const differs = (time: string | null, other: string) => time !== null && Math.abs(Date.parse(time) - Date.parse(other)) > 1000 * LEAST_DIFFERENCE_S;
  if (!differs(creationTime, startTime) && !differs(completionTime, endTime)) return [];
  const [from, to] = [startTime, endTime].map(moment);
  return [element("p", { className: "muted" }, `The account is from the first job start, ${from}, to the job end, ${to}; the run may be longer.`)];
}

/** Return the time of an attempt by cause, at its place in the time of the run. */
function lane(stretch: Breakdown, { startTime, endTime }: Breakdown): Node {
  const [start, end, from, to] = [startTime, endTime, stretch.startTime, stretch.endTime].map(Date.parse) as [number, number, number, number];
  const bar = goodputBar(partitionOf(stretch)), size = Math.max(1e-9, end - start);
  const box = element("div", { className: "lane" }, bar);
  bar.style.marginLeft = `${(100 * (from - start)) / size}%`;
  bar.style.width = `${Math.max(0.5, (100 * (to - from)) / size)}%`;
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
