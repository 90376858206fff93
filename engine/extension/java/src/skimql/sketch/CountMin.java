package skimql.sketch;

/** The rows of Spark's count-min sketch over xxhash64, the lowest bit the sign. */
final class CountMin extends Hasher {
  static final String NAME = "countmin";

  private final long start;
  private final long[] multipliers;
  private final int mask;

  CountMin(long seed, int rows, int buckets) {
    start = start(seed);
    mask = (1 << bits(buckets)) - 1;
    java.util.Random random = new java.util.Random(Digests.deriveSeed(seed, "multipliers") & Integer.MAX_VALUE);
    multipliers = new long[rows];
    for (int row = 0; row < rows; row++) {
      multipliers[row] = random.nextInt(Integer.MAX_VALUE);
    }
  }

  @Override
  void slots(long key, int[] out) {
    long word = hashLong(key, start);
    for (int row = 0; row < multipliers.length; row++) {
      long product = multipliers[row] * word;
      out[row] = (int) (product + (product >> 32)) & mask;
    }
  }
}
