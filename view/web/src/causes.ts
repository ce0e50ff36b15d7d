// Names and colours of the parts of a run's time: those of the goodput report, the same on each page.
import document from "./causes.json";

const OTHER = "OTHER", CUSTOM = "CUSTOM_BADPUT_EVENTS.";
const CAUSES = new Map(document.causes.map((each) => [each.cause, each]));
const ORDER = [...CAUSES.keys()];

/** The time of a run by its cause; the values are the whole of `total`. */
export interface Partition { total: number; parts: [cause: string, seconds: number][] }

/** Return the name of a cause, such as `custom: eval` for an event of the program. */
export function causeName(cause: string): string {
  if (cause.startsWith(CUSTOM)) return `custom: ${cause.slice(CUSTOM.length).toLowerCase()}`;
  return CAUSES.get(cause)?.name ?? cause.toLowerCase().replaceAll("_", " ");
}

/** Return the colour of a cause; events of the program share some by the bytes of their names. */
export function causeColor(cause: string): string {
  const bytes = new TextEncoder().encode(cause).reduce((sum, byte) => sum + byte, 0);
  const { light, dark } = CAUSES.get(cause) ?? (cause.startsWith(CUSTOM) ? document.custom[bytes % document.custom.length] : CAUSES.get(OTHER))!;
  return `light-dark(${light}, ${dark})`;
}

/** Return what took time, productive time first, in an order that is the same for all runs. */
export function partitionOf(account: { elapsedSeconds: number; productiveSeconds: number; unproductiveSeconds: Record<string, number> }): Partition {
  const parts = Object.entries({ productive: account.productiveSeconds, ...account.unproductiveSeconds }).filter(([, seconds]) => seconds > 0);
  return { total: account.elapsedSeconds, parts: parts.sort(([one], [other]) => byCause(one, other)) };
}

const place = (cause: string): number => (ORDER.includes(cause) ? ORDER.indexOf(cause) : ORDER.length);
/** Orders causes as the bars do. */
export const byCause = (one: string, other: string): number => place(one) - place(other);
