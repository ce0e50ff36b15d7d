// Requests to the server that serves the page.

export { follow } from "./live.js";

export interface Run {
  source: string; key: string; runId: string; displayName: string | null; runGroup: string | null;
  tags: string[]; notes: string | null;
  namespace: string | null; phase: string; reason: string | null; message: string | null; attempt: number | null;
  hosts: { reporting: number | null }; progress: { step: number | null; stepTimeSeconds: number | null };
  goodput: number | null; independent: boolean; drops: Record<string, number>; complaints: Record<string, number>; creationTime: string | null; startTime: string | null; completionTime: string | null;
  lastHeartbeatTime: string | null; profileSessions: number | null; directory: string;
  storageLocation: string | null; reportedStorage: string | null; workloadRef: Record<string, unknown> | null;
}
export interface Source { name: string; place: string; problem: string | null; runs: number }
export interface RunList { sources: Source[]; runs: Run[] }
export interface Attempt {
  attempt: number | null; startTime: string | null; completionTime: string | null; phase: string;
  reason: string | null; message: string | null;
}
export interface Host {
  rank: number; attempt: number; host: string | null; pod: string | null; node: string | null; slice: number | null; port: number | null;
  phase: string; reason: string | null; message: string | null;
  lastHeartbeatTime: string | null; progress: { step: number | null; stepTimeSeconds: number | null };
}
export interface Session {
  session: string; kind: string; hosts: string[]; bytes: number; time: string | null; step: number | null; url: string;
  files: { host: string; bytes: number }[]; object: string | null; targets: Record<string, number> | null; skewMilliseconds: number | null;
  diagnosed: boolean | null;
}
export interface FindingHost { name: string; rank: number | null; pod: string | null; node: string | null }
export interface Finding {
  code: string; severity: "critical" | "warning" | "info"; message: string; nextStep: string; hosts: FindingHost[]; hostCount: number;
  phase: string | null; operation: string | null; costSeconds: number; costShare: number; evidence: { name: string; value: number; unit: string }[];
}
/** One finding about a run, in its newest session with a diagnosis. */
export interface RunFinding { code: string; severity: Finding["severity"]; message: string; session: string; time: string | null }
export interface Diagnosis { session: string; hosts: number; steps: number; stepSeconds: number | null; findings: Finding[] }
/** Seconds of a step by phase, and seconds until the first collective of each host in each step. */
export interface SessionDiagnosis {
  diagnosis: Diagnosis; hosts: { name: string; phases: Record<string, number>; isSlow: boolean }[]; arrivals: { steps: number[]; hosts: string[]; rows: number[][] };
}
export interface RunDocument {
  run: Run; attempts: Attempt[]; hosts: Host[]; sessions: Session[]; findings: RunFinding[]; configs: Record<string, unknown>;
  canCapture: boolean; captureObstacle: string | null; canOpenXprof: boolean;
  /** How many are not listed. */
  omitted: Record<"attempts" | "hosts" | "sessions", number>;
}
export interface Capture {
  name: string; phase: string | null; isStarted: boolean; isComplete: boolean; reason: string | null; message: string | null;
  captured: number; total: number; session: string | null;
}
/** A number; `NaN`, `Infinity` or `-Infinity` where it is not finite. */
export type Value = number | string;
export interface Progress { readBytes: number; totalBytes: number; revision: number; leftOut: number; longNames: number; badLines: number; complete: boolean }
/** `steps` and `times` are the first and the last one. */
export interface Metric {
  metric: string; unit: string; count: number; ranks: number; devices: number; lastValue: Value | null;
  steps: [number, number] | null; times: [number, number] | null;
}
/** `omitted` metrics are not listed; a search finds them. */
/** `starts` are the first steps of processes, `sessions` the starts of profiles. */
export interface Metrics {
  metrics: Metric[]; omitted: number; steps: { t: number[]; step: number[] }; progress: Progress;
  starts: { t: number; step: number }[]; sessions: Record<string, { t: number; step: number | null }>; texts: { t: number; step: number | null; text: string }[];
}
/** Means of each rank in columns of equal time. */
export interface RankColumns { metric: string | null; from: number; to: number; ranks: number[]; rows: (number | null)[][] }
export interface Curve {
  metric: string; unit: string; labels: Record<string, string>; attempt: number; rank: number | null; device: number | null;
  x: number[]; mean: number[]; low?: number[]; high?: number[];
  /** Buckets with values that are not finite, and how many of each kind. */
  nonfinite?: { x: number[]; nan: number[]; plus: number[]; minus: number[] };
  /** Exact numbers of the whole window. */
  summary: {
    count: number; nonfinite: { nan: number; plus: number; minus: number }; lowest: number | null; highest: number | null; average: number | null;
    last: { x: number; value: Value } | null;
  };
}
/** Points as they were recorded; `isCut` if there are more. */
export interface Points { columns: string[]; rows: (number | string | null)[][]; isCut: boolean }
export interface Curves { axis: string; from: number; to: number; curves: Curve[]; omitted: number; progress: Progress }
export interface Breakdown {
  startTime: string; endTime: string; elapsedSeconds: number; productiveSeconds: number; goodput: number | null; unproductiveSeconds: Record<string, number>;
  windowSeconds: number | null;
}
export interface Disruption { lostTime: string; cause: string; stepsLost: number; wastedSeconds: number; recovery: { totalSeconds: number }; message: string }
export interface GoodputAttempt { number: number; firstStep: number | null; lastStep: number | null; stretch: Breakdown; endedBy: string | null }
/** Seconds in equal parts of the time between `startTime` and `endTime`. */
export interface OverTime { startTime: string; endTime: string; productiveSeconds: number[]; unproductiveSeconds: Record<string, number[]> }
export interface GoodputReport {
  cumulative: Breakdown; windows: Breakdown[]; attempts: GoodputAttempt[]; disruptions: Disruption[];
  steps: { medianSeconds: number | null; idealSeconds: number | null } | null;
}
/**
 * `figures` are those of reliability and cost, with their names; `alarm` needs attention now. `ofCluster` if it is the account of the
 * MLRun; `problem` is then the reason why the files gave none.
 */
