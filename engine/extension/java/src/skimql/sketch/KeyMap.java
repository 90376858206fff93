package skimql.sketch;

import java.util.Arrays;

/** Exact net weights by key; those that cancel out do not count. */
final class KeyMap {
  /** Takes an entry: a key that may be overwritten afterwards, and its weight. */
  interface Visitor {
    void entry(long[] key, long weight);
  }

  private final int attributes;
  private final boolean doubles;

  private int capacity;
  private long[] keys;
  private long[] weights;
  private boolean[] taken;
  private int size;
  private int entries;

  KeyMap(int attributes, boolean doubles) {
    this.attributes = attributes;
    this.doubles = doubles;
    allocate(16);
  }

  private void allocate(int places) {
    capacity = places;
    keys = new long[places * attributes];
    weights = new long[places];
    taken = new boolean[places];
    size = 0;
    entries = 0;
  }

  int size() {
    return entries;
  }

  /** As Python counts them: keys and weights of the entries. */
  long bytes() {
    return 8L * (attributes + 1) * entries;
  }

  void add(long[] key, long weight) {
    int place = place(key);
    long before = weights[place];
    long after;
    try {
      after = Math.addExact(before, weight);
    } catch (ArithmeticException fault) {
      throw SketchFault.overflow("a tuple");
    }
    set(place, before, after);
  }

  void add(long[] key, double weight) {
    int place = place(key);
    long before = weights[place];
    double after = Double.longBitsToDouble(before) + weight;
    set(place, before, after == 0 ? 0 : Double.doubleToRawLongBits(after));
  }

  /** The bits of a double zero are those of a zero. */
  private void set(int place, long before, long after) {
    weights[place] = after;
    entries += (after == 0 ? 0 : 1) - (before == 0 ? 0 : 1);
  }

  void addAll(KeyMap other) {
    other.forEach(
        (key, weight) -> {
          if (doubles) {
            add(key, Double.longBitsToDouble(weight));
          } else {
            add(key, weight);
          }
        });
  }

  void forEach(Visitor visitor) {
    long[] key = new long[attributes];
    for (int place = 0; place < capacity; place++) {
      if (taken[place] && weights[place] != 0) {
        System.arraycopy(keys, place * attributes, key, 0, attributes);
        visitor.entry(key, weights[place]);
      }
    }
  }

  /** Places of the entries in the order of their keys. */
  private Integer[] sorted() {
    Integer[] places = new Integer[entries];
    int count = 0;
    for (int place = 0; place < capacity; place++) {
      if (taken[place] && weights[place] != 0) {
        places[count++] = place;
      }
    }
    Arrays.sort(
        places,
        (a, b) -> {
          for (int i = 0; i < attributes; i++) {
            int order = Long.compare(keys[a * attributes + i], keys[b * attributes + i]);
            if (order != 0) {
              return order;
            }
          }
          return 0;
        });
    return places;
  }

  /** All keys, then all weights, in the order of the keys. */
  long[] columns() {
    long[] out = new long[entries * (attributes + 1)];
    int at = 0;
    Integer[] places = sorted();
    for (int place : places) {
      System.arraycopy(keys, place * attributes, out, at, attributes);
      at += attributes;
    }
    for (int place : places) {
      out[at++] = weights[place];
    }
    return out;
  }

  private int place(long[] key) {
    if (2 * size >= capacity) {
      grow();
    }
    int place = find(key);
    if (!taken[place]) {
      taken[place] = true;
      size++;
      System.arraycopy(key, 0, keys, place * attributes, attributes);
    }
    return place;
  }

  private int find(long[] key) {
    long mixed = 0;
    for (long part : key) {
      mixed = (mixed ^ part) * 0x9E3779B97F4A7C15L;
      mixed ^= mixed >>> 32;
    }
    int place = (int) (mixed & capacity - 1);
    while (taken[place] && !equal(key, place * attributes)) {
      place = place + 1 & capacity - 1;
    }
    return place;
  }

  private boolean equal(long[] key, int at) {
    for (int i = 0; i < attributes; i++) {
      if (keys[at + i] != key[i]) {
        return false;
      }
    }
    return true;
  }

  /** Make room; what has cancelled out is forgotten. */
  private void grow() {
    long[] oldKeys = keys;
    long[] oldWeights = weights;
    boolean[] oldTaken = taken;
    int old = capacity;
    allocate(4 * entries >= capacity ? 2 * capacity : capacity);
    long[] key = new long[attributes];
    for (int place = 0; place < old; place++) {
      if (oldTaken[place] && oldWeights[place] != 0) {
        System.arraycopy(oldKeys, place * attributes, key, 0, attributes);
        int found = find(key);
        taken[found] = true;
        size++;
        System.arraycopy(key, 0, keys, found * attributes, attributes);
        set(found, 0, oldWeights[place]);
      }
    }
  }
}
