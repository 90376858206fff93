package skimql.sketch;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/** What identifies a sketch: hash families, size, type of the counters. */
public final class Spec {
  private static final int MOST_KEPT = 256;
  private static final ConcurrentHashMap<List<Object>, Hasher> HASHERS = new ConcurrentHashMap<>();

  final List<Family> families;
  final int rows;
  final int buckets;
  final boolean doubles;

  public Spec(List<Family> families, int rows, int buckets, boolean doubles) {
    this.families = families;
    this.rows = rows;
    this.buckets = buckets;
    this.doubles = doubles;
  }

  int attributes() {
    return families.size();
  }

  long bytes() {
    return 8L * rows * buckets;
  }

  String dtype() {
    return doubles ? "float64" : "int64";
  }

  /** One for each attribute; those of equal families are made once. */
  Hasher[] hashers() {
    Hasher[] out = new Hasher[families.size()];
    if (HASHERS.size() > MOST_KEPT) {
      HASHERS.clear();
    }
    for (int i = 0; i < out.length; i++) {
      Family family = families.get(i);
      out[i] =
          HASHERS.computeIfAbsent(
              java.util.Arrays.asList(family, rows, buckets), unknown -> Hasher.of(family, rows, buckets));
    }
    return out;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Spec
        && families.equals(((Spec) other).families)
        && rows == ((Spec) other).rows
        && buckets == ((Spec) other).buckets
        && doubles == ((Spec) other).doubles;
  }

  @Override
  public int hashCode() {
    return families.hashCode();
  }

  @Override
  public String toString() {
    StringBuilder names = new StringBuilder();
    families.forEach(f -> names.append(names.length() == 0 ? "" : " x ").append(f));
    return rows + " x " + buckets + " " + dtype() + " over " + names;
  }
}
