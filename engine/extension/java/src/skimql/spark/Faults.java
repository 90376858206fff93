package skimql.spark;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.Origin;
import scala.Option;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;

/** Errors of ours as Spark's: a ParseException or an AnalysisException with our text, code and place. */
final class Faults {
  private static final String GONE = "SKIMQL_PYTHON_GONE";
  private static final String NONE = "SKIMQL_NO_PYTHON";
  /** SQLSTATEs: the system fails, the data are not what they are to be. */
  private static final String SYSTEM = "58000";

  static final String DATA = "22000";

  private Faults() {}

  /** The error of a text that was read: a ParseException where it is malformed. */
  static Exception ofText(Map<?, ?> told) {
    try {
      return Boolean.TRUE.equals(told.get("parse")) ? parse(told, origin(told)) : of(told);
    } catch (ReflectiveOperationException fault) {
      return of(told);
    }
  }

  static Exception of(Map<?, ?> told) {
    try {
      return analysis(told, origin(told));
    } catch (ReflectiveOperationException fault) {
      return new IllegalArgumentException(told.get("code") + ": " + told.get("message"), fault);
    }
  }

  private static Exception make(String code, String message) {
    Map<String, Object> told = new LinkedHashMap<>();
    told.put("code", code);
    told.put("state", SYSTEM);
    told.put("message", message);
    return of(told);
  }

  static Exception notOpen() {
    return make(
        "SKIMQL_NOT_ENABLED",
        "this statement is SkimQL's, and no Python reads it here\n  try: skimql.enable(spark) in the Python that drives Spark");
  }

  static Exception gone(String why) {
    return make(
        GONE,
        "the Python that answers SkimQL's statements cannot be reached: "
            + why
            + "\n  try: the statement once more; skimql.enable(spark) in a Python that drives Spark");
  }

  static Exception noPython(String command, String why) {
    return make(
        NONE,
        "this statement is SkimQL's, and a Python that reads it could not be started ("
            + command
            + "): "
            + why
            + "\n  try: spark.skimql.python = a Python with SkimQL and this Spark; skimql.enable(spark) in a Python that"
            + " drives Spark");
  }

  /** What is thrown in the place of a fault that one of our statements meets. */
  static Throwable met(Throwable fault, org.apache.spark.sql.classic.SparkSession session) {
    if (session.sparkContext().isStopped()) {
      return stopped();
    }
    return fault instanceof OutOfMemoryError
        ? make(
            "SKIMQL_OUT_OF_MEMORY",
            "Spark's JVM has no more memory: " + fault.getMessage() + "\n  try: a larger spark.driver.memory")
        : fault;
  }

  /** No AnalysisException: after one Spark would do with a scheduler that is gone. */
  private static RuntimeException stopped() {
    String code = "SKIMQL_SPARK_STOPPED";
    return running(new skimql.sketch.SketchFault(
        code, "the Spark session of this statement was stopped", "a new Spark session, and skimql.enable(spark) of it"));
  }

  /** Whether there is nobody to say whether a text is ours. */
  static boolean isNobodyThere(Throwable fault) {
    String message = String.valueOf(fault.getMessage());
    return fault instanceof AnalysisException
        && (message.contains("[" + GONE + "]") || message.contains("[" + NONE + "]"));
  }

  static Exception forgotten() {
    return make("SKIMQL_ASKED_LATE", "this statement was read too long ago\n  try: the statement once more");
  }

  static Exception arguments() {
    return make(
        "SKIMQL_PARAMETERS", "skimql_answer takes a text\n  try: SELECT * FROM skimql_answer('SELECT APPROXIMATE ...')");
  }

  /** One that a job has met, on a machine whose Spark may not know our codes yet. */
  static RuntimeException running(skimql.sketch.SketchFault fault) {
    return Conditions.know(fault.code(), DATA)
        ? new org.apache.spark.SparkRuntimeException(
            fault.code(), Conditions.parameters(fault.told()), null, new QueryContext[0], "")
        : fault;
  }

