package skimql.spark;

import skimql.sketch.LevelSketch;
import skimql.sketch.Sketch;
import skimql.sketch.SketchFault;
import skimql.sketch.Stored;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectOutput;

/** Sketches of one kind merged: for joins, or of distinct keys; neither at first. */
public final class Merged implements Externalizable {
  private static final long serialVersionUID = 1;

  private Sketch joins;
  private LevelSketch distinct;

  /** For reading. */
  public Merged() {}

  void add(Object sketch) {
    if (sketch instanceof Sketch && distinct == null) {
      joins = joins == null ? new Sketch() : joins;
      joins.merge((Sketch) sketch);
    } else if (sketch instanceof LevelSketch && joins == null) {
      if (distinct == null) {
        distinct = (LevelSketch) sketch;
      } else {
        distinct.merge((LevelSketch) sketch);
      }
    } else {
      throw new SketchFault(
          "SKIMQL_SKETCH_PAIR", "a sketch for joins and one of distinct keys cannot be merged", "each by itself");
    }
  }

  void addAll(Merged other) {
    if (other.joins != null || other.distinct != null) {
      add(other.joins == null ? other.distinct : other.joins);
    }
  }

  /** Null of none. */
  byte[] toBytes() {
    if (joins != null) {
      return Stored.toBytes(joins);
    }
    return distinct == null ? null : Stored.toBytes(distinct);
  }

  @Override
  public void writeExternal(ObjectOutput out) throws IOException {
    byte[] bytes = toBytes();
    out.writeInt(bytes == null ? 0 : bytes.length);
    out.write(bytes == null ? new byte[0] : bytes);
  }

  @Override
  public void readExternal(ObjectInput in) throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    if (bytes.length > 0) {
      add(Stored.read(bytes));
    }
  }
}
