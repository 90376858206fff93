package skimql.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;

/** SkimQL's statements in Spark SQL: named in {@code spark.sql.extensions}, or attached to a session that runs. */
public final class SkimqlExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  private static final Set<SparkSessionExtensions> INJECTED = Collections.newSetFromMap(new WeakHashMap<>());

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    Link.configured();
    inject(extensions);
    return BoxedUnit.UNIT;
  }

  /** Sessions that are made from now on read our statements. */
  private static synchronized void inject(SparkSessionExtensions extensions) {
    TableFunction.register();
    SketchFunctions.register();
    if (INJECTED.add(extensions)) {
      extensions.injectParser(
          new AbstractFunction2<org.apache.spark.sql.SparkSession, ParserInterface, ParserInterface>() {
            @Override
            public ParserInterface apply(org.apache.spark.sql.SparkSession session, ParserInterface spark) {
              return Parser.around((SparkSession) session, spark);
            }
          });
    }
  }

  /** Make a session that runs, and those that are made from it, read our statements. Twice is no fault. */
  public static synchronized void attach(SparkSession session) throws ReflectiveOperationException {
    inject(session.extensions());
    SessionState state = session.sessionState();
    TableFunction.register(state.tableFunctionRegistry());
    SketchFunctions.register(state.functionRegistry());
    if (!Parser.isOurs(state.sqlParser())) {
      replace(session, Parser.around(session, state.sqlParser()));
    }
  }

  /** Give a session its own parser again. */
  public static synchronized void detach(SparkSession session) throws ReflectiveOperationException {
    SessionState state = session.sessionState();
    if (Parser.isOurs(state.sqlParser())) {
      replace(session, Parser.within(state.sqlParser()));
    }
    TableFunction.unregister(state.tableFunctionRegistry());
    SketchFunctions.unregister(state.functionRegistry());
  }

  private static void replace(SparkSession session, ParserInterface parser) throws ReflectiveOperationException {
    set(SessionState.class, session.sessionState(), "sqlParser", parser);
    // It reads the texts of views.
    Object catalog = session.sessionState().catalog();
    set(org.apache.spark.sql.catalyst.catalog.SessionCatalog.class, catalog, "parser", parser);
  }

  private static void set(Class<?> type, Object object, String name, Object value)
      throws ReflectiveOperationException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    field.set(object, value);
  }
}
