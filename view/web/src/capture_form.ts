// A form for a new profile: the hosts of the run, a button that captures them, and the command that does the same.
import { post, type Capture, type Host, type RunDocument } from "./api.js";
import { command, quoted } from "./copying.js";
import { button, element, labelled, problem } from "./elements.js";

const ACTIVE = "Active";
const DEFAULT_S = 2;

/**
 * Return the form, and a function that shows the hosts of a run.
 * @param onStart - Called with the name of a capture that was started.
 */
export function captureForm(base: string, onStart: (name: string) => void): { box: HTMLElement; update: (run: RunDocument) => void } {
  const length = labelled(element("input", { type: "number", min: "0.1", max: "60", step: "any", value: String(DEFAULT_S) }), { "aria-label": "Duration in seconds" });
  const hosts = labelled(element("div", { className: "pick-hosts" }), { role: "group", "aria-label": "Hosts" });
  const state = element("div", { ariaLive: "polite" }), shown = element("div", { ariaLive: "polite" });
  const start = button("Capture", () => void capture(), { className: "primary" });
  const box = element("div", { className: "capture" },
    element("p", {}, element("label", { className: "check" }, "Duration", length, "s")), hosts, element("p", {}, start), state, shown);
  let run: RunDocument | null = null, ranks = "";

  const boxes = (): HTMLInputElement[] => [...hosts.querySelectorAll<HTMLInputElement>("input")];
  const chosen = (): number[] => boxes().filter(({ checked }) => checked).map(({ value }) => Number(value));
  const seconds = (): number => (Number(length.value) > 0 ? Number(length.value) : DEFAULT_S);

  function draw(): void {
    if (!run) return;
    const isActive = boxes().length > 0;
    start.hidden = !run.canCapture || !isActive;
    start.disabled = !chosen().length;
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
    start.disabled = true;
    state.replaceChildren(element("p", {}, "Creating the capture …"));
    try {
      const order = { ranks: chosen(), durationMilliseconds: Math.max(1, Math.round(1000 * seconds())) };
      const made = await post<Capture>(`${base}/captures`, order);
      state.replaceChildren();
      onStart(made.name);
    } catch (error) {
      state.replaceChildren(problem((error as Error).message));
    }
    draw();
  }

  function update(changed: RunDocument): void {
    run = changed;
    const active = changed.run.phase === ACTIVE ? changed.hosts.filter(({ phase }) => phase === ACTIVE) : [];
    const key = JSON.stringify(active.map(({ rank, host }) => [rank, host]));
    length.disabled = !active.length;
    if (!active.length) hosts.replaceChildren(element("p", { className: "muted" }, noHosts(changed)));
    else if (key !== ranks) hosts.replaceChildren(...active.map(hostBox));
    ranks = active.length ? key : "";
    draw();
  }
  box.addEventListener("input", draw);
  return { box, update };
}

function noHosts({ run }: RunDocument): string {
  if (run.phase !== ACTIVE) return "The run is not active: there is nothing to capture.";
  return "No active host is known, or you may not list the pods of this namespace.";
}

function hostBox(host: Host): HTMLElement {
  const place = [`rank ${host.rank}`, host.pod ?? host.host, host.node, host.slice === null ? null : `slice ${host.slice}`];
  return element("label", { className: "check" }, element("input", { type: "checkbox", value: String(host.rank), checked: true }),
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
