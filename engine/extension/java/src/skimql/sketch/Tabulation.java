package skimql.sketch;

/** Thorup-Zhang tabulation of 64-bit keys, 5-wise independent: see `hashing/tabulation.py`. */
final class Tabulation extends Hasher {
  static final String NAME = "tabulation";

  private static final int CHARACTERS = 8;
  private static final int DERIVED = 7;
  private static final int PRIME = 257;
  private static final int DERIVED_VALUES = CHARACTERS * (PRIME - 1) + 1;
  private static final int SIZE = CHARACTERS * 256 + DERIVED * DERIVED_VALUES;
  /** Seven products of each character and place, as fields of 16 bits in two words. */
  private static final long[] LOW = new long[CHARACTERS * 256];

  private static final long[] HIGH = new long[CHARACTERS * 256];

  static {
    for (int i = 0; i < CHARACTERS; i++) {
      for (int j = 0; j < DERIVED; j++) {
        int inverse = inverse(Math.floorMod(i - CHARACTERS - j, PRIME));
        for (int value = 0; value < 256; value++) {
          long product = (long) value * inverse % PRIME;
          long[] half = j < 4 ? LOW : HIGH;
          half[256 * i + value] |= product << 16 * (j % 4);
        }
      }
    }
  }

  private final long[][] tables;
  private final int rows;
  private final int bits;
  private final int perWord;

  Tabulation(long seed, int rows, int buckets) {
    this.rows = rows;
    bits = bits(buckets);
    perWord = 64 / bits;
    tables = new long[(rows + perWord - 1) / perWord][];
    for (int word = 0; word < tables.length; word++) {
      tables[word] = Digests.randomWords("tabulation " + seed + " " + word, SIZE);
    }
  }

  /** Two words of a key, as they are. */
  static LevelSpec.Words ofWords(long seed) {
    Tabulation made = new Tabulation(seed, 4, 1 << 30);
    return made::words;
  }

  private void words(long key, long[] out) {
    long low = 0;
    long high = 0;
    for (int i = 0; i < CHARACTERS; i++) {
      int entry = 256 * i + (int) (key >>> 8 * i & 255);
      low += LOW[entry];
      high += HIGH[entry];
    }
    for (int word = 0; word < out.length; word++) {
      out[word] = word(tables[word], key, low, high);
    }
  }

  private static int inverse(int value) {
    int power = 1;
    for (int i = 0; i < PRIME - 2; i++) {
      power = power * value % PRIME;
    }
    return power;
  }

  @Override
  void slots(long key, int[] out) {
    long low = 0;
    long high = 0;
    for (int i = 0; i < CHARACTERS; i++) {
      int entry = 256 * i + (int) (key >>> 8 * i & 255);
      low += LOW[entry];
      high += HIGH[entry];
    }
    int mask = (1 << bits) - 1;
    for (int word = 0, row = 0; word < tables.length; word++) {
      long hashed = word(tables[word], key, low, high);
      for (int position = 0; position < perWord && row < rows; position++, row++) {
        out[row] = (int) (hashed >>> position * bits) & mask;
      }
    }
  }

  private static long word(long[] table, long key, long low, long high) {
    long hashed = 0;
    for (int i = 0; i < CHARACTERS; i++) {
      hashed ^= table[256 * i + (int) (key >>> 8 * i & 255)];
    }
    int at = 256 * CHARACTERS;
    for (int j = 0; j < DERIVED; j++, at += DERIVED_VALUES) {
      hashed ^= table[at + (int) ((j < 4 ? low : high) >>> 16 * (j % 4) & 0xFFFF)];
    }
    return hashed;
  }
}
