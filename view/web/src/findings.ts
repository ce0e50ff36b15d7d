// Findings about a session in words, and one picture of its hosts.
import type { Finding, FindingHost, SessionDiagnosis } from "./api.js";
import { button, duration, element, percent } from "./elements.js";
import { heatMap } from "./heat_map.js";
import { showNumbers } from "./numbers_dialog.js";
import { phaseBars, phaseName, type PhaseRow } from "./phase_bars.js";

const NAMED = 4;
const BARS = 24;
export const SEVERITY_SIGNS: Record<Finding["severity"], string> = { critical: "✖", warning: "▲", info: "●" };

/** Return the findings, the most expensive one first. */
export function findingList(findings: Finding[]): HTMLElement {
  return element("ul", { className: "findings" }, ...findings.map((finding) => element("li", { className: finding.severity },
    element("p", { className: "what" }, element("span", { className: "sign", ariaHidden: "true" }, SEVERITY_SIGNS[finding.severity]), finding.message),
    element("p", { className: "muted" }, facts(finding)),
    element("p", {}, `→ ${finding.nextStep}`))));
}

/** Return the hosts of a session with the phases of a step, and their arrivals in each step. */
export function findingPicture({ diagnosis, hosts, arrivals }: SessionDiagnosis): HTMLElement {
  const slow = new Set(hosts.filter(({ isSlow }) => isSlow).map(({ name }) => name));
  const known = new Map(diagnosis.findings.flatMap((finding) => finding.hosts.map((host) => [host.name, hostName(host)])));
  const title = (name: string) => known.get(name) ?? name;
  const rows = hosts.map(({ name, phases, isSlow }): PhaseRow => ({ title: title(name), phases, isSlow }));
  const box = element("div");
  if (rows.length) {
    const phases = [...new Set(rows.flatMap((row) => Object.keys(row.phases)))];
    box.append(element("h3", {}, "Time of a step by host"), phaseBars(condensed(rows)),
      button("Numbers", () => showNumbers("Seconds of a step by phase", ["host", ...phases.map(phaseName)],
        rows.map((row) => [row.title, ...phases.map((phase) => String(row.phases[phase] ?? 0))]))));
  }
  if (arrivals.hosts.length > 1 && arrivals.steps.length) {
    const step = (at: number) => `step ${arrivals.steps[Math.min(at, arrivals.steps.length - 1)]}`;
    box.append(element("h3", {}, "Arrival at the first collective, by host and step"), heatMap(
      { ranks: arrivals.hosts.map((_, at) => at), rows: arrivals.rows },
      { title: "Seconds until the first collective", over: "steps", unit: "s", column: step, isPace: false,
        name: (at) => `${slow.has(arrivals.hosts[at]!) ? "▲ " : ""}${title(arrivals.hosts[at]!)}` }));
  }
  return box;
}

function facts({ code, costSeconds, costShare, phase, operation, hosts, hostCount, evidence }: Finding): string {
  const named = hosts.slice(0, NAMED).map(hostName), more = hostCount - named.length;
  return [
    code,
    costSeconds > 0 ? `costs ${duration(costSeconds)} of each step (${percent(costShare)})` : "",
    phase ? `phase ${phaseName(phase)}${operation ? `, operation ${operation}` : ""}` : "",
    named.join(", ") + (named.length && more > 0 ? ` and ${more} more` : ""),
    ...evidence.map(({ name, value, unit }) => `${name} ${amount(value, unit)}`),
  ].filter(Boolean).join(" · ");
}

function hostName({ name, rank, pod, node }: FindingHost): string {
  const details = [rank === null ? "" : `rank ${rank}`, node ? `node ${node}` : ""].filter(Boolean).join(", ");
  return details ? `${pod ?? name} (${details})` : (pod ?? name);
}

function amount(value: number, unit: string): string {
  if (unit === "s") return value < 0 ? `-${duration(-value)}` : duration(value);
  return unit === "share" ? percent(value) : `${value.toLocaleString("en", { maximumSignificantDigits: 4 })} ${unit}`.trim();
}

/** Return the slow hosts and some others; the rest as one row with their mean. */
function condensed(rows: PhaseRow[]): PhaseRow[] {
  if (rows.length <= BARS) return rows;
  const slow = rows.filter(({ isSlow }) => isSlow).slice(0, BARS - 1), rest = rows.filter((row) => !slow.includes(row));
  const shown = rest.slice(0, BARS - 1 - slow.length), others = rest.slice(shown.length);
  const phases: Record<string, number> = {};
  for (const row of others) for (const [phase, seconds] of Object.entries(row.phases)) phases[phase] = (phases[phase] ?? 0) + seconds / others.length;
  return [...slow, ...shown, { title: `mean of ${others.length} other hosts`, phases, isSlow: false }];
}
