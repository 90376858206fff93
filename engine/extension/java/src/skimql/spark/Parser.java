package skimql.spark;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlStatementSplitResult;
import org.apache.spark.sql.catalyst.parser.TemporalIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * Spark's parser, and behind it ours: a text that Spark reads is Spark's, one that it refuses is shown to SkimQL, which
 * answers with a text for Spark to read in its place, or that it is none of its own.
 *
 * <p>It has the methods of all versions of Spark: one that an interface lacks is never called there. (A proxy would wrap
 * whatever Spark's parser throws beside ParseException.)
 */
final class Parser implements ParserInterface {
  /** Set in the sessions in which SkimQL itself works. */
  private static final String OWN = "spark.skimql.own";

  /**
   * Spark would describe a column of a table `sketch`, and forget what is cached of a path. A call behind SELECT
   * APPROXIMATE is no text of Spark's: that it parses it twice before it says so is saved.
   */
  private static final Pattern BEFORE_SPARK =
      Pattern.compile(
          "(?s)(?:\\s|--[^\\n]*\\n|/\\*.*?\\*/)*(?:DESC(?:RIBE)?\\s+(?:SKETCH|STREAM)\\s+[\\w`]|REFRESH\\s+SKETCH\\s+[\\w`]|SELECT\\s+APPROXIMATE\\s+\\w+\\s*\\().*",
          Pattern.CASE_INSENSITIVE);

  /** A column named APPROXIMATE and its alias, or a word of ours and the first column. */
  private static final Pattern EITHER =
      Pattern.compile("\\bSELECT\\s+APPROX(?:IMATE)?\\s+[\\w`]", Pattern.CASE_INSENSITIVE);

  private static final Pattern UNKNOWN_WORD = Pattern.compile("`?APPROX(?:IMATE)?`?", Pattern.CASE_INSENSITIVE);

  /** Without one of these words a text is none of ours. */
  private static final Pattern MAYBE =
      Pattern.compile(
          "\\b(?:APPROX(?:IMATE)?|ERROR|EXACT|ESTIMATE|SKETCH(?:ES)?|STREAMS?|CONTINUOUS|QUERIES|PAUSE|RESUME|TERMINATE)\\b",
          Pattern.CASE_INSENSITIVE);

  /** What tells a statement of ours where nobody is there to read it. */
  private static final Pattern OURS =
      Pattern.compile(
          "\\bSELECT\\s+APPROX(?:IMATE)?\\b|\\bERROR\\s+WITHIN\\b|\\bWITH\\s+ERROR\\s+[.\\d]|\\bESTIMATE\\s+ROWS\\b"
              + "|^\\s*(?:EXPLAIN\\s+(?:\\w+\\s+)*)?EXACT\\s+(?:SELECT|WITH)\\b|^\\s*(?:PAUSE|RESUME|TERMINATE)\\b"
              + "|^\\s*\\w+\\s+(?:OR\\s+REPLACE\\s+)?(?:SKETCH(?:ES)?|STREAMS?|CONTINUOUS|QUERIES)\\b",
          Pattern.CASE_INSENSITIVE);

  private static final Pattern COMMENT = Pattern.compile("--[^\\n]*|/\\*(?s:.*?)\\*/");

  private final SparkSession session;
  private final ParserInterface spark;

  private Parser(SparkSession session, ParserInterface spark) {
    this.session = session;
    this.spark = spark;
  }

  static ParserInterface around(SparkSession session, ParserInterface spark) {
    return isOurs(spark) ? spark : new Parser(session, spark);
  }

  static boolean isOurs(Object parser) {
    return parser instanceof Parser;
  }

  static ParserInterface within(Object parser) {
    return ((Parser) parser).spark;
  }

  @Override
  public LogicalPlan parsePlan(String text) {
    return read(text, spark::parsePlan);
  }

  @Override
  public LogicalPlan parseQuery(String text) {
    return read(text, spark::parseQuery);
  }

  @Override
  public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters) {
    return read(text, asked -> spark.parsePlanWithParameters(asked, parameters));
  }

  @Override
  public Expression parseExpression(String text) {
    try {
      return spark.parseExpression(text);
    } catch (Throwable refused) {
      return instead(refused, text, spark::parseExpression);
    }
  }

  @Override
  public TableIdentifier parseTableIdentifier(String text) {
    return spark.parseTableIdentifier(text);
  }

  @Override
  public FunctionIdentifier parseFunctionIdentifier(String text) {
    return spark.parseFunctionIdentifier(text);
  }

  @Override
  public Seq<String> parseMultipartIdentifier(String text) {
    return spark.parseMultipartIdentifier(text);
  }

  @Override
  public TemporalIdentifier parseTemporalTableIdentifier(String text) {
    return spark.parseTemporalTableIdentifier(text);
  }

  @Override
  public StructType parseRoutineParam(String text) {
    return spark.parseRoutineParam(text);
  }

  @Override
  public SqlStatementSplitResult splitStatements(String text) {
    return spark.splitStatements(text);
  }

  @Override
  public StructType parseTableSchema(String text) {
    return spark.parseTableSchema(text);
  }

  @Override
  public DataType parseDataType(String text) {
    return spark.parseDataType(text);
  }

  private LogicalPlan read(String text, Function<String, LogicalPlan> parse) {
    if (!Link.isLoaded()) {
      return parse.apply(text);
    }
    if (BEFORE_SPARK.matcher(text).matches() && Link.isOpen() && !isOwn()) {
      String ours = Link.read(text, session);
      if (ours != null) {
        return inPlace(text, ours, parse);
      }
    }
    LogicalPlan plan;
    try {
      plan = parse.apply(text);
    } catch (Throwable refused) {
      return instead(refused, text, parse);
    }
    if (EITHER.matcher(text).find() && Link.isOpen() && !isOwn() && isUnknown(plan)) {
      String ours = Link.read(text, session);
      if (ours != null) {
        return inPlace(text, ours, parse);
      }
    }
    return plan;
  }

  /** What Spark makes of the text in the place of one that it has refused; where that is none of ours, its refusal. */
  private <T> T instead(Throwable refused, String text, Function<String, T> parse) {
    String ours = refused instanceof ParseException && Link.isLoaded() && !isOwn() ? inPlaceOf(text) : null;
    if (ours == null) {
      throw Faults.thrown(refused);
    }
    return inPlace(text, ours, parse);
  }

  private static <T> T inPlace(String text, String ours, Function<String, T> parse) {
    try {
      return parse.apply(ours);
    } catch (Throwable refused) {
      throw Faults.thrown(Faults.said(refused, text));
    }
  }

  /** What is to be read in place of a text that Spark has refused; null where it is none of ours. */
  private String inPlaceOf(String text) {
    if (!MAYBE.matcher(text).find()) {
      return null;
    }
    boolean surely = OURS.matcher(COMMENT.matcher(text).replaceAll(" ")).find();
    if (!Link.isOpen() && surely) {
      throw Faults.thrown(Faults.notOpen());
    }
    try {
      // No Python is started to say what is wrong with a text of Spark's.
      return surely || Link.isRunning() ? Link.read(text, session) : null;
    } catch (Throwable fault) {
      if (Faults.isNobodyThere(fault) && !surely) {
        return null;
      }
      throw fault;
    }
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
}
