package skimql.sketch;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;

/** From sketches to a number with its interval: `sum_estimate` of one term in Python, step by step. */
public final class Joins {
  private static final int LEAST_ROWS = 11;
  private static final int LEAST_BUCKETS = 64;
  private static final double MOST_SHIFT = 0.2;
  private static final double COLLAPSE = 0.5;
  private static final int FEW_BUCKETS_SEEN = 16;
  private static final double EXACT_IN_FLOAT = 9007199254740992.0;
  private static final int OF_A_SUMMAND = 8;
  private static final double EPSILON = Math.ulp(1.0);

  private final Sketch[] sketches;
  private final JoinTree tree;
  private final double confidence;
  private final double coefficient;

  private Joins(Sketch[] sketches, double confidence) {
    this.sketches = sketches;
    this.confidence = confidence;
    tree = new JoinTree(sketches);
    double scale = 1;
    for (Sketch sketch : sketches) {
      scale *= sketch.meaning == null ? 1 : sketch.meaning.scale;
    }
    coefficient = 1 / scale;
  }

  /** The number of joining tuples, between 0 and the product of the tuples. */
  public static Estimate size(Sketch[] sketches, double confidence) {
    double most = 1;
    boolean counts = true;
    for (Sketch sketch : sketches) {
      if (sketch.meaning != null && sketch.meaning.sums) {
        throw SketchFault.pair("a sketch of " + sketch.meaning + " has no number of tuples", "skim_join_sum");
      }
      counts &= sketch.meaning != null && sketch.tuples >= 0;
      most *= sketch.tuples;
    }
    Estimate found = new Joins(sketches, confidence).estimate();
    return counts && found.confidence < 1 ? found.clipped(0, most) : found;
  }

  /** The sum over joining tuples of the products of their weights. */
  public static Estimate sum(Sketch[] sketches, double confidence) {
    return new Joins(sketches, confidence).estimate();
  }

  private Estimate estimate() {
    Number known = ExactJoin.of(sketches, tree);
    if (known != null) {
      return Estimate.exact(coefficient == 1 ? known.doubleValue() : coefficient * known.doubleValue());
    }
    Sketch[] dense = new Sketch[sketches.length];
    for (int i = 0; i < dense.length; i++) {
      dense[i] = sketches[i].dense();
    }
    double[] rows = Rows.of(dense, tree);
    for (int row = 0; row < rows.length; row++) {
      rows[row] = 0 + coefficient * rows[row];
    }
    int free = tree.edges.size() == 1 ? freeRow(dense, rows) : -1;
    if (free >= 0) {
      double slack = slack(dense, free);
      return new Estimate(rows[free], rows[free] - slack, rows[free] + slack, confidence, true);
    }
    Estimate found = median(averaged(rows, dense[0].spec.buckets));
    boolean certified = found.certified && !hasDoubts(dense);
    return new Estimate(found.value, found.low, found.high, confidence, certified);
  }

  /** The first row in which no two keys share a bucket, where that is known and all such agree; else -1. */
  private int freeRow(Sketch[] dense, double[] rows) {
    int buckets = dense[0].spec.buckets;
    int[] occupied = new int[rows.length];
    int most = 0;
    for (int row = 0; row < rows.length; row++) {
      double[] a = Rows.counters(dense[0], row);
      double[] b = Rows.counters(dense[1], row);
      for (int i = 0; i < buckets; i++) {
        occupied[row] += a[i] != 0 || b[i] != 0 ? 1 : 0;
      }
      most = Math.max(most, occupied[row]);
    }
    if (most >= buckets) {
      return -1;
    }
    Long fineBits = dense[0].spec.families.get(0).isXor() ? dense[0].spec.families.get(0).parameters.get("fine_bits") : null;
    double apart = fineBits == null ? 1 : chanceOfNone(most + 1, 1 << fineBits);
    if (1 - apart + Math.pow(1 - chanceOfNone(most + 1, buckets), rows.length) > 1 - confidence) {
      return -1;
    }
    int first = -1;
    double low = 0;
    double high = 0;
    for (int row = 0; row < rows.length; row++) {
      if (occupied[row] == most) {
        low = first < 0 ? rows[row] : Math.min(low, rows[row]);
        high = first < 0 ? rows[row] : Math.max(high, rows[row]);
        first = first < 0 ? row : first;
      }
    }
    return high - low <= 1e-9 * Math.abs(rows[first]) ? first : -1;
  }

