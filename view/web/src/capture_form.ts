// A form for a new profile: the hosts of the run, and the command that captures them.
import type { Host, RunDocument } from "./api.js";
import { command, quoted } from "./copying.js";
import { element, labelled } from "./elements.js";

const ACTIVE = "Active";

/** Return the form, and a function that shows the hosts of a run. */
export function captureForm(): { box: HTMLElement; update: (run: RunDocument) => void } {
  const length = labelled(element("input", { type: "number", min: "0.1", max: "60", step: "any", value: "2" }), { "aria-label": "Duration in seconds" });
  const hosts = element("div", { className: "pick-hosts" }), result = element("div", { ariaLive: "polite" });
  const box = element("div", { className: "capture" },
    element("p", {}, element("label", { className: "check" }, "Duration", length, "s")), hosts, result);
  let run: RunDocument | null = null, ranks = "";

  function draw(): void {
    if (!run) return;
    const boxes = [...hosts.querySelectorAll<HTMLInputElement>("input")];
    const chosen = boxes.filter(({ checked }) => checked).map(({ value }) => Number(value));
    if (!chosen.length) return result.replaceChildren(element("p", { className: "muted" }, "Choose at least one host."));
    const target = run.run.workloadRef?.["kind"] && run.run.namespace
      ? `${String(run.run.workloadRef["kind"]).toLowerCase()}/${String(run.run.workloadRef["name"])}` : run.run.runId;
    const words = ["mldiag", "capture", target, ...(run.run.namespace ? ["-n", run.run.namespace] : []),
      ...(chosen.length < boxes.length ? ["--ranks", ranges(chosen)] : []), "--duration", `${Number(length.value) || 2}s`, "--open"];
    result.replaceChildren(element("p", {}, "Run this where you have access to the job; the session then appears above:"),
      command(words.map(quoted).join(" ")));
  }

  function update(changed: RunDocument): void {
    run = changed;
    const active = changed.hosts.filter(({ phase }) => phase === ACTIVE), key = JSON.stringify(active.map(({ rank, host }) => [rank, host]));
    box.hidden = false;
    if (changed.run.phase !== ACTIVE || !active.length) {
      ranks = "";
      hosts.replaceChildren(element("p", { className: "muted" }, "The run is not active: there is nothing to capture."));
      result.replaceChildren();
      length.disabled = true;
      return;
    }
    length.disabled = false;
    if (key !== ranks) hosts.replaceChildren(...active.map(hostBox));
    ranks = key;
    draw();
  }
  box.addEventListener("input", draw);
  return { box, update };
}

function hostBox(host: Host): HTMLElement {
  const place = [`rank ${host.rank}`, host.pod ?? host.host, host.node, host.slice === null ? null : `slice ${host.slice}`];
  return element("label", { className: "check" }, element("input", { type: "checkbox", value: String(host.rank), checked: true }),
    place.filter(Boolean).join(" · "));
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
