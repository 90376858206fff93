package skimql.spark;

import skimql.sketch.Stored;

/** {@code skim_merge}: sketches into that of all their tuples; NULL of none. */
public final class MergeAggregator extends StoredAggregator<byte[], Merged> {
  private static final long serialVersionUID = 1;

  public MergeAggregator() {
    super(Merged.class, "sketches");
  }

  @Override
  public Merged zero() {
    return new Merged();
  }

  @Override
  void add(Merged merged, byte[] input) {
    merged.add(Stored.read(input));
  }

  @Override
  void addAll(Merged one, Merged other) {
    one.addAll(other);
  }

  @Override
  public byte[] finish(Merged merged) {
    return merged.toBytes();
  }
}
