// Smoothing of the points that a chart shows; pure.

type Points = readonly (number | null | undefined)[];

/**
 * Return an exponential moving average without the pull of its start, as TensorBoard draws it.
 *
 * `weight` is the share of the past, from 0 to below 1. Missing points stay missing.
 */
export function smoothed(values: Points, weight: number): (number | null | undefined)[] {
  let sum = 0, total = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    sum = sum * weight + (1 - weight) * value;
    total = total * weight + (1 - weight);
    return sum / total;
  });
}
