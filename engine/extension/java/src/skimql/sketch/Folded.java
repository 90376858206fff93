package skimql.sketch;

/** Fine buckets and signs from bits of xxhash64, merged in every row by a linear map of its own. */
final class Folded extends Hasher {
  static final String NAME = "folded";

  private static final int FIELDS = 3;
  private static final int FIELD_BITS = 21;

  private final long[] starts;
  private final int fineBits;
  /** Of each row: number of the word, and place of the bit in it, that hold its sign. */
  private final int[] word;

  private final int[] place;
  /** Of each byte of the fine bucket and its values, side by side: what it adds to twice the bucket in every row. */
  private final int[] maps;

  private final int pieces;

  Folded(long seed, int fineBits, int rows, int buckets) {
    this.fineBits = fineBits;
    word = new int[rows];
    place = new int[rows];
    int first = Math.max(0, 64 - (FIELDS - 1) * FIELD_BITS - fineBits);
    int words = 1;
    for (int row = 0; row < rows; row++) {
      int group = row / FIELDS;
      boolean within = group < first;
      word[row] = within ? 0 : 1 + (group - first) / FIELD_BITS;
      place[row] = (within ? group : (group - first) % FIELD_BITS) + row % FIELDS * FIELD_BITS;
      words = Math.max(words, word[row] + 1);
    }
    starts = new long[words];
    for (int w = 0; w < words; w++) {
      starts[w] = start(w == 0 ? seed : Digests.deriveSeed(seed, "word " + w));
    }
    pieces = (fineBits + 7) / 8;
    maps = new int[256 * pieces * rows];
    for (int row = 0; row < rows; row++) {
      fill(row, rows, bits(buckets) - 1);
    }
  }

  static int fineBits(int buckets) {
    return Math.min(24, Math.max(8, 32 - Integer.numberOfLeadingZeros(16 * buckets - 1)));
  }

  private void fill(int row, int rows, int bucketBits) {
    int[] columns = columns(row);
    for (int piece = 0; piece < pieces; piece++) {
      for (int value = 0; value < 256; value++) {
        int mapped = 0;
        for (int bit = 0; bit < 8 && 8 * piece + bit < fineBits; bit++) {
          mapped ^= (value >> bit & 1) == 1 ? columns[8 * piece + bit] : 0;
        }
        int bucket =
            bucketBits > fineBits ? mapped << (bucketBits - fineBits) : mapped & ((1 << bucketBits) - 1);
        maps[(256 * piece + value) * rows + row] = bucket << 1;
      }
    }
  }

  /** The columns of a random invertible matrix over GF(2). */
  private int[] columns(int row) {
    for (int attempt = 0; ; attempt++) {
      long[] words = Digests.randomWords("folded " + fineBits + " " + row + " " + attempt, fineBits);
      int[] columns = new int[fineBits];
      for (int i = 0; i < fineBits; i++) {
        columns[i] = (int) (words[i] >>> (64 - fineBits));
      }
      if (areIndependent(columns)) {
        return columns;
      }
    }
  }

  private static boolean areIndependent(int[] vectors) {
    int[] leading = new int[32];
    for (int vector : vectors) {
      int left = vector;
      while (left != 0) {
        int top = 31 - Integer.numberOfLeadingZeros(left);
        if (leading[top] == 0) {
          leading[top] = left;
          break;
        }
        left ^= leading[top];
      }
      if (left == 0) {
        return false;
      }
    }
    return true;
  }

  @Override
  void slots(long key, int[] out) {
    long first = hashLong(key, starts[0]);
    int fine = (int) (first >>> (64 - fineBits));
    int rows = word.length;
    System.arraycopy(maps, (fine & 255) * rows, out, 0, rows);
    for (int piece = 1; piece < pieces; piece++) {
      int at = (256 * piece + (fine >>> 8 * piece & 255)) * rows;
      for (int row = 0; row < rows; row++) {
        out[row] ^= maps[at + row];
      }
    }
    long hashed = first;
    int at = 0;
    for (int row = 0; row < rows; row++) {
      if (word[row] != at) {
        at = word[row];
        hashed = hashLong(key, starts[at]);
      }
      out[row] |= (int) (hashed >>> place[row]) & 1;
    }
  }
}
