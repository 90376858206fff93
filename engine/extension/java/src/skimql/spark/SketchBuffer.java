package skimql.spark;

import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.expressions.Aggregator;
import skimql.sketch.Sketch;
import skimql.sketch.SketchFault;

/** An aggregate whose buffer is a sketch, and whose result its bytes. */
abstract class SketchBuffer<I> extends Aggregator<I, Sketch, byte[]> {
  private static final long serialVersionUID = 1;

  @Override
  public Sketch merge(Sketch one, Sketch other) {
    try {
      one.merge(other);
      return one;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public Encoder<Sketch> bufferEncoder() {
    return Encoders.javaSerialization(Sketch.class);
  }

  @Override
  public Encoder<byte[]> outputEncoder() {
    return Encoders.BINARY();
  }
}
