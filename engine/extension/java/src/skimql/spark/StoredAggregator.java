package skimql.spark;

import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.expressions.Aggregator;
import skimql.sketch.SketchFault;

/** An aggregate that ends in a sketch as bytes; what it is made by is its text, in plans and where Spark compares. */
abstract class StoredAggregator<I, B> extends Aggregator<I, B, byte[]> {
  private static final long serialVersionUID = 1;

  private final Class<B> buffer;
  private final String text;

  StoredAggregator(Class<B> buffer, String text) {
    this.buffer = buffer;
    this.text = text;
  }

  /** Add a value, which is not NULL. */
  abstract void add(B sketch, I input);

  /** Add another sketch to one. */
  abstract void addAll(B one, B other);

  @Override
  public B reduce(B sketch, I input) {
    try {
      if (input != null) {
        add(sketch, input);
      }
      return sketch;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public B merge(B one, B other) {
    try {
      addAll(one, other);
      return one;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  @Override
  public Encoder<B> bufferEncoder() {
    return Encoders.javaSerialization(buffer);
  }

  @Override
  public Encoder<byte[]> outputEncoder() {
    return Encoders.BINARY();
  }

  @Override
  public String toString() {
    return text;
  }

  @Override
  public boolean equals(Object other) {
    return other != null && getClass() == other.getClass() && text.equals(other.toString());
  }

  @Override
  public int hashCode() {
    return text.hashCode();
  }
}
