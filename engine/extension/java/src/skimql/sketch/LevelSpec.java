package skimql.sketch;

/** Size and hash functions of a level sketch. */
public final class LevelSpec {
  /** Two words of a key. */
  interface Words {
    void hash(long key, long[] out);
  }

  static final String XXHASH = "xxhash64";

  final Family family;
  final int buckets;
  final int levels;

  public LevelSpec(Family family, int buckets, int levels) {
    this.family = family;
    this.buckets = buckets;
    this.levels = levels;
  }

  int cells() {
    return buckets * levels;
  }

  Words words() {
    if (family.name.equals(XXHASH)) {
      long first = Hasher.start(family.seed);
      long second = Hasher.start(Digests.deriveSeed(family.seed, "word 1"));
      return (key, out) -> {
        out[0] = Hasher.hashLong(key, first);
        out[1] = Hasher.hashLong(key, second);
      };
    }
    if (family.name.equals(Tabulation.NAME)) {
      return Tabulation.ofWords(family.seed);
    }
    throw SketchFault.pair("distinct counts of the hash family " + family + " have no functions in SQL", null);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LevelSpec
        && family.equals(((LevelSpec) other).family)
        && buckets == ((LevelSpec) other).buckets
        && levels == ((LevelSpec) other).levels;
  }

  @Override
  public int hashCode() {
    return family.hashCode();
  }

  @Override
  public String toString() {
    return "level sketch of " + buckets + " buckets x " + levels + " levels, " + family;
  }
}
