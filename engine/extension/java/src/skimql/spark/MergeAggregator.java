package skimql.spark;

import skimql.sketch.Sketch;
import skimql.sketch.SketchFault;
import skimql.sketch.Stored;

/** {@code skim_merge}: sketches into that of all their tuples; NULL of none. */
public final class MergeAggregator extends SketchBuffer<byte[]> {
  private static final long serialVersionUID = 1;

  @Override
  public Sketch zero() {
    return new Sketch();
  }

  @Override
  public Sketch reduce(Sketch sketch, byte[] input) {
    try {
      if (input != null) {
        sketch.merge(Stored.fromBytes(input));
      }
      return sketch;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public byte[] finish(Sketch sketch) {
    return sketch.isUnset() ? null : Stored.toBytes(sketch);
  }

  /** In plans and names of columns; equal ones are one to Spark's plans. */
  @Override
  public String toString() {
    return "sketches";
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof MergeAggregator;
  }

  @Override
  public int hashCode() {
    return 1;
  }
}
