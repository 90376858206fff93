package skimql.sketch;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What names a hash family, as `hashing.family` in Python: kind, seed, parameters; and what it was derived from. */
public final class Family {
  final String name;
  final long seed;
  final Map<String, Long> parameters;
  /** The seed that was given, and the labels; null where a family was not derived. For people, no part of it. */
  final Long first;

  final List<String> labels;

  Family(String name, long seed, Map<String, Long> parameters, Long first, List<String> labels) {
    this.name = name;
    this.seed = seed;
    this.parameters = Collections.unmodifiableMap(new TreeMap<>(parameters));
    this.first = first;
    this.labels = Collections.unmodifiableList(new ArrayList<>(labels));
  }

  /** The family of a join class. */
  public static Family derived(String name, long seed, String label, int buckets) {
    Map<String, Long> parameters = new TreeMap<>();
    if (name.equals(Folded.NAME)) {
      parameters.put("fine_bits", (long) Folded.fineBits(buckets));
    }
    List<String> labels = Collections.singletonList(label);
    return new Family(name, Digests.deriveSeed(seed, label), parameters, seed, labels);
  }

  /** In which group the buckets of several attributes add up: exclusive or, or modulo their number. */
  boolean isXor() {
    return name.equals(Folded.NAME);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Family
        && name.equals(((Family) other).name)
        && seed == ((Family) other).seed
        && parameters.equals(((Family) other).parameters);
  }

  @Override
  public int hashCode() {
    return 31 * name.hashCode() + Long.hashCode(seed);
  }

  @Override
  public String toString() {
    StringBuilder out = new StringBuilder(name + "(seed=" + (first == null ? seed : first));
    if (!labels.isEmpty()) {
      out.append(", key='").append(String.join("/", labels)).append("'");
    }
    parameters.forEach((key, value) -> out.append(", ").append(key).append("=").append(value));
    return out.append(")").toString();
  }
}
