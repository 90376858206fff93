package skimql.sketch;

import java.nio.charset.StandardCharsets;

/** SHAKE-128 and BLAKE2b, from which hash functions are drawn as in Python: no Java up to 24 has them. */
final class Digests {
  private static final long[] ROUNDS = {
    0x0000000000000001L, 0x0000000000008082L, 0x800000000000808AL, 0x8000000080008000L, 0x000000000000808BL,
    0x0000000080000001L, 0x8000000080008081L, 0x8000000000008009L, 0x000000000000008AL, 0x0000000000000088L,
    0x0000000080008009L, 0x000000008000000AL, 0x000000008000808BL, 0x800000000000008BL, 0x8000000000008089L,
    0x8000000000008003L, 0x8000000000008002L, 0x8000000000000080L, 0x000000000000800AL, 0x800000008000000AL,
    0x8000000080008081L, 0x8000000000008080L, 0x0000000080000001L, 0x8000000080008008L
  };
  private static final int[] LANES = {
    10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1
  };
  private static final int[] TURNS = {
    1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44
  };
  private static final int RATE = 168;

  private static final long[] START = {
    0x6A09E667F3BCC908L, 0xBB67AE8584CAA73BL, 0x3C6EF372FE94F82BL, 0xA54FF53A5F1D36F1L,
    0x510E527FADE682D1L, 0x9B05688C2B3E6C1FL, 0x1F83D9ABFB41BD6BL, 0x5BE0CD19137E2179L
  };
  private static final int[][] ORDER = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}
  };
  private static final int BLOCK = 128;

  private Digests() {}

  /** 64-bit words that a short label determines: SHAKE-128, little-endian. */
  static long[] randomWords(String label, int count) {
    byte[] text = label.getBytes(StandardCharsets.UTF_8);
    if (text.length >= RATE) {
      throw new IllegalArgumentException("a label is short");
    }
    byte[] block = new byte[RATE];
    System.arraycopy(text, 0, block, 0, text.length);
    block[text.length] = 0x1F;
    block[RATE - 1] ^= (byte) 0x80;
    long[] state = new long[25];
    for (int i = 0; i < RATE / 8; i++) {
      state[i] = word(block, 8 * i);
    }
    long[] out = new long[count];
    for (int at = 0; at < count; at++) {
      int lane = at % (RATE / 8);
      if (lane == 0) {
        permute(state);
      }
      out[at] = state[lane];
    }
    return out;
  }

  /** A seed in [0, 2^63) that a seed and a label determine. */
  static long deriveSeed(long seed, String label) {
    return blake(((seed + "/") + label).getBytes(StandardCharsets.UTF_8)) >>> 1;
  }

  private static void permute(long[] a) {
    long[] c = new long[5];
    for (long round : ROUNDS) {
      for (int x = 0; x < 5; x++) {
        c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
      }
      for (int x = 0; x < 5; x++) {
        long d = c[(x + 4) % 5] ^ Long.rotateLeft(c[(x + 1) % 5], 1);
        for (int y = 0; y < 25; y += 5) {
          a[x + y] ^= d;
        }
      }
      long moved = a[1];
      for (int i = 0; i < LANES.length; i++) {
        long there = a[LANES[i]];
        a[LANES[i]] = Long.rotateLeft(moved, TURNS[i]);
        moved = there;
      }
      for (int y = 0; y < 25; y += 5) {
        System.arraycopy(a, y, c, 0, 5);
        for (int x = 0; x < 5; x++) {
          a[x + y] = c[x] ^ (~c[(x + 1) % 5] & c[(x + 2) % 5]);
        }
      }
      a[0] ^= round;
    }
  }

  /** BLAKE2b of eight bytes, as a little-endian number. */
  private static long blake(byte[] text) {
    long[] h = START.clone();
    h[0] ^= 0x01010000L ^ 8;
    int blocks = Math.max(1, (text.length + BLOCK - 1) / BLOCK);
    for (int b = 0; b < blocks; b++) {
      byte[] block = new byte[BLOCK];
      int length = Math.min(BLOCK, text.length - b * BLOCK);
      System.arraycopy(text, b * BLOCK, block, 0, length);
      compress(h, block, (long) b * BLOCK + length, b == blocks - 1);
    }
    return h[0];
  }

  private static void compress(long[] h, byte[] block, long taken, boolean last) {
    long[] m = new long[16];
    for (int i = 0; i < 16; i++) {
      m[i] = word(block, 8 * i);
    }
    long[] v = new long[16];
    System.arraycopy(h, 0, v, 0, 8);
    System.arraycopy(START, 0, v, 8, 8);
    v[12] ^= taken;
    v[14] ^= last ? -1L : 0L;
    for (int round = 0; round < 12; round++) {
      int[] s = ORDER[round % 10];
      for (int i = 0; i < 4; i++) {
        mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
      }
      for (int i = 0; i < 4; i++) {
        mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
      }
    }
    for (int i = 0; i < 8; i++) {
      h[i] ^= v[i] ^ v[8 + i];
    }
  }

  private static void mix(long[] v, int a, int b, int c, int d, long x, long y) {
    v[a] += v[b] + x;
    v[d] = Long.rotateRight(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = Long.rotateRight(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = Long.rotateRight(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = Long.rotateRight(v[b] ^ v[c], 63);
  }

  private static long word(byte[] bytes, int at) {
    long out = 0;
    for (int i = 7; i >= 0; i--) {
      out = out << 8 | bytes[at + i] & 0xFF;
    }
    return out;
  }
}
