package skimql.sketch;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** What the numbers of a sketch stand for: types of the keys, the factor that made weights integers, counts or sums. */
public final class Meaning {
  final List<String> keys;
  final long scale;
  final boolean sums;

  public Meaning(List<String> keys, long scale, boolean sums) {
    this.keys = Collections.unmodifiableList(new ArrayList<>(keys));
    this.scale = scale;
    this.sums = sums;
  }

  /** That of two sketches merged, of specs and meanings that must agree; null where one of them tells none. */
  static Meaning merged(Object spec, Meaning meaning, Object otherSpec, Meaning other) {
    if (!spec.equals(otherSpec)) {
      throw SketchFault.pair(
          "sketches of different specs cannot be merged: " + spec + " and " + otherSpec,
          "skim_sketch with the same options for both");
    }
    if (meaning != null && other != null && !meaning.equals(other)) {
      throw SketchFault.pair(
          "sketches of different meanings cannot be merged: " + meaning + " and " + other,
          "skim_sketch of columns that are CAST to the same types");
    }
    return other == null ? null : meaning;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Meaning
        && keys.equals(((Meaning) other).keys)
        && scale == ((Meaning) other).scale
        && sums == ((Meaning) other).sums;
  }

  @Override
  public int hashCode() {
    return keys.hashCode();
  }

  @Override
  public String toString() {
    String unit = scale == 1 ? "" : " in units of 1/" + scale;
    return (sums ? "sums" + unit : "counts") + " by " + String.join(", ", keys);
  }
}
