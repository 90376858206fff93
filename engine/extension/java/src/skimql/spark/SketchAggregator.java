package skimql.spark;

import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.expressions.Aggregator;
import scala.Product;
import skimql.sketch.Sketch;
import skimql.sketch.SketchFault;
import skimql.sketch.Stored;

/** {@code skim_sketch}: keys as BIGINTs, NULL where a tuple joins nothing, perhaps a weight, into a sketch as bytes. */
public final class SketchAggregator extends Aggregator<Object, Sketch, byte[]> {
  private static final long serialVersionUID = 1;

  private final SketchOptions options;
  private transient long[] key;

  SketchAggregator(SketchOptions options) {
    this.options = options;
  }

  @Override
  public Sketch zero() {
    return options.empty();
  }

  @Override
  public Sketch reduce(Sketch sketch, Object input) {
    if (key == null) {
      key = new long[options.attributes()];
    }
    try {
      if (input instanceof Product) {
        addTuple(sketch, (Product) input);
      } else if (input != null) {
        key[0] = (Long) input;
        sketch.add(key, 1L);
      }
      return sketch;
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  private void addTuple(Sketch sketch, Product tuple) {
    for (int i = 0; i < key.length; i++) {
      Object part = tuple.productElement(i);
      if (part == null) {
        return;
      }
      key[i] = (Long) part;
    }
    if (!options.isWeighted()) {
      sketch.add(key, 1L);
    } else if (options.hasDoubles()) {
      sketch.add(key, (double) (Double) tuple.productElement(key.length));
    } else {
      sketch.add(key, (long) (Long) tuple.productElement(key.length));
    }
  }

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

  @Override
  public byte[] finish(Sketch sketch) {
    return Stored.toBytes(sketch);
  }

  /** In plans and names of columns; equal ones are one to Spark's plans. */
  @Override
  public String toString() {
    return options.toString();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SketchAggregator && toString().equals(other.toString());
  }

  @Override
  public int hashCode() {
    return toString().hashCode();
  }

  /** Of the keys and the weight. */
  @SuppressWarnings("unchecked")
  Encoder<Object> inputEncoder() {
    int columns = options.attributes() + (options.isWeighted() ? 1 : 0);
    Encoder<?>[] parts = new Encoder<?>[columns];
    for (int i = 0; i < columns; i++) {
      parts[i] = i == options.attributes() && options.hasDoubles() ? Encoders.DOUBLE() : Encoders.LONG();
    }
    switch (columns) {
      case 1:
        return (Encoder<Object>) parts[0];
      case 2:
        return (Encoder<Object>) (Encoder<?>) Encoders.tuple(parts[0], parts[1]);
      case 3:
        return (Encoder<Object>) (Encoder<?>) Encoders.tuple(parts[0], parts[1], parts[2]);
      case 4:
        return (Encoder<Object>) (Encoder<?>) Encoders.tuple(parts[0], parts[1], parts[2], parts[3]);
      default:
        return (Encoder<Object>) (Encoder<?>) Encoders.tuple(parts[0], parts[1], parts[2], parts[3], parts[4]);
    }
  }
}
