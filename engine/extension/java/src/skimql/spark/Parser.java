package skimql.spark;

import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Spark's parser, and behind it ours: a text that Spark reads is Spark's, one that it refuses is shown to SkimQL, which
 * answers with a text for Spark to read in its place, or that it is none of its own.
 *
 * <p>A proxy, since ParserInterface has other methods in every version of Spark.
 */
final class Parser implements InvocationHandler {
  /** Set in the sessions in which SkimQL itself works. */
  private static final String OWN = "spark.skimql.own";

  private static final Set<String> READS =
      new HashSet<>(Arrays.asList("parsePlan", "parseQuery", "parsePlanWithParameters"));

  /** Spark would describe a column of a table `sketch`, and forget what is cached of a path. */
  private static final Pattern BEFORE_SPARK =
      Pattern.compile(
          "(?s)(?:\\s|--[^\\n]*\\n|/\\*.*?\\*/)*(?:DESC(?:RIBE)?\\s+(?:SKETCH|STREAM)\\s+[\\w`]|REFRESH\\s+SKETCH\\s+[\\w`]).*",
          Pattern.CASE_INSENSITIVE);

  /** A column named APPROXIMATE and its alias, or a word of ours and the first column. */
  private static final Pattern EITHER =
      Pattern.compile("\\bSELECT\\s+APPROX(?:IMATE)?\\s+[\\w`]", Pattern.CASE_INSENSITIVE);

  private static final Pattern UNKNOWN_WORD = Pattern.compile("`?APPROX(?:IMATE)?`?", Pattern.CASE_INSENSITIVE);

  /** What tells a statement of ours where nobody is there to read it. */
  private static final Pattern OURS =
      Pattern.compile(
          "\\bSELECT\\s+APPROX(?:IMATE)?\\b|\\bERROR\\s+WITHIN\\b|^\\s*ESTIMATE\\s+ROWS\\b|^\\s*EXACT\\s+SELECT\\b"
              + "|^\\s*\\w+\\s+(?:OR\\s+REPLACE\\s+)?SKETCH(?:ES)?\\b",
          Pattern.CASE_INSENSITIVE);

  private final SparkSession session;
  private final ParserInterface spark;

  private Parser(SparkSession session, ParserInterface spark) {
    this.session = session;
    this.spark = spark;
  }

  static ParserInterface around(SparkSession session, ParserInterface spark) {
    if (isOurs(spark)) {
      return spark;
    }
    ClassLoader loader = ParserInterface.class.getClassLoader();
    return (ParserInterface)
        Proxy.newProxyInstance(loader, new Class<?>[] {ParserInterface.class}, new Parser(session, spark));
  }

  static boolean isOurs(Object parser) {
    return Proxy.isProxyClass(parser.getClass()) && Proxy.getInvocationHandler(parser) instanceof Parser;
  }

  static ParserInterface within(Object parser) {
    return ((Parser) Proxy.getInvocationHandler(parser)).spark;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
    if (READS.contains(method.getName()) && Link.isLoaded()) {
      return read(method, args);
    }
    if (method.getDeclaringClass() == Object.class && method.getName().equals("equals")) {
      return proxy == args[0];
    }
    return forward(method, args);
  }

  private Object forward(Method method, Object[] args) throws Throwable {
    try {
      return method.invoke(spark, args);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause();
    }
  }

  private Object read(Method method, Object[] args) throws Throwable {
    String text = (String) args[0];
    if (BEFORE_SPARK.matcher(text).matches() && !isOwn()) {
      String ours = Link.read(text, session);
      if (ours != null) {
        return forward(method, with(args, ours));
      }
    }
    Object plan;
    try {
      plan = forward(method, args);
    } catch (ParseException refused) {
      if (isOwn()) {
        throw refused;
      }
      if (!Link.isOpen()) {
        if (OURS.matcher(text).find()) {
          throw Faults.notOpen();
        }
        throw refused;
      }
      String ours = Link.read(text, session);
      if (ours == null) {
        throw refused;
      }
      return forward(method, with(args, ours));
    }
    if (EITHER.matcher(text).find() && Link.isOpen() && !isOwn() && isUnknown((LogicalPlan) plan)) {
      String ours = Link.read(text, session);
      if (ours != null) {
        return forward(method, with(args, ours));
      }
    }
    return plan;
  }

  private boolean isOwn() {
    return session.sessionState().conf().contains(OWN);
  }

  /** Whether Spark knows no column of that name. */
  private boolean isUnknown(LogicalPlan plan) {
    SessionState state = session.sessionState();
    try {
      state.executePlan(plan, state.executePlan$default$2()).assertAnalyzed();
      return false;
    } catch (Throwable refused) {
      return Faults.isUnknownColumn(refused, UNKNOWN_WORD);
    }
  }

  private static Object[] with(Object[] args, String text) {
    Object[] changed = args.clone();
    changed[0] = text;
    return changed;
  }
}
