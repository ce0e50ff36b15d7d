// The texts that the program of a run has recorded, the newest first.
import { get, type Metrics } from "./api.js";
import { counted, element, moment, problem, table } from "./elements.js";
import { stateOf, type Part } from "./run_parts.js";

interface Texts extends Pick<Metrics, "progress"> {
  total: number; newest: { time: string | null; name: string; text: string; step: number | null; rank: number }[];
}

/** Return the part with the texts. */
export function textsPart(base: string): Part {
  const box = element("section", {}, element("p", { className: "muted" }, "Reading texts …"));

  function draw({ total, newest, progress }: Texts): void {
    const rows = newest.map((row) => [moment(row.time), String(row.rank), row.step === null ? "" : String(row.step), row.name, row.text]).reverse();
    const count = progress.complete ? `${newest.length} of ${counted(total, "text")}` : "The run is being read …";
    const none = progress.complete && !total ? "This run has recorded no texts. Record some with metrics.record(name, text)." : count;
    box.replaceChildren(element("p", { className: "muted" }, none), ...(rows.length ? [table(["Time", "Rank", "Step", "Name", "Text"], rows)] : []));
  }

  async function refresh(): Promise<string> {
    try {
      const texts = await get<Texts>(`${base}/texts`);
      draw(texts);
      return stateOf({ progress: texts.progress } as Metrics);
    } catch (error) {
      box.replaceChildren(problem((error as Error).message));
      return "";
    }
  }
  return { box, update: () => undefined, refresh };
}
