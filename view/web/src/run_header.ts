// The head of the page of a run: what it is, how it is, and its attempts on one line of time.
import type { Attempt, RunDocument, Run } from "./api.js";
import { bytes, counted, drawing, duration, element, moment, percent } from "./elements.js";
import { copyButton } from "./copying.js";
import { tagList } from "./runs_columns.js";

const SIGNS: Record<string, string> = { Active: "▶", Completed: "✔", Failed: "✖", Pending: "○" };
const FEW = 4;
const WIDTH = 1000, HEIGHT = 22;

/** Return the head of the page. */
export function runHeader(document: RunDocument): Node[] {
  const { run, attempts, sessions } = document;
  const size = sessions.reduce((sum, session) => sum + session.bytes, 0);
  const workload = run.workloadRef ? [run.workloadRef["kind"], run.workloadRef["name"]].filter(Boolean).join("/") : null;
  const end = run.completionTime ?? run.lastHeartbeatTime;
  const facts: [string, string | null][] = [
    ["Step", run.progress.step === null ? null : run.progress.step.toLocaleString("en")],
    ["Step time", run.progress.stepTimeSeconds === null ? null : duration(run.progress.stepTimeSeconds)],
    ["Goodput", run.goodput === null ? null : percent(run.goodput)],
    ["Elapsed", run.creationTime && end ? duration((Date.parse(end) - Date.parse(run.creationTime)) / 1000) : null],
    ["Attempt", run.attempt === null ? null : String(run.attempt)],
    ["Hosts", run.hosts.reporting === null ? null : String(run.hosts.reporting)],
    ["Workload", workload],
    ["Namespace", run.namespace],
    ["Group", run.runGroup],
    ["Recorded in", run.reportedStorage === run.storageLocation ? null : run.reportedStorage],
    ["Started", run.creationTime ? moment(run.creationTime) : null],
    [run.completionTime ? "Ended" : "Last report", end ? moment(end) : null],
    ["Dropped records", counts(run.drops)],
    ["Warnings", counts(run.complaints)],
    ["Profiles", sessions.length ? `${sessions.length}, ${bytes(size)}` : null],
  ];
  const started = command(document.configs);
  const known = facts.filter((fact): fact is [string, string] => Boolean(fact[1]));
  return [
    element("div", { className: "title" }, element("h1", {}, run.displayName ?? run.runId), phase(run), tagList(run.tags)),
    ...(run.notes ? [element("p", { className: "notes" }, run.notes)] : []),
    ...(run.message ? [element("p", { className: `message ${run.phase.toLowerCase()}` }, run.message)] : []),
    element("dl", { className: "facts" }, ...known.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    element("p", { className: "place muted" }, element("span", {}, run.directory || run.runId), copyButton("Copy", () => run.directory || run.runId)),
    ...(started ? [element("p", { className: "place muted" }, element("code", {}, started), copyButton("Copy command", () => started))] : []),
    ...(attempts.length > 1 ? [timeline(document), attemptList(attempts)] : []),
  ];
}

/** Return the program and its arguments, without the secrets among them. */
function command(configs: Record<string, unknown>): string | null {
  const { command: program, arguments: given } = (configs["software"] ?? {}) as Record<string, unknown>;
  return [program, given].filter((each) => typeof each === "string").join(" ") || null;
}

function counts(numbers: Record<string, number>): string | null {
  return Object.entries(numbers).sort(([, one], [, other]) => other - one).map(([name, count]) => `${count} ${name}`).join(", ") || null;
}

function phase({ phase: name, reason }: Run): HTMLElement {
  const sign = element("span", { className: `sign ${name.toLowerCase()}`, ariaHidden: "true" }, SIGNS[name] ?? "·");
  return element("span", { className: `phase ${name.toLowerCase()}` }, sign, reason ? `${name}: ${reason}` : name);
}

/** Return the attempts and the profiles on one line of time; the list below it has the same as text. */
function timeline({ run, attempts, sessions }: RunDocument): HTMLElement {
  const seconds = (time: string | null) => (time ? Date.parse(time) / 1000 : null);
  const starts = attempts.map((each) => seconds(each.startTime)).filter((each) => each !== null);
  const start = Math.min(...starts);
  const end = Math.max(seconds(run.completionTime) ?? seconds(run.lastHeartbeatTime) ?? start, ...starts) || start + 1;
  const place = (time: number) => (WIDTH * (time - start)) / (end - start || 1);
  const drawn = drawing("svg", { class: "attempts", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    drawing("rect", { class: "gap", x: 0, y: 6, width: WIDTH, height: 10 }));
  attempts.forEach((attempt, at) => {
    const from = seconds(attempt.startTime);
    if (from === null) return;
    const to = seconds(attempt.completionTime) ?? seconds(attempts[at + 1]?.startTime ?? null) ?? end;
    drawn.append(drawing("rect", { class: attempt.phase.toLowerCase(), x: place(from), y: 6, width: Math.max(2, place(to) - place(from)), height: 10 },
      drawing("title", {}, describe(attempt))));
  });
  for (const session of sessions) {
    const time = seconds(session.time);
    if (time !== null && time >= start && time <= end) {
      drawn.append(drawing("rect", { class: "profile", x: place(time), y: 1, width: 2, height: 20 }, drawing("title", {}, `profile ${session.session}`)));
    }
  }
  return element("div", { className: "timeline" }, drawn as unknown as Node);
}

function attemptList(attempts: Attempt[]): HTMLElement {
  const items = attempts.map((attempt) => element("li", {},
    element("span", { className: `sign ${attempt.phase.toLowerCase()}`, ariaHidden: "true" }, SIGNS[attempt.phase] ?? "·"), describe(attempt)));
  if (items.length <= FEW) return element("ul", { className: "attempt-list" }, ...items);
  return element("details", {}, element("summary", {}, counted(items.length, "attempt")), element("ul", { className: "attempt-list" }, ...items));
}

function describe({ attempt, startTime, completionTime, phase: name, reason, message }: Attempt): string {
  const length = startTime && completionTime ? duration((Date.parse(completionTime) - Date.parse(startTime)) / 1000) : null;
  const cause = [reason, message].filter(Boolean).join(" – ");
  return [`Attempt ${attempt ?? "?"}`, moment(startTime), length, cause ? `${name}: ${cause}` : name].filter(Boolean).join(" · ");
}
