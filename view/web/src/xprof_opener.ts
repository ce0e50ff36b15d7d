// A button that opens a session in XProf: on this machine, or behind the server of a deployed page.
import { post } from "./api.js";
import { button, element, problem } from "./elements.js";

const TICK_MS = 1000;
const SHARED = " · this link shows the session to everybody who may see the run";
const LOCAL = " · if this page comes through an SSH tunnel, forward that port too";

/** Return the button with its progress, its link and its errors. */
export function xprofOpener(base: string, session: string): HTMLElement {
  const state = element("span", { role: "status" });
  const open = button("Open in XProf", () => void start(), { className: "primary" });
  const box = element("div", { className: "opener" }, open, " ", state);

  async function start(): Promise<void> {
    const begun = Date.now();
    const show = (): void => state.replaceChildren(`Starting XProf … ${Math.round((Date.now() - begun) / 1000)} s`);
    open.disabled = true;
    box.querySelector(".problem")?.remove();
    show();
    const timer = setInterval(show, TICK_MS);
    try {
      let url: string | null = null;
      while (!url) ({ url } = await post<{ url: string | null }>(`${base}/sessions/${encodeURIComponent(session)}/xprof`, {}));
      state.replaceChildren(element("a", { href: url, target: "_blank", rel: "noopener" }, "XProf shows it"), url.startsWith("/") ? SHARED : LOCAL);
      window.open(url, "_blank", "noopener");
    } catch (error) {
      state.replaceChildren();
      box.append(problem((error as Error).message));
    } finally {
      clearInterval(timer);
      open.disabled = false;
    }
  }
  return box;
}
