package skimql.spark;

import skimql.sketch.LevelSketch;
import skimql.sketch.Stored;

/** {@code skim_sketch} of {@code kind = distinct}: keys as BIGINTs, NULLs left out, into a sketch of them as bytes. */
public final class DistinctAggregator extends StoredAggregator<Long, LevelSketch> {
  private static final long serialVersionUID = 1;

  private final DistinctOptions options;

  DistinctAggregator(DistinctOptions options) {
    super(LevelSketch.class, options.toString());
    this.options = options;
  }

  @Override
  public LevelSketch zero() {
    return options.empty();
  }

  @Override
  void add(LevelSketch sketch, Long key) {
    sketch.add(key);
  }

  @Override
  void addAll(LevelSketch one, LevelSketch other) {
    one.merge(other);
  }

  @Override
  public byte[] finish(LevelSketch sketch) {
    return Stored.toBytes(sketch);
  }
}
