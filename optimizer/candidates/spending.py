"""What the samples of a query may take together: of the chance that an interval fails, of the exact run's time."""

from __future__ import annotations

# Of the chance that an interval fails, what the first sample of a query may take, the second and the third: one that is
# enlarged until it looks narrow must not be asked at the full confidence each time.
SPENT = (0.6, 0.3, 0.1)

# Samples of the user's own query take no more than so many exact runs together.
MOST_SPENT = 1.1

# With a larger share of the keys all of them are cheaper.
MOST_RATE = 0.25
