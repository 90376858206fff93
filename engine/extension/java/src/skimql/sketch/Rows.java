package skimql.sketch;

/** The estimate of a join in every row: a dot product of two sketches, a convolution of more. */
final class Rows {
  private static final int PAIRWISE = 128;

  private Rows() {}

  static double[] of(Sketch[] dense, JoinTree tree) {
    int rows = dense[0].spec.rows;
    double[] out = new double[rows];
    boolean whole = true;
    for (Sketch sketch : dense) {
      whole &= !sketch.spec.doubles;
    }
    for (int row = 0; row < rows; row++) {
      if (dense.length == 2) {
        out[row] = dot(counters(dense[0], row), counters(dense[1], row));
      } else {
        double found = dense[0].spec.families.get(0).isXor() ? xor(dense, row) : cyclic(dense, tree, row);
        out[row] = whole ? Math.rint(found) : found;
      }
    }
    return out;
  }

  static double[] counters(Sketch dense, int row) {
    int buckets = dense.spec.buckets;
    double[] out = new double[buckets];
    for (int i = 0; i < buckets; i++) {
      out[i] = dense.spec.doubles ? dense.sums[row * buckets + i] : dense.counters[row * buckets + i];
    }
    return out;
  }

  private static double dot(double[] a, double[] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      sum += a[i] * b[i];
    }
    return sum;
  }

  private static double xor(Sketch[] dense, int row) {
    double[] product = null;
    for (Sketch sketch : dense) {
      double[] transformed = walshHadamard(counters(sketch, row));
      if (product == null) {
        product = transformed;
      } else {
        for (int i = 0; i < product.length; i++) {
          product[i] *= transformed[i];
        }
      }
    }
    return sum(product, 0, product.length) / product.length;
  }

  private static double[] walshHadamard(double[] values) {
    for (int half = 1; half < values.length; half *= 2) {
      for (int start = 0; start < values.length; start += 2 * half) {
        for (int i = start; i < start + half; i++) {
          double a = values[i];
          double b = values[i + half];
          values[i] = a + b;
          values[i + half] = a - b;
        }
      }
    }
    return values;
  }

  /** In the order in which numpy adds. */
  private static double sum(double[] values, int from, int count) {
    if (count < 8) {
      double sum = 0;
      for (int i = from; i < from + count; i++) {
        sum += values[i];
      }
      return sum;
    }
    if (count <= PAIRWISE) {
      double[] part = new double[8];
      for (int i = 0; i < count; i++) {
        part[i % 8] += values[from + i];
      }
      return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    int half = count / 2;
    half -= half % 8;
    return sum(values, from, half) + sum(values, from + half, count - half);
  }

  private static double cyclic(Sketch[] dense, JoinTree tree, int row) {
    int buckets = dense[0].spec.buckets;
    double[] real = new double[buckets];
    double[] imaginary = new double[buckets];
    java.util.Arrays.fill(real, 1);
    for (int v = 0; v < dense.length; v++) {
      double[] a = counters(dense[v], row);
      double[] b = new double[buckets];
      fourier(a, b);
      for (int i = 0; i < buckets; i++) {
        double other = tree.white[v] ? b[i] : -b[i];
        double product = real[i] * a[i] - imaginary[i] * other;
        imaginary[i] = real[i] * other + imaginary[i] * a[i];
        real[i] = product;
      }
    }
    return sum(real, 0, buckets) / buckets;
  }

  /** The discrete Fourier transform, in place; as many values as a power of two. */
  private static void fourier(double[] real, double[] imaginary) {
    int n = real.length;
    for (int i = 1, j = 0; i < n; i++) {
      int bit = n >> 1;
      for (; (j & bit) != 0; bit >>= 1) {
        j ^= bit;
      }
      j ^= bit;
      if (i < j) {
        double moved = real[i];
        real[i] = real[j];
        real[j] = moved;
      }
    }
    for (int length = 2; length <= n; length <<= 1) {
      int half = length / 2;
      for (int k = 0; k < half; k++) {
        double cosine = Math.cos(-2 * Math.PI * k / length);
        double sine = Math.sin(-2 * Math.PI * k / length);
        for (int i = k; i < n; i += length) {
          double a = real[i + half] * cosine - imaginary[i + half] * sine;
          double b = real[i + half] * sine + imaginary[i + half] * cosine;
          real[i + half] = real[i] - a;
          imaginary[i + half] = imaginary[i] - b;
          real[i] += a;
          imaginary[i] += b;
        }
      }
    }
  }
}
