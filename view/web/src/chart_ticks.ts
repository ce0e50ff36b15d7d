// Where the labels of a horizontal axis of times stand, and what they say; pure.
const MINUTE_S = 60, DAY_S = 86400, WEEK_S = 7 * DAY_S;
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY_S, 2 * DAY_S, WEEK_S];

/** Return times of day as exact as the ticks, which are `step` seconds apart, and the date at midnight. */
export function timeLabels(ticks: readonly number[], step: number): string[] {
  return ticks.map((tick) => {
    const text = new Date(1000 * tick).toLocaleString("sv"), date = text.slice(5, 10), time = text.slice(11, 19);
    if (step >= DAY_S || (step >= MINUTE_S && time === "00:00:00")) return date;
    if (step >= MINUTE_S) return time.slice(0, 5);
    return step >= 1 ? time : time.slice(3) + (tick - Math.floor(tick)).toFixed(3).slice(1);
  });
}

/** Return round times relative to the start of a run, at most `most` of them. */
export function relativeTicks(min: number, max: number, origin: number, most: number): number[] {
  const step = STEPS_S.find((each) => (max - min) / each <= most) ?? Math.ceil((max - min) / most / WEEK_S) * WEEK_S;
  const ticks = [];
  for (let tick = origin + Math.ceil((min - origin) / step) * step; tick <= max; tick += step) ticks.push(tick);
  return ticks;
}
