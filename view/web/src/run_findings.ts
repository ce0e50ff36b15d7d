// The newest findings about a run, with links to their sessions.
import type { RunDocument, RunFinding } from "./api.js";
import { element, moment } from "./elements.js";
import { SEVERITY_SIGNS } from "./findings.js";
import { changed } from "./url_state.js";

const SHOWN = 3;

/** Return what slows the run down; nothing if no problem is known. */
export function runFindings({ findings }: RunDocument): Node[] {
  const problems = findings.filter(({ severity }) => severity !== "info");
  return problems.length ? [element("ul", { className: "findings" }, ...problems.slice(0, SHOWN).map(item))] : [];
}

function item({ severity, message, session, time }: RunFinding): HTMLElement {
  const link = element("a", { href: changed({ part: "profiles", session }) }, `session ${session}`);
  return element("li", { className: severity }, element("span", { className: "sign", ariaHidden: "true" }, SEVERITY_SIGNS[severity]), message,
    element("span", { className: "muted" }, " · ", link, time ? ` of ${moment(time)}` : ""));
}