  /** For {@code throw}: what Java would have declared. */
  static RuntimeException thrown(Throwable fault) {
    throw Faults.<RuntimeException>unchecked(fault);
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> T unchecked(Throwable fault) throws T {
    throw (T) fault;
  }

  /** What Spark says of the text that it has read in the place of another, as said of that one. */
  static Throwable said(Throwable fault, String text) {
    return fault instanceof ParseException ? ((ParseException) fault).withCommand(text) : fault;
  }

  /** Whether Spark has refused a plan for a column of such a name. */
  static boolean isUnknownColumn(Throwable fault, Pattern name) {
    if (!(fault instanceof AnalysisException)) {
      return false;
    }
    AnalysisException refused = (AnalysisException) fault;
    String condition = String.valueOf(refused.getErrorClass());
    if (!condition.startsWith("UNRESOLVED_COLUMN")) {
      return false;
    }
    String column = refused.getMessageParameters().get("objectName");
    return column != null && name.matcher(column).matches();
  }

  private static Exception parse(Map<?, ?> told, Origin origin) throws ReflectiveOperationException {
    for (Constructor<?> made : ParseException.class.getDeclaredConstructors()) {
      Class<?>[] types = made.getParameterTypes();
      // (command, message, start[, stop], condition, parameters, contexts)
      if (types.length < 6 || types[1] != String.class || types[2] != Origin.class) {
        continue;
      }
      Object[] values = new Object[types.length];
      int last = types.length - 1;
      values[0] = Option.apply(told.get("sql"));
      values[1] = "[" + told.get("code") + "] " + told.get("message");
      values[2] = origin;
      values[3] = origin;
      values[last - 2] = Option.apply(condition(told));
      values[last - 1] = Conditions.parameters(String.valueOf(told.get("message")));
      values[last] = origin.getQueryContext();
      made.setAccessible(true);
      return (Exception) made.newInstance(values);
    }
    return analysis(told, origin);
  }

  /** One that keeps its place: Spark would put that of the table function there. */
  private static final class Refusal extends AnalysisException {
    private static final long serialVersionUID = 1;

    Refusal(
        String message,
        Option<Object> line,
        Option<Object> position,
        Option<String> condition,
        scala.collection.immutable.Map<String, String> parameters,
        QueryContext[] contexts) {
      super(message, line, position, Option.apply((Throwable) null), condition, parameters, contexts);
    }

    @Override
    public AnalysisException withPosition(Origin origin) {
      return line().isDefined() ? this : super.withPosition(origin);
    }

    /** As clients of a Thrift server are told of it. */
    @Override
    public String toString() {
      return AnalysisException.class.getName() + ": " + getMessage();
    }
  }

  private static Exception analysis(Map<?, ?> told, Origin origin) {
    QueryContext[] contexts = told.get("sql") == null ? new QueryContext[0] : origin.getQueryContext();
    return new Refusal(
        "[" + told.get("code") + "] " + told.get(told.get("shown") == null ? "message" : "shown"),
        Option.apply(told.get("line")),
        Option.apply(told.get("position")),
        Option.apply(condition(told)),
        Conditions.parameters(String.valueOf(told.get("message"))),
        contexts);
  }

  private static String condition(Map<?, ?> told) {
    String code = String.valueOf(told.get("code"));
    return Conditions.know(code, String.valueOf(told.get("state"))) ? code : null;
  }

  /** Its parameters grow with every version; those behind the ones that we know have defaults. */
  private static Origin origin(Map<?, ?> told) throws ReflectiveOperationException {
    Object[] known = {told.get("line"), told.get("position"), told.get("start"), told.get("stop"), told.get("sql")};
    for (Method made : Origin.class.getMethods()) {
      if (made.getName().equals("apply")) {
        Object[] values = new Object[made.getParameterCount()];
        for (int i = 0; i < values.length; i++) {
          values[i] = Option.apply(i < known.length ? known[i] : null);
        }
        return (Origin) made.invoke(null, values);
      }
    }
    throw new NoSuchMethodException("Origin.apply");
  }
}
