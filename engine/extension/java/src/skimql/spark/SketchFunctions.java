package skimql.spark;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import skimql.sketch.SketchFault;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The functions of sketches for plain queries: made where a query is analysed, since types and options decide. */
final class SketchFunctions extends AbstractFunction1<Seq<Expression>, Expression> {
  private static final List<String> NAMES =
      Arrays.asList(
          "skim_sketch",
          "skim_merge",
          "skim_join_size",
          "skim_join_size_bounds",
          "skim_join_sum",
          "skim_join_sum_bounds",
          "skim_distinct",
          "skim_distinct_bounds");
  private static final double CONFIDENCE = 0.95;

  private final String name;

  private SketchFunctions(String name) {
    this.name = name;
  }

  /** Known to every session to come; as Spark's own, since views may not call others. */
  static void register() {
    for (String code : SketchFault.CODES) {
      Conditions.know(code, Faults.DATA);
    }
    register(FunctionRegistry.builtin());
  }

  static void register(FunctionRegistry registry) {
    for (String name : NAMES) {
      FunctionIdentifier identifier = beside(registry, name);
      if (!registry.functionExists(identifier)) {
        registry.registerFunction(
            identifier, new ExpressionInfo(SketchFunctions.class.getName(), name), new SketchFunctions(name));
      }
    }
  }

  static void unregister(FunctionRegistry registry) {
    FunctionRegistry builtin = FunctionRegistry.builtin();
    for (String name : NAMES) {
      registry.dropFunction(beside(registry, name));
      builtin.dropFunction(beside(builtin, name));
    }
  }

  private static FunctionIdentifier beside(FunctionRegistry registry, String name) {
    return TableFunction.beside(registry.listFunction(), "count", name);
  }

  @Override
  public Expression apply(Seq<Expression> arguments) {
    try {
      List<Expression> given = new ArrayList<>();
      for (int i = 0; i < arguments.length(); i++) {
        given.add(arguments.apply(i));
      }
      if (name.equals("skim_sketch")) {
        return sketch(given);
      }
      return name.equals("skim_merge") ? merge(given) : join(given);
    } catch (Throwable fault) {
      throw Faults.thrown(fault);
    }
  }

  private Expression sketch(List<Expression> given) throws Exception {
    String last = given.isEmpty() ? "" : type(given.get(given.size() - 1));
    boolean hasOptions = given.size() > 1 && last.equals("string");
    int values = given.size() - (hasOptions ? 1 : 0);
    if (values < 1 || values > 2) {
      throw SketchOptions.refused(
          "skim_sketch takes a key, perhaps a weight, and options as a text", "skim_sketch(k, x, 'buckets = 4096')");
    }
    SketchKeys keys = SketchKeys.of(given.get(0));
    String text = hasOptions ? text(given.get(values)) : "";
    if (DistinctOptions.areAsked(text)) {
      if (values == 2) {
        throw SketchOptions.refused("distinct keys have no weights", "skim_sketch(k, 'kind = distinct')");
      }
      DistinctAggregator distinct = new DistinctAggregator(DistinctOptions.read(text, keys));
      return aggregate(functions.udaf(distinct, org.apache.spark.sql.Encoders.LONG()), keys.columns);
    }
    SketchOptions options = SketchOptions.read(text, keys.labels).of(keys.types);
    List<Column> columns = new ArrayList<>(keys.columns);
    if (values == 2) {
      SketchWeight weight = SketchWeight.of(given.get(1));
      options.weighing(weight.isDouble, weight.scale);
      columns.add(weight.column);
    }
    SketchAggregator made = new SketchAggregator(options);
    return aggregate(functions.udaf(made, made.inputEncoder()), columns);
  }

  private Expression merge(List<Expression> given) throws Exception {
    if (given.size() != 1 || !type(given.get(0)).equals("binary")) {
      throw SketchOptions.refused("skim_merge takes a column of sketches, BINARY", "skim_merge(sketch)");
    }
    List<Column> columns = new ArrayList<>();
    columns.add(ExpressionUtils.column(given.get(0)));
    return aggregate(functions.udaf(new MergeAggregator(), org.apache.spark.sql.Encoders.BINARY()), columns);
  }

  private Expression join(List<Expression> given) throws Exception {
    List<Column> columns = new ArrayList<>();
    double confidence = CONFIDENCE;
    int least = name.startsWith("skim_distinct") ? 1 : 2;
    for (int i = 0; i < given.size(); i++) {
      String type = type(given.get(i));
      if (type.equals("binary")) {
        columns.add(ExpressionUtils.column(given.get(i)));
      } else if (i == given.size() - 1 && i >= least && name.endsWith("_bounds") && given.get(i).foldable()) {
        confidence = confidence(given.get(i));
      } else {
        columns.clear();
        break;
      }
    }
    if (columns.size() < least) {
      String bounds = name.endsWith("_bounds") ? ", and perhaps a confidence" : "";
      String many = least == 1 ? " takes a sketch or more" : " takes two sketches or more";
      throw SketchOptions.refused(name + many + ", BINARY" + bounds, name + (least == 1 ? "(sketch)" : "(a.sketch, b.sketch)"));
    }
    Expression sketches = expression(functions.array(columns.toArray(new Column[0])));
    Expression asked = expression(functions.lit(confidence));
    return JoinFunction.call(name, Nil$.MODULE$.$colon$colon(asked).$colon$colon(sketches));
  }

  private static double confidence(Expression given) throws Exception {
    Object value = given.eval(null);
    double found = value == null ? 0 : Double.parseDouble(value.toString());
    if (!(found > 0 && found < 1)) {
      throw SketchOptions.refused("a confidence lies between 0 and 1, not at " + value, "0.95");
    }
    return found;
  }

  private static String text(Expression given) throws Exception {
    Object value = given.foldable() ? given.eval(null) : null;
    if (value == null) {
      throw SketchOptions.refused("the options of skim_sketch are a constant text", "'rows = 11, buckets = 4096'");
    }
    return value.toString();
  }

  private static String type(Expression given) {
    return given.dataType().simpleString();
  }

  private Expression aggregate(UserDefinedFunction function, List<Column> columns) {
    Expression made = expression(function.withName(name).apply(columns.toArray(new Column[0])));
    return ((AggregateExpression) made).aggregateFunction();
  }

  private static Expression expression(Column column) {
    return ((SparkSession) org.apache.spark.sql.SparkSession.active()).expression(column);
  }
}
