// The schedules that apply to a run: the next capture, the captures of the last day by trigger, and refusals.
import { get } from "./api.js";
import { element, moment, table } from "./elements.js";
import { throttled } from "./live.js";
import { change } from "./url_state.js";

interface Made { name: string; time: string; state: string; trigger?: string; message?: string; bytes?: number }
interface Refusal { reason: string; count: number; lastTime: string; message: string }
interface Schedule {
  name: string; schedule: string; nextCaptureTime: string | null; ready: boolean; message: string; captures: Made[]; refusals: Refusal[];
}

/** Slots and triggers come in minutes, and each reading lists the schedules of the namespace. */
const PAUSE_MS = 30_000;

/** Return a box with the schedules of a run, which is empty without one, and a function that reads them again. */
export function schedulesList(base: string): { box: HTMLElement; refresh: () => void } {
  const box = element("div");

  async function refresh(): Promise<void> {
    let shown: Schedule[];
    try {
      shown = (await get<{ schedules: Schedule[] }>(`${base}/schedules`)).schedules;
    } catch {
      return;  // the profiles are shown without them
    }
    box.replaceChildren(...(shown.length ? [element("h2", {}, "Automatic captures"), ...shown.map(scheduleBox)] : []));
  }
  return { box, refresh: throttled(refresh, PAUSE_MS) };
}

function scheduleBox({ name, schedule, nextCaptureTime, ready, message, captures, refusals }: Schedule): HTMLElement {
  const next = nextCaptureTime ? `next capture ${moment(nextCaptureTime)}` : message;
  const rows = captures.map((each) => [captureLink(each.name), each.trigger ?? "slot", moment(each.time), each.state, each.message ?? ""]).reverse();
  return element("div", { className: "detail" },
    element("p", {}, element("b", {}, name), ` ${schedule}: ${ready ? next : message}`),
    ...(rows.length ? [table(["Capture", "By", "Time", "State", "Reason"], rows)] : [element("p", { className: "muted" }, "No capture of this run in the last 24 hours.")]),
    ...refusals.map((each) => element("p", { className: "muted" }, `Refused ${each.count} by ${each.reason}, last ${moment(each.lastTime)}: ${each.message}`)));
}

function captureLink(name: string): HTMLElement {
  const made = element("button", { type: "button", className: "link" }, name);
  made.addEventListener("click", () => change({ capture: name }));
  return made;
}
