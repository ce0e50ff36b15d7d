// The profiles of a run: sessions with their hosts, XProf, and a form for a new one with its progress.
import type { RunDocument, Session } from "./api.js";
import { captureForm } from "./capture_form.js";
import { captureProgress } from "./capture_progress.js";
import { command, quoted } from "./copying.js";
import { bytes, element, moment, table } from "./elements.js";
import type { Part } from "./run_parts.js";
import { schedulesList } from "./schedules_list.js";
import { sessionDiagnosis } from "./session_diagnosis.js";
import { change, parameter } from "./url_state.js";
import { xprofOpener } from "./xprof_opener.js";

const HOSTS = 2;
const FOLDER = "/plugins/profile/";
const VOLUME = "volume://";

/** Return the part with the profiles. */
export function profilesPart(base: string): Part {
  const list = element("div"), schedules = schedulesList(base), progress = captureProgress(base), form = captureForm(base, (name) => change({ capture: name, session: "" }));
  const box = element("section", {}, list, schedules.box, element("h2", {}, "Capture now"), progress.box, form.box);
  const openers = new Map<string, HTMLElement>();  // they keep their progress when the list is drawn again
  const diagnoses = new Map<string, HTMLElement>();
  let run: RunDocument | null = null;

  function opener({ session, files }: Session): HTMLElement | null {
    if (!run?.canOpenXprof || !files.length) return null;
    const made = openers.get(session) ?? xprofOpener(base, session);
    openers.set(session, made);
    return made;
  }

  function diagnosis(session: Session): HTMLElement {
    const key = `${session.session} ${session.diagnosed}`, namespace = run?.run.namespace;
    const place = namespace && directoryOf(session).startsWith(VOLUME) ? ` -n ${quoted(namespace)}` : "";
    const made = diagnoses.get(key) ?? sessionDiagnosis(base, session, `mldiag diagnose ${quoted(`${directoryOf(session)}/${session.session}`)}${place}`);
    diagnoses.set(key, made);
    return made;
  }

  function draw(): void {
    progress.redraw();
    if (!run) return;
    const { sessions } = run, wanted = sessions.find(({ session }) => session === parameter("session"));
    const heads = ["Session", "Made by", "Time", "Step", "Size", "Skew", "Targets", "Hosts"];
    const rows = sessions.map((each) => [nameOf(each, each === wanted), each.kind === "capture" ? (each.object ?? "a capture") : "the program",
      moment(each.time), each.step, bytes(each.bytes), each.skewMilliseconds === null ? null : `${each.skewMilliseconds.toFixed(1)} ms`,
      targetsOf(each), hostsOf(each)]);
    list.replaceChildren(sessions.length ? table(heads, rows.reverse()) : element("p", { className: "muted" }, "This run has no profiles yet."),
      ...(wanted ? [detail(wanted, diagnosis(wanted), opener(wanted), run.run.namespace)] : []));
  }
  return { box, update: (changed) => { run = changed; form.update(changed); draw(); schedules.refresh(); }, redraw: draw };
}

function nameOf({ session }: Session, isOpen: boolean): HTMLElement {
  const made = element("button", { type: "button", className: "link" }, session);
  made.setAttribute("aria-expanded", String(isOpen));
  made.addEventListener("click", () => change({ session: isOpen ? "" : session }));
  return made;
}

function hostsOf({ hosts }: Session): string {
  const shown = hosts.slice(0, HOSTS).join(", ");
  return hosts.length > HOSTS ? `${hosts.length}: ${shown}, …` : shown || "–";
}

function targetsOf({ targets }: Session): string | null {
  return targets ? Object.entries(targets).map(([state, count]) => `${count} ${state}`).join(", ") : null;
}

const directoryOf = ({ url }: Session): string => (url.includes(FOLDER) ? url.slice(0, url.lastIndexOf(FOLDER)) : url);

/** Return a session with its diagnosis, its files, and what opens it. */
function detail(shown: Session, diagnosis: HTMLElement, opener: HTMLElement | null, namespace: string | null): HTMLElement {
  const { session, files, url } = shown, directory = directoryOf(shown);
  const commands = directory.startsWith(VOLUME)
    ? [`mldiag profiles download ${quoted(`${directory}/${session}`)}${namespace ? ` -n ${quoted(namespace)}` : ""} --to profiles`,
      "mldiag xprof create --on local profiles --open"]
    : [`mldiag xprof create --on local ${quoted(directory)} --open`];
  const lines = commands.map(command), how = "Open it in XProf; choose the session in the list of runs there:";
  return element("div", { className: "detail" }, element("h2", {}, session), diagnosis, opener,
    opener ? element("details", {}, element("summary", {}, "Command"), ...lines) : element("div", {}, element("p", {}, how), ...lines),
    element("p", { className: "muted" }, url),
    ...(files.length ? [table(["Host", "Size"], files.map((file) => [file.host, bytes(file.bytes)]))] : []));
}
