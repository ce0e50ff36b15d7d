// The partition of a run's time over time: one bar for each equal part, and its numbers.
import type { OverTime } from "./api.js";
import { causeColor, causeName, partitionOf } from "./causes.js";
import { button, drawing, duration, element, moment, percent } from "./elements.js";
import { showNumbers } from "./numbers_dialog.js";

const HEIGHT = 100;

/** Return the drawing with a line of text for the part under the pointer. */
export function goodputOverTime(data: OverTime): HTMLElement {
  const count = data.productiveSeconds.length, length = secondsOf(data) / count;
  const parts = data.productiveSeconds.map((productiveSeconds, at) => partitionOf({
    elapsedSeconds: length, productiveSeconds, unproductiveSeconds: Object.fromEntries(Object.entries(data.unproductiveSeconds).map(([cause, each]) => [cause, each[at] ?? 0])),
  }));
  const drawn = drawing("svg", { class: "over-time", viewBox: `0 0 ${count} ${HEIGHT}`, preserveAspectRatio: "none", "shape-rendering": "crispEdges", "aria-hidden": "true" });
  parts.forEach((partition, at) => {
    let top = HEIGHT;
    for (const [cause, seconds] of partition.parts) {
      const height = (HEIGHT * seconds) / length;
      top -= height;
      drawn.append(drawing("rect", { x: at, y: top, width: 1.02, height, fill: causeColor(cause) }));
    }
  });
  const text = element("p", { className: "muted readout" }, hint(data));
  const start = (at: number) => moment(new Date(Date.parse(data.startTime) + 1000 * at * length).toISOString());
  drawn.addEventListener("pointermove", (event) => {
    const { left, width } = drawn.getBoundingClientRect();
    const at = Math.min(count - 1, Math.max(0, Math.floor((count * (event.clientX - left)) / width)));
    const shares = parts[at]!.parts.map(([cause, seconds]) => `${causeName(cause)} ${percent(seconds / length)}`);
    text.textContent = `${start(at)}, ${duration(length)}: ${shares.join(", ")}`;
  });
  drawn.addEventListener("pointerleave", () => { text.textContent = hint(data); });
  const causes = ["productive", ...Object.keys(data.unproductiveSeconds)];
  const numbers = button("Numbers", () => showNumbers("Goodput over time", ["start", ...causes.map((cause) => `${causeName(cause)} (s)`)],
    parts.map(({ parts: each }, at) => [start(at), ...causes.map((cause) => (each.find(([name]) => name === cause)?.[1] ?? 0).toFixed(1))])));
  const [first, last] = [start(0), start(count)];
  return element("div", {}, drawn as unknown as Node, element("div", { className: "ends muted" }, element("span", {}, first), element("span", {}, last)),
    element("div", { className: "tools" }, text, numbers));
}

function hint(data: OverTime): string {
  return `Each bar is ${duration(secondsOf(data) / data.productiveSeconds.length)}.`;
}

function secondsOf({ startTime, endTime }: OverTime): number {
  return (Date.parse(endTime) - Date.parse(startTime)) / 1000;
}
