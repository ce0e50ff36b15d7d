// A form for a new profile: the hosts of the run, a button that captures them, and the command that does the same.
import { post, type Capture, type Host, type RequestFailed, type RunDocument } from "./api.js";
import { command, quoted } from "./copying.js";
import { button, element, labelled, problem } from "./elements.js";

const ACTIVE = "Active";
const DEFAULT_S = 2;
const TIMED_OUT = 504;
const IN_DOUBT = "The capture may have been created; try again: the same order creates no second one.";

/**
 * Return the form, and a function that shows the hosts of a run.
 * @param onStart - Called with the name of a capture that was started.
 */
export function captureForm(base: string, onStart: (name: string) => void): { box: HTMLElement; update: (run: RunDocument) => void } {
  const length = labelled(element("input", { type: "number", min: "0.1", max: "60", step: "any", value: String(DEFAULT_S) }), { "aria-label": "Duration in seconds" });
  const duration = element("p", {}, element("label", { className: "check" }, "Duration", length, "s"));
  const hosts = labelled(element("div", { className: "pick-hosts" }), { role: "group", "aria-label": "Hosts" });
  const state = element("div", { ariaLive: "polite" }), shown = element("div", { ariaLive: "polite" });
  const start = button("Capture", () => void capture(), { className: "primary" });
  const box = element("div", { className: "capture" },
    duration, hosts, element("p", {}, start), state, shown);
  const orderIds = new Map<string, string>();  // sent again until there is a response, an order makes one capture
  const left = new Set<number>();  // ranks that the viewer does not want
  let run: RunDocument | null = null, ranks = "", isSending = false;

  const boxes = (): HTMLInputElement[] => [...hosts.querySelectorAll<HTMLInputElement>("input")];
  const chosen = (): number[] => boxes().filter(({ checked }) => checked).map(({ value }) => Number(value));
  const seconds = (): number => (Number(length.value) > 0 ? Number(length.value) : DEFAULT_S);

  function draw(): void {
    if (!run) return;
    const isActive = boxes().length > 0;
    start.hidden = !run.canCapture || !isActive;
    start.disabled = isSending || !chosen().length;
    if (!isActive) return shown.replaceChildren();
    if (!chosen().length) return shown.replaceChildren(element("p", { className: "muted" }, "Choose at least one host."));
    const line = command(commandOf(run, chosen(), boxes().length, seconds()));
    if (run.canCapture) {
      const wasOpen = shown.querySelector("details")?.open ?? false;
      shown.replaceChildren(element("details", { open: wasOpen }, element("summary", {}, "Command"), line));
      return;
    }
    const reason = run.captureObstacle ? [element("p", { className: "muted" }, run.captureObstacle)] : [];
    shown.replaceChildren(...reason, element("p", {}, "Run this where you have access to the job; the session then appears above:"), line);
  }

  async function capture(): Promise<void> {
    isSending = true;
    draw();
    state.replaceChildren(element("p", {}, "Creating the capture …"));
    const order = { ranks: chosen(), durationMilliseconds: Math.max(1, Math.round(1000 * seconds())) };
    const key = JSON.stringify(order), orderId = orderIds.get(key) ?? newOrderId();
    orderIds.set(key, orderId);
    try {
      const made = await post<Capture>(`${base}/captures`, { ...order, orderId });
      orderIds.delete(key);
      state.replaceChildren();
      onStart(made.name);
    } catch (error) {
      const { message, status } = error as RequestFailed;
      state.replaceChildren(problem([0, TIMED_OUT].includes(status) ? `${message} ${IN_DOUBT}` : message));
    }
    isSending = false;
    draw();
  }

  function update(changed: RunDocument): void {
    run = changed;
    const active = changed.run.phase === ACTIVE ? changed.hosts.filter(({ phase }) => phase === ACTIVE) : [];
    const key = JSON.stringify(active.map(({ rank, host }) => [rank, host]));
    duration.hidden = !active.length;
    if (!active.length) hosts.replaceChildren(element("p", { className: "muted" }, noHosts(changed)));
    else if (key !== ranks) hosts.replaceChildren(...active.map((host) => hostBox(host, !left.has(host.rank))));
    ranks = active.length ? key : "";
    draw();
  }
  hosts.addEventListener("input", () => boxes().forEach(({ checked, value }) => left[checked ? "delete" : "add"](Number(value))));
  box.addEventListener("input", draw);
  return { box, update };
}

function noHosts({ run }: RunDocument): string {
  if (run.phase !== ACTIVE) return "The run is not active: there is nothing to capture.";
  return "No active host is known, or you may not list the pods of this namespace.";
}

/** Return a name for an order, of 10 hexadecimal digits. */
function newOrderId(): string {
  return [...crypto.getRandomValues(new Uint8Array(5))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function hostBox(host: Host, checked: boolean): HTMLElement {
  const place = [`rank ${host.rank}`, host.pod ?? host.host, host.node, host.slice === null ? null : `slice ${host.slice}`];
  return element("label", { className: "check" }, element("input", { type: "checkbox", value: String(host.rank), checked }),
    place.filter(Boolean).join(" · "));
}

function commandOf({ run }: RunDocument, ranks: number[], known: number, seconds: number): string {
  const kind = run.workloadRef?.["kind"];
  const target = kind && run.namespace ? `${String(kind).toLowerCase()}/${String(run.workloadRef!["name"])}` : run.runId;
  const words = ["mldiag", "capture", target, ...(run.namespace ? ["-n", run.namespace] : []),
    ...(ranks.length < known ? ["--ranks", ranges(ranks)] : []), "--duration", `${seconds}s`, "--open"];
  return words.map(quoted).join(" ");
}

/** Return numbers as ranges: 0,4-7. */
export function ranges(numbers: number[]): string {
  const sorted = [...numbers].sort((one, other) => one - other), parts: [number, number][] = [];
  for (const each of sorted) {
    const last = parts.at(-1);
    if (last && last[1] === each - 1) last[1] = each;
    else parts.push([each, each]);
  }
  return parts.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(",");
}
