// Moments of a run that stand on its charts: restarts and profiles.
import type { Metrics, RunDocument } from "./api.js";

export interface Mark { kind: "restart" | "profile"; time: number; step: number | null; text: string }

/** Return the marks of a run; `steps` says which step ran at which time. */
export function marksOf({ attempts, sessions }: RunDocument, steps: Metrics["steps"]): Mark[] {
  const seconds = (time: string | null) => (time ? Date.parse(time) / 1000 : null);
  const marks: Mark[] = [];
  attempts.slice(1).forEach((attempt, at) => {
    const time = seconds(attempt.startTime), cause = attempts[at]?.reason ?? attempts[at]?.phase;
    if (time !== null) marks.push({ kind: "restart", time, step: stepAfter(steps, time), text: `restart: ${cause ?? "unknown cause"}` });
  });
  for (const session of sessions) {
    const time = seconds(session.time);
    if (time !== null) marks.push({ kind: "profile", time, step: session.step ?? stepAfter(steps, time), text: `profile ${session.session}` });
  }
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
