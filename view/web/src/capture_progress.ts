// The progress of a capture that the URL names, until it ends.
import { get, post, RequestFailed, type Capture } from "./api.js";
import { button, counted, element, problem } from "./elements.js";
import { change, changed, parameter } from "./url_state.js";

const PAUSE_MS = 1000;
const NO_OPERATOR_S = 30;

/** Return a box with the capture of the URL, and a function that reads the URL again. */
export function captureProgress(base: string): { box: HTMLElement; redraw: () => void } {
  const text = element("div", { role: "status" }), actions = element("p");
  const box = element("div", { className: "detail", hidden: true }, text, actions);
  const cancel = button("Cancel", () => void stop());
  let name = "", since = 0;

  function show(capture: Capture): void {
    text.replaceChildren(element("strong", {}, capture.name), ` · ${summary(capture, (Date.now() - since) / 1000)}`);
    if (!capture.isComplete) return actions.replaceChildren(cancel);
    const link = element("a", { href: changed({ capture: "", session: capture.session ?? "" }) }, `Session ${capture.session}`);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      change({ capture: "", session: capture.session ?? "" });
    });
    actions.replaceChildren(...(capture.session ? [link, " "] : []), button("Close", () => change({ capture: "" })));
  }

  /** Read the capture until it ends, or the URL names another one. */
  async function follow(wanted: string): Promise<void> {
    while (name === wanted) {
      let isOver = false;
      try {
        const capture = await get<Capture>(`${base}/captures/${encodeURIComponent(wanted)}`);
        if (name !== wanted) return;
        show(capture);
        isOver = capture.isComplete;
      } catch (error) {
        text.replaceChildren(problem((error as Error).message));
        isOver = error instanceof RequestFailed && error.status >= 400 && error.status < 500;
        actions.replaceChildren(...(isOver ? [button("Close", () => change({ capture: "" }))] : []));
      }
      if (isOver) return;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async function stop(): Promise<void> {
    cancel.disabled = true;
    try {
      show(await post<Capture>(`${base}/captures/${encodeURIComponent(name)}/cancel`, {}));
    } catch (error) {
      actions.replaceChildren(cancel, problem((error as Error).message));
      cancel.disabled = false;
    }
  }

  function redraw(): void {
    const wanted = parameter("capture");
    box.hidden = !wanted;
    if (wanted === name) return;
    name = wanted;
    since = Date.now();
    cancel.disabled = false;
    text.replaceChildren(wanted ? `${wanted} · reading …` : "");
    actions.replaceChildren();
    if (wanted) void follow(wanted);
  }
  return { box, redraw };
}

function summary(capture: Capture, waited_s: number): string {
  if (!capture.isStarted) {
    return waited_s < NO_OPERATOR_S ? "waiting for the operator"
      : `no operator has taken it in ${NO_OPERATOR_S} s; check that the operator runs, or cancel it`;
  }
  const targets = capture.total ? `${capture.captured} of ${counted(capture.total, "host")} captured` : null;
  return [capture.phase, targets, capture.isComplete ? capture.reason : null, capture.message].filter(Boolean).join(" · ");
}
