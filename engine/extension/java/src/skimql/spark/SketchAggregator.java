package skimql.spark;

import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import scala.Product;
import skimql.sketch.Sketch;
import skimql.sketch.Stored;

/** {@code skim_sketch}: keys as BIGINTs, NULL where a tuple joins nothing, perhaps a weight, into a sketch as bytes. */
public final class SketchAggregator extends StoredAggregator<Object, Sketch> {
  private static final long serialVersionUID = 1;

  private final SketchOptions options;
  private transient long[] key;

  SketchAggregator(SketchOptions options) {
    super(Sketch.class, options.toString());
    this.options = options;
  }

  @Override
  public Sketch zero() {
    return options.empty();
  }

  @Override
  void add(Sketch sketch, Object input) {
    if (key == null) {
      key = new long[options.attributes()];
    }
    if (input instanceof Product) {
      addTuple(sketch, (Product) input);
    } else {
      key[0] = (Long) input;
      sketch.add(key, 1L);
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
  void addAll(Sketch one, Sketch other) {
    one.merge(other);
  }

  @Override
  public byte[] finish(Sketch sketch) {
    return Stored.toBytes(sketch);
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
