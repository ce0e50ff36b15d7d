// The page of one run: header, and one part of it at a time.
import { follow, get, RequestFailed, type Files, type RunDocument } from "./api.js";
import { configsPart } from "./configs_part.js";
import { curvesPart } from "./curves_part.js";
import { element, labelled, problem } from "./elements.js";
import { goodputPart } from "./goodput_part.js";
import { hostsPart } from "./hosts_part.js";
import { throttled } from "./live.js";
import { liveDocument } from "./live_document.js";
import { profilesPart } from "./profiles_part.js";
import { runFindings } from "./run_findings.js";
import { runHeader } from "./run_header.js";
import type { Part } from "./run_parts.js";
import { textsPart } from "./texts_part.js";
import { change, changed, onChange, parameter } from "./url_state.js";

const PAUSE_MS = 1000;
const GONE = 404;
const PARTS: Record<string, [title: string, make: (base: string) => Part]> = {
  curves: ["Metrics", (base) => curvesPart(base, "metrics")],
  system: ["System", (base) => curvesPart(base, "system")],
  texts: ["Texts", textsPart],
  goodput: ["Goodput", goodputPart],
  hosts: ["Hosts", hostsPart],
  profiles: ["Profiles", profilesPart],
  configs: ["Configuration", configsPart],
};
const OF_FILES = ["", "curves", "system", "texts"];

function omittedNote({ omitted }: RunDocument): Node[] {
  const parts = Object.entries(omitted).filter(([, count]) => count).map(([name, count]) => `${count} ${name}`);
  return parts.length ? [element("p", { className: "muted" }, `Too many to list: ${parts.join(", ")} are not shown.`)] : [];
}

/** Show the run of an address. */
export function showRun(main: HTMLElement, path: string): void {
  const base = `/api${path}`;
  const state = element("div", { className: "state" }, element("p", { className: "muted" }, "Reading the run …")), head = element("div", { className: "run-top" }, element("h1", {}, "Run"));
  const links = Object.entries(PARTS).map(([name, [title]]) => {
    const link = element("a", {}, title);
    link.dataset["part"] = name;
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      change({ part: name === "curves" ? "" : name, metric: "", from: "", to: "", q: "", by: "", show: "", fold: "" });
    });
    return link;
  });
  const tabs = labelled(element("nav", { className: "tabs" }, ...links), { "aria-label": "Parts of the run" });
  const content = element("div", { className: "part" });
  const parts = new Map<string, Part>(), shownCurves = new Map<Part, Promise<string>>();
  let run: RunDocument | null = null, newestCurves = "", obstacle: string | null = "Reading the files …";
  main.replaceChildren(state, head, tabs, content);

  function part(): Part {
    const name = PARTS[parameter("part")] ? parameter("part") : "curves";
    for (const link of links) {
      link.href = changed({ part: link.dataset["part"] === "curves" ? "" : link.dataset["part"]!, metric: "", from: "", to: "", q: "", by: "", show: "", fold: "" });
      if (link.dataset["part"] === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const known = parts.get(name) ?? PARTS[name]![1](base);
    parts.set(name, known);
    return known;
  }

  /** Put the part that the URL names on the page; return whether it was there before. */
  function place(): boolean {
    const shown = part();
    if (!run) return false;
    const isShown = obstacle === null || !OF_FILES.includes(parameter("part"));
    const box = isShown ? shown.box : element("p", { className: "muted" }, obstacle!);
    if (content.firstElementChild === box) return true;
    content.replaceChildren(box);
    shown.update(run);
    if (obstacle === null && shown.refresh) shownCurves.set(shown, shown.refresh());
    return false;
  }

  /** Look whether the files can be read from here; only then, parts request what needs them. */
  async function findFiles(): Promise<void> {
    try {
      obstacle = (await get<Files>(`${base}/files`)).problem;
    } catch {
      obstacle = null;  // the parts say what fails
    }
    const shown = part();
    if (content.firstElementChild !== shown.box) place();
    else if (obstacle === null && shown.refresh) shownCurves.set(shown, shown.refresh());
  }

  function show(loaded: RunDocument): void {
    if (!run) void findFiles();
    run = loaded;
    document.title = run.run.displayName ?? run.run.runId;
    state.replaceChildren();
    tabs.hidden = false;
    head.replaceChildren(...runHeader(run), ...runFindings(run), ...omittedNote(run));
    if (place()) part().update(run);
  }

  function fail(error: Error): void {
    const isGone = error instanceof RequestFailed && error.status === GONE;
    const text = run && isGone ? "This run has been deleted. The page shows what it had before." : error.message;
    state.replaceChildren(problem(text), element("a", { href: "/" }, "All runs"));
    if (run) return;
    tabs.hidden = true;
    content.replaceChildren();
  }

  /** Read the curves of the part on the screen, unless it has those of the last event. */
  async function refresh(): Promise<void> {
    const shown = part();
    if (content.firstElementChild !== shown.box || !shown.refresh || !newestCurves || obstacle !== null) return;
    if (await shownCurves.get(shown) === newestCurves) return;
    shownCurves.set(shown, shown.refresh());
    await shownCurves.get(shown);
  }
  const page = liveDocument(base, PAUSE_MS, show, fail), refreshSoon = throttled(refresh, PAUSE_MS);
  onChange(() => { if (place()) part().redraw?.(); });
  follow(`${base}/live`, {
    run: page.changed,
    curves: (event) => {
      newestCurves = JSON.parse(event).revision;
      refreshSoon();
    },
    progress: (event) => part().progress?.(JSON.parse(event).percent),
  }, (connection) => {
    if (connection === "reconnecting") page.reload();
  });
  page.reload();
}
