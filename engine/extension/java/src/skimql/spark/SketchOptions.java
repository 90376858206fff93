package skimql.spark;

import skimql.sketch.Family;
import skimql.sketch.Meaning;
import skimql.sketch.Sketch;
import skimql.sketch.Spec;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What {@code skim_sketch} makes: {@code 'rows = 11, buckets = 4096, seed = 1, key = key, family = countmin'}. */
final class SketchOptions implements Serializable {
  private static final long serialVersionUID = 1;
  private static final List<String> FAMILIES = Arrays.asList("countmin", "folded", "tabulation");
  private static final List<String> NAMES = Arrays.asList("rows", "buckets", "seed", "key", "family");
  private static final String DEFAULTS = "rows = 11, buckets = 4096, seed = 1, key = key, family = countmin";
  private static final int MOST_ROWS = 1001;
  private static final int MOST_BUCKETS = 1 << 20;
  private static final int MOST_COUNTERS = 1 << 24;
  private static final int MOST_LABEL = 200;

  private int rows = 11;
  private int buckets = 4096;
  private long seed = 1;
  private String family = FAMILIES.get(0);
  private String[] labels = {"key"};
  private String[] types;
  private boolean weighted;
  private boolean doubles;
  private long scale = 1;

  /** Read a text; the labels of several keys are given. */
  static SketchOptions read(String text, String[] labels) throws Exception {
    SketchOptions made = new SketchOptions();
    if (labels != null) {
      made.labels = labels;
    }
    for (Map.Entry<String, String> option : told(text, NAMES, DEFAULTS).entrySet()) {
      made.set(option.getKey(), option.getValue(), labels != null);
    }
    if ((long) made.rows * made.buckets > MOST_COUNTERS) {
      throw refused(made.rows + " x " + made.buckets + " counters are more than " + MOST_COUNTERS, "fewer buckets");
    }
    return made;
  }

  /** Names and values of a text of options. */
  static Map<String, String> told(String text, List<String> names, String defaults) throws Exception {
    Map<String, String> found = new LinkedHashMap<>();
    for (String part : text.split(",", -1)) {
      String[] sides = part.split("=", 2);
      String name = sides[0].trim().toLowerCase(java.util.Locale.ROOT);
      if (text.trim().isEmpty()) {
        continue;
      }
      if (sides.length < 2 || !names.contains(name) || found.put(name, sides[1].trim()) != null) {
        throw refused(
            "there is no option '" + part.trim() + "' of skim_sketch, or it is there twice", "some of '" + defaults + "'");
      }
    }
    return found;
  }

  private void set(String name, String value, boolean named) throws Exception {
    switch (name) {
      case "rows":
        rows = (int) number(name, value, 1, MOST_ROWS);
        break;
      case "buckets":
        buckets = (int) number(name, value, 2, MOST_BUCKETS);
        if ((buckets & (buckets - 1)) != 0) {
          throw refused("buckets = " + value + " is no power of two", "buckets = " + Integer.highestOneBit(buckets));
        }
        break;
      case "seed":
        seed = number(name, value, 0, Long.MAX_VALUE);
        break;
      case "family":
        family = value.toLowerCase(java.util.Locale.ROOT);
        if (!FAMILIES.contains(family)) {
          throw refused("there is no hash family '" + value + "'", "one of " + String.join(", ", FAMILIES));
        }
        break;
      default:
        if (named) {
          throw refused("the keys of a struct are named by its fields", "skim_sketch(named_struct('" + value + "', k, ...))");
        }
        labels = new String[] {label(value)};
    }
  }

  static String label(String value) throws Exception {
    if (value.isEmpty() || value.length() > MOST_LABEL) {
      throw refused("a key has a name of 1 to " + MOST_LABEL + " characters", "key = user");
    }
    return value;
  }

  static long number(String name, String text, long least, long most) throws Exception {
    try {
      long value = Long.parseLong(text);
      if (value >= least && value <= most) {
        return value;
      }
    } catch (NumberFormatException fault) {
      // Said below.
    }
    throw refused(name + " is a number from " + least + " to " + most + ", not '" + text + "'", null);
  }

  static Exception refused(String message, String hint) {
    java.util.Map<String, Object> told = new java.util.HashMap<>();
    told.put("code", "SKIMQL_SKETCH_ARGUMENT");
    told.put("message", message + (hint == null ? "" : "\n  try: " + hint));
    return Faults.of(told);
  }

  SketchOptions of(String[] keyTypes) {
    types = keyTypes;
    return this;
  }

  SketchOptions weighing(boolean inDoubles, long factor) {
    weighted = true;
    doubles = inDoubles;
    scale = factor;
    return this;
  }

  int attributes() {
    return labels.length;
  }

  boolean isWeighted() {
    return weighted;
  }

  boolean hasDoubles() {
    return doubles;
  }

  /** All that the sketch is made by. */
  @Override
  public String toString() {
    return rows + " x " + buckets + " " + family + "(seed=" + seed + ", key=" + String.join(" x ", labels) + ") " + meaning();
  }

  private Meaning meaning() {
    return new Meaning(Arrays.asList(types), scale, weighted);
  }

  Sketch empty() {
    List<Family> families = new ArrayList<>();
    for (String label : labels) {
      families.add(Family.derived(family, seed, label, buckets));
    }
    Spec spec = new Spec(families, rows, buckets, doubles);
    return new Sketch(spec, meaning(), 8L * rows * buckets);
  }
}
