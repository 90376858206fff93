package skimql.sketch;

/** A number with its interval. */
public final class Estimate {
  public final double value;
  public final double low;
  public final double high;
  public final double confidence;
  public final boolean certified;

  Estimate(double value, double low, double high, double confidence, boolean certified) {
    this.value = value;
    this.low = low;
    this.high = high;
    this.confidence = confidence;
    this.certified = certified;
  }

  static Estimate exact(double value) {
    return new Estimate(value, value, value, 1.0, true);
  }

  /** Moved into bounds that hold for certain; what lay outside as a whole is not certified. */
  Estimate clipped(double least, double most) {
    boolean inside = high >= least && low <= most;
    return new Estimate(
        within(value, least, most), within(low, least, most), within(high, least, most), confidence, certified && inside);
  }

  private static double within(double x, double least, double most) {
    return Double.isNaN(x) ? x : Math.min(Math.max(x, least), most);
  }
}
