package skimql.spark;

import skimql.sketch.Family;
import skimql.sketch.LevelSketch;
import skimql.sketch.LevelSpec;
import skimql.sketch.Meaning;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** {@code 'kind = distinct, buckets = 1024, levels = 32, seed = 1, key = key, family = xxhash64'}. */
final class DistinctOptions implements Serializable {
  private static final long serialVersionUID = 1;
  private static final String KIND = "distinct";
  private static final List<String> NAMES = Arrays.asList("kind", "buckets", "levels", "seed", "key", "family");
  private static final List<String> FAMILIES = Arrays.asList("xxhash64", "tabulation");
  private static final int MOST_CELLS = 1 << 24;

  private final int buckets;
  private final int levels;
  private final long seed;
  private final String key;
  private final String family;
  private final String type;

  private DistinctOptions(Map<String, String> told, String type) throws Exception {
    this.type = type;
    buckets = (int) SketchOptions.number("buckets", told.getOrDefault("buckets", "1024"), 16, 1 << 20);
    levels = (int) SketchOptions.number("levels", told.getOrDefault("levels", "32"), 2, 33);
    seed = SketchOptions.number("seed", told.getOrDefault("seed", "1"), 0, Long.MAX_VALUE);
    key = SketchOptions.label(told.getOrDefault("key", "key"));
    family = told.getOrDefault("family", FAMILIES.get(0)).toLowerCase(java.util.Locale.ROOT);
    if (!FAMILIES.contains(family)) {
      throw SketchOptions.refused(
          "there is no hash family '" + family + "' of distinct keys", "one of " + String.join(", ", FAMILIES));
    }
    if ((long) buckets * levels > MOST_CELLS) {
      throw SketchOptions.refused(buckets + " x " + levels + " cells are more than " + MOST_CELLS, "fewer buckets");
    }
  }

  /** Whether a text of options asks for distinct keys. */
  static boolean areAsked(String text) {
    for (String part : text.split(",")) {
      String[] sides = part.split("=", 2);
      if (sides.length == 2 && sides[0].trim().equalsIgnoreCase("kind")) {
        return true;
      }
    }
    return false;
  }

  static DistinctOptions read(String text, SketchKeys keys) throws Exception {
    Map<String, String> told =
        SketchOptions.told(text, NAMES, "kind = distinct, buckets = 1024, levels = 32, seed = 1, key = key, family = xxhash64");
    if (!told.get("kind").equalsIgnoreCase(KIND)) {
      throw SketchOptions.refused("there is no kind '" + told.get("kind") + "' of sketches", "kind = distinct");
    }
    if (keys.labels != null) {
      throw SketchOptions.refused(
          "distinct values of one key are counted", "skim_sketch(xxhash64(a, b), 'kind = distinct')");
    }
    return new DistinctOptions(told, keys.types[0]);
  }

  LevelSketch empty() {
    LevelSpec spec = new LevelSpec(Family.derived(family, seed, key, 2), buckets, levels);
    return new LevelSketch(spec, new Meaning(Collections.singletonList(type), 1, false));
  }

  /** All that the sketch is made by. */
  @Override
  public String toString() {
    return KIND + " " + buckets + " x " + levels + " " + family + "(seed=" + seed + ", key=" + key + ") by " + type;
  }
}
