package skimql.spark;

import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.expressions.Aggregator;
import skimql.sketch.SketchFault;
import skimql.sketch.Stored;

/** {@code skim_merge}: sketches into that of all their tuples; NULL of none. */
public final class MergeAggregator extends Aggregator<byte[], Merged, byte[]> {
  private static final long serialVersionUID = 1;

  @Override
  public Merged zero() {
    return new Merged();
  }

  @Override
  public Merged reduce(Merged merged, byte[] input) {
    try {
      if (input != null) {
        merged.add(Stored.read(input));
      }
      return merged;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public Merged merge(Merged one, Merged other) {
    try {
      one.addAll(other);
      return one;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public byte[] finish(Merged merged) {
    return merged.toBytes();
  }

  @Override
  public Encoder<Merged> bufferEncoder() {
    return Encoders.javaSerialization(Merged.class);
  }

  @Override
  public Encoder<byte[]> outputEncoder() {
    return Encoders.BINARY();
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
