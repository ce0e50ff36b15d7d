"""A rise of a run's step time against its own baseline, robust against noise.

The median of the newest windows is compared with the median of the windows before them. A rise counts from a threshold
on, and only if it is far outside the noise of the baseline, so that a noisy run needs a larger one.
"""

from array import array
from statistics import median
from typing import Final

RECENT: Final = 9
"""Windows that are compared. A disturbance of fewer than half of them does not move their median."""
BASELINE: Final = 180
"""Windows with which they are compared: half an hour of windows of 10 s. A level that lasts longer is the usual one."""
FEWEST: Final = 20
"""Windows of the baseline before which nothing is a rise."""
_DEVIATIONS: Final = 5.0
"""Standard errors of the newest median that are noise."""
_MAD_TO_SIGMA: Final = 1.4826
_MEDIAN_ERROR: Final = 1.2533
"""Standard error of a median, by that of a mean."""


class StepTimeBaseline:
    """The step times of one run in windows, the newest last.

    Example:
        baseline = StepTimeBaseline()
        for seconds in windows:
            baseline.add(seconds)
        rise = baseline.rise(0.1)
    """

    __slots__ = ("_rises", "_windows")

    def __init__(self) -> None:
        self._windows = array("d")
        self._rises: dict[float, float | None] = {}

    def add(self, seconds: float) -> None:
        """Add the step time of a window that nothing else explains."""
        self._rises.clear()
        self._windows.append(seconds)
        if len(self._windows) > BASELINE + RECENT:
            del self._windows[0]

    def drop(self, windows: int) -> None:
        """Drop the newest windows: something explains them."""
        if windows:
            self._rises.clear()
            del self._windows[-windows:]

    def clear(self) -> None:
        """Start anew: the run has another shape now."""
        self._rises.clear()
        del self._windows[:]

    def rise(self, threshold: float) -> float | None:
        """Return the rise that counts as a share of the usual time, else 0.

        None without enough windows.

        Args:
            threshold: The least rise that counts, for example 0.1.
        """
        if threshold not in self._rises:
            self._rises[threshold] = self._rise(threshold)
        return self._rises[threshold]

    def _rise(self, threshold: float) -> float | None:
        if len(self._windows) < FEWEST + RECENT:
            return None
        before, recent = self._windows[:-RECENT], self._windows[-RECENT:]
        usual = median(before)
        lift = median(recent) - usual
        if lift < threshold * usual:
            return 0.0
        sigma = _MAD_TO_SIGMA * median(abs(each - usual) for each in before)
        noise = _DEVIATIONS * _MEDIAN_ERROR * sigma / RECENT**0.5
        return lift / usual if lift > noise else 0.0
