// One line with the time of a run by cause.
import { causeColor, causeName, type Partition } from "./causes.js";
import { drawing, percent } from "./elements.js";

const HATCH = "var(--line)";

/** Return a bar whose parts are the whole of a run's time; its text is for screen readers and pointers. */
export function goodputBar({ total, parts }: Partition): SVGSVGElement {
  const bar = drawing("svg", { class: "goodput-bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img" });
  const text = parts.map(([cause, seconds]) => `${causeName(cause)} ${percent(seconds / total)}`).join(", ");
  bar.append(drawing("title", {}, text), drawing("rect", { x: 0, y: 0, width: 100, height: 10, fill: HATCH }));
  let start = 0;
  for (const [cause, seconds] of parts) {
    const width = (100 * seconds) / total;
    bar.append(drawing("rect", { x: start, y: 0, width, height: 10, fill: causeColor(cause) }));
    start += width;
  }
  return bar;
}

/** Return the partition of a run of which only the productive share is known. */
export const partitionOfShare = (share: number): Partition => ({ total: 1, parts: [["productive", share]] });
