package skimql.spark;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A small answer, told as its schema and rows, as a relation of constants: no job is needed for it. */
final class Rows {
  private Rows() {}

  static Dataset<?> of(Map<?, ?> told, SparkSession session) {
    StructType schema = (StructType) DataType.fromJson((String) told.get("schema"));
    String[] names = new String[schema.length()];
    for (int i = 0; i < names.length; i++) {
      names[i] = schema.apply(i).dataType().typeName();
    }
    List<Row> rows = new ArrayList<>();
    for (Object row : (List<?>) told.get("rows")) {
      Object[] values = ((List<?>) row).toArray();
      for (int i = 0; i < values.length; i++) {
        values[i] = values[i] == null ? null : value(values[i], names[i]);
      }
      rows.add(RowFactory.create(values));
    }
    return session.createDataFrame(rows, schema);
  }

  private static Object value(Object told, String type) {
    switch (type) {
      case "byte":
        return ((Number) told).byteValue();
      case "short":
        return ((Number) told).shortValue();
      case "integer":
        return ((Number) told).intValue();
      case "long":
        return ((Number) told).longValue();
      case "float":
        return Float.valueOf(told.toString());
      case "double":
        return Double.valueOf(told.toString());
      case "date":
        return LocalDate.ofEpochDay(((Number) told).longValue());
      case "timestamp":
        return Instant.EPOCH.plus(((Number) told).longValue(), ChronoUnit.MICROS);
      case "timestamp_ntz":
        return LocalDateTime.ofEpochSecond(0, 0, ZoneOffset.UTC).plus(((Number) told).longValue(), ChronoUnit.MICROS);
      default:
        return type.startsWith("decimal") ? new BigDecimal((String) told) : told;
    }
  }
}
