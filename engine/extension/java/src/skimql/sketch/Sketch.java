package skimql.sketch;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectOutput;

/**
 * A hash or convolution sketch, an exact map of its keys until counters would be smaller: `SparseFirstSketch` in Python.
 * Weights and counters of doubles are kept as their bits in the map, and as doubles in the counters.
 */
public final class Sketch implements Externalizable {
  private static final long serialVersionUID = 1;

  Spec spec;
  Meaning meaning;
  /** Bytes up to which it is a map; null for one that never was. */
  Long limit;
  /** How many it has been given; -1 where that is not known. */
  long tuples;

  KeyMap map;
  long[] counters;
  double[] sums;

  /** At least the largest absolute counter. */
  private long mass;

  private Hasher[] hashers;
  private int[] slots;
  private int[] others;

  /** One of nothing, which takes the form of whatever is merged into it. */
  public Sketch() {}

  public Sketch(Spec spec, Meaning meaning, Long limit) {
    this.spec = spec;
    this.meaning = meaning;
    this.limit = limit;
    if (limit == null || limit <= 0) {
      clear();
    } else {
      map = new KeyMap(spec.attributes(), spec.doubles);
    }
  }

  public boolean isUnset() {
    return spec == null;
  }

  public void add(long[] key, long weight) {
    tuples += tuples < 0 ? 0 : 1;
    if (map == null) {
      addDense(key, weight);
    } else {
      map.add(key, weight);
      settle();
    }
  }

  public void add(long[] key, double weight) {
    if (Double.isNaN(weight) || Double.isInfinite(weight)) {
      throw new SketchFault(
          "SKIMQL_NOT_FINITE", "a weight is " + weight + ", which no sketch adds up", "FILTER (WHERE ...) without such values");
    }
    tuples += tuples < 0 ? 0 : 1;
    if (map == null) {
      addDense(key, weight);
    } else {
      map.add(key, weight);
      settle();
    }
  }

  public void merge(Sketch other) {
    if (other.isUnset()) {
      return;
    }
    if (isUnset()) {
      become(other);
      return;
    }
    check(other);
    tuples = tuples < 0 || other.tuples < 0 ? -1 : tuples + other.tuples;
    limit = limit == null || other.limit == null ? limit == null ? other.limit : limit : Long.valueOf(Math.max(limit, other.limit));
    if (other.map == null) {
      turnDense();
      addCounters(other);
    } else if (map == null) {
      addEntries(other.map);
    } else {
      map.addAll(other.map);
      settle();
    }
  }

  /** A sketch of counters alone: this one, or what its map would turn into. */
  Sketch dense() {
    if (map == null) {
      return this;
    }
    Sketch out = new Sketch(spec, meaning, null);
    out.addEntries(map);
    return out;
  }

  private void become(Sketch other) {
    spec = other.spec;
    meaning = other.meaning;
    limit = other.limit;
    tuples = other.tuples;
    map = other.map;
    counters = other.counters;
    sums = other.sums;
    mass = other.mass;
  }

  private void check(Sketch other) {
    meaning = Meaning.merged(spec, meaning, other.spec, other.meaning);
  }

  private void settle() {
    if (map.bytes() > limit) {
      turnDense();
    }
  }

  private void turnDense() {
    if (map != null) {
      KeyMap entries = map;
      map = null;
      clear();
      addEntries(entries);
    }
  }

  private void clear() {
    if (spec.doubles) {
      sums = new double[spec.rows * spec.buckets];
    } else {
      counters = new long[spec.rows * spec.buckets];
    }
    mass = 0;
  }

  private void addEntries(KeyMap entries) {
    entries.forEach(
        (key, weight) -> {
          if (spec.doubles) {
            addDense(key, Double.longBitsToDouble(weight));
          } else {
            addDense(key, weight);
          }
        });
  }

  private void addDense(long[] key, long weight) {
    int[] found = slotsOf(key);
    int buckets = spec.buckets;
    if (hasRoom(weight == Long.MIN_VALUE ? -1 : Math.abs(weight))) {
      for (int row = 0, at = 0; row < found.length; row++, at += buckets) {
        long sign = -(found[row] & 1);
        counters[at + (found[row] >> 1)] += (weight ^ sign) - sign;
      }
      return;
    }
    for (int row = 0, at = 0; row < found.length; row++, at += buckets) {
      int place = at + (found[row] >> 1);
      try {
        counters[place] =
            (found[row] & 1) == 0 ? Math.addExact(counters[place], weight) : Math.subtractExact(counters[place], weight);
      } catch (ArithmeticException fault) {
        throw SketchFault.overflow("a tuple");
      }
    }
    mass = Long.MAX_VALUE;
  }

  private void addDense(long[] key, double weight) {
    int[] found = slotsOf(key);
    for (int row = 0, at = 0; row < found.length; row++, at += spec.buckets) {
      sums[at + (found[row] >> 1)] += (found[row] & 1) == 0 ? weight : -weight;
    }
  }

  private void addCounters(Sketch other) {
    if (spec.doubles) {
      for (int i = 0; i < sums.length; i++) {
        sums[i] += other.sums[i];
      }
      return;
    }
    try {
      for (int i = 0; i < counters.length; i++) {
        counters[i] = Math.addExact(counters[i], other.counters[i]);
      }
    } catch (ArithmeticException fault) {
      throw SketchFault.overflow("a sketch");
    }
    mass = mass + other.mass < 0 ? Long.MAX_VALUE : mass + other.mass;
  }

  /** Whether every counter can surely change by a weight; if so, the bound grows by it. */
  private boolean hasRoom(long weight) {
    long next = mass + weight;
    if (weight >= 0 && next >= 0) {
      mass = next;
      return true;
    }
    mass = peak();
    if (weight < 0 || mass < 0 || mass + weight < 0) {
      return false;
    }
    mass += weight;
    return true;
  }

  /** The largest absolute counter; negative where that is 2^63. */
  private long peak() {
    long most = 0;
    for (long counter : counters) {
      if (counter == Long.MIN_VALUE) {
        return counter;
      }
      most = Math.max(most, Math.abs(counter));
    }
    return most;
  }

  private int[] slotsOf(long[] key) {
    if (hashers == null) {
      hashers = spec.hashers();
      slots = new int[spec.rows];
      others = new int[spec.rows];
    }
    hashers[0].slots(key[0], slots);
    for (int i = 1; i < hashers.length; i++) {
      hashers[i].slots(key[i], others);
      boolean isXor = spec.families.get(i).isXor();
      int mask = 2 * spec.buckets - 1;
      for (int row = 0; row < slots.length; row++) {
        int a = slots[row];
        int b = others[row];
        slots[row] = isXor ? a ^ b : (a & ~1) + (b & ~1) & mask | (a ^ b) & 1;
      }
    }
    return slots;
  }

  /** The counters of a stored sketch. */
  void restore(long[] found) {
    if (spec.doubles) {
      sums = new double[found.length];
      for (int i = 0; i < found.length; i++) {
        sums[i] = Double.longBitsToDouble(found[i]);
      }
    } else {
      counters = found;
      long most = peak();
      mass = most < 0 ? Long.MAX_VALUE : most;
    }
    map = null;
  }

  @Override
  public void writeExternal(ObjectOutput out) throws IOException {
    byte[] bytes = isUnset() ? new byte[0] : Stored.pack(this);
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  @Override
  public void readExternal(ObjectInput in) throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    if (bytes.length > 0) {
      become((Sketch) Stored.unpack(bytes));
    }
  }
}
