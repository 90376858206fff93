package skimql.sketch;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectOutput;

/** Distinct keys: an exact map of them until cells would be smaller, then cells; `SparseLevelSketch` in Python. */
public final class LevelSketch implements Externalizable {
  private static final long serialVersionUID = 1;
  private static final int REPEATED_BITS = 16;
  private static final long LOW16 = 0xFFFFL;
  private static final long LOW48 = (1L << 48) - 1;
  private static final long LOW32 = (1L << 32) - 1;
  private static final int WORDS_PER_CELL = 3;

  LevelSpec spec;
  Meaning meaning;
  long limit;

  KeyMap map;
  long[] counts;
  long[] keySums;
  long[] printSums;

  private final long[] key = new long[1];
  private final long[] words = new long[2];
  private LevelSpec.Words hasher;

  /** For reading. */
  public LevelSketch() {}

  public LevelSketch(LevelSpec spec, Meaning meaning) {
    this.spec = spec;
    this.meaning = meaning;
    limit = 8L * WORDS_PER_CELL * spec.cells();
    map = new KeyMap(1, false);
  }

  public void add(long value) {
    if (map == null) {
      addDense(value, 1);
      return;
    }
    key[0] = value;
    map.add(key, 1L);
    settle();
  }

  public void merge(LevelSketch other) {
    meaning = Meaning.merged(spec, meaning, other.spec, other.meaning);
    if (other.map != null && map != null) {
      map.addAll(other.map);
      settle();
      return;
    }
    turnDense();
    if (other.map != null) {
      other.map.forEach((entry, weight) -> addDense(entry[0], weight));
      return;
    }
    for (int i = 0; i < counts.length; i++) {
      try {
        counts[i] = Math.addExact(counts[i], other.counts[i]);
      } catch (ArithmeticException fault) {
        throw SketchFault.overflow("a sketch");
      }
      keySums[i] += other.keySums[i];
      printSums[i] += other.printSums[i];
    }
  }

  /** How many distinct keys there are. */
  public Estimate estimate(double confidence) {
    if (map != null) {
      return Estimate.exact(map.size());
    }
    return occupancy().estimate(confidence);
  }

  private void settle() {
    if (map.bytes() > limit) {
      turnDense();
    }
  }

  private void turnDense() {
    if (map == null) {
      return;
    }
    KeyMap entries = map;
    map = null;
    counts = new long[spec.cells()];
    keySums = new long[spec.cells()];
    printSums = new long[spec.cells()];
    entries.forEach((entry, weight) -> addDense(entry[0], weight));
  }

  private void addDense(long value, long weight) {
    int cell = locate(value);
    try {
      counts[cell] = Math.addExact(counts[cell], weight);
    } catch (ArithmeticException fault) {
      throw SketchFault.overflow("a tuple");
    }
    keySums[cell] += weight * value;
    printSums[cell] += weight * print(value);
  }

  /** The cell of a key; leaves its words. */
  private int locate(long value) {
    if (hasher == null) {
      hasher = spec.words();
    }
    hasher.hash(value, words);
    long depth = words[0] & LOW32;
    int level = Math.min(Long.numberOfLeadingZeros(depth) - 32, spec.levels - 1);
    return level * spec.buckets + (int) ((words[0] >>> 32) * spec.buckets >>> 32);
  }

  /** The print of the key whose words are there. */
  private long print(long value) {
    long random = words[1] << 32 | words[1] >>> 32;
    return random << REPEATED_BITS | value >>> 48;
  }

  private Occupancy occupancy() {
    Occupancy seen = new Occupancy(spec.levels, spec.buckets);
    for (int cell = 0; cell < counts.length; cell++) {
      seen.add(cell / spec.buckets, kind(cell));
    }
    return seen.settled();
  }

  private int kind(int cell) {
    long count = counts[cell];
    long keys = keySums[cell];
    long prints = printSums[cell];
    if ((count | keys | prints) == 0) {
      return Occupancy.EMPTY;
    }
    int twos = Long.numberOfTrailingZeros(count);
    // One key of weight c makes all sums multiples of the power of two in c.
    long mask = (1L << Math.min(twos, 63)) - 1;
    if (count == 0 || ((keys | prints) & mask) != 0) {
      return Occupancy.MULTIPLE;
    }
    if (twos > REPEATED_BITS) {
      return Occupancy.AMBIGUOUS;
    }
    long inverse = inverseOdd(count >> twos);
    long candidate = ((prints >>> twos) * inverse & LOW16) << 48 | (keys >>> twos) * inverse & LOW48;
    boolean right = locate(candidate) == cell && count * print(candidate) == prints && count * candidate == keys;
    return right ? Occupancy.SINGLE : Occupancy.MULTIPLE;
  }

  private static long inverseOdd(long odd) {
    long inverse = odd * 3 ^ 2;
    for (int i = 0; i < 4; i++) {
      inverse *= 2 - odd * inverse;
    }
    return inverse;
  }

  @Override
  public void writeExternal(ObjectOutput out) throws IOException {
    byte[] bytes = Stored.pack(this);
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  @Override
  public void readExternal(ObjectInput in) throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    LevelSketch found = (LevelSketch) Stored.unpack(bytes);
    spec = found.spec;
    meaning = found.meaning;
    limit = found.limit;
    map = found.map;
    counts = found.counts;
    keySums = found.keySums;
    printSums = found.printSums;
  }
}
