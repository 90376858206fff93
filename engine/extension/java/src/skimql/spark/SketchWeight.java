package skimql.spark;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;

import java.math.BigDecimal;
import java.util.Arrays;
import java.util.List;

/** A weight as BIGINT (integers; DECIMAL of up to 18 digits times a power of ten) or DOUBLE, a NULL as 0. */
final class SketchWeight {
  private static final List<String> INTEGERS = Arrays.asList("tinyint", "smallint", "int", "bigint");
  private static final int LONGEST = 18;

  final Column column;
  final boolean isDouble;
  final long scale;

  private SketchWeight(Column column, boolean isDouble, long scale) {
    this.column = column;
    this.isDouble = isDouble;
    this.scale = scale;
  }

  static SketchWeight of(Expression given) throws Exception {
    Column column = ExpressionUtils.column(given);
    String type = given.dataType().simpleString();
    if (INTEGERS.contains(type)) {
      return new SketchWeight(orZero(column.cast("bigint"), 0L), false, 1);
    }
    if (type.startsWith("decimal(")) {
      String[] digits = type.substring(8, type.length() - 1).split(",");
      if (Integer.parseInt(digits[0]) <= LONGEST) {
        BigDecimal factor = BigDecimal.TEN.pow(Integer.parseInt(digits[1]));
        Column whole = column.multiply(functions.lit(factor)).cast("bigint");
        return new SketchWeight(orZero(whole, 0L), false, factor.longValueExact());
      }
    } else if (!type.equals("float") && !type.equals("double")) {
      throw SketchOptions.refused("a weight is a number, not of type " + type, "CAST(x AS DECIMAL(18, 2))");
    }
    return new SketchWeight(orZero(column.cast("double"), 0.0), true, 1);
  }

  private static Column orZero(Column column, Object zero) {
    return functions.coalesce(new Column[] {column, functions.lit(zero)});
  }
}