export interface Goodput { report: GoodputReport | null; overTime: OverTime | null; figures?: [name: string, text: string][]; alarm?: string; ofCluster?: boolean; problem?: string | null }
/** `problem` is the reason why the files of a run cannot be read from here. */
export interface Files { problem: string | null }

const ORDER_MS = 75_000;  // longer than the server needs for a response
// A change of the network ends requests: they are sent again, as a repeated order has the effect of one.
const PAUSES_MS = [100, 500, 2000];

/** A request that failed, with a sentence for people; `status` is 0 if the server of this page did not respond. */
export class RequestFailed extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

class ConnectionLost extends RequestFailed {
  constructor() { super(0, "The server does not respond. Start it again; this page reconnects."); }
}

export interface Revised<T> { document: T; revision: string }

/**
 * Return a document of the server. While the server does not respond, the request is sent again: the header of the page says so then.
 * Throws `RequestFailed` if the server refuses it, or `AbortError` of `signal`.
 */
export const get = async <T>(path: string, signal: AbortSignal | null = null): Promise<T> => (await request<T>(path, { signal, isPatient: true })).document;

/** Return a document with its revision, which events name. Throws `RequestFailed`, also if the server does not respond. */
export const read = <T>(path: string): Promise<Revised<T>> => request<T>(path, { signal: null });

/** Send an order to the server and return its document. Throws `RequestFailed`. */
export async function post<T>(path: string, body: unknown): Promise<T> {
  const aborter = new AbortController(), timer = setTimeout(() => aborter.abort(), ORDER_MS);
  try {
    return (await request<T>(path, { method: "POST", body: JSON.stringify(body), signal: aborter.signal })).document;
  } catch (error) {
    throw aborter.signal.aborted ? new RequestFailed(0, `The server has not responded within ${ORDER_MS / 1000} s.`) : error;
  } finally {
    clearTimeout(timer);
  }
}

interface Options extends RequestInit { signal: AbortSignal | null }

/** Send a request, and send it again while its connection is lost: a few times, or as long as it takes. */
async function request<T>(path: string, { isPatient = false, ...options }: Options & { isPatient?: boolean }): Promise<Revised<T>> {
  for (let lost = 0; ; lost += 1) {
    try {
      return await requestOnce(path, options);
    } catch (error) {
      if (!(error instanceof ConnectionLost) || (!isPatient && lost >= PAUSES_MS.length)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSES_MS[lost] ?? PAUSES_MS.at(-1)));
  }
}

async function requestOnce<T>(path: string, options: Options): Promise<Revised<T>> {
  let response: Response, text: string;
  try {
    response = await fetch(path, { ...options, headers: { Accept: "application/json", ...(options.body ? { "Content-Type": "application/json" } : {}) } });
    text = await response.text();
  } catch (error) {
    throw options.signal?.aborted ? error : new ConnectionLost();
  }
  try {
    const document = JSON.parse(text);
    if (response.ok) return { document: document as T, revision: response.headers.get("ETag")?.match(/[0-9a-f]+/)?.[0] ?? "" };
    throw new RequestFailed(response.status, String(document.detail ?? response.statusText));
  } catch (error) {
    if (error instanceof RequestFailed) throw error;
    throw new RequestFailed(0, `The answer is incomplete, or another program answers at this address (HTTP ${response.status}). Reload the page.`);
  }
}
