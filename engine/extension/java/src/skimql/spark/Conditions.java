package skimql.spark;

import org.apache.spark.SparkThrowableHelper$;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Our error codes among Spark's error conditions: whoever asks an exception of Spark's for its message has the template
 * of its condition looked up, and an unknown one is an internal error there.
 */
final class Conditions {
  /** Its place among the parameters of such a condition: message, conditions below it, SQLSTATE. */
  private static final int STATE = 2;

  private Conditions() {}

  /**
   * Make a code a condition of Spark's, its message what it is thrown with; false where this Spark does not let it. A
   * script cannot do without its SQLSTATE.
   */
  static synchronized boolean know(String code, String state) {
    try {
      Object reader = SparkThrowableHelper$.MODULE$.errorReader();
      Field field = reader.getClass().getDeclaredField("errorInfoMap");
      field.setAccessible(true);
      Object known = field.get(reader);
      if (!Boolean.TRUE.equals(call(known, "contains", code))) {
        field.set(reader, call(known, "updated", code, template(state)));
      }
      return true;
    } catch (ReflectiveOperationException | RuntimeException | LinkageError refused) {
      return false;
    }
  }

  /** The parameters of such a condition. */
  static Map<String, String> parameters(String message) {
    Map<String, String> none = Map$.MODULE$.empty();
    try {
      @SuppressWarnings("unchecked")
      Map<String, String> one = (Map<String, String>) call(none, "updated", "message", message);
      return one;
    } catch (ReflectiveOperationException refused) {
      return none;
    }
  }

  private static Object template(String state) throws ReflectiveOperationException {
    Class<?> type = Class.forName("org.apache.spark.ErrorInfo", true, SparkThrowableHelper$.class.getClassLoader());
    Constructor<?> made = type.getConstructors()[0];
    Object[] values = new Object[made.getParameterCount()];
    Class<?> nil = Class.forName("scala.collection.immutable.Nil$", true, Option.class.getClassLoader());
    values[0] = call(nil.getField("MODULE$").get(null), "$colon$colon", "<message>");
    for (int i = 1; i < values.length; i++) {
      values[i] = Option.apply(i == STATE ? state : null);
    }
    return made.newInstance(values);
  }

  private static Object call(Object object, String name, Object... values) throws ReflectiveOperationException {
    for (Method method : object.getClass().getMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == values.length) {
        method.setAccessible(true);
        try {
          return method.invoke(object, values);
        } catch (InvocationTargetException thrown) {
          throw new NoSuchMethodException(name + ": " + thrown.getCause());
        }
      }
    }
    throw new NoSuchMethodException(name);
  }
}
