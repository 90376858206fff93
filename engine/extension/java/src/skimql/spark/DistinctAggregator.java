package skimql.spark;

import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.expressions.Aggregator;
import skimql.sketch.LevelSketch;
import skimql.sketch.SketchFault;
import skimql.sketch.Stored;

/** {@code skim_sketch} of {@code kind = distinct}: keys as BIGINTs, NULLs left out, into a sketch of them as bytes. */
public final class DistinctAggregator extends Aggregator<Long, LevelSketch, byte[]> {
  private static final long serialVersionUID = 1;

  private final DistinctOptions options;

  DistinctAggregator(DistinctOptions options) {
    this.options = options;
  }

  @Override
  public LevelSketch zero() {
    return options.empty();
  }

  @Override
  public LevelSketch reduce(LevelSketch sketch, Long key) {
    try {
      if (key != null) {
        sketch.add(key);
      }
      return sketch;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public LevelSketch merge(LevelSketch one, LevelSketch other) {
    try {
      one.merge(other);
      return one;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public byte[] finish(LevelSketch sketch) {
    return Stored.toBytes(sketch);
  }

  @Override
  public Encoder<LevelSketch> bufferEncoder() {
    return Encoders.javaSerialization(LevelSketch.class);
  }

  @Override
  public Encoder<byte[]> outputEncoder() {
    return Encoders.BINARY();
  }

  /** In plans and names of columns; equal ones are one to Spark's plans. */
  @Override
  public String toString() {
    return options.toString();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof DistinctAggregator && toString().equals(other.toString());
  }

  @Override
  public int hashCode() {
    return toString().hashCode();
  }
}
