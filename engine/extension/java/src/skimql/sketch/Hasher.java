package skimql.sketch;

/** Bucket and sign of keys in every row of a sketch, the same as those of the family of that name in Python. */
abstract class Hasher {
  private static final long P1 = 0x9E3779B185EBCA87L;
  private static final long P2 = 0xC2B2AE3D27D4EB4FL;
  private static final long P3 = 0x165667B19E3779F9L;
  private static final long P4 = 0x85EBCA77C2B2AE63L;
  private static final long P5 = 0x27D4EB2F165667C5L;
  private static final long SPARK_SEED = 42;

  /** Twice the bucket, and 1 where the sign is negative, of each row. */
  abstract void slots(long key, int[] out);

  static Hasher of(Family family, int rows, int buckets) {
    if ((buckets & (buckets - 1)) != 0) {
      throw SketchFault.pair("a sketch of " + buckets + " buckets has no functions in SQL: they are a power of two", null);
    }
    switch (family.name) {
      case CountMin.NAME:
        return new CountMin(family.seed, rows, buckets);
      case Folded.NAME:
        return new Folded(family.seed, family.parameters.get("fine_bits").intValue(), rows, buckets);
      case Tabulation.NAME:
        return new Tabulation(family.seed, rows, buckets);
      default:
        throw SketchFault.pair("sketches of the hash family " + family + " have no functions in SQL", null);
    }
  }

  /** Bits of a bucket and its sign. */
  static int bits(int buckets) {
    return 32 - Integer.numberOfLeadingZeros(buckets);
  }

  /** What Spark's xxhash64(seed, key) hashes the key with. */
  static long start(long seed) {
    return hashLong(seed, SPARK_SEED);
  }

  /** XXH64 of the eight little-endian bytes of a number. */
  static long hashLong(long value, long seed) {
    long x = seed + P5 + 8;
    x ^= Long.rotateLeft(value * P2, 31) * P1;
    x = Long.rotateLeft(x, 27) * P1 + P4;
    x ^= x >>> 33;
    x *= P2;
    x ^= x >>> 29;
    x *= P3;
    return x ^ x >>> 32;
  }
}
