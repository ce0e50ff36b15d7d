// The phases of a step as stacked bars, one for each host.
import { drawing, duration, element } from "./elements.js";

// Okabe and Ito with shades, in the order of a step: apart for all kinds of colour vision; the titles have the numbers.
const PHASES: Record<string, [name: string, color: string]> = {
  input: ["input", "#e69f00"],
  host: ["host code", "#d55e00"],
  callback: ["callback", "#cc79a7"],
  collection: ["garbage collection", "#8e5bb5"],
  compilation: ["compilation", "#9e3c00"],
  checkpoint: ["checkpoint", "#c9b400"],
  transfer: ["transfer", "#7fb8de"],
  compute: ["device compute", "#0b8a62"],
  collective: ["waiting in collectives", "#3f8fc4"],
  idle: ["not explained", "#8a94a0"],
};
const ORDER = Object.keys(PHASES);

/** Seconds of a step by phase, of one host or the mean of several. */
export interface PhaseRow { title: string; phases: Record<string, number>; isSlow: boolean }

export const phaseName = (phase: string): string => PHASES[phase]?.[0] ?? phase;

/** Return the bars with their legend; all have one scale, and slow hosts are marked. */
export function phaseBars(rows: PhaseRow[]): HTMLElement {
  const longest = Math.max(...rows.map(total)) || 1;
  const phases = ORDER.filter((phase) => rows.some((row) => row.phases[phase]));
  const legend = element("ul", { className: "phase-legend muted" }, ...phases.map((phase) => element("li", {}, swatch(PHASES[phase]![1]), phaseName(phase))));
  const bars = rows.map((row) => element("li", { className: row.isSlow ? "slow-host" : "" },
    element("span", { className: "host" }, row.isSlow ? "▲ " : "", row.title), bar(row, longest),
    element("span", { className: "muted" }, duration(total(row)))));
  return element("div", {}, legend, element("ul", { className: "phase-bars" }, ...bars));
}

const total = ({ phases }: PhaseRow): number => Object.values(phases).reduce((sum, each) => sum + each, 0);

function bar({ phases, title }: PhaseRow, longest: number): Node {
  const known = ORDER.filter((phase) => phases[phase]);
  const text = known.map((phase) => `${phaseName(phase)} ${duration(phases[phase]!)}`).join(", ");
  const drawn = drawing("svg", { class: "phase-bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${text}` },
    drawing("title", {}, text));
  let start = 0;
  for (const phase of known) {
    const width = (100 * phases[phase]!) / longest;
    drawn.append(drawing("rect", { x: start, y: 0, width, height: 10, fill: PHASES[phase]![1] }));
    start += width;
  }
  return drawn as unknown as Node;
}

function swatch(color: string): HTMLElement {
  const made = element("span", { className: "swatch", ariaHidden: "true" });
  made.style.background = color;
  return made;
}
