// Moments of a run that stand on its charts: restarts, profiles with what their diagnosis found, and texts.
import type { Metrics, RunDocument } from "./api.js";

export interface Mark { kind: "restart" | "profile" | "text"; time: number; step: number | null; text: string }

const SKEW_S = 1;  // a recorder may start a moment before its run

/** Return the marks of a run: `starts` and `sessions` of its metrics are exact, `steps` are those of heartbeats. */
export function marksOf({ attempts, sessions, findings }: RunDocument, { steps, starts, sessions: begun, texts }: Metrics): Mark[] {
  const seconds = (time: string | null) => (time ? Date.parse(time) / 1000 : null);
  const marks: Mark[] = [];
  attempts.slice(1).forEach((attempt, at) => {
    const time = seconds(attempt.startTime), cause = attempts[at]?.reason ?? attempts[at]?.phase;
    const until = seconds(attempts[at + 2]?.startTime ?? null) ?? Infinity;
    const first = time === null ? undefined : starts.find(({ t }) => t >= time - SKEW_S && t < until);
    if (time !== null) marks.push({ kind: "restart", time, step: first?.step ?? stepAfter(steps, time), text: `restart: ${cause ?? "unknown cause"}` });
  });
  for (const session of sessions) {
    const first = findings.find((finding) => finding.session === session.session && finding.severity !== "info");
    const own = begun[session.session], time = own?.t ?? seconds(session.time);
    if (time !== null) marks.push({ kind: "profile", time, step: session.step ?? own?.step ?? stepAfter(steps, time), text: `profile ${session.session}${first ? `: ${first.message}` : ""}` });
  }
  for (const { t, step, text } of texts) marks.push({ kind: "text", time: t, step: step ?? stepAfter(steps, t), text });
  return marks;
}

function stepAfter({ t, step }: Metrics["steps"], time: number): number | null {
  const at = t.findIndex((each) => each >= time);
  return at < 0 ? null : (step[at] ?? null);
}

/** Return the time at which a step ran, or null where no heartbeat says it. */
export function timeOfStep({ t, step }: Metrics["steps"], wanted: number): number | null {
  const at = step.findIndex((each) => each >= wanted);
  return at < 0 ? (t.at(-1) ?? null) : (t[at] ?? null);
}
