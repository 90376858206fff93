package skimql.spark;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;

/** Keys as BIGINTs: integers are themselves, whatever else has an equality of its bytes is fingerprinted by xxhash64. */
final class SketchKeys {
  private static final List<String> INTEGERS = Arrays.asList("tinyint", "smallint", "int", "bigint");
  private static final List<String> HASHED =
      Arrays.asList("string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "float", "double");
  private static final int MOST = 4;

  final List<Column> columns = new ArrayList<>();
  final String[] types;
  /** Names of the fields of a struct; null for a key that stands alone. */
  final String[] labels;

  private SketchKeys(String[] types, String[] labels) {
    this.types = types;
    this.labels = labels;
  }

  static SketchKeys of(Expression given) throws Exception {
    Column column = ExpressionUtils.column(given);
    if (!(given.dataType() instanceof StructType)) {
      SketchKeys made = new SketchKeys(new String[1], null);
      made.add(0, column, given.dataType().simpleString());
      return made;
    }
    StructField[] fields = ((StructType) given.dataType()).fields();
    String[] labels = new String[fields.length];
    for (int i = 0; i < fields.length; i++) {
      labels[i] = fields[i].name().toLowerCase(Locale.ROOT);
    }
    if (fields.length < 1 || fields.length > MOST || new HashSet<>(Arrays.asList(labels)).size() < fields.length) {
      throw SketchOptions.refused(
          "a sketch has 1 to " + MOST + " keys of different names, not " + String.join(", ", labels),
          "skim_sketch(named_struct('user', a, 'item', b))");
    }
    SketchKeys made = new SketchKeys(new String[fields.length], labels);
    for (int i = 0; i < fields.length; i++) {
      made.add(i, column.getField(fields[i].name()), fields[i].dataType().simpleString());
    }
    return made;
  }

  private void add(int place, Column column, String type) throws Exception {
    boolean isInteger = INTEGERS.contains(type);
    if (!isInteger && !HASHED.contains(type) && !type.startsWith("decimal(")) {
      throw SketchOptions.refused("values of type " + type + " cannot be keys of a sketch", "CAST(k AS STRING)");
    }
    types[place] = isInteger ? "bigint" : type;
    columns.add(
        isInteger ? column.cast("bigint") : functions.when(column.isNotNull(), functions.xxhash64(new Column[] {column})));
  }
}
