// Names and colours of the parts of a run's time, the same on each page.

const OTHER = "OTHER";
// Okabe and Ito with two shades: apart for all kinds of colour vision; the tables beside have the numbers.
const CAUSES: Record<string, [string, string]> = {
  productive: ["productive", "#0b8a62"],
  TPU_INITIALIZATION: ["accelerator initialization", "#7fb8de"],
  TRAINING_PREP: ["training preparation", "#3f8fc4"],
  PROGRAM_STARTUP: ["program start-up", "#0a5c94"],
  DATA_LOADING_SYNC: ["data loading", "#e69f00"],
  UNPRODUCTIVE_CHECKPOINT_SAVE_TIME: ["checkpoint save", "#c9b400"],
  UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME: ["checkpoint restore", "#8a7b00"],
  WASTED_PROGRESS_FROM_DISRUPTION: ["repeated steps", "#d55e00"],
  INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION: ["infrastructure recovery", "#9e3c00"],
  CUSTOM_BADPUT_EVENTS: ["events of the program", "#cc79a7"],
  ELASTIC_SLICE_DOWN: ["slice down", "#8e5bb5"],
  ELASTIC_SCALE_UP: ["slice up", "#b490d0"],
  ELASTIC_REINITIALIZATION: ["elastic reinitialization", "#64408a"],
  [OTHER]: ["other", "#8a94a0"],
};
const ORDER = Object.keys(CAUSES);

/** The time of a run by its cause; the values are the whole of `total`. */
export interface Partition { total: number; parts: [cause: string, seconds: number][] }

export const causeName = (cause: string): string => CAUSES[cause]?.[0] ?? cause.toLowerCase().replaceAll("_", " ");
export const causeColor = (cause: string): string => CAUSES[cause]?.[1] ?? CAUSES[OTHER]![1];

/** Return what took time, productive time first, in an order that is the same for all runs. */
export function partitionOf(account: { elapsed_s: number; productive_s: number; unproductive_s: Record<string, number> }): Partition {
  const parts = Object.entries({ productive: account.productive_s, ...account.unproductive_s }).filter(([, seconds]) => seconds > 0);
  return { total: account.elapsed_s, parts: parts.sort(([one], [other]) => byCause(one, other)) };
}

const place = (cause: string): number => (ORDER.includes(cause) ? ORDER.indexOf(cause) : ORDER.length);
/** Orders causes as the bars do. */
export const byCause = (one: string, other: string): number => place(one) - place(other);
