package skimql.spark;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** {@code skimql_answer('SELECT APPROXIMATE ...')}, and {@code __skimql(7)} for a text that was read a moment ago. */
final class TableFunction extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
  private static final String[] NAMES = {"skimql_answer", "__skimql"};

  private TableFunction() {}

  /** Known to every session to come; as one of Spark's own, since views may not call others. */
  static void register() {
    register(TableFunctionRegistry.builtin());
  }

  static void register(TableFunctionRegistry registry) {
    for (String name : NAMES) {
      FunctionIdentifier identifier = beside(registry, name);
      if (!registry.functionExists(identifier)) {
        registry.registerFunction(
            identifier, new ExpressionInfo(TableFunction.class.getName(), name), new TableFunction());
      }
    }
  }

  static void unregister(TableFunctionRegistry registry) {
    for (String name : NAMES) {
      registry.dropFunction(beside(registry, name));
      TableFunctionRegistry builtin = TableFunctionRegistry.builtin();
      builtin.dropFunction(beside(builtin, name));
    }
  }

  /** A name as the registry spells its own: from Spark 4.3 on they have a catalog and a database. */
  private static FunctionIdentifier beside(TableFunctionRegistry registry, String name) {
    return beside(registry.listFunction(), "range", name);
  }

  static FunctionIdentifier beside(Seq<FunctionIdentifier> known, String own, String name) {
    for (int i = 0; i < known.length(); i++) {
      if (known.apply(i).funcName().equals(own)) {
        return new FunctionIdentifier(name, known.apply(i).database(), known.apply(i).catalog());
      }
    }
    return new FunctionIdentifier(name);
  }

  @Override
  public LogicalPlan apply(Seq<Expression> arguments) {
    SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    try {
      return Resent.answer(request(arguments), session);
    } catch (Throwable fault) {
      throw Faults.thrown(Faults.met(fault, session));
    }
  }

  private static Map<String, Object> request(Seq<Expression> arguments) throws Exception {
    List<String> literals = new ArrayList<>();
    for (int i = 0; i < arguments.length(); i++) {
      if (!arguments.apply(i).foldable()) {
        throw Faults.arguments();
      }
      literals.add(arguments.apply(i).sql());
    }
    Object first = arguments.length() == 0 ? null : arguments.apply(0).eval(null);
    Map<String, Object> request;
    if (first instanceof Integer || first instanceof Long) {
      request = Link.request(((Number) first).longValue());
      if (request == null) {
        throw Faults.forgotten();
      }
      request.put("literals", literals.subList(1, literals.size()));
    } else if (first != null && arguments.length() <= 2) {
      request = new LinkedHashMap<>();
      request.put("text", first.toString());
      if (arguments.length() == 2) {
        request.put("purpose", String.valueOf(arguments.apply(1).eval(null)));
      }
    } else {
      throw Faults.arguments();
    }
    Seq<String> place = AnalysisContext.get().catalogAndNamespace();
    if (place.length() > 0) {
      List<String> names = new ArrayList<>();
      for (int i = 0; i < place.length(); i++) {
        names.add(place.apply(i));
      }
      request.put("place", names);
    }
    return request;
  }
}
