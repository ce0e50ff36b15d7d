// The diagnosis of one session, or the command that makes it.
import { get, type Session, type SessionDiagnosis } from "./api.js";
import { command } from "./copying.js";
import { element, problem } from "./elements.js";
import { findingList, findingPicture } from "./findings.js";

/** Return the findings and the picture of a session, which are read at once; also if it is not known whether it has a diagnosis. */
export function sessionDiagnosis(base: string, { session, diagnosed }: Session, diagnose: string): HTMLElement {
  const box = element("div", { className: "diagnosis" });
  if (diagnosed === false) {
    box.append(element("p", { className: "muted" }, "Nobody has diagnosed this session yet. The command is"), command(diagnose));
    return box;
  }
  box.append(element("p", { className: "muted" }, "Reading the diagnosis …"));
  get<SessionDiagnosis>(`${base}/sessions/${encodeURIComponent(session)}/diagnosis`).then(
    (document) => box.replaceChildren(findingList(document.diagnosis.findings), findingPicture(document)),
    (error: unknown) => box.replaceChildren(problem((error as Error).message), command(diagnose)));
  return box;
}
