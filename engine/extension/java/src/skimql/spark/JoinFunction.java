package skimql.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import skimql.sketch.Estimate;
import skimql.sketch.Joins;
import skimql.sketch.LevelSketch;
import skimql.sketch.Sketch;
import skimql.sketch.SketchFault;
import skimql.sketch.Stored;

import java.lang.reflect.Constructor;

/** {@code skim_join_size}, {@code skim_join_sum}, {@code skim_distinct} and their bounds, of the sketches in an array; NULL where one is. */
public final class JoinFunction {
  private JoinFunction() {}

  /** The call of one of the methods below, each named as the function: Spark's own call, whose errors are ours. */
  static Expression call(String name, Seq<Expression> arguments) throws ReflectiveOperationException {
    DataType type =
        name.endsWith("_bounds")
            ? StructType.fromDDL("value DOUBLE, low DOUBLE, high DOUBLE, confidence DOUBLE, certified BOOLEAN")
            : DataTypes.DoubleType;
    Object[] known = {JoinFunction.class, type, name, arguments, scala.collection.immutable.Nil$.MODULE$, true, true, true};
    Constructor<?> made = StaticInvoke.class.getConstructors()[0];
    Object[] values = new Object[made.getParameterCount()];
    for (int i = 0; i < values.length; i++) {
      values[i] = i < known.length ? known[i] : Option.apply(null);
    }
    return (Expression) made.newInstance(values);
  }

  public static Double skim_join_size(ArrayData stored, double confidence) {
    Estimate found = estimate(stored, confidence, false);
    return found == null ? null : (Double) found.value;
  }

  public static Double skim_join_sum(ArrayData stored, double confidence) {
    Estimate found = estimate(stored, confidence, true);
    return found == null ? null : (Double) found.value;
  }

  public static InternalRow skim_join_size_bounds(ArrayData stored, double confidence) {
    return row(estimate(stored, confidence, false));
  }

  public static InternalRow skim_join_sum_bounds(ArrayData stored, double confidence) {
    return row(estimate(stored, confidence, true));
  }

  public static Double skim_distinct(ArrayData stored, double confidence) {
    Estimate found = distinct(stored, confidence);
    return found == null ? null : (Double) found.value;
  }

  public static InternalRow skim_distinct_bounds(ArrayData stored, double confidence) {
    return row(distinct(stored, confidence));
  }

  private static Estimate distinct(ArrayData stored, double confidence) {
    try {
      LevelSketch all = null;
      for (int i = 0; i < stored.numElements(); i++) {
        if (stored.isNullAt(i)) {
          return null;
        }
        LevelSketch one = Stored.distinctFromBytes(stored.getBinary(i));
        if (all == null) {
          all = one;
        } else {
          all.merge(one);
        }
      }
      return all.estimate(confidence);
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  private static Estimate estimate(ArrayData stored, double confidence, boolean sums) {
    Sketch[] sketches = new Sketch[stored.numElements()];
    try {
      for (int i = 0; i < sketches.length; i++) {
        if (stored.isNullAt(i)) {
          return null;
        }
        sketches[i] = Stored.fromBytes(stored.getBinary(i));
      }
      return sums ? Joins.sum(sketches, confidence) : Joins.size(sketches, confidence);
    } catch (SketchFault fault) {
      throw Faults.running(fault);
    }
  }

  private static InternalRow row(Estimate found) {
    return found == null
        ? null
        : new GenericInternalRow(
            new Object[] {found.value, found.low, found.high, found.confidence, found.certified});
  }
}
