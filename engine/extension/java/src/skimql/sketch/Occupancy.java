package skimql.sketch;

import java.util.function.DoublePredicate;

/** How full the levels are, and the likelihood of that: `distinct.occupancy` in Python, whose notes say why. */
final class Occupancy {
  static final int EMPTY = 0;
  static final int SINGLE = 1;
  static final int MULTIPLE = 2;
  static final int AMBIGUOUS = 3;

  private static final double SMALL = 1e-5;
  private static final double LARGE = 500;
  private static final double LEAST = 1e-300;

  private final int levels;
  private final int buckets;
  /** Cells of each kind on each level; ambiguous ones hold a key or more, nothing else being known. */
  private final long[][] seen;

  Occupancy(int levels, int buckets) {
    this.levels = levels;
    this.buckets = buckets;
    seen = new long[4][levels];
  }

  void add(int level, int kind) {
    seen[kind][level]++;
  }

  /** Whether a cell is ambiguous depends on its weights, so the others are a biased choice: then none are told apart. */
  Occupancy settled() {
    if (sum(seen[AMBIGUOUS]) > 0) {
      for (int level = 0; level < levels; level++) {
        seen[AMBIGUOUS][level] += seen[SINGLE][level] + seen[MULTIPLE][level];
        seen[SINGLE][level] = 0;
        seen[MULTIPLE][level] = 0;
      }
    }
    return this;
  }

  Estimate estimate(double confidence) {
    double certain = sum(seen[SINGLE]) + 2.0 * sum(seen[MULTIPLE]) + sum(seen[AMBIGUOUS]);
    if (sum(seen[MULTIPLE]) + sum(seen[AMBIGUOUS]) == 0) {
      return Estimate.exact(certain);
    }
    if (sum(seen[EMPTY]) + sum(seen[SINGLE]) == 0) {
      double drop = -Math.log((1 - confidence) / 2);
      double fewest = Math.max(certain, Math.exp(last(log -> logLikelihood(Math.exp(log)) < -drop, 0, logMost())));
      return new Estimate(fewest, fewest, Double.POSITIVE_INFINITY, confidence, false);
    }
    double start = Math.log(certain) - 1;
    double best = Math.max(Math.exp(last(log -> score(Math.exp(log)) > 0, start, logMost())), certain);
    double quantile = quantile((1 + confidence) / 2);
    double drop = quantile * quantile / 2 * Math.max(1 - information(best) / best, 0);
    double low = Math.max(Math.floor(crossing(best, drop, -1)), certain);
    return new Estimate(best, low, Math.ceil(crossing(best, drop, 1)), confidence, true);
  }

  private static long sum(long[] counts) {
    long total = 0;
    for (long count : counts) {
      total += count;
    }
    return total;
  }

  private double rate(double keys, int level) {
    return Math.max(keys / buckets * Math.scalb(1.0, -Math.min(level + 1, levels - 1)), LEAST);
  }

  private double logMost() {
    return Math.log(buckets * Math.scalb(1.0, levels - 1)) + 10;
  }

  private double logLikelihood(double keys) {
    double total = 0;
    for (int level = 0; level < levels; level++) {
      double rate = rate(keys, level);
      total -= seen[EMPTY][level] * rate;
      if (seen[SINGLE][level] > 0) {
        total += seen[SINGLE][level] * (Math.log(rate) - rate);
      }
      if (seen[MULTIPLE][level] > 0) {
        total += seen[MULTIPLE][level] * logMixture(rate);
      }
      if (seen[AMBIGUOUS][level] > 0) {
        total += seen[AMBIGUOUS][level] * Math.log(-Math.expm1(-rate));
      }
    }
    return total;
  }

  private double score(double keys) {
    double total = 0;
    for (int level = 0; level < levels; level++) {
      double rate = rate(keys, level);
      double bounded = Math.min(rate, LARGE);
      total += -seen[EMPTY][level] * rate + seen[SINGLE][level] * (1 - rate);
      total += seen[MULTIPLE][level] * excessMixture(bounded);
      total += seen[AMBIGUOUS][level] * (bounded / Math.expm1(bounded));
    }
    return total;
  }

  private double information(double keys) {
    boolean apart = sum(seen[AMBIGUOUS]) == 0;
    double total = 0;
    for (int level = 0; level < levels; level++) {
      double rate = Math.min(rate(keys, level), LARGE);
      total +=
          apart
              ? Math.exp(-rate) * (rate * rate + rate * (1 - rate) * (1 - rate) + rate * rate * excessMixture(rate))
              : rate * rate / Math.expm1(rate);
    }
    return buckets * total;
  }

  /** Where the log-likelihood has fallen by a drop from its maximum, below or above it. */
  private double crossing(double best, double drop, int direction) {
    double target = logLikelihood(best) - drop;
    double near = Math.log(best);
    double far = near + direction * 0.01;
    while (logLikelihood(Math.exp(far)) > target && Math.abs(far - near) < 60) {
      far += 2 * (far - near);
    }
    return Math.exp(last(log -> logLikelihood(Math.exp(log)) > target, near, far));
  }

  /** The end of what holds from `near` on and no more at `far`, which may lie below. */
  private static double last(DoublePredicate holds, double near, double far) {
    for (int i = 0; i < 200; i++) {
      double middle = near + (far - near) / 2;
      if (middle == near || middle == far) {
        break;
      }
      if (holds.test(middle)) {
        near = middle;
      } else {
        far = middle;
      }
    }
    return near;
  }

  private static double excessMixture(double rate) {
    return rate < SMALL ? 2 - 2 * rate / 3 : rate * rate / (Math.expm1(rate) - rate);
  }

  private static double logMixture(double rate) {
    return rate < SMALL
        ? 2 * Math.log(rate) - Math.log(2) - 2 * rate / 3
        : Math.log(-Math.expm1(-rate) - rate * Math.exp(-rate));
  }

  /** Of the normal distribution, for a probability of a half and more. */
  static double quantile(double probability) {
    return last(x -> above(x) > 1 - probability, 0, 40);
  }

  /** Chance of more than x, by its series or, far out, its continued fraction. */
  private static double above(double x) {
    double density = Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
    if (x < 3) {
      double term = x;
      double total = x;
      for (int n = 3; term > total * 1e-17; n += 2) {
        term *= x * x / n;
        total += term;
      }
      return 0.5 - density * total;
    }
    double fraction = x;
    for (int n = 200; n > 0; n--) {
      fraction = x + n / fraction;
    }
    return density / fraction;
  }
}