  private static double chanceOfNone(int keys, int buckets) {
    double chance = 1;
    for (int i = 0; i < keys; i++) {
      chance *= 1 - (double) i / buckets;
    }
    return chance;
  }

  /** How far the doubles of a row without collisions may be from the sum that its counters say. */
  private double slack(Sketch[] dense, int row) {
    double[] product = Rows.counters(dense[0], row);
    double[] other = Rows.counters(dense[1], row);
    double mass = 0;
    for (int i = 0; i < product.length; i++) {
      mass += Math.abs(product[i]) * Math.abs(other[i]);
    }
    mass *= Math.abs(coefficient);
    boolean whole = coefficient == 1 && !dense[0].spec.doubles && !dense[1].spec.doubles;
    return whole && mass < EXACT_IN_FLOAT || mass == 0 ? 0 : (product.length + OF_A_SUMMAND) * EPSILON * mass;
  }

  private double[] averaged(double[] rows, int buckets) {
    int least = LEAST_ROWS;
    while (orderRank(least) == 0) {
      least += 2;
    }
    if (rows.length < 2 * least) {
      return rows;
    }
    int wanted = (int) Math.sqrt((long) (MOST_SHIFT * rows.length * buckets)) | 1;
    int left = Math.min(rows.length, Math.max(least, wanted));
    double[] out = new double[left];
    for (int i = 0; i < left; i++) {
      double sum = 0;
      int count = 0;
      for (int row = i; row < rows.length; row += left, count++) {
        sum += rows[row];
      }
      out[i] = left == rows.length ? rows[i] : sum / count;
    }
    return out;
  }

  private Estimate median(double[] rows) {
    double[] values = rows.clone();
    Arrays.sort(values);
    int count = values.length;
    int rank = orderRank(count);
    int k = Math.max(rank, 1);
    double low = values[(count - 1) / 2];
    double high = values[count / 2];
    double middle = low == high ? low : (low + high) / 2;
    return new Estimate(middle, values[k - 1], values[count - k], confidence, count >= LEAST_ROWS && rank > 0);
  }

  /** Largest k with P[Binomial(rows, 1/2) < k] at most (1 - confidence) / 2. */
  private int orderRank(int rows) {
    double tail = (1 - confidence) / 2;
    int k = 0;
    BigInteger term = BigInteger.ONE;
    BigInteger below = BigInteger.ONE;
    while (k < (rows + 1) / 2 && Math.scalb(below.doubleValue(), -rows) <= tail) {
      k++;
      term = term.multiply(BigInteger.valueOf(rows - k + 1)).divide(BigInteger.valueOf(k));
      below = below.add(term);
    }
    return k;
  }

  /** Whether buckets are few, or keys fill far fewer of them in one row than in another. */
  private static boolean hasDoubts(Sketch[] dense) {
    Set<Sketch> different = new LinkedHashSet<>(Arrays.asList(dense));
    for (Sketch sketch : different) {
      if (sketch.spec.buckets < LEAST_BUCKETS) {
        return true;
      }
      int least = Integer.MAX_VALUE;
      int most = 0;
      for (int row = 0; row < sketch.spec.rows; row++) {
        int filled = 0;
        for (double counter : Rows.counters(sketch, row)) {
          filled += counter != 0 ? 1 : 0;
        }
        least = Math.min(least, filled);
        most = Math.max(most, filled);
      }
      if (most >= FEW_BUCKETS_SEEN && least < COLLAPSE * most) {
        return true;
      }
    }
    return false;
  }
}
